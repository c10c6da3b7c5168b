"""Sparse tensors as strings, for queues and files."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.formats.varint import read_varint, write_varint
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, DTypeLike, TensorLike
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.graph.sparse_tensor import SparseTensor, to_sparse
from tensorfleet.graph.tensor_proto import array_of
from tensorfleet.kernels.packed_strings import Strings, together
from tensorfleet.kernels.sparse import bracketed, check_places, check_sparse, invalid
from tensorfleet.kernels.string_buffers import Buffer
from tensorfleet.ops.common import vector_of
from tensorfleet.ops.samples import case
from tensorfleet.ops.sparse.arrange import Parts, sparse_shapes

_A = (np.array([[0, 1], [1, 0], [1, 2]], np.int64), np.array([1.5, 2.5, 3.5]), np.array([3, 4], np.int64))
_WORDS = (_A[0], np.array([b"a", b"", b"b" * 200], object), _A[2])
#: The three inputs that are one sparse tensor.
PARTS = "sparse_indices: int64[2], sparse_values: T[1], sparse_shape: int64[1]"


def _written(array: Array) -> bytes:
    """An array as the bytes of a TensorProto, its elements as raw content."""
    content = array.tobytes()
    if array.dtype == object:
        words = array.ravel().tolist()
        content = b"".join([write_varint(len(w)) for w in words] + words)
    return _header(array.dtype, array.shape) + (_field(4, content) if content else b"")


@functools.lru_cache(1024)
def _header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """The type and the shape: fields 1 and 2 of a TensorProto. Zeros are left out, as in any message."""
    sizes = b"".join([_field(2, b"\x08" + write_varint(n) if n else b"") for n in shape])
    return b"\x08" + write_varint(dtypes.as_dtype(dtype).as_datatype_enum) + _field(2, sizes)


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + write_varint(len(content)) + content


def _read(data: bytes) -> Array:
    """The array of a serialized TensorProto."""
    # Type, shape, and raw content of less than 16 KB, as TensorFlow and `_written` write them, need no message.
    end = 4 + data[3] if len(data) > 6 and data[0] == 8 and data[2] == 18 else len(data)
    if end + 3 < len(data) and data[end] == 34:
        long = data[end + 1] > 127
        size = data[end + 1] & 127 | data[end + 2] << 7 if long else data[end + 1]
        dtype, shape, wanted = _read_header(data[:end])
        if size == wanted == len(data) - end - 2 - long:
            return np.frombuffer(data, dtype, offset=end + 2 + long).reshape(shape)
    return _parsed(data)


@functools.lru_cache(1024)
def _read_header(header: bytes) -> tuple[np.dtype[Any] | None, tuple[int, ...], int]:
    """The type, the shape and the size in bytes of an array of numbers; a size of -1 for any other header."""
    from tensorfleet.base.protos import TensorProto

    try:
        proto: Any = TensorProto.FromString(header)
        dtype = dtypes.as_dtype(proto.dtype)
        shape = tuple(d.size for d in proto.tensor_shape.dim)
        known = _header(dtype.np_dtype, shape) == header and dtype != dtypes.string
    except Exception:  # any error comes again, with its message, when the whole proto is parsed
        return None, (), -1
    return dtype.np_dtype, shape, math.prod(shape) * dtype.size if known else -1


def _parsed(data: bytes) -> Array:
    from google.protobuf.message import DecodeError

    from tensorfleet.base.protos import TensorProto

    proto: Any = TensorProto()
    try:
        proto.ParseFromString(data)
        if proto.dtype == dtypes.string.as_datatype_enum and proto.tensor_content:
            return _words(proto.tensor_content, tuple(d.size for d in proto.tensor_shape.dim))
        return array_of(proto)
    except (DecodeError, TypeError, ValueError, KeyError, IndexError):
        raise invalid("Could not parse serialized proto") from None


def _words(content: bytes, shape: tuple[int, ...]) -> Array:
    position, lengths = 0, []
    for _ in range(int(np.prod(shape, dtype=np.int64))):
        length, position = read_varint(content, position)
        lengths.append(length)
    strings = np.empty(len(lengths), object)
    for i, length in enumerate(lengths):
        strings[i] = content[position : position + length]
        position += length
    return strings.reshape(shape)


def _strings(rows: list[bytes]) -> Array:
    result = np.empty(np.shape(rows) or (0,), object)
    result[...] = rows
    return result


def _row_ends(indices: Array, values: Array, shape: Array) -> list[int]:
    """Where the rows of a sparse tensor of rank above 1 end; the first number is where the first begins."""
    check_sparse(indices, values, shape)
    if len(shape) < 2:
        raise invalid(f"Rank of input SparseTensor should be > 1, but saw rank: {len(shape)}")
    check_places(indices, shape)
    ends: list[int] = np.searchsorted(indices[:, 0], np.arange(int(shape[0]) + 1)).tolist()
    return ends


def rows_of(indices: Array, values: Array, shape: Array) -> list[Parts]:
    """A sparse tensor of rank above 1 as one sparse tensor per row."""
    pairs = itertools.pairwise(_row_ends(indices, values, shape))
    return [(indices[a:b, 1:], values[a:b], np.array(shape[1:], np.int64)) for a, b in pairs]


@op(
    "SerializeSparse",
    f"{PARTS} -> serialized_sparse: out_type",
    "T: type; out_type: {string, variant} = string",
    shape=lambda op: vector_of(3),
    host=True,
    examples=[case(*_A), case(*_WORDS)],
)
def _serialize(ctx: HostContext, indices: Array, values: Array, shape: Array, *, out_type: DType) -> Array:
    check_sparse(indices, values, shape)
    if out_type == dtypes.variant:
        variant: Array = _variants([(indices, values, shape)])[0]
        return variant
    return _strings([_written(np.asarray(part)) for part in (indices, values, shape)])


def _variants(parts: list[Parts]) -> Array:
    """Sparse tensors as variants: three arrays for each."""
    result = np.empty((len(parts), 3), object)
    for row, part in enumerate(parts):
        for column, array in enumerate(part):
            result[row, column] = np.asarray(array)
    return result


@op(
    "SerializeManySparse",
    f"{PARTS} -> serialized_sparse: out_type",
    "T: type; out_type: {string, variant} = string",
    shape=lambda op: TensorShape([None, 3]),
    host=True,
    examples=[case(*_A), case(*_WORDS)],
)
def _serialize_many(
    ctx: HostContext, indices: Array, values: Array, shape: Array, *, out_type: DType
) -> Array:
    if out_type == dtypes.variant:
        return _variants(rows_of(indices, values, shape))
    ends = _row_ends(indices, values, shape)
    places, held = np.asarray(indices)[:, 1:], np.asarray(values)
    size, together = _written(np.array(shape[1:], np.int64)), held.dtype != object
    at, of = places.tobytes(), held.tobytes() if together else b""
    wide, deep = 8 * places.shape[1], held.itemsize
    strings = []
    for a, b in itertools.pairwise(ends):
        strings.append(_head(places.dtype, (b - a, places.shape[1])) + at[a * wide : b * wide])
        strings.append(
            _head(held.dtype, (b - a,)) + of[a * deep : b * deep] if together else _written(held[a:b])
        )
        strings.append(size)
    return np.fromiter(strings, object, len(strings)).reshape(-1, 3)


@functools.lru_cache(1024)
def _head(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """All that comes before the raw content of an array."""
    size = math.prod(shape) * dtype.itemsize
    return _header(dtype, shape) + (b"\x22" + write_varint(size) if size else b"")


def joined(parts: list[Parts], dtype: dtypes.DType, alike: str = "shape") -> tuple[Array, Array, Array]:
    """Sparse tensors of one rank as one, with a first dimension that counts them.

    `alike` is what TensorFlow's message calls inconsistent when their ranks differ.
    """
    rank = len(parts[0][2])
    for n, (indices, values, shape) in enumerate(parts):
        # The usual case, tested here because `check_sparse` takes longer than the rest of this function together.
        if (
            values.dtype == dtype.np_dtype
            and indices.shape == (values.size, rank)
            and shape.shape == (rank,)
            and values.ndim == 1
        ):
            continue
        if values.dtype != dtype.np_dtype:
            raise invalid(
                f"Requested SparseTensor of type {_c_name(dtype)} but SparseTensor[{n}].values.dtype() == "
                f"{_c_name(dtypes.as_dtype(values.dtype))}"
            )
        if len(shape) != rank:
            raise invalid(
                f"Inconsistent {alike} across SparseTensors: rank prior to SparseTensor[{n}] was: {rank} but rank of "
                f"SparseTensor[{n}] is: {len(shape)}"
            )
        check_sparse(indices, values, shape, f"SparseTensor[{n}]")
    all_indices, all_values, shapes = zip(*parts, strict=True)
    numbers = np.repeat(np.arange(len(parts)), [len(v) for v in all_values])
    places = np.column_stack([numbers, np.concatenate(all_indices)])
    shape = np.concatenate([np.array([len(parts)], np.int64), np.maximum.reduce(shapes).clip(0)])
    return places, np.concatenate(all_values), shape


def _c_name(dtype: dtypes.DType) -> str:
    return {"float32": "float", "float64": "double", "float16": "half"}.get(dtype.name, dtype.name)


def _three_columns(op: Operation) -> list[TensorShape]:
    shape = op._inputs[0].shape.with_rank(2)
    if shape[1].value not in (None, 3):
        raise ValueError(f"Dimension must be 3 but is {shape[1]}")
    return sparse_shapes(None)


# `_A` as TensorProtos: their heads, and the raw content. Made by hand, as messages are not loaded before they are needed.
_HEADS: tuple[bytes, ...] = (
    b'\x08\t\x12\x08\x12\x02\x08\x03\x12\x02\x08\x02"0',
    b'\x08\x02\x12\x04\x12\x02\x08\x03"\x18',
    b'\x08\t\x12\x04\x12\x02\x08\x02"\x10',
)
_SAVED = _strings([head + part.tobytes() for head, part in zip(_HEADS, _A, strict=True)])


@op(
    "DeserializeManySparse",
    "serialized_sparse: string[2] -> sparse_indices: int64, sparse_values: dtype, sparse_shape: int64",
    "dtype: type",
    shape=_three_columns,
    host=True,
    packed=True,
    examples=[case(np.stack([_SAVED, _SAVED]), dtype="double")],
)
def _deserialize_many(
    ctx: HostContext, serialized: Strings | Array, *, dtype: DType
) -> tuple[Array, Array, Array]:
    if serialized.ndim != 2 or serialized.shape[1] != 3:
        raise invalid(
            f"Serialized sparse should be a matrix of 3 columns but has shape {bracketed(serialized.shape)}"
        )
    if not len(serialized):
        raise invalid(
            "Serialized sparse should have at least 1 serialized tensor, but has a zero dimension "
            f"{bracketed(serialized.shape)}"
        )
    many = together(serialized)
    alike = None if many is None else _joined_alike(many, dtype)
    if alike is not None:
        return alike
    return joined([(_read(a), _read(b), _read(c)) for a, b, c in np.asarray(serialized).tolist()], dtype)


def _joined_alike(serialized: Strings, dtype: dtypes.DType) -> Parts | None:
    """The result of `joined` for rows of three strings that are alike in size; None when some are not, or wrong."""
    buffer, width = serialized.buffer, serialized.shape[-1]
    tables = [_read_alike(buffer.some(slice(i, None, width))) for i in range(width)]
    indices, values, shapes = (t if t is not None else np.zeros(0) for t in tables)
    count, rank = len(serialized), shapes.shape[-1]
    if indices.shape != (count, *values.shape[1:], rank) or values.ndim != 2 or shapes.ndim != 2:
        return None
    if values.dtype != dtype.np_dtype or indices.dtype != np.int64 or shapes.dtype != np.int64:
        return None
    places = np.empty((*values.shape, rank + 1), np.int64)
    places[..., 0] = np.arange(count)[:, None]
    places[..., 1:] = indices
    return places.reshape(-1, rank + 1), values.reshape(-1), np.append(count, shapes.max(0).clip(0))


def _read_alike(buffer: Buffer) -> Array | None:
    """The arrays of serialized TensorProtos of numbers, if all have one type and shape."""
    length = int(buffer.lengths[0])
    if (buffer.lengths != length).any() or not length:
        return None
    rows = buffer.rows(length)
    first = _read(rows[0].tobytes())
    head = length - first.nbytes
    if first.dtype == object or not first.size or head < 1 or (rows[:, :head] != rows[0, :head]).any():
        return None
    if rows[0, :head].tobytes() != _head(first.dtype, first.shape):
        return None
    return np.ascontiguousarray(rows[:, head:]).view(first.dtype).reshape(len(rows), *first.shape)


@op(
    "DeserializeSparse",
    "serialized_sparse: Tserialized[1+] -> sparse_indices: int64, sparse_values: dtype, sparse_shape: int64",
    "dtype: type; Tserialized: {string, variant} = string",
    shape=lambda op: sparse_shapes(None),
    host=True,
    examples=[
        case(_SAVED, dtype="double"),
        case(np.stack([_SAVED, _SAVED]), dtype="double"),
        case(np.stack([_SAVED] * 4).reshape(2, 2, 3), dtype="double"),
    ],
)
def _deserialize(ctx: HostContext, serialized: Array, *, dtype: DType) -> tuple[Array, Array, Array]:
    outer = serialized.shape[:-1]
    if serialized.shape[-1] != 3:
        raise invalid(
            f"Serialized sparse should have 3 as the last dimension but has shape {bracketed(serialized.shape)}"
        )
    rows = [(_array(a), _array(b), _array(c)) for a, b, c in serialized.reshape(-1, 3).tolist()]
    if not rows:
        raise invalid(
            "Serialized sparse should have at least 1 serialized tensor, but has a zero dimension "
            f"{bracketed(serialized.shape)}"
        )
    places, values, shape = joined(rows, dtype)
    numbers = np.stack(np.unravel_index(places[:, 0], outer), 1) if outer else places[:, :0]
    return np.concatenate([numbers, places[:, 1:]], 1), values, np.concatenate([np.int64(outer), shape[1:]])


def _array(part: bytes | Array) -> Array:
    """The array in a string or a variant."""
    return _read(part) if isinstance(part, bytes) else part


not_differentiable("SerializeSparse", "SerializeManySparse", "DeserializeManySparse", "DeserializeSparse")


@export("io.serialize_sparse", "serialize_sparse")
def serialize_sparse(
    sp_input: SparseTensor, name: str | None = None, out_type: DTypeLike = dtypes.string
) -> Tensor:
    """A sparse tensor as three strings: its indices, values and dense shape."""
    sp = to_sparse(sp_input)
    return apply("SerializeSparse", sp.indices, sp.values, sp.dense_shape, out_type=out_type, name=name)


@export("io.serialize_many_sparse", "serialize_many_sparse")
def serialize_many_sparse(
    sp_input: SparseTensor, name: str | None = None, out_type: DTypeLike = dtypes.string
) -> Tensor:
    """Each row of a sparse tensor as three strings."""
    sp = to_sparse(sp_input)
    return apply("SerializeManySparse", sp.indices, sp.values, sp.dense_shape, out_type=out_type, name=name)


def of_rank(rank: int | None, parts: list[Tensor]) -> SparseTensor:
    """The sparse tensor of three tensors, with its rank if that is known."""
    indices, values, shape = parts
    indices.set_shape([None, rank])
    shape.set_shape([rank])
    return SparseTensor(indices, values, shape)


@export("io.deserialize_many_sparse", "deserialize_many_sparse")
def deserialize_many_sparse(
    serialized_sparse: TensorLike, dtype: DTypeLike, rank: int | None = None, name: str | None = None
) -> SparseTensor:
    """The sparse tensors that rows of three strings hold, as one with a first dimension more."""
    return of_rank(rank, apply_list("DeserializeManySparse", serialized_sparse, dtype=dtype, name=name))


@export("python.ops.sparse_ops.deserialize_sparse")
def deserialize_sparse(
    serialized_sparse: TensorLike, dtype: DTypeLike, rank: int | None = None, name: str | None = None
) -> SparseTensor:
    """The sparse tensor in three strings or variants; the dimensions before these three become its first dimensions."""
    return of_rank(rank, apply_list("DeserializeSparse", serialized_sparse, dtype=dtype, name=name))
