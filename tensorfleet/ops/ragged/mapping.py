"""`tensorflow.python.ops.ragged.ragged_map_ops.map_fn`: a function of one row after the other, of ragged rows too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.base import dtypes, nest
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.properties import readonly
from tensorfleet.base.types import DTypeLike, TensorLike
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.control.while_loop import while_loop
from tensorfleet.ops.ragged.ragged_tensor import RaggedOrDense, RaggedTensor
from tensorfleet.ops.ragged.rows import row_of
from tensorfleet.ops.state.tensor_array import TensorArray


@export("python.ops.ragged.ragged_tensor.RaggedTensorType")
class RaggedTensorType:
    """The type of a ragged tensor: its elements, how many of its dimensions are ragged, how rows are counted."""

    def __init__(
        self, dtype: DTypeLike, ragged_rank: int, row_splits_dtype: DTypeLike = dtypes.int64
    ) -> None:
        self._dtype = dtypes.as_dtype(dtype)
        self._ragged_rank = ragged_rank
        self._row_splits_dtype = dtypes.as_dtype(row_splits_dtype)

    dtype = readonly("_dtype", "The type of its elements.")
    ragged_rank = readonly("_ragged_rank", "How many dimensions are ragged.")
    row_splits_dtype = readonly("_row_splits_dtype", "The type that rows are counted with.")


@export("python.ops.ragged.ragged_map_ops.map_fn")
def map_fn(
    fn: Callable[[Any], Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
) -> Any:
    """`fn` of each row of `elems`; where `dtype` has a `RaggedTensorType`, the results become ragged rows."""
    if not callable(fn):
        raise TypeError("fn must be callable.")
    with name_scope(name, "map"):
        given = [_rows(e) for e in nest.flatten(elems)]
        declared = nest.map_structure(_type_of, elems) if dtype is None else dtype
        kinds = [k if isinstance(k, RaggedTensorType) else dtypes.as_dtype(k) for k in nest.flatten(declared)]
        first = given[0]
        count = first.nrows(dtypes.int32) if isinstance(first, RaggedTensor) else shape_of(first)[0]
        arrays = [_Results(kind, count, infer_shape) for kind in kinds]

        def step(i: Tensor, parts: list[list[TensorArray]]) -> tuple[Tensor, list[list[TensorArray]]]:
            results = fn(nest.pack_sequence_as(elems, [row_of(e, i) for e in given]))
            flat = nest.flatten(results)
            if len(flat) != len(kinds):
                raise TypeError(f"fn gives {len(flat)} results where dtype says {len(kinds)}.")
            written = [a.written(p, i, r) for a, p, r in zip(arrays, parts, flat, strict=True)]
            return i + 1, written

        start = to_tensor(0), [a.parts for a in arrays]
        _, done = while_loop(
            lambda i, _: i < count,
            step,
            start,
            parallel_iterations=parallel_iterations or 10,
            back_prop=back_prop,
            swap_memory=swap_memory,
            maximum_iterations=count,
        )
        results = [a.joined(parts) for a, parts in zip(arrays, done, strict=True)]
        return nest.pack_sequence_as(declared, results)


def _rows(value: TensorLike) -> RaggedOrDense:
    result = value if isinstance(value, RaggedTensor) else to_tensor(value, name="elem")
    if result.shape.rank == 0:
        raise ValueError("elements in elems must be 1+ dimensional Tensors, not scalars")
    return result


def _type_of(value: TensorLike) -> RaggedTensorType | DType:
    if isinstance(value, RaggedTensor):
        return RaggedTensorType(value.dtype, value.ragged_rank, value.row_splits.dtype)
    return to_tensor(value).dtype.base_dtype


class _Results:
    """The results of one output: an array of them or, of ragged ones, of their values and of the lengths at each depth."""

    def __init__(self, kind: RaggedTensorType | DType, count: Tensor, infer_shape: bool) -> None:
        self.kind = kind
        if not isinstance(kind, RaggedTensorType):
            self.parts = [TensorArray(kind, count, infer_shape=infer_shape)]
            return
        splits = kind.row_splits_dtype
        lengths = [TensorArray(splits, count, infer_shape=i == 0) for i in range(kind.ragged_rank)]
        self.parts = [TensorArray(kind.dtype, count, infer_shape=False), *lengths]

    def written(self, parts: list[TensorArray], i: Tensor, result: TensorLike) -> list[TensorArray]:
        """The arrays with the result of one row."""
        if not isinstance(self.kind, RaggedTensorType):
            return [parts[0].write(i, to_tensor(result, self.kind))]
        rows = result if isinstance(result, RaggedTensor) else to_tensor(result)
        inner = rows.ragged_rank if isinstance(rows, RaggedTensor) else 0
        if inner + 1 != self.kind.ragged_rank:
            raise ValueError(
                f"The declared ragged rank ({self.kind.ragged_rank}) mismatches the result ({inner + 1})"
            )
        if rows.dtype != self.kind.dtype:
            raise ValueError(f"The declared dtype ({self.kind.dtype}) mismatches the result ({rows.dtype})")
        if not isinstance(rows, RaggedTensor):
            pieces = [rows, shape_of(rows, out_type=self.kind.row_splits_dtype)[0]]
        else:
            rows = rows.with_row_splits_dtype(self.kind.row_splits_dtype)
            pieces = [rows.flat_values, rows.nrows(), *rows.nested_row_lengths()]
        return [part.write(i, piece) for part, piece in zip(parts, pieces, strict=True)]

    def joined(self, parts: list[TensorArray]) -> RaggedOrDense:
        """All results as one tensor."""
        if not isinstance(self.kind, RaggedTensorType):
            return parts[0].stack()
        values, counts, *lengths = parts
        nested = [counts.stack(), *(part.concat() for part in lengths)]
        return RaggedTensor.from_nested_row_lengths(values.concat(), nested, validate=False)
