"""Rows of a tensor replaced, added to or subtracted from; nothing is changed in place here."""

from __future__ import annotations

from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.types import Array, ArrayModule, DTypeLike, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.kernels.arrays import zeros_of
from tensorfleet.ops.common import ints, shape_given_by
from tensorfleet.ops.math.cast import cast


@op(
    "Empty",
    "shape: int32 -> output: dtype",
    "dtype: type; init: bool = false",
    shape=lambda op: shape_given_by(op, 0),
    static=["shape"],
    stateful=True,
)
def _empty(xp: ArrayModule, shape: Array, *, dtype: DType) -> Array:
    return zeros_of(ints(shape), dtype.np_dtype)


not_differentiable("Empty")


def _applied(
    kind: str,
    x: TensorLike,
    i: TensorLike,
    v: TensorLike,
) -> Tensor:
    """With no indices, the value is as large as the tensor; with a single one, it is one row."""
    rows = to_tensor(x)
    value = to_tensor(v, rows.dtype.base_dtype)
    if i is None:
        count = apply(
            "Range", 0, apply("StridedSlice", apply("Shape", rows), [0], [1], [1], shrink_axis_mask=1), 1
        )
        return apply(kind, rows, count, value)
    at = cast(i, dtypes.int32)
    if at.shape.ndims == 0:
        return apply(kind, rows, apply("ExpandDims", at, 0), apply("ExpandDims", value, 0))
    return apply(kind, rows, at, value)


@export("python.ops.inplace_ops.inplace_update", "python.ops.inplace_ops.alias_inplace_update")
def inplace_update(x: TensorLike, i: TensorLike, v: TensorLike) -> Tensor:
    """`x` with the rows `i` replaced."""
    return _applied("InplaceUpdate", x, i, v)


@export("python.ops.inplace_ops.inplace_add", "python.ops.inplace_ops.alias_inplace_add")
def inplace_add(x: TensorLike, i: TensorLike, v: TensorLike) -> Tensor:
    """`x` with something added to the rows `i`."""
    return _applied("InplaceAdd", x, i, v)


@export("python.ops.inplace_ops.inplace_sub", "python.ops.inplace_ops.alias_inplace_sub")
def inplace_sub(x: TensorLike, i: TensorLike, v: TensorLike) -> Tensor:
    """`x` with something subtracted from the rows `i`."""
    return _applied("InplaceSub", x, i, v)


@export("python.ops.inplace_ops.empty")
def empty(shape: TensorLike, dtype: DTypeLike, init: bool = False) -> Tensor:
    """A tensor of a shape, whose values nobody should read before writing them; they are zeros here."""
    return apply("Empty", to_tensor(shape, dtypes.int32), dtype=dtype, init=init)


@export("python.ops.inplace_ops.empty_like")
def empty_like(x: TensorLike, init: bool | None = None) -> Tensor:
    """A tensor shaped as another."""
    like = to_tensor(x)
    return empty(apply("Shape", like), like.dtype, bool(init))
