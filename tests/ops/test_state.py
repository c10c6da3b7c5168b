"""Ops on state."""

import numpy as np
import pytest

import tensorfleet as tf

ops = tf.python.ops.gen_state_ops


def test_a_temporary_variable_lives_until_it_is_destroyed():
    made = ops.temporary_variable([1, 2], tf.float32, var_name="kept")
    changed = tf.assign_add(tf.assign(made, [[4.0, 5.0]]), [[6.0, 7.0]])
    value = ops.destroy_temporary_variable(changed, var_name="kept")
    with tf.Session() as sess:
        for _ in range(2):
            np.testing.assert_array_equal(sess.run(value), [[10, 12]])
        with pytest.raises(tf.errors.FailedPreconditionError):
            sess.run(made)


def test_a_temporary_variable_is_destroyed_by_its_name():
    made = tf.assign(ops.temporary_variable([1], tf.float32), [1.0])
    with tf.Session() as sess, pytest.raises(tf.errors.NotFoundError, match="No temporary variable 'other'"):
        sess.run(ops.destroy_temporary_variable(made, var_name="other"))
