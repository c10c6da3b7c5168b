"""What is built from products and factorizations: traces, ranks, pseudoinverses, and the cross product."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, ArrayModule, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.diagonals import matrix_diag_part
from tensorfleet.ops.linalg.factorizations import svd
from tensorfleet.ops.linalg.matmul import matmul
from tensorfleet.ops.math.reduce_functions import reduce_sum
from tensorfleet.ops.samples import case

_A = np.array([[1.0, 2.0, -0.5], [0.3, -1.0, 2.0]])


def _cross_shape(op: Operation) -> TensorShape:
    a, b = op._inputs[0].shape, op._inputs[1].shape
    if a.rank is not None and b.rank is not None and a.rank != b.rank:
        raise ValueError(f"Shapes must be equal rank, but are {a.rank} and {b.rank}")
    shape = a.merge_with(b)
    if shape.rank == 0:
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    if shape.rank is not None and shape.as_list()[-1] not in (None, 3):
        raise ValueError(f"Dimension must be 3 but is {shape.as_list()[-1]}")
    return shape


@op(
    "Cross",
    "a: T[1+], b: T[1+] -> product: T",
    "T: real",
    shape=_cross_shape,
    examples=[case(_A, _A[::-1].copy()), case(np.array([1, 2, 3], np.int32), np.array([3, 5, 7], np.int32))],
)
def _cross(xp: ArrayModule, a: Array, b: Array) -> Array:
    if a.shape != b.shape:
        raise errors.invalid(f"Both inputs must be of same shape: {a.shape} vs. {b.shape}")
    if a.ndim < 1 or a.shape[-1] != 3:
        text = "Cross-products are only defined for 3-element vectors."
        raise errors.FailedPreconditionError(None, None, text)
    (a0, a1, a2), (b0, b1, b2) = (tuple(x[..., i] for i in range(3)) for x in (a, b))
    return xp.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], axis=-1)


gradient("Cross")(lambda op, grad: (apply("Cross", op.inputs[1], grad), apply("Cross", grad, op.inputs[0])))


@export("cross", "linalg.cross")
def cross(a: TensorLike, b: TensorLike, name: str | None = None) -> Tensor:
    """The cross products of vectors of three elements, in the last dimension."""
    return apply("Cross", a, b, name=name)


@export("trace", "linalg.trace")
def trace(x: TensorLike, name: str | None = None) -> Tensor:
    """The sum of each matrix's main diagonal."""
    with name_scope(name, "Trace", [x]) as scope:
        return reduce_sum(matrix_diag_part(to_tensor(x, name="x")), [-1], name=scope)


@export("linalg.matrix_rank")
def matrix_rank(
    a: TensorLike, tol: TensorLike = None, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """How many singular values of each matrix are above `tol`."""
    with name_scope(name, "matrix_rank", [a]):
        a = to_tensor(a, dtypes.float32 if isinstance(a, list) else None, name="a")
        s = svd(a, compute_uv=False)
        if tol is None:
            tol = _limit(a) * apply("Max", s, [-1], keep_dims=True)
        return reduce_sum(apply("Cast", s > tol, DstT=dtypes.int32), [-1])


@export("linalg.pinv")
def pinv(
    a: TensorLike, rcond: TensorLike = None, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """The pseudoinverse; singular values below `rcond` times the largest count as zero."""
    with name_scope(name, "pinv", [a]):
        a = to_tensor(a, name="a")
        limit = to_tensor(10.0 * _limit(a) if rcond is None else rcond, a.dtype.real_dtype, name="rcond")
        s, u, v = svd(a)
        cutoff = apply("ExpandDims", limit * apply("Max", s, [-1]), -1)
        usable = apply("SelectV2", s > cutoff, s, to_tensor(np.inf, s.dtype))
        scale = apply("Cast", apply("ExpandDims", usable, -2), DstT=a.dtype) if a.dtype.is_complex else None
        return matmul(v / (apply("ExpandDims", usable, -2) if scale is None else scale), u, adjoint_b=True)


def _limit(a: Tensor) -> Any:
    """What rounding leaves of a zero, relative to the largest singular value."""
    epsilon = float(np.finfo(a.dtype.real_dtype.as_numpy_dtype).eps)
    sizes = [None] if a.shape.with_rank_at_least(2).rank is None else a.shape.as_list()[-2:]
    if None not in sizes:
        return epsilon * max(size for size in sizes if size is not None)
    longer = apply("Max", apply("Shape", a)[-2:], [0])
    return apply("Cast", longer, DstT=a.dtype.real_dtype) * epsilon
