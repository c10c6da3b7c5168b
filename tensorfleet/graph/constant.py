"""Values of tensors that are known while the graph is built: constants, shapes, small arithmetic on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.operation import Operation, Tensor

if TYPE_CHECKING:
    from tensorfleet.base.types import Array

_MAX_ELEMENTS = 1024  # elements; more than that is no shape arithmetic
_UNKNOWN: tuple[Array, ...] = ()  # told apart by identity: no op without outputs is evaluated
#: ops that look at a shape only
SHAPE_OPS = ("Shape", "Size", "Rank", "VariableShape")


def constant_value(tensor: Tensor) -> np.ndarray | None:
    """The value of a tensor that does not depend on feeds or state, or None when it is not known."""
    op = tensor.op
    if op.type == "Const":
        value: Array = op._attrs["value"]
        return value
    if op.type in SHAPE_OPS:
        return of_shape(op)
    if op._constant is None:
        op._constant = _UNKNOWN  # also to itself, where inputs were replaced so that it needs itself
        op._constant = _evaluate(op)
    values = op._constant
    return None if values is _UNKNOWN else values[tensor.value_index]


def of_shape(op: Operation) -> np.ndarray | None:
    """The result of one of `SHAPE_OPS`, if the static shape determines it."""
    shape = op._inputs[0].shape
    if op.type == "VariableShape":
        source = op._inputs[0]._op
        while source.type == "Identity":
            source = source._inputs[0]._op
        shape = source._attrs.get("shape") or TensorShape(None)
    if op.type == "Rank":
        return None if shape.rank is None else np.array(shape.rank, np.int32)
    if not shape.is_fully_defined():
        return None
    dtype = op._attrs["out_type"].np_dtype
    return np.array(shape.num_elements() if op.type == "Size" else shape.as_list(), dtype)


def _evaluate(op: Operation) -> tuple[Array, ...]:
    spec = op.spec
    # Only cheap ops with integer, boolean or float results: this runs while the user builds the graph.
    if not spec.pure or spec.heavy or not op._inputs or spec.name.startswith("Placeholder"):
        return _UNKNOWN
    for out in op._outputs:
        count = out.shape.num_elements()
        if out.dtype.np_dtype.kind not in "iubf" or count is None or count > _MAX_ELEMENTS:
            return _UNKNOWN
    values = []
    for t in op._inputs:
        value = constant_value(t)
        if value is None or value.size > _MAX_ELEMENTS:
            return _UNKNOWN
        values.append(value)
    from tensorfleet.graph.kernels import run_numpy

    try:
        return run_numpy(op, values)
    except Exception:  # the same failure will be raised, with the op's name, when the op runs
        return _UNKNOWN


def constant_value_as_shape(tensor: Tensor) -> TensorShape:
    """The shape that a 1-D integer tensor stands for, as far as it is known; -1 means unknown."""
    if tensor.shape.rank == 0:
        value = constant_value(tensor)
        if value is None or int(value) != -1:
            raise ValueError(
                f"Received a scalar with unknown value as shape; need a 1-D tensor: {tensor.name}"
            )
        return TensorShape(None)
    if tensor.shape.rank is not None and tensor.shape.rank != 1:
        raise ValueError(f"Shape {tensor.shape} must have rank 1 to stand for a shape: {tensor.name}")
    op = tensor.op
    value = constant_value(op._inputs[0] if _enters_from_outermost(op) else tensor)
    if value is not None:
        return TensorShape._of(tuple(None if d < 0 else int(d) for d in value))
    if op.type in ("Shape", "ShapeN"):
        return op._inputs[tensor.value_index].shape
    if op.type in ("Identity", "Cast"):
        return constant_value_as_shape(op._inputs[0])
    if op.type == "Pack":
        return TensorShape._of(tuple(map(_dimension, op._inputs)))
    if op.type == "ConcatV2":
        whole = TensorShape(())
        for piece in op._inputs[:-1]:
            whole = whole.concatenate(constant_value_as_shape(piece))
        return whole
    if op.type == "StridedSlice":
        result = _sliced(op)
        if result is not None:
            return result
    count = tensor.shape.num_elements()
    return TensorShape(None) if count is None else TensorShape._of((None,) * count)


def _dimension(tensor: Tensor) -> int | None:
    """A scalar as one dimension of a shape."""
    value = constant_value(tensor)
    if value is not None:
        return None if value < 0 else int(value)
    op = tensor.op
    if op.type in ("Identity", "Cast") or _enters_from_outermost(op):
        return _dimension(op._inputs[0])
    if op.type == "StridedSlice" and op._attrs["shrink_axis_mask"] == 1:
        begin = constant_value(op._inputs[1])
        if begin is not None and begin.size == 1:
            source = constant_value_as_shape(op._inputs[0])
            if source.rank is not None and -source.rank <= int(begin[0]) < source.rank:
                size: int | None = source.as_list()[int(begin[0])]
                return size
    return _computed(op)


def _enters_from_outermost(op: Operation) -> bool:
    """Whether an outermost loop takes in a tensor as an invariant: shapes inside the loop may be computed from it.

    Only shapes: `tf.get_static_value` does not know it.
    """
    return op.type == "Enter" and op._attrs["is_constant"] and op._inputs[0]._op.type != "Enter"


def _computed(op: Operation) -> int | None:
    """A dimension that is computed from other dimensions."""
    if (
        not op.spec.pure
        or not op._inputs
        or len(op._outputs) != 1
        or op._outputs[0].dtype.np_dtype.kind != "i"
    ):
        return None
    values = []
    for t in op._inputs:
        size = _dimension(t) if t.shape.rank == 0 and t.dtype.np_dtype.kind == "i" else None
        if size is None:
            return None
        values.append(np.array(size, t.dtype.np_dtype))
    from tensorfleet.graph.kernels import run_numpy

    try:
        known_size = int(run_numpy(op, values)[0])
    except Exception:  # as above: the op itself will raise it
        return None
    return None if known_size < 0 else known_size


def _sliced(op: Operation) -> TensorShape | None:
    begin, end, strides = (constant_value(t) for t in op._inputs[1:4])
    a = op._attrs
    if begin is None or end is None or strides is None or begin.size != 1:
        return None
    if a["new_axis_mask"] or a["shrink_axis_mask"] or a["ellipsis_mask"]:
        return None
    source = constant_value_as_shape(op._inputs[0])
    if source.rank is None:
        return None
    first = None if a["begin_mask"] & 1 else int(begin[0])
    last = None if a["end_mask"] & 1 else int(end[0])
    return TensorShape(source.as_list()[first : last : int(strides[0])])
