"""Sums of many tensors, half squares, evenly spaced numbers, counting, and clipping to a range."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape, as_shape
from tensorfleet.base.types import Array, ArrayModule, DTypeLike, ShapeLike, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.kernel_types import Check
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.kernels.arrays import is_numpy
from tensorfleet.ops.common import SCALAR, merged_inputs, same_as_input, static_value
from tensorfleet.ops.elementwise import INTS, POSITIVE, REAL, bracketed, unbroadcast, where, wide
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.samples import case


@op(
    "AddN",
    "inputs: N * T -> sum: T",
    "N: int; T: summable",
    shape=merged_inputs,
    examples=[case([REAL, REAL * 2, -REAL]), case([INTS]), case([POSITIVE, POSITIVE])],
)
def _add_n(xp: ArrayModule, inputs: list[Array]) -> Array:
    result: Array = _total(inputs)
    return result


def _total(inputs: list[Any]) -> Any:
    total = inputs[0]
    for i, x in enumerate(inputs[1:], 1):
        if x.shape != total.shape:
            raise errors.invalid(
                "Inputs to operation of type AddN must have the same size and shape.  Input 0: "
                f"{bracketed(total.shape)} != input {i}: {bracketed(x.shape)}"
            )
        total = total + x  # for numpy's scalars ten times faster than its function
    return total


@op(
    "AccumulateNV2",
    "inputs: N * T -> sum: T",
    "N: int; T: number; shape: shape",
    shape=lambda op: op._attrs["shape"],
    examples=[case([REAL, REAL * 2], shape=TensorShape((2, 3)))],
)
def _accumulate_n(xp: ArrayModule, inputs: list[Array]) -> Array:
    result: Array = _total(inputs)
    return result


gradient("AddN", "AccumulateNV2")(lambda op, dy: [dy] * len(op.inputs))


@export("math.add_n", "add_n")
def add_n(inputs: TensorLike, name: str | None = None) -> Tensor:
    """The sum of tensors of one shape and type; `IndexedSlices` are made dense."""
    if not isinstance(inputs, (list, tuple)) or not inputs:
        raise ValueError(
            "inputs must be a list of at least one Tensor/IndexedSlices with the same dtype and shape"
        )
    items = [x if isinstance(x, (Tensor, IndexedSlices)) else to_tensor(x) for x in inputs]
    if len(items) == 1:
        only = items[0] if isinstance(items[0], Tensor) else to_tensor(items[0])
        return apply("Identity", only, name=name) if name else only
    return apply("AddN", items, name=name)


@export("math.accumulate_n", "accumulate_n")
def accumulate_n(
    inputs: TensorLike,
    shape: ShapeLike = None,
    tensor_dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """The sum of tensors of one shape and type."""
    problem = "inputs must be a list of at least one Tensor with the same dtype and shape"
    if not isinstance(inputs, (list, tuple)) or not inputs:
        raise ValueError(problem)
    items = [to_tensor(x) for x in inputs]
    if any(x.dtype.base_dtype != items[0].dtype.base_dtype for x in items):
        raise ValueError(problem)
    known = as_shape(shape)
    for x in items:
        known = known.merge_with(x.shape)
    if tensor_dtype is not None and tensor_dtype != items[0].dtype.base_dtype:
        raise TypeError(f"tensor_dtype is {tensor_dtype}, but input is of type {items[0].dtype}")
    if len(items) == 1:
        return apply("Identity", items[0], name=name) if name else items[0]
    return apply("AddN", items, name=name)


@export("math.scalar_mul", "scalar_mul")
def scalar_mul(scalar: TensorLike, x: Any, name: str | None = None) -> Any:
    """A scalar times a tensor or `IndexedSlices`."""
    scalar = to_tensor(scalar, dtype=x.dtype.base_dtype, name="scalar")
    if scalar.shape.rank not in (None, 0):
        raise ValueError(f"Only scalar multiply works, got shape {scalar.shape}")
    if isinstance(x, IndexedSlices):
        return IndexedSlices(apply("Mul", scalar, x.values, name=name), x.indices, x.dense_shape)
    return apply("Mul", scalar, x, name=name)


@op(
    "L2Loss",
    "t: T -> output: T",
    "T: floating",
    shape=lambda op: SCALAR,
    examples=[case(REAL), case(POSITIVE), case(REAL[:0])],
)
def _l2_loss(xp: ArrayModule, t: Array) -> Array:
    w = wide(t)
    result: Array = (xp.sum(w * w) / w.dtype.type(2)).astype(t.dtype)
    return result


gradient("L2Loss")(lambda op, dy: op.inputs[0] * dy)


@export("nn.l2_loss")
def l2_loss(t: TensorLike, name: str | None = None) -> Tensor:
    """Half the sum of the squares."""
    return apply("L2Loss", t, name=name)


# -- numbers in a row --------------------------------------------------------------------------------


def _linspace_shape(op: Operation) -> TensorShape:
    for t in op._inputs:
        if t.shape.rank not in (None, 0):
            raise ValueError(f"Shape must be rank 0 but is rank {t.shape.rank}")
    num = static_value(op, 2)
    if num is not None and num <= 0:
        raise ValueError(f"Requires num > 0: {num}")
    return TensorShape._of((None if num is None else int(num),))


@op(
    "LinSpace",
    "start: T, stop: T, num: Tidx -> output: T",
    "T: floating; Tidx: index = int32",
    shape=_linspace_shape,
    static=["num"],
    examples=[
        case(np.float32(0), np.float32(1), np.int32(5)),
        case(np.float64(3), np.float64(-1), np.int64(4)),
        case(np.float32(2), np.float32(9), np.int32(1)),
    ],
)
def _linspace(xp: ArrayModule, start: Array, stop: Array, num: Array) -> Array:
    count = int(num)
    if count <= 0:
        raise errors.invalid(f"Requires num > 0: {count}")
    first, last = wide(start), wide(stop)
    step = (last - first) / first.dtype.type(max(count - 1, 1))
    line = first + step * np.arange(count, dtype=first.dtype)
    if count > 1:
        line = xp.where(np.arange(count) == count - 1, last, line)
    result: Array = line.astype(start.dtype)
    return result


not_differentiable("LinSpace")


@export("lin_space", "linspace")
def linspace(start: TensorLike, stop: TensorLike, num: TensorLike, name: str | None = None) -> Tensor:
    """`num` numbers from `start` to `stop`, evenly spaced, both ends included."""
    return apply("LinSpace", start, stop, num, name=name)


def _bincount_shape(op: Operation) -> TensorShape:
    size = static_value(op, 1)
    if size is not None and size < 0:
        raise ValueError(f"size ({size}) must be non-negative")
    return TensorShape._of((None if size is None else int(size),))


@op(
    "Bincount",
    "arr: int32, size: int32[0], weights: T -> bins: T",
    "T: {int32, int64, float, double}",
    shape=_bincount_shape,
    static=["size"],
    examples=[
        case(np.array([1, 1, 3, 7], np.int32), np.int32(4), np.zeros(0, np.int32)),
        case(np.array([1, 1, 3], np.int32), np.int32(5), np.array([0.5, 1, 2], np.float32)),
    ],
)
def _bincount(xp: ArrayModule, arr: Array, size: Array, weights: Array, *, check: Check) -> Array:
    check(xp.all(arr >= 0), lambda: "Input arr must be non-negative!")
    count = int(size)
    flat = arr.reshape(-1)
    amounts = weights.reshape(-1) if weights.size else xp.ones(flat.shape, weights.dtype)
    places = xp.where((flat < 0) | (flat >= count), count, flat)  # one bin more, for what is left out
    if is_numpy(xp):
        bins = np.zeros(count + 1, weights.dtype)
        np.add.at(bins, places, amounts)
    else:
        from tensorfleet.kernels.xla import at

        bins = at(xp.zeros(count + 1, weights.dtype), places).add(amounts)
    return bins[:count]


not_differentiable("Bincount")


@export("math.bincount", "bincount")
def bincount(
    arr: TensorLike,
    weights: TensorLike = None,
    minlength: TensorLike = None,
    maxlength: TensorLike = None,
    dtype: DTypeLike = dtypes.int32,
) -> Tensor:
    """How often each whole number occurs, or the sum of its weights."""
    with name_scope(None, "bincount"):
        arr = to_tensor(arr, name="arr", dtype=dtypes.int32)
        everything = np.arange(arr.shape.rank) if arr.shape.rank is not None else None
        axes = (
            everything.astype(np.int32)
            if everything is not None
            else apply("Range", 0, apply("Rank", arr), 1)
        )
        size = cast(apply("Size", arr) > 0, dtypes.int32) * (apply("Max", arr, axes) + 1)
        if minlength is not None:
            size = apply("Maximum", to_tensor(minlength, name="minlength", dtype=dtypes.int32), size)
        if maxlength is not None:
            size = apply("Minimum", to_tensor(maxlength, name="maxlength", dtype=dtypes.int32), size)
        if weights is None:
            weights = to_tensor(np.zeros(0, dtypes.as_dtype(dtype).np_dtype))
        return apply("Bincount", arr, size, to_tensor(weights, name="weights"))


# -- clipping ----------------------------------------------------------------------------------------


@op(
    "ClipByValue",
    "t: T, clip_value_min: T, clip_value_max: T -> output: T",
    "T: number",
    shape=same_as_input,
    examples=[
        case(REAL, np.float32(-1), np.float32(1)),
        case(REAL, -np.abs(REAL) / 2, np.abs(REAL) / 2),
        case(INTS, np.int32(-2), np.int32(6)),
    ],
)
def _clip_by_value(xp: ArrayModule, t: Array, low: Array, high: Array) -> Array:
    return xp.maximum(xp.minimum(t, high), low)


@gradient("ClipByValue")
def _clip_by_value_grad(op: Operation, dy: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    x, low, high = op.inputs
    below, above = apply("Less", x, low), apply("Greater", x, high)
    gx, glow = unbroadcast(x, low, where(apply("LogicalOr", below, above), 0, dy), where(below, dy, 0))
    _, ghigh = unbroadcast(x, high, None, where(above, dy, 0))
    return gx, glow, ghigh
