"""Variables in several parts, and the functions that decide how to cut them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from tensorfleet import dtypes
from tensorfleet.api import export
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import register_tensor_conversion_function
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.operators import install_on_variable
from tensorfleet.shapes import TensorShape


class PartitionInfo:
    """Which part of a whole an initializer is asked for."""

    def __init__(self, full_shape: list[int], var_offset: list[int]) -> None:
        self.full_shape = list(full_shape)
        self.var_offset = list(var_offset)

    def single_offset(self, shape: list[int]) -> int:
        """The offset along the one axis that is cut."""
        axis = self.single_slice_dim(shape)
        return 0 if axis is None else self.var_offset[axis]

    def single_slice_dim(self, shape: list[int]) -> int | None:
        """The one axis that is cut, or None."""
        cut = [i for i, (whole, part) in enumerate(zip(self.full_shape, shape, strict=True)) if whole != part]
        if len(cut) > 1:
            raise ValueError(f"Cannot use single_slice_dim() with shape {shape}: more than one axis is cut.")
        return cut[0] if cut else None


class Slices:
    """How a shape is cut: `counts` parts along each axis, at most one of them more than one."""

    def __init__(self, shape: list[int], counts: list[int]) -> None:
        self.shape = shape
        self.counts = counts

    def offsets(self) -> Iterator[tuple[list[int], list[int]]]:
        """(offset, length) of every part, the longer parts first."""
        axis = next((i for i, n in enumerate(self.counts) if n > 1), 0)
        parts = self.counts[axis]
        base, extra = divmod(self.shape[axis], parts)
        start = 0
        for i in range(parts):
            length = base + (1 if i < extra else 0)
            offset, size = [0] * len(self.shape), list(self.shape)
            offset[axis], size[axis] = start, length
            start += length
            yield offset, size


def partition(partitioner: Callable, shape: TensorShape, dtype: dtypes.DType) -> Slices:
    """Asks a partitioner how to cut, and checks its answer."""
    if not shape.is_fully_defined():
        raise ValueError(
            f"Shape of a new partitioned variable must be fully defined, but instead was {shape}."
        )
    if shape.rank == 0:
        raise ValueError(f"A partitioned variable must have rank at least 1. Shape: {shape}")
    counts = partitioner(shape=shape, dtype=dtype)
    if not isinstance(counts, (list, tuple)):
        raise ValueError(f"Partitioner must return a sequence, but saw: {counts}")
    counts = [int(c) for c in counts]
    if len(counts) != shape.rank:
        raise ValueError(
            f"Partitioner returned a partition list that does not match the Variable's rank: {counts}, {shape}"
        )
    if any(c < 1 for c in counts):
        raise ValueError(f"Partitioner returned zero partitions for some axes: {counts}")
    if sum(c > 1 for c in counts) > 1:
        raise ValueError(
            f"Can only slice a variable along one dimension: shape: {shape}, partitioning: {counts}"
        )
    dims = [int(d) for d in shape.as_list() if d is not None]
    for size, count in zip(dims, counts, strict=True):
        if size < count:
            raise ValueError(f"Partitioner asks for {count} parts of an axis of length {size}.")
    return Slices(dims, counts)


class PartitionedVariable:
    """One variable in several parts; it converts to the tensor of the whole."""

    def __init__(self, name: str, shape: Any, dtype: Any, variable_list: list, partitions: list[int]) -> None:
        self._name = name
        self._shape = shape
        self._dtype = dtype
        self._variables = variable_list
        self._partitions = partitions

    def __iter__(self) -> Iterator:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)

    @property
    def name(self) -> str:
        """The name of the whole."""
        return self._name

    @property
    def dtype(self) -> Any:
        """The type of the elements."""
        return self._dtype

    @property
    def shape(self) -> TensorShape:
        """The shape of the whole."""
        return self._shape

    def get_shape(self) -> TensorShape:
        """The shape of the whole."""
        return self._shape

    def _get_variable_list(self) -> list:
        return self._variables

    def _get_partitions(self) -> list[int]:
        return self._partitions

    def _partition_axes(self) -> list[int]:
        return [i for i, n in enumerate(self._partitions) if n > 1] or [0]

    def as_tensor(self) -> Any:
        """The parts joined into one tensor."""
        with name_scope(None), name_scope(self._name + "/ConcatPartitions/"):
            values = [v._AsTensor() for v in self._variables]
            if len(values) == 1:
                return apply("Identity", values[0], name=self._name + "/")
            joined = apply("ConcatV2", values, self._partition_axes()[0], name="concat")
        with name_scope(None):
            return apply("Identity", joined, name=self._name)

    def assign(
        self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> list:
        """Assigns each part its share of `value`."""
        slices = Slices([int(d) for d in self._shape.as_list()], self._partitions)
        parts = [apply("Slice", value, offset, length) for offset, length in slices.offsets()]
        return [
            v.assign(p, use_locking, name, read_value) for v, p in zip(self._variables, parts, strict=True)
        ]


def _to_tensor(
    var: PartitionedVariable, dtype: Any = None, name: str | None = None, as_ref: bool = False
) -> Any:
    if dtype is not None and not dtypes.as_dtype(dtype).is_compatible_with(var.dtype):
        raise ValueError(
            f"Incompatible type conversion requested to type '{dtype}' for variable of type '{var.dtype.name}'"
        )
    if as_ref:
        raise NotImplementedError("PartitionedVariable doesn't support being used as a reference.")
    return var.as_tensor()


register_tensor_conversion_function(PartitionedVariable, _to_tensor)
install_on_variable(PartitionedVariable)


@export("fixed_size_partitioner")
def fixed_size_partitioner(num_shards: int, axis: int = 0) -> Callable:
    """Cuts every variable into `num_shards` parts along `axis`."""

    def partitioner(shape: Any, **unused: Any) -> list[int]:
        counts = [1] * len(shape)
        counts[axis] = min(num_shards, int(shape.as_list()[axis]))
        return counts

    return partitioner


@export("variable_axis_size_partitioner")
def variable_axis_size_partitioner(
    max_shard_bytes: int, axis: int = 0, bytes_per_string_element: int = 16, max_shards: int | None = None
) -> Callable:
    """Cuts a variable into as many parts as keep each below `max_shard_bytes`."""
    if max_shard_bytes < 1 or bytes_per_string_element < 1:
        raise ValueError("max_shard_bytes and bytes_per_string_element must be positive")
    if max_shards is not None and max_shards < 1:
        raise ValueError(f"max_shards must be positive, but is: {max_shards}")

    def partitioner(shape: TensorShape, dtype: Any) -> list[int]:
        element = bytes_per_string_element if dtype.base_dtype == dtypes.string else dtype.size
        dims = [int(d) for d in shape.as_list()]
        slice_bytes = max(math.prod(dims) // max(dims[axis], 1) * element, 1)
        per_shard = max(1, math.floor(max_shard_bytes / slice_bytes))
        counts = [1] * len(dims)
        counts[axis] = max(1, math.ceil(dims[axis] / per_shard))
        if max_shards is not None:
            counts[axis] = min(max_shards, counts[axis])
        return counts

    return partitioner


@export("min_max_variable_partitioner")
def min_max_variable_partitioner(
    max_partitions: int = 1,
    axis: int = 0,
    min_slice_size: int = 256 << 10,
    bytes_per_string_element: int = 16,
) -> Callable:
    """Cuts a variable into at most `max_partitions` parts of at least `min_slice_size` bytes."""

    def partitioner(shape: TensorShape, dtype: Any) -> list[int]:
        element = bytes_per_string_element if dtype.base_dtype == dtypes.string else dtype.size
        dims = [int(d) for d in shape.as_list()]
        total = math.prod(dims) * element
        counts = [1] * len(dims)
        counts[axis] = max(1, min(dims[axis], max_partitions, math.ceil(total / min_slice_size)))
        return counts

    return partitioner
