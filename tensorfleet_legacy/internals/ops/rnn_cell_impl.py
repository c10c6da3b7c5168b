"""Private functions of TensorFlow's loops over cells, for code that was copied out of it."""

from __future__ import annotations

from typing import Any

from tensorfleet.base.naming import export, find
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.operation import Tensor


def _known(size: Any) -> TensorShape | None:
    """A number, a shape or a tensor of sizes as a shape, if it is known while the graph is built."""
    if isinstance(size, Tensor):
        value = constant_value(size)
        return None if value is None else TensorShape(value.reshape(-1).tolist())
    return TensorShape([size]) if isinstance(size, int) else TensorShape(size)


def _sizes(size: Any) -> Tensor:
    """The same as a vector."""
    if not isinstance(size, Tensor):
        return find("constant")(_known(size).as_list(), find("int32"))  # type: ignore[union-attr]
    return find("reshape")(size, [-1])


@export("python.ops.rnn_cell_impl._concat", "python.ops.rnn._concat")
def _concat(prefix: Any, suffix: Any, static: bool = False) -> Any:
    """The sizes of one shape and then those of another: as a list if `static`, else as a tensor."""
    parts = [_known(prefix), _known(suffix)]
    if static:
        known = [part for part in parts if part is not None and part.ndims is not None]
        if len(known) < 2:
            raise ValueError(f"static shapes of {prefix} and {suffix} must be known.")
        return known[0].concatenate(known[1]).as_list()
    if all(part is not None and part.is_fully_defined() for part in parts):
        return find("constant")(parts[0].concatenate(parts[1]).as_list(), find("int32"))  # type: ignore[union-attr]
    return find("concat")([_sizes(prefix), _sizes(suffix)], 0)


@export("python.ops.rnn_cell_impl._like_rnncell")
def _like_rnncell(cell: Any) -> bool:
    """Whether something has what a cell has."""
    return callable(cell) and all(hasattr(cell, name) for name in ("output_size", "state_size", "zero_state"))
