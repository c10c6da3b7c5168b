"""Crossed features: every combination of the words that several columns have in a row."""

from __future__ import annotations

import itertools
from typing import Any, TypeAlias

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.types import Array
from tensorfleet.graph.apply import apply_list
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.graph.sparse_tensor import SparseTensor, is_sparse, to_sparse
from tensorfleet.kernels.hashing import fingerprint64, fingerprint_cat64
from tensorfleet.kernels.sparse import check_sparse, invalid
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.samples import case
from tensorfleet.ops.sparse.arrange import Parts, sparse_shapes

_DEFAULT_KEY = 0xDECAFCAFFE  # TensorFlow's, so that the hashes are the same
_PLACES = np.array([[0, 0], [1, 0], [1, 1]], np.int64)
_WORDS = np.array([b"a", b"b", b"c"], object)
_SHAPE = np.array([2, 2], np.int64)
_DENSE = np.array([[7, 8], [9, 10]], np.int64)


#: For each column, the words (or numbers) of each row.
Columns: TypeAlias = list[list[list[Any]]]


def _rows(sparse: list[Parts], dense: list[Array]) -> Columns:
    """The words (or numbers) of each row of sparse, then of dense matrices."""
    columns = []
    for indices, values, shape in sparse:
        check_sparse(indices, values, shape)
        if len(shape) != 2:
            raise invalid(f"shape should imply a 2D tensor, but got {len(shape)} dimensions")
        rows: list[list[Any]] = [[] for _ in range(int(shape[0]))]
        for row, value in zip(indices[:, 0].tolist(), values.tolist(), strict=True):
            rows[row].append(value)
        columns.append(rows)
    for matrix in dense:
        if np.ndim(matrix) != 2:
            raise invalid(f"Dense inputs should be a matrix but received {np.ndim(matrix)} dimensions")
        columns.append(matrix.tolist())
    for n, rows in enumerate(columns):
        if len(rows) != len(columns[0]):
            kind, at = ("shape", n) if n < len(sparse) else ("dense tensor", n - len(sparse))
            raise invalid(f"Expected batch size {len(columns[0])} got {len(rows)} at {kind} {at}")
    return columns


def _hashed(columns: Columns) -> Columns:
    """Numbers as they are, words as their fingerprints."""
    result = []
    for rows in columns:
        flat = [word for row in rows for word in row]
        numbers = flat
        if flat and isinstance(flat[0], bytes):
            numbers = fingerprint64(flat).view(np.int64).tolist()
        each = iter(numbers)
        result.append([[next(each) for _ in row] for row in rows])
    return result


def _word(value: bytes | int) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


@op(
    "SparseCross",
    "indices: N * int64, values: list(sparse_types), shapes: N * int64, dense_inputs: list(dense_types) -> "
    "output_indices: int64, output_values: out_type, output_shape: int64",
    "N: int; hashed_output: bool; num_buckets: int; hash_key: int; sparse_types: list({int64, string}); "
    "dense_types: list({int64, string}); out_type: {int64, string}; internal_type: {int64, string}",
    shape=lambda op: sparse_shapes(2),
    host=True,
    examples=[
        case(
            [_PLACES, _PLACES],
            [_WORDS, _WORDS],
            [_SHAPE, _SHAPE],
            [_DENSE],
            hashed_output=False,
            num_buckets=0,
            hash_key=1,
            out_type="string",
            internal_type="int64",
        ),
        case(
            [_PLACES],
            [_WORDS],
            [_SHAPE],
            [_DENSE],
            hashed_output=True,
            num_buckets=1000,
            hash_key=_DEFAULT_KEY,
            out_type="int64",
            internal_type="int64",
        ),
    ],
)
def _cross(
    ctx: HostContext,
    indices: list[Array],
    values: list[Array],
    shapes: list[Array],
    dense: list[Array],
    *,
    hashed_output: bool,
    num_buckets: int,
    hash_key: int,
) -> tuple[Array, Array, Array]:
    columns = _rows(list(zip(indices, values, shapes, strict=True)), dense)
    columns = _hashed(columns) if hashed_output else columns
    crossed = [list(itertools.product(*row)) for row in zip(*columns, strict=True)]
    flat = [combination for row in crossed for combination in row]
    counts = [len(row) for row in crossed]
    places = np.empty((len(flat), 2), np.int64)
    places[:, 0] = np.repeat(np.arange(len(counts)), counts)
    places[:, 1] = np.concatenate([np.arange(0), *(np.arange(n) for n in counts)])
    if hashed_output:
        words = _hash_of(flat, len(columns), num_buckets, hash_key)
    else:
        words = np.empty(len(flat), object)
        words[:] = [b"_X_".join(_word(w) for w in combination) for combination in flat]
    return places, words, np.array([len(counts), max(counts, default=0)], np.int64)


def _hash_of(flat: list[tuple[int, ...]], width: int, num_buckets: int, hash_key: int) -> Array:
    hashes = np.array([[v % 2**64 for v in row] for row in flat], np.uint64).reshape(len(flat), width)
    crossed = np.full(len(flat), hash_key % 2**64, np.uint64)
    for column in range(width):
        crossed = fingerprint_cat64(crossed, hashes[:, column])
    # Without a number of buckets, the result still has to fit a signed integer.
    return (crossed % np.uint64(num_buckets or np.iinfo(np.int64).max)).astype(np.int64)


not_differentiable("SparseCross")


@export("sparse.cross")
def sparse_cross(inputs: list[SparseTensor | Tensor], name: str | None = None) -> SparseTensor:
    """Every combination of the words of several columns in each row, joined by `_X_`.

    `inputs` are matrices, sparse or dense, of strings or integers.
    """
    return _crossed(inputs, "All inputs must be Tensor or SparseTensor.", False, 0, None, name)


@export("sparse.cross_hashed")
def sparse_cross_hashed(
    inputs: list[SparseTensor | Tensor],
    num_buckets: int = 0,
    hash_key: int | None = None,
    name: str | None = None,
) -> SparseTensor:
    """Every combination of the words of several columns in each row, as hashes below `num_buckets`."""
    return _crossed(inputs, "All inputs must be SparseTensors", True, num_buckets, hash_key, name)


def _crossed(
    inputs: list[SparseTensor | Tensor],
    complaint: str,
    hashed: bool,
    num_buckets: int,
    hash_key: int | None,
    name: str | None,
) -> SparseTensor:
    if not isinstance(inputs, list):
        raise TypeError("Inputs must be a list")
    if not all(is_sparse(i) or isinstance(i, Tensor) for i in inputs):
        raise TypeError(complaint)
    sparse = [to_sparse(i) for i in inputs if is_sparse(i)]
    dense = [i for i in inputs if isinstance(i, Tensor)]
    return SparseTensor(
        *apply_list(
            "SparseCross",
            [s.indices for s in sparse],
            [_plain(s.values) for s in sparse],
            [s.dense_shape for s in sparse],
            [_plain(d) for d in dense],
            N=len(sparse),
            hashed_output=hashed,
            num_buckets=num_buckets,
            hash_key=hash_key or _DEFAULT_KEY,
            out_type=dtypes.int64 if hashed else dtypes.string,
            internal_type=_internal([*sparse, *dense]),
            name=name,
        )
    )


def _plain(values: Tensor) -> Tensor:
    return values if values.dtype == dtypes.string else cast(values, dtypes.int64)


def _internal(inputs: list[SparseTensor | Tensor]) -> DType:
    """The type in which TensorFlow's kernel works: integers as soon as one column has them."""
    return dtypes.int64 if any(i.dtype != dtypes.string for i in inputs) else dtypes.string
