"""Elementwise functions of ragged tensors: dense arguments are brought to their rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet import dtypes
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import control_dependencies
from tensorfleet.ops.checks import assert_equal
from tensorfleet.ops.ragged_tensor import RaggedTensor
from tensorfleet.ragged_tensors.reducing import within_rows


def elementwise(function: Callable, *args: Any, **kwargs: Any) -> Any:
    """`function` of the innermost values, in the rows of the ragged arguments."""
    form = max((a for a in args if isinstance(a, RaggedTensor)), key=lambda a: a.ragged_rank)
    rows = [a for a in args if isinstance(a, RaggedTensor) and a is not form]
    with control_dependencies(_same_rows(form, rows)):
        kind = form.dtype
        flat = [_flat(a, form, kind) for a in args]
        return form.with_flat_values(function(*flat, **kwargs))


def _same_rows(form: RaggedTensor, others: list[RaggedTensor]) -> list:
    checks = []
    for other in others:
        if other.ragged_rank != form.ragged_rank:
            raise ValueError("All ragged inputs must have the same ragged_rank.")
        for a, b in zip(form.nested_row_splits, other.nested_row_splits, strict=True):
            if a is not b:
                b = apply("Cast", b, DstT=a.dtype) if b.dtype != a.dtype else b
                checks.append(assert_equal(a, b, message="Unable to broadcast: dimension size mismatch"))
    return checks


def _flat(value: Any, form: RaggedTensor, kind: Any) -> Any:
    if isinstance(value, RaggedTensor):
        return value.flat_values
    if not isinstance(value, Tensor) and np.ndim(value) == 0:
        return value
    dense = value if isinstance(value, Tensor) else to_tensor(value, kind)
    rank, inner = dense.shape.rank, form.flat_values.shape.rank
    if rank is None or inner is None or rank <= inner - 1:
        return dense
    return _spread(dense, form, inner)


def _spread(dense: Tensor, form: RaggedTensor, inner: int) -> Tensor:
    """The elements of a dense tensor that belong to each of the innermost values."""
    total = form.ragged_rank + inner
    rank = len(dense.shape.as_list())
    if rank > total:
        raise ValueError(f"A tensor of rank {rank} does not broadcast to ragged rows of rank {total}.")
    for _ in range(total - rank):
        dense = apply("ExpandDims", dense, 0)
    sizes = apply("Shape", dense, out_type=dtypes.int64)
    places = []
    for i, place in enumerate(_coordinates(form)):
        number = apply("Cast", place, DstT=dtypes.int64)
        single = apply("Equal", sizes[i], np.int64(1))
        places.append(apply("SelectV2", single, apply("ZerosLike", number), number))
    return apply("GatherNd", dense, apply("Pack", places, axis=1))


def _coordinates(form: RaggedTensor) -> list[Tensor]:
    """For each of the innermost values: its place along the first dimension and every ragged one."""
    levels = [form]
    while isinstance(levels[-1].values, RaggedTensor):
        levels.append(levels[-1].values)
    found: list[Tensor] = []
    for level in levels:
        rows = level.value_rowids()
        if not found:
            found = [rows]
        else:
            found = [apply("GatherV2", place, rows, 0) for place in found]
        found.append(within_rows(level))
    return found
