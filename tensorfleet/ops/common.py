"""What op blocks share: shape functions and the few places where numpy and jax.numpy differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.shapes import TensorShape, broadcast_shape
from tensorfleet.base.types import Array
from tensorfleet.graph.constant import constant_value, constant_value_as_shape
from tensorfleet.graph.operation import Operation, Tensor

SCALAR = TensorShape(())
UNKNOWN = TensorShape(None)


def same_as_input(op: Operation) -> TensorShape:
    """Every output has the shape of the first input."""
    return op._inputs[0].shape


def broadcast(op: Operation) -> TensorShape:
    """The shape the first two inputs broadcast to."""
    return broadcast_shape(op._inputs[0].shape, op._inputs[1].shape)


def merged_inputs(op: Operation) -> TensorShape:
    """The shape all inputs must have in common."""
    shape = op._inputs[0].shape
    for t in op._inputs[1:]:
        shape = shape.merge_with(t.shape)
    return shape


def scalar(op: Operation) -> TensorShape:
    """Every output is a scalar."""
    return SCALAR


def unknown(op: Operation) -> TensorShape:
    """Nothing is known."""
    return UNKNOWN


def vector_of(length: int | None) -> TensorShape:
    """The shape of a vector of that length."""
    return TensorShape._of((length,))


def static_value(op: Operation, position: int) -> Array | None:
    """The value of an input when it is a constant, else None."""
    return constant_value(op._inputs[position])


def static_scalar(op: Operation, position: int) -> int | None:
    """The integer that an input is when it is a constant, else None; ValueError for a constant of another rank."""
    value = static_value(op, position)
    if value is not None and value.ndim:
        raise ValueError(f"Input must be scalar but has rank {value.ndim}")
    return None if value is None else int(value)


def check_prefix(shape: TensorShape, prefix: TensorShape) -> None:
    """Raises ValueError unless a shape can begin with the dimensions of another."""
    if shape._d is None or prefix._d is None:
        return
    if len(shape._d) < len(prefix._d):
        raise ValueError(f"Shape must be at least rank {len(prefix._d)} but is rank {len(shape._d)}")
    for a, b in zip(shape._d, prefix._d, strict=False):
        if a is not None and b is not None and a != b:
            raise ValueError(f"Dimensions must be equal, but are {a} and {b}")


def shape_given_by(op: Operation, position: int) -> TensorShape:
    """The shape that an integer vector input asks for, as far as it is known."""
    return constant_value_as_shape(op._inputs[position])


def normal_axis(axis: int, rank: int, what: str = "axis") -> int:
    """A possibly negative axis as a position; ValueError when there is no such axis."""
    if not -rank <= axis < rank:
        raise ValueError(f"{what} = {axis} not in [{-rank}, {rank})")
    return axis % rank


def require(ok: bool, message: str) -> None:
    """InvalidArgumentError unless something holds that does not depend on what is traced."""
    if not ok:
        raise errors.invalid(message)


def first_bad(ok: Array, values: Array) -> tuple[str, Any]:
    """Where, as "[i,j]", and what the first element is for which `ok` is false. For error messages."""
    ok, values = np.asarray(ok), np.asarray(values)
    where = np.unravel_index(int(np.argmin(ok.ravel())), ok.shape)
    index = "[" + ",".join(str(int(i)) for i in where) + "]" if where else ""
    return index, values[where]


def ints(values: Array | Sequence[int] | int) -> tuple[int, ...]:
    """A concrete integer vector (a shape, axes, paddings) as Python ints."""
    if type(values) is not np.ndarray or values.ndim != 1:
        values = np.asarray(values).ravel()
    return tuple(values.tolist())


def tensor_list(op: Operation, position: int) -> tuple[Tensor, ...]:
    """The tensors of a declared list input."""
    start, end = op.input_list(position)
    return op._inputs[start:end]
