"""Sparse tensors rearranged: joined, cut, sliced, reshaped, put in order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import Dimension, TensorShape
from tensorfleet.base.types import Array, TensorLike
from tensorfleet.graph.apply import apply, apply_any, apply_list
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.graph.sparse_tensor import SparseTensor, to_sparse, with_static_shape
from tensorfleet.kernels.lanes import Lanes
from tensorfleet.kernels.sparse import bracketed, by_place, check_sparse, invalid, places, positions
from tensorfleet.ops.argument_order import takes_old_order
from tensorfleet.ops.common import vector_of
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.nn.shapes import same_dimension
from tensorfleet.ops.samples import case

_I = np.array([[0, 1], [1, 0], [2, 2]], np.int64)
_V = np.array([1.5, 2.5, 3.5])
_S = np.array([3, 4], np.int64)
_NONE = (np.zeros((0, 2), np.int64), np.zeros(0, np.float32), np.array([2, 3], np.int64))
_MIXED = (np.array([[1, 0], [0, 1], [0, 0]], np.int64), np.array([b"c", b"b", b"a"], object))


#: A sparse tensor in a kernel: its indices, values and dense shape.
Parts: TypeAlias = tuple[Array, Array, Array]


def rank_of(op: Operation, indices: int, shape: int) -> int | None:
    """The dense rank, from whichever of the two inputs has it; ValueError when the ranks are impossible."""
    places = op._inputs[indices].shape.with_rank(2)
    dims = op._inputs[shape].shape.with_rank(1)
    return same_dimension(places.as_list()[1], dims.as_list()[0])


def sparse_rank(op: Operation, first: int) -> int | None:
    """The dense rank of a sparse tensor given by three inputs; ValueError when these do not fit."""
    indices, values, shape = (
        t.shape.with_rank(r).as_list() for t, r in zip(op._inputs[first : first + 3], (2, 1, 1), strict=True)
    )
    if None not in (indices[0], values[0]) and indices[0] != values[0]:
        raise ValueError(f"Number of elements in index ({indices[0]}) and values ({values[0]}) do not match.")
    if None not in (indices[1], shape[0]) and indices[1] != shape[0]:
        raise ValueError(f"Index rank ({indices[1]}) and shape rank ({shape[0]}) do not match.")
    rank: int | None = shape[0] if indices[1] is None else indices[1]
    return rank


def sparse_shapes(rank: int | None, count: int | None = None) -> list[TensorShape]:
    """The shapes of the indices, values and dense shape of a sparse tensor."""
    return [TensorShape._of((count, rank)), vector_of(count), vector_of(rank)]


# -- joining and cutting -----------------------------------------------------------------------------


def _joined_shapes(op: Operation) -> list[TensorShape]:
    n = op._attrs["N"]
    rank, count = TensorShape([None]), Dimension(0)
    for i in range(n):
        rank = rank.merge_with(vector_of(rank_of(op, i, 2 * n + i)))
        own = op._inputs[i].shape.with_rank(2)[0].merge_with(op._inputs[n + i].shape.with_rank(1)[0])
        count = count + own
    return sparse_shapes(rank.as_list()[0], count.value)


@op(
    "SparseConcat",
    "indices: N * int64, values: N * T, shapes: N * int64 -> "
    "output_indices: int64, output_values: T, output_shape: int64",
    "concat_dim: int; N: int; T: type",
    shape=_joined_shapes,
    host=True,
    examples=[
        case([_I, _I[:1]], [_V, _V[:1]], [_S, np.array([3, 2], np.int64)], concat_dim=1),
        case([_I, _I[::-1]], [_V, _V], [_S, _S], concat_dim=-2),
    ],
)
def _concat(
    ctx: HostContext, indices: list[Array], values: list[Array], shapes: list[Array], *, concat_dim: int
) -> tuple[Array, Array, Array]:
    rank = len(shapes[0])
    if not -rank <= concat_dim < rank:
        raise invalid(f"Concat dimension must be in range [{-rank}, {rank}), got {concat_dim}")
    axis = concat_dim % rank
    moved, total = [], np.array(shapes[0], np.int64)
    for n, (rows, own, dims) in enumerate(zip(indices, values, shapes, strict=True)):
        check_sparse(rows, own, dims)
        if n:
            _check_joinable(shapes[0], dims, axis, n)
            moved.append(rows + np.where(np.arange(rank) == axis, total[axis], 0))
            total[axis] += dims[axis]
        else:
            moved.append(rows)
    together = np.concatenate(moved)
    order = by_place(together)
    return together[order], np.concatenate(values)[order], total


def _check_joinable(first: Array, dims: Array, axis: int, n: int) -> None:
    if len(dims) != len(first):
        raise invalid(
            f"Ranks of all input tensors must match: expected {len(first)} but got {len(dims)} at position {n}"
        )
    for d, (a, b) in enumerate(zip(first, dims, strict=True)):
        if d != axis and a != b:
            raise invalid(
                f"Input shapes must match: expected {a} for dimension {d} but got {b} at position {n}"
            )


not_differentiable("SparseConcat")


@export("sparse.concat", "sparse_concat")
def sparse_concat(
    axis: int,
    sp_inputs: list[SparseTensor],
    name: str | None = None,
    expand_nonconcat_dim: bool = False,
    concat_dim: int | None = None,
    expand_nonconcat_dims: bool | None = None,
) -> SparseTensor:
    """Sparse tensors one after the other along an axis.

    Their other dimensions must be equal, unless `expand_nonconcat_dim`: then the largest of each counts.
    """
    if concat_dim is not None and axis is None:
        axis = concat_dim
    if expand_nonconcat_dims is not None:
        expand_nonconcat_dim = expand_nonconcat_dims
    if not isinstance(sp_inputs, list):
        raise TypeError("Inputs must be a list")
    parts = [to_sparse(sp) for sp in sp_inputs]
    if len(parts) == 1:
        return parts[0]
    shapes = [sp.dense_shape for sp in parts]
    if expand_nonconcat_dim:
        largest = apply("Max", apply("Pack", shapes), np.array(0, np.int32))
        # A slice that begins at -1 + 1 would be the whole shape.
        after = [] if axis == -1 else [largest[axis + 1 :]]
        own = [dims[-1:] if axis == -1 else dims[axis : axis + 1] for dims in shapes]
        shapes = [apply("ConcatV2", [largest[:axis], dim, *after], 0) for dim in own]
    indices, values, dense = apply_list(
        "SparseConcat",
        [sp.indices for sp in parts],
        [sp.values for sp in parts],
        shapes,
        concat_dim=axis,
        name=name,
    )
    known = _joined_static([sp.shape for sp in parts], axis, expand_nonconcat_dim)
    return with_static_shape(indices, values, dense, known)


def _joined_static(shapes: list[TensorShape], axis: int, expand: bool) -> TensorShape:
    if any(s.rank is None for s in shapes) or not -len(shapes[0]) <= axis < len(shapes[0]):
        return TensorShape(None)
    if len({s.rank for s in shapes}) > 1:
        return TensorShape(None)
    columns = list(zip(*(s.as_list() for s in shapes), strict=True))
    along = axis % len(columns)
    dims = []
    for i, column in enumerate(columns):
        if i == along:
            dims.append(None if None in column else sum(column))
        elif expand:
            dims.append(None if None in column else max(column))
        else:
            dims.append(next((d for d in column if d is not None), None))
    return TensorShape(dims)


def _split_shapes(op: Operation) -> list[TensorShape]:
    n, rank = op._attrs["num_split"], rank_of(op, 1, 3)
    indices, values, dense = sparse_shapes(rank)
    return [indices] * n + [values] * n + [dense] * n


@op(
    "SparseSplit",
    "split_dim: int64, indices: int64, values: T, shape: int64 -> "
    "output_indices: num_split * int64, output_values: num_split * T, output_shape: num_split * int64",
    "num_split: int >= 1; T: type",
    shape=_split_shapes,
    host=True,
    examples=[
        case(np.array(1, np.int64), _I, _V, _S, num_split=2),
        case(np.array(-2, np.int64), _I, _V, _S, num_split=2),
    ],
)
def _split(
    ctx: HostContext, split_dim: Array, indices: Array, values: Array, shape: Array, *, num_split: int
) -> tuple[Array, ...]:
    if np.ndim(split_dim):
        raise invalid(f"axis should be a scalar but got shape {list(np.shape(split_dim))}")
    rank, axis = len(shape), int(split_dim)
    if not -rank <= axis < rank:
        raise invalid(f"Input axis should be in range [{-rank}, {rank}), got {axis}")
    axis %= rank
    length = int(shape[axis])
    if not 1 <= num_split <= length:
        raise invalid(
            f"Input num_split should be between 1 and the splitting dimension size ({length}), got {num_split}"
        )
    each, more = divmod(length, num_split)
    starts = np.array([i * each + min(i, more) for i in range(num_split + 1)], np.int64)
    along = np.ascontiguousarray(indices[:, axis])
    rows, parts, dims = [], [], []
    for i in range(num_split):
        here = np.flatnonzero((along >= starts[i]) & (along < starts[i + 1]))
        mine = indices.take(here, 0)
        mine[:, axis] -= starts[i]
        rows.append(mine)
        parts.append(values.take(here))
        dims.append(np.where(np.arange(rank) == axis, starts[i + 1] - starts[i], shape).astype(np.int64))
    return (*rows, *parts, *dims)


class KeywordRequired:
    """The default that a first argument has where all arguments must be given by name."""

    def __repr__(self) -> str:
        return "KeywordRequired()"


@export("sparse.split", "sparse_split")
@takes_old_order("sparse_split", "axis num_split sp_input name", lambda *args: isinstance(args[0], int))
def sparse_split(
    keyword_required: object = KeywordRequired(),
    sp_input: SparseTensor | None = None,
    num_split: int | None = None,
    axis: int | None = None,
    name: str | None = None,
    split_dim: int | None = None,
) -> list[SparseTensor]:
    """A sparse tensor cut into `num_split` parts along an axis; the first parts are one longer if it does not divide."""
    if not isinstance(keyword_required, KeywordRequired):
        raise ValueError("Keyword arguments are required for this function.")
    if sp_input is None:
        raise ValueError("sp_input is required")
    if num_split is None:
        raise ValueError("num_split is required")
    axis = split_dim if axis is None else axis
    if axis is None:
        raise ValueError("axis is required")
    if num_split < 1:
        raise ValueError(f"Attr 'num_split' of 'SparseSplit' Op passed {num_split} less than minimum 1.")
    sp = to_sparse(sp_input)
    indices, values, shapes = apply_any(
        "SparseSplit", axis, sp.indices, sp.values, sp.dense_shape, num_split=num_split, name=name
    )
    return [SparseTensor(*parts) for parts in zip(indices, values, shapes, strict=True)]


# -- slices ------------------------------------------------------------------------------------------


@op(
    "SparseSlice",
    "indices: int64, values: T, shape: int64, start: int64, size: int64 -> "
    "output_indices: int64, output_values: T, output_shape: int64",
    "T: type",
    shape=lambda op: sparse_shapes(rank_of(op, 0, 2)),
    host=True,
    examples=[
        case(_I, _V, _S, np.array([0, 0], np.int64), np.array([2, 9], np.int64)),
        case(_I, _V, _S, np.array([5, 1], np.int64), np.array([1, 1], np.int64), grad=False),
    ],
)
def _slice(
    ctx: HostContext, indices: Array, values: Array, shape: Array, start: Array, size: Array
) -> tuple[Array, Array, Array]:
    check_sparse(indices, values, shape)
    for what, vector in (("start", start), ("size", size)):
        if len(vector) != len(shape):
            raise invalid(
                f"Expected {what} to be a vector of length {len(shape)} but got length {len(vector)}"
            )
    if (size < 0).any():
        raise invalid(f"Expected a non-negative size, got {size[size < 0][0]}")
    inside = np.ones(len(indices), np.bool_)
    for column, first, count in zip(indices.T, start, size, strict=True):
        inside &= (column >= first) & (column - first < count)
    rows = np.flatnonzero(inside)
    dims = np.clip(shape - start, 0, size)
    return indices.take(rows, axis=0) - start, values.take(rows), dims


@op(
    "SparseSliceGrad",
    "backprop_val_grad: T, input_indices: int64[2], input_start: int64, output_indices: int64 -> val_grad: T",
    "T: number",
    shape=lambda op: vector_of(op._inputs[1].shape.with_rank(2).as_list()[0]),
    host=True,
    examples=[case(np.array([1.5]), _I, np.array([1, 0], np.int64), np.array([[0, 0]], np.int64))],
)
def _slice_grad(ctx: HostContext, grad: Array, indices: Array, start: Array, kept: Array) -> Array:
    row_of = {tuple(place): n for n, place in enumerate((kept + start).tolist())}
    rows = [row_of.get(tuple(place), -1) for place in indices.tolist()]
    return np.append(grad, np.zeros(1, grad.dtype))[rows]  # elements outside the slice have no gradient


@gradient("SparseSlice")
def _slice_gradient(op: Operation, *grads: Tensor) -> list[Tensor | None]:
    grad = apply("SparseSliceGrad", grads[1], op.inputs[0], op.inputs[3], op.outputs[0])
    return [None, grad, None, None, None]


not_differentiable("SparseSliceGrad")


@export("sparse.slice", "sparse_slice")
def sparse_slice(
    sp_input: SparseTensor, start: TensorLike, size: TensorLike, name: str | None = None
) -> SparseTensor:
    """The part of a sparse tensor that begins at `start` and has at most `size`."""
    sp = to_sparse(sp_input)
    begin = to_tensor(start, dtypes.int64)
    extent = to_tensor(size, dtypes.int64)
    with name_scope(name, "SparseSlice", [sp]) as scope:
        return SparseTensor(
            *apply_list("SparseSlice", sp.indices, sp.values, sp.dense_shape, begin, extent, name=scope)
        )


# -- shapes ------------------------------------------------------------------------------------------


def _reshaped_shapes(op: Operation) -> list[TensorShape]:
    op._inputs[0].shape.assert_has_rank(2)
    for i in (1, 2):
        if op._inputs[i].shape.rank not in (None, 1):
            raise ValueError(f"Shape must be rank 1 but is rank {op._inputs[i].shape.rank}")
    rank = op._inputs[2].shape.num_elements()
    count = op._inputs[0].shape.with_rank(2).as_list()[0]
    return [TensorShape._of((count, rank)), vector_of(rank)]


def _reshape_lanes(ops: list[Operation], given: Sequence[Any]) -> tuple[Lanes, Lanes] | None:
    """The same for several operations, where nothing changes: as an embedding column does to its words."""
    indices, shape, new_shape = given
    if not (isinstance(indices, Lanes) and isinstance(shape, Lanes) and isinstance(new_shape, Lanes)):
        return None
    same = shape.alike(new_shape) and (shape.data == new_shape.data).all() and (shape.data >= 0).all()
    return (indices, new_shape) if same else None


@op(
    "SparseReshape",
    "input_indices: int64[2], input_shape: int64, new_shape: int64 -> output_indices: int64, output_shape: int64",
    shape=_reshaped_shapes,
    host=True,
    joined=_reshape_lanes,
    examples=[
        case(_I, _S, np.array([2, -1], np.int64)),
        case(_I, _S, np.array([12], np.int64)),
        case(np.zeros((0, 2), np.int64), np.array([0, 3], np.int64), np.array([0, 3, 2], np.int64)),
    ],
)
def _reshape(ctx: HostContext, indices: Array, shape: Array, new_shape: Array) -> tuple[Array, Array]:
    shape = np.asarray(shape)
    target = _filled_in(shape, np.asarray(new_shape))
    if target.tolist() == shape.tolist():
        return indices, target
    return places(positions(indices, shape), target), target


def _filled_in(shape: Array, new_shape: Array) -> Array:
    """The new shape with its -1 worked out."""
    sizes = new_shape.tolist()
    dense, free = math.prod(shape.tolist()), [d for d, size in enumerate(sizes) if size == -1]
    if len(free) > 1:
        raise invalid(f"only one output dimension may be -1, not both {free[0]} and {free[1]}")
    for d, size in enumerate(sizes):
        if size < -1:
            raise invalid(f"size {d} must be non-negative, not {size}")
    target = np.array(sizes, np.int64)
    if free:
        target[free] = 1
        product = math.prod(target.tolist())
        if product == 0:
            raise invalid(
                "reshape cannot infer the missing input size for an empty tensor unless all specified input sizes "
                "are non-zero"
            )
        if dense % product:
            raise invalid(
                f"Input to reshape is a SparseTensor with {dense} dense values, but the requested shape requires a "
                f"multiple of {product}. input_shape={bracketed(shape)} output_shape={bracketed(target)}"
            )
        target[free] = dense // product
    elif math.prod(sizes) != dense:
        raise invalid(
            f"Input to reshape is a tensor with {dense} dense values, but the requested shape has "
            f"{math.prod(sizes)}. input_shape={bracketed(shape)} output_shape={bracketed(target)}"
        )
    return target


not_differentiable("SparseReshape")


@export("sparse.reshape", "sparse_reshape")
def sparse_reshape(sp_input: SparseTensor, shape: TensorLike, name: str | None = None) -> SparseTensor:
    """The same elements in another shape; one dimension may be -1."""
    sp = to_sparse(sp_input)
    wanted = cast(to_tensor(shape, preferred=dtypes.int64), dtypes.int64)
    with name_scope(name, "SparseReshape", [sp]) as scope:
        indices, dense = apply_list("SparseReshape", sp.indices, sp.dense_shape, wanted, name=scope)
        return with_static_shape(indices, sp.values, dense, _static_reshape(sp.shape, constant_value(wanted)))


def _static_reshape(shape: TensorShape, wanted: Array | None) -> TensorShape:
    if wanted is None or wanted.ndim != 1 or (wanted < -1).any():
        return TensorShape(None)
    dims: list[int | None] = [int(d) for d in wanted]
    count = shape.num_elements()
    if count is None:
        return TensorShape([None if d == -1 else d for d in dims])
    if dims.count(-1) > 1:
        raise ValueError(f"At most one dimension can be inferred (-1). Found: {wanted}")
    asked = [None if d == -1 else d for d in dims]
    if -1 in dims:
        rest = int(np.prod([int(d) for d in wanted if d != -1], dtype=np.int64))
        if not rest:
            return TensorShape(asked)
        dims[dims.index(-1)] = count // rest
    size = math.prod(d or 0 for d in dims)
    if size != count:
        raise ValueError(f"Cannot reshape a tensor with {count} elements to shape {asked} ({size} elements).")
    return TensorShape(dims)
