"""Values in strings: raw bytes, tensors and Examples in other forms."""

from __future__ import annotations

import math
import re
import zlib

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.errors import DataLossError, InvalidArgumentError
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, DTypeLike, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.graph.tensor_proto import array_of, parsed, serialized
from tensorfleet.kernels.example_wire import objects
from tensorfleet.kernels.packed_strings import Strings, together
from tensorfleet.kernels.string_buffers import Buffer
from tensorfleet.ops.common import SCALAR, UNKNOWN, same_as_input, static_scalar
from tensorfleet.ops.samples import case

_C_NAMES = {"float32": "float", "float64": "double", "float16": "half"}


def c_name(dtype: DType) -> str:
    """The name of a type in TensorFlow's messages."""
    return _C_NAMES.get(dtype.name, dtype.name)


def invalid(text: str) -> InvalidArgumentError:
    """The error for a string that cannot be decoded."""
    return InvalidArgumentError(None, None, text)


def flat(value: Strings | Array) -> list[bytes]:
    """Strings of any shape as a list."""
    return np.asarray(value, object).ravel().tolist()


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
def _decode_raw(ctx: HostContext, text: Strings | Array, *, out_type: DType, little_endian: bool) -> Array:
    return raw_values(text, out_type, little_endian)


def raw_values(text: Strings | Array, out_type: DType, little_endian: bool) -> Array:
    """The numbers in strings of equal length."""
    shape, size = np.shape(text), out_type.np_dtype.itemsize
    if not math.prod(shape):
        return np.zeros((*shape, 0), out_type.np_dtype)
    many = together(text)
    buffer = Buffer.of(flat(text)) if many is None else many.buffer
    length = int(buffer.lengths[0])
    if (buffer.lengths != length).any():
        at = int(np.argmax(buffer.lengths != length))
        raise invalid(
            f"DecodeRaw requires input strings to all be the same size, but element {at} has size {length} != "
            f"{buffer.lengths[at]}"
        )
    if length % size:
        raise invalid(
            f"Input to DecodeRaw has length {length} that is not a multiple of {size}, the size of {c_name(out_type)}"
        )
    if not length:
        return np.zeros((*shape, 0), out_type.np_dtype)
    rows = buffer.rows(length).reshape(*shape, length)
    if size > 1:
        rows = np.ascontiguousarray(rows).view(out_type.np_dtype)
    elif out_type.np_dtype != np.uint8:
        rows = rows.view(out_type.np_dtype)
    return rows if little_endian or size == 1 else _swapped(rows)


def _swapped(values: Array) -> Array:
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
def _decode_padded_raw(
    ctx: HostContext, text: Array, length: Array, *, out_type: DType, little_endian: bool
) -> Array:
    wanted, size = int(length), out_type.np_dtype.itemsize
    if wanted <= 0:
        raise invalid(f"fixed_length must be greater than 0, got {wanted}")
    if wanted % size:
        raise invalid(f"fixed_length ({wanted}) must be a multiple of the size of out_type ({size})")
    if not np.size(text):
        return np.zeros((*np.shape(text), wanted // size), out_type.np_dtype)
    padded = objects([s[:wanted].ljust(wanted, b"\0") for s in flat(text)]).reshape(np.shape(text))
    return raw_values(padded, out_type, little_endian)


@export("io.decode_raw", "decode_raw", "python.ops.parsing_ops.decode_raw_v1")
def decode_raw(
    input_bytes: TensorLike = None,
    out_type: DTypeLike | None = None,
    little_endian: bool = True,
    name: str | None = None,
    bytes: TensorLike = None,
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
    input_bytes: TensorLike,
    out_type: DTypeLike,
    little_endian: bool = True,
    fixed_length: TensorLike = None,
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
def _decode_compressed(ctx: HostContext, text: Array, *, compression_type: bytes) -> Array:
    if compression_type not in (b"", b"ZLIB", b"GZIP"):
        raise invalid("Only ZLIB, GZIP or NONE are supported compressions")
    if not compression_type:
        return text
    window = zlib.MAX_WBITS + (16 if compression_type == b"GZIP" else 0)
    try:
        return objects([zlib.decompress(s, window) for s in flat(text)]).reshape(np.shape(text))
    except zlib.error as e:
        match = re.match(r"Error (-?\d+) while decompressing data: (.*)", str(e))
        code, what = match.groups() if match else ("-3", str(e))  # -3: invalid data
        raise DataLossError(None, None, f"inflate() failed with error {code}: {what}") from None


@export("io.decode_compressed", "decode_compressed")
def decode_compressed(bytes: TensorLike, compression_type: str = "", name: str | None = None) -> Tensor:
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
def _decode_json_example(ctx: HostContext, text: Array) -> Array:
    from google.protobuf import json_format

    from tensorfleet.base.protos import Example

    messages = []
    for line in flat(text):
        try:
            messages.append(json_format.Parse(line, Example()).SerializeToString())
        except (json_format.ParseError, UnicodeDecodeError) as e:
            raise invalid(f"Error while parsing JSON: {e}") from None
    return objects(messages).reshape(np.shape(text))


@export("io.decode_json_example", "decode_json_example")
def decode_json_example(json_examples: TensorLike, name: str | None = None) -> Tensor:
    """Turns `tf.train.Example` messages written as JSON into serialized ones."""
    return apply("DecodeJSONExample", json_examples, name=name)


@op(
    "ParseTensor",
    "serialized: string -> output: out_type",
    "out_type: type",
    shape=lambda op: UNKNOWN,
    host=True,
)
def _parse_tensor(ctx: HostContext, text: Array, *, out_type: DType) -> Array:
    from google.protobuf.message import DecodeError

    if np.ndim(text):
        raise invalid(f"Expected `serialized` to be a scalar, got shape: {list(np.shape(text))}")
    data = flat(text)[0]
    try:
        proto, content = parsed(data)
    except DecodeError:
        shown = repr(data[:80])[2:-1]
        raise invalid(f"Could not parse `serialized` as TensorProto: '{shown}'") from None
    stored = dtypes.as_dtype(proto.dtype) if proto.dtype else None
    if stored != out_type:
        name = c_name(stored) if stored is not None else "INVALID"
        raise invalid(f"Type mismatch between parsed tensor ({name}) and dtype ({c_name(out_type)})")
    try:
        return array_of(proto, content)
    except (ValueError, TypeError) as e:
        raise invalid(f"Cannot parse tensor from proto: {e}") from None


@export("io.parse_tensor", "parse_tensor")
def parse_tensor(serialized: TensorLike, out_type: DTypeLike, name: str | None = None) -> Tensor:
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
def _serialize_tensor(ctx: HostContext, value: Array, *, T: DType) -> Array:
    out = np.empty((), object)
    out[()] = serialized(np.asarray(value), T)
    return out


@export("io.serialize_tensor", "serialize_tensor")
def serialize_tensor(tensor: TensorLike, name: str | None = None) -> Tensor:
    """A tensor as a serialized `TensorProto`, in a string."""
    return apply("SerializeTensor", tensor, name=name)


not_differentiable("DecodeRaw", "DecodePaddedRaw", "DecodeCompressed", "DecodeJSONExample")
not_differentiable("ParseTensor", "SerializeTensor")
