"""Values in strings: CSV lines, raw bytes, tensors and Examples in other forms."""

from __future__ import annotations

import math
import re
import zlib
from itertools import pairwise
from typing import Any

import numpy as np

from tensorfleet import dtypes
from tensorfleet.api import export
from tensorfleet.dtypes import DType
from tensorfleet.errors import DataLossError, InvalidArgumentError
from tensorfleet.graph.apply import apply
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.graph.tensor_proto import array_of, parsed, serialized
from tensorfleet.ops.common import SCALAR, UNKNOWN, same_as_input, static_scalar
from tensorfleet.ops.examples import case
from tensorfleet.ops.packed_strings import together
from tensorfleet.ops.parsing_wire import objects
from tensorfleet.ops.string_buffers import MANY, ZEROS, Buffer, decimals
from tensorfleet.shapes import TensorShape

_C_NAMES = {"float32": "float", "float64": "double", "float16": "half"}


def _c_name(dtype: DType) -> str:
    return _C_NAMES.get(dtype.name, dtype.name)


def _invalid(text: str) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, text)


def _flat(value: Any) -> list[bytes]:
    return np.asarray(value, object).ravel().tolist()


# -- CSV ---------------------------------------------------------------------------------------------


def _csv_shapes(op: Operation) -> list[TensorShape]:
    for t in op._inputs[1:]:
        if t.shape.rank is not None and t.shape.rank > 1:
            raise ValueError(f"Shape must be at most rank 1 but is rank {t.shape.rank}")
        if t.shape.rank == 1 and (t.shape.as_list()[0] or 0) > 1:
            raise ValueError("Shape of a default must be a length-0 or length-1 vector, or a scalar.")
    return [op._inputs[0].shape] * len(op._outputs)


@op(
    "DecodeCSV",
    "records: string, record_defaults: list(OUT_TYPE) -> output: list(OUT_TYPE)",
    "OUT_TYPE: list({float, double, int32, int64, string}); field_delim: string = ','; "
    "use_quote_delim: bool = true; na_value: string = ''; select_cols: list(int) = []",
    shape=_csv_shapes,
    host=True,
    examples=[
        case(
            np.array([b"1,2.5,x", b'3,,"a,b"'], object),
            [np.array([0], np.int32), np.array([1], np.float32), np.array([b""], object)],
        )
    ],
)
def _decode_csv(
    ctx: Any,
    records: Any,
    defaults: list,
    *,
    OUT_TYPE: list[DType],
    field_delim: bytes,
    use_quote_delim: bool,
    na_value: bytes,
    select_cols: list[int],
) -> tuple:
    if len(field_delim) != 1:
        raise _invalid("field_delim should be only 1 char")
    given = list(zip(OUT_TYPE, map(np.asarray, defaults), strict=True))
    table = csv_table(_flat(records), given, field_delim, use_quote_delim, select_cols, na_value)
    return tuple(column.reshape(np.shape(records)) for column in table)


def csv_table(
    lines: list[bytes], given: list[tuple], delimiter: bytes, quotes: bool, selected: list[int], na: bytes
) -> list[np.ndarray]:
    """The columns of CSV lines as values, each of a type and with a default."""
    width = len(given)
    buffer = None if selected or na or len(lines) * width < MANY else _fields(lines, width, delimiter)
    found, columns = [], None
    for i, (dtype, default) in enumerate(given):
        if buffer is not None and dtype.name != "string":
            made, unread = decimals(buffer.some(slice(i, None, width)), dtype.np_dtype)
            if not len(unread):
                found.append(made)
                continue
        if columns is None:
            columns = _csv_columns(lines, width, delimiter, quotes, selected)
        found.append(_csv_column(i, columns[i], dtype, default, na))
    return found


def _fields(lines: list[bytes], width: int, delimiter: bytes) -> Buffer | None:
    """All fields of lines, one behind the other; None when some are quoted, or some lines have too few or too many."""
    text = b"\n".join([*lines, ZEROS])
    if b'"' in text or b"\r" in text or text.count(b"\n") != len(lines):
        return None
    data = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero((data == ord(delimiter)) | (data == ord("\n")))
    if len(ends) != len(lines) * width or (data[ends[width - 1 :: width]] != ord("\n")).any():
        return None
    starts = np.append(0, ends[:-1] + 1)
    return Buffer(data, starts, ends - starts)


def _csv_columns(
    lines: list[bytes], width: int, delimiter: bytes, quotes: bool, selected: list[int]
) -> list[list[bytes]]:
    """The fields of CSV lines, by column."""
    text = b"\n".join(lines)
    plain = not quotes or not (b'"' in text or b"\r" in text or text.count(b"\n") != max(len(lines) - 1, 0))
    rows = [line.split(delimiter) for line in lines] if plain else [_split(line, delimiter) for line in lines]
    wanted = width
    if selected:
        rows = [[row[i] for i in selected if i < len(row)] for row in rows]
        wanted = len(selected)
    for i, row in enumerate(rows):
        if len(row) != wanted or not lines[i]:
            have = len(row) if lines[i] else 0
            raise _invalid(f"Expect {wanted} fields but have {have} in record {i}")
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(wanted)]


def _split(line: bytes, delimiter: bytes) -> list[bytes]:
    """One line with quoted fields. A field in quotes may hold anything; quotes inside are doubled."""
    fields: list[bytes] = []
    at, end = 0, len(line)
    while True:
        if line[at : at + 1] == b'"':
            stop, parts = at + 1, []
            while True:
                quote = line.find(b'"', stop)
                if quote < 0:
                    raise _invalid("Quoted field has to end with quote followed by delim or end")
                parts.append(line[stop:quote])
                if line[quote + 1 : quote + 2] != b'"':
                    break
                stop = quote + 2
            at = quote + 1
            if at < end and line[at : at + 1] != delimiter:
                raise _invalid("Quote inside a string has to be escaped by another quote")
            fields.append(b'"'.join(parts))
        else:
            stop = line.find(delimiter, at)
            field = line[at : stop if stop >= 0 else end]
            if b'"' in field or b"\n" in field or b"\r" in field:
                raise _invalid("Unquoted fields cannot have quotes/CRLFs inside")
            fields.append(field)
            at += len(field)
        if at >= end:
            return fields
        at += 1
        if at == end:
            return [*fields, b""]


def _csv_column(i: int, column: list[bytes], dtype: DType, default: np.ndarray, na: bytes) -> np.ndarray:
    """The fields of column `i` as values; the default where they are empty or `na`."""
    absent = [r for r, field in enumerate(column) if not field or field == na] if b"" in column or na else []
    if absent:
        if not default.size:
            raise _invalid(f"Field {i} is required but missing in record {absent[0]}!")
        column = list(column)
        for r in absent:
            column[r] = b"0"
    if dtype.name == "string":
        made = objects(column)
    else:
        made = _numbers(i, column, dtype)
    if absent:
        made[absent] = default.ravel()[0]
    return made


_HEX = re.compile(rb"\s*([+-]?)0[xX][0-9a-fA-F]+\s*")


def _numbers(i: int, column: list[bytes], dtype: DType) -> np.ndarray:
    whole = dtype.is_integer
    read: Any = int if whole else float
    try:
        if b"_" not in b"".join(column):
            if not whole:
                with np.errstate(over="ignore"):
                    return np.fromiter(map(float, column), np.float64, len(column)).astype(dtype.np_dtype)
            return np.fromiter(map(int, column), dtype.np_dtype, len(column))
    except (ValueError, OverflowError):
        pass
    out = np.empty(len(column), dtype.np_dtype)
    for r, field in enumerate(column):
        try:
            if b"_" in field:
                raise ValueError
            out[r] = float.fromhex(field.decode()) if not whole and _HEX.fullmatch(field) else read(field)
        except (ValueError, OverflowError):
            told = field.decode(errors="replace")
            raise _invalid(f"Field {i} in record {r} is not a valid {_c_name(dtype)}: {told}") from None
    return out


@export("io.decode_csv", "decode_csv")
def decode_csv(
    records: Any,
    record_defaults: Any,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    name: str | None = None,
    na_value: str = "",
    select_cols: Any = None,
) -> list[Tensor]:
    """The columns of CSV lines.

    `record_defaults` has one entry per column: its type, and the value of empty fields; an empty list of a
    type (`tf.constant([], tf.float32)`) makes the field required.
    """
    if not isinstance(record_defaults, (list, tuple)):
        raise TypeError(
            f"Expected list for 'record_defaults' argument to 'DecodeCSV' Op, not {record_defaults}."
        )
    if select_cols is not None:
        if any(b <= a for a, b in pairwise(select_cols)):
            raise ValueError("select_cols is not strictly increasing.")
        if select_cols and select_cols[0] < 0:
            raise ValueError("select_cols contains negative values.")
        if len(select_cols) != len(record_defaults):
            raise ValueError("Length of select_cols and record_defaults do not match.")
    return apply(
        "DecodeCSV",
        records,
        [_default_of(d) for d in record_defaults],
        field_delim=field_delim,
        use_quote_delim=use_quote_delim,
        na_value=na_value,
        select_cols=select_cols,
        name=name,
    )


def _default_of(value: Any) -> Any:
    """A type stands for a required field of that type."""
    if isinstance(value, DType):
        return np.zeros(0, value.np_dtype)
    return value


# -- bytes -------------------------------------------------------------------------------------------

_RAW = (
    "{half, float, double, int32, uint16, uint8, int16, int8, int64, complex64, complex128, bool, bfloat16}"
)


@op(
    "DecodeRaw",
    "bytes: string -> output: out_type",
    f"out_type: {_RAW}; little_endian: bool = true",
    shape=lambda op: op._inputs[0].shape.concatenate(TensorShape([None])),
    host=True,
    packed=True,
    examples=[
        case(np.array([b"abcd", b"efgh"], object), out_type=dtypes.int32),
        case(np.array(b"\0\1", object), out_type=dtypes.int16, little_endian=False),
    ],
)
def _decode_raw(ctx: Any, text: Any, *, out_type: DType, little_endian: bool) -> Any:
    return raw_values(text, out_type, little_endian)


def raw_values(text: Any, out_type: DType, little_endian: bool) -> np.ndarray:
    """The numbers that strings of equal length hold."""
    shape, size = np.shape(text), out_type.np_dtype.itemsize
    if not math.prod(shape):
        return np.zeros((*shape, 0), out_type.np_dtype)
    many = together(text)
    buffer = Buffer.of(_flat(text)) if many is None else many.buffer
    length = int(buffer.lengths[0])
    if (buffer.lengths != length).any():
        at = int(np.argmax(buffer.lengths != length))
        raise _invalid(
            f"DecodeRaw requires input strings to all be the same size, but element {at} has size {length} != "
            f"{buffer.lengths[at]}"
        )
    if length % size:
        raise _invalid(
            f"Input to DecodeRaw has length {length} that is not a multiple of {size}, the size of {_c_name(out_type)}"
        )
    if not length:
        return np.zeros((*shape, 0), out_type.np_dtype)
    made = buffer.rows(length).reshape(*shape, length)
    if size > 1:
        made = np.ascontiguousarray(made).view(out_type.np_dtype)
    elif out_type.np_dtype != np.uint8:
        made = made.view(out_type.np_dtype)
    return made if little_endian or size == 1 else _swapped(made)


def _swapped(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind == "V" or values.dtype.name == "bfloat16":
        return values.view(np.uint16).byteswap().view(values.dtype)
    return values.byteswap()


def _padded_shape(op: Operation) -> TensorShape:
    length = static_scalar(op, 1)
    number = None if length is None else length // op._attrs["out_type"].size
    return op._inputs[0].shape.concatenate(TensorShape([number]))


@op(
    "DecodePaddedRaw",
    "input_bytes: string, fixed_length: int32 -> output: out_type",
    "out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, bfloat16}; little_endian: bool = true",
    shape=_padded_shape,
    host=True,
    examples=[case(np.array([b"ab", b"efgh"], object), np.int32(4), out_type=dtypes.int16)],
)
def _decode_padded_raw(ctx: Any, text: Any, length: Any, *, out_type: DType, little_endian: bool) -> Any:
    wanted, size = int(length), out_type.np_dtype.itemsize
    if wanted <= 0:
        raise _invalid(f"fixed_length must be greater than 0, got {wanted}")
    if wanted % size:
        raise _invalid(f"fixed_length ({wanted}) must be a multiple of the size of out_type ({size})")
    if not np.size(text):
        return np.zeros((*np.shape(text), wanted // size), out_type.np_dtype)
    padded = objects([s[:wanted].ljust(wanted, b"\0") for s in _flat(text)]).reshape(np.shape(text))
    return raw_values(padded, out_type, little_endian)


@export("io.decode_raw", "decode_raw", "python.ops.parsing_ops.decode_raw_v1")
def decode_raw(
    input_bytes: Any = None,
    out_type: Any = None,
    little_endian: bool = True,
    name: str | None = None,
    bytes: Any = None,
) -> Tensor:
    """Reads the bytes of strings, all of the same length, as numbers of type `out_type`."""
    if bytes is not None:
        if input_bytes is not None:
            raise ValueError("Cannot specify both 'bytes' and 'input_bytes'.")
        input_bytes = bytes
    if out_type is None:
        raise ValueError("decode_raw_v1() missing 1 positional argument: 'out_type'")
    return apply("DecodeRaw", input_bytes, out_type=out_type, little_endian=little_endian, name=name)


@export("python.ops.parsing_ops.decode_raw")
def decode_raw_padded(
    input_bytes: Any,
    out_type: Any,
    little_endian: bool = True,
    fixed_length: Any = None,
    name: str | None = None,
) -> Tensor:
    """As `tf.decode_raw`; with `fixed_length`, strings are cut or filled with zeros to so many bytes."""
    if fixed_length is None:
        return decode_raw(input_bytes, out_type, little_endian, name)
    kind = {"out_type": out_type, "little_endian": little_endian}
    return apply("DecodePaddedRaw", input_bytes, fixed_length, name=name, **kind)


@op(
    "DecodeCompressed",
    "bytes: string -> output: string",
    "compression_type: string = ''",
    shape=same_as_input,
    host=True,
    examples=[case(np.array([zlib.compress(b"hello")], object), compression_type=b"ZLIB")],
)
def _decode_compressed(ctx: Any, text: Any, *, compression_type: bytes) -> Any:
    if compression_type not in (b"", b"ZLIB", b"GZIP"):
        raise _invalid("Only ZLIB, GZIP or NONE are supported compressions")
    if not compression_type:
        return text
    window = zlib.MAX_WBITS + (16 if compression_type == b"GZIP" else 0)
    try:
        return objects([zlib.decompress(s, window) for s in _flat(text)]).reshape(np.shape(text))
    except zlib.error as e:
        told = re.match(r"Error (-?\d+) while decompressing data: (.*)", str(e))
        code, what = told.groups() if told else ("-3", str(e))
        raise DataLossError(None, None, f"inflate() failed with error {code}: {what}") from None


@export("io.decode_compressed", "decode_compressed")
def decode_compressed(bytes: Any, compression_type: str = "", name: str | None = None) -> Tensor:
    """Unpacks strings that were packed with "ZLIB" or "GZIP"."""
    return apply("DecodeCompressed", bytes, compression_type=compression_type, name=name)


# -- other forms of messages -------------------------------------------------------------------------


@op(
    "DecodeJSONExample",
    "json_examples: string -> binary_examples: string",
    shape=same_as_input,
    host=True,
    examples=[case(np.array([b'{"features": {"feature": {"a": {"int64List": {"value": ["1"]}}}}}'], object))],
)
def _decode_json_example(ctx: Any, text: Any) -> Any:
    from google.protobuf import json_format

    from tensorfleet.protos import Example

    found = []
    for line in _flat(text):
        try:
            found.append(json_format.Parse(line, Example()).SerializeToString())
        except (json_format.ParseError, UnicodeDecodeError) as e:
            raise _invalid(f"Error while parsing JSON: {e}") from None
    return objects(found).reshape(np.shape(text))


@export("io.decode_json_example", "decode_json_example")
def decode_json_example(json_examples: Any, name: str | None = None) -> Tensor:
    """Turns `tf.train.Example` messages written as JSON into serialized ones."""
    return apply("DecodeJSONExample", json_examples, name=name)


@op(
    "ParseTensor",
    "serialized: string -> output: out_type",
    "out_type: type",
    shape=lambda op: UNKNOWN,
    host=True,
)
def _parse_tensor(ctx: Any, text: Any, *, out_type: DType) -> Any:
    from google.protobuf.message import DecodeError

    if np.ndim(text):
        raise _invalid(f"Expected `serialized` to be a scalar, got shape: {list(np.shape(text))}")
    data = _flat(text)[0]
    try:
        proto, content = parsed(data)
    except DecodeError:
        shown = repr(data[:80])[2:-1]
        raise _invalid(f"Could not parse `serialized` as TensorProto: '{shown}'") from None
    stored = dtypes.as_dtype(proto.dtype) if proto.dtype else None
    if stored != out_type:
        told = _c_name(stored) if stored is not None else "INVALID"
        raise _invalid(f"Type mismatch between parsed tensor ({told}) and dtype ({_c_name(out_type)})")
    try:
        return array_of(proto, content)
    except (ValueError, TypeError) as e:
        raise _invalid(f"Cannot parse tensor from proto: {e}") from None


@export("io.parse_tensor", "parse_tensor")
def parse_tensor(serialized: Any, out_type: Any, name: str | None = None) -> Tensor:
    """The tensor that `tf.serialize_tensor` put into a string."""
    return apply("ParseTensor", serialized, out_type=out_type, name=name)


@op(
    "SerializeTensor",
    "tensor: T -> serialized: string",
    "T: type",
    shape=lambda op: SCALAR,
    host=True,
    examples=[case(np.array([[1, 2]], np.float32))],
)
def _serialize_tensor(ctx: Any, value: Any, *, T: DType) -> Any:
    out = np.empty((), object)
    out[()] = serialized(np.asarray(value), T)
    return out


@export("io.serialize_tensor", "serialize_tensor")
def serialize_tensor(tensor: Any, name: str | None = None) -> Tensor:
    """A tensor as a serialized `TensorProto`, in a string."""
    return apply("SerializeTensor", tensor, name=name)


not_differentiable("DecodeCSV", "DecodeRaw", "DecodePaddedRaw", "DecodeCompressed", "DecodeJSONExample")
not_differentiable("ParseTensor", "SerializeTensor")
