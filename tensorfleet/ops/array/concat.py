"""Joining tensors and taking them apart: concat and split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape, shape_text, unknown_shape
from tensorfleet.base.types import Array, ArrayModule, TensorLike
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.kernels import lane_kernels
from tensorfleet.ops.argument_order import has_dimensions, takes_old_order
from tensorfleet.ops.array.shape import bracketed, dense_gradient, invalid
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.common import UNKNOWN, ints, static_value
from tensorfleet.ops.samples import case

_A = np.arange(6, dtype=np.float32).reshape(2, 3)
_B = np.arange(4, dtype=np.float32).reshape(2, 2)


# -- concat ------------------------------------------------------------------------------------------


def _concat_shape(shapes: list[TensorShape], axis: Array | None) -> TensorShape:
    ranks = {s.rank for s in shapes if s._d is not None}
    if not ranks:
        return UNKNOWN
    rank = next(s.rank for s in shapes if s.rank is not None)
    if 0 in ranks:
        raise ValueError("Can't concatenate scalars (use tf.stack instead)")
    if len(ranks) > 1:
        raise ValueError(f"Shape must be rank {rank} but is rank {next(r for r in ranks if r != rank)}")
    if axis is None:
        return unknown_shape(rank)
    at = int(axis)
    if not -rank <= at < rank:
        raise ValueError(f"Shape must be at least rank {at + 1 if at >= 0 else -at} but is rank {rank}")
    return _joined([s._d if s._d is not None else (None,) * rank for s in shapes], at % rank)


def _joined(rows: list[tuple[int | None, ...]], axis: int) -> TensorShape:
    out: list[int | None] = []
    for i, column in enumerate(zip(*rows, strict=True)):
        if i == axis:
            out.append(None if None in column else sum(column))
            continue
        known = sorted({d for d in column if d is not None})
        if len(known) > 1:
            first = next(d for d in column if d is not None)
            other = next(d for d in column if d not in (None, first))
            a, b = (next(r for r in rows if r[i] == d) for d in (first, other))
            raise ValueError(
                f"Dimension {i} in both shapes must be equal, but are {first} and {other}. Shapes are "
                f"{_without(a, axis)} and {_without(b, axis)}."
            )
        out.append(known[0] if known else None)
    return TensorShape._of(tuple(out))


def _without(dims: Sequence[int | None], axis: int) -> str:
    return bracketed(None if i == axis else d for i, d in enumerate(dims))


def _concat(xp: ArrayModule, values: list[Array], axis: Array) -> Array:
    rank = len(values[0].shape)
    at = int(np.asarray(axis).ravel()[0])
    if not -rank <= at < rank:
        raise invalid(
            f"ConcatOp : Expected concatenating dimensions in the range [{-rank}, {rank}), but got {at}"
        )
    at %= rank
    for i, v in enumerate(values):
        if len(v.shape) != rank:
            raise invalid(
                "ConcatOp : Ranks of all input tensors should match: shape[0] = "
                f"{bracketed(values[0].shape)} vs. shape[{i}] = {bracketed(v.shape)}"
            )
        if any(a != b for k, (a, b) in enumerate(zip(v.shape, values[0].shape, strict=True)) if k != at):
            raise invalid(
                f"ConcatOp : Dimensions of inputs should match: shape[0] = {bracketed(values[0].shape)} vs. "
                f"shape[{i}] = {bracketed(v.shape)}"
            )
    return xp.concatenate(values, axis=at)


@op(
    "ConcatV2",
    "values: N * T, axis: Tidx[0] -> output: T",
    "N: int; T: type; Tidx: index = int32",
    shape=lambda op: _concat_shape([t.shape for t in op._inputs[:-1]], static_value(op, len(op._inputs) - 1)),
    static=["axis"],
    joined=lane_kernels.concat,
    examples=[
        case([_A, _B], np.int32(1)),
        case([_A, _A, _A], np.int64(-2)),
        case([np.zeros((0, 2)), np.ones((1, 2))], np.int32(0)),
        case([np.array([b"a"], object), np.array([b"b", b"c"], object)], np.int32(0)),
    ],
)
def _concat_v2(xp: ArrayModule, values: list[Array], axis: Array) -> Array:
    return _concat(xp, values, axis)


@op(
    "Concat",
    "concat_dim: int32[0], values: N * T -> output: T",
    "N: int; T: type",
    shape=lambda op: _concat_shape([t.shape for t in op._inputs[1:]], static_value(op, 0)),
    static=["concat_dim"],
    examples=[case(np.int32(1), [_A, _B]), case(np.int32(0), [_A, _A])],
)
def _concat_v1(xp: ArrayModule, axis: Array, values: list[Array]) -> Array:
    return _concat(xp, values, axis)


def _pieces(values: tuple[Tensor, ...], axis: Tensor, dy: Tensor) -> list[Tensor]:
    """The part of a concatenation's gradient that belongs to each value."""
    dy = dense_gradient(dy)
    if len(values) == 1:
        return [dy]
    if axis.dtype.name != "int32":
        axis = apply("Cast", axis, DstT="int32")
    where = static_axis(axis, values[0])
    known = all(v.shape.is_fully_defined() for v in values)
    sizes = [shape_of(v) for v in values] if known else apply_list("ShapeN", list(values))
    offsets = apply_list("ConcatOffset", where, sizes)
    return [apply("Slice", dy, begin, size) for begin, size in zip(offsets, sizes, strict=True)]


def static_axis(axis: Tensor, value: Tensor) -> Tensor | int:
    """An axis counted from the front: a number when it is known, else a tensor."""
    from tensorfleet.graph.constant import constant_value

    known, rank = constant_value(axis), value.shape.rank
    if known is not None and (rank is not None or int(known) >= 0):
        return int(known) % rank if rank is not None else int(known)
    return apply("FloorMod", axis, apply("Rank", value))


gradient("ConcatV2")(lambda op, dy: [*_pieces(op._inputs[:-1], op._inputs[-1], dy), None])
gradient("Concat")(lambda op, dy: [None, *_pieces(op._inputs[1:], op._inputs[0], dy)])


@op(
    "ConcatOffset",
    "concat_dim: int32, shape: N * shape_type -> offset: N * shape_type",
    "N: int >= 2; shape_type: index = int32",
    shape=lambda op: [t.shape for t in op._inputs[1:]],
    static=["concat_dim", "shape"],
    examples=[
        case(
            np.int32(1), [np.array([2, 3], np.int32), np.array([2, 5], np.int32), np.array([2, 1], np.int32)]
        )
    ],
)
def _concat_offset(xp: ArrayModule, axis: Array, shapes: list[Array]) -> tuple[Array, ...]:
    for i, s in enumerate(shapes):
        if s.ndim != 1:
            raise invalid(f"input {i} should be a vector, but got shape {shape_text(s.shape)}")
    rank = len(shapes[0])
    at = int(axis)
    if not -rank <= at < rank:
        raise invalid(f"Concat dim is out of range: {at} vs. {rank}")
    offsets, total = [], 0
    for i, s in enumerate(shapes):
        if len(s) != rank:
            raise invalid(f"input {i} should contain {rank} elements, but got {len(s)}")
        if any(int(a) != int(b) for k, (a, b) in enumerate(zip(s, shapes[0], strict=True)) if k != at % rank):
            first, other = (" ".join(map(str, ints(each))) for each in (shapes[0], s))
            raise invalid(
                f"All dimensions except {at % rank} must match. Input {i} has shape [{other}] and doesn't match input 0 "
                f"with shape [{first}]."
            )
        offset = np.zeros(rank, shapes[0].dtype)
        offset[at] = total
        total += int(s[at])
        offsets.append(offset)
    return tuple(offsets)


not_differentiable("ConcatOffset")


def _axis_first(*args: Any) -> bool:
    return isinstance(args[0], int) and len(args) > 1 and isinstance(args[1], (list, tuple))


@export("concat")
@takes_old_order("concat", "axis values name", _axis_first, {"concat_dim": "axis"})
def concat(values: TensorLike, axis: TensorLike, name: str | None = "concat") -> Tensor:
    """Joins tensors along an existing dimension."""
    if not isinstance(values, (list, tuple)):
        values = [values]
    if len(values) != 1:
        return apply("ConcatV2", list(values), axis, name=name)
    with name_scope(name or "concat") as scope:
        at = to_tensor(axis, "int32", name="concat_dim")
        at.shape.assert_has_rank(0)
        return apply("Identity", values[0], name=name if not scope else "concat")


# -- split -------------------------------------------------------------------------------------------


def _split_shape(op: Operation) -> list[TensorShape]:
    shape, axis, count = op._inputs[1].shape, static_value(op, 0), op._attrs["num_split"]
    if shape._d is None or axis is None:
        one = unknown_shape(shape.rank)
        return [one] * count
    at = _split_axis(int(axis), len(shape._d))
    size = shape._d[at]
    if size is not None and size % count:
        raise ValueError(
            f"Dimension size must be evenly divisible by {count} but is {size}: the number of ways to split should "
            "evenly divide the split dimension"
        )
    part = None if size is None else size // count
    return [TensorShape._of((*shape._d[:at], part, *shape._d[at + 1 :]))] * count


def axis_of(axis: int, rank: int, error: Any = ValueError) -> int:
    """The axis counted from the front; an error if a tensor of that rank has no such axis."""
    if not -rank <= axis < rank:
        raise error(f"Dimension index {axis} must be in the range [{-rank}, {rank}).")
    return axis % rank


def _split_axis(axis: int, rank: int, error: Any = ValueError) -> int:
    if -rank <= axis < rank:
        return axis % rank
    if error is ValueError:
        raise ValueError(f"Dimension size, given by scalar input {axis} must be in range [{-rank}, {rank})")
    raise error(f"-input rank(-{rank}) <= split_dim < input rank ({rank}), but got {axis}")


def _one(axis: Array) -> int:
    if np.size(axis) != 1:
        raise invalid("split_dim must have exactly one element.")
    return int(np.ravel(axis)[0])


@op(
    "Split",
    "split_dim: int32, value: T -> output: num_split * T",
    "num_split: int >= 1; T: type",
    shape=_split_shape,
    moves="value",
    static=["split_dim"],
    examples=[case(np.int32(0), _A, num_split=2), case(np.int32(-1), _A, num_split=3)],
)
def _split(xp: ArrayModule, axis: Array, x: Array, *, num_split: int) -> tuple[Array, ...]:
    at = _split_axis(_one(axis), len(x.shape), invalid)
    if x.shape[at] % num_split:
        raise invalid(
            "Number of ways to split should evenly divide the split dimension, but got split_dim "
            f"{at} (size = {x.shape[at]}) and num_split {num_split}"
        )
    part = x.shape[at] // num_split
    return tuple(_part(x, at, i * part, part) for i in range(num_split))


def _part(x: Array, axis: int, start: int, size: int) -> Array:
    return x[(slice(None),) * axis + (slice(start, start + size),)]


@gradient("Split")
def _split_grad(op: Operation, *grads: Any) -> tuple[None, Tensor]:
    return None, concat(list(grads), op._inputs[0])


def _split_v_shape(op: Operation) -> list[TensorShape]:
    shape, sizes, axis = op._inputs[0].shape, static_value(op, 1), static_value(op, 2)
    count = op._attrs["num_split"]
    if shape.rank == 0:
        raise ValueError("Can't split scalars")
    if shape._d is None or axis is None:
        return [unknown_shape(shape.rank)] * count
    at = _split_axis(int(axis), len(shape._d))
    known: list[int | None] = [None] * count
    if sizes is not None:
        known = [int(s) if s >= 0 else None for s in sizes]
        if known.count(None) > 1:
            raise ValueError("size_splits can only have one -1")
        known = _fill_in(known, shape._d[at])
    return [TensorShape._of((*shape._d[:at], s, *shape._d[at + 1 :])) for s in known]


def _fill_in(sizes: list[int | None], total: int | None) -> list[int | None]:
    if total is None:
        return sizes
    used = sum(s for s in sizes if s is not None)
    if used > total or (None not in sizes and used != total):
        raise ValueError(
            f"can't split axis of size {total} into pieces of size [{','.join(map(str, sizes))}]"
        )
    return [total - used if s is None else s for s in sizes] if sizes.count(None) == 1 else sizes


@op(
    "SplitV",
    "value: T, size_splits: Tlen, split_dim: int32 -> output: num_split * T",
    "num_split: int >= 1; T: type; Tlen: {int8, int32, int64} = int64",
    shape=_split_v_shape,
    moves="value",
    static=["size_splits", "split_dim"],
    examples=[
        case(_A, np.array([1, 2], np.int32), np.int32(1), num_split=2),
        case(_A, np.array([-1, 0, 1], np.int64), np.int32(-2), num_split=3),
    ],
)
def _split_v(xp: ArrayModule, x: Array, sizes: Array, axis: Array, *, num_split: int) -> tuple[Array, ...]:
    at = _split_axis(_one(axis), len(x.shape), invalid)
    total, parts = x.shape[at], list(ints(sizes))
    used = sum(p for p in parts if p != -1)
    if parts.count(-1) > 1 or used > total or (-1 not in parts and used != total):
        raise invalid(
            "Determined shape must either match input shape along split_dim exactly if fully specified, or "
            f"be less than the size of the input along split_dim if not fully specified.  Got: {used}"
        )
    for i, size in enumerate(parts):
        if size < -1:
            raise invalid(f"Split size at index {i} must be >= 0. Got: {size}")
    parts = [total - used if p == -1 else p for p in parts]
    starts = np.cumsum([0, *parts])
    return tuple(_part(x, at, int(starts[i]), parts[i]) for i in range(num_split))


@gradient("SplitV")
def _split_v_grad(op: Operation, *grads: Any) -> tuple[Tensor, None, None]:
    return concat(list(grads), op._inputs[2]), None, None


def _dimension_first(*args: Any) -> bool:
    return isinstance(args[0], int) and len(args) > 2 and has_dimensions(args[2])


@export("split")
@takes_old_order(
    "split",
    "axis num_or_size_splits value name",
    _dimension_first,
    {"split_dim": "axis", "num_split": "num_or_size_splits"},
)
def split(
    value: TensorLike,
    num_or_size_splits: Any,
    axis: TensorLike = 0,
    num: int | None = None,
    name: str | None = "split",
) -> list[Tensor]:
    """Cuts a tensor along `axis`: into that many equal parts, or into parts of the sizes listed."""
    if not isinstance(num_or_size_splits, (Tensor, list, tuple, np.ndarray)):
        count = int(num_or_size_splits)
        return apply_list("Split", axis, value, num_split=count, name=name)
    sizes = to_tensor(num_or_size_splits)
    if sizes.shape.rank == 0:
        raise ValueError(
            "Rank-0 tensors are not supported as the num_or_size_splits argument to split. Argument "
            f"provided: {num_or_size_splits}"
        )
    if num is None:
        dims = sizes.shape._d
        num = dims[0] if dims is not None and len(dims) == 1 else None
        if num is None:
            raise ValueError(f"Cannot infer num from shape {num_or_size_splits}")
    return apply_list("SplitV", value, sizes, axis, num_split=num, name=name)
