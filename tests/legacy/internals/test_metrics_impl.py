"""What libraries of metrics take from the inside of `tf.metrics`."""

import numpy as np
import pytest

import tensorfleet as tf

inside = tf.python.ops.metrics_impl


def test_right_and_wrong_predictions_are_counted_at_each_threshold():
    values, updates = inside._confusion_matrix_at_thresholds(
        [True, False, True], [0.9, 0.6, 0.2], [0.1, 0.5], includes=("tp", "fp")
    )
    with tf.Session() as sess:
        sess.run(tf.local_variables_initializer())
        sess.run(updates)
        result = sess.run(values)
    assert {kind: counts.tolist() for kind, counts in result.items()} == {"tp": [2, 1], "fp": [1, 1]}
    assert set(inside._confusion_matrix_at_thresholds([True], [0.5], [0.5])[0]) == {"tp", "fn", "tn", "fp"}
    with pytest.raises(ValueError, match="Invalid key: xx"):
        inside._confusion_matrix_at_thresholds([True], [0.5], [0.5], includes=("xx",))


def test_a_quotient_is_zero_where_the_divisor_is():
    result = inside._safe_scalar_div(tf.constant(1.0), tf.constant(0.0), name="mean")
    kept = inside._aggregate_variable(tf.get_variable("v", initializer=2.0), "kept")
    assert result.op.name == "mean"
    assert tf.get_collection("kept") == [kept]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(sess.run([result, kept]), [0, 2])


def test_the_graph_of_inputs_is_theirs_or_the_one_that_is_given():
    find = tf.contrib.framework.get_graph_from_inputs
    other = tf.Graph()
    with other.as_default():
        there = tf.constant(1)
    here = tf.constant(2)
    assert find([there, 3]) is other
    assert find([]) is here.graph
    assert find([there], other) is other
    with pytest.raises(ValueError, match="not from the passed-in graph"):
        find([here], other)
    with pytest.raises(ValueError, match="must be from the same graph"):
        find([here, there])
    with pytest.raises(TypeError, match="needs to be a Graph"):
        find([here], "graph")
