"""Matrices: factorizations, equations, and what they raise."""

import numpy as np
import pytest

import tensorfleet as tf
from tests.support.sessions import run

A = np.array([[4.0, 1.0, 0.5], [-1.0, 3.0, 0.2], [0.5, 0.7, -2.0]])
POSITIVE = A @ A.T
TALL = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]])
B = np.array([[1.0], [2.0], [3.0]])


def test_inverses_undo_products():
    np.testing.assert_allclose(run(tf.matrix_inverse(A)) @ A, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(run(tf.linalg.inv(A, adjoint=True)), np.linalg.inv(A).T)


def test_determinants_and_their_logarithms():
    sign, size = run(tf.linalg.slogdet(A))
    np.testing.assert_allclose(sign * np.exp(size), run(tf.matrix_determinant(A)))
    np.testing.assert_allclose(run(tf.linalg.logdet(POSITIVE)), np.log(np.linalg.det(POSITIVE)))
    np.testing.assert_allclose(run(tf.linalg.det(np.zeros([0, 0]))), 1)


def test_factors_multiply_to_the_whole():
    root = run(tf.cholesky(POSITIVE))
    np.testing.assert_allclose(root @ root.T, POSITIVE)
    q, r = run(tf.qr(TALL))
    np.testing.assert_allclose(q @ r, TALL)
    s, u, v = run(tf.svd(TALL))
    np.testing.assert_allclose(u @ np.diag(s) @ v.T, TALL)
    e, vectors = run(tf.self_adjoint_eig(POSITIVE))
    np.testing.assert_allclose(POSITIVE @ vectors, vectors * e)
    np.testing.assert_allclose(run(tf.self_adjoint_eigvals(POSITIVE)), e)


def test_only_the_lower_triangle_is_read():
    spoilt = POSITIVE + np.triu(np.full([3, 3], 9.0), 1)
    np.testing.assert_allclose(run(tf.cholesky(spoilt)), run(tf.cholesky(POSITIVE)))
    np.testing.assert_allclose(run(tf.linalg.eigvalsh(spoilt)), run(tf.linalg.eigvalsh(POSITIVE)))


def test_equations():
    np.testing.assert_allclose(A @ run(tf.matrix_solve(A, B)), B)
    np.testing.assert_allclose(A.T @ run(tf.linalg.solve(A, B, adjoint=True)), B)
    np.testing.assert_allclose(np.tril(A) @ run(tf.matrix_triangular_solve(A, B)), B)
    np.testing.assert_allclose(np.triu(A).T @ run(tf.matrix_triangular_solve(A, B, False, True)), B)
    np.testing.assert_allclose(POSITIVE @ run(tf.cholesky_solve(tf.cholesky(POSITIVE), B)), B)


@pytest.mark.parametrize("fast", [True, False])
def test_least_squares(fast):
    expected = np.linalg.lstsq(TALL, B, rcond=None)[0]
    np.testing.assert_allclose(run(tf.matrix_solve_ls(TALL, B, fast=fast)), expected)
    wide = run(tf.matrix_solve_ls(TALL.T, B[:2], fast=fast))
    np.testing.assert_allclose(wide, np.linalg.lstsq(TALL.T, B[:2], rcond=None)[0])
    damped = run(tf.matrix_solve_ls(TALL, B, l2_regularizer=0.5, fast=fast))
    if fast:  # otherwise it does not count
        expected = np.linalg.solve(TALL.T @ TALL + 0.5 * np.eye(2), TALL.T @ B)
    np.testing.assert_allclose(damped, expected)


@pytest.mark.parametrize("turn", [False, True])
def test_least_squares_of_matrices_whose_size_comes_with_them(turn, session):
    matrix, rhs = (TALL.T, B[:2]) if turn else (TALL, B)
    a, b = tf.placeholder(tf.float64), tf.placeholder(tf.float64)
    x = tf.matrix_solve_ls(a, b, l2_regularizer=0.5)
    known = tf.matrix_solve_ls(tf.constant(matrix), tf.constant(rhs), l2_regularizer=0.5)
    feed = {a: matrix, b: rhs}
    np.testing.assert_allclose(session.run(x, feed), session.run(known))
    ours = session.run(tf.gradients(tf.reduce_sum(x**2), [a, b]), feed)
    step = 1e-6
    moved = matrix.copy()
    moved[0, 1] += step
    slope = (np.sum(session.run(x, {a: moved, b: rhs}) ** 2) - np.sum(session.run(x, feed) ** 2)) / step
    np.testing.assert_allclose(ours[0][0, 1], slope, rtol=1e-4)


def test_least_squares_without_a_solution_say_what_helps(session):
    a = tf.placeholder(tf.float64)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="rank deficient or ill-conditioned. Try setting fast=False"
    ):
        session.run(tf.matrix_solve_ls(a, [[1.0], [2.0]]), {a: np.zeros((2, 2))})
    exact = tf.matrix_solve_ls(tf.constant(TALL), B, fast=False)
    with pytest.raises(ValueError, match="not defined for fast=False"):
        tf.gradients(exact, exact.op.inputs[0])


def test_norms_traces_ranks_and_pseudoinverses():
    np.testing.assert_allclose(run(tf.norm(tf.constant(A), ord=2, axis=[0, 1])), np.linalg.norm(A, 2))
    np.testing.assert_allclose(run(tf.trace(np.stack([A, 2 * A]))), [np.trace(A), 2 * np.trace(A)])
    assert run(tf.linalg.matrix_rank(np.outer([1.0, 2.0], [3.0, 4.0]))) == 1
    np.testing.assert_allclose(run(tf.linalg.pinv(TALL)), np.linalg.pinv(TALL), atol=1e-12)
    np.testing.assert_allclose(run(tf.cross([1, 2, 3], [4, 5, 7])), [-1, 5, -3])
    np.testing.assert_allclose(run(tf.linalg.adjoint(np.array([[1 + 1j, 2]]))), [[1 - 1j], [2]])


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda z: tf.matrix_inverse(z), "Input is not invertible."),
        (lambda z: tf.matrix_solve(z, z), "Input matrix is not invertible."),
        (lambda z: tf.matrix_triangular_solve(z, z), "Input matrix is not invertible."),
        (lambda z: tf.cholesky(z), "Cholesky decomposition was not successful"),
    ],
)
def test_singular_matrices_are_refused(make, text):
    result = make(tf.placeholder_with_default(np.zeros([2, 2]), None))
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        run(result)


def test_a_compiled_step_refuses_singular_matrices_too(session):
    x = tf.placeholder(tf.float32, [2, 2])
    inverse = tf.matrix_inverse(x)
    for _ in range(4):
        session.run(inverse, {x: np.eye(2)})
    with pytest.raises(tf.errors.InvalidArgumentError, match="Input is not invertible."):
        session.run(inverse, {x: np.zeros([2, 2])})


def test_a_solution_is_shaped_by_the_matrix_or_by_the_right_hand_side():
    any_rank = tf.placeholder(tf.float32)
    assert tf.matrix_solve(any_rank, tf.zeros([2, 3, 4])).shape.as_list() == [2, 3, 4]
    assert tf.matrix_solve(tf.zeros([2, 3, 3]), any_rank).shape.as_list() == [2, 3, None]
    assert tf.matrix_solve(any_rank, any_rank).shape.rank is None


def test_shapes_that_do_not_fit():
    with pytest.raises(ValueError, match="Dimensions must be equal, but are 2 and 3"):
        tf.matrix_inverse(np.ones([2, 3]))
    with pytest.raises(ValueError, match="at least rank 2 but is rank 1"):
        tf.svd(np.ones([2]))
    with pytest.raises(ValueError, match="Dimension must be 3 but is 2"):
        tf.cross([1, 2], [3, 4])


@pytest.mark.parametrize(
    "make",
    [
        lambda x: tf.matrix_inverse(x, adjoint=True),
        lambda x: tf.matrix_determinant(x),
        lambda x: tf.linalg.slogdet(x)[1],
        lambda x: tf.cholesky(tf.matmul(x, x, transpose_b=True)),
        lambda x: tf.self_adjoint_eigvals(tf.matmul(x, x, transpose_b=True)),
        lambda x: tf.self_adjoint_eig(tf.matmul(x, x, transpose_b=True))[1] ** 2,
        lambda x: tf.svd(x, compute_uv=False),
        lambda x: tf.svd(x)[1] ** 2,
        lambda x: tf.norm(x, ord=2, axis=[0, 1]),
        lambda x: tf.qr(x)[1],
    ],
)
def test_gradients(make, session):
    x = tf.placeholder(tf.float64, [3, 3])
    y = make(x)
    assert tf.test.compute_gradient_error(x, [3, 3], y, y.shape.as_list(), x_init_value=A, delta=1e-5) < 1e-6


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("l2", [0.0, 0.5])
def test_least_squares_of_matrices_of_unknown_size(session, fast, l2):
    a, b = tf.placeholder(tf.float64), tf.placeholder(tf.float64)
    x = tf.matrix_solve_ls(a, b, l2_regularizer=l2, fast=fast)
    for matrix, rhs in ((TALL, B), (TALL.T, B[:2])):
        expected = session.run(tf.matrix_solve_ls(matrix, rhs, l2_regularizer=l2, fast=fast))
        np.testing.assert_allclose(session.run(x, {a: matrix, b: rhs}), expected)


def test_the_gradient_of_a_root_as_one_op(session):
    x, dy = tf.constant(np.eye(3) * 2 + 1), tf.constant(np.arange(9.0).reshape(3, 3))
    root = tf.cholesky(x)
    composed = tf.gradients(root, x, dy)[0]
    np.testing.assert_allclose(*session.run([composed, tf.raw_ops.CholeskyGrad(l=root, grad=dy)]))


@pytest.mark.parametrize("shape", [[0, 2, 2], [2, 0, 0], [0, 0]])
@pytest.mark.parametrize("name", ["sqrtm", "logm", "expm"])
@pytest.mark.parametrize("known", [True, False])
def test_functions_of_no_matrices(session, shape, name, known):
    x = np.zeros(shape, np.complex64)
    result = getattr(tf.linalg, name)(x if known else tf.placeholder_with_default(x, None))
    assert list(session.run(result).shape) == shape


@pytest.mark.parametrize("make", [tf.linalg.expm, tf.linalg.pinv, tf.linalg.matrix_rank])
def test_matrices_of_unknown_rank(session, make):
    for x in (A, np.stack([A, 2 * A]), TALL):
        if make is not tf.linalg.expm or x is not TALL:
            known, unknown = make(tf.constant(x)), make(tf.placeholder_with_default(x, None))
            np.testing.assert_allclose(*session.run([known, unknown]), rtol=1e-9)


@pytest.mark.parametrize("axis", [[-2, -1], [0, 2], [1, 0]])
@pytest.mark.parametrize("kind", [np.float64, np.complex128])
def test_spectral_norms_of_unknown_rank(session, axis, kind):
    x = np.random.RandomState(0).rand(2, 3, 4).astype(kind)
    for keepdims in (False, True):
        norm = tf.norm(tf.placeholder_with_default(x, None), 2, axis=axis, keepdims=keepdims)
        expected = np.linalg.norm(x, 2, tuple(axis), keepdims)
        np.testing.assert_allclose(session.run(norm), expected)
        np.testing.assert_allclose(session.run(tf.norm(x, 2, axis=axis, keepdims=keepdims)), expected)


@pytest.mark.parametrize("axis", [[], [1, 2, 3], [[1], [2]], [1, 1], [1.5, 2]])
def test_norms_are_along_one_axis_or_two_different_ones(axis):
    with pytest.raises(ValueError, match="an integer, or a tuple of 2 unique integers"):
        tf.norm([[0.0, 1.0], [2.0, 3.0]], axis=axis)


def test_systems_of_three_diagonals_have_three_and_sides_for_each():
    with pytest.raises(ValueError, match="Expected 3 diagonals got 4"):
        tf.linalg.tridiagonal_solve(np.ones([4, 3]), np.ones([3]))
    with pytest.raises(ValueError, match="Batch shapes"):
        tf.linalg.tridiagonal_solve(np.ones([2, 3, 3]), np.ones([5, 3]))
    with pytest.raises(ValueError, match="rank of rhs to be 1 or 2, got 3"):
        tf.linalg.tridiagonal_solve(np.ones([3, 3]), np.ones([1, 3, 3]))
