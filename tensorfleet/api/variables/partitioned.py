"""Variables in several parts, and the functions that decide how to cut them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape, as_shape
from tensorfleet.base.types import DTypeLike, ShapeLike, TensorLike
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.convert import register_tensor_conversion_function
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import control_dependencies, name_scope
from tensorfleet.ops.operators import install_on_variable

if TYPE_CHECKING:
    from tensorfleet.api.variables.types import Partitioner
    from tensorfleet.api.variables.variable import Variable


class PartitionInfo:
    """Which part of a whole an initializer is asked for."""

    def __init__(self, full_shape: Sequence[int], var_offset: Sequence[int]) -> None:
        for name, given in (("full_shape", full_shape), ("var_offset", var_offset)):
            if not isinstance(given, Sequence) or isinstance(given, str):
                raise TypeError(f"`{name}` must be a sequence (like tuple or list) instead of {type(given)}")
        if len(full_shape) != len(var_offset):
            raise ValueError(
                f"Expected equal length, but `var_offset` is of length {len(var_offset)} while full_shape is of "
                f"length {len(full_shape)}."
            )
        for offset, size in zip(var_offset, full_shape, strict=True):
            if offset < 0 or offset >= size:
                raise ValueError(
                    f"Expected 0 <= offset < shape but found offset={offset}, shape={size} for "
                    f"var_offset={var_offset}, full_shape={full_shape}"
                )
        self.full_shape = list(full_shape)
        self.var_offset = list(var_offset)

    def single_offset(self, shape: Sequence[int]) -> int:
        """The offset along the one axis that is cut."""
        axis = self.single_slice_dim(shape)
        return 0 if axis is None else self.var_offset[axis]

    def single_slice_dim(self, shape: Sequence[int]) -> int | None:
        """The one axis that is cut, or None."""
        if not isinstance(shape, Sequence) or isinstance(shape, str):
            raise TypeError(f"`shape` must be a sequence (like tuple or list) instead of {type(shape)}")
        if len(shape) != len(self.full_shape):
            raise ValueError(
                f"Expected equal length, but received shape={shape} of length {len(shape)} while "
                f"self.full_shape={self.full_shape} is of length {len(self.full_shape)}."
            )
        if any(o + n > whole for o, n, whole in zip(self.var_offset, shape, self.full_shape, strict=True)):
            raise ValueError(
                f"With self.var_offset={self.var_offset}, a partition of shape={shape} would exceed "
                f"self.full_shape={self.full_shape}."
            )
        cut = [i for i, (whole, part) in enumerate(zip(self.full_shape, shape, strict=True)) if whole != part]
        if len(cut) > 1:
            raise ValueError(
                f"Cannot use single_slice_dim() with shape={shape} and self.full_shape={self.full_shape} since "
                f"slice dim could be either dimension {cut[0]} or {cut[1]}."
            )
        return cut[0] if cut else None


class ShapePartition:
    """How a shape is cut: `counts` parts along each axis, at most one of them more than one."""

    def __init__(self, shape: list[int], counts: list[int]) -> None:
        self.shape = shape
        self.counts = counts

    def offsets(self) -> Iterator[tuple[list[int], list[int]]]:
        """(offset, length) of every part, the longer parts first."""
        # At most one axis is cut: checkpoints could describe more, TensorFlow's variables cannot.
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


def partition(partitioner: Partitioner, shape: TensorShape, dtype: dtypes.DType) -> ShapePartition:
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
    return ShapePartition(dims, counts)


class PartitionedVariable:
    """One variable in several parts; it converts to the tensor of the whole."""

    def __init__(
        self,
        name: str,
        shape: ShapeLike,
        dtype: DType,
        variable_list: Sequence[Variable],
        partitions: list[int],
    ) -> None:
        _check_parts(shape, variable_list, partitions)
        self._name = name
        self._shape = as_shape(shape)
        self._dtype = dtype
        self._variables = sorted(variable_list, key=lambda v: v._save_slice_info.var_offset)
        self._partitions = partitions

    def __iter__(self) -> Iterator[Variable]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)

    name: str = readonly("_name", "The name of the whole.")
    dtype: DType = readonly("_dtype", "The type of the elements.")
    shape: TensorShape = readonly("_shape", "The shape of the whole.")

    def get_shape(self) -> TensorShape:
        """The shape of the whole."""
        return self._shape

    def _get_variable_list(self) -> list[Variable]:
        return self._variables

    def _get_partitions(self) -> list[int]:
        return self._partitions

    def _partition_axes(self) -> list[int]:
        return [i for i, n in enumerate(self._partitions) if n > 1] or [0]

    def _concat(self) -> Tensor:
        # The operations have the variable's name, whatever scope reads it first.
        with name_scope(None), name_scope(self._name + "/ConcatPartitions/"):
            values = [v._AsTensor() for v in self._variables]
            joined = values[0]
            if len(values) > 1:
                joined = apply("ConcatV2", values, self._partition_axes()[0], name="concat")
        with name_scope(None):
            return apply("Identity", joined, name=self._name)

    def as_tensor(self) -> Tensor:
        """The parts joined into one tensor, whatever control dependencies are around."""
        with control_dependencies(None):
            return self._concat()

    def _shares(self, value: TensorLike) -> list[Any]:
        """The value of each part: an item of a list, or a piece of a tensor that is cut like the whole."""
        if isinstance(value, (list, PartitionedVariable)):
            if len(value) != len(self._variables):
                raise ValueError(
                    f"{self._name} has {len(self._variables)} parts, and values for {len(value)} are given."
                )
            return list(value)
        axis = self._partition_axes()[0]
        sizes = np.asarray([v.shape.as_list()[axis] for v in self._variables], np.int32)
        return apply_list("SplitV", value, sizes, axis, num_split=len(sizes))

    def assign(
        self, value: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> list[Any]:
        """Assigns each part its share of `value`, a tensor of the whole or a list with a value for each part."""
        shares = zip(self._variables, self._shares(value), strict=True)
        return [v.assign(share, use_locking, name, read_value) for v, share in shares]

    def assign_add(
        self, value: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> list[Any]:
        """Adds to each part its share of `value`."""
        shares = zip(self._variables, self._shares(value), strict=True)
        return [v.assign_add(share, use_locking, name, read_value) for v, share in shares]

    def assign_sub(
        self, value: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> list[Any]:
        """Subtracts from each part its share of `value`."""
        shares = zip(self._variables, self._shares(value), strict=True)
        return [v.assign_sub(share, use_locking, name, read_value) for v, share in shares]


def _check_parts(shape: ShapeLike, variables: Sequence[Variable], partitions: Sequence[int]) -> None:
    if not isinstance(variables, (list, tuple)):
        raise TypeError(f"variable_list is not a list or tuple: {variables}")
    if not isinstance(partitions, (list, tuple)):
        raise TypeError(f"partitions is not a list or tuple: {partitions}")
    if not partitions or not variables:
        raise ValueError("partitions and variable_list may not both be empty")
    if any(count <= 0 for count in partitions):
        raise ValueError(f"partition values must be positive: {partitions}")
    for v in variables:
        info = v._get_save_slice_info()
        if info is None:
            raise ValueError(f"All variables must have a save_slice_info: {v}")
        if as_shape(info.full_shape) != as_shape(shape):
            raise ValueError(
                f"All variables' full shapes must match shape: {shape}; but saw: {info.full_shape}"
            )
    if math.prod(partitions) != len(variables):
        raise ValueError(f"partitions {partitions} do not make {len(variables)} parts")


def _to_tensor(
    var: PartitionedVariable, dtype: DTypeLike | None = None, name: str | None = None, as_ref: bool = False
) -> Tensor:
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
def fixed_size_partitioner(num_shards: int, axis: int = 0) -> Callable[..., list[int]]:
    """Cuts every variable into `num_shards` parts along `axis`."""

    def partitioner(shape: TensorShape, **unused: object) -> list[int]:
        counts = [1] * len(shape)
        counts[axis] = min(num_shards, int(shape.as_list()[axis]))
        return counts

    return partitioner


@export("variable_axis_size_partitioner")
def variable_axis_size_partitioner(
    max_shard_bytes: int, axis: int = 0, bytes_per_string_element: int = 16, max_shards: int | None = None
) -> Callable[..., list[int]]:
    """Cuts a variable into as many parts as keep each below `max_shard_bytes`."""
    if max_shard_bytes < 1 or bytes_per_string_element < 1:
        raise ValueError("max_shard_bytes and bytes_per_string_element must be positive")
    if max_shards is not None and max_shards < 1:
        raise ValueError(f"max_shards must be positive, but is: {max_shards}")

    def partitioner(shape: TensorShape, dtype: DType) -> list[int]:
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
) -> Callable[..., list[int]]:
    """Cuts a variable into at most `max_partitions` parts of at least `min_slice_size` bytes."""

    def partitioner(shape: TensorShape, dtype: DType) -> list[int]:
        element = bytes_per_string_element if dtype.base_dtype == dtypes.string else dtype.size
        dims = [int(d) for d in shape.as_list()]
        total = math.prod(dims) * element
        counts = [1] * len(dims)
        counts[axis] = max(1, min(dims[axis], max_partitions, math.ceil(total / min_slice_size)))
        return counts

    return partitioner
