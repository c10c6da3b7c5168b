"""SavedModels whose operations are in signatures, and loading a model in steps."""

import pytest
from tensorfleet.python.saved_model import builder, constants, loader_impl, utils
from tensorfleet.python.training import saver as savers

import tensorfleet as tf


def write(folder, make_builder, **operations):
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.Variable(5, name="x"), tf.Variable(11, name="y")
        session.run(tf.global_variables_initializer())
        by_name = {key: make(x, y) for key, make in operations.items()}
        builder_of_model = make_builder(folder)
        builder_of_model.add_meta_graph_and_variables(session, ["tag"], **by_name)
        builder_of_model.save()
    return loader_impl.SavedModelLoader(folder)


def set_y(x, y):
    return tf.group(y.assign(7))


@pytest.mark.parametrize(
    ("make_builder", "key"),
    [(builder.SavedModelBuilder, "main_op"), (builder._SavedModelBuilder, "init_op")],
)
def test_a_model_is_loaded_step_by_step(tmp_path, make_builder, key):
    loader = write(str(tmp_path / "model"), make_builder, **{key: set_y})
    graph = tf.Graph()
    saver, (x, y) = loader.load_graph(graph, ["tag"], return_elements=["x:0", "y:0"])
    with tf.Session(graph=graph) as session:
        with pytest.raises(tf.errors.FailedPreconditionError):
            session.run(x)
        with pytest.raises(ValueError, match="a saver is required"):
            loader.restore_variables(session, None)
        loader.restore_variables(session, saver)
        assert session.run([x, y]) == [5, 11]
        loader.run_init_ops(session, ["tag"])
        assert session.run([x, y]) == [5, 7]
    assert loader.export_dir == str(tmp_path / "model") and loader.variables_path.endswith("variables")
    assert len(loader.saved_model.meta_graphs) == 1


def test_an_init_op_in_a_signature_is_found_in_its_scope(tmp_path, graph, session):
    loader = write(str(tmp_path / "model"), builder._SavedModelBuilder, init_op=set_y)
    saver, _ = loader.load_graph(graph, ["tag"], import_scope="in")
    loader.restore_variables(session, saver)
    with pytest.raises(tf.errors.NotFoundError):
        loader.run_init_ops(session, ["tag"])
    loader.run_init_ops(session, ["tag"], import_scope="in")
    assert session.run("in/y:0") == 7


@pytest.mark.parametrize(
    ("train", "kind"),
    [(lambda x, y: x.assign_add(y), tf.Tensor), (lambda x, y: tf.group(x.assign_add(y)), tf.Operation)],
)
def test_the_train_op_comes_back(tmp_path, train, kind):
    write(str(tmp_path / "model"), builder._SavedModelBuilder, train_op=train)
    with tf.Graph().as_default(), tf.Session() as session:
        meta = tf.saved_model.load(session, ["tag"], str(tmp_path / "model"))
        assert isinstance(loader_impl.get_train_op(meta), kind)
        assert loader_impl.get_init_op(meta) is None
    with tf.Graph().as_default():
        assert loader_impl.get_train_op(tf.MetaGraphDef()) is None


def test_assets_in_a_list(tmp_path):
    (tmp_path / "words.txt").write_text("one")
    with tf.Graph().as_default(), tf.Session() as session:
        path = tf.constant(str(tmp_path / "words.txt"), name="words")
        used = tf.Variable("", name="used")
        session.run(used.initializer)
        result = builder._SavedModelBuilder(str(tmp_path / "model"))
        result.add_meta_graph_and_variables(
            session, ["tag"], assets_list=[path], init_op=tf.group(used.assign(path))
        )
        result.add_meta_graph(["other"])
        result.save()
    with tf.Graph().as_default(), tf.Session() as session:
        meta = tf.saved_model.load(session, ["tag"], str(tmp_path / "model"))
        assert [a.filename for a in meta.asset_file_def] == ["words.txt"]
        assert session.run("used:0") == str(tmp_path / "model/assets/words.txt").encode()


def test_reserved_keys_and_what_is_no_operation_are_refused(tmp_path, session):
    signature = tf.saved_model.build_signature_def({}, {}, "m")
    result = builder._SavedModelBuilder(str(tmp_path / "model"))
    with pytest.raises(KeyError, match="reserved"):
        result.add_meta_graph_and_variables(session, ["tag"], {constants.TRAIN_OP_SIGNATURE_KEY: signature})
    with pytest.raises(TypeError, match="must be a Tensor or an Operation"):
        result.add_meta_graph_and_variables(session, ["tag"], init_op="no")


def test_an_operation_is_described_by_its_name():
    info = utils.build_tensor_info_from_op(tf.no_op(name="nothing"))
    assert info.name == "nothing" and info.dtype == 0 and info.tensor_shape.unknown_rank


def test_elements_of_a_meta_graph_are_returned():
    with tf.Graph().as_default():
        tf.Variable(1.0, name="v")
        meta = tf.train.export_meta_graph()
    saver, (v,) = savers._import_meta_graph_with_return_elements(
        meta, import_scope="a", return_elements=["v:0"]
    )
    assert isinstance(saver, tf.train.Saver) and v.name == "a/v:0"
