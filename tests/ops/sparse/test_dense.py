"""Dense tensors from a few elements."""

import numpy as np
import pytest

import tensorfleet as tf


def test_values_at_indices_and_a_default_elsewhere(session):
    matrix = tf.sparse_to_dense([[0, 1], [2, 3]], [3, 4], [1.0, 2.0])
    expected = np.zeros([3, 4])
    expected[0, 1], expected[2, 3] = 1, 2
    np.testing.assert_array_equal(session.run(matrix), expected)
    np.testing.assert_array_equal(session.run(tf.sparse_to_dense([1, 3], [5], 9, -1)), [-1, 9, -1, 9, -1])
    np.testing.assert_array_equal(session.run(tf.sparse_to_dense(2, [4], 1)), [0, 0, 1, 0])
    assert matrix.shape.as_list() == [3, 4]


def test_gradient_goes_to_values_and_default(session):
    values, default = tf.constant([1.0, 2.0]), tf.constant(0.5)
    y = tf.sparse_to_dense([1, 3], [5], values, default)
    got = session.run(tf.gradients(y, [values, default], tf.constant([1.0, 2, 3, 4, 5])))
    np.testing.assert_array_equal(got[0], [2, 4])
    assert got[1] == 9


def test_wrong_indices_are_reported(session):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[1\] = \[9\] is out of bounds"):
        session.run(tf.sparse_to_dense([1, 9], [5], [1, 2]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of order"):
        session.run(tf.sparse_to_dense([3, 1], [5], [1, 2]))
    assert session.run(tf.sparse_to_dense([3, 1], [5], [1, 2], validate_indices=False)).tolist() == [
        0,
        2,
        0,
        1,
        0,
    ]
