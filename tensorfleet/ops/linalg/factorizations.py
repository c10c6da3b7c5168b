"""Factorizations of matrices. All but QR and the singular values read the lower triangle only."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, ArrayModule, TensorLike
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.gradients import vjp
from tensorfleet.graph.kernel_types import Check
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import Gradient, gradient, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.kernels.arrays import is_numpy
from tensorfleet.kernels.lapack import linalg
from tensorfleet.kernels.openblas import by_matrix, in_one_thread
from tensorfleet.ops.array.constructors import eye
from tensorfleet.ops.array.diagonals import matrix_band_part, matrix_diag_part, matrix_set_diag
from tensorfleet.ops.array.transpose import matrix_transpose
from tensorfleet.ops.elementwise import wide
from tensorfleet.ops.linalg.matmul import matmul
from tensorfleet.ops.linalg.shapes import (
    TYPES,
    adjoint_of,
    matrices,
    need_matrices,
    need_square,
    same_size,
    square_like,
)
from tensorfleet.ops.samples import case

_TALL = np.array([[2.0, 1.0], [1.0, 3.0], [0.5, 1.0]])
_POSITIVE = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
_HERMITIAN = np.array([[4.0, 1.0 - 1j], [1.0 + 1j, 3.0]])
_EMPTY = np.zeros([0, 2, 2], np.float32)


def _symmetric(xp: ArrayModule, a: Array) -> Any:
    """The matrices that the lower triangles stand for."""
    return xp.tril(a) + adjoint_of(xp, xp.tril(a, -1))


# -- QR ------------------------------------------------------------------------------------------------


def _qr_shape(op: Operation) -> list[TensorShape]:
    dims = matrices(op._inputs[0].shape)
    if dims is None:
        return [TensorShape(None), TensorShape(None)]
    batch, m, n = dims
    small = None if m is None or n is None else min(m, n)
    if op._attrs["full_matrices"]:
        return [TensorShape([*batch, m, m]), TensorShape([*batch, m, n])]
    return [TensorShape([*batch, m, small]), TensorShape([*batch, small, n])]


@op(
    "Qr",
    "input: T -> q: T, r: T",
    f"full_matrices: bool = false; {TYPES}",
    shape=_qr_shape,
    examples=[case(_TALL, grad=False), case(_TALL.astype(np.float32), full_matrices=True, grad=False)],
)
@in_one_thread
def _qr(xp: ArrayModule, x: Array, *, full_matrices: bool) -> tuple[Array, Array]:
    need_matrices(x)
    mode = "complete" if full_matrices else "reduced"
    q, r = by_matrix(xp, partial(xp.linalg.qr, mode=mode), wide(x))
    return q.astype(x.dtype), r.astype(x.dtype)


class Qr(NamedTuple):
    """What `tf.qr` gives."""

    q: Tensor
    r: Tensor


@export("qr", "linalg.qr")
def qr(input: TensorLike, full_matrices: bool = False, name: str | None = None) -> Qr:
    """(q, r) with `input = q r`, q's columns orthonormal, r upper triangular."""
    return Qr(*apply_list("Qr", input, full_matrices=full_matrices, name=name))


# -- Cholesky ------------------------------------------------------------------------------------------


@op(
    "Cholesky",
    "input: T -> output: T",
    TYPES,
    shape=square_like,
    examples=[
        case(_POSITIVE, grad=False),
        case(np.stack([_POSITIVE, 2 * _POSITIVE]).astype(np.float32), grad=False),
        case(_HERMITIAN, grad=False),
        case(_EMPTY),
    ],
)
@in_one_thread
def _cholesky(xp: ArrayModule, x: Array, *, check: Check) -> Array:
    need_square(x)
    a = wide(x)
    if is_numpy(xp):
        try:
            root = by_matrix(np, linalg(np).cholesky, a)
        except np.linalg.LinAlgError:
            root = np.full_like(a, np.nan)
    else:
        root = xp.linalg.cholesky(_symmetric(xp, a))
    check(
        xp.isfinite(root), lambda: "Cholesky decomposition was not successful. The input might not be valid."
    )
    result: Array = root.astype(x.dtype)
    return result


@gradient("Cholesky")
def _cholesky_grad(op: Operation, grad: Tensor) -> Tensor:
    root = op.outputs[0]
    shape = apply("Shape", root)
    rows = apply("StridedSlice", shape, [-1], [0], [1], shrink_axis_mask=1)
    batch = apply("StridedSlice", shape, [0], [-2], [1], begin_mask=1)
    with name_scope("triangular_solve"):
        inverse = apply("MatrixTriangularSolve", root, eye(rows, batch_shape=batch, dtype=root.dtype))
    middle = matmul(root, grad, adjoint_a=True)
    middle = matrix_band_part(matrix_set_diag(middle, 0.5 * matrix_diag_part(middle)), -1, 0)
    half = matmul(matmul(inverse, middle, adjoint_a=True), inverse)
    return (half + adjoint(half)) * 0.5


@op(
    "CholeskyGrad",
    "l: T, grad: T -> output: T",
    "T: {half, float, double}",
    shape=square_like,
    examples=[
        case(np.linalg.cholesky(_POSITIVE), _POSITIVE + 1.0, grad=False),
        case(_EMPTY, _EMPTY, grad=False),
    ],
)
@in_one_thread
def _cholesky_grad_op(xp: ArrayModule, root: Array, grad: Array) -> Array:
    need_square(root)
    wide_root = wide(xp.tril(root))
    inverse = by_matrix(xp, linalg(xp).inv, wide_root)
    middle = xp.tril(xp.matmul(adjoint_of(xp, wide_root), wide(grad)))
    middle = middle - middle * xp.eye(root.shape[-1], dtype=middle.dtype) / 2
    half = xp.matmul(xp.matmul(adjoint_of(xp, inverse), middle), inverse)
    return ((half + adjoint_of(xp, half)) / 2).astype(root.dtype)


@export("cholesky", "linalg.cholesky")
def cholesky(input: TensorLike, name: str | None = None) -> Tensor:
    """The lower triangular root of positive definite matrices: `input = root root^H`."""
    return apply("Cholesky", input, name=name)


# -- eigenvalues ---------------------------------------------------------------------------------------


def _eigen_shape(op: Operation) -> list[TensorShape]:
    vectors = square_like(op) if op._attrs["compute_v"] else TensorShape([0])
    dims = matrices(op._inputs[0].shape)
    if dims is None:
        return [TensorShape(None), vectors]
    batch, m, n = dims
    return [TensorShape([*batch, same_size(m, n)]), vectors]


@op(
    "SelfAdjointEigV2",
    "input: T -> e: T, v: T",
    f"compute_v: bool = true; {TYPES}",
    shape=_eigen_shape,
    examples=[
        case(_POSITIVE, compute_v=False),
        case(_POSITIVE.astype(np.float32), grad=False),
        case(_HERMITIAN, compute_v=False, grad=False),
        case(_EMPTY, compute_v=False),
    ],
)
@in_one_thread
def _self_adjoint_eig(xp: ArrayModule, x: Array, *, compute_v: bool, check: Check) -> tuple[Array, Array]:
    need_square(x)
    a = wide(x) if is_numpy(xp) else _symmetric(xp, wide(x))  # numpy's LAPACK reads the lower triangle only
    vectors = xp.zeros([0], x.dtype)
    if compute_v:
        values, vectors = by_matrix(xp, linalg(xp).eigh, a)
    else:
        values = by_matrix(xp, linalg(xp).eigvalsh, a)
    check(
        xp.isfinite(values),
        lambda: "Self-adjoint eigen decomposition was not successful. The input might not be valid.",
    )
    return values.astype(x.dtype), vectors.astype(x.dtype)


@gradient("SelfAdjointEigV2")
def _self_adjoint_eig_grad(op: Operation, de: Tensor, dv: Tensor) -> Tensor:
    if op.get_attr("compute_v"):
        e, v = op.outputs
        gaps = apply("ExpandDims", e, -2) - apply("ExpandDims", e, -1)
        shares = matrix_set_diag(apply("Reciprocal", gaps), apply("ZerosLike", e))
        inner = apply("MatrixDiag", de) + shares * matmul(v, dv, adjoint_a=True)
    else:
        e, v = apply_list("SelfAdjointEigV2", op.inputs[0])
        inner = apply("MatrixDiag", de)
    whole = matmul(v, matmul(inner, v, adjoint_b=True))
    # The upper triangle is not looked at: its share goes to the lower one.
    lower = matrix_band_part(whole + adjoint(whole), -1, 0)
    return matrix_set_diag(lower, 0.5 * matrix_diag_part(lower))


@export("self_adjoint_eig", "linalg.eigh")
def self_adjoint_eig(tensor: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Eigenvalues of self-adjoint matrices, in ascending order, and their eigenvectors as columns."""
    values, vectors = apply_list("SelfAdjointEigV2", tensor, compute_v=True, name=name)
    return values, vectors


@export("self_adjoint_eigvals", "linalg.eigvalsh")
def self_adjoint_eigvals(tensor: TensorLike, name: str | None = None) -> Tensor:
    """Eigenvalues of self-adjoint matrices, in ascending order."""
    return apply_list("SelfAdjointEigV2", tensor, compute_v=False, name=name)[0]


# -- singular values -----------------------------------------------------------------------------------


def _svd_shape(op: Operation) -> list[TensorShape]:
    dims = matrices(op._inputs[0].shape)
    vectors = op._attrs["compute_uv"]
    if dims is None:
        other = TensorShape(None) if vectors else TensorShape([0])
        return [TensorShape(None), other, other]
    batch, m, n = dims
    small = None if m is None or n is None else min(m, n)
    values = TensorShape([*batch, small])
    if not vectors:
        return [values, TensorShape([0]), TensorShape([0])]
    full = op._attrs["full_matrices"]
    return [
        values,
        TensorShape([*batch, m, m if full else small]),
        TensorShape([*batch, n, n if full else small]),
    ]


@op(
    "Svd",
    "input: T -> s: T, u: T, v: T",
    f"compute_uv: bool = true; full_matrices: bool = false; {TYPES}",
    shape=_svd_shape,
    examples=[
        case(_TALL, compute_uv=False),
        case(_TALL.T.astype(np.float32), grad=False),
        case(_TALL, full_matrices=True, grad=False),
        case(_HERMITIAN, compute_uv=False, grad=False),
        case(_EMPTY, compute_uv=False),
    ],
)
@in_one_thread
def _svd(xp: ArrayModule, x: Array, *, compute_uv: bool, full_matrices: bool) -> tuple[Array, Array, Array]:
    need_matrices(x)
    finite = xp.isfinite(x).all((-2, -1), keepdims=True)
    a = xp.where(finite, wide(x), 0)  # with an infinity, LAPACK may never come to an end

    def known(factor: Array) -> Array:
        return xp.where(finite, factor, np.nan).astype(x.dtype)

    if compute_uv:
        u, s, vh = by_matrix(xp, partial(linalg(xp).svd, full_matrices=full_matrices), a)
        return known(s[..., None])[..., 0], known(u), known(adjoint_of(xp, vh))
    s = by_matrix(xp, partial(linalg(xp).svd, compute_uv=False), a)
    none = xp.zeros([0], x.dtype)
    return known(s[..., None])[..., 0], none, none


@gradient("Svd")
def _svd_grad(op: Operation, ds: Tensor, du: Tensor, dv: Tensor) -> Tensor | Sequence[Gradient]:
    x = op.inputs[0]
    if op.get_attr("compute_uv"):
        return vjp(op, ds, du, dv)
    _, u, v = apply_list("Svd", x, compute_uv=True, full_matrices=False)
    return matmul(u, matmul(apply("MatrixDiag", ds), v, adjoint_b=True))


@export("svd", "linalg.svd")
def svd(
    tensor: TensorLike, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None
) -> Any:
    """Singular values in descending order, with the left and right vectors as columns unless told not to."""
    s, u, v = apply_list("Svd", tensor, compute_uv=compute_uv, full_matrices=full_matrices, name=name)
    if s.dtype.is_complex:
        s = apply("Real", s, Tout=s.dtype.real_dtype)
    return (s, u, v) if compute_uv else s


@export("linalg.adjoint")
def adjoint(matrix: TensorLike, name: str | None = None) -> Tensor:
    """The conjugate transpose of each matrix."""
    with name_scope(name, "adjoint", [matrix]):
        return matrix_transpose(to_tensor(matrix, name="matrix"), conjugate=True)
