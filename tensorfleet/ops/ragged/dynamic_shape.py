"""The shapes of ragged tensors as tensors themselves, and how such shapes are brought to a common one.

A dimension is a number when all its rows are equally long, and a vector of lengths when they are not. Broadcasting
repeats slices of a dimension of size 1. The dimensions below follow by the numbers of the rows that are repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.properties import readonly
from tensorfleet.base.types import DTypeLike, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import control_dependencies
from tensorfleet.ops.array.basic import identity
from tensorfleet.ops.array.checks import Assert
from tensorfleet.ops.array.concat import concat
from tensorfleet.ops.array.constructors import fill, range_
from tensorfleet.ops.array.gather import gather
from tensorfleet.ops.array.shape import reshape
from tensorfleet.ops.array.stack import stack
from tensorfleet.ops.array.tile_roll_reverse import repeat
from tensorfleet.ops.math.reduce_functions import reduce_all, reduce_prod, reduce_sum
from tensorfleet.ops.ragged.functions import ragged_range
from tensorfleet.ops.ragged.ragged_tensor import RaggedOrDense, RaggedTensor
from tensorfleet.ops.ragged.value import RaggedTensorValue

_PLACE = "python.ops.ragged.ragged_tensor_shape."


@export(f"{_PLACE}RaggedTensorDynamicShape")
class RaggedTensorDynamicShape:
    """The length of each dimension of a ragged tensor.

    The partitioned dimensions begin with the outermost and end with the last ragged one; behind them are inner ones, which
    are all uniform.
    """

    def __init__(
        self,
        partitioned_dim_sizes: Sequence[TensorLike],
        inner_dim_sizes: TensorLike,
        dim_size_dtype: DTypeLike | None = None,
    ) -> None:
        if not isinstance(partitioned_dim_sizes, (list, tuple)):
            raise AssertionError("partitioned_dim_sizes must be a list or a tuple.")
        kind = dtypes.int64 if dim_size_dtype is None else dtypes.as_dtype(dim_size_dtype)
        if dim_size_dtype is None:
            kinds = {d.dtype for d in (*partitioned_dim_sizes, inner_dim_sizes) if isinstance(d, Tensor)}
            kind = kinds.pop() if len(kinds) == 1 else kind
        self._partitioned_dim_sizes = tuple(_counted(d, kind) for d in partitioned_dim_sizes)
        self._inner_dim_sizes = _counted(inner_dim_sizes, kind)
        for i, size in enumerate(self._partitioned_dim_sizes):
            if size.shape.rank is None:
                raise ValueError(f"rank of partitioned_dim_sizes[{i}] is unknown")
        if self._partitioned_dim_sizes:
            if self._partitioned_dim_sizes[0].shape.rank == 1:
                raise ValueError("outermost partitioned dimension must be uniform")
            if self._partitioned_dim_sizes[-1].shape.rank == 0:
                raise ValueError("innermost partitioned dimension must be ragged")
        self._inner_dim_sizes.shape.assert_has_rank(1)

    partitioned_dim_sizes = readonly(
        "_partitioned_dim_sizes", "The sizes of the partitioned dimensions: numbers, or lengths of rows."
    )
    inner_dim_sizes = readonly("_inner_dim_sizes", "The sizes of the inner dimensions, as one vector.")

    def __repr__(self) -> str:
        return (
            f"RaggedTensorDynamicShape(partitioned_dim_sizes={self._partitioned_dim_sizes!r}, "
            f"inner_dim_sizes={self._inner_dim_sizes!r})"
        )

    @staticmethod
    def from_dim_sizes(dim_sizes: Iterable[TensorLike]) -> RaggedTensorDynamicShape:
        """A shape from a number for each uniform dimension and a vector of lengths for each ragged one."""
        sizes = [_counted(d, dtypes.int64) for d in dim_sizes]
        for size in sizes:
            if size.shape.rank not in (0, 1):
                raise ValueError("Each dim_size must be a scalar or a vector")
        split = max((i + 1 for i, size in enumerate(sizes) if size.shape.rank == 1), default=0)
        inner = stack(sizes[split:]) if sizes[split:] else _counted([], dtypes.int64)
        return RaggedTensorDynamicShape(sizes[:split], inner)

    @classmethod
    def from_tensor(
        cls, rt_input: TensorLike, dim_size_dtype: DTypeLike | None = None
    ) -> RaggedTensorDynamicShape:
        """The shape of a tensor, dense or ragged."""
        data = _as_ragged(rt_input)
        if not isinstance(data, RaggedTensor):
            return cls([], apply("Shape", data, out_type=dim_size_dtype or dtypes.int64))
        kind = dtypes.as_dtype(dim_size_dtype or data.row_splits.dtype)
        sizes = (data.nrows(), *data.nested_row_lengths())
        return cls(sizes, apply("Shape", data.flat_values, out_type=kind)[1:], kind)

    @property
    def rank(self) -> int | None:
        """How many dimensions there are, None when that is not known."""
        inner = self.num_inner_dimensions
        return None if inner is None else len(self._partitioned_dim_sizes) + inner

    @property
    def num_partitioned_dimensions(self) -> int:
        """How many dimensions there are up to the last ragged one."""
        return len(self._partitioned_dim_sizes)

    @property
    def num_inner_dimensions(self) -> int | None:
        """How many uniform dimensions there are behind the last ragged one."""
        count: int | None = self._inner_dim_sizes.shape.as_list()[0]
        return count

    @property
    def dim_size_dtype(self) -> dtypes.DType:
        """The type that sizes are counted with."""
        return self._inner_dim_sizes.dtype

    def with_dim_size_dtype(self, dtype: DTypeLike) -> RaggedTensorDynamicShape:
        """The same shape, counted with another type."""
        if dtypes.as_dtype(dtype) not in (dtypes.int32, dtypes.int64):
            raise ValueError("dtype must be int32 or int64")
        return RaggedTensorDynamicShape(self._partitioned_dim_sizes, self._inner_dim_sizes, dtype)

    def dimension_size(self, axis: int) -> Tensor:
        """The size of a dimension: a number, or the lengths of its rows."""
        if not isinstance(axis, int):
            raise TypeError("axis must be an integer")
        outer = self.num_partitioned_dimensions
        return self._partitioned_dim_sizes[axis] if axis < outer else self._inner_dim_sizes[axis - outer]

    def is_ragged(self, axis: int) -> bool:
        """Whether the rows of a dimension may have different lengths."""
        if not isinstance(axis, int):
            raise TypeError("axis must be an integer")
        if axis < 0:
            raise ValueError("Negative axis values are not supported")
        if self.rank is not None and axis >= self.rank:
            raise ValueError(f"Expected axis={axis} < rank={self.rank}")
        return axis < self.num_partitioned_dimensions and self.dimension_size(axis).shape.rank == 1

    def num_slices_in_dimension(self, axis: int) -> Tensor:
        """How many slices there are down to a dimension, counted over all that is around it."""
        return _slices([self.dimension_size(i) for i in range(axis + 1)], self.dim_size_dtype)

    def broadcast_to_rank(self, rank: int) -> RaggedTensorDynamicShape:
        """The same shape with dimensions of size 1 before it."""
        if self.rank is None:
            raise ValueError("Unable to broadcast: self.rank is unknown")
        added = rank - self.rank
        if added < 0:
            raise ValueError(f"Unable to broadcast: rank={rank} must be greater than self.rank={self.rank}.")
        if self._partitioned_dim_sizes:
            return RaggedTensorDynamicShape(
                [1] * added + list(self._partitioned_dim_sizes), self._inner_dim_sizes, self.dim_size_dtype
            )
        ones = _counted([1] * added, self.dim_size_dtype)
        return RaggedTensorDynamicShape([], concat([ones, self._inner_dim_sizes], 0))

    def broadcast_dimension(self, axis: int, lengths: TensorLike) -> RaggedTensorDynamicShape:
        """The shape with a dimension of size 1 made as long as `lengths`: a number, or one length for each row."""
        kind = self.dim_size_dtype
        wanted = _counted(lengths, kind)
        if wanted.shape.rank is None:
            raise ValueError("lengths must have a known rank.")
        if wanted.shape.rank > 1:
            raise ValueError("lengths must be a scalar or vector")
        outer, inner = list(self._partitioned_dim_sizes), self._inner_dim_sizes
        place = axis - len(outer)
        if place >= 0 and wanted.shape.rank == 0:
            fitted = _fitted(inner[place], wanted, axis)
            sizes = [inner[:place], reshape(fitted, [1]), inner[place + 1 :]]
            return RaggedTensorDynamicShape(outer, concat(sizes, 0), kind)
        if place >= 0:
            outer += [inner[i] for i in range(place + 1)]
            inner = inner[place + 1 :]
        sizes, _ = _spread(outer, axis, wanted)
        return RaggedTensorDynamicShape(sizes, inner, kind)


def _as_ragged(value: TensorLike) -> RaggedOrDense:
    if isinstance(value, RaggedTensorValue):
        return RaggedTensor.from_nested_row_splits(value.flat_values, value.nested_row_splits, validate=False)
    return value if isinstance(value, RaggedTensor) else to_tensor(value)


def _counted(size: TensorLike, kind: dtypes.DType) -> Tensor:
    tensor = to_tensor(size, None if isinstance(size, Tensor) else kind)
    return tensor if tensor.dtype == kind else apply("Cast", tensor, DstT=kind)


def _slices(sizes: Sequence[Tensor], kind: dtypes.DType) -> Tensor:
    total = to_tensor(1, kind)
    for size in sizes:
        total = reduce_sum(size) if size.shape.rank == 1 else total * size
    return total


def _checked(value: Tensor, holds: Tensor, axis: int) -> Tensor:
    """The value, which fails unless sizes fit."""
    if constant_value(holds):
        return value
    message = f"Unable to broadcast: dimension size mismatch in dimension {axis}"
    with control_dependencies([Assert(holds, [message])]):
        checked: Tensor = identity(value)
        return checked


def _fitted(size: Tensor, wanted: Tensor, axis: int) -> Tensor:
    """A uniform size broadcast to another: they must be equal, or one of them 1."""
    one = to_tensor(1, size.dtype)
    single = apply("Equal", size, one)
    fits = apply("LogicalOr", apply("Equal", wanted, one), apply("Equal", wanted, size))
    return _checked(
        apply("SelectV2", single, wanted, size), apply("LogicalOr", single, reduce_all(fits)), axis
    )


def _spread(sizes: list[Tensor], axis: int, wanted: Tensor) -> tuple[list[Tensor], Tensor | None]:
    """Partitioned sizes with one of them broadcast, and for each row of the values the one it is taken from.

    The second is None where nothing can be repeated, because the rows have lengths of their own.
    """
    size, kind = sizes[axis], sizes[axis].dtype
    one = to_tensor(1, kind)
    if size.shape.rank == 1:
        same = apply("LogicalOr", apply("Equal", wanted, one), apply("Equal", wanted, size))
        if wanted.shape.rank == 1:
            same = apply("Equal", wanted, size)
        kept = _checked(size, reduce_all(same), axis)
        return [*sizes[:axis], kept, *sizes[axis + 1 :]], None
    single = apply("Equal", size, one)
    rows = range_(_slices(sizes[: axis + 1], kind))
    if wanted.shape.rank == 0:
        spread = _fitted(size, wanted, axis)
        rows = repeat(rows, apply("SelectV2", single, wanted, one))
    else:
        fits = apply("LogicalOr", single, reduce_all(apply("Equal", wanted, size)))
        spread = _checked(wanted, fits, axis)
        parents = apply("FloorDiv", rows, apply("Maximum", size, one))
        rows = repeat(rows, apply("SelectV2", single, gather(spread, parents), one))
    done = [*sizes[:axis], spread]
    for below in sizes[axis + 1 :]:
        kept, rows = _followed(below, rows)
        done.append(kept)
    return done, rows


def _followed(size: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """A dimension below slices that were taken from others, and the slices of its own that it takes."""
    if size.shape.rank == 0:
        numbers = apply("ExpandDims", rows, 1) * size + range_(size)
        return size, reshape(numbers, [-1])
    lengths = gather(size, rows)
    starts = gather(apply("Cumsum", size, 0, exclusive=True), rows)
    return lengths, ragged_range(starts, starts + lengths).flat_values


@export(f"{_PLACE}broadcast_dynamic_shape")
def broadcast_dynamic_shape(
    shape_x: RaggedTensorDynamicShape, shape_y: RaggedTensorDynamicShape
) -> RaggedTensorDynamicShape:
    """The shape that two shapes broadcast to."""
    for name, shape in (("shape_x", shape_x), ("shape_y", shape_y)):
        if not isinstance(shape, RaggedTensorDynamicShape):
            raise TypeError(f"{name} must be a RaggedTensorDynamicShape")
    if shape_x.rank is None or shape_y.rank is None:
        raise ValueError("Unable to broadcast: unknown rank")
    rank = max(shape_x.rank, shape_y.rank)
    one, other = shape_x.broadcast_to_rank(rank), shape_y.broadcast_to_rank(rank)
    for axis in range(rank):
        one = one.broadcast_dimension(axis, other.dimension_size(axis))
        other = other.broadcast_dimension(axis, one.dimension_size(axis))
    return one


@export(f"{_PLACE}broadcast_to")
def broadcast_to(
    rt_input: TensorLike, shape: RaggedTensorDynamicShape, broadcast_inner_dimensions: bool = True
) -> Any:
    """A tensor, dense or ragged, made as large as a shape; inner dimensions may be left as they are."""
    if not isinstance(shape, RaggedTensorDynamicShape):
        raise TypeError("shape must be a RaggedTensorDynamicShape")
    data = _as_ragged(rt_input)
    outer = shape.num_partitioned_dimensions
    if shape.rank is None or data.shape.rank is None:
        raise ValueError("Unable to broadcast: unknown rank")
    if data.shape.rank > shape.rank:
        raise ValueError("Incompatible with shape: rank mismatch")
    if isinstance(data, RaggedTensor) and shape.rank - data.shape.rank + data.ragged_rank >= outer:
        raise ValueError("Incompatible with shape: ragged rank mismatch")
    if not outer:
        return apply("BroadcastTo", data, shape.inner_dim_sizes) if broadcast_inner_dimensions else data
    sizes, flat = _partitioned(data, shape.rank, outer, shape.dim_size_dtype)
    for axis in range(outer):
        sizes, rows = _spread(sizes, axis, shape.dimension_size(axis))
        flat = flat if rows is None else gather(flat, rows)
    if broadcast_inner_dimensions:
        count = apply("Shape", flat, out_type=shape.dim_size_dtype)[:1]
        flat = apply("BroadcastTo", flat, concat([count, shape.inner_dim_sizes], 0))
    wanted = shape.partitioned_dim_sizes  # these carry the checks made when the shape was broadcast
    lengths = [
        size if size.shape.rank == 1 else fill([_slices(wanted[:i], shape.dim_size_dtype)], size)
        for i, size in enumerate(wanted)
    ]
    return RaggedTensor.from_nested_row_lengths(flat, lengths[1:], validate=False)


def _partitioned(
    data: RaggedOrDense, rank: int, outer: int, kind: dtypes.DType
) -> tuple[list[Tensor], Tensor]:
    """The sizes of the first dimensions of a tensor, those before it being 1, and its values behind them."""
    sizes = [to_tensor(1, kind)] * (rank - len(data.shape))
    if isinstance(data, RaggedTensor):
        sizes += [_counted(size, kind) for size in (data.nrows(), *data.nested_row_lengths())]
    flat = data.flat_values if isinstance(data, RaggedTensor) else data
    behind = apply("Shape", flat, out_type=kind)
    first = 1 if isinstance(data, RaggedTensor) else 0
    more = outer - len(sizes)
    if more < 0:  # a dense tensor: the dimensions of 1 before it reach into the inner dimensions
        ones = _counted([1] * -more, kind)
        return sizes[:outer], reshape(flat, concat([[to_tensor(1, kind)], ones, behind], 0))
    sizes += [behind[first + i] for i in range(more)]
    count = reduce_prod(behind[: first + more])
    return sizes, reshape(flat, concat([reshape(count, [1]), behind[first + more :]], 0))
