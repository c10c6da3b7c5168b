"""`tf.ragged`: ragged tensors from lists, ranges, masks and partitions; and their operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape, as_shape
from tensorfleet.base.types import Array, DTypeLike, ShapeLike, TensorLike
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.convert import convert_to_tensor, to_tensor
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable, op
from tensorfleet.graph.scopes import control_dependencies, name_scope
from tensorfleet.kernels.sparse import invalid
from tensorfleet.ops.array.basic import placeholder
from tensorfleet.ops.array.checks import assert_equal, assert_less
from tensorfleet.ops.array.gather import gather
from tensorfleet.ops.array.stack import stack
from tensorfleet.ops.common import tensor_list, vector_of
from tensorfleet.ops.math.sorting import argsort
from tensorfleet.ops.nn.shapes import of_rank_at_least, same_dimension
from tensorfleet.ops.ragged import joining
from tensorfleet.ops.ragged import rows as rows_of
from tensorfleet.ops.ragged.ragged_tensor import RaggedOrDense, RaggedTensor
from tensorfleet.ops.ragged.segment_ids import segment_ids_to_row_splits
from tensorfleet.ops.ragged.value import RaggedTensorValue
from tensorfleet.ops.samples import case
from tensorfleet.ops.sparse.arrange import sparse_shapes

_SPLITS = np.array([0, 2, 2, 3])


def _sparse_form(op: Operation) -> list[TensorShape]:
    splits, values = tensor_list(op, 0), op._inputs[-1].shape
    for t in splits:
        t.shape.with_rank(1)
    of_rank_at_least(values, 1)
    rank = None if values.rank is None else values.rank + len(splits)
    return sparse_shapes(rank, values.num_elements())


@op(
    "RaggedTensorToSparse",
    "rt_nested_splits: RAGGED_RANK * Tsplits, rt_dense_values: T -> "
    "sparse_indices: int64, sparse_values: T, sparse_dense_shape: int64",
    "RAGGED_RANK: int; T: type; Tsplits: index = int64",
    shape=_sparse_form,
    host=True,
    examples=[
        case([_SPLITS], np.array([1.5, 2.5, 3.5])),
        case([_SPLITS, np.array([0, 2, 3, 4])], np.array([1, 2, 3, 4], np.int32)),
        case([np.array([0, 1, 2], np.int32)], np.array([[1.5, 2.5], [3.5, 4.5]])),
    ],
)
def _to_sparse(ctx: HostContext, nested: list[Array], values: Array) -> tuple[Array, Array, Array]:
    places = np.argwhere(np.ones(values.shape, np.bool_)).astype(np.int64)
    sizes = list(values.shape[1:])
    for splits in reversed(nested):
        if not len(splits) or splits[0] != 0:
            raise invalid("First value of ragged splits must be 0.")
        lengths = np.diff(splits)
        row = np.repeat(np.arange(len(lengths)), lengths)[places[:, 0]]
        outer = np.stack([row, places[:, 0] - np.asarray(splits, np.int64)[row]], axis=1)
        places = np.concatenate([outer, places[:, 1:]], axis=1)
        sizes.insert(0, int(lengths.max(initial=0)))
    shape = np.array([len(nested[0]) - 1, *sizes], np.int64)
    return places.astype(np.int64), values.ravel(), shape


@gradient("RaggedTensorToSparse")
def _to_sparse_gradient(op: Operation, *grads: Tensor) -> list[Tensor | None]:
    return [None] * op.get_attr("RAGGED_RANK") + [apply("Reshape", grads[1], apply("Shape", op.inputs[-1]))]


def _ranges_shape(op: Operation) -> list[TensorShape]:
    known = 1 if all(t.shape.rank == 0 for t in op._inputs) else None
    for t in op._inputs:
        if t.shape.rank == 1:
            known = same_dimension(t.shape._d[0], known)  # type: ignore[index]
    return [vector_of(None if known is None else known + 1), vector_of(None)]


@op(
    "RaggedRange",
    "starts: T[1-], limits: T[1-], deltas: T[1-] -> rt_nested_splits: Tsplits, rt_dense_values: T",
    "T: {bfloat16, float, double, int32, int64} = int32; Tsplits: index = int64",
    shape=_ranges_shape,
    host=True,
    examples=[
        case(np.array([0, 5, 8], np.int32), np.array([3, 5, 12], np.int32), np.array(1, np.int32)),
        case(np.array(0.0), np.array([1.0, 2.0]), np.array(0.5)),
        case(np.array(2, np.int32), np.array(5, np.int32), np.array(1, np.int32)),
    ],
)
def _ragged_range(
    ctx: HostContext, starts: Array, limits: Array, deltas: Array, *, Tsplits: DType
) -> tuple[Array, Array]:
    if np.any(np.asarray(deltas) == 0):
        raise invalid("Requires delta != 0")
    try:
        rows = np.broadcast(starts, limits, deltas)
    except ValueError:
        raise invalid("starts, limits, and deltas must have the same shape") from None
    kind = np.asarray(starts).dtype
    ranges = (
        [np.arange(a, b, d).astype(kind) for a, b, d in rows]
        if rows.ndim
        else [np.arange(starts, limits, deltas)]
    )
    ends = np.cumsum([0, *(len(m) for m in ranges)]).astype(Tsplits.np_dtype)
    return ends, np.concatenate([np.zeros(0, kind), *ranges]).astype(kind)


not_differentiable("RaggedRange")


# -- fed and made from other tensors ---------------------------------------------------------------


@export("ragged.placeholder")
def ragged_placeholder(
    dtype: DTypeLike, ragged_rank: int, value_shape: ShapeLike = None, name: str | None = None
) -> Any:
    """A ragged tensor that is fed with a `RaggedTensorValue`."""
    with name_scope(name, "RaggedPlaceholder"):
        inner = TensorShape([None]).concatenate(as_shape(value_shape)) if value_shape is not None else None
        result: RaggedOrDense = placeholder(dtype, inner, "flat_values")
        for i in reversed(range(ragged_rank)):
            result = RaggedTensor._of(result, placeholder(dtypes.int64, [None], f"row_splits_{i}"))
        return result


@export("ragged.range")
def ragged_range(
    starts: TensorLike,
    limits: TensorLike = None,
    deltas: TensorLike = 1,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    row_splits_dtype: DTypeLike = dtypes.int64,
) -> RaggedTensor:
    """Rows that count from `starts` up to `limits` in steps of `deltas`; from 0 when only limits are given."""
    if limits is None:
        starts, limits = 0, starts
    with name_scope(name, "RaggedRange"):
        numbers = [to_tensor(x, dtype) for x in (starts, limits, deltas)]
        if dtype is None:
            widest = max((t.dtype.base_dtype for t in numbers), key=_ORDER.index)
            numbers = [apply("Cast", t, DstT=widest) if t.dtype != widest else t for t in numbers]
        splits, values = apply_list("RaggedRange", *numbers, Tsplits=row_splits_dtype)
        return RaggedTensor._of(values, splits)


_ORDER = [dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64]


@export("ragged.map_flat_values")
def map_flat_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`op` of the innermost values of ragged arguments, in the rows of those."""
    ragged: list[RaggedTensor] = []

    def flat(value: Any) -> Any:
        if isinstance(value, RaggedTensor):
            ragged.append(value)
            return value.flat_values
        if isinstance(value, (list, tuple)):
            return type(value)(flat(v) for v in value)
        return value

    flat_args, flat_kwargs = [flat(a) for a in args], {k: flat(v) for k, v in kwargs.items()}
    if not ragged:
        return op(*flat_args, **flat_kwargs)
    with control_dependencies(_same_splits(ragged)):
        return ragged[0].with_flat_values(op(*flat_args, **flat_kwargs))


def _same_splits(rows: list[RaggedTensor]) -> list[Operation]:
    """The operations that fail unless ragged tensors have the same rows."""
    text = "Inputs must have identical ragged splits"
    if len({r.ragged_rank for r in rows}) > 1:
        raise ValueError(text)
    first, *others = (r.nested_row_splits for r in rows)
    return [
        assert_equal(a, apply("Cast", b, DstT=a.dtype), message=text)
        for splits in others
        for a, b in zip(first, splits, strict=True)
        if a is not b
    ]


def _stacked(parts: list[RaggedOrDense]) -> RaggedOrDense:
    return joining.stack(parts) if isinstance(parts[0], RaggedTensor) else stack(parts)


def _gathered(data: RaggedOrDense, order: Tensor) -> RaggedOrDense:
    return rows_of.gather(data, order) if isinstance(data, RaggedTensor) else gather(data, order)


@export("ragged.stack_dynamic_partitions")
def stack_dynamic_partitions(
    data: TensorLike, partitions: TensorLike, num_partitions: TensorLike, name: str | None = None
) -> RaggedTensor:
    """The rows of `data` sorted by the numbers in `partitions`, those of one number as one row."""
    with name_scope(name, "SegmentStack"):
        values = convert_to_tensor_or_ragged_tensor(data, name="data")
        rows = convert_to_tensor_or_ragged_tensor(partitions, name="partitions")
        total = to_tensor(num_partitions, rows.dtype.base_dtype, name="num_partitions")
        rank = rows.shape.rank
        if rank is None:
            raise ValueError("partitions must have known rank.")
        total.shape.assert_has_rank(0)
        rows.shape.assert_is_compatible_with(values.shape[:rank])
        if rank == 0:
            row = apply("ExpandDims", rows, 0)
            return RaggedTensor._of(_stacked([values]), segment_ids_to_row_splits(row, total))
        if rank > 1:
            return _stacked_below(values, rows, total)
        order = argsort(rows, stable=True)
        ordered = apply("GatherV2", rows, order, 0)
        text = "partitions must be less than num_partitions"
        with control_dependencies([assert_less(ordered[-1:], total, message=text)]):
            return RaggedTensor._of(_gathered(values, order), segment_ids_to_row_splits(ordered, total))


def _stacked_below(data: RaggedOrDense, rows: RaggedOrDense, total: Tensor) -> RaggedTensor:
    """Partitions with several dimensions: goes on with the values of all rows."""
    if not isinstance(data, RaggedTensor):
        data = RaggedTensor.from_tensor(data, ragged_rank=1, row_splits_dtype=rows.dtype)
    if not isinstance(rows, RaggedTensor):
        rank = max(data.ragged_rank, len(rows.shape) - 1)
        rows = RaggedTensor.from_tensor(rows, ragged_rank=rank, row_splits_dtype=rows.dtype)
    splits = apply("Cast", rows.row_splits, DstT=data.row_splits.dtype)
    text = "data and partitions have incompatible ragged shapes"
    with control_dependencies([assert_equal(data.row_splits, splits, message=text)]):
        return stack_dynamic_partitions(data.values, rows.values, total)


@export("python.ops.ragged.ragged_tensor.convert_to_tensor_or_ragged_tensor")
def convert_to_tensor_or_ragged_tensor(
    value: TensorLike,
    dtype: DTypeLike | None = None,
    preferred_dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Any:
    """A value as a tensor; a ragged value as a ragged tensor."""
    wanted = None if dtype is None else dtypes.as_dtype(dtype)
    if isinstance(value, RaggedTensor):
        if wanted is not None and not wanted.is_compatible_with(value.dtype):
            raise ValueError(
                f"Tensor conversion requested dtype {wanted.name} for RaggedTensor with dtype {value.dtype.name}: "
                f"{value!r}"
            )
        return value
    if isinstance(value, RaggedTensorValue):
        flat = convert_to_tensor(value.flat_values, wanted, name=name, preferred_dtype=preferred_dtype)
        return RaggedTensor.from_nested_row_splits(flat, value.nested_row_splits, validate=False)
    return convert_to_tensor(value, wanted, name=name, preferred_dtype=preferred_dtype)
