"""Sparse tensors by elements and by rows: products with dense tensors, sums over axes, softmax."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import numpy as np

from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, TensorLike
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.kernel_types import HostContext, Kernel
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.graph.sparse_tensor import SparseTensor, to_sparse
from tensorfleet.kernels.sparse import bracketed, by_place, check_sparse, invalid
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.common import shape_given_by, static_value, vector_of
from tensorfleet.ops.samples import case
from tensorfleet.ops.sparse.arrange import Parts, sparse_shapes

_A = (np.array([[0, 1], [1, 0], [2, 2]], np.int64), np.array([1.5, 2.5, 3.5]), np.array([3, 4], np.int64))
_I = (_A[0], np.array([7, -7, 9], np.int32), _A[2])
_NONE = (np.zeros((0, 2), np.int64), np.zeros(0, np.float32), np.array([3, 4], np.int64))

# -- with a dense tensor, element by element ---------------------------------------------------------


def _cwise(name: str) -> Callable[[Kernel], Kernel]:
    return op(
        name,
        "sp_indices: int64[2], sp_values: T, sp_shape: int64, dense: T -> output: T",
        "T: number",
        shape=lambda op: vector_of(op._inputs[0].shape.with_rank(2).as_list()[0]),
        host=True,
        examples=[
            case(*_A, np.array([1.5, 2.0, 3.0, 4.0]), grad=name != "SparseDenseCwiseAdd"),
            case(*_A, np.array(2.5), grad=False),
            case(*_A, np.arange(1, 4.0).reshape(3, 1), grad=name != "SparseDenseCwiseAdd"),
            case(*_I, np.array([2], np.int32)),
        ],
    )


def _dense_at(indices: Array, values: Array, shape: Array, dense: Array) -> Array:
    """The elements of a dense tensor, broadcast to a sparse one, at the places of that one."""
    check_sparse(indices, values, shape)
    dense = np.asarray(dense)
    own = tuple(int(d) for d in shape[len(shape) - dense.ndim :])
    if dense.ndim > len(shape) or any(a not in (1, b) for a, b in zip(dense.shape, own, strict=True)):
        raise invalid(
            f"SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: {bracketed(shape)} "
            f"vs. {bracketed(dense.shape)}"
        )
    if len(indices) and ((indices < 0) | (indices >= shape)).any():
        raise invalid("Provided indices are out-of-bounds w.r.t. dense side with broadcasted shape")
    first = len(shape) - dense.ndim
    result: Array = dense[tuple(indices[:, first + d] if n != 1 else 0 for d, n in enumerate(dense.shape))]
    return result


@_cwise("SparseDenseCwiseMul")
def _times(ctx: HostContext, indices: Array, values: Array, shape: Array, dense: Array) -> Array:
    return values * _dense_at(indices, values, shape, dense)


@_cwise("SparseDenseCwiseDiv")
def _divided(ctx: HostContext, indices: Array, values: Array, shape: Array, dense: Array) -> Array:
    divisor = np.broadcast_to(_dense_at(indices, values, shape, dense), values.shape)
    quotient: Array
    if values.dtype.kind not in "iu":
        quotient = values / divisor
        return quotient
    if (divisor == 0).any():
        raise invalid("Integer division by zero")
    quotient = np.abs(values) // np.abs(divisor)  # toward zero, as C does
    return np.asarray(np.sign(values) * np.sign(divisor) * quotient, values.dtype)


@_cwise("SparseDenseCwiseAdd")
def _plus(ctx: HostContext, indices: Array, values: Array, shape: Array, dense: Array) -> Array:
    return values + _dense_at(indices, values, shape, dense)


@export("python.ops.sparse_ops.sparse_dense_cwise_add")
def sparse_dense_cwise_add(sp_t: SparseTensor, dense_t: TensorLike) -> SparseTensor:
    """A sparse tensor plus the elements of a dense one at its places."""
    summed = apply("SparseDenseCwiseAdd", sp_t.indices, sp_t.values, sp_t.dense_shape, dense_t)
    return SparseTensor(sp_t.indices, summed, sp_t.dense_shape)


@gradient("SparseDenseCwiseAdd")
def _plus_gradient(op: Operation, dy: Tensor) -> NoReturn:
    raise NotImplementedError("Gradient for SparseDenseCwiseAdd is currently not implemented yet.")


def _cwise_gradient(op: Operation, dy: Tensor, is_product: bool) -> list[Tensor | None]:
    indices, values, dense_shape, dense = op.inputs
    scaling = apply("Div", apply("Cast", dense_shape, DstT="int64"), _padded_shape(dense, dense_shape))
    # Where each element of the sparse side reads the dense one: a broadcast axis has only place 0.
    read = apply("Div", indices, scaling)
    wide = apply("Reshape", dense, apply("Cast", _padded_shape(dense, dense_shape), DstT="int64"))
    taken = apply("GatherNd", wide, read)
    if is_product:
        values_grad, each = dy * taken, dy * values
    else:
        values_grad, each = dy / taken, dy * (-values / (taken * taken))
    scattered = apply("ScatterNd", read, each, apply("Shape", wide, out_type="int64"))
    return [None, values_grad, None, apply("Reshape", scattered, shape_of(dense))]


def _padded_shape(dense: Tensor, dense_shape: Tensor) -> Tensor:
    """The shape of the dense side with ones in front, up to the rank of the sparse side."""
    own = shape_of(dense, out_type="int64")
    missing = apply("Sub", apply("Size", dense_shape), apply("Size", own))
    ones = apply("Fill", apply("ExpandDims", missing, 0), np.int64(1))
    return apply("ConcatV2", [ones, own], 0)


@gradient("SparseDenseCwiseMul")
def _times_gradient(op: Operation, dy: Tensor) -> list[Tensor | None]:
    return _cwise_gradient(op, dy, True)


@gradient("SparseDenseCwiseDiv")
def _divided_gradient(op: Operation, dy: Tensor) -> list[Tensor | None]:
    return _cwise_gradient(op, dy, False)


def _with_dense(op_type: str, sp: SparseTensor, dense: TensorLike, name: str) -> SparseTensor:
    y = to_tensor(dense, sp.dtype.base_dtype, name="y")
    values = apply(op_type, sp.indices, sp.values, sp.dense_shape, y, name=name)
    return SparseTensor(sp.indices, values, sp.dense_shape)


def _operator(op_type: str, scope_name: str) -> Callable[[SparseTensor, TensorLike], SparseTensor]:
    def operate(sp: SparseTensor, other: TensorLike) -> SparseTensor:
        with name_scope(None, scope_name, [sp, other]) as scope:
            return _with_dense(op_type, sp, other, scope)

    return operate


def _truediv(sp: SparseTensor, other: TensorLike) -> SparseTensor:
    with name_scope(None, "truediv", [sp, other]) as scope:
        y = to_tensor(other, sp.dtype.base_dtype, name="y")
        if sp.dtype.is_integer:
            wide = "float64" if sp.dtype.size > 2 else "float32"
            y = apply("Cast", y, DstT=wide)
            sp = SparseTensor(sp.indices, apply("Cast", sp.values, DstT=wide), sp.dense_shape)
        return _with_dense("SparseDenseCwiseDiv", sp, y, scope)


# The class belongs to an earlier folder, which cannot import the ops that its operators apply.
for _name, _method in (
    ("__mul__", _operator("SparseDenseCwiseMul", "mul")),
    ("__div__", _operator("SparseDenseCwiseDiv", "div")),
    ("__truediv__", _truediv),
):
    setattr(SparseTensor, _name, _method)


# -- over axes ---------------------------------------------------------------------------------------


def _grouped(indices: Array, values: Array, shape: Array, axes: Array, keep_dims: bool, f: np.ufunc) -> Parts:
    """A sparse tensor whose elements are `f` of the elements that differ only along `axes`."""
    check_sparse(indices, values, shape)
    rank, reduced = len(shape), set()
    for axis in np.asarray(axes).ravel().tolist():
        if not -rank <= axis < rank:
            raise invalid(f"Invalid reduction dimension {axis}, for input with {rank} dimensions.")
        reduced.add(axis % rank)
    left = [d for d in range(rank) if d not in reduced]
    kept = np.array(indices)[:, left]
    order = by_place(kept)
    kept, sorted_values = kept[order], values[order]
    starts = np.flatnonzero(np.append(True, (np.diff(kept, axis=0) != 0).any(axis=1)))[: len(kept)]
    # `reduceat` refuses to reduce nothing.
    reduced_values = f.reduceat(sorted_values, starts, dtype=values.dtype) if len(kept) else sorted_values
    rows = kept[starts]
    if keep_dims:
        whole = np.zeros((len(rows), rank), np.int64)
        whole[:, left] = rows
        return (
            whole,
            reduced_values,
            np.array([1 if d in reduced else shape[d] for d in range(rank)], np.int64),
        )
    return rows, reduced_values, np.array([shape[d] for d in left], np.int64)


def _reduced_shape(op: Operation) -> TensorShape:
    shape, axes = shape_given_by(op, 2), static_value(op, 3)
    if shape.rank is None or axes is None:
        return TensorShape(None)
    rank = shape.rank
    if any(not -rank <= axis < rank for axis in axes.ravel()):
        return TensorShape(None)  # refused when it runs
    gone = {int(a) % rank for a in axes.ravel()}
    if op._attrs["keep_dims"]:
        return TensorShape([1 if d in gone else n for d, n in enumerate(shape.as_list())])
    return TensorShape([n for d, n in enumerate(shape.as_list()) if d not in gone])


_AXIS = np.array([1], np.int32)


def _dense(rows: Array, values: Array, shape: Array) -> Array:
    result = np.zeros(tuple(shape), values.dtype)
    result[tuple(rows.T)] = values if len(shape) else (values[0] if len(values) else 0)
    return result


def _declare_reduction(name: str, kind: str, f: np.ufunc, sparse: bool) -> None:
    """Declares an op that reduces over axes, to a sparse or to a dense tensor."""

    def kernel(
        ctx: HostContext, indices: Array, values: Array, shape: Array, axes: Array, *, keep_dims: bool
    ) -> Parts | Array:
        parts = _grouped(indices, values, shape, axes, keep_dims, f)
        return parts if sparse else _dense(*parts)

    outputs = "output_indices: int64, output_values: T, output_shape: int64" if sparse else "output: T"
    op(
        name,
        f"input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32 -> {outputs}",
        f"keep_dims: bool = false; T: {kind}",
        shape=(lambda op: sparse_shapes(None)) if sparse else _reduced_shape,
        host=True,
        examples=[
            case(*_A, _AXIS),
            case(*_A, np.array(0, np.int32), keep_dims=True),
            case(*_I, np.array([0, -1], np.int32)),
            case(*_NONE, _AXIS),
        ],
    )(kernel)


_declare_reduction("SparseReduceSum", "number", np.add, False)
_declare_reduction("SparseReduceSumSparse", "number", np.add, True)
_declare_reduction("SparseReduceMax", "real", np.maximum, False)
_declare_reduction("SparseReduceMaxSparse", "real", np.maximum, True)


@gradient("SparseReduceSum")
def _sum_gradient(op: Operation, dy: Tensor) -> list[Tensor | None]:
    indices, _, dense, axes = op.inputs
    rank = apply("Size", dense)
    positive = apply("Reshape", apply("FloorMod", axes + rank, rank), [-1])
    # One for each reduced axis, the dense size for the others.
    every = apply("Range", 0, rank, 1)
    kept = apply(
        "DynamicStitch", [every, positive], [dense, apply("Fill", apply("Shape", positive), np.int64(1))]
    )
    spread = apply("Reshape", dy, kept)
    scale = apply("Div", dense, apply("Maximum", kept, np.int64(1)))
    read = apply("Div", indices, apply("Maximum", scale, np.int64(1)))
    return [None, apply("GatherNd", spread, read), None, None]


def _axes(sp: SparseTensor, axis: TensorLike) -> TensorLike:
    if axis is not None:
        return axis
    rank = sp.shape.rank
    if rank is not None:
        return to_tensor(np.arange(rank, dtype=np.int32))
    return apply("Range", 0, apply("Size", sp.dense_shape), 1)


def _reduce(
    op_type: str,
    sp_input: SparseTensor,
    axis: TensorLike,
    keepdims: bool | None,
    old_axes: TensorLike,
    old_keep: bool | None,
) -> list[Tensor]:
    if keepdims is not None and old_keep is not None:
        raise ValueError("Cannot specify both 'keep_dims' and 'keepdims'")
    if axis is not None and old_axes is not None:
        raise ValueError("Cannot specify both 'axis' and 'reduction_axes'")
    sp = to_sparse(sp_input)
    axis = old_axes if axis is None else axis
    keep = old_keep if keepdims is None else keepdims
    return apply_list(
        op_type, sp.indices, sp.values, sp.dense_shape, _axes(sp, axis), keep_dims=bool(keep or False)
    )


@export("sparse.reduce_sum", "sparse_reduce_sum")
def sparse_reduce_sum(
    sp_input: SparseTensor,
    axis: TensorLike = None,
    keepdims: bool | None = None,
    reduction_axes: TensorLike = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The sums of a sparse tensor over axes (without any, over all), as a dense tensor."""
    return _reduce("SparseReduceSum", sp_input, axis, keepdims, reduction_axes, keep_dims)[0]


@export("sparse.reduce_sum_sparse", "sparse_reduce_sum_sparse")
def sparse_reduce_sum_sparse(
    sp_input: SparseTensor,
    axis: TensorLike = None,
    keepdims: bool | None = None,
    reduction_axes: TensorLike = None,
    keep_dims: bool | None = None,
) -> SparseTensor:
    """The sums of a sparse tensor over axes (without any, over all), as a sparse tensor."""
    return SparseTensor(
        *_reduce("SparseReduceSumSparse", sp_input, axis, keepdims, reduction_axes, keep_dims)
    )


@export("sparse.reduce_max", "sparse_reduce_max")
def sparse_reduce_max(
    sp_input: SparseTensor,
    axis: TensorLike = None,
    keepdims: bool | None = None,
    reduction_axes: TensorLike = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The largest of the elements that are there over axes, as a dense tensor; 0 where none is."""
    return _reduce("SparseReduceMax", sp_input, axis, keepdims, reduction_axes, keep_dims)[0]


@export("sparse.reduce_max_sparse", "sparse_reduce_max_sparse")
def sparse_reduce_max_sparse(
    sp_input: SparseTensor,
    axis: TensorLike = None,
    keepdims: bool | None = None,
    reduction_axes: TensorLike = None,
    keep_dims: bool | None = None,
) -> SparseTensor:
    """The largest of the elements that are there over axes, as a sparse tensor."""
    return SparseTensor(
        *_reduce("SparseReduceMaxSparse", sp_input, axis, keepdims, reduction_axes, keep_dims)
    )


# -- softmax -----------------------------------------------------------------------------------------


def _rows_of(indices: Array) -> Array:
    """The number of the row (all axes but the last) of each element."""
    order = np.lexsort(indices.T[-2::-1])
    ordered = indices[order, :-1]
    rows = np.empty(len(indices), np.int64)
    rows[order] = np.cumsum(np.concatenate([[False], (ordered[1:] != ordered[:-1]).any(1)]))
    return rows


@op(
    "SparseSoftmax",
    "sp_indices: int64[2], sp_values: T[1], sp_shape: int64[1] -> output: T",
    "T: {half, float, double}",
    shape=lambda op: op._inputs[1].shape.with_rank(1),
    host=True,
    examples=[
        case(np.array([[0, 0], [0, 1], [1, 0]], np.int64), np.array([1.5, 2.5, 3.5]), _A[2]),
        case(*_NONE),
    ],
)
def _softmax(ctx: HostContext, indices: Array, values: Array, shape: Array) -> Array:
    check_sparse(indices, values, shape)
    if len(shape) < 2:
        raise invalid(
            f"Input should have rank >= 2, but received shape: {' '.join(str(int(d)) for d in shape)}"
        )
    if not len(values):
        return np.array(values)
    row = _rows_of(indices)
    order = np.argsort(row, kind="stable")
    starts = np.flatnonzero(np.diff(row[order], prepend=-1))
    largest = np.maximum.reduceat(values[order], starts)
    raised = np.exp(values - largest[row])
    total = np.add.reduceat(raised[order], starts)
    softmax: Array = raised / total[row]
    return softmax


@gradient("SparseSoftmax")
def _softmax_gradient(op: Operation, dy: Tensor) -> list[Tensor | None]:
    indices, dense = op.inputs[0], op.inputs[2]
    softmax = op.outputs[0]
    part = apply("SparseReduceSum", indices, softmax * dy, dense, np.array([-1], np.int32), keep_dims=True)
    minus = apply("SparseDenseCwiseAdd", indices, dy, dense, apply("Neg", part))
    return [None, minus * softmax, None]


@export("sparse.softmax", "sparse_softmax")
def sparse_softmax(sp_input: SparseTensor, name: str | None = None) -> SparseTensor:
    """The softmax of the elements that are there along the last axis; the others stay out of it."""
    sp = to_sparse(sp_input)
    with name_scope(name, "SparseSoftmax", [sp.indices, sp.values]):
        values = apply("SparseSoftmax", sp.indices, sp.values, sp.dense_shape)
        return SparseTensor(sp.indices, values, sp.dense_shape)
