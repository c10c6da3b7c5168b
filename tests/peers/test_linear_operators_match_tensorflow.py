"""`tf.linalg.LinearOperator*`: TensorFlow's values for every method of every kind, and its errors."""

import numpy as np
import pytest

import tensorfleet
from tests.peers.programs import agree, outcome, refuse_alike, same, walk_errors

A = np.array([[3.0, 1.0, 0.5], [0.2, 2.0, -1.0], [1.0, 0.3, 4.0]])
SPD = A @ A.T + np.eye(3)
BATCH = np.stack([A, 2 * A + np.eye(3)])
Z = (A + 1j * A.T).astype(np.complex128)
V = np.array([1.0, 2.0, -0.5])
U = np.array([[1.0, 0.5], [0.2, -1.0], [0.3, 2.0]])


def full(tf, matrix=A, **hints):
    return tf.linalg.LinearOperatorFullMatrix(matrix, **hints)


def kinds(tf):
    lin = tf.linalg
    definite = {"is_self_adjoint": True, "is_positive_definite": True}
    spectrum = np.array([2.0, 3.0, 1.0])
    complex_spectrum = np.fft.fft([5.0, 1.0, 0.5])
    return {
        "full": lambda: full(tf),
        "full batch": lambda: full(tf, BATCH),
        "full complex": lambda: full(tf, Z),
        "full definite": lambda: full(tf, SPD, **definite),
        "lower": lambda: lin.LinearOperatorLowerTriangular(A),
        "lower batch": lambda: lin.LinearOperatorLowerTriangular(BATCH),
        "diag": lambda: lin.LinearOperatorDiag(V, is_non_singular=True),
        "diag batch": lambda: lin.LinearOperatorDiag(np.stack([V, V + 3])),
        "diag complex": lambda: lin.LinearOperatorDiag(V + 1j),
        "diag definite": lambda: lin.LinearOperatorDiag(V**2, **definite),
        "identity": lambda: lin.LinearOperatorIdentity(3, dtype=tf.float64),
        "identity batch": lambda: lin.LinearOperatorIdentity(3, [2], tf.float64),
        "scaled": lambda: lin.LinearOperatorScaledIdentity(3, np.float64(2.5), is_positive_definite=True),
        "scaled batch": lambda: lin.LinearOperatorScaledIdentity(3, np.array([2.5, -1.0])),
        "zeros": lambda: lin.LinearOperatorZeros(3, dtype=tf.float64),
        "adjoint": lambda: lin.LinearOperatorAdjoint(full(tf, Z)),
        "inversion": lambda: lin.LinearOperatorInversion(full(tf)),
        "composition": lambda: lin.LinearOperatorComposition(
            [full(tf), lin.LinearOperatorDiag(V), full(tf, BATCH)]
        ),
        "kronecker": lambda: lin.LinearOperatorKronecker([full(tf), full(tf, BATCH[:, :2, :2])]),
        "kronecker definite": lambda: lin.LinearOperatorKronecker(
            [full(tf, SPD, **definite), full(tf, SPD[:2, :2], **definite)]
        ),
        "blocks": lambda: lin.LinearOperatorBlockDiag(
            [full(tf, BATCH), lin.LinearOperatorDiag(V), full(tf, A[:1, :1])]
        ),
        "blocks definite": lambda: lin.LinearOperatorBlockDiag(
            [full(tf, SPD, **definite), full(tf, SPD[:2, :2], **definite)]
        ),
        "update": lambda: lin.LinearOperatorLowRankUpdate(full(tf), U, np.array([1.0, 2.0]), 2 * U + 1),
        "update definite": lambda: lin.LinearOperatorLowRankUpdate(
            lin.LinearOperatorDiag(V**2, is_positive_definite=True), U
        ),
        "circulant": lambda: lin.LinearOperatorCirculant(spectrum, tf.complex128),
        "circulant real": lambda: lin.LinearOperatorCirculant(complex_spectrum, tf.float64),
        "circulant 2": lambda: lin.LinearOperatorCirculant2D(
            np.fft.fft2([[5.0, 1.0], [0.5, 0.2]]), tf.float64
        ),
        "circulant 3": lambda: lin.LinearOperatorCirculant3D(
            np.fft.fftn([[[5.0, 1.0], [0.5, 0.2]], [[0.1, 0.3], [0.7, 0.9]]]), tf.float64
        ),
        "householder": lambda: lin.LinearOperatorHouseholder(V),
        "householder batch": lambda: lin.LinearOperatorHouseholder(np.stack([V, V + 3])),
        "permutation": lambda: lin.LinearOperatorPermutation([2, 0, 1], tf.float64),
        "permutation batch": lambda: lin.LinearOperatorPermutation([[2, 0, 1], [0, 2, 1]], tf.float64),
        "toeplitz": lambda: lin.LinearOperatorToeplitz(V, np.array([1.0, 5.0, -3.0])),
        "toeplitz batch": lambda: lin.LinearOperatorToeplitz(np.stack([V, V]), np.array([1.0, 5.0, -3.0])),
        "tridiag compact": lambda: lin.LinearOperatorTridiag(np.stack([V, V + 5, V - 2])),
        "tridiag sequence": lambda: lin.LinearOperatorTridiag([V, V + 5, V - 2], "sequence"),
        "tridiag matrix": lambda: lin.LinearOperatorTridiag(
            np.triu(np.tril(A, 1), -1), "matrix", is_non_singular=True
        ),
    }


def argument(operator, adjoint=False):
    """Two columns for an operator, and a vector."""
    rows = operator.shape.as_list()[-2 if adjoint else -1]
    x = np.linspace(-1, 2, 2 * rows).reshape(rows, 2).astype(operator.dtype.as_numpy_dtype)
    return x + 0.5j if operator.dtype.is_complex else x


def square(operator):
    """A matrix of the operator's size."""
    size = operator.shape.as_list()[-1]
    return np.arange(size * size).reshape(size, size).astype(operator.dtype.as_numpy_dtype)


METHODS = {
    "to_dense": lambda tf, o: o.to_dense(),
    "shapes": lambda tf, o: [o.shape_tensor(), o.batch_shape_tensor(), o.tensor_rank_tensor()],
    "sizes": lambda tf, o: [o.domain_dimension_tensor(), o.range_dimension_tensor()],
    "matmul": lambda tf, o: [
        o.matmul(argument(o)),
        o.matmul(argument(o), adjoint=True),
        o.matmul(argument(o).conj().T, adjoint_arg=True),
        o.matmul(np.stack([argument(o), 2 * argument(o)])),
    ],
    "matvec": lambda tf, o: [o.matvec(argument(o)[:, 0]), o.matvec(argument(o)[:, 1], adjoint=True)],
    "solve": lambda tf, o: [
        o.solve(argument(o)),
        o.solve(argument(o), adjoint=True),
        o.solve(argument(o).conj().T, adjoint_arg=True),
    ],
    "solvevec": lambda tf, o: [o.solvevec(argument(o)[:, 0]), o.solvevec(argument(o)[:, 0], adjoint=True)],
    "determinant": lambda tf, o: o.determinant(),
    "log_abs_determinant": lambda tf, o: o.log_abs_determinant(),
    "trace": lambda tf, o: o.trace(),
    "diag_part": lambda tf, o: o.diag_part(),
    "add_to_tensor": lambda tf, o: o.add_to_tensor(square(o)),
    "adjoint": lambda tf, o: [o.adjoint().to_dense(), o.H.to_dense()],
    "inverse": lambda tf, o: o.inverse().to_dense(),
    "cholesky": lambda tf, o: o.cholesky().to_dense(),
    "eigvals": lambda tf, o: tf.sort(tf.real(o.eigvals())),
    "cond": lambda tf, o: o.cond(),
    "squared": lambda tf, o: o.matmul(o).to_dense(),
    "scaled": lambda tf, o: o.matmul(tf.linalg.LinearOperatorDiag(argument(o)[:, 0])).to_dense(),
}
# TensorFlow 2.21 forgets the type that these work in, and goes on with complex64.
FORGOTTEN = {("circulant", "squared")}
FORGOTTEN |= {(f"circulant {k}", m) for k in ("real", "2", "3") for m in ("adjoint", "squared")}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", [k for k in kinds(tensorfleet)])
def test_values(tensorflow, kind, method):
    def program(tf):
        return METHODS[method](tf, kinds(tf)[kind]())

    (ours, our_error), (theirs, their_error) = outcome(tensorfleet, program), outcome(tensorflow, program)
    if their_error is None:
        assert our_error is None, our_error
        if (kind, method) in FORGOTTEN:
            theirs = (
                np.real(theirs).astype(np.float64)
                if np.isrealobj(np.asarray(ours))
                else np.complex128(theirs)
            )
            ours, theirs = np.asarray(ours), np.asarray(theirs)
        same(ours, theirs)
    elif our_error is not None:  # some batches broadcast here that do not there
        assert type(our_error).__name__ == type(their_error).__name__, (our_error, their_error)


GRADIENTS = {
    "full": lambda tf, x: tf.linalg.LinearOperatorFullMatrix(x),
    "lower": lambda tf, x: tf.linalg.LinearOperatorLowerTriangular(x),
    "diag": lambda tf, x: tf.linalg.LinearOperatorDiag(x[0]),
    "update": lambda tf, x: tf.linalg.LinearOperatorLowRankUpdate(
        tf.linalg.LinearOperatorDiag(x[0], is_positive_definite=True), x[:, :2]
    ),
    "kronecker": lambda tf, x: tf.linalg.LinearOperatorKronecker(
        [tf.linalg.LinearOperatorFullMatrix(x), tf.linalg.LinearOperatorDiag(x[0, :1])]
    ),
    "circulant": lambda tf, x: tf.linalg.LinearOperatorCirculant(tf.cast(x[0], tf.complex128), tf.float64),
    "toeplitz": lambda tf, x: tf.linalg.LinearOperatorToeplitz(x[0], x[0]),
    "householder": lambda tf, x: tf.linalg.LinearOperatorHouseholder(x[0]),
}


@pytest.mark.parametrize("kind", GRADIENTS)
def test_gradients(tensorflow, kind):
    def program(tf):
        x = tf.constant(A)
        operator = GRADIENTS[kind](tf, x)
        results = [operator.matmul(U), operator.solve(U), operator.log_abs_determinant(), operator.trace()]
        return [g for y in results for g in tf.gradients(y, x) if g is not None]

    agree(tensorflow, program)


PRODUCTS = {
    "diag, diag": ("diag", "diag"),
    "diag, lower": ("diag", "lower"),
    "lower, diag": ("lower", "diag"),
    "lower, lower": ("lower", "lower"),
    "identity": ("identity", "full"),
    "zeros": ("zeros", "full"),
    "scaled": ("scaled", "scaled"),
    "full": ("full", "diag"),
    "kronecker": ("kronecker definite", "kronecker definite"),
    "blocks": ("blocks definite", "blocks definite"),
}


@pytest.mark.parametrize("pair", PRODUCTS)
def test_products_are_of_the_same_kind_and_keep_the_same_promises(tensorflow, pair):
    def described(tf):
        with tf.Graph().as_default():
            left, right = (kinds(tf)[k]() for k in PRODUCTS[pair])
            result = left.matmul(right)
            hints = (
                result.is_non_singular,
                result.is_self_adjoint,
                result.is_positive_definite,
                result.is_square,
            )
            return type(result).__name__, result.name, hints

    assert described(tensorfleet) == described(tensorflow)


ERRORS = {
    "singular": (
        lambda tf: tf.linalg.LinearOperatorFullMatrix(A, is_non_singular=False, is_positive_definite=True),
        "A positive definite matrix is always non-singular.",
    ),
    "not square": (
        lambda tf: tf.linalg.LinearOperatorFullMatrix(A, is_square=False, is_self_adjoint=True),
        "A self-adjoint matrix is always square.",
    ),
    "solve": (lambda tf: full(tf, U).solve(U), "Exact solve not implemented for an operator"),
    "inverse": (lambda tf: full(tf, U).inverse().to_dense(), "Cannot take the Inverse"),
    "cholesky": (lambda tf: full(tf).cholesky().to_dense(), "Cannot take the Cholesky decomposition"),
    "dtype": (lambda tf: full(tf).matmul(tf.constant([[1.0], [2.0], [3.0]])), "to have dtype"),
    "dimension": (lambda tf: full(tf).matmul(full(tf, U.T)).to_dense(), "Operators are incompatible."),
    "diag": (lambda tf: tf.linalg.LinearOperatorDiag(1.0), "must have at least 1 dimension"),
    "empty": (lambda tf: tf.linalg.LinearOperatorComposition([]), "Expected a non-empty list of operators."),
    "types": (
        lambda tf: tf.linalg.LinearOperatorComposition([full(tf), full(tf, A.astype(np.float32))]),
        "Expected all operators to have the same dtype.",
    ),
    "rows": (lambda tf: tf.linalg.LinearOperatorIdentity(-1), "must be non-negative"),
    "assert": (
        lambda tf: tf.linalg.LinearOperatorDiag([1.0, 0.0]).assert_non_singular(),
        "Diagonal contained zero values.",
    ),
    "definite": (
        lambda tf: tf.linalg.LinearOperatorDiag([1.0, -1.0]).assert_positive_definite(),
        "not positive definite",
    ),
}


@walk_errors(ERRORS)
def test_errors(tensorflow, program, phrase):
    refuse_alike(tensorflow, program, phrase)
