"""Sums and means of the rows of a table that sparse ids name; gradients touch only these rows."""

from __future__ import annotations

import numpy as np

from tensorfleet.api.nn.embedding import embedding_lookup, listed, parts_of
from tensorfleet.base import dtypes, logging
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.apply import apply, apply_any, apply_list
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.graph.sparse_tensor import SparseTensor, SparseTensorValue, is_sparse, to_sparse
from tensorfleet.ops.array.constructors import ones_like, zeros_like
from tensorfleet.ops.array.gather import gather
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.sparse.arrange import sparse_reshape
from tensorfleet.ops.sparse.order import sparse_fill_empty_rows, sparse_retain

_WITHOUT_WEIGHTS = {"sum": "SparseSegmentSum", "mean": "SparseSegmentMean", "sqrtn": "SparseSegmentSqrtN"}


@export("nn.embedding_lookup_sparse")
def embedding_lookup_sparse(
    params: TensorLike,
    sp_ids: SparseTensor | SparseTensorValue,
    sp_weights: SparseTensor | SparseTensorValue | None,
    partition_strategy: str = "mod",
    name: str | None = None,
    combiner: str | None = None,
    max_norm: TensorLike = None,
) -> Tensor:
    """For each row of `sp_ids`, the rows of a table at its ids combined into one.

    `combiner` is "sum", "mean" (the default: divided by the sum of the weights) or "sqrtn" (by the root of
    the sum of their squares). `sp_weights` weighs each id; None stands for ones. See `embedding_lookup`.
    """
    if combiner is None:
        logging.warn('The default value of combiner will change from "mean" to "sqrtn" after 2016/11/01.')
        combiner = "mean"
    if combiner not in _WITHOUT_WEIGHTS:
        raise ValueError("combiner must be one of 'mean', 'sqrtn' or 'sum'")
    parts = parts_of(params)
    if not is_sparse(sp_ids):
        raise TypeError("sp_ids must be SparseTensor")
    ids, weights = to_sparse(sp_ids), None
    if sp_weights is not None:
        if not is_sparse(sp_weights):
            raise TypeError("sp_weights must be either None or SparseTensor")
        weights = to_sparse(sp_weights)
        _check_alike(ids, weights)
    with name_scope(name, "embedding_lookup_sparse", [*parts, ids]) as scope:
        segments = ids.indices[:, 0]
        if segments.dtype != dtypes.int32:
            segments = cast(segments, dtypes.int32)
        # Each row is looked up once, however often it is named: it may be on another task.
        unique, where = apply_list("Unique", ids.values)
        rows = embedding_lookup(parts, unique, partition_strategy=partition_strategy, max_norm=max_norm)
        if rows.dtype in (dtypes.float16, dtypes.bfloat16):
            rows = cast(rows, dtypes.float32)  # sums of many rows need the digits
        if weights is None:
            result: Tensor = apply_any(_WITHOUT_WEIGHTS[combiner], rows, where, segments, name=scope)
            return result
        return _weighted(rows, where, segments, weights.values, combiner, scope)


def _check_alike(ids: SparseTensor, weights: SparseTensor) -> None:
    for part in ("values", "indices", "dense_shape"):
        getattr(ids, part).shape.assert_is_compatible_with(getattr(weights, part).shape)


def _weighted(
    rows: Tensor, where: Tensor, segments: Tensor, weights: Tensor, combiner: str, name: str
) -> Tensor:
    if weights.dtype != rows.dtype.base_dtype:
        weights = cast(weights, rows.dtype.base_dtype)
    embedded = gather(rows, where)
    # Weights get ones behind, so that they stretch over the axes of a row.
    missing = apply("ExpandDims", apply("Rank", embedded) - np.int32(1), 0)
    ones = apply("Fill", missing, np.int32(1))
    column = apply("Reshape", weights, apply("ConcatV2", [shape_of(weights), ones], 0))
    if embedded.shape.rank is not None:
        column.set_shape(weights.shape.concatenate(TensorShape([1] * (embedded.shape.rank - 1))))
    embedded = embedded * column
    if combiner == "sum":
        return apply("SegmentSum", embedded, segments, name=name)
    total = apply("SegmentSum", embedded, segments)
    if combiner == "mean":
        return apply("DivNoNan", total, apply("SegmentSum", column, segments), name=name)
    squares = apply("SegmentSum", apply("Pow", column, to_tensor(2, column.dtype.base_dtype)), segments)
    return apply("DivNoNan", total, apply("Sqrt", squares), name=name)


@export("nn.safe_embedding_lookup_sparse")
def safe_embedding_lookup_sparse(
    embedding_weights: TensorLike,
    sparse_ids: SparseTensor | SparseTensorValue,
    sparse_weights: SparseTensor | SparseTensorValue | None = None,
    combiner: str = "mean",
    default_id: TensorLike = None,
    name: str | None = None,
    partition_strategy: str = "div",
    max_norm: TensorLike = None,
) -> Tensor:
    """`embedding_lookup_sparse` for ids as they come from the world.

    Negative ids, and except for "sum" those of weight 0 or less, are left out. A row without ids gets the
    row of `default_id`, or zeros. Ids may have more than two dimensions: the last one is combined.
    """
    if embedding_weights is None:
        raise ValueError(f"Missing embedding_weights {embedding_weights}.")
    parts = listed(embedding_weights)
    if not parts:
        raise ValueError(f"Missing embedding_weights {embedding_weights}.")
    kind = None if sparse_weights is None else to_sparse(sparse_weights).dtype
    tables = [p if getattr(p, "handle", None) is not None else to_tensor(p, kind) for p in parts]
    for table in tables:
        if kind is not None and not kind.is_compatible_with(table.dtype.base_dtype):
            raise ValueError(
                f"Tensor conversion requested dtype {kind.name} for Tensor with dtype {table.dtype.name}: {table}"
            )
    with name_scope(name, "embedding_lookup", [*tables, sparse_ids]) as scope:
        original = to_sparse(sparse_ids)
        weights = None if sparse_weights is None else to_sparse(sparse_weights)
        ids, weights = _matrix(original, weights)
        ids, weights = _without_invalid(ids, weights, combiner != "sum")
        ids, empty = sparse_fill_empty_rows(ids, default_id or 0)
        if weights is not None:
            weights, _ = sparse_fill_empty_rows(weights, 1.0)
        result = embedding_lookup_sparse(
            tables,
            ids,
            weights,
            combiner=combiner,
            partition_strategy=partition_strategy,
            name=None if default_id is None else scope,
            max_norm=max_norm,
        )
        if default_id is None:
            column = apply("Reshape", empty, [-1, 1])
            tiled = apply("Tile", column, apply("Pack", [1, shape_of(result)[1]]))
            result = apply("Select", tiled, zeros_like(result), result, name=scope)
        return _unflattened(result, original)


def _matrix(ids: SparseTensor, weights: SparseTensor | None) -> tuple[SparseTensor, SparseTensor | None]:
    """Ids (and weights) with all dimensions but the last made one."""
    dense = ids.dense_shape
    first = apply("Prod", dense[:-1], np.array([0], np.int32))
    matrix = sparse_reshape(ids, apply("Pack", [first, dense[-1]]))
    if weights is None:
        return matrix, None
    return matrix, SparseTensor(matrix.indices, weights.values, matrix.dense_shape)


def _without_invalid(
    ids: SparseTensor, weights: SparseTensor | None, positive: bool
) -> tuple[SparseTensor, SparseTensor | None]:
    valid = apply("GreaterEqual", ids.values, np.zeros((), ids.dtype.as_numpy_dtype))
    if weights is not None:
        # Always true: it is in TensorFlow's graph, too.
        valid = apply("LogicalAnd", valid, ones_like(weights.values, dtype=dtypes.bool_))
    ids, weights = sparse_retain(ids, valid), None if weights is None else sparse_retain(weights, valid)
    if weights is not None and positive:
        above = apply("Greater", weights.values, np.zeros((), weights.dtype.as_numpy_dtype))
        ids, weights = sparse_retain(ids, above), sparse_retain(weights, above)
    return ids, weights


def _unflattened(result: Tensor, ids: SparseTensor) -> Tensor:
    """The rows in the shape that the ids had before they became a matrix."""
    outer = cast(ids.dense_shape, dtypes.int32)[:-1]
    reshaped = apply("Reshape", result, apply("ConcatV2", [outer, shape_of(result)[1:]], 0))
    known = ids.shape
    leading = TensorShape(None) if known.rank is None else TensorShape(known.as_list()[:-1])
    reshaped.set_shape(leading.concatenate(result.shape[1:]) if result.shape.rank is not None else None)
    return reshaped
