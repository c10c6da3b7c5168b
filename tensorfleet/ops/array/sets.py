"""`tf.sets`: the last dimension of a tensor as sets, united, intersected, subtracted, counted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, TensorLike
from tensorfleet.graph.apply import apply, apply_any
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.graph.sparse_tensor import SparseTensor, convert_to_tensor_or_sparse_tensor
from tensorfleet.kernels.sparse import bracketed, check_places, check_sparse, invalid
from tensorfleet.ops.common import UNKNOWN, vector_of
from tensorfleet.ops.nn.shapes import of_rank, of_rank_at_least
from tensorfleet.ops.samples import case
from tensorfleet.ops.sparse.arrange import sparse_rank, sparse_shapes

_KINDS = "{int8, int16, int32, int64, uint8, uint16, string}"
_VALID = frozenset(
    dtypes.as_dtype(k) for k in ("int8", "int16", "int32", "int64", "uint8", "uint16", "string")
)
_ATTRS = f"set_operation: string; validate_indices: bool = true; T: {_KINDS}"
_RESULT = "result_indices: int64, result_values: T, result_shape: int64"
_DENSE = np.array([[1, 9, 3], [5, 1, 1]], np.int64)
_OTHER = np.array([[9, 1], [5, 5]], np.int64)
_SPARSE = (
    np.array([[0, 0], [0, 1], [1, 0]], np.int64),
    np.array([1, 9, 3], np.int64),
    np.array([2, 3], np.int64),
)
_WORDS = np.array([[b"a", b"b"]], object)
_TABLE_PLACES_PER_VALUE = (
    32  # numbers for each that occurs, up to which a table of all is faster than to sort
)


@dataclass(frozen=True)
class _Sets:
    """Members of sets, each with the number of the set it is in; `groups` is the shape of the sets."""

    groups: tuple[int, ...]
    owners: Array
    members: Array


def _dense_sets(values: Array) -> _Sets:
    if values.ndim < 2:
        raise invalid(f"Shape {bracketed(values.shape)} has rank {values.ndim} < 2")
    groups = values.shape[:-1]
    return _Sets(groups, np.repeat(np.arange(math.prod(groups)), values.shape[-1]), values.ravel())


def _sparse_sets(indices: Array, values: Array, shape: Array, validate: bool) -> _Sets:
    check_sparse(indices, values, shape)
    if len(shape) < 2:
        raise invalid(f"Invalid rank {len(shape)}.")
    if validate:
        check_places(indices, shape)
    groups = tuple(int(d) for d in shape[:-1])
    outside = (indices[:, :-1] < 0) | (indices[:, :-1] >= np.array(groups, np.int64))
    if outside.any():
        raise invalid(f"Indices are out of bounds of shape {bracketed(groups)}")
    owners = np.ravel_multi_index(tuple(indices[:, :-1].T), groups) if len(indices) else np.zeros(0, np.int64)
    return _Sets(groups, owners, values)


def _keys(*sets: _Sets) -> tuple[Any, int, list[Array]]:
    """Members as numbers that sort by owner and member, of each set without repetition.

    Before them, the member of each code, or the lowest when a code only says how far above it one is, and how many codes.
    """
    together = np.concatenate([s.members for s in sets])
    low = int(together.min()) if together.dtype != object and together.size else 0
    count = int(together.max()) - low + 1 if together.dtype != object and together.size else 0
    kinds: Any = low
    if 0 < count < 2**62 // max(math.prod(sets[0].groups), 1):
        codes = together.astype(np.int64) - low
    else:
        kinds, codes = np.unique(together, return_inverse=True)
        count = len(kinds)
    parts = np.split(codes.reshape(-1), np.cumsum([len(s.members) for s in sets])[:-1])
    end = count * math.prod(sets[0].groups)
    return kinds, count, [_different(s.owners * count + c, end) for s, c in zip(sets, parts, strict=True)]


def _different(keys: Array, end: int) -> Array:
    """Numbers below `end`, sorted, each once."""
    if end <= _TABLE_PLACES_PER_VALUE * len(keys):
        return np.flatnonzero(_flags(keys, end))
    keys.sort()
    new = np.ones(len(keys), np.bool_)
    np.not_equal(keys[1:], keys[:-1], new[1:])
    return keys[new]


def _flags(keys: Array, end: int) -> Array:
    """Whether each number below `end` is among the keys."""
    flags = np.zeros(end, np.bool_)
    flags[keys] = True
    return flags


def _operate(first: _Sets, second: _Sets, operation: bytes) -> tuple[Array, Array, Array]:
    kind = operation.decode()
    if kind not in ("a-b", "b-a", "intersection", "union"):
        raise invalid(f"Invalid set_operation {kind}.")
    if first.groups != second.groups:
        raise invalid(f"Mismatched shapes {bracketed(first.groups)} vs {bracketed(second.groups)}")
    kinds, count, (a, b) = _keys(first, second)
    combined = _combined(kind, a, b, count * math.prod(first.groups))
    owners, codes = np.divmod(combined, max(count, 1))
    members = kinds[codes] if isinstance(kinds, np.ndarray) else (codes + kinds).astype(first.members.dtype)
    sizes = np.bincount(owners, minlength=math.prod(first.groups))
    places = np.empty((len(combined), len(first.groups) + 1), np.int64)
    if len(combined):
        places[:, :-1] = np.stack(np.unravel_index(owners, first.groups), 1)
    places[:, -1] = np.arange(len(combined)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return places, members, np.array([*first.groups, sizes.max(initial=0)], np.int64)


def _combined(kind: str, a: Array, b: Array, end: int) -> Array:
    """Sorted numbers below `end` of two such arrays."""
    if kind == "b-a":
        return _combined("a-b", b, a, end)
    if kind == "union":
        return _different(np.concatenate([a, b]), end)
    if end <= _TABLE_PLACES_PER_VALUE * (len(a) + len(b)):
        common = _flags(b, end)[a]
    else:
        common = np.isin(a, b, assume_unique=True)
    return a[common if kind == "intersection" else ~common]


def _dense_shapes(op: Operation) -> list[TensorShape]:
    a, b = (t.shape for t in op._inputs[:2])
    if a.rank is not None:
        b = of_rank(b, len(of_rank_at_least(a, 2)))
        a[:-1].merge_with(b[:-1])
    return sparse_shapes(of_rank_at_least(b, 2).rank)


def _half_dense_shapes(op: Operation) -> list[TensorShape]:
    rank = of_rank_at_least(op._inputs[0].shape, 2).rank
    other = sparse_rank(op, 1)
    if rank is not None and other not in (None, rank):
        raise ValueError(f"Dimension must be {rank} but is {other}")
    return sparse_shapes(other if rank is None else rank)


def _sparse_sets_shapes(op: Operation) -> list[TensorShape]:
    return sparse_shapes(vector_of(sparse_rank(op, 0)).merge_with([sparse_rank(op, 3)]).as_list()[0])


@op(
    "DenseToDenseSetOperation",
    f"set1: T, set2: T -> {_RESULT}",
    _ATTRS,
    shape=_dense_shapes,
    host=True,
    examples=[
        case(_DENSE, _OTHER, set_operation=b"intersection"),
        case(_DENSE, _OTHER, set_operation=b"a-b"),
        case(_WORDS, _WORDS, set_operation=b"union"),
    ],
)
def _dense_dense(ctx: HostContext, a: Array, b: Array, *, set_operation: bytes) -> tuple[Array, Array, Array]:
    return _operate(_dense_sets(a), _dense_sets(b), set_operation)


@op(
    "DenseToSparseSetOperation",
    f"set1: T, set2_indices: int64[2], set2_values: T[1], set2_shape: int64[1] -> {_RESULT}",
    _ATTRS,
    shape=_half_dense_shapes,
    host=True,
    examples=[case(_DENSE, *_SPARSE, set_operation=b"union"), case(_DENSE, *_SPARSE, set_operation=b"b-a")],
)
def _dense_sparse(
    ctx: HostContext,
    a: Array,
    indices: Array,
    values: Array,
    shape: Array,
    *,
    set_operation: bytes,
    validate_indices: bool,
) -> tuple[Array, Array, Array]:
    second = _sparse_sets(indices, values, shape, validate_indices)
    return _operate(_dense_sets(a), second, set_operation)


@op(
    "SparseToSparseSetOperation",
    "set1_indices: int64[2], set1_values: T[1], set1_shape: int64[1], set2_indices: int64[2], set2_values: T[1], "
    f"set2_shape: int64[1] -> {_RESULT}",
    _ATTRS,
    shape=_sparse_sets_shapes,
    host=True,
    examples=[case(*_SPARSE, *_SPARSE, set_operation=b"intersection")],
)
def _sparse_sparse(
    ctx: HostContext,
    i1: Array,
    v1: Array,
    s1: Array,
    i2: Array,
    v2: Array,
    s2: Array,
    *,
    set_operation: bytes,
    validate_indices: bool,
) -> tuple[Array, Array, Array]:
    first = _sparse_sets(i1, v1, s1, validate_indices)
    return _operate(first, _sparse_sets(i2, v2, s2, validate_indices), set_operation)


@op(
    "SetSize",
    "set_indices: int64, set_values: T, set_shape: int64 -> size: int32",
    f"validate_indices: bool = true; T: {_KINDS}",
    shape=lambda op: UNKNOWN,
    host=True,
    examples=[case(*_SPARSE)],
)
def _set_size(
    ctx: HostContext, indices: Array, values: Array, shape: Array, *, validate_indices: bool
) -> Array:
    given = _sparse_sets(indices, values, shape, validate_indices)
    _, count, (members,) = _keys(given)
    sizes = np.bincount(members // max(count, 1), minlength=math.prod(given.groups))
    return sizes.astype(np.int32).reshape(given.groups)


not_differentiable(
    "DenseToDenseSetOperation", "DenseToSparseSetOperation", "SparseToSparseSetOperation", "SetSize"
)


@export("sets.size", "sets.set_size")
def set_size(a: TensorLike, validate_indices: bool = True) -> Tensor:
    """How many different elements each row of the last dimension of a SparseTensor has."""
    a = convert_to_tensor_or_sparse_tensor(a, name="a")
    if not isinstance(a, SparseTensor):
        raise TypeError(f"Expected `SparseTensor`, got {a}.")
    _check_kind("a", a.dtype)
    return apply("SetSize", a.indices, a.values, a.dense_shape, validate_indices=validate_indices)


def _check_kind(what: str, dtype: dtypes.DType) -> None:
    if dtype.base_dtype not in _VALID:
        raise TypeError(f"'{what}' has invalid dtype `{dtype}` not in supported dtypes: `{_VALID}`.")


def _sets(a: Any, b: Any, operation: str, validate_indices: bool) -> SparseTensor:
    a = convert_to_tensor_or_sparse_tensor(a, name="a")
    _check_kind("a", a.dtype)
    b = convert_to_tensor_or_sparse_tensor(b, name="b")
    if b.dtype.base_dtype != a.dtype.base_dtype:
        raise TypeError(f"Types don't match, {a.dtype} vs {b.dtype}.")
    if isinstance(a, SparseTensor) and not isinstance(b, SparseTensor):
        a, b = b, a  # there is only one of the two mixed ops
        operation = {"a-b": "b-a", "b-a": "a-b"}.get(operation, operation)
    attrs: dict[str, Any] = {"set_operation": operation, "validate_indices": validate_indices}
    mine = [a.indices, a.values, a.dense_shape] if isinstance(a, SparseTensor) else [a]
    other = [b.indices, b.values, b.dense_shape] if isinstance(b, SparseTensor) else [b]
    kinds = ["Sparse" if len(parts) > 1 else "Dense" for parts in (mine, other)]
    return SparseTensor(*apply_any(f"{kinds[0]}To{kinds[1]}SetOperation", *mine, *other, **attrs))


@export("sets.intersection", "sets.set_intersection")
def set_intersection(a: TensorLike, b: TensorLike, validate_indices: bool = True) -> SparseTensor:
    """The elements common to the rows of the last dimension of two tensors, dense or sparse."""
    return _sets(a, b, "intersection", validate_indices)


@export("sets.difference", "sets.set_difference")
def set_difference(
    a: TensorLike, b: TensorLike, aminusb: bool = True, validate_indices: bool = True
) -> SparseTensor:
    """The elements of the rows of `a` that are not in those of `b`; the other way round unless `aminusb`."""
    return _sets(a, b, "a-b" if aminusb else "b-a", validate_indices)


@export("sets.union", "sets.set_union")
def set_union(a: TensorLike, b: TensorLike, validate_indices: bool = True) -> SparseTensor:
    """The elements of the rows of the last dimension of either of two tensors."""
    return _sets(a, b, "union", validate_indices)
