"""Graphs are frozen: variables become constants of what a checkpoint holds."""

import numpy as np
import pytest

import tensorfleet as tf

freeze = tf.python.tools.freeze_graph


@pytest.fixture
def saved(tmp_path):
    """A trained model as text graph, checkpoint with MetaGraph, and SavedModel."""
    with tf.Graph().as_default() as g, tf.Session() as sess:
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        w = tf.get_variable("w", [2, 1], initializer=tf.constant_initializer([1.0, 2.0]))
        b = tf.get_variable("b", [1], initializer=tf.constant_initializer(0.5), use_resource=True)
        y = tf.identity(tf.matmul(x, w) + b, name="y")
        tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(y))
        sess.run(tf.global_variables_initializer())
        tf.train.write_graph(g, str(tmp_path), "graph.pbtxt")
        tf.train.Saver().save(sess, str(tmp_path / "ckpt"))
        tf.saved_model.simple_save(sess, str(tmp_path / "model"), {"x": x}, {"y": y})
    return tmp_path


def check(path) -> None:
    graph_def = tf.GraphDef.FromString(path.read_bytes())
    assert not {"VariableV2", "VarHandleOp", "ReadVariableOp"} & {n.op for n in graph_def.node}
    with tf.Graph().as_default(), tf.Session() as sess:
        (y,) = tf.import_graph_def(graph_def, return_elements=["y:0"], name="")
        np.testing.assert_allclose(sess.run(y, {"x:0": [[1.0, 1.0]]}), [[3.5]])


@pytest.mark.parametrize("source", ["graph", "meta", "model"])
def test_a_frozen_graph_needs_no_checkpoint(saved, source):
    inputs = {
        "graph": {"input_graph": str(saved / "graph.pbtxt"), "input_checkpoint": str(saved / "ckpt")},
        "meta": {"input_meta_graph": str(saved / "ckpt.meta"), "input_checkpoint": str(saved / "ckpt")},
        "model": {"input_saved_model_dir": str(saved / "model")},
    }[source]
    out = saved / "frozen.pb"
    freeze.freeze_graph(
        **{
            "input_graph": None,
            "input_saver": None,
            "input_binary": False,
            "input_checkpoint": None,
            "output_node_names": "y",
            "restore_op_name": None,
            "filename_tensor_name": None,
            "output_graph": str(out),
            "clear_devices": True,
            "initializer_nodes": "",
            **inputs,
        }
    )
    check(out)


def test_what_is_missing_is_named(saved):
    common = (None, None, str(saved / "o.pb"), True, "")
    with pytest.raises(OSError, match="does not exist"):
        freeze.freeze_graph(str(saved / "none"), None, False, str(saved / "ckpt"), "y", *common)
    with pytest.raises(ValueError, match="doesn't exist"):
        freeze.freeze_graph(str(saved / "graph.pbtxt"), None, False, str(saved / "none"), "y", *common)
    with pytest.raises(ValueError, match="output_node_names"):
        freeze.freeze_graph(str(saved / "graph.pbtxt"), None, False, str(saved / "ckpt"), "", *common)


def test_variables_in_parts_are_not_frozen_from_a_checkpoint(tmp_path):
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        w = tf.get_variable("w", [4], partitioner=tf.fixed_size_partitioner(2))
        tf.identity(w, name="y")
        sess.run(tf.global_variables_initializer())
        tf.train.Saver().save(sess, str(tmp_path / "ckpt"))
    with pytest.raises(ValueError, match="containing partition variables"):
        freeze.freeze_graph_with_def_protos(
            graph.as_graph_def(), None, str(tmp_path / "ckpt"), "y", None, None, None, False, ""
        )


def test_a_model_without_tags_is_found(tmp_path):
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.add(tf.Variable(1.0), 1.0, name="y")
        sess.run(tf.global_variables_initializer())
        builder = tf.saved_model.Builder(str(tmp_path / "model"))
        builder.add_meta_graph_and_variables(sess, [])
        builder.save()
    common = (None, None, None, False, "", "", "", None, str(tmp_path / "model"))
    result = freeze.freeze_graph(None, None, False, None, "y", *common, saved_model_tags="")
    assert "VariableV2" not in {n.op for n in result.node}
