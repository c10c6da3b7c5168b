"""Fields of protocol buffers between bytes and arrays: what each type is on the wire, and which arrays can hold it."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from tensorfleet.base import dtypes, errors
from tensorfleet.base.formats.varint import read_varint, write_varint
from tensorfleet.base.types import Array

_VARINT, _EIGHT, _BYTES, _START, _END, _FOUR = range(6)
_REPEATED = 3


class F:
    """The numbers that types of fields have in their descriptions."""

    TYPE_DOUBLE, TYPE_FLOAT, TYPE_INT64, TYPE_UINT64, TYPE_INT32, TYPE_FIXED64, TYPE_FIXED32 = range(1, 8)
    TYPE_BOOL, TYPE_STRING, TYPE_GROUP, TYPE_MESSAGE, TYPE_BYTES, TYPE_UINT32, TYPE_ENUM = range(8, 15)
    TYPE_SFIXED32, TYPE_SFIXED64, TYPE_SINT32, TYPE_SINT64 = range(15, 19)


# On the wire: its kind, how a number of fixed size is packed, and the arrays that can hold it, the narrowest first.
_TYPES: dict[int, tuple[int, str, tuple[str, ...]]] = {
    F.TYPE_DOUBLE: (_EIGHT, "<d", ("double",)),
    F.TYPE_FLOAT: (_FOUR, "<f", ("float", "double")),
    F.TYPE_INT64: (_VARINT, "", ("int64",)),
    F.TYPE_UINT64: (_VARINT, "", ("uint64",)),
    F.TYPE_INT32: (_VARINT, "", ("int32", "int64")),
    F.TYPE_FIXED64: (_EIGHT, "<Q", ("uint64",)),
    F.TYPE_FIXED32: (_FOUR, "<I", ("uint32", "uint64")),
    F.TYPE_BOOL: (_VARINT, "", ("bool",)),
    F.TYPE_STRING: (_BYTES, "", ("string",)),
    F.TYPE_GROUP: (_START, "", ("string",)),
    F.TYPE_MESSAGE: (_BYTES, "", ("string",)),
    F.TYPE_BYTES: (_BYTES, "", ("string",)),
    F.TYPE_UINT32: (_VARINT, "", ("uint32", "uint64")),
    F.TYPE_ENUM: (_VARINT, "", ("int32",)),
    F.TYPE_SFIXED32: (_FOUR, "<i", ("int32", "int64")),
    F.TYPE_SFIXED64: (_EIGHT, "<q", ("int64",)),
    F.TYPE_SINT32: (_VARINT, "", ("int32", "int64")),
    F.TYPE_SINT64: (_VARINT, "", ("int64",)),
}
_ZIGZAG = {F.TYPE_SINT32, F.TYPE_SINT64}
_SIGNED = {F.TYPE_INT64, F.TYPE_INT32, F.TYPE_ENUM}


def message_type(name: str, source: bytes) -> Any:
    """The description of a message: from those that the program knows, from a file, or from bytes."""
    from google.protobuf import descriptor_pool

    pool: Any = descriptor_pool.Default()
    if source.startswith(b"bytes://"):
        pool = _pool_of(source.removeprefix(b"bytes://"))
    elif source and source != b"local://":
        with open(source.decode(), "rb") as file:
            pool = _pool_of(file.read())
    # TensorFlow's own messages have another package here.
    for known in (name, name.replace("tensorflow.", "tensorfleet.", 1)):
        try:
            return pool.FindMessageTypeByName(known)
        except KeyError:
            continue
    raise errors.invalid(f"No descriptor found for message type {name}")


def _pool_of(data: bytes) -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool

    files = descriptor_pb2.FileDescriptorSet()
    try:
        files.ParseFromString(data)
    except Exception as e:
        raise errors.invalid(f"Failed to load descriptor pool: no FileDescriptorSet ({e})") from e
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    return pool


def field_of(message: Any, name: str, dtype: dtypes.DType) -> Any:
    """A field by its name, whose values an array of a type can hold."""
    field = message.fields_by_name.get(name)
    if field is None and name.startswith("[") and name.endswith("]"):
        field = message.file.pool.FindExtensionByName(name[1:-1])
    if field is None:
        raise errors.invalid(f"Unknown field: {name} in message type {message.full_name}")
    if dtype.name not in {dtypes.as_dtype(t).name for t in _TYPES[field.type][2]}:
        raise errors.invalid(f"Unexpected output type for {field.full_name}: {field.type} to {dtype.name}")
    return field


def is_repeated(field: Any) -> bool:
    """Whether a field has any number of values."""
    repeated = getattr(field, "is_repeated", None)  # older versions of protobuf have a label instead
    return bool(field.label == _REPEATED if repeated is None else repeated)


def default_of(field: Any) -> Any:
    """What stands for a value that is not there."""
    if field.type in (F.TYPE_MESSAGE, F.TYPE_GROUP):
        return b""
    if is_repeated(field):
        return b"" if field.type in (F.TYPE_STRING, F.TYPE_BYTES) else 0
    value = field.default_value
    return value.encode() if isinstance(value, str) else value


# -- in -------------------------------------------------------------------------------------------------


def parsed(data: bytes, fields: dict[int, Any]) -> dict[int, list[Any]]:
    """The values of some fields of a message, by their numbers."""
    result: dict[int, list[Any]] = {number: [] for number in fields}
    for number, kind, value in _records(data):
        field = fields.get(number)
        if field is None:
            continue
        wanted, packing, _ = _TYPES[field.type]
        if kind == _BYTES and wanted not in (_BYTES, _START):
            values = list(_unpacked(value, wanted, packing, field.type))
        elif kind != wanted:
            continue  # as another version of the message would have it
        else:
            values = [_read(value, packing, field.type)]
        result[number] = [*result[number], *values] if is_repeated(field) else values[-1:]
    return result


def _records(data: bytes) -> Iterator[tuple[int, int, Any]]:
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        number, kind = tag >> 3, tag & 7
        value, at = _value(data, at, kind, number)
        yield number, kind, value


def _value(data: bytes, at: int, kind: int, number: int) -> tuple[Any, int]:
    if kind == _VARINT:
        return read_varint(data, at)
    if kind in (_EIGHT, _FOUR):
        end = at + (8 if kind == _EIGHT else 4)
    elif kind == _BYTES:
        size, at = read_varint(data, at)
        end = at + size
    elif kind == _START:
        return _group(data, at, number)
    else:
        raise ValueError(f"wire type {kind}")
    if end > len(data):
        raise ValueError("the message is cut off")
    return data[at:end], end


def _group(data: bytes, at: int, number: int) -> tuple[bytes, int]:
    start = at
    while True:
        before = at
        tag, at = read_varint(data, at)
        if tag == number << 3 | _END:
            return data[start:before], at
        _, at = _value(data, at, tag & 7, tag >> 3)


def _unpacked(data: bytes, kind: int, packing: str, field_type: int) -> Iterator[Any]:
    at = 0
    while at < len(data):
        value, at = _value(data, at, kind, 0)
        yield _read(value, packing, field_type)


def _read(value: Any, packing: str, field_type: int) -> Any:
    if packing:
        return struct.unpack(packing, value)[0]
    if field_type in _ZIGZAG:
        return value >> 1 ^ -(value & 1)
    if field_type in _SIGNED and value >= 1 << 63:
        return value - (1 << 64)
    return bool(value) if field_type == F.TYPE_BOOL else value


# -- out ------------------------------------------------------------------------------------------------


def written(field: Any, values: Array) -> bytes:
    """A field with its values, as it is in a message."""
    kind, packing, _ = _TYPES[field.type]
    if field.type == F.TYPE_GROUP:
        return b"".join(_tag(field, _START) + bytes(v) + _tag(field, _END) for v in values)
    texts = [_written_value(v, kind, packing, field.type) for v in values.tolist()]
    if texts and _packed(field):
        body = b"".join(texts)
        return _tag(field, _BYTES) + write_varint(len(body)) + body
    return b"".join(_tag(field, kind) + text for text in texts)


def _packed(field: Any) -> bool:
    options = field.GetOptions()
    if not is_repeated(field) or _TYPES[field.type][0] in (_BYTES, _START):
        return False
    return options.packed if options.HasField("packed") else _syntax(field.file) == "proto3"


def _syntax(file: Any) -> str:
    from google.protobuf import descriptor_pb2

    written = descriptor_pb2.FileDescriptorProto()
    file.CopyToProto(written)
    return written.syntax


def _tag(field: Any, kind: int) -> bytes:
    return write_varint(field.number << 3 | kind)


def _written_value(value: Any, kind: int, packing: str, field_type: int) -> bytes:
    if packing:
        return struct.pack(packing, value)
    if kind == _BYTES:
        data = value.encode() if isinstance(value, str) else bytes(value)
        return write_varint(len(data)) + data
    number = int(value)
    if field_type in _ZIGZAG:
        number = number << 1 ^ number >> 63
    return write_varint(number & (1 << 64) - 1)
