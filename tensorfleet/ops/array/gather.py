"""Picking rows and elements by index, with their gradients as rows (`IndexedSlices`)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape, unknown_shape
from tensorfleet.base.types import Array, ArrayModule, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.convert import register_tensor_conversion_function, to_tensor
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.kernel_types import Check
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.kernels import lane_kernels
from tensorfleet.kernels.arrays import all_within, is_numpy
from tensorfleet.kernels.parallel_for import in_parts
from tensorfleet.ops.array.shape import bracketed, dense_gradient, invalid, reshape
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.array.shape import size as size_of
from tensorfleet.ops.common import UNKNOWN, first_bad, static_value
from tensorfleet.ops.samples import case
from tensorfleet.ops.state.variables import handle_shape

_X = np.arange(12, dtype=np.float32).reshape(4, 3)
_BYTES_PER_THREAD = 1 << 20  # bytes that one of several threads takes
_MIN_WARNED_ELEMENTS = 100_000_000  # elements; a gradient of that size is worth a warning


# -- gather along one axis ---------------------------------------------------------------------------


def _gather_shape(params: TensorShape, indices: TensorShape, axis: int | None, batch: int = 0) -> TensorShape:
    if params._d is None or indices._d is None:
        return UNKNOWN
    rank, count = len(params._d), len(indices._d)
    if not -count <= batch <= count:
        raise ValueError(f"batch_dims ({batch}) must be less than or equal to rank of indices ({count}).")
    batch = batch + count if batch < 0 else batch
    if axis is None:
        return unknown_shape(rank - 1 + count - batch)
    if not -rank <= axis < rank:
        raise ValueError(f"Shape must be at least rank {axis + 1 if axis >= 0 else -axis} but is rank {rank}")
    axis %= rank
    if batch > axis:
        raise ValueError(f"batch_dims ({batch}) must be less than or equal to axis ({axis}).")
    lead = TensorShape._of(params._d[:batch]).merge_with(TensorShape._of(indices._d[:batch]))
    return TensorShape._of(
        (*(lead._d or ()), *params._d[batch:axis], *indices._d[batch:], *params._d[axis + 1 :])
    )


def _gather(xp: ArrayModule, params: Array, indices: Array, axis: int, batch: int, check: Check) -> Array:
    rank = len(params.shape)
    if not -rank <= axis < rank:
        raise invalid(f"Expected axis in the range [{-rank}, {rank}), but got {axis}")
    axis, batch = axis % rank, batch + len(indices.shape) if batch < 0 else batch
    limit = params.shape[axis]
    ok = (indices >= 0) & (indices < limit)
    check(ok, lambda: "indices{} = {} is not in [0, {})".format(*first_bad(ok, indices), limit))
    if limit == 0 and indices.size:
        raise invalid(f"indices = {indices.shape} is not in [0, 0)")
    if batch:
        return _gather_in_batches(xp, params, indices, axis, batch)
    if is_numpy(xp):
        return _taken(params, np.asarray(indices), axis)
    return xp.take(params, indices, axis=axis, mode="clip")


def _taken(params: Array, indices: Array, axis: int) -> Array:
    """What numpy takes, in parts where it is much. The indices are known to be good."""
    size = params[:1].nbytes * indices.size
    if axis or size < 2 * _BYTES_PER_THREAD or params.dtype.hasobject:
        return np.asarray(np.take(params, indices, axis=axis), params.dtype)  # one string stays an array
    result, flat = np.empty((*indices.shape, *params.shape[1:]), params.dtype), indices.reshape(-1)
    rows = result.reshape((indices.size, *params.shape[1:]))
    work = lambda a, b: params.take(flat[a:b], axis=0, out=rows[a:b], mode="clip")  # noqa: E731
    in_parts(work, flat.size, -(-_BYTES_PER_THREAD * flat.size // size))
    return result


def _gather_in_batches(xp: ArrayModule, params: Array, indices: Array, axis: int, batch: int) -> Array:
    dims, count = params.shape, params.shape[axis]
    if dims[:batch] != indices.shape[:batch]:
        raise invalid(
            f"params.shape[:{batch}]: {dims[:batch]} must equal indices.shape: {indices.shape[:batch]}"
        )
    b, m, r = (_product(d) for d in (dims[:batch], dims[batch:axis], dims[axis + 1 :]))
    rows = indices.reshape((b, 1, _product(indices.shape[batch:])))
    if not is_numpy(xp):
        rows = xp.clip(rows, 0, max(count - 1, 0))
    picked = xp.asarray(params).reshape((b, m, count, r))[
        np.arange(b)[:, None, None], np.arange(m)[None, :, None], rows
    ]
    result: Array = picked.reshape((*dims[:axis], *indices.shape[batch:], *dims[axis + 1 :]))
    return result


def _product(dims: tuple[int, ...]) -> int:
    return int(np.prod(dims, dtype=np.int64))


def _gather_v2_shape(op: Operation) -> TensorShape:
    axis = static_value(op, 2)
    at = None if axis is None else int(axis)
    return _gather_shape(op._inputs[0].shape, op._inputs[1].shape, at, op._attrs["batch_dims"])


@op(
    "GatherV2",
    "params: Tparams, indices: Tindices, axis: Taxis[0] -> output: Tparams",
    "batch_dims: int = 0; Tparams: type; Tindices: {int16, int32, int64}; Taxis: index",
    shape=_gather_v2_shape,
    moves="params",
    static=["axis"],
    joined=lane_kernels.gather,
    examples=[
        case(_X, np.array([3, 0, 3], np.int32), np.int32(0)),
        case(_X, np.array([[2, 0]]), np.int64(-1)),
        case(_X.reshape(2, 2, 3), np.array([[2], [0]], np.int32), np.int32(2), batch_dims=1),
        case(np.array([b"a", b"b"], object), np.array(1, np.int32), np.int32(0)),
    ],
)
def _gather_v2(
    xp: ArrayModule, params: Array, indices: Array, axis: Array, *, batch_dims: int, check: Check
) -> Array:
    return _gather(xp, params, indices, int(axis), batch_dims, check)


@op(
    "Gather",
    "params: Tparams, indices: Tindices -> output: Tparams",
    "validate_indices: bool = true; Tparams: type; Tindices: index",
    shape=lambda op: _gather_shape(op._inputs[0].shape, op._inputs[1].shape, 0),
    moves="params",
    examples=[case(_X, np.array([1, 1], np.int32)), case(_X, np.int64(2))],
)
def _gather_v1(xp: ArrayModule, params: Array, indices: Array, *, check: Check) -> Array:
    return _gather(xp, params, indices, 0, 0, check)


def _resource_gather_shape(op: Operation) -> TensorShape:
    batch = op._attrs["batch_dims"]
    return _gather_shape(handle_shape(op), op._inputs[1].shape, batch, batch)


@op(
    "ResourceGather",
    "resource: resource, indices: Tindices -> output: dtype",
    "batch_dims: int = 0; validate_indices: bool = true; dtype: type; Tindices: index",
    shape=_resource_gather_shape,
    stateful=True,
    reads=["resource"],
)
def _resource_gather(
    xp: ArrayModule, params: Array, indices: Array, *, batch_dims: int, check: Check
) -> Array:
    return _gather(xp, params, indices, batch_dims, batch_dims, check)


def _rows(dy: Tensor, indices: Tensor, params_shape: Tensor) -> IndexedSlices:
    """The gradient of a gather along the first axis: one row per index."""
    count = apply("ExpandDims", size_of(indices), 0)
    values_shape = apply("ConcatV2", [count, params_shape[1:]], 0)
    return IndexedSlices(reshape(dense_gradient(dy), values_shape), reshape(indices, count), params_shape)


@gradient("Gather")
def _gather_grad(op: Operation, dy: Tensor) -> tuple[IndexedSlices, None]:
    params, indices = op._inputs
    with params.graph.colocate_with(params):
        params_shape = shape_of(params)
    return _rows(dy, indices, params_shape), None


@gradient("GatherV2")
def _gather_v2_grad(op: Operation, dy: Tensor) -> tuple[IndexedSlices | Tensor, None, None]:
    axis: Any
    params, indices, axis = op._inputs
    with params.graph.colocate_with(params):
        params_shape = shape_of(params)
    at, batch = constant_value(axis), op._attrs["batch_dims"]
    if at is not None and int(at) == 0 and batch == 0:
        return _rows(dy, indices, params_shape), None, None
    if at is not None and int(at) < 0:
        axis = apply("Rank", params) + int(at)
        at = constant_value(axis)
    if at is not None:
        axis = int(at)
    return _dense_gather_grad(dense_gradient(dy), indices, params_shape, axis, batch), None, None


def _dense_gather_grad(dy: Tensor, indices: Tensor, params_shape: Tensor, axis: int, batch: int) -> Tensor:
    """Adds up the gradient of every pick, after bringing the gathered axis to the front.

    With sizes b (batch), m (between), n (the axis), r (the rest) and i (indices of a batch):
    dy is [b, m, i, r], and the sum over segments b * n gives [b, n, m, r].
    """
    if batch < 0:
        batch += indices.shape.rank or 0
    n = params_shape[axis]
    b, m, r = (
        apply("Prod", part, [0])
        for part in (params_shape[:batch], params_shape[batch:axis], params_shape[axis + 1 :])
    )
    i = apply("Prod", shape_of(indices)[batch:], [0])
    first = apply("Transpose", reshape(dy, [b, m, i, r]), [0, 2, 1, 3])
    offsets = apply("ExpandDims", apply("Range", 0, b, 1) * n, 1)
    ids = reshape(indices, [b, i]) + apply("Cast", offsets, DstT=indices.dtype)
    total = apply("UnsortedSegmentSum", reshape(first, [b * i, m, r]), reshape(ids, [-1]), b * n)
    back = apply("Transpose", reshape(total, [b, n, m, r]), [0, 2, 1, 3])
    return reshape(back, params_shape)


@gradient("ResourceGather")
def _resource_gather_grad(op: Operation, dy: Tensor) -> tuple[IndexedSlices, None]:
    return _rows(dy, op._inputs[1], apply("VariableShape", op._inputs[0])), None


@export("gather")
def gather(
    params: TensorLike,
    indices: TensorLike,
    validate_indices: TensorLike = None,
    name: str | None = None,
    axis: TensorLike = None,
    batch_dims: int = 0,
) -> Tensor:
    """The slices of `params` at `indices` along `axis`; rows by default."""
    axis = batch_dims if axis is None else axis
    if not isinstance(axis, Tensor) and axis == 0 and hasattr(params, "sparse_read"):
        rows: Tensor = params.sparse_read(indices, name=name)
        return rows
    return apply("GatherV2", params, indices, axis, batch_dims=batch_dims, name=name)


@export("batch_gather")
def batch_gather(params: TensorLike, indices: TensorLike, name: str | None = None) -> Tensor:
    """Gathers along the last dimension of `indices`, each batch entry from its own part of `params`."""
    with name_scope(name, "BatchGather", [params, indices]):
        indices, params = to_tensor(indices, name="indices"), to_tensor(params, name="params")
        if indices.shape.rank is None:
            raise ValueError("batch_gather does not allow indices with unknown shape.")
        batch = indices.shape.rank - 1
        return gather(params, indices, axis=batch, batch_dims=batch)


# -- gather and scatter of elements ------------------------------------------------------------------


def _gather_nd_shape(params: TensorShape, indices: TensorShape) -> TensorShape:
    if params._d is None or indices._d is None or not indices._d or indices._d[-1] is None:
        return UNKNOWN
    depth = indices._d[-1]
    if depth > len(params._d):
        raise ValueError(f"indices.shape[-1] must be <= params.rank, but saw indices.shape[-1] = {depth}")
    return TensorShape._of((*indices._d[:-1], *params._d[depth:]))


def index_columns(
    xp: ArrayModule, indices: Array, dims: tuple[int, ...], what: str, check: Check
) -> tuple[Array, ...]:
    """The last dimension of `indices` as a tuple of index arrays, checked against `dims`."""
    depth = indices.shape[-1]
    columns = tuple(indices[..., k] for k in range(depth))
    if is_numpy(xp) and all(all_within(np, c, d) for c, d in zip(columns, dims, strict=False)):
        return columns
    limits = np.array(dims[:depth], np.int64)
    ok: Any = ((indices >= 0) & (indices < limits)).all(axis=-1)
    check(ok, lambda: _bad_index(ok, indices, what, dims))
    return tuple(xp.clip(c, 0, max(dims[k] - 1, 0)) for k, c in enumerate(columns))


def _bad_index(ok: Array, indices: Array, what: str, dims: tuple[int, ...]) -> str:
    where = np.unravel_index(int(np.argmin(np.asarray(ok).ravel())), ok.shape)
    at = f"[{','.join(str(int(w)) for w in where)}]" if where else ""
    value = ", ".join(str(int(v)) for v in np.asarray(indices)[where])
    return f"indices{at} = [{value}] does not index into {what} {bracketed(dims)}"


def _gather_nd(xp: ArrayModule, params: Array, indices: Array, check: Check) -> Array:
    depth, dims = indices.shape[-1], tuple(params.shape)
    if depth > len(dims):
        raise invalid(
            f"index innermost dimension length must be <= params rank; saw: {depth} vs. {len(dims)}"
        )
    if depth == 0:
        return xp.broadcast_to(params, (*indices.shape[:-1], *dims))
    if 0 in dims and 0 not in indices.shape:
        raise invalid(f"Requested more than 0 entries, but params is empty.  Params shape: {list(dims)}")
    columns = index_columns(xp, indices, dims, "param shape", check)
    if is_numpy(xp):
        return np.asarray(params[columns], params.dtype)
    from tensorfleet.kernels.xla import at

    return at(xp.asarray(params), columns).get(
        mode="clip"
    )  # params may be known while the indices are traced


@op(
    "GatherNd",
    "params: Tparams, indices: Tindices[1+] -> output: Tparams",
    "Tparams: type; Tindices: {int16, int32, int64}; bad_indices_policy: string = ''",
    shape=lambda op: _gather_nd_shape(op._inputs[0].shape, op._inputs[1].shape),
    moves="params",
    words={"indices": "indices must be at least a vector"},
    joined=lane_kernels.gather_nd,
    examples=[
        case(_X, np.array([[3, 0], [1, 2]], np.int32)),
        case(_X, np.array([[2], [0]])),
        case(np.array([b"a", b"b"], object), np.array([[1]], np.int32)),
    ],
)
def _gather_nd_kernel(xp: ArrayModule, params: Array, indices: Array, *, check: Check) -> Array:
    return _gather_nd(xp, params, indices, check)


@op(
    "ResourceGatherNd",
    "resource: resource, indices: Tindices -> output: dtype",
    "dtype: type; Tindices: index",
    shape=lambda op: _gather_nd_shape(handle_shape(op), op._inputs[1].shape),
    stateful=True,
    reads=["resource"],
)
def _resource_gather_nd(xp: ArrayModule, params: Array, indices: Array, *, check: Check) -> Array:
    return _gather_nd(xp, params, indices, check)


def _nd_grad(dy: Tensor, indices: Tensor, params_shape: Tensor) -> IndexedSlices | Tensor:
    dims = indices.shape._d
    if dims is not None and len(dims) == 2 and dims[1] == 1:
        return IndexedSlices(dense_gradient(dy), apply("Squeeze", indices, squeeze_dims=[-1]), params_shape)
    return apply("ScatterNd", indices, dense_gradient(dy), params_shape)


@gradient("GatherNd")
def _gather_nd_grad(op: Operation, dy: Tensor) -> tuple[IndexedSlices | Tensor, None]:
    params, indices = op._inputs
    return _nd_grad(dy, indices, shape_of(params, out_type=_size_type(indices))), None


@gradient("ResourceGatherNd")
def _resource_gather_nd_grad(op: Operation, dy: Tensor) -> tuple[IndexedSlices | Tensor, None]:
    handle, indices = op._inputs
    return _nd_grad(dy, indices, apply("VariableShape", handle, out_type=indices.dtype)), None


def _size_type(indices: Tensor) -> str:
    return "int64" if indices.dtype.base_dtype.name == "int64" else "int32"


@export("gather_nd", "manip.gather_nd")
def gather_nd(
    params: TensorLike, indices: TensorLike, name: str | None = None, batch_dims: int = 0
) -> Tensor:
    """The elements or slices of `params` at the positions in the last dimension of `indices`."""
    if isinstance(batch_dims, Tensor) or batch_dims:
        return _batch_gather_nd(params, indices, batch_dims, name)
    if hasattr(params, "gather_nd"):
        slices: Tensor = params.gather_nd(indices, name=name)
        return slices
    return apply("GatherNd", params, indices, name=name)


def _batch_gather_nd(params: TensorLike, indices: TensorLike, batch_dims: int, name: str | None) -> Tensor:
    """Puts each entry's place in the batch in front of its index."""
    with name_scope(name, "BatchGatherND", [params, indices]):
        params, indices = to_tensor(params, name="params"), to_tensor(indices, name="indices")
        rank = indices.shape.rank
        known = constant_value(batch_dims) if isinstance(batch_dims, Tensor) else batch_dims
        if known is None or np.size(known) != 1:
            raise TypeError("batch_dims must be one integer that is known when the graph is built.")
        batch_dims = int(np.reshape(known, ()))
        if batch_dims < 0:
            raise ValueError("tf.gather_nd does not allow negative batch_dims.")
        if rank is not None and batch_dims >= rank:
            raise ValueError(f"batch_dims = {batch_dims} must be less than rank(indices) = {rank}")
        if params.shape.rank is not None and batch_dims >= params.shape.rank:
            raise ValueError(
                f"batch_dims = {batch_dims} must be less than rank(params) = {params.shape.rank}"
            )
        lead = shape_of(indices)[:-1]
        places = []
        for k in range(batch_dims):
            line = apply("Cast", apply("Range", 0, shape_of(indices)[k], 1), DstT=indices.dtype)
            behind = apply("Fill", apply("Reshape", apply("Rank", indices) - (k + 2), [1]), 1)
            line = reshape(line, apply("ConcatV2", [[1] * k + [-1], behind], 0))
            places.append(apply("ExpandDims", apply("BroadcastTo", line, lead), -1))
        return apply("GatherNd", params, apply("ConcatV2", [*places, indices], -1))


# -- rows as one tensor ------------------------------------------------------------------------------


def indexed_slices_to_tensor(value: IndexedSlices, name: str | None = None, warn: bool = True) -> Tensor:
    """The dense tensor that rows stand for: rows of one index are added up."""
    if value.dense_shape is None:
        raise ValueError(f"Tensor conversion requested for IndexedSlices without dense_shape: {value}")
    size = value.dense_shape
    dims: Any = constant_value(size) if isinstance(size, Tensor) else np.asarray(size)
    if warn and dims is None:
        warnings.warn(
            "Converting sparse IndexedSlices to a dense Tensor of unknown shape. This may consume a large "
            "amount of memory.",
            stacklevel=2,
        )
    elif warn and int(np.prod(dims, dtype=np.int64)) >= _MIN_WARNED_ELEMENTS:
        warnings.warn(
            f"Converting sparse IndexedSlices to a dense Tensor with {int(np.prod(dims, dtype=np.int64))} "
            "elements. This may consume a large amount of memory.",
            stacklevel=2,
        )
    rows = value.dense_shape[0] if dims is None else int(dims[0])
    return apply("UnsortedSegmentSum", value.values, value.indices, rows, name=name)


def _convert(
    value: IndexedSlices, dtype: DType | None = None, name: str | None = None, as_ref: bool = False
) -> Tensor:
    if dtype is not None and not dtype.is_compatible_with(value.dtype):
        raise ValueError(
            f"Tensor conversion requested dtype {dtype.name} for IndexedSlices with dtype {value.dtype.name}"
        )
    return indexed_slices_to_tensor(value, name)


register_tensor_conversion_function(IndexedSlices, _convert)
