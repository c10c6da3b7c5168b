"""Sets in the last dimension."""

import numpy as np
import pytest

import tensorfleet as tf


def test_sets_of_two_matrices(session):
    a, b = np.array([[1, 2, 2], [3, 4, 5]]), np.array([[2, 9], [5, 3]])
    common = session.run(tf.sets.set_intersection(a, b))
    assert common.values.tolist() == [2, 3, 5] and common.dense_shape.tolist() == [2, 2]
    assert session.run(tf.sets.set_difference(a, b)).values.tolist() == [1, 4]
    assert session.run(tf.sets.set_union(a, b)).values.tolist() == [1, 2, 9, 3, 4, 5]


def test_sizes_count_different_elements(session):
    made = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [b"a", b"a", b"b"], [3, 2])
    assert session.run(tf.sets.set_size(made)).tolist() == [1, 0, 1]


def test_an_unknown_operation_is_refused(session):
    from tensorfleet.graph.apply import apply

    made = apply("DenseToDenseSetOperation", [[1]], [[2]], set_operation="xor")[1]
    with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid set_operation xor"):
        session.run(made)
