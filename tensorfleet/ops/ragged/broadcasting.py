"""Elementwise functions of ragged tensors: all arguments are brought to common rows."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet.base.dtypes import DType
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.ops.ragged.dynamic_shape import (
    RaggedTensorDynamicShape,
    broadcast_dynamic_shape,
    broadcast_to,
)
from tensorfleet.ops.ragged.ragged_tensor import RaggedTensor


def elementwise(function: Callable[..., Tensor], *args: Any, **kwargs: Any) -> RaggedTensor:
    """`function` of the innermost values, in the rows that the arguments broadcast to."""
    ragged = [a for a in args if isinstance(a, RaggedTensor)]
    operands = [_plain(a, ragged[0].dtype) for a in args]
    inner = min(a.flat_values.shape.rank or 1 for a in ragged)
    if not all(_same_rows(a, ragged[0]) for a in ragged) or any(_reaches_rows(a, inner) for a in operands):
        operands = _broadcast(operands, inner)
    form = next(a for a in operands if isinstance(a, RaggedTensor))
    return form.with_flat_values(function(*map(_flat, operands), **kwargs))


def _plain(value: Any, kind: DType) -> Any:
    """A tensor; numbers are left for the function to convert."""
    if isinstance(value, (RaggedTensor, Tensor)) or np.ndim(value) == 0:
        return value
    return to_tensor(value, kind)


def _flat(value: Any) -> Any:
    return value.flat_values if isinstance(value, RaggedTensor) else value


def _same_rows(one: RaggedTensor, other: RaggedTensor) -> bool:
    mine, theirs = one.nested_row_splits, other.nested_row_splits
    return len(mine) == len(theirs) and all(a is b for a, b in zip(mine, theirs, strict=True))


def _reaches_rows(value: Any, inner: int) -> bool:
    """Whether a dense tensor has more dimensions than each of the innermost values."""
    return isinstance(value, Tensor) and value.shape.rank is not None and value.shape.rank >= inner


def _broadcast(operands: list[Any], inner: int) -> list[Any]:
    moved = [isinstance(a, RaggedTensor) or _reaches_rows(a, inner) for a in operands]
    shapes = [RaggedTensorDynamicShape.from_tensor(a) for a, m in zip(operands, moved, strict=True) if m]
    kind = max((s.dim_size_dtype for s in shapes), key=lambda d: d.size)
    common = functools.reduce(broadcast_dynamic_shape, [s.with_dim_size_dtype(kind) for s in shapes])
    return [broadcast_to(a, common, False) if m else a for a, m in zip(operands, moved, strict=True)]
