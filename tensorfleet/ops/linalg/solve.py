"""Inverses, determinants, and systems of linear equations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tensorfleet.base.naming import export
from tensorfleet.base.types import Array, ArrayModule, TensorLike
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.kernel_types import Check
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.kernels.aligned_memory import stored
from tensorfleet.kernels.arrays import is_numpy
from tensorfleet.kernels.lapack import linalg
from tensorfleet.kernels.openblas import by_matrix, in_one_thread
from tensorfleet.ops.array.diagonals import matrix_band_part, matrix_diag_part
from tensorfleet.ops.elementwise import wide
from tensorfleet.ops.linalg.factorizations import cholesky
from tensorfleet.ops.linalg.matmul import matmul
from tensorfleet.ops.linalg.shapes import (
    TYPES,
    adjoint_of,
    need_rhs,
    need_square,
    number_per_matrix,
    solution,
    square_like,
)
from tensorfleet.ops.math.reduce_functions import reduce_sum
from tensorfleet.ops.samples import case

_A = np.array([[4.0, 1.0, 0.5], [-1.0, 3.0, 0.2], [0.5, 0.7, -2.0]])
_BATCH = np.stack([_A, 2 * _A.T]).astype(np.float32)
_COMPLEX = np.array([[2.0 + 1j, 1.0], [0.5j, 3.0]])
_RHS = np.array([[1.0, 2.0], [-0.5, 0.3], [0.2, 1.0]])
_EMPTY = np.zeros([0, 2, 2], np.float32)


def _solved(xp: ArrayModule, a: Array, b: Array) -> Array:
    """The solution of `a x = b`, NaN where there is none."""
    try:
        result: Array = by_matrix(xp, linalg(xp).solve, a, b)
        return result
    except np.linalg.LinAlgError:
        return np.full_like(b, np.nan)


@op(
    "MatrixInverse",
    "input: T -> output: T",
    f"adjoint: bool = false; {TYPES}",
    shape=square_like,
    examples=[case(_A), case(_A, adjoint=True), case(_BATCH), case(_COMPLEX, grad=False), case(_EMPTY)],
)
@in_one_thread
def _matrix_inverse(xp: ArrayModule, x: Array, *, adjoint: bool, check: Check) -> Array:
    need_square(x)
    a = wide(adjoint_of(xp, x) if adjoint else x)
    try:
        inverse = by_matrix(xp, linalg(xp).inv, a)
    except np.linalg.LinAlgError:
        inverse = np.full_like(a, np.nan)
    check(xp.isfinite(inverse), lambda: "Input is not invertible.")
    result: Array = inverse.astype(x.dtype)
    return result


@gradient("MatrixInverse")
def _matrix_inverse_grad(op: Operation, grad: Tensor) -> Tensor:
    inverse, turned = op.outputs[0], op.get_attr("adjoint")
    inner = matmul(grad, inverse, adjoint_a=turned, adjoint_b=not turned)
    return -matmul(inverse, inner, adjoint_a=not turned)


@export("matrix_inverse", "linalg.inv")
def matrix_inverse(input: TensorLike, adjoint: bool = False, name: str | None = None) -> Tensor:
    """The inverses of square matrices, or of their conjugate transposes."""
    return apply("MatrixInverse", input, adjoint=adjoint, name=name)


# -- determinants --------------------------------------------------------------------------------------


@op(
    "MatrixDeterminant",
    "input: T -> output: T",
    TYPES,
    shape=number_per_matrix,
    examples=[case(_A), case(_BATCH), case(_COMPLEX, grad=False), case(_EMPTY)],
)
@in_one_thread
def _matrix_determinant(xp: ArrayModule, x: Array) -> Array:
    need_square(x)
    result: Array = by_matrix(xp, xp.linalg.det, wide(x)).astype(x.dtype)
    return result


@gradient("MatrixDeterminant")
def _matrix_determinant_grad(op: Operation, grad: Tensor) -> Tensor:
    inverse = apply("MatrixInverse", op.inputs[0], adjoint=True)
    return _per_matrix(grad * op.outputs[0], op.outputs[0]) * inverse


def _per_matrix(numbers: Tensor, like: Tensor) -> Tensor:
    """A number per matrix, as a matrix of one element."""
    return apply("Reshape", numbers, apply("ConcatV2", [apply("Shape", like), [1, 1]], 0, name="concat"))


@export("matrix_determinant", "linalg.det")
def matrix_determinant(input: TensorLike, name: str | None = None) -> Tensor:
    """The determinants of square matrices."""
    return apply("MatrixDeterminant", input, name=name)


@op(
    "LogMatrixDeterminant",
    "input: T -> sign: T, log_abs_determinant: T",
    TYPES,
    shape=lambda op: [number_per_matrix(op)] * 2,
    examples=[case(_A), case(_BATCH), case(_COMPLEX, grad=False), case(_EMPTY)],
)
@in_one_thread
def _log_matrix_determinant(xp: ArrayModule, x: Array) -> tuple[Array, Array]:
    need_square(x)
    sign, size = by_matrix(xp, xp.linalg.slogdet, wide(x))
    return sign.astype(x.dtype), size.astype(x.dtype)


@gradient("LogMatrixDeterminant")
def _log_matrix_determinant_grad(op: Operation, _: Tensor, grad: Tensor) -> Tensor:
    inverse = apply("MatrixInverse", op.inputs[0], adjoint=True)
    return _per_matrix(grad, op.outputs[1]) * inverse


class LogMatrixDeterminant(NamedTuple):
    """What `tf.linalg.slogdet` gives."""

    sign: Tensor
    log_abs_determinant: Tensor


@export("linalg.slogdet")
def slogdet(input: TensorLike, name: str | None = None) -> LogMatrixDeterminant:
    """The signs of determinants, and the logarithms of their sizes."""
    return LogMatrixDeterminant(*apply_list("LogMatrixDeterminant", input, name=name))


@export("linalg.logdet")
def logdet(matrix: TensorLike, name: str | None = None) -> Tensor:
    """The logarithm of the determinants of positive definite matrices."""
    with name_scope(name, "logdet", [matrix]):
        diagonal = matrix_diag_part(cholesky(matrix))
        return 2.0 * reduce_sum(apply("Log", diagonal), [-1])


# -- equations -----------------------------------------------------------------------------------------


@op(
    "MatrixSolve",
    "matrix: T, rhs: T -> output: T",
    f"adjoint: bool = false; {TYPES}",
    shape=solution,
    examples=[
        case(_A, _RHS),
        case(_A, _RHS, adjoint=True),
        case(_BATCH, np.stack([_RHS, _RHS]).astype(np.float32)),
        case(_COMPLEX, _COMPLEX, adjoint=True, grad=False),
        case(_EMPTY, _EMPTY),
    ],
)
@in_one_thread
def _matrix_solve(xp: ArrayModule, a: Array, b: Array, *, adjoint: bool, check: Check) -> Array:
    need_rhs(a, b)
    solved = _solved(xp, wide(adjoint_of(xp, a) if adjoint else a), wide(b))
    check(xp.isfinite(solved), lambda: "Input matrix is not invertible.")
    return solved.astype(b.dtype)


@gradient("MatrixSolve")
def _matrix_solve_grad(op: Operation, grad: Tensor) -> tuple[Tensor, Tensor]:
    turned = op.get_attr("adjoint")
    db = apply("MatrixSolve", op.inputs[0], grad, adjoint=not turned)
    return _grad_of_matrix(op.outputs[0], db, turned), db


def _grad_of_matrix(x: Tensor, db: Tensor, turned: bool) -> Tensor:
    return -(matmul(x, db, adjoint_b=True) if turned else matmul(db, x, adjoint_b=True))


@export("matrix_solve", "linalg.solve")
def matrix_solve(
    matrix: TensorLike, rhs: TensorLike, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """The x in `matrix x = rhs`, for square matrices."""
    return apply("MatrixSolve", matrix, rhs, adjoint=adjoint, name=name)


@op(
    "MatrixTriangularSolve",
    "matrix: T, rhs: T -> output: T",
    "lower: bool = true; adjoint: bool = false; T: {bfloat16, double, float, half, complex64, complex128}",
    shape=solution,
    examples=[
        case(_A, _RHS),
        case(_A, _RHS, lower=False, adjoint=True),
        case(_BATCH, np.stack([_RHS, _RHS]).astype(np.float32), adjoint=True),
        case(_COMPLEX, _COMPLEX, lower=False, grad=False),
    ],
)
@in_one_thread
def _matrix_triangular_solve(
    xp: ArrayModule, a: Array, b: Array, *, lower: bool, adjoint: bool, check: Check
) -> Array:
    need_rhs(a, b)
    pivots = xp.diagonal(a, axis1=-2, axis2=-1)
    check(pivots != 0, lambda: "Input matrix is not invertible.")
    if is_numpy(xp):
        triangle = wide(xp.tril(a) if lower else xp.triu(a))
        solved = _solved(xp, adjoint_of(xp, triangle) if adjoint else triangle, wide(b))
    else:
        from jax.lax import linalg

        # Turned around, since LAPACK has columns where we have rows: XLA need not copy anything. It would if the other
        # triangle were cleared first, which LAPACK does not read.
        turned = linalg.triangular_solve(
            xp.swapaxes(wide(a), -1, -2),
            xp.swapaxes(wide(b), -1, -2),
            left_side=False,
            lower=not lower,
            transpose_a=adjoint,
            conjugate_a=adjoint,
        )
        # As one row of numbers it has one layout only, and turning it back is no work. Otherwise XLA turns it twice over.
        solved = stored(xp, xp.swapaxes(turned, -1, -2).reshape(-1)).reshape(b.shape)
    return solved.astype(b.dtype)


@gradient("MatrixTriangularSolve")
def _matrix_triangular_solve_grad(op: Operation, grad: Tensor) -> tuple[Tensor, Tensor]:
    lower, turned = op.get_attr("lower"), op.get_attr("adjoint")
    db = matrix_triangular_solve(op.inputs[0], grad, lower=lower, adjoint=not turned)
    da = _grad_of_matrix(op.outputs[0], db, turned)
    return (matrix_band_part(da, -1, 0) if lower else matrix_band_part(da, 0, -1)), db


@export("matrix_triangular_solve", "linalg.triangular_solve")
def matrix_triangular_solve(
    matrix: TensorLike, rhs: TensorLike, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """The x in `matrix x = rhs`, where only the lower (or upper) triangle of `matrix` is looked at."""
    with name_scope(name, "triangular_solve", [matrix, rhs]):
        return apply("MatrixTriangularSolve", matrix, rhs, lower=lower, adjoint=adjoint)


@export("cholesky_solve", "linalg.cholesky_solve")
def cholesky_solve(chol: TensorLike, rhs: TensorLike, name: str | None = None) -> Tensor:
    """The x in `A x = rhs`, given A's Cholesky root."""
    with name_scope(name, "cholesky_solve", [chol, rhs]):
        y = apply("MatrixTriangularSolve", chol, rhs, adjoint=False, lower=True)
        return apply("MatrixTriangularSolve", chol, y, adjoint=True, lower=True)
