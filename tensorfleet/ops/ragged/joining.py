"""Ragged tensors joined, stacked and repeated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.scopes import control_dependencies, name_scope
from tensorfleet.ops.array.checks import assert_equal
from tensorfleet.ops.ragged.ragged_tensor import RaggedOrDense, RaggedTensor
from tensorfleet.ops.ragged.rows import expand_dims, gather_rows, row_count


@export("python.ops.ragged.ragged_concat_ops.concat")
def concat(values: TensorLike, axis: TensorLike, name: str | None = "concat") -> Any:
    """`tf.concat` where some of the values are ragged."""
    parts = list(values) if isinstance(values, (list, tuple)) else [values]
    if not parts:
        raise ValueError("rt_inputs may not be empty.")
    with name_scope(None if name == "concat" else name, "RaggedConcat"):
        alike, rank = _alike(parts)
        return _joined(alike, _axis(axis, rank))


@export("ragged.stack", "python.ops.ragged.ragged_concat_ops.stack")
def stack(values: TensorLike, axis: TensorLike = 0, name: str | None = None) -> Any:
    """Tensors or ragged tensors as the rows of one more dimension."""
    if not isinstance(values, (list, tuple)):
        values = [values]
    if not values:
        raise ValueError("rt_inputs may not be empty.")
    with name_scope(None if name == "stack" else name, "RaggedConcat"):
        parts = [v if isinstance(v, RaggedTensor) else to_tensor(v) for v in values]
        rank = parts[0].shape.rank
        axis = _axis(axis, None if rank is None else rank + 1)
        if rank == 0:
            return apply("Pack", parts, axis=axis)
        if not any(isinstance(p, RaggedTensor) for p in parts) and axis == 0:
            return RaggedTensor.from_row_lengths(
                apply("ConcatV2", parts, 0), apply("Pack", [row_count(p) for p in parts]), validate=False
            )
        alike, _ = _alike(parts)
        return _joined([_grown(p, axis) for p in alike], axis)


def _grown(part: RaggedOrDense, axis: int) -> RaggedOrDense:
    return expand_dims(part, axis) if isinstance(part, RaggedTensor) else apply("ExpandDims", part, axis)


def _axis(axis: object, rank: int | None) -> int:
    if not isinstance(axis, (int, np.integer)):
        raise TypeError("axis must be an int")
    if axis >= 0:
        if rank is not None and axis >= rank:
            raise ValueError(f"axis={axis} out of bounds: expected {-rank}<=axis<{rank}")
        return int(axis)
    if rank is None:
        raise ValueError("axis may only be negative if ndims is statically known.")
    if axis < -rank:
        raise ValueError(f"axis={axis} out of bounds: expected {-rank}<=axis<{rank}")
    return int(axis) + rank


def _alike(values: Sequence[TensorLike]) -> tuple[list[RaggedOrDense], int | None]:
    """The parts with as many ragged dimensions, and their common rank."""
    parts = [p if isinstance(p, RaggedTensor) else to_tensor(p) for p in values]
    deepest = max((p.ragged_rank for p in parts if isinstance(p, RaggedTensor)), default=0)
    splits = [p.row_splits.dtype.base_dtype for p in parts if isinstance(p, RaggedTensor)]
    kind = dtypes.int64 if dtypes.int64 in splits or not splits else dtypes.int32
    alike: list[RaggedOrDense] = []
    for part in parts:
        if isinstance(part, RaggedTensor):
            whole = part
            if part.ragged_rank < deepest:
                inner = RaggedTensor.from_tensor(
                    part.flat_values, ragged_rank=deepest - part.ragged_rank, row_splits_dtype=kind
                )
                whole = part.with_flat_values(inner)
            alike.append(whole.with_row_splits_dtype(kind))
        elif deepest:
            alike.append(RaggedTensor.from_tensor(part, ragged_rank=deepest, row_splits_dtype=kind))
        else:
            alike.append(part)
    ranks = [p.shape.rank for p in alike if p.shape.rank is not None]
    if ranks and min(ranks) != max(ranks):
        raise ValueError(f"All inputs must have the same rank, got ranks {ranks}.")
    return alike, ranks[0] if ranks else None


def _joined(parts: list[Any], axis: int) -> Any:
    if len(parts) == 1:
        return parts[0]
    if not isinstance(parts[0], RaggedTensor):
        return apply("ConcatV2", parts, axis)
    if axis == 0:
        lengths = apply("ConcatV2", [p.row_lengths() for p in parts], 0)
        inner = _joined([p.values for p in parts], 0)
        return RaggedTensor.from_row_lengths(inner, lengths, validate=False)
    if axis == 1:
        return _side_by_side(parts)
    same = [
        assert_equal(p.row_splits, parts[0].row_splits, message="Input tensors have incompatible shapes")
        for p in parts[1:]
    ]
    with control_dependencies(same):
        splits = apply("Identity", parts[0].row_splits)
    return RaggedTensor._of(_joined([p.values for p in parts], axis - 1), splits)


def _side_by_side(parts: list[RaggedTensor]) -> RaggedTensor:
    """The first rows of all parts as one, then the second ones, and so on."""
    rows = row_count(parts[0])
    same = [
        assert_equal(row_count(p), rows, message="Input tensors have incompatible shapes.") for p in parts[1:]
    ]
    with control_dependencies(same):
        rows = apply("Identity", rows)
    count = np.int64(len(parts))
    below: Any = _joined(parts, 0)
    order = apply("Range", np.int64(0), rows * count, np.int64(1), Tidx=dtypes.int64)
    turned = (order // count) + (order % count) * rows
    mixed: Any = gather_rows(below, turned)  # ragged, as the parts are
    return RaggedTensor._of(mixed.values, mixed.row_splits[:: len(parts)])


def tile(input: RaggedTensor, multiples: TensorLike, name: str | None = None) -> RaggedTensor:
    """`tf.tile` of a ragged tensor by numbers that are known."""
    with name_scope(name, "RaggedTile"):
        times = multiples if isinstance(multiples, (list, tuple)) else constant_value(to_tensor(multiples))
        if times is None:
            raise ValueError("multiples must be known when the graph is built to tile a ragged tensor.")
        result = input
        for axis, count in enumerate(times):
            if int(count) == 1:
                continue
            parts = [result] * int(count)
            result = _joined(parts, axis) if parts else _joined([result], axis)[..., :0]
        return result
