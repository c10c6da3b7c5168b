"""Inverses, determinants, and systems of linear equations."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tensorfleet.api import export, find
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array_build import eye
from tensorfleet.ops.array_diag import matrix_band_part, matrix_diag_part
from tensorfleet.ops.common import is_numpy
from tensorfleet.ops.elementwise import wide
from tensorfleet.ops.examples import case
from tensorfleet.ops.linalg import cholesky
from tensorfleet.ops.linalg_shapes import (
    TYPES,
    adjoint_of,
    need_rhs,
    need_square,
    number_per_matrix,
    solution,
    square_like,
)
from tensorfleet.ops.matmul import matmul
from tensorfleet.ops.openblas import in_one_thread
from tensorfleet.ops.reduce import reduce_sum

_A = np.array([[4.0, 1.0, 0.5], [-1.0, 3.0, 0.2], [0.5, 0.7, -2.0]])
_BATCH = np.stack([_A, 2 * _A.T]).astype(np.float32)
_COMPLEX = np.array([[2.0 + 1j, 1.0], [0.5j, 3.0]])
_RHS = np.array([[1.0, 2.0], [-0.5, 0.3], [0.2, 1.0]])
_EMPTY = np.zeros([0, 2, 2], np.float32)


def _solved(xp: Any, a: Any, b: Any) -> Any:
    """The solution of `a x = b`, NaN where there is none."""
    if not is_numpy(xp):
        return xp.linalg.solve(a, b)
    try:
        return np.linalg.solve(a, b)
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
def _matrix_inverse(xp: Any, x: Any, *, adjoint: bool, check: Any) -> Any:
    need_square(x)
    a = wide(adjoint_of(xp, x) if adjoint else x)
    inverse = _solved(xp, a, xp.broadcast_to(xp.eye(a.shape[-1], dtype=a.dtype), a.shape))
    check(xp.isfinite(inverse), lambda: "Input is not invertible.")
    return inverse.astype(x.dtype)


@gradient("MatrixInverse")
def _matrix_inverse_grad(op: Operation, grad: Any) -> Any:
    inverse, turned = op.outputs[0], op.get_attr("adjoint")
    inner = matmul(grad, inverse, adjoint_a=turned, adjoint_b=not turned)
    return -matmul(inverse, inner, adjoint_a=not turned)


@export("matrix_inverse", "linalg.inv")
def matrix_inverse(input: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
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
def _matrix_determinant(xp: Any, x: Any) -> Any:
    need_square(x)
    return xp.linalg.det(wide(x)).astype(x.dtype)


@gradient("MatrixDeterminant")
def _matrix_determinant_grad(op: Operation, grad: Any) -> Any:
    inverse = apply("MatrixInverse", op.inputs[0], adjoint=True)
    return _per_matrix(grad * op.outputs[0], op.outputs[0]) * inverse


def _per_matrix(numbers: Tensor, like: Tensor) -> Tensor:
    """A number per matrix, as a matrix of one element."""
    return apply("Reshape", numbers, apply("ConcatV2", [apply("Shape", like), [1, 1]], 0, name="concat"))


@export("matrix_determinant", "linalg.det")
def matrix_determinant(input: Any, name: str | None = None) -> Tensor:
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
def _log_matrix_determinant(xp: Any, x: Any) -> Any:
    need_square(x)
    sign, size = xp.linalg.slogdet(wide(x))
    return sign.astype(x.dtype), size.astype(x.dtype)


@gradient("LogMatrixDeterminant")
def _log_matrix_determinant_grad(op: Operation, _: Any, grad: Any) -> Any:
    inverse = apply("MatrixInverse", op.inputs[0], adjoint=True)
    return _per_matrix(grad, op.outputs[1]) * inverse


class LogMatrixDeterminant(NamedTuple):
    """What `tf.linalg.slogdet` gives."""

    sign: Tensor
    log_abs_determinant: Tensor


@export("linalg.slogdet")
def slogdet(input: Any, name: str | None = None) -> LogMatrixDeterminant:
    """The signs of determinants, and the logarithms of their sizes."""
    return LogMatrixDeterminant(*apply("LogMatrixDeterminant", input, name=name))


@export("linalg.logdet")
def logdet(matrix: Any, name: str | None = None) -> Tensor:
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
def _matrix_solve(xp: Any, a: Any, b: Any, *, adjoint: bool, check: Any) -> Any:
    need_rhs(a, b)
    found = _solved(xp, wide(adjoint_of(xp, a) if adjoint else a), wide(b))
    check(xp.isfinite(found), lambda: "Input matrix is not invertible.")
    return found.astype(b.dtype)


@gradient("MatrixSolve")
def _matrix_solve_grad(op: Operation, grad: Any) -> Any:
    turned = op.get_attr("adjoint")
    db = apply("MatrixSolve", op.inputs[0], grad, adjoint=not turned)
    return _grad_of_matrix(op.outputs[0], db, turned), db


def _grad_of_matrix(x: Tensor, db: Tensor, turned: bool) -> Tensor:
    return -(matmul(x, db, adjoint_b=True) if turned else matmul(db, x, adjoint_b=True))


@export("matrix_solve", "linalg.solve")
def matrix_solve(matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """x in `matrix x = rhs`, for square matrices."""
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
def _matrix_triangular_solve(xp: Any, a: Any, b: Any, *, lower: bool, adjoint: bool, check: Any) -> Any:
    need_rhs(a, b)
    triangle = wide(xp.tril(a) if lower else xp.triu(a))
    pivots = xp.diagonal(triangle, axis1=-2, axis2=-1)
    check(pivots != 0, lambda: "Input matrix is not invertible.")
    if is_numpy(xp):
        found = _solved(xp, adjoint_of(xp, triangle) if adjoint else triangle, wide(b))
    else:
        from jax.lax import linalg

        # Turned around, since LAPACK has columns where we have rows: XLA need not copy anything.
        turned = linalg.triangular_solve(
            xp.swapaxes(triangle, -1, -2),
            xp.swapaxes(wide(b), -1, -2),
            left_side=False,
            lower=not lower,
            transpose_a=adjoint,
            conjugate_a=adjoint,
        )
        found = xp.swapaxes(turned, -1, -2)
    return found.astype(b.dtype)


@gradient("MatrixTriangularSolve")
def _matrix_triangular_solve_grad(op: Operation, grad: Any) -> Any:
    lower, turned = op.get_attr("lower"), op.get_attr("adjoint")
    db = matrix_triangular_solve(op.inputs[0], grad, lower=lower, adjoint=not turned)
    da = _grad_of_matrix(op.outputs[0], db, turned)
    return (matrix_band_part(da, -1, 0) if lower else matrix_band_part(da, 0, -1)), db


@export("matrix_triangular_solve", "linalg.triangular_solve")
def matrix_triangular_solve(
    matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """x in `matrix x = rhs`, where only the lower (or upper) triangle of `matrix` is looked at."""
    with name_scope(name, "triangular_solve", [matrix, rhs]):
        return apply("MatrixTriangularSolve", matrix, rhs, lower=lower, adjoint=adjoint)


@export("cholesky_solve", "linalg.cholesky_solve")
def cholesky_solve(chol: Any, rhs: Any, name: str | None = None) -> Tensor:
    """x in `A x = rhs`, given A's Cholesky root."""
    with name_scope(name, "cholesky_solve", [chol, rhs]):
        y = apply("MatrixTriangularSolve", chol, rhs, adjoint=False, lower=True)
        return apply("MatrixTriangularSolve", chol, y, adjoint=True, lower=True)


@export("matrix_solve_ls", "linalg.lstsq")
def matrix_solve_ls(
    matrix: Any, rhs: Any, l2_regularizer: Any = 0.0, fast: bool = True, name: str | None = None
) -> Tensor:
    """x that minimizes `|matrix x - rhs|² + l2_regularizer |x|²`; the smallest when there are several.

    `fast` solves the normal equations. Without it singular values are used, which also copes with
    matrices that have (nearly) dependent columns.
    """
    with name_scope(name, "matrix_solve_ls", [matrix, rhs, l2_regularizer]):
        matrix, rhs = to_tensor(matrix, name="matrix"), to_tensor(rhs, name="rhs")
        rank = matrix.shape.with_rank_at_least(2).rank
        rows, columns = (None, None) if rank is None else matrix.shape.as_list()[-2:]
        if not fast:
            return _by_singular_values(matrix, rhs, l2_regularizer)
        if rows is not None and columns is not None:
            return _normal_equations(matrix, rhs, l2_regularizer, rows >= columns)
        sizes = apply("Shape", matrix)
        return find("cond")(
            sizes[-2] >= sizes[-1],
            lambda: _normal_equations(matrix, rhs, l2_regularizer, True),
            lambda: _normal_equations(matrix, rhs, l2_regularizer, False),
        )


def _normal_equations(matrix: Tensor, rhs: Tensor, l2: Any, tall: bool) -> Tensor:
    gram = matmul(matrix, matrix, adjoint_a=tall, adjoint_b=not tall)
    if isinstance(l2, Tensor) or l2 != 0.0:
        weight = apply("Cast", to_tensor(l2), DstT=matrix.dtype)
        known = matrix.shape.as_list()[-1 if tall else -2] if matrix.shape.rank else None
        size = apply("Shape", matrix)[-1 if tall else -2] if known is None else known
        gram += weight * eye(size, dtype=matrix.dtype)
    root = cholesky(gram)
    if tall:
        return cholesky_solve(root, matmul(matrix, rhs, adjoint_a=True))
    return matmul(matrix, cholesky_solve(root, rhs), adjoint_a=True)


def _by_singular_values(matrix: Tensor, rhs: Tensor, l2: Any) -> Tensor:
    s, u, v = apply("Svd", matrix, compute_uv=True, full_matrices=False)
    longer = apply("Max", apply("Shape", matrix)[-2:], [0])
    epsilon = np.finfo(matrix.dtype.real_dtype.as_numpy_dtype).eps
    limit = apply("Cast", longer, DstT=matrix.dtype.real_dtype) * epsilon
    size = apply("Abs", s) if not s.dtype.is_complex else apply("ComplexAbs", s, Tout=s.dtype.real_dtype)
    largest = apply("Max", size, [-1], keep_dims=True)
    weight = apply("Cast", to_tensor(l2), DstT=size.dtype)
    kept = apply("SelectV2", size > limit * largest, size / (size * size + weight), apply("ZerosLike", size))
    scaled = apply("ExpandDims", apply("Cast", kept, DstT=matrix.dtype), -1) * matmul(u, rhs, adjoint_a=True)
    return matmul(v, scaled)
