"""The sum or the mean of the values of several replicas, copied to the devices that ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from tensorfleet.api.distribute.context import ReduceOp
from tensorfleet.api.distribute.values import Mirrored, parts_of
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import colocate_with, device
from tensorfleet.ops.array.concat import concat


def placed(where: str) -> AbstractContextManager[None]:
    """A block whose operations are on a device, whatever surrounds it."""
    return _Placed(where)


class _Placed:
    def __init__(self, where: str) -> None:
        self._blocks = [colocate_with(None, ignore_existing=True), device(where)]

    def __enter__(self) -> None:
        for block in self._blocks:
            block.__enter__()

    def __exit__(self, *error: Any) -> None:
        for block in reversed(self._blocks):
            block.__exit__(*error)


def combine(reduce_op: ReduceOp, values: Sequence[Any], where: str, replicas: int) -> Tensor | IndexedSlices:
    """The sum of values, or that divided by the number of replicas, on a device."""
    with placed(where):
        if all(isinstance(v, IndexedSlices) for v in values):
            return _combined_rows(reduce_op, values, replicas)
        tensors = [to_tensor(v) for v in values]
        total = tensors[0] if len(tensors) == 1 else apply("AddN", tensors)
        return _divided(total, replicas) if reduce_op is ReduceOp.MEAN else total


def _combined_rows(reduce_op: ReduceOp, values: Sequence[Any], replicas: int) -> IndexedSlices:
    rows = values[0].values if len(values) == 1 else concat([v.values for v in values], 0)
    indices = values[0].indices if len(values) == 1 else concat([v.indices for v in values], 0)
    rows = _divided(rows, replicas) if reduce_op is ReduceOp.MEAN else rows
    return IndexedSlices(rows, indices, values[0].dense_shape)


def _divided(total: Tensor, replicas: int) -> Tensor:
    return total if replicas == 1 else apply("RealDiv", total, to_tensor(replicas, total.dtype.base_dtype))


def copied(value: TensorLike, devices: Sequence[str]) -> Any:
    """A value on each of several devices; on one alone it is the value there, not a `Mirrored`."""
    copies = []
    for where in devices:
        with placed(where):
            copies.append(_copy(value))
    return copies[0] if len(copies) == 1 else Mirrored(copies)


def _copy(value: TensorLike) -> Tensor | IndexedSlices:
    if isinstance(value, IndexedSlices):
        shape = value.dense_shape
        return IndexedSlices(
            apply("Identity", value.values),
            apply("Identity", value.indices),
            None if shape is None else apply("Identity", shape),
        )
    return apply("Identity", to_tensor(value))


def devices_of(destinations: object) -> list[str]:
    """The devices that are meant: names, or where the parts of a value are."""
    if isinstance(destinations, str):
        return [destinations]
    if isinstance(destinations, (list, tuple)):
        return [d for item in destinations for d in devices_of(item)]
    return [part.device for part in parts_of(destinations)]


def not_distributed(reduce_op: ReduceOp, value: TensorLike, replicas: int) -> Any:
    """The reduction of a value that is the same in all replicas."""
    # Zero has the same sum over any number of replicas.
    if isinstance(value, (int, float)) and value == 0:
        return 0
    if reduce_op is ReduceOp.MEAN or replicas == 1:
        return value
    raise ValueError(
        f"A non-DistributedValues value {value} cannot be reduced with the given reduce op {reduce_op}. Only a value that "
        "differs between replicas has a sum over them: pass a result of strategy.experimental_run_v2."
    )
