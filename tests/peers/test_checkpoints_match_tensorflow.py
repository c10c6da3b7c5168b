"""Checkpoints written here are read by TensorFlow, and the other way round."""

import os
from pathlib import Path

import numpy as np
import pytest

import tensorfleet

VALUES = {
    "float": np.arange(6, dtype=np.float32).reshape(2, 3) / 7,
    "double": np.array(2.5, np.float64),
    "half": np.array([1, 2.5], np.float16),
    "int8": np.array([-3, 4], np.int8),
    "uint8": np.array([[200]], np.uint8),
    "int16": np.array([-300], np.int16),
    "uint16": np.array([60000], np.uint16),
    "int32": np.array([-70000], np.int32),
    "int64": np.array(2**40, np.int64),
    "complex64": np.array([1 + 2j], np.complex64),
    "complex128": np.array([1 - 2j], np.complex128),
    "bool": np.array([True, False]),
    "string": np.array([b"ab", b"", b"\xff" * 300], object),
    "empty": np.zeros((0, 3), np.float32),
    "scope/deeper/name": np.ones([2, 1, 2], np.float32),
}
PARTS = np.arange(400, dtype=np.float32).reshape(5, 80)


@pytest.fixture(params=["ours to theirs", "theirs to ours"])
def pair(request, tensorflow):
    """(the one that writes, the one that reads)"""
    there = (tensorfleet, tensorflow)
    return there if request.param == "ours to theirs" else there[::-1]


def variables(tf, values, resource=False, partitioner=None):
    result = {}
    for name, value in values.items():
        # An empty string constant list needs its type; the rest is clear from the array.
        initial = tf.constant(value, tf.string) if value.dtype == object else tf.constant(value)
        result[name] = tf.get_variable(name, initializer=initial, use_resource=resource)
    result["bfloat16"] = tf.get_variable(
        "bfloat16", initializer=tf.constant([1.5, -2.0], tf.bfloat16), use_resource=resource
    )
    if partitioner is not None:
        result["parts"] = tf.get_variable(
            "parts",
            [5, 80],
            initializer=tf.zeros_initializer(),
            partitioner=partitioner(tf),
            use_resource=resource,
        )
    return result


def save(tf, path, resource=False, partitioner=None, **options):
    with tf.Graph().as_default(), tf.Session() as session:
        result = variables(tf, VALUES, resource, partitioner)
        session.run(tf.global_variables_initializer())
        if partitioner is not None:
            session.run(result["parts"].assign(PARTS))
        return tf.train.Saver(**options).save(session, path, global_step=3)


def check_restored(tf, path, resource=False, partitioner=None, **options):
    with tf.Graph().as_default(), tf.Session() as session:
        blank = {k: np.full(v.shape, b"", object) if v.dtype == object else v * 0 for k, v in VALUES.items()}
        blank["bool"] = np.array([False, False])
        result = variables(tf, blank, resource, partitioner)
        tf.train.Saver(**options).restore(session, path)
        for name, value in VALUES.items():
            got = session.run(result[name])
            np.testing.assert_array_equal(got, value, err_msg=name)
        assert session.run(result["bfloat16"]).astype(np.float32).tolist() == [1.5, -2.0]
        if partitioner is not None:
            np.testing.assert_array_equal(session.run(result["parts"].as_tensor()), PARTS)


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
def test_a_saver_reads_what_the_other_wrote(pair, tmp_path, resource):
    path = save(pair[0], str(tmp_path / "model"), resource)
    check_restored(pair[1], path, not resource)


def rows(count):
    return lambda tf: tf.fixed_size_partitioner(count)


@pytest.mark.parametrize(
    ("written", "read"),
    [(rows(2), rows(2)), (rows(3), rows(2)), (lambda tf: tf.fixed_size_partitioner(3, axis=1), rows(2))],
    ids=["same", "other_rows", "columns_to_rows"],
)
@pytest.mark.parametrize("sharded", [False, True], ids=["one", "sharded"])
def test_partitioned_variables_travel_however_they_are_cut(pair, tmp_path, written, read, sharded):
    path = save(pair[0], str(tmp_path / "model"), partitioner=written, sharded=sharded)
    check_restored(pair[1], path, partitioner=read)


def test_readers_see_the_same(tensorflow, tmp_path):
    paths = [save(tf, str(tmp_path / tf.__name__), partitioner=rows(2)) for tf in (tensorfleet, tensorflow)]
    for path in paths:
        ours, theirs = (tf.train.NewCheckpointReader(path) for tf in (tensorfleet, tensorflow))
        assert ours.get_variable_to_shape_map() == theirs.get_variable_to_shape_map()
        kinds = [r.get_variable_to_dtype_map() for r in (ours, theirs)]
        assert {k: v.name for k, v in kinds[0].items()} == {k: v.name for k, v in kinds[1].items()}
        assert ours.debug_string() == theirs.debug_string()
        for name in theirs.get_variable_to_shape_map():
            assert ours.has_tensor(name)
            np.testing.assert_array_equal(ours.get_tensor(name), theirs.get_tensor(name))


def test_the_files_are_the_same_byte_for_byte(tensorflow, tmp_path):
    paths = [save(tf, str(tmp_path / tf.__name__), partitioner=rows(2)) for tf in (tensorfleet, tensorflow)]
    for suffix in (".index", ".data-00000-of-00001"):
        ours, theirs = (Path(path + suffix).read_bytes() for path in paths)
        assert ours == theirs


def test_many_variables_take_several_blocks(pair, tmp_path):
    names = [f"layer_{i}/{'long' * 20}/kernel" for i in range(3000)]
    with pair[0].Graph().as_default(), pair[0].Session() as session:
        op = pair[0].raw_ops.SaveV2 if hasattr(pair[0], "raw_ops") else None
        if op is None:
            from tensorfleet.graph.apply import apply_op

            result = apply_op(
                "SaveV2", str(tmp_path / "m"), names, [""] * 3000, [pair[0].constant(1.0)] * 3000
            )
        else:
            result = op(
                prefix=str(tmp_path / "m"),
                tensor_names=names,
                shape_and_slices=[""] * 3000,
                tensors=[pair[0].constant(1.0)] * 3000,
            )
        session.run(result)
    assert os.path.getsize(tmp_path / "m.index") > 0
    reader = pair[1].train.NewCheckpointReader(str(tmp_path / "m"))
    assert sorted(reader.get_variable_to_shape_map()) == sorted(names)
    assert reader.get_tensor(names[1234]) == 1


def test_a_meta_graph_brings_its_saver(pair, tmp_path):
    writer, reader = pair
    with writer.Graph().as_default(), writer.Session() as session:
        v = writer.get_variable("v", initializer=writer.constant([1.0, 2.0]))
        writer.add_to_collection("result", writer.multiply(v, 2.0, name="twice"))
        session.run(v.initializer)
        path = writer.train.Saver().save(session, str(tmp_path / "model"))
    with reader.Graph().as_default(), reader.Session() as session:
        saver = reader.train.import_meta_graph(path + ".meta")
        saver.restore(session, path)
        (result,) = reader.get_collection("result")
        assert session.run(result).tolist() == [2, 4]
    with reader.Graph().as_default(), reader.Session() as session:
        saver = reader.train.import_meta_graph(path + ".meta", import_scope="inner")
        saver.restore(session, path)
        assert session.run("inner/twice:0").tolist() == [2, 4]


def test_the_state_file_is_the_same(tensorflow, tmp_path):
    texts = []
    for tf in (tensorfleet, tensorflow):
        with tf.Graph().as_default(), tf.Session() as session:
            v = tf.get_variable("v", initializer=tf.constant([1.0, 2.0]))
            session.run(v.initializer)
            for options in ({"max_to_keep": 2}, {"max_to_keep": 0}, {"save_relative_paths": True}):
                saver = tf.train.Saver(**options)
                for step in range(4):
                    saver.save(session, str(tmp_path / "model"), global_step=step)
                texts.append(((tmp_path / "checkpoint").read_text(), sorted(os.listdir(tmp_path))))
            for name in os.listdir(tmp_path):
                os.remove(tmp_path / name)
    assert texts[:3] == texts[3:]


def build_plain(tf):
    tf.get_variable("x", [2, 3], use_resource=False)
    tf.get_variable("y", [4], use_resource=True)
    zeros = tf.zeros_initializer()
    cut = tf.fixed_size_partitioner(2)
    tf.get_variable("z", [4, 2], initializer=zeros, partitioner=cut, use_resource=False)
    return tf.train.Saver()


def build_sharded(tf):
    with tf.device("/job:ps/task:0/cpu:0"):
        tf.get_variable("x", [2, 3], use_resource=False)
        tf.get_variable("z", [2, 3], use_resource=True)
    with tf.device("/job:ps/task:1"):
        tf.get_variable("y", [4], use_resource=False)
    tf.train.Saver()
    return tf.train.Saver(sharded=True)


def build_reshaping(tf):
    x = tf.get_variable("x", [2, 3], use_resource=False)
    y = tf.get_variable("y", [4], use_resource=True)
    return tf.train.Saver({"b": x, "a": y}, reshape=True, name="mine")


@pytest.mark.parametrize("make", [build_plain, build_sharded, build_reshaping])
def test_the_operations_have_the_same_names(tensorflow, make):
    results = []
    for tf in (tensorfleet, tensorflow):
        with tf.Graph().as_default() as graph:
            saver_def = make(tf).as_saver_def()
        ops = [o for o in graph.get_operations() if o.name.startswith(("save", "mine"))]
        results.append(
            (
                [
                    (
                        o.name,
                        o.type,
                        o.device,
                        [i.name for i in o.inputs],
                        sorted(c.name for c in o.control_inputs),
                    )
                    for o in ops
                ],
                saver_def.SerializeToString(),
            )
        )
    for mine, peer in zip(results[0][0], results[1][0], strict=True):
        assert mine == peer
    assert results[0][1] == results[1][1]


def test_the_older_format_is_read_whatever_it_holds(tensorflow, tmp_path):
    tf = tensorflow
    path = str(tmp_path / "old")
    values = {name: value for name, value in VALUES.items() if name not in ("empty", "complex128")}
    with tf.Graph().as_default(), tf.Session() as sess:
        for name, value in values.items():
            tf.get_variable(name, initializer=tf.constant(value))
        sess.run(tf.global_variables_initializer())
        tf.train.Saver(write_version=tf.train.SaverDef.V1).save(sess, path, write_meta_graph=False)
        theirs = tf.train.load_checkpoint(path)
        kinds = theirs.get_variable_to_dtype_map()
    ours = tensorfleet.train.load_checkpoint(path)
    assert ours.get_variable_to_shape_map() == theirs.get_variable_to_shape_map()
    assert {name: kind.name for name, kind in ours.get_variable_to_dtype_map().items()} == {
        name: kind.name for name, kind in kinds.items()
    }
    for name, value in values.items():
        np.testing.assert_array_equal(ours.get_tensor(name), value)


def test_a_checkpoint_saved_over_another_is_read(pair, tmp_path):
    writer, reader = pair
    path = str(tmp_path / "model")
    with writer.Graph().as_default(), writer.Session() as sess:
        v = writer.get_variable("v", [3], initializer=writer.zeros_initializer())
        saver = writer.train.Saver()
        for n in range(3):
            sess.run(v.assign([n, n, n]))
            saver.save(sess, path)
            assert reader.train.load_variable(path, "v").tolist() == [n, n, n]


def test_tensorflow_reads_the_full_checkpoints_of_an_incremental_saver(tensorflow, tmp_path):
    with tensorfleet.Graph().as_default(), tensorfleet.Session() as session:
        v = tensorfleet.get_variable("v", initializer=np.zeros((5000, 4), np.float32))
        more = v.assign_add(tensorfleet.ones([5000, 4])).op
        saver = tensorfleet.train.Saver(incremental=2)
        session.run(v.initializer)
        for n in range(3):
            session.run(more)
            saver.save(session, str(tmp_path / "model"), n)
    for n in (0, 2):
        with tensorflow.Graph().as_default(), tensorflow.Session() as session:
            saver = tensorflow.train.import_meta_graph(str(tmp_path / f"model-{n}.meta"))
            saver.restore(session, str(tmp_path / f"model-{n}"))
            np.testing.assert_array_equal(session.run("v:0"), np.full((5000, 4), n + 1, np.float32))
    assert tensorflow.train.list_variables(str(tmp_path / "model-2")) == [("v", [5000, 4])]
