"""Sparse tensors kept in the session under a number."""

from __future__ import annotations

import itertools
import threading

import numpy as np

from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.types import Array, TensorLike
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.graph.sparse_tensor import SparseTensor, to_sparse
from tensorfleet.kernels.sparse import check_sparse, invalid
from tensorfleet.ops.common import SCALAR, vector_of
from tensorfleet.ops.sparse.arrange import Parts, sparse_shapes
from tensorfleet.ops.sparse.serialize import PARTS, joined, of_rank, rows_of


class SparseTensorsMap:
    """Sparse tensors by number: each is put in once and taken out once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._kept: dict[int, Parts] = {}

    def add(self, parts: list[Parts]) -> Array:
        """Keeps sparse tensors; their numbers."""
        with self._lock:
            numbers = [next(self._numbers) for _ in parts]
            self._kept.update(zip(numbers, parts, strict=True))
        return np.array(numbers, np.int64)

    def take(self, numbers: list[int]) -> list[Parts]:
        """The sparse tensors of these numbers, no longer kept."""
        with self._lock:
            missing = [n for n in numbers if n not in self._kept]
            if missing:
                raise invalid(f"Unable to find SparseTensor: {missing[0]} in map")
            return [self._kept.pop(n) for n in numbers]


def _map_of(ctx: HostContext, container: bytes, shared_name: bytes) -> SparseTensorsMap:
    name = shared_name.decode() or ctx.op.name
    return ctx.resources.get(container.decode(), "sparse_tensors_map", name, SparseTensorsMap)


@op(
    "AddSparseToTensorsMap",
    f"{PARTS} -> sparse_handle: int64",
    "T: type; container: string = ''; shared_name: string = ''",
    shape=lambda op: SCALAR,
    host=True,
    stateful=True,
)
def _add(
    ctx: HostContext, indices: Array, values: Array, shape: Array, *, container: bytes, shared_name: bytes
) -> Array:
    check_sparse(indices, values, shape)
    number: Array = _map_of(ctx, container, shared_name).add([(indices, values, shape)])[0]
    return number


@op(
    "AddManySparseToTensorsMap",
    f"{PARTS} -> sparse_handles: int64",
    "T: type; container: string = ''; shared_name: string = ''",
    shape=lambda op: vector_of(None),
    host=True,
    stateful=True,
)
def _add_many(
    ctx: HostContext, indices: Array, values: Array, shape: Array, *, container: bytes, shared_name: bytes
) -> Array:
    return _map_of(ctx, container, shared_name).add(rows_of(indices, values, shape))


@op(
    "TakeManySparseFromTensorsMap",
    "sparse_handles: int64[1] -> sparse_indices: int64, sparse_values: dtype, sparse_shape: int64",
    "dtype: type; container: string = ''; shared_name: string = ''",
    shape=lambda op: sparse_shapes(None),
    host=True,
    stateful=True,
)
def _take_many(
    ctx: HostContext, handles: Array, *, dtype: DType, container: bytes, shared_name: bytes
) -> tuple[Array, Array, Array]:
    kept = _map_of(ctx, container, shared_name).take(handles.tolist())
    return joined(kept, dtype, "rank")


not_differentiable("AddSparseToTensorsMap", "AddManySparseToTensorsMap", "TakeManySparseFromTensorsMap")


@export("python.ops.sparse_ops.add_sparse_to_tensors_map", "python.ops.sparse_ops._add_sparse_to_tensors_map")
def add_sparse_to_tensors_map(
    sp_input: SparseTensor,
    container: str | None = None,
    shared_name: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Keeps a sparse tensor in the session; its number, with which it can be taken out."""
    return _kept("AddSparseToTensorsMap", sp_input, container, shared_name, name)


@export(
    "python.ops.sparse_ops.add_many_sparse_to_tensors_map",
    "python.ops.sparse_ops._add_many_sparse_to_tensors_map",
)
def add_many_sparse_to_tensors_map(
    sp_input: SparseTensor,
    container: str | None = None,
    shared_name: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Keeps each row of a sparse tensor in the session; their numbers."""
    return _kept("AddManySparseToTensorsMap", sp_input, container, shared_name, name)


def _kept(
    op_type: str, sp_input: SparseTensor, container: str | None, shared_name: str | None, name: str | None
) -> Tensor:
    sp = to_sparse(sp_input)
    parts = sp.indices, sp.values, sp.dense_shape
    return apply(op_type, *parts, container=container, shared_name=shared_name, name=name)


@export(
    "python.ops.sparse_ops.take_many_sparse_from_tensors_map",
    "python.ops.sparse_ops._take_many_sparse_from_tensors_map",
)
def take_many_sparse_from_tensors_map(
    sparse_map_op: Operation, sparse_handles: TensorLike, rank: int | None = None, name: str | None = None
) -> SparseTensor:
    """The kept sparse tensors of some numbers, as one with a first dimension more.

    `sparse_map_op` is the operation that kept them.
    """
    if sparse_map_op.type not in ("AddSparseToTensorsMap", "AddManySparseToTensorsMap"):
        raise TypeError(
            "sparse_map_op must be one of AddSparseToTensorsMap or AddSparseToTensorsMap. Instead, found "
            f"`{sparse_map_op.type}`."
        )
    container = sparse_map_op.get_attr("container")
    shared = sparse_map_op.get_attr("shared_name") or sparse_map_op.name
    dtype, op_type = sparse_map_op.get_attr("T"), "TakeManySparseFromTensorsMap"
    attrs = {"dtype": dtype, "container": container, "shared_name": shared}
    return of_rank(rank, apply_list(op_type, sparse_handles, name=name, **attrs))
