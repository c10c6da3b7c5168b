"""The ragged forms of public functions, by the names of the functions (see ops/ragged/dispatch.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.ops.ragged import joining, masks, reducing, rows
from tensorfleet.ops.ragged.broadcasting import elementwise as elementwise
from tensorfleet.ops.ragged.functions import convert_to_tensor_or_ragged_tensor
from tensorfleet.ops.ragged.rows import getitem as getitem
from tensorfleet.ops.ragged.value import RaggedTensorValue

OWN: dict[str, Callable[..., Any]] = {
    "boolean_mask": lambda tensor, mask, name="boolean_mask", axis=None: masks.boolean_mask(tensor, mask),
    "concat": joining.concat,
    "expand_dims": rows.expand_dims,
    "batch_gather": rows.batch_gather,
    "gather": rows.gather,
    "gather_nd": rows.gather_nd,
    "rank": rows.rank,
    "reduce_all": reducing.reduce_all,
    "reduce_any": reducing.reduce_any,
    "reduce_max": reducing.reduce_max,
    "reduce_mean": reducing.reduce_mean,
    "reduce_min": reducing.reduce_min,
    "reduce_prod": reducing.reduce_prod,
    "reduce_sum": reducing.reduce_sum,
    "size": rows.size,
    "squeeze": rows.squeeze,
    "stack": joining.stack,
    "tile": joining.tile,
    "where": masks.where,
    "where_v2": masks.where,
    **reducing.SEGMENTS,
}


def as_tensors(value: Any) -> Any:
    """Values of ragged tensors, alone or in a list, as ragged tensors; all else as it is."""
    if isinstance(value, RaggedTensorValue):
        return convert_to_tensor_or_ragged_tensor(value)
    if type(value) in (list, tuple) and any(isinstance(v, RaggedTensorValue) for v in value):
        return type(value)(map(as_tensors, value))
    return value
