"""`tf.switch_case`: one of several functions, by number; `tf.vectorized_map`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from tensorfleet.base import dtypes, nest
from tensorfleet.base.naming import export
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.constructors import range_
from tensorfleet.ops.array.gather import gather
from tensorfleet.ops.array.shape import shape
from tensorfleet.ops.control.cond import Branch, cond
from tensorfleet.ops.control.functional import map_fn

#: Functions by number: in a dict, as pairs, or in order.
BranchFunctions: TypeAlias = dict[int, Branch] | Sequence[Branch] | Sequence[tuple[int, Branch]]


def _numbered(branch_fns: BranchFunctions) -> list[tuple[int, Branch]]:
    """The functions with their numbers, in order."""
    pairs: list[Any]
    if isinstance(branch_fns, dict):
        pairs = list(branch_fns.items())
    elif isinstance(branch_fns, (list, tuple)):
        if all(callable(fn) for fn in branch_fns):
            pairs = list(enumerate(branch_fns))
        else:
            pairs = [tuple(pair) for pair in branch_fns]
    else:
        raise TypeError("branch_fns must be a list, tuple, or dict")
    if not pairs:
        raise ValueError("Must provide at least one item in branch_fns")
    for number, fn in pairs:
        if not isinstance(number, int):
            raise TypeError(f"key must be a Python `int`, got {type(number)}")
        if not callable(fn):
            raise TypeError(f"fn for key {number} must be callable.")
    numbers = sorted(number for number, _ in pairs)
    if numbers != list(range(len(pairs))):
        keys = ",".join(map(str, numbers))
        raise ValueError(
            f"branch indices (keys) must form contiguous range of [0 to {len(pairs)}) but found {{{keys}}}"
        )
    return sorted(pairs, key=lambda pair: pair[0])


@export("switch_case")
def switch_case(
    branch_index: TensorLike,
    branch_fns: BranchFunctions,
    default: Branch | None = None,
    name: str = "switch_case",
) -> Any:
    """The result of the function with number `branch_index`; of `default`, or the last one, for other numbers."""
    if not isinstance(branch_index, Tensor):
        raise TypeError(f"branch_index must a Tensor, got {type(branch_index)}")
    if not branch_index.dtype.is_integer:
        raise TypeError(f"branch_index must an integer Tensor, got {branch_index.dtype}")
    pairs = _numbered(branch_fns)
    with name_scope(name, "switch_case", [branch_index]):
        index = to_tensor(branch_index, dtypes.int32, name="branch_index")
        if default is None:
            (_, chosen), pairs = pairs[-1], pairs[:-1]
        else:
            if not callable(default):
                raise TypeError("default must be callable.")
            chosen = default
        for number, fn in reversed(pairs):
            chosen = _either(index, number, fn, chosen)
        return chosen()


def _either(index: Tensor, number: int, fn: Branch, otherwise: Branch) -> Branch:
    return lambda: cond(apply("Equal", index, np.int32(number)), fn, otherwise)


@export("vectorized_map")
def vectorized_map(fn: Callable[[Any], Any], elems: Any) -> Any:
    """`fn` of each row of the elements, stacked."""
    rows = nest.map_structure(to_tensor, elems)

    def of_row(i: Tensor | int) -> Any:
        # Rows are gathered in the loop, so that `fn` can take gradients with respect to the tensors before them.
        return fn(nest.map_structure(lambda x: gather(x, i), rows))

    kinds = nest.map_structure(lambda x: x.dtype.base_dtype, of_row(0))
    first = nest.flatten(rows)[0]
    count = first.shape[0].value if first.shape.ndims else None
    return map_fn(of_row, range_(shape(first)[0] if count is None else count), dtype=kinds)
