"""Static shapes of a new operation."""

from __future__ import annotations

import re

from tensorfleet.base.shapes import TensorShape, difference
from tensorfleet.graph.operation import Operation


def infer_shapes(op: Operation) -> None:
    """Sets the static shapes of the outputs from the op's shape function."""
    if op.spec.removed is not None:
        _check_age(op, *op.spec.removed)
    try:
        for position, lowest, highest in op.spec.ranked:
            _check_rank(op._inputs[position].shape, lowest, highest)
        if op.spec.sized:
            _check_dims(op)
        if op.spec.shape is None:
            return
        shapes = op.spec.shape(op)
    except ValueError as e:
        inputs = ", ".join(_shape_text(t.shape) for t in op._inputs)
        reason = difference(*e.between) if hasattr(e, "between") else _RANK.sub(_rank_text, str(e))
        raise ValueError(
            f"{reason} for '{op.name}' (op: '{op.type}') with input shapes: {inputs}.\n  made at {op.source_line}"
        ) from None
    if isinstance(shapes, TensorShape):
        shapes = [shapes] * len(op._outputs)
    for tensor, shape in zip(op._outputs, shapes, strict=True):
        tensor._shape = shape


def _check_age(op: Operation, removed: int, instead: str) -> None:
    """Raises NotImplementedError when the graph is newer than the op."""
    version = op.graph.graph_def_versions.producer
    if version >= removed:
        raise NotImplementedError(
            f"Op {op.type} is not available in GraphDef version {version}. It has been removed in version {removed}. "
            f"{instead}."
        )


# What TensorShape says of a wrong rank, which shape functions say in other words.
_RANK = re.compile(r"^Shape \((.*)\) must have rank (at least |at most |)(\d+)$")


def _rank_text(found: re.Match[str]) -> str:
    dims, words, rank = found.groups()
    return f"Shape must be {words}rank {rank} but is rank {len(dims.split(', ')) if dims else 0}"


def _check_rank(shape: TensorShape, lowest: int, highest: float) -> None:
    if shape._d is None or lowest <= (rank := len(shape._d)) <= highest:
        return
    words = "" if lowest == highest else "at least " if rank < lowest else "at most "
    raise ValueError(f"Shape must be {words}rank {lowest if rank < lowest else highest} but is rank {rank}")


def _check_dims(op: Operation) -> None:
    """Raises ValueError when dimensions have other sizes than the op's signature tells."""
    known: dict[str, int] = {}
    for position, dims in op.spec.sized:
        for d, n in zip(dims, op._inputs[position].shape._d or (), strict=False):
            if n is None or d == "_":
                continue
            if isinstance(d, int):
                if d != n:
                    raise ValueError(f"Dimension must be {d} but is {n}")
            elif known.setdefault(d, n) != n:
                raise ValueError(f"Dimensions must be equal, but are {known[d]} and {n}")


def _shape_text(shape: TensorShape) -> str:
    if shape._d is None:
        return "<unknown>"
    return "[" + ",".join("?" if d is None else str(d) for d in shape._d) + "]"
