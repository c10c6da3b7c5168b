"""`tf.train.Saver` and the files around checkpoints."""

import os

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.api.train import checkpoint_state
from tests.support.sessions import initialized


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "model.ckpt")


def numbers(name="v", values=(1.0, 2.0), **options):
    return tf.get_variable(name, initializer=tf.constant(values), **options)


@pytest.mark.parametrize("resource", [False, True])
def test_restore_gives_back_what_was_saved(path, resource):
    v = numbers(use_resource=resource)
    saver = tf.train.Saver()
    with initialized() as session:
        assert saver.save(session, path) == path
        session.run(v.assign([7.0, 8.0]))
        saver.restore(session, path)
        assert session.run(v).tolist() == [1, 2]
    with tf.Session() as fresh:
        saver.restore(fresh, path)
        assert fresh.run(v).tolist() == [1, 2]


def test_saving_sees_updates_by_rows(path):
    v = numbers(values=[[1.0], [2.0], [3.0]])
    update = tf.scatter_update(v, [1], [[9.0]])
    saver = tf.train.Saver()
    with initialized() as session:
        session.run(update)
        saver.save(session, path)
        session.run(update)
    assert tf.train.load_variable(path, "v").tolist() == [[1], [9], [3]]


def test_names_in_the_checkpoint_can_be_chosen(path):
    a, b = numbers("a", [1.0]), numbers("b", [2.0])
    with initialized() as session:
        tf.train.Saver({"x": a, "y": b}).save(session, path)
        tf.train.Saver({"y": a}).restore(session, path)
        assert session.run([a, b]) == [[2.0], [2.0]]
    assert tf.train.list_variables(path) == [("x", [1]), ("y", [1])]


def test_parts_of_a_variable_are_saved_as_one(path):
    cut = tf.fixed_size_partitioner(3)
    v = tf.get_variable("v", [7, 2], initializer=tf.zeros_initializer(), partitioner=cut)
    whole = np.arange(14, dtype=np.float32).reshape(7, 2)
    with initialized() as session:
        session.run(v.assign(whole))
        tf.train.Saver().save(session, path)
    assert tf.train.list_variables(path) == [("v", [7, 2])]
    np.testing.assert_array_equal(tf.train.load_variable(path, "v"), whole)
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", [7, 2])
        tf.train.Saver().restore(session, path)
        np.testing.assert_array_equal(session.run(v), whole)


def test_parts_are_restored_from_a_whole(path):
    whole = np.arange(14, dtype=np.float32).reshape(7, 2)
    numbers("v", whole)
    with initialized() as session:
        tf.train.Saver().save(session, path)
    with tf.Graph().as_default(), tf.Session() as session:
        cut = tf.fixed_size_partitioner(2, axis=1)
        v = tf.get_variable("v", [7, 2], initializer=tf.zeros_initializer(), partitioner=cut)
        tf.train.Saver([v]).restore(session, path)
        np.testing.assert_array_equal(session.run(v.as_tensor()), whole)


def test_sharded_saving_leaves_one_checkpoint(path, tmp_path):
    a = numbers("a")
    numbers("b", use_resource=True)
    saver = tf.train.Saver(sharded=True)
    with initialized() as session:
        for step in range(2):
            assert saver.save(session, path, global_step=step) == f"{path}-{step}"
        session.run(a.assign([0.0, 0.0]))
        saver.restore(session, f"{path}-1")
        assert session.run(a).tolist() == [1, 2]
    assert not [name for name in os.listdir(tmp_path) if "temp" in name]


def test_reshape_takes_values_of_another_shape(path):
    numbers("v", [[1.0, 2.0], [3.0, 4.0]])
    with initialized() as session:
        tf.train.Saver().save(session, path)
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", [4])
        tf.train.Saver(reshape=True).restore(session, path)
        assert session.run(v).tolist() == [1, 2, 3, 4]


def test_old_checkpoints_are_deleted(path, tmp_path):
    numbers()
    step = tf.train.create_global_step()
    saver = tf.train.Saver(max_to_keep=2)
    with initialized() as session:
        for _ in range(4):
            saver.save(session, path, global_step=step)
            session.run(step.assign_add(1))
    assert saver.last_checkpoints == [f"{path}-2", f"{path}-3"]
    assert {name.split(".")[1] for name in os.listdir(tmp_path) if "." in name} == {"ckpt-2", "ckpt-3"}
    state = tf.train.get_checkpoint_state(str(tmp_path))
    assert list(state.all_model_checkpoint_paths) == saver.last_checkpoints
    assert tf.train.latest_checkpoint(str(tmp_path)) == f"{path}-3"


def test_all_are_kept_when_asked(path, tmp_path):
    numbers()
    saver = tf.train.Saver(max_to_keep=None)
    with initialized() as session:
        for step in range(7):
            saver.save(session, path, global_step=step, write_meta_graph=False)
    assert len([n for n in os.listdir(tmp_path) if n.endswith(".index")]) == 7
    assert saver.last_checkpoints == []


def test_one_is_kept_for_every_few_hours(path, tmp_path, monkeypatch):
    numbers()
    now = [1000.0]
    monkeypatch.setattr("tensorfleet.api.train.saver.time.time", lambda: now[0])
    saver = tf.train.Saver(max_to_keep=1, keep_checkpoint_every_n_hours=1)
    with initialized() as session:
        for step in range(5):
            now[0] += 1801
            saver.save(session, path, global_step=step, write_meta_graph=False)
    kept = sorted(n for n in os.listdir(tmp_path) if n.endswith(".index"))
    assert kept == ["model.ckpt-1.index", "model.ckpt-3.index", "model.ckpt-4.index"]


def test_a_saver_takes_over_after_a_restart(path):
    numbers()
    with initialized() as session:
        first = tf.train.Saver(max_to_keep=2)
        for step in range(2):
            first.save(session, path, global_step=step)
        second = tf.train.Saver(max_to_keep=2)
        second.recover_last_checkpoints([f"{path}-gone", *first.last_checkpoints])
        second.save(session, path, global_step=2)
    assert second.last_checkpoints == [f"{path}-1", f"{path}-2"]
    assert not tf.train.checkpoint_exists(f"{path}-0")


def test_relative_paths_survive_a_move(tmp_path):
    numbers()
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    with initialized() as session:
        tf.train.Saver(save_relative_paths=True, pad_step_number=True).save(session, str(old / "m"), 5)
    os.rename(old, new)
    assert tf.train.latest_checkpoint(str(new)) == str(new / "m-00000005")


def test_relative_save_path_in_the_current_directory(tmp_path, monkeypatch):
    numbers()
    monkeypatch.chdir(tmp_path)
    with initialized() as session:
        assert tf.train.Saver().save(session, "model") == "model"
        assert tf.train.Saver().save(session, "./sub/model") == "./sub/model"
    assert tf.train.latest_checkpoint(".") == "./model"
    assert tf.train.latest_checkpoint("sub") == "sub/model"


def test_state_file_that_cannot_be_read_is_no_state(tmp_path):
    assert tf.train.latest_checkpoint(str(tmp_path)) is None
    (tmp_path / "checkpoint").write_text("junk")
    assert tf.train.get_checkpoint_state(str(tmp_path)) is None
    tf.train.update_checkpoint_state(str(tmp_path), str(tmp_path / "gone"))
    assert tf.train.latest_checkpoint(str(tmp_path)) is None


def test_state_proto_adds_the_latest():
    state = tf.train.generate_checkpoint_state_proto("/d", "/d/b", ["/d/a"])
    assert list(state.all_model_checkpoint_paths) == ["/d/a", "/d/b"]
    with pytest.raises(ValueError, match="must match checkpoint paths"):
        tf.train.generate_checkpoint_state_proto("/d", "/d/b", ["/d/a"], [1.0])


def test_removing_a_checkpoint_removes_all_its_files(path, tmp_path):
    numbers()
    with initialized() as session:
        tf.train.Saver().save(session, path, write_state=False)
    assert tf.train.checkpoint_exists(path)
    assert len(tf.train.get_checkpoint_mtimes([path, path + "x"])) == 1
    tf.train.remove_checkpoint(path)
    assert os.listdir(tmp_path) == []


def test_meta_graph_brings_variables_and_saver(path):
    v = numbers()
    tf.add_to_collection("out", v * 2.0)
    saver = tf.train.Saver()
    tf.add_to_collection(tf.GraphKeys.SAVERS, saver)
    with initialized() as session:
        saver.save(session, path)
    with tf.Graph().as_default(), tf.Session() as session:
        imported = tf.train.import_meta_graph(path + ".meta")
        imported.restore(session, path)
        assert session.run(tf.get_collection("out")[0]).tolist() == [2, 4]
        assert isinstance(tf.get_collection(tf.GraphKeys.SAVERS)[0], tf.train.Saver)
        assert imported.save(session, path + "2") == path + "2"


def test_meta_graph_without_variables_brings_no_saver(path):
    tf.constant(1.0, name="one")
    tf.train.export_meta_graph(path + ".meta")
    with tf.Graph().as_default():
        assert tf.train.import_meta_graph(path + ".meta") is None


def test_meta_graph_without_saver_gets_one(path):
    numbers()
    meta = tf.train.export_meta_graph()
    with tf.Graph().as_default(), tf.Session() as session:
        saver = tf.train.import_meta_graph(meta)
        session.run(tf.global_variables_initializer())
        assert saver.save(session, path) == path


def test_savers_travel_as_messages(path):
    numbers()
    with tf.name_scope("outer"):
        saver = tf.train.Saver()
    proto = saver.to_proto("outer")
    assert proto.filename_tensor_name == "save/Const:0"
    assert saver.to_proto("elsewhere") is None
    again = tf.train.Saver.from_proto(proto, "outer")
    assert again.as_saver_def() == saver.as_saver_def()


def test_deferred_building(path):
    saver = tf.train.Saver(defer_build=True)
    numbers()
    with initialized() as session:
        with pytest.raises(RuntimeError, match="`build\\(\\)` should be called before save"):
            saver.save(session, path)
        saver.build()
        saver.save(session, path)


def test_an_empty_saver_does_nothing(path, session):
    saver = tf.train.Saver(allow_empty=True)
    tf.no_op()
    assert saver.save(session, path) is None
    saver.restore(session, path)


def test_errors_of_building():
    v = numbers()
    for empty in ([], {}):
        with pytest.raises(ValueError, match="No variables to save"):
            tf.train.Saver(empty)
    with pytest.raises(TypeError, match="is not a Variable"):
        tf.train.Saver([v.read_value()])
    with pytest.raises(ValueError, match="At least two variables have the same name: v"):
        tf.train.Saver([v, v])
    with pytest.raises(ValueError, match="restored with two names: b"):
        tf.train.Saver({"a": v, "b": v})
    with pytest.raises(TypeError, match="passed in a dict or a list"):
        tf.train.Saver(3)
    with pytest.raises(ValueError, match="build cannot be deferred"):
        tf.train.Saver([v], defer_build=True)


def test_errors_of_saving(path, tmp_path):
    v = numbers()
    saver = tf.train.Saver()
    with tf.Session() as session:
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value v"):
            saver.save(session, path)
        assert os.listdir(tmp_path) == []
        session.run(v.initializer)
        with pytest.raises(ValueError, match="Parent directory of .* doesn't exist, can't save."):
            saver.save(session, str(tmp_path / "no" / "such" / "place"))
        with pytest.raises(ValueError, match="'latest_filename' collides with 'save_path'"):
            saver.save(session, str(tmp_path / "checkpoint"))
        with pytest.raises(ValueError, match="must not contain path components"):
            saver.save(session, path, latest_filename="a/b")
    with pytest.raises(TypeError, match="'sess' must be a Session"):
        saver.save(None, path)


def test_errors_of_restoring(path):
    v = numbers()
    saver = tf.train.Saver()
    with initialized() as session:
        saver.save(session, path)
        with pytest.raises(ValueError, match="when it is None"):
            saver.restore(session, None)
        with pytest.raises(ValueError, match="not a valid checkpoint"):
            saver.restore(session, path + "x")
        with pytest.raises(tf.errors.NotFoundError, match="Key w not found in checkpoint"):
            tf.train.Saver({"w": v}).restore(session, path)
        other = numbers("other", [1.0, 2.0, 3.0])
        with pytest.raises(tf.errors.InvalidArgumentError, match="Assign requires shapes of both tensors"):
            tf.train.Saver({"v": other}).restore(session, path)
        whole = numbers("whole", [1, 2])
        with pytest.raises(tf.errors.InvalidArgumentError, match="expected dtype int32 does not equal"):
            tf.train.Saver({"v": whole}).restore(session, path)


def test_a_missing_checkpoint_fails_the_operation_itself(path, session):
    v = numbers()
    saver = tf.train.Saver()
    feed = {saver.saver_def.filename_tensor_name: path}
    with pytest.raises(tf.errors.NotFoundError, match="Failed to find any matching files for"):
        session.run(saver.saver_def.restore_op_name, feed)
    assert v.op.name == "v"


def test_reader_of_a_checkpoint(path, tmp_path):
    numbers("a", [1.0])
    numbers("b", 5)
    with initialized() as session:
        tf.train.Saver().save(session, path)
    reader = tf.train.NewCheckpointReader(path)
    assert reader.has_tensor("a")
    assert not reader.has_tensor("c")
    assert reader.get_tensor("b") == 5
    assert reader.get_variable_to_shape_map() == {"a": [1], "b": []}
    assert reader.get_variable_to_dtype_map() == {"a": tf.float32, "b": tf.int32}
    assert reader.debug_string() == b"a (DT_FLOAT) [1]\nb (DT_INT32) []\n"
    assert tf.train.load_checkpoint(str(tmp_path)).has_tensor("a")
    assert tf.train.load_variable(str(tmp_path), "a:0").tolist() == [1]
    with pytest.raises(ValueError, match="Couldn't find 'checkpoint' file"):
        os.mkdir(tmp_path / "empty")
        tf.train.load_checkpoint(str(tmp_path / "empty"))


def test_meta_graph_names_forget_the_shard():
    assert checkpoint_state.meta_graph_filename("m-?????-of-00003") == "m.meta"
    assert checkpoint_state.meta_graph_filename("m-3", "graph") == "m-3.graph"


def test_moving_averages_are_restored_in_place_of_variables(path):
    v = numbers()
    average = tf.train.ExponentialMovingAverage(0.5)
    update = average.apply([v])
    with initialized() as session:
        session.run(v.assign([5.0, 6.0]))
        session.run(update)
        tf.train.Saver().save(session, path)
        tf.train.Saver(average.variables_to_restore()).restore(session, path)
        assert session.run(v).tolist() == [3, 4]


def test_graph_may_be_finalized_before_saving(path, graph):
    v = numbers()
    saver = tf.train.Saver()
    with initialized() as session:
        graph.finalize()
        saver.save(session, path)
        v.load([0.0, 0.0], session)
        saver.restore(session, path)
        assert session.run(v).tolist() == [1, 2]


def test_meta_graphs_are_imported_side_by_side(path):
    v = numbers()
    tf.add_to_collection("out", v * 2.0)
    with initialized() as session:
        tf.train.Saver().save(session, path)
    with tf.Graph().as_default(), tf.Session() as session:
        savers = [tf.train.import_meta_graph(path + ".meta", import_scope="in") for _ in range(2)]
        with tf.name_scope("x"):
            savers.append(tf.train.import_meta_graph(path + ".meta"))
            savers.append(tf.train.import_meta_graph(path + ".meta", import_scope="y"))
        for saver in savers:
            saver.restore(session, path)
        assert [v.name for v in tf.global_variables()] == ["in/v:0", "in_1/v:0", "x/v:0", "x/y/v:0"]
        assert [r.tolist() for r in session.run(tf.get_collection("out"))] == [[2, 4]] * 4


def test_other_savers_can_be_left_out_of_a_meta_graph():
    savers = [tf.train.Saver([tf.Variable(1.0, name=n)], name=f"saver_{n}") for n in ("a", "b")]
    for saver in savers:
        tf.add_to_collection(tf.GraphKeys.SAVERS, saver)
    whole = savers[1].export_meta_graph()
    meta = savers[1].export_meta_graph(clear_extraneous_savers=True)
    assert len(whole.collection_def["savers"].bytes_list.value) == 2
    assert len(meta.collection_def["savers"].bytes_list.value) == 1
    names = {n.name.split("/")[0] for n in whole.graph_def.node}
    assert names - {n.name.split("/")[0] for n in meta.graph_def.node} == {"saver_a"}


def test_a_part_of_a_variable_is_saved_from_the_cpu_of_its_task():
    with tf.device("/job:ps/device:GPU:0"):
        whole = tf.get_variable("v", [4, 2], partitioner=tf.fixed_size_partitioner(2), use_resource=True)
    tf.train.Saver({"v": whole})
    save = tf.get_default_graph().get_operation_by_name("save/SaveV2")
    assert [t.device for t in save.inputs[3:]] == ["/job:ps/device:CPU:0"] * 2


def test_collections_without_a_written_form_are_left_out():
    saver = tf.train.Saver([tf.Variable(1.0)])
    meta = tf.MetaGraphDef()
    for key, items in ((saver, [3]), ("mixed", [3, 3.5])):
        for item in items:
            tf.add_to_collection(key, item)
        saver._add_collection_def(meta, key)
    assert not meta.collection_def


def test_a_restored_variable_is_the_programs_own(path, session):
    v = tf.get_variable("v", [4], initializer=tf.ones_initializer())
    w = tf.get_variable("w", [4], initializer=tf.zeros_initializer())
    session.run(tf.global_variables_initializer())
    saver = tf.train.Saver([v])
    where = saver.save(session, path)
    both = tf.train.Saver({"v": w})
    saver.restore(session, where)
    both.restore(session, where)
    seen = session.run(v)
    seen[:] = 9
    session.run([v.assign_add(tf.ones([4])), tf.scatter_update(w, [1], [7.0])])
    assert session.run(v).tolist() == [2.0] * 4
    assert session.run(w).tolist() == [1.0, 7.0, 1.0, 1.0]
    assert tf.train.load_variable(where, "v").flags.writeable


def test_of_tables_with_one_name_the_last_is_saved(session, path):
    first, last = (tf.contrib.lookup.MutableHashTable(tf.string, tf.int64, -1) for _ in range(2))
    session.run([first.insert("a", 1), last.insert("a", 2)])
    saver = tf.train.Saver(tf.get_collection(tf.GraphKeys.SAVEABLE_OBJECTS))
    saver.save(session, path)
    session.run([first.insert("a", 3), last.insert("a", 4)])
    saver.restore(session, path)
    assert session.run([first.lookup("a"), last.lookup("a")]) == [3, 2]
