"""SavedModels are written and read back with signatures, assets and main operations."""

import os
from pathlib import Path

import numpy as np
import pytest

import tensorfleet as tf

SERVE = [tf.saved_model.tag_constants.SERVING]


def model() -> tuple:
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    w = tf.Variable([[1.0], [2.0]], name="w")
    return x, tf.matmul(x, w, name="y")


def save(path: str, **kwargs) -> None:
    x, y = model()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        builder = tf.saved_model.builder.SavedModelBuilder(path)
        signature = tf.saved_model.signature_def_utils.predict_signature_def({"in": x}, {"out": y})
        builder.add_meta_graph_and_variables(sess, SERVE, {"serving_default": signature}, **kwargs)
        builder.save()


def test_a_model_is_used_through_its_signature(tmp_path):
    save(str(tmp_path / "m"))
    with tf.Graph().as_default() as g, tf.Session(graph=g) as sess:
        meta = tf.saved_model.loader.load(sess, SERVE, str(tmp_path / "m"))
        signature = meta.signature_def["serving_default"]
        out = sess.run(signature.outputs["out"].name, {signature.inputs["in"].name: [[1.0, 1.0]]})
        np.testing.assert_array_equal(out, [[3.0]])


def test_a_model_is_loaded_into_a_scope(tmp_path):
    save(str(tmp_path / "m"), main_op=tf.group(name="start"))
    with tf.Graph().as_default() as g, tf.Session(graph=g) as sess:
        meta = tf.saved_model.load(sess, SERVE, str(tmp_path / "m"), import_scope="served")
        info = meta.signature_def["serving_default"].outputs["out"]
        out = tf.saved_model.get_tensor_from_tensor_info(info, import_scope="served")
        assert out.name == "served/y:0"
        np.testing.assert_array_equal(sess.run(out, {"served/x:0": [[2.0, 0.0]]}), [[2.0]])


def test_text_is_read_as_well(tmp_path):
    x, y = model()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        builder = tf.saved_model.Builder(str(tmp_path / "m"))
        builder.add_meta_graph_and_variables(sess, SERVE)
        assert builder.save(as_text=True).endswith(b"saved_model.pbtxt")
    with tf.Graph().as_default() as g, tf.Session(graph=g) as sess:
        tf.saved_model.load(sess, SERVE, str(tmp_path / "m"))
        np.testing.assert_array_equal(sess.run("w:0"), [[1.0], [2.0]])


def test_the_main_op_runs_with_the_paths_of_the_copied_assets(tmp_path):
    vocabulary = tmp_path / "words.txt"
    vocabulary.write_text("a\nb\n")
    path = tf.constant(str(vocabulary), name="path")
    tf.add_to_collection(tf.GraphKeys.ASSET_FILEPATHS, path)
    seen = tf.Variable("", name="seen")
    assets = tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS)
    save(str(tmp_path / "m"), assets_collection=assets, main_op=tf.assign(seen, path).op)
    vocabulary.unlink()
    with tf.Graph().as_default() as g, tf.Session(graph=g) as sess:
        tf.saved_model.load(sess, SERVE, str(tmp_path / "m"))
        copied = sess.run("seen:0").decode()
    assert copied == str(tmp_path / "m" / "assets" / "words.txt")
    assert Path(copied).read_text() == "a\nb\n"


def test_assets_of_the_same_name_but_other_content_are_both_kept(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "f.txt").write_text(folder)
    paths = [tf.constant(str(tmp_path / folder / "f.txt")) for folder in ("one", "two", "one")]
    save(str(tmp_path / "m"), assets_collection=paths)
    assert sorted(os.listdir(tmp_path / "m" / "assets")) == ["f.txt", "f.txt_1"]


def test_several_graphs_share_the_variables(tmp_path):
    path = str(tmp_path / "m")
    model()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        builder = tf.saved_model.Builder(path)
        with pytest.raises(AssertionError, match="has not been saved yet"):
            builder.add_meta_graph(["train"])
        builder.add_meta_graph_and_variables(sess, ["train", "gpu"])
        with pytest.raises(AssertionError, match="already been saved"):
            builder.add_meta_graph_and_variables(sess, SERVE)
        builder.add_meta_graph(SERVE)
        builder.save()
    with tf.Graph().as_default() as g, tf.Session(graph=g) as sess:
        with pytest.raises(
            RuntimeError, match="tags 'train' could not be found in SavedModel, with available"
        ):
            tf.saved_model.load(sess, ["train"], path)
        tf.saved_model.load(sess, ["gpu", "train"], path)


def test_simple_save_makes_a_model_for_serving(tmp_path):
    x, y = model()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(sess, str(tmp_path / "m"), {"x": x}, {"y": y})
    assert tf.saved_model.maybe_saved_model_directory(str(tmp_path / "m"))
    with tf.Graph().as_default() as g, tf.Session(graph=g) as sess:
        meta = tf.saved_model.load(sess, SERVE, str(tmp_path / "m"))
        assert meta.signature_def["serving_default"].method_name == "tensorflow/serving/predict"


def test_a_model_without_variables(tmp_path):
    tf.constant(2.0, name="two")
    with tf.Session() as sess:
        builder = tf.saved_model.Builder(str(tmp_path / "m"))
        builder.add_meta_graph_and_variables(sess, SERVE)
        builder.save()
    with tf.Graph().as_default() as g, tf.Session(graph=g) as sess:
        tf.saved_model.load(sess, SERVE, str(tmp_path / "m"))
        assert sess.run("two:0") == 2.0


def test_refusals_say_what_is_wrong(tmp_path, session):
    x, y = model()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    with pytest.raises(AssertionError, match="already exists, and isn't empty"):
        tf.saved_model.Builder(str(tmp_path / "full"))
    with pytest.raises(OSError, match="SavedModel file does not exist at"):
        tf.saved_model.load(session, SERVE, str(tmp_path / "none"))
    (tmp_path / "full" / "saved_model.pb").write_text("no model")
    with pytest.raises(OSError, match="Cannot parse file"):
        tf.saved_model.load(session, SERVE, str(tmp_path / "full"))
    builder = tf.saved_model.Builder(str(tmp_path / "m"))
    empty = tf.saved_model.build_signature_def({"x": type(tf.saved_model.build_tensor_info(x))()}, {}, "m")
    with pytest.raises(AssertionError, match="must have one of the 'encoding' fields"):
        builder.add_meta_graph_and_variables(session, SERVE, {"s": empty})
    with pytest.raises(TypeError, match="main_op needs to be an Operation"):
        builder.add_meta_graph_and_variables(session, SERVE, main_op=y)
    tf.add_to_collection("saved_model_main_op", y.op)
    with pytest.raises(ValueError, match="already contains one or more main ops"):
        builder.add_meta_graph_and_variables(session, SERVE, main_op=y.op)


@pytest.mark.parametrize("kind", ["classify", "regress", "predict"])
def test_signatures_that_servers_know_are_valid(kind):
    utils = tf.saved_model.signature_def_utils
    examples = tf.placeholder(tf.string, [None])
    scores = tf.placeholder(tf.float32, [None])
    predictions = {
        "classify": lambda: utils.classification_signature_def(examples, examples, scores),
        "regress": lambda: utils.regression_signature_def(examples, scores),
        "predict": lambda: utils.predict_signature_def({"x": scores}, {"y": scores}),
    }[kind]()
    assert predictions.method_name == f"tensorflow/serving/{kind}"
    assert utils.is_valid_signature(predictions)
    predictions.inputs["another"].CopyFrom(tf.saved_model.build_tensor_info(scores))
    assert utils.is_valid_signature(predictions) == (kind == "predict")


def test_a_sparse_tensor_is_found_again():
    sparse = tf.SparseTensor([[0, 1]], [2.0], [1, 2])
    result = tf.saved_model.get_tensor_from_tensor_info(tf.saved_model.build_tensor_info(sparse))
    assert result.values is sparse.values
    assert result.indices is sparse.indices
