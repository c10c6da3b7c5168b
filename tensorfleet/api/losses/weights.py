"""Weights of losses and metrics: which shapes they may have, and spreading them over the values."""

from __future__ import annotations

from tensorfleet.base.types import TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import control_dependencies, name_scope
from tensorfleet.ops.array.checks import Assert
from tensorfleet.ops.array.constructors import ones_like
from tensorfleet.ops.array.shape import shape, size
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.math.reduce_functions import reduce_all

_NOT_BROADCASTABLE = "weights can not be broadcast to values."


def check_broadcastable(weights: TensorLike, values: Tensor) -> list[Operation]:
    """Weights are a scalar, or have the values' rank and in each dimension their size or 1.

    ValueError when they cannot fit; otherwise the checks, if any, that are left for run time.
    """
    with name_scope(None, "assert_broadcastable", (weights, values)):
        w = to_tensor(
            weights, values.dtype.base_dtype if not hasattr(weights, "dtype") else None, name="weights"
        )
        ours, theirs = w.shape, values.shape
        if ours.ndims == 0:
            return []
        if ours.ndims is not None and theirs.ndims is not None:
            if ours.ndims != theirs.ndims:
                raise ValueError(
                    f"{_NOT_BROADCASTABLE} values.rank={theirs.ndims}. weights.rank={ours.ndims}. values.shape={theirs}. "
                    f"weights.shape={ours}."
                )
            pairs = list(zip(ours.as_list(), theirs.as_list(), strict=True))
            for i, (own, other) in enumerate(pairs):
                if own is not None and other is not None and own not in (1, other):
                    raise ValueError(
                        f"{_NOT_BROADCASTABLE} Mismatch at dim {i}. values.shape={theirs}. weights.shape={ours}."
                    )
            # Known to fit: no check is left for run time.
            if all(own == 1 or (own is not None and own == other) for own, other in pairs):
                return []
        return [_check_at_run_time(w, values)]


def _check_at_run_time(weights: Tensor, values: Tensor) -> Operation:
    ours, theirs = shape(weights), shape(values)
    common = apply("Minimum", size(ours), size(theirs))
    same = apply(
        "LogicalOr", apply("Equal", ours[:common], theirs[:common]), apply("Equal", ours[:common], 1)
    )
    fits = apply("LogicalAnd", apply("Equal", size(ours), size(theirs)), reduce_all(same))
    valid = apply("LogicalOr", apply("Equal", size(ours), 0), fits)
    return Assert(valid, [_NOT_BROADCASTABLE, "weights.shape=", ours, "values.shape=", theirs])


def broadcast_weights(weights: TensorLike, values: TensorLike) -> Tensor:
    """The weights repeated so that they have the shape of the values."""
    with name_scope(None, "broadcast_weights", (weights, values)) as scope:
        values = to_tensor(values, name="values")
        kind = values.dtype.base_dtype
        w: Tensor = cast(
            to_tensor(weights, None if hasattr(weights, "dtype") else kind, name="weights"), kind
        )
        if w.shape.is_fully_defined() and values.shape.is_fully_defined() and w.shape == values.shape:
            return w
        with control_dependencies(check_broadcastable(w, values)):
            return apply("Mul", w, ones_like(values), name=scope)
