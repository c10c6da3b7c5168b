"""`tf_optimizer.OptimizeGraph`: what is left of a graph that is optimized outside of a session."""

import numpy as np
import pytest
from tensorfleet.python.grappler import tf_optimizer
from tensorfleet.python.kernel_tests.signal import test_util

import tensorfleet as tf


def config(**options):
    result = tf.ConfigProto()
    result.graph_options.rewrite_options.min_graph_nodes = -1
    for name, value in options.items():
        setattr(result.graph_options.rewrite_options, name, value)
    return result


def optimized(**options):
    return {
        n.name: n for n in tf_optimizer.OptimizeGraph(config(**options), tf.train.export_meta_graph()).node
    }


def test_a_graph_that_wants_nothing_or_is_small_comes_back_as_it_is():
    c = tf.constant(1.0, name="c")
    meta = tf.train.export_meta_graph()
    assert tf_optimizer.OptimizeGraph(config(), meta) == meta.graph_def
    tf.add_to_collection("train_op", tf.negative(c))
    meta = tf.train.export_meta_graph()
    assert tf_optimizer.OptimizeGraph(tf.ConfigProto(), meta) == meta.graph_def
    assert len(optimized(disable_meta_optimizer=True)) == 2


def test_what_follows_from_constants_is_computed_and_the_rest_left_out():
    a = tf.constant([1.0, 2.0], name="a")
    x = tf.placeholder(tf.float32, [2], name="x")
    tf.identity(x, name="unused")
    half, other = tf.split(tf.add(a, a, name="twice"), 2)
    tf.add_to_collection("train_op", tf.add(x, tf.concat([other, half], 0, name="both"), name="y"))
    left = optimized()
    assert {n: node.op for n, node in left.items()} == {"x": "Placeholder", "both": "Const", "y": "Add"}
    assert tf.make_ndarray(left["both"].attr["value"].tensor).tolist() == [4, 2]
    assert "twice" in optimized(constant_folding=2)


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.random_uniform([2], seed=1),
        lambda: tf.placeholder_with_default([1.0, 2.0], [2]),
        lambda: tf.cond(tf.placeholder_with_default(True, []), lambda: tf.ones([2]), lambda: tf.zeros([2])),
    ],
)
def test_what_may_change_is_not_computed(make):
    y = make()
    tf.add_to_collection("train_op", tf.negative(y, name="y"))
    assert optimized()["y"].op == "Neg"


def test_what_collections_name_is_kept():
    v = tf.Variable(1.0)
    kept = tf.constant(np.zeros([2]), name="kept") + 1.0
    tf.add_to_collection("mine", kept)
    with tf.get_default_graph()._attr_scope({"_grappler_do_not_remove": tf.AttrValue(b=True)}):
        tf.constant(0, name="marked")
    tf.add_to_collection("train_op", tf.matmul(tf.ones([2, 2]), tf.ones([2, 2]), name="y"))
    left = optimized()
    assert left["y"].op == "Const" and left[kept.op.name].op == kept.op.type
    assert {v.op.name, v.initializer.name, "Variable/initial_value", "marked"} <= set(left)
    assert "Variable/read" not in left


def test_signals_of_constants_fold():
    with tf.Graph().as_default() as graph:
        frames = tf.signal.frame(tf.ones([2, 128]), 32, 16, pad_end=True)
        assert len(test_util.grappler_optimize(graph, [frames]).node) == 1
