"""Shapes of results, computed from shapes: `common_shapes`."""

from __future__ import annotations

import itertools
from typing import Any

from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape, as_shape
from tensorfleet.graph.convert import to_tensor

_HERE = "python.framework.common_shapes."


@export(f"{_HERE}is_broadcast_compatible")
def is_broadcast_compatible(shape_x: TensorShape, shape_y: TensorShape) -> bool:
    """Whether two shapes can be broadcast together; False when a rank is unknown."""
    if shape_x.ndims is None or shape_y.ndims is None:
        return False
    return _broadcast(shape_x, shape_y) is not None


@export(f"{_HERE}broadcast_shape")
def broadcast_shape(shape_x: TensorShape, shape_y: TensorShape) -> TensorShape:
    """The shape of what an elementwise operation makes of two; ValueError when they do not fit."""
    if shape_x.ndims is None or shape_y.ndims is None:
        return TensorShape(None)
    result = _broadcast(shape_x, shape_y)
    if result is None:
        raise ValueError(f"Incompatible shapes for broadcasting: {shape_x} and {shape_y}")
    return TensorShape(result)


def _broadcast(x: TensorShape, y: TensorShape) -> list[int | None] | None:
    results: list[int | None] = []
    pairs = itertools.zip_longest(reversed(x.as_list()), reversed(y.as_list()), fillvalue=1)
    for a, b in pairs:
        if a == 1 or b == 1:
            results.append(b if a == 1 else a)
        elif a is None or b is None:
            results.append(b if a is None else a)
        elif a == b:
            results.append(a)
        else:
            return None
    return results[::-1]


@export(f"{_HERE}has_fully_defined_shape")
def has_fully_defined_shape(tensor: Any) -> bool:
    """Whether a tensor's shape is known in full."""
    return tensor.shape.is_fully_defined()


@export(f"{_HERE}rank")
def rank(tensor: Any) -> int | None:
    """A tensor's rank, None when it is unknown."""
    return to_tensor(tensor).shape.ndims


@export(f"{_HERE}scalar_shape")
def scalar_shape(_: Any) -> list[TensorShape]:
    """The shape of an op that gives a scalar."""
    return [TensorShape([])]


@export(f"{_HERE}unchanged_shape")
def unchanged_shape(op: Any) -> list[TensorShape]:
    """The shape of an op that gives what it takes."""
    return [op.inputs[0].shape]


@export(f"{_HERE}unknown_shape")
def unknown_shape(op: Any) -> list[TensorShape]:
    """Nothing is known of any output."""
    return [TensorShape(None) for _ in op.outputs]


@export(f"{_HERE}no_outputs")
def no_outputs(_: Any) -> list[TensorShape]:
    """The shapes of an op without outputs."""
    return []


@export(f"{_HERE}call_cpp_shape_fn")
def call_cpp_shape_fn(op: Any, require_shape_fn: bool = True) -> dict[str, Any]:
    """The shapes of an operation's outputs, as they were inferred."""
    return {"shapes": [as_shape(t.shape).as_proto() for t in op.outputs], "handle_data": []}
