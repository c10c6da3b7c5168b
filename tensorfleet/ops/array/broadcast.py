"""Repeating tensors along dimensions of size one: shapes that broadcast."""

from __future__ import annotations

import numpy as np

from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape, as_shape, broadcast_shape
from tensorfleet.base.types import Array, ArrayModule, ShapeLike, TensorLike
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable, op
from tensorfleet.ops.array.shape import bracketed, invalid, known_rank
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.common import ints, shape_given_by, vector_of
from tensorfleet.ops.samples import case

_SOME = np.arange(6, dtype=np.float32).reshape(2, 3)


def _broadcast_to_shape(op: Operation) -> TensorShape:
    source, target = op._inputs[0].shape, shape_given_by(op, 1)
    if source._d is None or target._d is None:
        return target
    if len(source._d) > len(target._d):
        raise ValueError(f"Shape must be at most rank {len(target._d)} but is rank {len(source._d)}")
    for a, b in zip(reversed(source._d), reversed(target._d), strict=False):
        if a not in (None, 1, b) and b is not None:
            raise ValueError(f"Dimensions must be equal, but are {a} and {b}")
    return target


@op(
    "BroadcastTo",
    "input: T, shape: Tidx[1] -> output: T",
    "T: type; Tidx: index = int32",
    shape=_broadcast_to_shape,
    moves="input",
    static=["shape"],
    examples=[
        case(_SOME, np.array([2, 2, 3], np.int32)),
        case(np.float64(2.0), np.array([3], np.int64)),
        case(np.ones((2, 1), np.float32), np.array([2, 0], np.int32), grad=False),
    ],
)
def _broadcast_to(xp: ArrayModule, x: Array, target: Array) -> Array:
    dims = ints(target)
    tail = dims[len(dims) - len(x.shape) :]
    if len(x.shape) > len(dims) or any(a not in (1, b) for a, b in zip(x.shape, tail, strict=True)):
        raise invalid(f"Incompatible shapes: {bracketed(x.shape)} vs. {bracketed(dims)}")
    return xp.broadcast_to(x, dims)


@gradient("BroadcastTo")
def _broadcast_to_grad(op: Operation, dy: Tensor) -> tuple[Tensor, None]:
    source = shape_of(op._inputs[0], out_type=op._inputs[1].dtype)
    _, axes = apply_list("BroadcastGradientArgs", op._inputs[1], source)
    return apply("Reshape", apply("Sum", dy, axes, keep_dims=True), source), None


@export("broadcast_to")
def broadcast_to(input: TensorLike, shape: TensorLike, name: str | None = None) -> Tensor:
    """Repeats `input` along new dimensions and dimensions of size 1 to reach `shape`."""
    return apply("BroadcastTo", input, shape, name=name)


def _broadcast_args_shape(op: Operation) -> TensorShape:
    a, b = known_rank(op, 0), known_rank(op, 1)
    return vector_of(None if a is None or b is None else max(a, b))


@op(
    "BroadcastArgs",
    "s0: T[1], s1: T[1] -> r0: T",
    "T: index = int32",
    shape=_broadcast_args_shape,
    static=["s0", "s1"],
    examples=[
        case(np.array([2, 1], np.int32), np.array([1, 3], np.int32)),
        case(np.array([], np.int64), np.array([4], np.int64)),
    ],
)
def _broadcast_args(xp: ArrayModule, s0: Array, s1: Array) -> Array:
    try:
        both = broadcast_shape(TensorShape(ints(s0)), TensorShape(ints(s1)))
    except ValueError:
        raise invalid(f"Incompatible shapes: {bracketed(ints(s0))} vs. {bracketed(ints(s1))}") from None
    return np.array(both.as_list(), s0.dtype)


not_differentiable("BroadcastArgs")


@export("broadcast_dynamic_shape")
def broadcast_dynamic_shape(shape_x: TensorLike, shape_y: TensorLike) -> Tensor:
    """The shape two shapes, given as integer tensors, broadcast to."""
    return apply("BroadcastArgs", shape_x, shape_y)


@export("broadcast_static_shape")
def broadcast_static_shape(shape_x: ShapeLike, shape_y: ShapeLike) -> TensorShape:
    """The `TensorShape` two `TensorShape`s broadcast to; ValueError when they cannot."""
    x, y = as_shape(shape_x), as_shape(shape_y)
    try:
        return broadcast_shape(x, y)
    except ValueError:
        raise ValueError(f"Incompatible shapes for broadcasting: {x} and {y}") from None
