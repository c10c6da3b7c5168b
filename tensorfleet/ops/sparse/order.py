"""Sparse tensors put in order, thinned out, filled up, given other axes; and sparse from dense."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, DTypeLike, TensorLike
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.constant import constant_value, constant_value_as_shape
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable, op
from tensorfleet.graph.scopes import control_dependencies, name_scope
from tensorfleet.graph.sparse_tensor import SparseTensor, SparseTensorValue, to_sparse
from tensorfleet.kernels.arrays import all_within
from tensorfleet.kernels.lanes import Lanes, Order, globally, within
from tensorfleet.kernels.sparse import by_place, check_sparse, invalid
from tensorfleet.ops.array.checks import assert_equal, assert_less_equal
from tensorfleet.ops.array.constructors import zeros_like
from tensorfleet.ops.array.gather import gather
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.common import SCALAR, vector_of
from tensorfleet.ops.math import compare
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.samples import case
from tensorfleet.ops.sparse.arrange import rank_of
from tensorfleet.ops.sparse.dense import sparse_tensor_to_dense

_MIXED = np.array([[1, 0], [0, 1], [0, 0]], np.int64)
_V = np.array([1.5, 2.5, 3.5])
_S = np.array([4, 2], np.int64)

# -- order -------------------------------------------------------------------------------------------


@op(
    "SparseReorder",
    "input_indices: int64[2], input_values: T[1], input_shape: int64[1] -> output_indices: int64, output_values: T",
    "T: type",
    shape=lambda op: [op._inputs[0].shape.with_rank(2), op._inputs[1].shape.with_rank(1)],
    host=True,
    examples=[
        case(_MIXED, _V, _S),
        case(_MIXED[[0, 1, 1]], np.array([b"a", b"b", b"c"], object), _S),
        case(np.zeros((0, 2), np.int64), np.zeros(0, np.int32), _S),
    ],
)
def _reorder(ctx: HostContext, indices: Array, values: Array, shape: Array) -> tuple[Array, Array]:
    check_sparse(indices, values, shape)
    order = by_place(indices)
    return indices[order], values[order]


@gradient("SparseReorder")
def _reorder_gradient(op: Operation, *grads: Tensor) -> list[Tensor | None]:
    indices, _, dense = op.inputs
    count = shape_of(indices)[0]
    entries = apply("Range", 0, count, 1)
    _, order = apply_list("SparseReorder", indices, entries, dense)
    return [None, gather(grads[1], apply("InvertPermutation", order)), None]


@export("sparse.reorder", "sparse_reorder")
def sparse_reorder(sp_input: SparseTensor, name: str | None = None) -> SparseTensor:
    """The same sparse tensor with its elements in the order of a dense one."""
    sp = to_sparse(sp_input)
    indices, values = apply_list("SparseReorder", sp.indices, sp.values, sp.dense_shape, name=name)
    result = SparseTensor(indices, values, apply("Identity", sp.dense_shape))
    result._known = sp.shape
    return result


@export("sparse.transpose", "sparse_transpose")
def sparse_transpose(
    sp_input: SparseTensor, perm: TensorLike = None, name: str | None = None
) -> SparseTensor:
    """A sparse tensor with its axes in another order (without `perm`: reversed)."""
    with name_scope(name, "SparseTranspose"):
        sp = to_sparse(sp_input)
        if perm is None:
            perm = _reversed_axes(sp)
        perm = to_tensor(perm)
        indices = gather(sp.indices, perm, axis=1)
        known, order = sp.shape, constant_value(perm)
        dense = gather(sp.dense_shape, perm)
        if known.is_fully_defined() and order is not None:
            dense = to_tensor(np.array([known.as_list()[int(i)] for i in order], np.int64))
        return sparse_reorder(SparseTensor(indices, sp.values, dense))


def _reversed_axes(sp: SparseTensor) -> TensorLike:
    rank = sp.shape.rank
    if rank is not None:
        return np.arange(rank - 1, -1, -1, dtype=np.int32)
    last = apply("Size", sp.dense_shape) - np.int32(1)
    return last - apply("Range", 0, last + np.int32(1), 1)


# -- fewer elements, more elements -------------------------------------------------------------------


@export("sparse.retain", "sparse_retain")
def sparse_retain(sp_input: SparseTensor, to_retain: TensorLike) -> SparseTensor:
    """The elements of a sparse tensor for which `to_retain` is true."""
    sp = to_sparse(sp_input)
    keep = to_tensor(to_retain)
    keep.shape.assert_has_rank(1)
    sp.values.shape.with_rank(1)[0].merge_with(keep.shape[0])
    where = apply("Reshape", apply("Where", keep), [-1])
    result = SparseTensor(
        gather(sp.indices, where), gather(sp.values, where), apply("Identity", sp.dense_shape)
    )
    result._known = sp.shape
    return result


@export("sparse.reset_shape", "sparse_reset_shape")
def sparse_reset_shape(sp_input: SparseTensor, new_shape: TensorLike = None) -> SparseTensor:
    """The same elements in a larger dense shape, or without one in the smallest that holds them."""
    sp = to_sparse(sp_input)
    indices, values = apply("Identity", sp.indices), apply("Identity", sp.values)
    if new_shape is None:
        largest = apply("Max", indices, np.array(0, np.int32))
        dense = apply("Maximum", np.int64(0), largest + np.int64(1))
        return SparseTensor(indices, values, dense)
    wanted = apply("Cast", to_tensor(new_shape), DstT=dtypes.int64)
    wanted.shape.assert_has_rank(1)
    wanted.shape[0].merge_with(sp.dense_shape.shape.with_rank(1)[0])
    _check_larger(sp.shape, constant_value_as_shape(wanted))
    with control_dependencies([assert_equal(shape_of(sp.dense_shape), shape_of(wanted))]):
        wanted = apply("Identity", wanted)
    with control_dependencies([assert_less_equal(apply("Identity", sp.dense_shape), wanted)]):
        wanted = apply("Identity", wanted)
    return SparseTensor(indices, values, wanted)


def _check_larger(old: TensorShape, new: TensorShape) -> None:
    if old.rank is None or new.rank is None:
        return
    pairs = zip(old.as_list(), new.as_list(), strict=True)
    if any(a is not None and b is not None and a > b for a, b in pairs):
        raise ValueError(
            f"Requested new_shape should have dimension sizes >= sp_input.shape.  Found new_shape ({new}), "
            f"sp_input.shape ({old})."
        )


def _filled_shapes(op: Operation) -> list[TensorShape]:
    rank = rank_of(op, 0, 2)
    if op._inputs[3].shape.rank not in (None, 0):
        raise ValueError(f"Shape must be rank 0 but is rank {op._inputs[3].shape.rank}")
    dense = constant_value_as_shape(op._inputs[2])
    rows = dense.as_list()[0] if dense.rank else None
    count = op._inputs[0].shape.as_list()[0] if op._inputs[0].shape.rank else None
    return [TensorShape._of((None, rank)), vector_of(None), vector_of(rows), vector_of(count)]


def _fill_lanes(ops: list[Operation], given: Sequence[Any]) -> tuple[Lanes, ...] | None:
    """The same for several sparse tensors whose elements are in order: their rows are put behind each other."""
    indices, values, shape, default = given
    if not all(isinstance(x, Lanes) for x in (indices, values, shape)) or not indices.alike(values):
        return None
    dims = shape.as_matrix()
    fits = dims is not None and indices.data.ndim == 2 and indices.data.shape[1] == dims.shape[1]
    if not fits or isinstance(default, Lanes) or default.ndim:
        return None
    counts = dims[:, 0]
    starts = [0, *np.cumsum(counts).tolist()]
    if indices.order is Order.COUNTING and (counts == indices.sizes).all():
        empty = indices.like(np.zeros(starts[-1], np.bool_))
        return indices, values, empty, indices.like(indices.data[:, 0], Order.COUNTING)
    local = indices.like(indices.data[:, 0])
    if not within(local, counts):
        return None
    row = globally(local, np.array(starts[:-1]))
    if not (row[1:] >= row[:-1]).all():
        return None
    empty = np.ones(starts[-1], np.bool_)
    empty[row] = False
    missing = empty.nonzero()[0]
    if not len(missing):
        return indices, values, Lanes(empty, starts), indices.like(indices.places, Order.COUNTING)
    added = np.searchsorted(missing, np.array(starts))  # missing rows before each lane
    filled_starts = np.asarray(indices.starts) + added
    at = np.searchsorted(row, missing)
    filled = np.insert(values.data, at, np.full(len(missing), default, values.data.dtype))
    new = np.zeros((len(missing), indices.data.shape[1]), np.int64)
    new[:, 0] = missing - np.repeat(np.array(starts[:-1]), np.diff(added))
    places = np.insert(indices.data, at, new, axis=0)
    back = np.arange(len(row)) + np.searchsorted(missing, row) - indices.for_each_row(filled_starts[:-1])
    wide = filled_starts.tolist()
    return Lanes(places, wide), Lanes(filled, wide), Lanes(empty, starts), indices.like(back)


@op(
    "SparseFillEmptyRows",
    "indices: int64[n,_], values: T[n], dense_shape: int64[1], default_value: T -> output_indices: int64, "
    "output_values: T, empty_row_indicator: bool, reverse_index_map: int64",
    "T: type",
    shape=_filled_shapes,
    host=True,
    joined=_fill_lanes,
    examples=[
        case(np.array([[0, 1], [2, 0], [2, 1]], np.int64), _V, _S, np.array(9.5)),
        case(np.array([[2, 1], [0, 0], [2, 0]], np.int64), _V, _S, np.array(9.5)),
        case(np.zeros((0, 2), np.int64), np.zeros(0, object), _S, np.array(b"x", object)),
        case(np.zeros((0, 2), np.int64), np.zeros(0, np.int32), np.array([0, 2], np.int64), np.int32(1)),
    ],
)
def _fill(
    ctx: HostContext, indices: Array, values: Array, shape: Array, default: Array
) -> tuple[Array, Array, Array, Array]:
    check_sparse(indices, values, shape)
    rows = int(shape[0])
    if rows == 0 and len(indices):
        raise invalid(f"Received SparseTensor with dense_shape[0] = 0 but indices.shape[0] = {len(indices)}")
    row = indices[:, 0]
    if not all_within(np, row, rows):
        wrong = np.flatnonzero((row < 0) | (row >= rows))
        raise invalid(f"indices({wrong[0]}, 0) is invalid: {row[wrong[0]]} >= {rows}")
    empty = np.ones(rows, np.bool_)
    empty[row] = False
    missing = empty.nonzero()[0]
    in_order = (row[1:] >= row[:-1]).all()
    if in_order and not len(missing):
        return indices, values, empty, np.arange(len(row))
    added = np.zeros((len(missing), indices.shape[1]), np.int64)
    added[:, 0] = missing
    if in_order:  # as elements almost always are: inserting is faster than sorting
        at = np.searchsorted(row, missing)
        filled = np.insert(values, at, np.full(len(missing), default, values.dtype))
        places = np.insert(indices, at, added, axis=0)
        return places, filled, empty, np.arange(len(row)) + np.searchsorted(missing, row)
    order = np.argsort(np.concatenate([row, missing]), kind="stable")
    places = np.concatenate([indices, added])[order]
    filled = np.empty(len(order), values.dtype)
    filled[:] = np.concatenate([values, np.full(len(missing), default, values.dtype)])[order]
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return places, filled, empty, back[: len(indices)]


@op(
    "SparseFillEmptyRowsGrad",
    "reverse_index_map: int64[1], grad_values: T[1] -> d_values: T, d_default_value: T",
    "T: type",
    shape=lambda op: [op._inputs[0].shape.with_rank(1), SCALAR],
    host=True,
    examples=[case(np.array([0, 2], np.int64), np.array([1.5, 2.5, 3.5]))],
)
def _fill_grad(ctx: HostContext, back: Array, grads: Array) -> tuple[Array, Array]:
    wrong = np.flatnonzero((back < 0) | (back >= len(grads)))
    if len(wrong):
        raise invalid(f"Elements in reverse index must be in [0, {len(grads)}) but got {back[wrong[0]]}")
    added = np.ones(len(grads), np.bool_)
    added[back] = False
    return grads[back], np.asarray(grads[added].sum(dtype=grads.dtype), grads.dtype)


@gradient("SparseFillEmptyRows")
def _fill_gradient(op: Operation, *grads: Tensor) -> list[Tensor | None]:
    values, default = apply_list("SparseFillEmptyRowsGrad", op.outputs[3], grads[1])
    return [None, values, None, default]


not_differentiable("SparseFillEmptyRowsGrad")


@export("sparse.fill_empty_rows", "sparse_fill_empty_rows")
def sparse_fill_empty_rows(
    sp_input: SparseTensor, default_value: TensorLike, name: str | None = None
) -> tuple[SparseTensor, Tensor]:
    """A sparse matrix with `default_value` at the start of each empty row, and which rows were empty."""
    sp = to_sparse(sp_input)
    with name_scope(name, "SparseFillEmptyRows", [sp]):
        default = to_tensor(default_value, sp.values.dtype)
        indices, values, empty, _ = apply_list(
            "SparseFillEmptyRows", sp.indices, sp.values, sp.dense_shape, default
        )
        filled = SparseTensor(indices, values, sp.dense_shape)
        filled._known = sp.shape
        return filled, empty


@export("sparse.mask", "sparse_mask")
def sparse_mask(a: IndexedSlices, mask_indices: TensorLike, name: str | None = None) -> IndexedSlices:
    """The rows of `a` whose indices are not among `mask_indices`."""
    with name_scope(name, "sparse_mask", [a, mask_indices]) as scope:
        kept, where = apply_list("ListDiff", a.indices, mask_indices)
        return IndexedSlices(gather(a.values, where, name=scope), kept, a.dense_shape)


# -- between sparse and dense ------------------------------------------------------------------------


@export("sparse.expand_dims")
def sparse_expand_dims(
    sp_input: SparseTensor, axis: int | None = None, name: str | None = None
) -> SparseTensor:
    """A sparse tensor with a dimension of 1 inserted before `axis`; at the end without one."""
    sp = to_sparse(sp_input)
    rank = sp.shape.rank
    with name_scope(name, "expand_dims", [sp]):
        if rank is None:
            raise ValueError("sp_input must have a static rank: set the shape of its dense_shape.")
        axis = -1 if axis is None else axis
        if not -rank - 1 <= axis <= rank:
            raise ValueError(f"axis must be in range [{-rank - 1}, {rank}], got {axis}.")
        at = axis % (rank + 1)
        column = zeros_like(sp.indices[:, :1]) if rank else _no_column(sp)
        indices = apply("ConcatV2", [sp.indices[:, :at], column, sp.indices[:, at:]], 1)
        one = np.array([1], np.int64)
        dense = apply("ConcatV2", [sp.dense_shape[:at], one, sp.dense_shape[at:]], 0)
        return SparseTensor(indices, sp.values, dense)


def _no_column(sp: SparseTensor) -> Tensor:
    """Zeros for the one dimension that a sparse scalar gets."""
    count = apply("Shape", sp.values, out_type=dtypes.int64)
    return apply("Fill", apply("ConcatV2", [count, np.array([1], np.int64)], 0), np.int64(0))


@export("sparse.from_dense")
def from_dense(tensor: TensorLike, name: str | None = None) -> SparseTensor:
    """The elements of a dense tensor that are not zero (not empty, not False), as a sparse tensor."""
    with name_scope(name, "dense_to_sparse"):
        dense = to_tensor(tensor)
        indices = apply("Where", compare.not_equal(dense, _zero(dense)))
        values = apply("GatherNd", dense, indices)
        return SparseTensor(indices, values, shape_of(dense, out_type=dtypes.int64))


def _zero(dense: Tensor) -> Tensor:
    kind = dense.dtype.base_dtype
    return to_tensor(b"" if kind == dtypes.string else np.zeros((), kind.as_numpy_dtype), kind)


@export("sparse.eye")
def sparse_eye(
    num_rows: TensorLike,
    num_columns: TensorLike = None,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> SparseTensor:
    """A sparse matrix with ones on its diagonal."""
    with name_scope(name, "eye"):
        rows = cast(to_tensor(num_rows), dtypes.int64)
        columns = rows if num_columns is None else cast(to_tensor(num_columns), dtypes.int64)
        along = apply("Range", 0, apply("Minimum", rows, columns), 1, Tidx=dtypes.int64)
        ones = apply("Fill", apply("Shape", along), _one(dtypes.as_dtype(dtype)))
        return SparseTensor(apply("Pack", [along, along], axis=1), ones, apply("Pack", [rows, columns]))


def _one(dtype: dtypes.DType) -> Tensor:
    return to_tensor(np.ones((), dtype.as_numpy_dtype), dtype)


@export("sparse.to_indicator", "sparse_to_indicator")
def sparse_to_indicator(sp_input: SparseTensor, vocab_size: TensorLike, name: str | None = None) -> Tensor:
    """A dense bool tensor that is true at the ids found along the last dimension of a sparse one."""
    sp = to_sparse(sp_input)
    with name_scope(name, "SparseToIndicator", [sp]) as scope:
        count = shape_of(sp.indices)[0]
        ones = apply("Fill", apply("ExpandDims", count, 0), True)
        marked = sparse_merge(sp, SparseTensor(sp.indices, ones, sp.dense_shape), vocab_size)
        # An id may be there twice: the places need not be unique.
        return sparse_tensor_to_dense(marked, default_value=False, validate_indices=False, name=scope)


@export("sparse.merge", "sparse_merge")
def sparse_merge(
    sp_ids: SparseTensor | Sequence[SparseTensor],
    sp_values: SparseTensor,
    vocab_size: TensorLike,
    name: str | None = None,
    already_sorted: bool = False,
) -> SparseTensor:
    """Ids and values of the same places as one sparse tensor whose last dimension counts the ids.

    `sp_ids` may be a list of sparse tensors, with a list of sizes: then each adds a dimension.
    """
    if isinstance(sp_ids, (SparseTensor, SparseTensorValue)):
        if not (isinstance(vocab_size, (Tensor, int, np.integer))):
            raise TypeError(f"vocab_size has to be a Tensor or Python int. Found {type(vocab_size)}")
        ids, sizes = [sp_ids], [vocab_size]
    else:
        if not isinstance(vocab_size, (list, tuple)):
            raise TypeError(
                f"vocab_size has to be a list of Tensors or Python ints. Found {type(vocab_size)}"
            )
        ids, sizes = list(sp_ids), list(vocab_size)
    if len(ids) != len(sizes):
        raise ValueError("sp_ids and vocab_size have to have equal lengths.")
    with name_scope(name, "SparseMerge", [*ids, sp_values]):
        parts, values = [to_sparse(sp) for sp in ids], to_sparse(sp_values)
        dims = [apply("ExpandDims", cast(to_tensor(s), dtypes.int64), 0) for s in sizes]
        columns = [apply("ExpandDims", cast(sp.values, dtypes.int64), 1) for sp in parts]
        indices = apply("ConcatV2", [parts[0].indices[:, :-1], *columns], 1)
        dense = apply("ConcatV2", [parts[0].dense_shape[:-1], *dims], 0)
        merged = SparseTensor(indices, values.values, dense)
        return merged if already_sorted else _in_order(merged)


def _in_order(sp: SparseTensor) -> SparseTensor:
    ordered = sparse_reorder(sp)
    return SparseTensor(ordered.indices, ordered.values, sp.dense_shape)
