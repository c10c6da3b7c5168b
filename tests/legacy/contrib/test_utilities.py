"""Small parts of `tf.contrib`."""

import numpy as np
import pytest

import tensorfleet as tf


def test_what_is_known_of_a_stack():
    x = tf.placeholder(tf.int32, [])
    stack = tf.stack([1, x, 3])
    assert tf.contrib.util.constant_value(stack) is None
    assert tf.contrib.util.constant_value(stack, partial=True).tolist() == [1, None, 3]


def test_the_operations_of_a_graph():
    tf.add(tf.constant(1.0), tf.placeholder(tf.float32), name="sum")
    used = tf.contrib.util.ops_used_by_graph_def(tf.get_default_graph().as_graph_def())
    assert {"Const", "Placeholder"} < used and len(used) == 3
    stripped = tf.contrib.util.stripped_op_list_for_graph(tf.get_default_graph().as_graph_def())
    assert {op.name for op in stripped.op} == used


def test_the_memory_of_the_process(session):
    stats = tf.contrib.memory_stats
    kept = np.ones(2_000_000)
    now, most, limit = session.run([stats.BytesInUse(), stats.MaxBytesInUse(), stats.BytesLimit()])
    assert kept.nbytes < now <= most < limit


def test_a_part_of_a_graph_is_copied_into_another():
    first, second = tf.Graph(), tf.Graph()
    with first.as_default():
        x = tf.placeholder(tf.float32, [], "x")
        w = tf.Variable(3.0, name="w")
        y = tf.multiply(w, x, name="y")
    output = tf.contrib.copy_graph.copy_variable_to_graph(w, second, "copied")
    assert output.op.name == "copied/w" and output.graph is second
    z = tf.contrib.copy_graph.copy_op_to_graph(y, second, [w], "copied")
    result = tf.contrib.copy_graph.get_copied_op(x, second, "copied")
    with tf.Session(graph=second) as sess:
        sess.run(output.initializer)
        assert sess.run(z, {result: 2.0}) == 6.0
    with pytest.raises(TypeError, match="is not a Variable"):
        tf.contrib.copy_graph.copy_variable_to_graph(y, second)
