"""Operators give what their whole matrices give."""

import numpy as np
import pytest

import tensorfleet as tf

A = np.array([[3.0, 1.0, 0.5], [0.2, 2.0, -1.0], [1.0, 0.3, 4.0]])
V = np.array([1.0, 2.0, -0.5])
X = np.array([[1.0, 2.0], [0.5, -1.0], [3.0, 0.1]])
KINDS = {
    "full": lambda lin: lin.LinearOperatorFullMatrix(A),
    "lower": lambda lin: lin.LinearOperatorLowerTriangular(A),
    "diag": lambda lin: lin.LinearOperatorDiag(V),
    "scaled": lambda lin: lin.LinearOperatorScaledIdentity(3, np.float64(2)),
    "composition": lambda lin: lin.LinearOperatorComposition(
        [lin.LinearOperatorFullMatrix(A), lin.LinearOperatorDiag(V)]
    ),
    "kronecker": lambda lin: lin.LinearOperatorKronecker(
        [lin.LinearOperatorFullMatrix(A), lin.LinearOperatorDiag(V[:1])]
    ),
    "blocks": lambda lin: lin.LinearOperatorBlockDiag(
        [lin.LinearOperatorFullMatrix(A[:2, :2]), lin.LinearOperatorDiag(V[:1])]
    ),
    "update": lambda lin: lin.LinearOperatorLowRankUpdate(lin.LinearOperatorDiag(V), X),
    "circulant": lambda lin: lin.LinearOperatorCirculant(np.fft.fft(V), tf.float64),
    "householder": lambda lin: lin.LinearOperatorHouseholder(V),
    "permutation": lambda lin: lin.LinearOperatorPermutation([2, 0, 1], tf.float64),
    "toeplitz": lambda lin: lin.LinearOperatorToeplitz(V, V + [0, 1, 2]),
    "tridiag": lambda lin: lin.LinearOperatorTridiag([V, V + 5, V], "sequence"),
    "inversion": lambda lin: lin.LinearOperatorInversion(lin.LinearOperatorFullMatrix(A)),
    "adjoint": lambda lin: lin.LinearOperatorAdjoint(lin.LinearOperatorFullMatrix(A)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_method_gives_what_the_whole_matrix_gives(kind):
    operator = KINDS[kind](tf.linalg)
    fetches = [
        operator.to_dense(),
        operator.matmul(X),
        operator.matmul(X, adjoint=True),
        operator.solve(X),
        operator.matvec(V),
        operator.determinant(),
        operator.log_abs_determinant(),
        operator.trace(),
        operator.diag_part(),
        operator.add_to_tensor(A),
        operator.H.to_dense(),
        operator.inverse().to_dense(),
    ]
    with tf.Session() as sess:
        dense, *got = sess.run(fetches)
    wanted = [
        dense @ X,
        dense.T @ X,
        np.linalg.solve(dense, X),
        dense @ V,
        np.linalg.det(dense),
        np.log(abs(np.linalg.det(dense))),
        np.trace(dense),
        np.diag(dense),
        dense + A,
        dense.T,
        np.linalg.inv(dense),
    ]
    for ours, theirs in zip(got, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9)


def test_shapes_are_found_when_the_graph_runs(session):
    matrix = tf.placeholder(tf.float64, [None, None, None])
    operator = tf.linalg.LinearOperatorBlockDiag([tf.linalg.LinearOperatorFullMatrix(matrix)] * 2)
    shape, dense = session.run([operator.shape_tensor(), operator.to_dense()], {matrix: np.stack([A, A])})
    assert shape.tolist() == [2, 6, 6]
    np.testing.assert_allclose(dense[0], np.kron(np.eye(2), A))


def test_a_kind_of_ones_own_needs_three_methods(session):
    class Doubling(tf.linalg.LinearOperator):
        def _shape(self):
            return tf.TensorShape([3, 3])

        def _shape_tensor(self):
            return tf.constant([3, 3])

        def _matmul(self, x, adjoint=False, adjoint_arg=False):
            return 2.0 * (tf.transpose(x) if adjoint_arg else x)

    operator = Doubling(tf.float64, is_self_adjoint=True, is_positive_definite=True)
    solution, determinant = session.run([operator.solve(X), operator.determinant()])
    np.testing.assert_allclose(solution, X / 2)
    np.testing.assert_allclose(determinant, 8)


def test_complex_operators_are_checked_to_be_self_adjoint():
    imaginary = tf.linalg.LinearOperatorDiag([1.0, 1j])
    scaled = tf.linalg.LinearOperatorScaledIdentity(2, 1j)
    dense = tf.linalg.LinearOperatorFullMatrix(np.array([[1, 1j], [1j, 1]]))
    with tf.Session() as sess:
        for operator, text in (
            (imaginary, "imaginary.*not self-adjoint"),
            (scaled, "not self-adjoint"),
            (dense, "not equal to its adjoint"),
        ):
            with pytest.raises(tf.errors.InvalidArgumentError, match=text):
                sess.run(operator.assert_self_adjoint())
        sess.run(tf.linalg.LinearOperatorFullMatrix(np.array([[1, 1j], [-1j, 1]])).assert_self_adjoint())


def test_a_library_names_the_operations_of_its_own_kind():
    class Doubled(tf.linalg.LinearOperatorFullMatrix):
        def doubled(self, name="doubled"):
            with self._name_scope(name):
                return tf.identity(2 * self.to_dense(), name="all")

    assert Doubled([[1.0]], name="mine").doubled().op.name == "mine/doubled/all"


def test_a_library_checks_the_type_of_an_argument():
    operator = tf.linalg.LinearOperatorFullMatrix([[1.0]])
    operator._check_input_dtype(tf.constant(1.0))
    with pytest.raises(TypeError, match="Expected argument to have dtype"):
        operator._check_input_dtype(tf.constant(1))
