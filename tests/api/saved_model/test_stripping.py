"""Graphs are made smaller for inference: without what is not needed, with normalizations folded away."""

import numpy as np
import pytest
from tensorfleet.python.tools import optimize_for_inference_lib, strip_unused_lib

import tensorfleet as tf

FLOAT = tf.float32.as_datatype_enum


def run(graph_def, fetch, feed=None):
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.import_graph_def(graph_def, name="")
        return sess.run(fetch, feed)


def test_what_the_outputs_do_not_need_is_left_out(tmp_path):
    with tf.Graph().as_default() as graph:
        start = tf.subtract(tf.constant(1.0), 3.0, name="start")
        result = tf.multiply(start, 2.0, name="result")
        tf.add(result, 1.0, name="later")
    tf.train.write_graph(graph, str(tmp_path), "given.pbtxt")
    given, output = str(tmp_path / "given.pbtxt"), str(tmp_path / "made.pb")
    strip_unused_lib.strip_unused_from_files(given, False, output, True, "start", "result", FLOAT)
    string = tf.GraphDef.FromString((tmp_path / "made.pb").read_bytes())
    assert sorted(n.op for n in string.node) == ["Const", "Mul", "Placeholder"]
    assert run(string, "result:0", {"start:0": 10.0}) == 20
    with pytest.raises(KeyError, match="nowhere"):
        strip_unused_lib.strip_unused(graph.as_graph_def(), ["nowhere"], ["result"], FLOAT)
    with pytest.raises(ValueError, match="colon"):
        strip_unused_lib.strip_unused(graph.as_graph_def(), ["start:0"], ["result"], [FLOAT])


@pytest.mark.parametrize("depthwise", [False, True])
def test_a_normalization_becomes_part_of_the_convolution_before_it(depthwise):
    random = np.random.RandomState(1)
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 4, 4, 2], name="x")
        weights = tf.constant(random.rand(2, 2, 2, 1 if depthwise else 2), tf.float32)
        convolve = tf.nn.depthwise_conv2d_native if depthwise else tf.nn.conv2d
        y = convolve(x, weights, [1, 1, 1, 1], "SAME")
        scale, offset, mean, variance = (tf.constant(random.rand(2), tf.float32) for _ in range(4))
        y, _, _ = tf.nn.fused_batch_norm(y, scale, offset, mean, variance, is_training=False)
        tf.identity(tf.check_numerics(y, "bad"), name="y")
    given = graph.as_graph_def()
    result = optimize_for_inference_lib.optimize_for_inference(given, ["x"], ["y"], FLOAT)
    types = [n.op for n in result.node]
    assert "BiasAdd" in types
    assert not {"FusedBatchNorm", "FusedBatchNormV3", "CheckNumerics"} & set(types)
    feed = {"x:0": random.rand(1, 4, 4, 2)}
    np.testing.assert_allclose(run(result, "y:0", feed), run(given, "y:0", feed), rtol=1e-4)


def test_graphs_that_do_not_hold_together_are_refused():
    graph_def = tf.GraphDef()
    graph_def.node.add(name="a", op="NoOp", input=["^b"])
    with pytest.raises(ValueError, match="Input for a not found: b"):
        optimize_for_inference_lib.ensure_graph_is_valid(graph_def)
    graph_def.node.add(name="a", op="NoOp")
    with pytest.raises(ValueError, match="Duplicate node names"):
        optimize_for_inference_lib.ensure_graph_is_valid(graph_def)
    with pytest.raises(ValueError, match="not Const"):
        optimize_for_inference_lib.values_from_const(graph_def.node[0])


def test_resizing_padding_and_convolution_become_one_node():
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        x = tf.constant(np.random.RandomState(0).rand(1, 3, 4, 2).astype(np.float32))
        w = np.ones((2, 2, 2, 1), np.float32)
        resized = tf.image.resize_bilinear(x, [6, 8])
        padded = tf.pad(resized, [[0, 0], [1, 1], [1, 1], [0, 0]], "REFLECT")
        tf.nn.conv2d(padded, w, [1] * 4, "VALID", name="both")
        tf.nn.conv2d(
            tf.pad(x, [[0, 0], [1, 1], [0, 0], [0, 0]], "REFLECT"), w, [1] * 4, "SAME", name="padded"
        )
        shared = tf.image.resize_bilinear(x, [2, 2], name="shared")
        tf.nn.conv2d(shared, w, [1] * 4, "SAME", name="kept")
        tf.identity(shared, name="other")
        outputs = ["both", "padded", "kept", "other"]
        before = sess.run([f"{name}:0" for name in outputs])
    result = optimize_for_inference_lib.fuse_resize_and_conv(graph.as_graph_def(), outputs)
    kinds = {n.name: n.op for n in result.node}
    assert [kinds[n] for n in outputs] == ["FusedResizeAndPadConv2D", "FusedPadConv2D", "Conv2D", "Identity"]
    assert not {"MirrorPad"} & set(kinds.values())
    for one, other in zip(run(result, [f"{name}:0" for name in outputs]), before, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
