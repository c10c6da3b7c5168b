"""Ragged tensors as components of elements: how they are carried, stacked into batches and cut into rows."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array
from tensorfleet.graph.operation import Operation
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.ops.common import vector_of
from tensorfleet.ops.ragged.value import RaggedTensorValue

if TYPE_CHECKING:
    from tensorfleet.runtime.scheduling.host_ops import StepHostContext


@op(
    "FleetRaggedToVariant",
    "splits: N * Tsplits, values: T -> handle: variant",
    "N: int >= 1; Tsplits: type; T: type",
    host=True,
)
def _ragged_to_variant(ctx: StepHostContext, splits: list[Array], values: Array) -> RaggedTensorValue:
    return nested(splits, np.asarray(values))


def nested(splits: Sequence[Array], values: Array) -> RaggedTensorValue:
    """A ragged value of its splits, the outermost first."""
    *outer, innermost = splits
    ragged = RaggedTensorValue(values, np.asarray(innermost))
    for each in reversed(outer):
        ragged = RaggedTensorValue(ragged, np.asarray(each))
    return ragged


def _ragged_shapes(op: Operation) -> list[TensorShape]:
    shape, rank = op._attrs["shape"], op._attrs["N"]
    inner = TensorShape(None)
    if shape.rank is not None:
        inner = TensorShape([None, *shape.as_list()[rank + 1 :]])
    return [*[vector_of(None)] * rank, inner]


@op(
    "FleetVariantToRagged",
    "handle: variant -> splits: N * Tsplits, values: T",
    "N: int >= 1; Tsplits: type; T: type; shape: shape = unknown",
    shape=_ragged_shapes,
    host=True,
)
def _variant_to_ragged(ctx: StepHostContext, value: RaggedTensorValue | Array) -> tuple[Array, ...]:
    ragged = value if isinstance(value, RaggedTensorValue) else np.asarray(value, object).ravel()[0]
    return *ragged.nested_row_splits, ragged.flat_values


not_differentiable("FleetRaggedToVariant", "FleetVariantToRagged")


def stacked_ragged(values: Sequence[RaggedTensorValue]) -> RaggedTensorValue:
    """Several ragged values as one with another dimension in front."""
    if len({v.ragged_rank for v in values}) > 1:
        raise errors.invalid("Cannot batch ragged tensors whose numbers of ragged dimensions differ.")
    ends = np.cumsum([0, *(len(v.row_splits) - 1 for v in values)])
    return RaggedTensorValue(_behind(values), ends.astype(values[0].row_splits.dtype))


def _behind(values: Sequence[Any]) -> RaggedTensorValue | Array:
    """Ragged values, or arrays, one behind the other."""
    if not isinstance(values[0], RaggedTensorValue):
        joined: Array = np.concatenate(values)
        return joined
    starts = np.cumsum([0, *(v.row_splits[-1] for v in values)])
    splits = [v.row_splits[1:] + start for v, start in zip(values, starts, strict=False)]
    dtype = values[0].row_splits.dtype
    return RaggedTensorValue(
        _behind([v.values for v in values]), np.concatenate([[0], *splits]).astype(dtype)
    )


def ragged_rows(value: RaggedTensorValue) -> list[RaggedTensorValue | Array]:
    """The rows of a ragged value: ragged themselves, or arrays."""
    ends = value.row_splits.tolist()
    return [_part(value.values, a, b) for a, b in itertools.pairwise(ends)]


def _part(value: RaggedTensorValue | Array, start: int, stop: int) -> RaggedTensorValue | Array:
    if not isinstance(value, RaggedTensorValue):
        return value[start:stop]
    splits = value.row_splits[start : stop + 1]
    return RaggedTensorValue(_part(value.values, int(splits[0]), int(splits[-1])), splits - splits[0])
