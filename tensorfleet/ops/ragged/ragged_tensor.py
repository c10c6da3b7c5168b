"""`tf.RaggedTensor`: rows of different lengths, as their values in one tensor and where each row begins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NoReturn, TypeAlias, overload

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, DTypeLike, TensorLike
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.indexed_slices import CompositeTensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import control_dependencies, name_scope, session_for
from tensorfleet.graph.sparse_tensor import SparseTensor, SparseTensorValue, to_sparse
from tensorfleet.ops.array.checks import assert_equal, assert_non_negative
from tensorfleet.ops.array.constructors import zeros
from tensorfleet.ops.array.gather import gather
from tensorfleet.ops.array.indexing import boolean_mask
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.operators import OVERLOADABLE_OPERATORS
from tensorfleet.ops.ragged import dispatch
from tensorfleet.ops.ragged.segment_ids import (
    row_splits_to_segment_ids,
    segment_ids_to_row_splits,
    splits_of,
    zero_of,
)
from tensorfleet.ops.ragged.value import RaggedTensorValue
from tensorfleet.ops.sparse.dense import sparse_to_dense

_NESTED = {"RowSplits": "nested_row_splits", "RowLengths": "nested_row_lengths"}

#: A tensor, ragged or not.
RaggedOrDense: TypeAlias = "RaggedTensor | Tensor"


def _values_of(values: TensorLike) -> RaggedOrDense:
    return values if isinstance(values, RaggedTensor) else to_tensor(values, name="values")


def _count(values: RaggedOrDense, dtype: DType) -> Tensor:
    if isinstance(values, RaggedTensor):
        rows: Tensor = cast(values.nrows(), dtype)
        return rows
    return shape_of(values, out_type=dtype)[0]


def _check_nrows(count: Array | None, rows: Array | None) -> None:
    if count is not None and count < 0:
        raise ValueError(f"Expected nrows >= 0; got {count}")
    if count is not None and rows is not None and rows.size and count < rows[-1] + 1:
        raise ValueError(
            f"Expected nrows >= value_rowids[-1] + 1; got nrows={count}, value_rowids[-1]={rows[-1]}"
        )


@export("RaggedTensor")
class RaggedTensor(CompositeTensor):
    """A tensor whose rows may have different lengths. Make one with `tf.ragged.constant` or a `from_` method."""

    def __init__(
        self,
        values: RaggedOrDense,
        row_splits: Tensor,
        cached_row_lengths: Tensor | None = None,
        cached_value_rowids: Tensor | None = None,
        cached_nrows: Tensor | None = None,
        internal: bool = False,
    ) -> None:
        if not internal:
            raise ValueError(
                "RaggedTensor constructor is private; please use one of the factory methods instead (e.g., "
                "RaggedTensor.from_row_lengths())"
            )
        if not isinstance(row_splits, Tensor):
            raise TypeError(f"Row-partitioning argument must be a Tensor, got {row_splits!r}")
        if not isinstance(values, (RaggedTensor, Tensor)):
            raise TypeError(f"values must be a Tensor or RaggedTensor, got {values!r}")
        row_splits.shape.assert_has_rank(1)
        for known in (cached_row_lengths, cached_value_rowids, cached_nrows):
            if known is not None and not isinstance(known, Tensor):
                raise TypeError("Cached value must be a Tensor or None.")
        self._values = values
        self._row_splits = row_splits
        self._cached_row_lengths = cached_row_lengths
        self._cached_value_rowids = cached_value_rowids
        self._cached_nrows = cached_nrows

    # -- making one --

    @classmethod
    def _of(cls, values: RaggedOrDense, row_splits: Tensor) -> RaggedTensor:
        return cls(values, row_splits, internal=True)

    def _knowing(self, **cached: Tensor) -> RaggedTensor:
        """Keeps the tensors that the rows were made from, so that they need not be computed again."""
        for name, known in cached.items():
            setattr(self, f"_cached_{name}", known)
        return self

    @classmethod
    def from_row_splits(
        cls, values: TensorLike, row_splits: TensorLike, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Rows that begin at `row_splits`, whose last entry is the end of the last row."""
        with name_scope(name, "RaggedFromRowSplits"):
            if isinstance(row_splits, (list, tuple)) and not row_splits:
                raise ValueError("row_splits tensor may not be empty.")
            kept, splits = _values_of(values), splits_of(row_splits, "row_splits")
            if validate:
                splits = _checked(kept, splits)
            return cls._of(kept, splits)

    @classmethod
    def from_row_lengths(
        cls, values: TensorLike, row_lengths: TensorLike, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Rows of these lengths, one behind the other."""
        with name_scope(name, "RaggedFromRowLengths"):
            lengths = splits_of(row_lengths, "row_lengths")
            ends = apply("Cumsum", lengths, np.array(0, np.int32))
            splits = apply("ConcatV2", [zero_of(lengths.dtype), ends], 0)
            ragged: RaggedTensor = cls.from_row_splits(values, splits, validate=validate)
            return ragged._knowing(row_lengths=lengths)

    @classmethod
    def from_row_starts(
        cls, values: TensorLike, row_starts: TensorLike, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Rows that begin at `row_starts`; the last one ends with the values."""
        with name_scope(name, "RaggedFromRowStarts"):
            kept, starts = _values_of(values), splits_of(row_starts, "row_starts")
            end = apply("Reshape", _count(kept, starts.dtype), [1])
            return cls.from_row_splits(kept, apply("ConcatV2", [starts, end], 0), validate=validate)

    @classmethod
    def from_row_limits(
        cls, values: TensorLike, row_limits: TensorLike, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Rows that end at `row_limits`; the first one begins with the values."""
        with name_scope(name, "RaggedFromRowLimits"):
            limits = splits_of(row_limits, "row_limits")
            splits = apply("ConcatV2", [zero_of(limits.dtype), limits], 0)
            return cls.from_row_splits(values, splits, validate=validate)

    @classmethod
    def from_value_rowids(
        cls,
        values: TensorLike,
        value_rowids: TensorLike,
        nrows: TensorLike = None,
        name: str | None = None,
        validate: bool = True,
    ) -> RaggedTensor:
        """Rows to which `value_rowids`, in order, sends each value; `nrows` of them."""
        with name_scope(name, "RaggedFromValueRowIds"):
            rows = splits_of(value_rowids, "value_rowids")
            known = {"value_rowids": rows}
            if nrows is None:
                splits = segment_ids_to_row_splits(rows)
            else:
                known["nrows"] = total = cast(to_tensor(nrows, preferred=rows.dtype), rows.dtype)
                total.shape.assert_has_rank(0)
                _check_nrows(constant_value(total), constant_value(rows))
                splits = segment_ids_to_row_splits(rows, total)
            ragged: RaggedTensor = cls.from_row_splits(values, splits, validate=validate)
            return ragged._knowing(**known)

    @classmethod
    def from_nested_row_splits(
        cls,
        flat_values: TensorLike,
        nested_row_splits: Iterable[TensorLike],
        name: str | None = None,
        validate: bool = True,
    ) -> RaggedTensor:
        """Rows of rows: the splits of the outermost dimension first."""
        return cls._nested(cls.from_row_splits, flat_values, nested_row_splits, name, "RowSplits", validate)

    @classmethod
    def from_nested_row_lengths(
        cls,
        flat_values: TensorLike,
        nested_row_lengths: Iterable[TensorLike],
        name: str | None = None,
        validate: bool = True,
    ) -> RaggedTensor:
        """Rows of rows: the lengths of the outermost dimension first."""
        return cls._nested(
            cls.from_row_lengths, flat_values, nested_row_lengths, name, "RowLengths", validate
        )

    @classmethod
    def from_nested_value_rowids(
        cls,
        flat_values: Any,
        nested_value_rowids: Sequence[TensorLike],
        nested_nrows: Sequence[TensorLike] | None = None,
        name: str | None = None,
        validate: bool = True,
    ) -> RaggedTensor:
        """Rows of rows: the row numbers of the outermost dimension first."""
        counts = [None] * len(nested_value_rowids) if nested_nrows is None else nested_nrows
        if len(counts) != len(nested_value_rowids):
            raise ValueError("`nested_nrows` must have the same length as `nested_value_rowids`")
        with name_scope(name, "RaggedFromNestedValueRowIds"):
            result: RaggedTensor = flat_values
            for rows, count in reversed(list(zip(nested_value_rowids, counts, strict=True))):
                result = cls.from_value_rowids(result, rows, count, validate=validate)
            return result

    @classmethod
    def _nested(
        cls,
        make: Callable[..., RaggedTensor],
        flat: Any,
        nested: Iterable[TensorLike],
        name: str | None,
        what: str,
        validate: bool,
    ) -> RaggedTensor:
        if isinstance(nested, Tensor):
            raise TypeError(f"{_NESTED[what]} must be a list of Tensors")
        with name_scope(name, f"RaggedFromNested{what}"):
            result: RaggedTensor = flat
            for part in reversed(list(nested)):
                result = make(result, part, validate=validate)
            return result

    @classmethod
    def from_tensor(
        cls,
        tensor: TensorLike,
        lengths: TensorLike = None,
        padding: TensorLike = None,
        ragged_rank: int = 1,
        name: str | None = None,
        row_splits_dtype: DTypeLike = dtypes.int64,
    ) -> RaggedTensor:
        """A dense tensor as rows: whole, cut to `lengths`, or without the `padding` at their ends."""
        if lengths is not None and padding is not None:
            raise ValueError("Specify lengths or padding, but not both")
        if not isinstance(ragged_rank, int):
            raise TypeError(f"ragged_rank expected int, got {ragged_rank!r}")
        if ragged_rank <= 0:
            raise ValueError(f"ragged_rank must be greater than 0; got {ragged_rank}")
        kind = dtypes.as_dtype(row_splits_dtype)
        with name_scope(name, "RaggedFromTensor"):
            dense = to_tensor(tensor, name="tensor")
            if dense.shape.rank is not None and ragged_rank >= dense.shape.rank:
                raise ValueError(f"ragged_rank must be in [1, {dense.shape.rank}), got {ragged_rank}")
            whole = shape_of(dense, out_type=kind)
            flat = apply("Reshape", dense, apply("ConcatV2", [np.array([-1]), cast(whole[2:], "int64")], 0))
            if ragged_rank > 1:
                rows = cls.from_tensor(flat, lengths, padding, ragged_rank - 1, None, kind)
                return cls.from_row_splits(rows, _even(whole[0], whole[1]), validate=False)
            if lengths is None and padding is None:
                return cls.from_row_splits(flat, _even(whole[0], whole[1]), validate=False)
            if lengths is None:
                lengths = _without_padding(dense, padding, whole, kind)
            counts = cast(to_tensor(lengths), kind)
            counts = apply("Minimum", apply("Maximum", counts, zero_of(kind)[0]), whole[1])
            columns = apply("Range", 0, whole[1], 1, Tidx=kind)
            there = apply("Less", apply("ExpandDims", columns, 0), apply("ExpandDims", counts, 1))
            return cls.from_row_lengths(boolean_mask(dense, there), counts, validate=False)

    @classmethod
    def from_sparse(
        cls, st_input: TensorLike, name: str | None = None, row_splits_dtype: DTypeLike = dtypes.int64
    ) -> RaggedTensor:
        """The rows of a sparse matrix, in which nothing may be missing in front of a value."""
        kind = dtypes.as_dtype(row_splits_dtype)
        with name_scope(name, "RaggedFromSparse"):
            if not isinstance(st_input, (SparseTensor, SparseTensorValue)):
                raise TypeError(f"Expected SparseTensor, got {type(st_input).__name__}")
            sp = to_sparse(st_input)
            if sp.shape.rank not in (None, 2):
                raise ValueError(f"rank(st_input) must be 2, got {sp.shape.rank}")
            rows = cast(sp.indices[:, 0], kind)
            ragged = cls.from_value_rowids(sp.values, rows, cast(sp.dense_shape[0], kind), validate=False)
            expected = apply(
                "Sub",
                apply("Range", 0, _count(sp.values, kind), 1, Tidx=kind),
                gather(ragged.row_starts(), rows),
            )
            check = assert_equal(
                cast(sp.indices[:, 1], kind), expected, message="SparseTensor is not right-ragged"
            )
            with control_dependencies([check]):
                return cls._of(sp.values, apply("Identity", ragged.row_splits))

    # -- its parts --

    @property
    def values(self) -> Any:
        """The rows one behind the other: a Tensor, or a RaggedTensor."""
        return self._values

    @property
    def row_splits(self) -> Tensor:
        """Where rows begin, and the end."""
        return self._row_splits

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self._values.dtype

    op = readonly("flat_values.op", "The operation of the innermost values.")
    graph = readonly("_row_splits.graph", "The graph of its tensors.")

    @property
    def flat_values(self) -> Tensor:
        """The values of the innermost rows."""
        rest = self._values
        return rest.flat_values if isinstance(rest, RaggedTensor) else rest

    @property
    def nested_row_splits(self) -> tuple[Tensor, ...]:
        """The splits of all ragged dimensions, the outermost first."""
        rest = self._values
        return (self._row_splits, *(rest.nested_row_splits if isinstance(rest, RaggedTensor) else ()))

    @property
    def ragged_rank(self) -> int:
        """How many dimensions are ragged."""
        return len(self.nested_row_splits)

    @property
    def shape(self) -> TensorShape:
        """The static shape: ragged dimensions are None."""
        ends = self._row_splits.shape.as_list()[0]
        inner = self._values.shape
        outer = TensorShape([None if ends is None else ends - 1, None])
        return outer.concatenate(inner[1:]) if inner.rank is not None else TensorShape(None)

    def consumers(self) -> list[Operation]:
        """The operations that take one of its tensors."""
        parts = [self.flat_values, *self.nested_row_splits]
        return list(dict.fromkeys(c for t in parts for c in t.consumers()))

    def value_rowids(self, name: str | None = None) -> Tensor:
        """The row of each value."""
        if self._cached_value_rowids is not None:
            return self._cached_value_rowids
        with name_scope(name, "RaggedValueRowIds"):
            return row_splits_to_segment_ids(self._row_splits)

    def nrows(self, out_type: DTypeLike | None = None, name: str | None = None) -> Tensor:
        """How many rows there are."""
        kind = self._row_splits.dtype if out_type is None else dtypes.as_dtype(out_type)
        if self._cached_nrows is not None and self._cached_nrows.dtype == kind:
            return self._cached_nrows
        with name_scope(name, "RaggedNRows"):
            return shape_of(self._row_splits, out_type=kind)[0] - np.ones((), kind.as_numpy_dtype)

    def row_starts(self, name: str | None = None) -> Tensor:
        """Where each row begins among the values."""
        with name_scope(name, "RaggedRowStarts"):
            return self._row_splits[:-1]

    def row_limits(self, name: str | None = None) -> Tensor:
        """Where each row ends among the values."""
        with name_scope(name, "RaggedRowLimits"):
            return self._row_splits[1:]

    @overload
    def row_lengths(self, axis: Literal[0, 1] = 1, name: str | None = None) -> Tensor: ...
    @overload
    def row_lengths(self, axis: int, name: str | None = None) -> RaggedOrDense: ...
    def row_lengths(self, axis: int = 1, name: str | None = None) -> RaggedOrDense:
        """The lengths of the rows along an axis."""
        with name_scope(name, "RaggedRowLengths"):
            if axis == 0:
                return self.nrows()
            if axis == 1:
                known = self._cached_row_lengths
                return self._row_splits[1:] - self._row_splits[:-1] if known is None else known
            if isinstance(self._values, RaggedTensor):
                return self.with_values(self._values.row_lengths(axis - 1))
            inner = shape_of(self._values, out_type=self._row_splits.dtype)
            return self.with_values(apply("Fill", inner[: axis - 1], inner[axis - 1]))

    def nested_row_lengths(self, name: str | None = None) -> tuple[Tensor, ...]:
        """The row lengths of all ragged dimensions, the outermost first."""
        with name_scope(name, "RaggedNestedRowLengths"):
            return tuple(s[1:] - s[:-1] for s in self.nested_row_splits)

    def nested_value_rowids(self, name: str | None = None) -> tuple[Tensor, ...]:
        """The row numbers of all ragged dimensions, the outermost first."""
        with name_scope(name, "RaggedNestedValueRowIds"):
            return tuple(row_splits_to_segment_ids(s) for s in self.nested_row_splits)

    def bounding_shape(
        self, axis: TensorLike = None, name: str | None = None, out_type: DTypeLike | None = None
    ) -> Tensor:
        """The shape of the smallest dense tensor that holds all rows, or its size along an axis."""
        kind = self._row_splits.dtype if out_type is None else dtypes.as_dtype(out_type)
        with name_scope(name, "RaggedBoundingBox"):
            sizes = [self.nrows()]
            for lengths in self.nested_row_lengths():
                sizes.append(apply("Maximum", apply("Max", lengths, [0]), zero_of(lengths.dtype)[0]))
            inner = shape_of(self.flat_values, out_type=self._row_splits.dtype)[1:]
            whole = cast(apply("ConcatV2", [apply("Pack", sizes), inner], 0), kind)
            return whole if axis is None else gather(whole, axis)

    # -- turned into something else --

    def with_values(self, new_values: TensorLike) -> RaggedTensor:
        """Rows of the same lengths with other values."""
        values = _values_of(new_values)
        return RaggedTensor._of(values, self._row_splits)

    def with_flat_values(self, new_values: TensorLike) -> RaggedTensor:
        """The same rows with other innermost values."""
        if isinstance(self._values, RaggedTensor):
            return self.with_values(self._values.with_flat_values(new_values))
        return self.with_values(new_values)

    def with_row_splits_dtype(self, dtype: DTypeLike) -> RaggedTensor:
        """The same rows with splits of another integer type."""
        kind = dtypes.as_dtype(dtype)
        if kind not in (dtypes.int32, dtypes.int64):
            raise ValueError("dtype must be int32 or int64")
        rest = self._values
        inner = rest.with_row_splits_dtype(kind) if isinstance(rest, RaggedTensor) else rest
        return RaggedTensor._of(inner, cast(self._row_splits, kind))

    def to_sparse(self, name: str | None = None) -> SparseTensor:
        """The same values as a sparse tensor."""
        with name_scope(name, "RaggedToSparse"):
            return SparseTensor(
                *apply_list("RaggedTensorToSparse", list(self.nested_row_splits), self.flat_values)
            )

    def to_tensor(self, default_value: TensorLike = None, name: str | None = None) -> Tensor:
        """The rows as a dense tensor, filled up with `default_value` (zero, or no text)."""
        with name_scope(name, "RaggedToTensor"):
            sp = self.to_sparse()
            default = zeros((), self.dtype) if default_value is None else to_tensor(default_value, self.dtype)
            parts = sp.indices, sp.dense_shape, sp.values, default
            result: Tensor = sparse_to_dense(*parts, validate_indices=False)
            result.set_shape(self.shape)
            return result

    def to_list(self) -> NoReturn:
        """The rows as nested lists: only of a fetched value."""
        raise ValueError("RaggedTensor.to_list() is only supported in eager mode; fetch it first.")

    def eval(self, feed_dict: Any = None, session: Any = None) -> RaggedTensorValue:
        """The value of this tensor, run in `session` or in the default session."""
        fetched: RaggedTensorValue = session_for(session, self.graph, "evaluate tensor").run(self, feed_dict)
        return fetched

    def __str__(self) -> str:
        return f"tf.RaggedTensor(values={self._values}, row_splits={self._row_splits})"

    __repr__ = __str__


def _checked(values: RaggedOrDense, splits: Tensor) -> Tensor:
    """The splits, which fail unless they begin with 0, do not decrease, and end with the values."""
    message = "Arguments to from_row_splits do not form a valid RaggedTensor"
    checks = [
        assert_equal(splits[0], zero_of(splits.dtype)[0], message=f"{message}:zero"),
        assert_non_negative(splits[1:] - splits[:-1], message=f"{message}:monotonic"),
        assert_equal(splits[-1], _count(values, splits.dtype), message=message),
    ]
    with control_dependencies([c for c in checks if c is not None]):
        return apply("Identity", splits)


def _even(rows: Tensor, length: Tensor) -> Tensor:
    """Splits of rows that all have one length."""
    return apply("Range", 0, rows + np.ones((), rows.dtype.as_numpy_dtype), 1, Tidx=rows.dtype) * length


def _without_padding(dense: Tensor, padding: TensorLike, whole: Tensor, kind: DType) -> Tensor:
    """The lengths of rows up to their last element that is no padding."""
    other = apply("NotEqual", dense, to_tensor(padding, dense.dtype.base_dtype))
    rank = dense.shape.rank
    if rank is not None and rank > 2:
        other = apply("Any", other, np.arange(2, rank, dtype=np.int32))
    places = apply("Range", 1, whole[1] + np.ones((), kind.as_numpy_dtype), 1, Tidx=kind)
    return apply("Max", cast(other, kind) * places, [1])


dispatch.introduce(
    RaggedTensor, RaggedTensorValue, OVERLOADABLE_OPERATORS - {"__matmul__", "__rmatmul__"} | {"__getitem__"}
)
