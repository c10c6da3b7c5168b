"""Stacking tensors along a new axis, and taking a stack apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape, as_shape
from tensorfleet.base.types import Array, ArrayModule, TensorLike
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.kernels import lane_kernels
from tensorfleet.ops.array.concat import axis_of
from tensorfleet.ops.array.shape import bracketed, dense_gradient, invalid
from tensorfleet.ops.common import UNKNOWN
from tensorfleet.ops.samples import case

_A = np.arange(6, dtype=np.float32).reshape(2, 3)


def _pack_shape(op: Operation) -> TensorShape:
    shape = op._inputs[-1].shape
    for i, t in enumerate(op._inputs[:-1]):
        if not shape.is_compatible_with(t.shape):
            raise ValueError(_unequal(i, t.shape, shape))
        shape = shape.merge_with(t.shape)
    if shape._d is None:
        return UNKNOWN
    at = axis_of(op._attrs["axis"], len(shape._d) + 1)
    return TensorShape._of((*shape._d[:at], len(op._inputs), *shape._d[at:]))


def _unequal(i: int, a: TensorShape, b: TensorShape) -> str:
    if a.rank != b.rank:
        return (
            f"Shapes must be equal rank, but are {a.rank} and {b.rank}\n"
            f"\tFrom merging shape {i} with other shapes."
        )
    pairs = enumerate(zip(a.as_list(), b.as_list(), strict=True))
    k, (x, y) = next((k, p) for k, p in pairs if None not in p and p[0] != p[1])
    return (
        f"Dimension {k} in both shapes must be equal, but are {x} and {y}. Shapes are "
        f"{bracketed(a.as_list())} and {bracketed(b.as_list())}.\n\tFrom merging shape {i} with other shapes."
    )


@op(
    "Pack",
    "values: N * T -> output: T",
    "N: int; T: type; axis: int = 0",
    shape=_pack_shape,
    joined=lane_kernels.pack,
    examples=[
        case([_A, _A]),
        case([_A, _A, _A], axis=-1),
        case([np.float64(1.0), np.float64(2.0)]),
        case([np.array(b"a", object), np.array(b"b", object)]),
    ],
)
def _pack(xp: ArrayModule, values: list[Array], *, axis: int) -> Array:
    first = values[0].shape
    for i, v in enumerate(values):
        if v.shape != first:
            raise invalid(
                f"Shapes of all inputs must match: values[0].shape = {bracketed(first)} != values[{i}].shape "
                f"= {bracketed(v.shape)}"
            )
    if xp is not np and all(isinstance(v, (np.ndarray, np.generic)) for v in values):
        xp = np
    at = axis_of(axis, len(first) + 1, invalid)
    return xp.stack(values, axis=at)


@gradient("Pack")
def _pack_grad(op: Operation, dy: Tensor) -> list[Tensor]:
    return apply_list("Unpack", dense_gradient(dy), num=op._attrs["N"], axis=op._attrs["axis"])


@export("stack")
def stack(values: TensorLike, axis: int = 0, name: str | None = "stack") -> Tensor:
    """Joins tensors of one shape along a new dimension."""
    if axis == 0:
        try:
            return to_tensor(values, name=name)  # a constant when it holds only numbers
        except (TypeError, ValueError):
            pass  # not rectangular, or of several types: let Pack say so
    items = list(values) if isinstance(values, (list, tuple)) else values
    if isinstance(items, list):
        rank = next((v.shape.rank for v in items if isinstance(v, Tensor)), None)
        if rank is None and isinstance(items[0], (list, tuple, np.ndarray)):
            first = items[0] = to_tensor(items[0])
            rank = first.shape.rank
        if rank is not None and not -rank - 1 <= axis < rank + 1:
            raise ValueError(f"axis = {axis} not in [{-rank - 1}, {rank + 1})")
    return apply("Pack", items, axis=axis, name=name)


def _parallel_shape(op: Operation) -> TensorShape:
    whole: TensorShape = op._attrs["shape"]
    for i, t in enumerate(op._inputs):
        if t.shape.rank == 0:
            raise ValueError(
                f"The rank of all input shapes must be greater than 0, but input {i} had rank 0."
            )
        if t.shape[0].value not in (None, 1):
            raise ValueError("Size of first dimension must be 1.")
        t.shape.merge_with(op._inputs[i - 1 if i else 0].shape)
    return whole


@op(
    "ParallelConcat",
    "values: N * T -> output: T",
    "N: int; T: type; shape: shape",
    shape=_parallel_shape,
    examples=[case([_A[None], _A[None]], shape=TensorShape([2, 2, 3]))],
)
def _parallel_concat(xp: ArrayModule, values: list[Array]) -> Array:
    return xp.concatenate(values, axis=0)


not_differentiable("ParallelConcat")


@export("parallel_stack")
def parallel_stack(values: Sequence[TensorLike], name: str | None = "parallel_stack") -> Tensor:
    """Stacks tensors of one known shape along a new first dimension."""
    with name_scope(name):
        shape = to_tensor(values[0]).shape
        whole = as_shape([len(values)]).concatenate(shape)
        return apply("ParallelConcat", [apply("ExpandDims", v, 0) for v in values], shape=whole)


def _unpack_shape(op: Operation) -> list[TensorShape]:
    dims, count = op._inputs[0].shape._d, op._attrs["num"]
    if dims is None:
        return [UNKNOWN] * count
    at = axis_of(op._attrs["axis"], len(dims))
    if dims[at] not in (None, count):
        raise ValueError(f"Dimension must be {count} but is {dims[at]}")
    return [TensorShape._of((*dims[:at], *dims[at + 1 :]))] * count


@op(
    "Unpack",
    "value: T -> output: num * T",
    "num: int; T: type; axis: int = 0",
    shape=_unpack_shape,
    moves="value",
    examples=[
        case(_A, num=2),
        case(_A, num=3, axis=-1),
        case(np.ones((0, 2), np.float32), num=0, grad=False),
    ],
)
def _unpack(xp: ArrayModule, x: Array, *, num: int, axis: int) -> tuple[Array, ...]:
    at = axis_of(axis, len(x.shape), invalid)
    if x.shape[at] != num:
        raise invalid(f"Input shape axis {at} must equal {num}, got shape {bracketed(x.shape)}")
    return tuple(x[(slice(None),) * at + (i, ...)] for i in range(num))


@gradient("Unpack")
def _unpack_grad(op: Operation, *grads: Any) -> Tensor:
    return apply("Pack", list(grads), axis=op._attrs["axis"])


@export("unstack")
def unstack(
    value: TensorLike, num: int | None = None, axis: int = 0, name: str | None = "unstack"
) -> list[Tensor]:
    """Takes a tensor apart along `axis`: a list with one tensor per position."""
    if num is None:
        value = to_tensor(value)
        dims = value.shape._d
        if dims is not None:
            if not -len(dims) <= axis < len(dims):
                raise ValueError(f"axis = {axis} not in [{-len(dims)}, {len(dims)})")
            num = dims[axis]
        if num is None:
            raise ValueError(f"Cannot infer num from shape {value.shape}")
    return apply_list("Unpack", value, num=num, axis=axis, name=name)
