"""Where the rows of ragged tensors begin, and the row of each value: one from the other."""

from __future__ import annotations

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.types import DTypeLike, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.math.cast import cast


def splits_of(value: TensorLike, name: str) -> Tensor:
    """A vector of splits, lengths or rows as a tensor; ValueError unless its type counts rows."""
    tensor = to_tensor(value, name=name, preferred=dtypes.int64)
    if tensor.dtype.base_dtype not in (dtypes.int32, dtypes.int64):
        raise ValueError(f"{name} must have dtype int32 or int64")
    tensor.shape.assert_has_rank(1)
    return tensor


def zero_of(dtype: DType) -> Tensor:
    """A vector of one zero."""
    return to_tensor(np.zeros(1, dtype.as_numpy_dtype))


@export("ragged.row_splits_to_segment_ids")
def row_splits_to_segment_ids(
    splits: TensorLike, name: str | None = None, out_type: DTypeLike | None = None
) -> Tensor:
    """The row of each value, from where rows begin."""
    with name_scope(name, "RaggedSplitsToSegmentIds"):
        ends = splits_of(splits, "splits")
        kind = ends.dtype if out_type is None else dtypes.as_dtype(out_type)
        # A value's row is the number of rows that ended before it.
        count = apply("Range", 0, ends[-1], 1, Tidx=ends.dtype)
        rows = apply(
            "UpperBound", apply("ExpandDims", ends[1:], 0), apply("ExpandDims", count, 0), out_type=kind
        )
        return apply("Reshape", rows, [-1])


@export("ragged.segment_ids_to_row_splits")
def segment_ids_to_row_splits(
    segment_ids: TensorLike,
    num_segments: TensorLike = None,
    out_type: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Where rows begin, from the row of each value."""
    with name_scope(name, "RaggedSegmentIdsToRowSplits"):
        rows = splits_of(segment_ids, "segment_ids")
        kind = rows.dtype.base_dtype if out_type is None else dtypes.as_dtype(out_type)
        if num_segments is None:
            last = apply(
                "Max", apply("ConcatV2", [to_tensor(np.array([-1], rows.dtype.as_numpy_dtype)), rows], 0), [0]
            )
            total = last + np.ones((), rows.dtype.as_numpy_dtype)
        else:
            total = cast(to_tensor(num_segments), rows.dtype)
        ones = apply("Fill", apply("Shape", rows), to_tensor(np.ones((), kind.as_numpy_dtype)))
        counts = apply("UnsortedSegmentSum", ones, rows, total)
        return apply("ConcatV2", [zero_of(kind), apply("Cumsum", counts, np.array(0, np.int32))], 0)
