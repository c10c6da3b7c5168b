"""Equations with more rows than unknowns, or fewer: `tf.matrix_solve_ls`."""

from __future__ import annotations

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.kernels.lapack import linalg
from tensorfleet.ops.array.constructors import eye
from tensorfleet.ops.control.cond import cond
from tensorfleet.ops.linalg.factorizations import cholesky
from tensorfleet.ops.linalg.matmul import matmul
from tensorfleet.ops.linalg.shapes import TYPES
from tensorfleet.ops.linalg.solve import cholesky_solve
from tensorfleet.ops.samples import case

_TALL = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]])
_RHS = np.array([[1.0], [2.0], [4.0]])


def _solution_shape(op: Operation) -> TensorShape:
    a, b = (t.shape.with_rank_at_least(2) for t in op._inputs[:2])
    if a.rank is None or b.rank is None:
        return TensorShape(None)
    *batch, rows, columns = a.as_list()
    *other, known, sides = b.as_list()
    TensorShape([rows]).assert_is_compatible_with([known])
    return TensorShape(batch).merge_with(other).concatenate([columns, sides])


@op(
    "MatrixSolveLs",
    "matrix: T[2+], rhs: T[2+], l2_regularizer: double[0] -> output: T",
    f"{TYPES}; fast: bool = true",
    shape=_solution_shape,
    host=True,
    examples=[
        case(_TALL, _RHS, np.float64(0)),
        case(_TALL, _RHS, np.float64(0.5)),
        case(_TALL.T.copy(), _RHS[:2], np.float64(0.1)),
        case(
            np.stack([_TALL, _TALL + 1]).astype(np.float32),
            np.stack([_RHS, _RHS]).astype(np.float32),
            np.float64(0),
            grad=False,
        ),
        case(np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]), _RHS, np.float64(0), fast=False, grad=False),
    ],
)
def _matrix_solve_ls(ctx: HostContext, a: Array, b: Array, l2: Array, *, fast: bool) -> Array:
    if not fast:
        return (np.linalg.pinv(a) @ b).astype(b.dtype)
    rows, columns = a.shape[-2:]
    turned = np.conj(np.swapaxes(a, -1, -2))
    tall = rows >= columns
    gram = (turned @ a if tall else a @ turned) + a.dtype.type(l2) * np.eye(min(rows, columns), dtype=a.dtype)
    try:
        linalg(np).cholesky(gram)  # which tells of matrices that are not positive
        solution = linalg(np).solve(gram, turned @ b if tall else b)
    except np.linalg.LinAlgError:
        raise errors.invalid(
            "Input matrix was rank deficient or ill-conditioned. Try setting fast=False or provide a larger "
            "l2_regularizer > 0."
        ) from None
    result: Array = solution if tall else turned @ solution
    return result


def _sizes(matrix: Tensor) -> tuple[int | None, int | None]:
    """How many rows and columns a matrix has, as far as that is known."""
    shape = matrix.shape.with_rank_at_least(2)
    rows, columns = shape.as_list()[-2:] if shape.rank is not None else (None, None)
    return rows, columns


@gradient("MatrixSolveLs")
def _matrix_solve_ls_grad(op: Operation, grad: Tensor) -> list[Tensor | None]:
    if not op.get_attr("fast"):
        raise ValueError("Gradient not defined for fast=False")
    a, b, l2 = op.inputs
    rows, columns = _sizes(a)
    if rows is not None and columns is not None:
        way = _tall_grad if rows >= columns else _wide_grad
        return [*way(a, b, l2, op.outputs[0], grad), None]
    sizes = apply("Shape", a)[-2:]
    both = cond(
        sizes[0] >= sizes[1],
        lambda: _tall_grad(a, b, l2, op.outputs[0], grad),
        lambda: _wide_grad(a, b, l2, op.outputs[0], grad),
    )
    return [*both, None]


def _root(a: Tensor, l2: TensorLike, tall: bool) -> Tensor:
    """The Cholesky root of the regularized Gramian."""
    gram = matmul(a, a, adjoint_a=tall, adjoint_b=not tall)
    if isinstance(l2, Tensor) or l2 != 0.0:
        size = apply("Shape", gram)[-1]
        gram += apply("Cast", to_tensor(l2), DstT=a.dtype) * eye(size, dtype=a.dtype)
    return cholesky(gram)


def _tall_grad(a: Tensor, b: Tensor, l2: Tensor, x: Tensor, grad: Tensor) -> list[Tensor]:
    z = cholesky_solve(_root(a, l2, True), grad)
    both = matmul(x, z, adjoint_b=True)
    both += matmul(z, x, adjoint_b=True)
    return [matmul(b, z, adjoint_b=True) - matmul(a, both), matmul(a, z)]


def _wide_grad(a: Tensor, b: Tensor, l2: Tensor, x: Tensor, grad: Tensor) -> list[Tensor]:
    root = _root(a, l2, False)
    db = cholesky_solve(root, matmul(a, grad))
    solved = cholesky_solve(root, b)
    inside = matmul(db, matmul(solved, a, adjoint_a=True))
    outside = matmul(solved, grad - matmul(a, db, adjoint_a=True), adjoint_b=True)
    return [outside - inside, db]


@export("matrix_solve_ls", "linalg.lstsq")
def matrix_solve_ls(
    matrix: TensorLike,
    rhs: TensorLike,
    l2_regularizer: TensorLike = 0.0,
    fast: bool = True,
    name: str | None = None,
) -> Tensor:
    """The x that minimizes `|matrix x - rhs|² + l2_regularizer |x|²`; the smallest when there are several.

    `fast` solves the normal equations. Without it the matrix may have (nearly) dependent columns; then
    `l2_regularizer` does not count, and there is no gradient.
    """
    with name_scope(name, "matrix_solve_ls", [matrix, rhs, l2_regularizer]):
        matrix = to_tensor(matrix, name="matrix")
        rhs = to_tensor(rhs, matrix.dtype, name="rhs")
        rows, columns = _sizes(matrix)
        if not fast or rows is None or columns is None:
            return apply("MatrixSolveLs", matrix, rhs, l2_regularizer, fast=fast)
        return _normal_equations(matrix, rhs, l2_regularizer, rows >= columns)


def _normal_equations(matrix: Tensor, rhs: Tensor, l2: TensorLike, tall: bool) -> Tensor:
    root = _root(matrix, l2, tall)
    if tall:
        return cholesky_solve(root, matmul(matrix, rhs, adjoint_a=True))
    return matmul(matrix, cholesky_solve(root, rhs), adjoint_a=True)
