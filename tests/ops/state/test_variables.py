"""Ops on state."""

import numpy as np
import pytest

import tensorfleet as tf

ops = tf.python.ops.gen_state_ops


def test_a_temporary_variable_lives_until_it_is_destroyed():
    result = ops.temporary_variable([1, 2], tf.float32, var_name="kept")
    changed = tf.assign_add(tf.assign(result, [[4.0, 5.0]]), [[6.0, 7.0]])
    value = ops.destroy_temporary_variable(changed, var_name="kept")
    with tf.Session() as sess:
        for _ in range(2):
            np.testing.assert_array_equal(sess.run(value), [[10, 12]])


def test_a_temporary_variable_is_memory_before_it_is_assigned():
    result = ops.temporary_variable([2], tf.float32)
    with tf.Session() as sess:
        assert sess.run(result).shape == (2,)
        added = tf.assign_add(tf.assign(result, tf.zeros_like(result)), [1.0, 2.0])
        value = ops.destroy_temporary_variable(added, var_name=result.op.name)
        assert [sess.run(value).tolist() for _ in range(2)] == [[1, 2]] * 2


def test_a_temporary_variable_is_destroyed_by_its_name():
    result = tf.assign(ops.temporary_variable([1], tf.float32), [1.0])
    with tf.Session() as sess, pytest.raises(tf.errors.NotFoundError, match="Resource other does not exist"):
        sess.run(ops.destroy_temporary_variable(result, var_name="other"))
