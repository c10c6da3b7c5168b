"""Static shapes of a new operation."""

from __future__ import annotations

from tensorfleet.graph.operation import Operation
from tensorfleet.shapes import TensorShape, difference


def infer_shapes(op: Operation) -> None:
    """Sets the static shapes of the outputs from the op's shape function."""
    if op.spec.shape is None:
        return
    try:
        shapes = op.spec.shape(op)
    except ValueError as e:
        inputs = ", ".join(_shape_text(t.shape) for t in op._inputs)
        told = difference(*e.between) if hasattr(e, "between") else e
        raise ValueError(
            f"{told} for '{op.name}' (op: '{op.type}') with input shapes: {inputs}.\n  made at {op.source_line}"
        ) from None
    if isinstance(shapes, TensorShape):
        shapes = [shapes] * len(op._outputs)
    for tensor, shape in zip(op._outputs, shapes, strict=True):
        tensor._shape = shape


def _shape_text(shape: TensorShape) -> str:
    if shape._d is None:
        return "<unknown>"
    return "[" + ",".join("?" if d is None else str(d) for d in shape._d) + "]"
