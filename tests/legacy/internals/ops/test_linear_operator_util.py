"""What TensorFlow's linear operators share."""

import numpy as np
import pytest

import tensorfleet as tf

util = tf.python.ops.linalg.linear_operator_util


def _run(x):
    with tf.Session() as sess:
        return sess.run(x)


def test_numbers_that_must_not_be_zero_or_imaginary():
    _run(util.assert_no_entries_with_modulus_zero([1.0, -2.0]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="none"):
        _run(util.assert_no_entries_with_modulus_zero(tf.placeholder_with_default([1.0, 0.0], [2]), "none"))
    _run(util.assert_zero_imag_part([1.0]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="real"):
        _run(util.assert_zero_imag_part(tf.placeholder_with_default([1 + 1j], [1]), "real"))


def test_batches_are_brought_to_one_shape():
    a, b = util.broadcast_matrix_batch_dims([tf.ones([3, 1, 2, 2]), tf.zeros([4, 2, 5])])
    assert a.shape == [3, 4, 2, 2] and b.shape == [3, 4, 2, 5]
    assert util.broadcast_matrix_batch_dims([]) == []
    with pytest.raises(ValueError, match="at least two dimensions"):
        util.broadcast_matrix_batch_dims([tf.ones([3])])


def test_systems_are_solved_with_batches_that_broadcast():
    random = np.random.RandomState(0)
    lower = np.tril(random.rand(3, 3)) + np.eye(3)
    matrix, rhs = lower @ lower.T, random.rand(2, 3, 1)
    expected = np.linalg.solve(matrix, rhs)
    np.testing.assert_allclose(_run(util.matrix_solve_with_broadcast(matrix, rhs)), expected)
    np.testing.assert_allclose(_run(util.cholesky_solve_with_broadcast(lower, rhs)), expected)
    half = _run(util.matrix_triangular_solve_with_broadcast(lower, rhs))
    np.testing.assert_allclose(lower @ half, rhs)


def test_hints_that_contradict_are_told():
    operator = tf.linalg.LinearOperatorIdentity(2)
    use = util.use_operator_or_provided_hint_unless_contradicting
    assert use(operator, "is_self_adjoint", None, "no") is True
    with pytest.raises(ValueError, match="no"):
        use(operator, "is_self_adjoint", False, "no")
    unknown = tf.linalg.LinearOperatorFullMatrix([[1.0]])
    assert use(unknown, "is_positive_definite", None, "no") is None
    assert use(unknown, "is_positive_definite", False, "no") is False


def test_shapes_and_what_fits_them():
    assert util.shape_tensor([]).dtype == tf.int32
    assert util.prefer_static_shape(tf.ones([2, 3])).tolist() == [2, 3]
    operator = tf.linalg.LinearOperatorIdentity(2)
    _run(util.assert_compatible_matrix_dimensions(operator, tf.ones([2, 3])))
    with pytest.raises(tf.errors.InvalidArgumentError, match="not compatible"):
        _run(
            util.assert_compatible_matrix_dimensions(
                operator, tf.placeholder_with_default(np.ones((3, 3)), None)
            )
        )
