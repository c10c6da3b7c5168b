"""Kernels for several like operations at once, of operations that prepare indices and shapes.

Each is given the operations, which have equal attributes, and for every input either `Lanes` or an array that is the same
constant for all. It returns the outputs as `Lanes`, or None where it has no shorter way than one call for each operation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from tensorfleet.base.types import Array
from tensorfleet.graph.kernels import Kernel
from tensorfleet.graph.operation import Operation
from tensorfleet.kernels.lanes import Lanes, Order, globally, within

#: an input of several operations
Given: TypeAlias = Lanes | Array
#: the kernel of several operations at once
LaneKernel: TypeAlias = Callable[[list[Operation], Sequence[Any]], tuple[Lanes, ...] | None]


def by_element(ops: list[Operation], given: Sequence[Given]) -> tuple[Lanes] | None:
    """Operations on each element by itself."""
    lanes = [g for g in given if isinstance(g, Lanes)]
    first = lanes[0]
    if any(not first.alike(x) or x.data.ndim != first.data.ndim for x in lanes[1:]):
        return None
    if any(g.ndim for g in given if not isinstance(g, Lanes)):
        return None
    (data,) = Kernel(ops[0]).call(np, [g.data if isinstance(g, Lanes) else g for g in given])
    return (first.like(data),) if np.shape(data) == first.data.shape else None


def unchanged(ops: list[Operation], given: Sequence[Lanes]) -> tuple[Lanes]:
    """Identity."""
    return (given[0],)


def cast(ops: list[Operation], given: Sequence[Lanes]) -> tuple[Lanes] | None:
    """Cast between integers, which keeps what is known about their order where they fit."""
    (x,) = given
    kind = ops[0]._outputs[0].dtype.np_dtype
    if x.data.dtype.kind != "i" or kind.kind != "i":
        return by_element(ops, given)
    counts = x.order is Order.COUNTING and kind.itemsize >= 4
    return (x.like(x.data.astype(kind), Order.COUNTING if counts else Order.ANY),)


def expand_dims(ops: list[Operation], given: Sequence[Given]) -> tuple[Lanes] | None:
    """ExpandDims behind the first dimension; a scalar becomes a vector."""
    x, dim = given
    if not isinstance(x, Lanes) or isinstance(dim, Lanes) or dim.size != 1:
        return None
    axis = int(dim.reshape(-1)[0])
    if x.scalars:
        return (Lanes(x.data, x.starts),) if axis in (0, -1) else None
    axis = axis + x.data.ndim + 1 if axis < 0 else axis
    return (x.like(np.expand_dims(x.data, axis)),) if 0 < axis <= x.data.ndim else None


def shape(ops: list[Operation], given: Sequence[Lanes]) -> tuple[Lanes] | None:
    """Shape."""
    (x,) = given
    if x.scalars:
        return None
    dims = np.empty((x.count, x.data.ndim), ops[0]._outputs[0].dtype.np_dtype)
    dims[:, 0] = x.sizes
    dims[:, 1:] = x.data.shape[1:]
    return (Lanes.even(dims),)


def size(ops: list[Operation], given: Sequence[Lanes]) -> tuple[Lanes] | None:
    """Size."""
    (x,) = given
    if x.scalars:
        return None
    sizes = x.sizes * math.prod(x.data.shape[1:])
    return (Lanes.scalar(sizes.astype(ops[0]._outputs[0].dtype.np_dtype)),)


def prod(ops: list[Operation], given: Sequence[Given]) -> tuple[Lanes] | None:
    """Prod of short vectors."""
    x, axis = given
    matrix = x.as_matrix() if isinstance(x, Lanes) else None
    if (
        matrix is None
        or isinstance(axis, Lanes)
        or axis.reshape(-1).tolist() != [0]
        or ops[0]._attrs["keep_dims"]
    ):
        return None
    return (Lanes.scalar(matrix.prod(axis=1, dtype=matrix.dtype)),)


def pack(ops: list[Operation], given: Sequence[Given]) -> tuple[Lanes] | None:
    """Pack of scalars."""
    if any(not g.scalars if isinstance(g, Lanes) else g.ndim for g in given):
        return None
    table = np.empty((len(ops), len(given)), ops[0]._outputs[0].dtype.np_dtype)
    for i, g in enumerate(given):
        table[:, i] = g.data if isinstance(g, Lanes) else g
    return (Lanes.even(table),)


def concat(ops: list[Operation], given: Sequence[Given]) -> tuple[Lanes] | None:
    """ConcatV2 of short vectors."""
    *parts, axis = given
    if isinstance(axis, Lanes) or axis.size != 1 or int(axis.reshape(-1)[0]) not in (0, -1):
        return None
    matrices = []
    for part in parts:
        matrix = part.as_matrix() if isinstance(part, Lanes) else part
        if matrix is None:
            return None
        matrices.append(
            matrix if isinstance(part, Lanes) else np.broadcast_to(matrix, (len(ops), matrix.size))
        )
    return (Lanes.even(np.concatenate(matrices, axis=1)),)


def reshape(ops: list[Operation], given: Sequence[Given]) -> tuple[Lanes] | None:
    """Reshape that keeps rows together, and mostly changes nothing."""
    x, target = given
    if not isinstance(x, Lanes) or x.scalars:
        return None
    if isinstance(target, Lanes):
        dims = target.as_matrix()
        same = (
            dims is not None
            and dims.shape[1] == x.data.ndim
            and (dims[:, 0] == x.sizes).all()
            and (dims[:, 1:] == x.data.shape[1:]).all()
        )
        return (x,) if same else None
    wanted, rest = target.tolist(), list(x.data.shape[1:])
    if type(wanted) is list and wanted[1:] == rest and wanted[:1] == [-1]:
        return (x,)
    width = math.prod(rest)
    if wanted == [-1]:
        starts = x.starts if width == 1 else [s * width for s in x.starts]
        return (Lanes(x.data.reshape(-1), starts, x.order if width == 1 else Order.ANY),)
    return (x.like(x.data.reshape(-1, 1)),) if wanted == [-1, 1] and width == 1 else None


def where(ops: list[Operation], given: Sequence[Lanes]) -> tuple[Lanes] | None:
    """Where of vectors and of matrices."""
    (x,) = given
    rank = x.data.ndim
    if x.scalars or rank > 2:
        return None
    width = x.data.shape[1] if rank == 2 else 1
    true = (x.data if x.data.dtype.kind == "b" else x.data != 0).reshape(-1)
    if width == 1 and true.all():
        places = np.zeros((len(true), rank), np.int64)
        places[:, 0] = x.places
        return (x.like(places, Order.COUNTING),)
    (flat,) = true.nonzero()
    starts = np.searchsorted(flat, np.asarray(x.starts) * width)
    rows = flat // width if width > 1 else flat
    places = np.zeros((len(flat), rank), np.int64)
    np.subtract(rows, np.repeat(x.firsts, np.diff(starts)), out=places[:, 0])
    if width > 1:
        np.subtract(flat, rows * width, out=places[:, 1])
    return (Lanes(places, starts.tolist()),)


def gather(ops: list[Operation], given: Sequence[Given]) -> tuple[Lanes] | None:
    """GatherV2 of rows by vectors of indices, or of one element of short vectors."""
    x, indices, axis = given
    if not isinstance(x, Lanes) or x.scalars or ops[0]._attrs.get("batch_dims", 0):
        return None
    if isinstance(axis, Lanes) or axis.any():
        return None
    if not isinstance(indices, Lanes):
        matrix = x.as_matrix()
        if matrix is None or indices.ndim or not 0 <= int(indices) < matrix.shape[1]:
            return None
        return (Lanes.scalar(matrix[:, int(indices)]),)
    if indices.scalars or indices.data.ndim != 1:
        return None
    if indices.order is Order.COUNTING and indices.alike(x):
        return (x,)
    if not within(indices, x.sizes):
        return None
    return (indices.like(x.data.take(globally(indices, x.firsts), axis=0)),)


def gather_nd(ops: list[Operation], given: Sequence[Given]) -> tuple[Lanes] | None:
    """GatherNd of elements of vectors and matrices."""
    x, indices = given
    if not (isinstance(x, Lanes) and isinstance(indices, Lanes)) or x.scalars or indices.data.ndim != 2:
        return None
    if indices.data.shape[1] != x.data.ndim:
        return None
    width = math.prod(x.data.shape[1:])
    if indices.order is Order.COUNTING and width == 1 and indices.alike(x):
        return (x.like(x.data.reshape(-1)),)
    rows = indices.like(indices.data[:, 0])
    if x.data.ndim > 2 or not within(rows, x.sizes):
        return None
    flat = globally(rows, x.firsts)
    if x.data.ndim == 2:
        columns = indices.data[:, 1]
        if columns.size and (columns.min() < 0 or columns.max() >= width):
            return None
        flat = flat * width + columns
    return (indices.like(x.data.reshape(-1).take(flat)),)


def strided_slice(ops: list[Operation], given: Sequence[Given]) -> tuple[Lanes] | None:
    """StridedSlice of short vectors, and of one column of matrices."""
    x, *bounds = given
    attrs = ops[0]._attrs
    if attrs["ellipsis_mask"] or attrs["new_axis_mask"] or any(isinstance(b, Lanes) for b in bounds):
        return None
    begin, end, step = (b.tolist() for b in bounds if not isinstance(b, Lanes))
    if not isinstance(x, Lanes) or any(s != 1 for s in step):
        return None
    picked = [_picked(attrs, axis, b, e) for axis, (b, e) in enumerate(zip(begin, end, strict=True))]
    if len(picked) == 1:
        matrix = x.as_matrix()
        if matrix is None:
            return None
        part = matrix[:, picked[0]]
        return (Lanes.scalar(part) if part.ndim == 1 else Lanes.even(part),)
    if len(picked) != 2 or x.data.ndim != 2 or picked[0] != slice(None) or type(picked[1]) is not int:
        return None
    first = picked[1] == 0 and x.order is Order.COUNTING
    return (x.like(x.data[:, picked[1]], Order.COUNTING if first else Order.ANY),)


def _picked(attrs: dict[str, Any], axis: int, begin: int, end: int) -> int | slice:
    bit = 1 << axis
    if attrs["shrink_axis_mask"] & bit:
        return begin
    return slice(None if attrs["begin_mask"] & bit else begin, None if attrs["end_mask"] & bit else end)
