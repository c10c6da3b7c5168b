"""Functions of sparse values from inside `tf.contrib.layers`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.naming import find
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.graph.sparse_tensor import SparseTensor
from tensorfleet_legacy.feature_column.feature_column_v2_cache import as_sparse


def dense_to_sparse_tensor(dense_tensor: Any, ignore_value: Any = None) -> SparseTensor:
    """The values of a tensor that are not `ignore_value`: by default those that are not "" or 0."""
    with name_scope("DenseToSparseTensor"):
        dense = to_tensor(dense_tensor)
        if ignore_value is None:
            ignore_value = b"" if dense.dtype == dtypes.string else dense.dtype.as_numpy_dtype()
        return as_sparse(dense, ignore_value)


def indicators_to_sparse_ids(
    indicators: Any, ignore_value: Any = None, dtype: Any = dtypes.int64
) -> SparseTensor:
    """The places of values along the last dimension that are not `ignore_value`, at the front of each row."""
    kind = dtypes.as_dtype(dtype)
    if not kind.is_integer:
        raise ValueError(f"Invalid dtype {kind} not integer.")
    with name_scope(None, "indicators_to_sparse_ids", (indicators,)):
        result = dense_to_sparse_tensor(indicators, ignore_value)
        mask = find("sparse_to_dense")(result.indices, result.dense_shape, np.int64(1), np.int64(0))
        counts = find("cumsum")(mask, axis=-1)
        places = find("gather_nd")(counts, result.indices) - np.int64(1)
        indices = find("concat")([result.indices[:, :-1], find("expand_dims")(places, 1)], 1)
        longest = find("reshape")(find("reduce_max")(counts), [1])
        shape = find("concat")([result.dense_shape[:-1], longest], 0)
        return SparseTensor(indices, find("cast")(result.indices[:, -1], kind), shape)


def sparse_row_envelope(
    sparse_input: Any, row_axis: int = 0, col_axis: int = 1, name: str | None = None
) -> Tensor:
    """How long each row is: one more than its last column, or 0 for an empty one."""
    with name_scope(name, "sparse_row_envelope", [sparse_input]):
        rows, columns = sparse_input.indices[:, row_axis], sparse_input.indices[:, col_axis]
        count = find("cast")(sparse_input.dense_shape[row_axis], dtypes.int32)
        ends = apply("UnsortedSegmentMax", columns + np.int64(1), rows, count)
        return find("maximum")(ends, np.int64(0))


def bucketize(input_tensor: Any, boundaries: Any, name: str | None = None) -> Tensor:
    """How many of the boundaries are at most as large as each value."""
    return apply("Bucketize", input_tensor, boundaries=[float(b) for b in boundaries], name=name)


def sparse_feature_cross(
    inputs: Any,
    hashed_output: bool = False,
    num_buckets: int = 0,
    name: str | None = None,
    hash_key: int | None = None,
) -> SparseTensor:
    """Every combination of the values of several columns in each row, as words or as hashes."""
    if not isinstance(inputs, list):
        raise TypeError("Inputs must be a list")
    if hashed_output:
        return find("sparse.cross_hashed")(inputs, num_buckets, hash_key, name)
    return find("sparse.cross")(inputs, name)
