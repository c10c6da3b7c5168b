"""Equations with matrices that are known by their products."""

import numpy as np

import tensorfleet as tf

S = tf.contrib.solvers
RANDOM = np.random.RandomState(0)
TALL = RANDOM.normal(size=[9, 5])
SQUARE = TALL.T @ TALL + np.eye(5)
RIGHT = RANDOM.normal(size=[5])


def test_a_symmetric_equation_is_solved(session):
    operator = S.util.create_operator(tf.constant(SQUARE))
    state = session.run(S.linear_equations.conjugate_gradient(operator, tf.constant(RIGHT), tol=1e-10))
    np.testing.assert_allclose(state.x, np.linalg.solve(SQUARE, RIGHT), rtol=1e-6)
    assert 0 < state.i <= 6
    np.testing.assert_allclose(state.r, RIGHT - SQUARE @ state.x, atol=1e-8)


def test_a_guess_and_a_preconditioner_help(session):
    matrix = np.diag([1.0, 1e2, 1e4, 1e3, 10.0]) + 0.1 * np.ones([5, 5])
    wanted = np.linalg.solve(matrix, RIGHT)
    operator = S.util.create_operator(tf.constant(matrix))
    inverse = S.util.create_operator(tf.constant(np.diag(1 / np.diag(matrix))))
    solve = S.linear_equations.conjugate_gradient
    helped = session.run(solve(operator, tf.constant(RIGHT), inverse, tol=1e-8))
    guessed = session.run(solve(operator, tf.constant(RIGHT), x=tf.constant(wanted + 1e-3), tol=1e-8))
    plain = session.run(solve(operator, tf.constant(RIGHT), tol=1e-8, max_iter=50))
    for state in (helped, guessed, plain):
        np.testing.assert_allclose(state.x, wanted, rtol=1e-3, atol=1e-5)
    assert helped.i <= plain.i


def test_the_nearest_solution_of_too_many_equations(session):
    right = RANDOM.normal(size=[9])
    state = session.run(S.least_squares.cgls(S.util.create_operator(tf.constant(TALL)), tf.constant(right)))
    np.testing.assert_allclose(state.x, np.linalg.lstsq(TALL, right, rcond=None)[0], rtol=1e-4)


def test_a_matrix_becomes_bidiagonal(session):
    operator = S.util.create_operator(tf.constant(TALL))
    result = S.lanczos.lanczos_bidiag(operator, 4)
    product = S.lanczos.bidiag_matmul(result.u, result.alpha, result.beta)
    back = S.lanczos.bidiag_matmul(result.v, result.alpha, result.beta, adjoint_b=True)
    state, across, down = session.run([result, product, back])
    np.testing.assert_allclose(state.u.T @ state.u, np.eye(5), atol=1e-9)
    np.testing.assert_allclose(state.v.T @ state.v, np.eye(4), atol=1e-9)
    np.testing.assert_allclose(TALL @ state.v, across, atol=1e-9)
    np.testing.assert_allclose(TALL.T @ state.u[:, :-1], down, atol=1e-9)


def test_vectors_are_measured(session):
    v = tf.constant([3.0, 4.0])
    unit, length = S.util.l2normalize(v)
    np.testing.assert_allclose(session.run(unit), [0.6, 0.8], rtol=1e-6)
    assert session.run([length, S.util.dot(v, v), S.util.l2norm(v)]) == [5.0, 25.0, 5.0]
    same = S.util.identity_operator(tf.zeros([2, 2]))
    assert same.apply(v) is v
