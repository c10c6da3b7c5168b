"""Arrays as `TensorProto` and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape, as_shape
from tensorfleet.graph.checking import MAX_CONSTANT_BYTES, MAX_FILL_BYTES, check_tensor
from tensorfleet.graph.convert import make_array

if TYPE_CHECKING:
    from tensorfleet.base.protos import TensorProto
    from tensorfleet.base.types import Array, DTypeLike, ShapeLike, TensorLike

# Which repeated field holds the values of a type when they are not raw bytes.
_FIELDS = {
    "float32": "float_val",
    "float64": "double_val",
    "int32": "int_val",
    "int16": "int_val",
    "int8": "int_val",
    "uint8": "int_val",
    "uint16": "int_val",
    "qint8": "int_val",
    "quint8": "int_val",
    "qint16": "int_val",
    "quint16": "int_val",
    "qint32": "int_val",
    "int64": "int64_val",
    "bool": "bool_val",
    "uint32": "uint32_val",
    "uint64": "uint64_val",
    "string": "string_val",
    "float16": "half_val",
    "bfloat16": "half_val",
    "complex64": "scomplex_val",
    "complex128": "dcomplex_val",
}


# Types of which TensorFlow writes the elements as raw bytes; of the others, each into its field.
_RAW = frozenset(
    (
        *("float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"),
        *("qint8", "quint8", "qint16", "quint16", "qint32"),
    )
)


def is_fill(array: np.ndarray) -> bool:
    """Whether an array is one element, looked at many times."""
    return array.size > 1 and not any(array.strides)


def stored_bytes(array: np.ndarray) -> int:
    """The size of an array in a message."""
    return array.itemsize if is_fill(array) else array.nbytes


def proto_of(value: Array | tuple[Array, DType | None]) -> TensorProto:
    """A `TensorProto` of an array, or of an (array, dtype) pair for types numpy cannot tell apart."""
    from tensorfleet.base.protos import TensorProto

    array, dtype = value if isinstance(value, tuple) else (value, None)
    array = np.asarray(array)
    kind: DType = dtype or dtypes.as_dtype(array.dtype)
    proto = TensorProto(tensor_shape=TensorShape(array.shape).as_proto())
    proto.dtype = kind.as_datatype_enum
    # A broadcast scalar is written as one value: readers repeat the last one.
    if is_fill(array):
        array = array[(slice(0, 1),) * array.ndim]
    if kind == dtypes.string:
        proto.string_val.extend(array.ravel().tolist())
        return proto
    if kind == dtypes.variant:
        _write_variants(proto, array)
        return proto
    # As TensorFlow does: one value goes to its field, where text formats show it; more are raw bytes.
    if array.size != 1 and kind.name in _RAW:
        proto.tensor_content = np.ascontiguousarray(array).tobytes()
    else:
        _write_values(proto, kind, array)
    return proto


_CONTENT = (
    4 << 3 | 2
)  # how the field of raw bytes begins; what `serialized` writes before it are these two and a number
_NUMBERS, _SHAPE = (1 << 3, 3 << 3), 2 << 3 | 2


def serialized(array: np.ndarray, kind: DType) -> bytes:
    """The serialized `TensorProto` of an array: its elements are copied once, not by each of the message's layers."""
    if array.size == 1 or kind.name not in _RAW or is_fill(array):
        return proto_of((array, kind)).SerializeToString()
    head = proto_of((np.zeros(0, array.dtype), kind))
    head.tensor_shape.CopyFrom(TensorShape(array.shape).as_proto())
    content = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return b"".join([head.SerializeToString(), *_started(len(content)), content.data])


def _started(size: int) -> list[bytes]:
    """The tag and length before so many raw bytes; nothing if there are none."""
    if not size:
        return []
    digits = [_CONTENT]
    while size > 127:
        digits.append(size & 127 | 128)
        size >>= 7
    return [bytes([*digits, size])]


def parsed(data: bytes) -> tuple[TensorProto, memoryview | None]:
    """The `TensorProto` in a string; with its raw bytes, where they are the last of it, beside it instead of in it."""
    from tensorfleet.base.protos import TensorProto

    at = _content_at(data)
    if at is None:
        return TensorProto.FromString(data), None
    start, end = at
    return TensorProto.FromString(data[:start]), memoryview(data)[end:]


def _content_at(data: bytes) -> tuple[int, int] | None:
    """Where the field of raw bytes begins and where its bytes do; None where it is not the last one."""
    at = 0
    while at < len(data):
        tag, start, at = data[at], at, at + 1
        value, shift = 0, 0
        while at < len(data) and data[at] > 127 and shift < 63:
            value, shift, at = value | (data[at] & 127) << shift, shift + 7, at + 1
        if at == len(data):
            return None
        value, at = value | data[at] << shift, at + 1
        if tag == _CONTENT:
            return (start, at) if at + value == len(data) else None
        if tag not in _NUMBERS:
            if tag != _SHAPE:
                return None
            at += value
    return None


def _write_variants(proto: TensorProto, array: np.ndarray) -> None:
    """Writes variants that have a serialized form, such as the position of an iterator."""
    for value in array.ravel().tolist():
        if not isinstance(value, bytes):
            raise errors.invalid(f"A variant that holds a {type(value).__name__} cannot be written.")
        proto.variant_val.add(type_name="bytes", metadata=value)


def _write_values(proto: TensorProto, kind: DType, array: np.ndarray) -> None:
    """Writes each element into the field of its type."""
    field = _FIELDS[kind.name]
    flat = np.ascontiguousarray(array).ravel()
    if field == "half_val":
        flat = flat.view(np.uint16)
    elif kind.is_complex:
        flat = flat.view(kind.real_dtype.np_dtype)
    getattr(proto, field).extend(flat.tolist())


@export("make_ndarray")
def make_ndarray(tensor: TensorProto) -> np.ndarray:
    """The numpy array that a `TensorProto` holds."""
    return array_of(tensor)


def array_of(tensor: TensorProto, content: memoryview | None = None) -> np.ndarray:
    """The numpy array that a `TensorProto` holds; its raw bytes may be beside it."""
    raw = tensor.tensor_content if content is None else content
    kind = dtypes.as_dtype(tensor.dtype).base_dtype
    if kind == dtypes.variant:
        held = np.empty(len(tensor.variant_val), object)
        held[:] = [v.metadata for v in tensor.variant_val]
        return held.reshape(tuple(d.size for d in tensor.tensor_shape.dim))
    if kind.name not in _FIELDS:
        raise ValueError(f"A TensorProto cannot hold values of type {kind.name}.")
    count = check_tensor(tensor)
    shape = tuple(d.size for d in tensor.tensor_shape.dim)
    if raw and kind != dtypes.string:
        if count * kind.np_dtype.itemsize != len(raw):
            raise ValueError(f"{len(raw)} bytes for a constant of {kind.name} with shape {shape}.")
        return np.frombuffer(raw, kind.np_dtype).reshape(shape).copy()
    stored = np.dtype(np.uint16) if kind in (dtypes.float16, dtypes.bfloat16) else kind.np_dtype
    values = list(getattr(tensor, _FIELDS[kind.name]))
    large = count * stored.itemsize > MAX_CONSTANT_BYTES
    one = len(values) <= 1 + kind.is_complex and kind != dtypes.string
    if large and not (one and count * stored.itemsize <= MAX_FILL_BYTES):
        raise ValueError(f"A constant of {kind.name} with shape {shape} is too large.")
    if kind.is_complex:
        pairs = np.array(values[: len(values) // 2 * 2], kind.real_dtype.np_dtype).reshape(-1, 2)
        values = list(pairs[:, 0] + 1j * pairs[:, 1])
    # A short list repeats its last value; an empty one is all zeros.
    last = values[-1] if values else b"" if kind == dtypes.string else 0
    if large:
        return np.broadcast_to(np.array(last, stored).view(kind.np_dtype), shape)
    flat = np.full(count, last, stored)
    few = values[:count]
    flat[: len(few)] = few
    return flat.view(kind.np_dtype).reshape(shape)


@export("make_tensor_proto")
def make_tensor_proto(
    values: TensorLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike = None,
    verify_shape: bool = False,
    allow_broadcast: bool = False,
) -> TensorProto:
    """A `TensorProto` of Python or numpy values."""
    kind = None if dtype is None else dtypes.as_dtype(dtype)
    array = make_array(values, kind)
    if shape is not None:
        dims = tuple(int(d) for d in as_shape(shape).as_list() if d is not None)
        if verify_shape and array.shape != dims:
            raise TypeError(f"Expected Tensor's shape: {dims}, got {array.shape}.")
        if array.size > int(np.prod(dims, dtype=np.int64)):
            raise ValueError(
                f"Too many elements provided. Needed at most {int(np.prod(dims))}, but received {array.size}"
            )
        if 0 < array.size < int(np.prod(dims, dtype=np.int64)):  # the last value stands for those missing
            return _short_proto(array, kind or dtypes.as_dtype(array.dtype), dims)
        array = array.reshape(dims) if array.size else np.zeros(dims, array.dtype)
    return proto_of((array, kind) if kind is not None else array)


def _short_proto(array: np.ndarray, kind: DType, dims: tuple[int, ...]) -> TensorProto:
    from tensorfleet.base.protos import TensorProto

    proto = TensorProto(tensor_shape=TensorShape(dims).as_proto())
    proto.dtype = kind.as_datatype_enum
    if kind == dtypes.string:
        proto.string_val.extend(array.ravel().tolist())
    else:
        _write_values(proto, kind, array)
    return proto
