"""How a strategy adds up values of several devices: `cross_device_ops` of `MirroredStrategy`.

The sum is the same however it is made; on this runtime's devices there is one way to make it. Classes of your own take part
by their `*_implementation` methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tensorfleet.api.distribute import reducing
from tensorfleet.api.distribute.context import ReduceOp
from tensorfleet.api.distribute.values import parts_of
from tensorfleet.base.types import TensorLike


class CrossDeviceOps:
    """The base: sums, means and copies over devices."""

    def __init__(self) -> None:
        """Needs nothing."""

    def reduce(self, reduce_op: ReduceOp | str, per_replica_value: object, destinations: object) -> Any:
        """The sum or mean of a value's parts, on each of the devices asked for."""
        return self.reduce_implementation(ReduceOp.of(reduce_op), per_replica_value, destinations)

    def batch_reduce(
        self, reduce_op: ReduceOp | str, value_destination_pairs: Iterable[tuple[Any, Any]]
    ) -> list[Any]:
        """`reduce` for many values at once."""
        return self.batch_reduce_implementation(ReduceOp.of(reduce_op), list(value_destination_pairs))

    def broadcast(self, tensor: TensorLike, destinations: object) -> Any:
        """A value on each of the devices asked for."""
        return self.broadcast_implementation(tensor, destinations)

    def reduce_implementation(
        self, reduce_op: ReduceOp, per_replica_value: object, destinations: object
    ) -> Any:
        """The implementation of `reduce`."""
        where = reducing.devices_of(destinations)
        parts = parts_of(per_replica_value)
        return reducing.copied(self._combined(reduce_op, parts, where[0]), where)

    def batch_reduce_implementation(
        self, reduce_op: ReduceOp, value_destination_pairs: Iterable[tuple[Any, Any]]
    ) -> list[Any]:
        """The implementation of `batch_reduce`."""
        return [self.reduce_implementation(reduce_op, v, d) for v, d in value_destination_pairs]

    def broadcast_implementation(self, tensor: TensorLike, destinations: object) -> Any:
        """The implementation of `broadcast`."""
        return reducing.copied(tensor, reducing.devices_of(destinations))

    def _combined(self, reduce_op: ReduceOp, parts: tuple[Any, ...], where: str) -> Any:
        return reducing.combine(reduce_op, parts, where, len(parts))


class ReductionToOneDevice(CrossDeviceOps):
    """Adds up on one device: the first destination, or `reduce_to_device`; `accumulation_fn` adds a list of tensors."""

    def __init__(
        self, reduce_to_device: str | None = None, accumulation_fn: Callable[[list[Any]], Any] | None = None
    ) -> None:
        super().__init__()
        self.reduce_to_device, self.accumulation_fn = reduce_to_device, accumulation_fn

    def _combined(self, reduce_op: ReduceOp, parts: tuple[Any, ...], where: str) -> Any:
        there = self.reduce_to_device or where
        if self.accumulation_fn is None:
            return super()._combined(reduce_op, parts, there)
        with reducing.placed(there):
            total = self.accumulation_fn(list(parts))
        return total / len(parts) if reduce_op is ReduceOp.MEAN else total


class NcclAllReduce(CrossDeviceOps):
    """Accepted, and adds up as all do."""

    def __init__(self, num_packs: int = 1) -> None:
        super().__init__()
        if num_packs < 0:
            raise ValueError(f"NCCL all-reduce requires num_packs >= 0, but {num_packs} is specified")


class HierarchicalCopyAllReduce(CrossDeviceOps):
    """Accepted, and adds up as all do."""

    def __init__(self, num_packs: int = 1) -> None:
        super().__init__()
        if num_packs < 0:
            raise ValueError(f"HierarchicalCopy requires num_packs >= 0, but {num_packs} is specified")
