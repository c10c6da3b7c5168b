"""Graphs given to the optimizer."""

import numpy as np
from tensorfleet.python.grappler import tf_optimizer
from tensorfleet.python.kernel_tests.signal import test_util

import tensorfleet as tf


def test_a_graph_that_nothing_is_wanted_of_comes_back_as_it_is():
    tf.constant(1.0, name="c")
    meta = tf.train.export_meta_graph()
    assert tf_optimizer.OptimizeGraph(tf.ConfigProto(), meta) == meta.graph_def


def test_what_is_known_is_a_constant_and_what_is_not_needed_is_gone():
    tf.placeholder(tf.float32, name="unused")
    known = tf.add(tf.constant([1.0, 2.0]), 3.0, name="known")
    (node,) = test_util.grappler_optimize(tf.get_default_graph(), [known]).node
    assert (node.name, node.op) == ("known", "Const")
    np.testing.assert_array_equal(tf.make_ndarray(node.attr["value"].tensor), [4, 5])


def test_what_depends_on_feeds_still_runs(session):
    x = tf.placeholder(tf.float32, [2], name="x")
    parts = tf.split(tf.constant([1.0, 2.0, 3.0, 4.0]), 2, name="parts")
    tf.add(x * (tf.constant(2.0) * 5.0), parts[0], name="y")
    left = test_util.grappler_optimize(
        tf.get_default_graph(), [tf.get_default_graph().get_tensor_by_name("y:0")]
    )
    assert "mul" in [n.name for n in left.node if n.op == "Const"]
    with tf.Graph().as_default(), tf.Session() as other:
        tf.import_graph_def(left, name="")
        np.testing.assert_array_equal(other.run("y:0", {"x:0": [1, 2]}), [11, 22])
