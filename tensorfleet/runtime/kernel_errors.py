"""Why a kernel failed, in TensorFlow's words where the shapes it was given are to blame.

Shapes that are unknown while the graph is built reach kernels unchecked, and what numpy or XLA says of them tells
little. The op's own shape function is asked then, about the shapes that came.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.shapes import TensorShape, shape_text
from tensorfleet.graph.apply import add_const, add_raw, apply
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Operation, Tensor

if TYPE_CHECKING:
    from tensorfleet.base.types import Array

# Larger tensors are no sizes, axes or paddings that a shape depends on.
_MAX_VALUES = 64


def refused(op: Operation, args: Sequence[Any], error: Exception) -> errors.OpError:
    """The error of an operation whose kernel raised one, with these arguments."""
    op_error = errors.about(op, error)
    if op_error is error or not isinstance(op_error, errors.InvalidArgumentError):
        return op_error
    words = _wrong_shapes(op, args)
    return op_error if words is None else errors.InvalidArgumentError(None, op, words)


def _wrong_shapes(op: Operation, args: Sequence[Any]) -> str | None:
    """What the shape function has to say against the arguments; None when it knew them, or finds nothing wrong."""
    if len(args) != len(op._inputs) or all(t.shape.is_fully_defined() for t in op._inputs):
        return None
    if any(t.dtype.name in ("resource", "variant") or not hasattr(a, "shape") for t, a in _pairs(op, args)):
        return None
    for position, lowest, highest in op.spec.ranked:
        if position in op.spec.words and not lowest <= len(args[position].shape) <= highest:
            return op.spec.words[position].format(shape_text(args[position].shape))
    attrs = {k: v for k, v in op._attrs.items() if not k.startswith("_")}
    with Graph().as_default() as graph:
        try:
            add_raw(graph, op.type, [_stand_in(t, a) for t, a in _pairs(op, args)], attrs, op.name)
        except ValueError as e:
            return str(e).splitlines()[0]  # not where it was made: that is here
    return None


def _pairs(op: Operation, args: Sequence[Any]) -> list[tuple[Tensor, Any]]:
    return list(zip(op._inputs, args, strict=True))


def _stand_in(tensor: Tensor, value: Array) -> Tensor:
    """A tensor of the shape of a value, and of its numbers where a shape may depend on them."""
    kind = tensor.dtype.base_dtype
    if kind.is_integer and isinstance(value, (np.ndarray, np.generic)) and value.size <= _MAX_VALUES:
        return add_const(np.asarray(value), kind, "Const")
    return apply("Placeholder", dtype=kind, shape=TensorShape(value.shape))
