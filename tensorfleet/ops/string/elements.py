"""Strings element by element: their lengths, parts, cases, and to and from numbers.

A string tensor is an array of `bytes`. Functions that count in characters read them as UTF-8.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.errors import InvalidArgumentError
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape, broadcast_shape
from tensorfleet.base.types import Array, DTypeLike, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.kernel_types import HostContext, Kernel
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.kernels.packed_strings import Strings, strings_in, together
from tensorfleet.kernels.string_buffers import MANY, Buffer, decimals, objects_of, spelled
from tensorfleet.ops.common import same_as_input
from tensorfleet.ops.elementwise import bracketed
from tensorfleet.ops.public_functions import op_function
from tensorfleet.ops.samples import case

_WORDS = np.array([[b" Hello ", b""], ["日本é".encode(), b"\xffZ"]], object)
_NONE = np.zeros((0, 2), object)
# From so many strings on, packing them and cutting out all parts at once is faster than slicing each `bytes`.
_MIN_PACKED_PARTS = 2048
# A part of at most so many bytes is copied as one fixed-size NumPy element.
_MAX_PART_BYTES = 64
_UNIT = "unit: string(BYTE|UTF8_CHAR) = BYTE"


def invalid(message: str) -> Exception:
    """The error that a kernel raises for a string that it does not take."""
    return InvalidArgumentError(None, None, message)


def each(
    function: Callable[[bytes], Any], strings: Strings | Array, dtype: np.dtype[Any] | type = object
) -> Array:
    """An array of `function` of every string."""
    array = np.asarray(strings, object)
    return np.fromiter(map(function, array.ravel().tolist()), dtype, array.size).reshape(array.shape)


def _elementwise(
    name: str, attrs: str = "", output: str = "string", **example: Any
) -> Callable[[Kernel], Kernel]:
    return op(
        name,
        f"input: string -> output: {output}",
        attrs,
        shape=same_as_input,
        host=True,
        packed=True,
        examples=[case(_WORDS, **example), case(_NONE, **example), case(np.array(b"aB", object), **example)],
    )


# -- whitespace, case, length ------------------------------------------------------------------------


@_elementwise("StringStrip")
def _strip(ctx: HostContext, strings: Strings | Array) -> Array:
    return each(bytes.strip, strings)


@export("strings.strip", "string_strip")
def string_strip(input: TensorLike, name: str | None = None) -> Tensor:
    """Strings without the whitespace at their ends."""
    return apply("StringStrip", input, name=name)


def _cased(
    strings: Strings | Array,
    encoding: bytes,
    of_bytes: Callable[[bytes], bytes],
    of_text: Callable[[str], str],
) -> Array:
    if encoding not in (b"", b"utf-8"):
        raise invalid(f"only utf-8 or '' (no encoding) is supported, received {encoding.decode()}")
    if not encoding:
        return each(of_bytes, strings)

    def cased(s: bytes) -> bytes:
        return of_bytes(s) if s.isascii() else of_text(s.decode(errors="replace")).encode()

    return each(cased, strings)


@_elementwise("StringLower", "encoding: string = ''")
def _lower(ctx: HostContext, strings: Strings | Array, *, encoding: bytes) -> Array:
    return _cased(strings, encoding, bytes.lower, str.lower)


@_elementwise("StringUpper", "encoding: string = ''", encoding=b"utf-8")
def _upper(ctx: HostContext, strings: Strings | Array, *, encoding: bytes) -> Array:
    return _cased(strings, encoding, bytes.upper, str.upper)


@export("strings.lower")
def string_lower(input: TensorLike, encoding: str = "", name: str | None = None) -> Tensor:
    """Strings in lower case: ASCII letters only, or all with `encoding="utf-8"`."""
    return apply("StringLower", input, encoding=encoding, name=name)


@export("strings.upper")
def string_upper(input: TensorLike, encoding: str = "", name: str | None = None) -> Tensor:
    """Strings in upper case: ASCII letters only, or all with `encoding="utf-8"`."""
    return apply("StringUpper", input, encoding=encoding, name=name)


def _character_starts(s: bytes) -> list[int]:
    """Where the characters of a UTF-8 string begin; any byte that continues none begins one."""
    return [i for i, b in enumerate(s) if b & 0xC0 != 0x80]


@_elementwise("StringLength", _UNIT, "int32", unit=b"UTF8_CHAR")
def _length(ctx: HostContext, strings: Strings | Array, *, unit: bytes) -> Array:
    many = together(strings)
    if many is None:
        return each(len if unit == b"BYTE" else lambda s: len(_character_starts(s)), strings, np.int32)
    lengths = many.lengths if unit == b"BYTE" else _characters_in(many.buffer)
    return lengths.astype(np.int32).reshape(many.shape)


def _characters_in(buffer: Buffer) -> Array:
    """How many characters each string has: its bytes but those that continue a character."""
    letters = buffer.data.view(np.int8) >= -64  # bytes that continue a UTF-8 character are 0x80 to 0xBF
    if letters.all():
        return buffer.lengths
    before = np.append(0, np.cumsum(letters, dtype=np.int32))
    counts: Array = before[buffer.starts + buffer.lengths] - before[buffer.starts]
    return counts


@export("strings.length")
def string_length(input: TensorLike, name: str | None = None, unit: str = "BYTE") -> Tensor:
    """How long each string is, in bytes or with `unit="UTF8_CHAR"` in characters."""
    return apply("StringLength", input, unit=unit, name=name)


# -- parts -------------------------------------------------------------------------------------------


def _part_shape(op: Operation) -> TensorShape:
    text, pos, length = (t.shape for t in op._inputs)
    if pos.rank is not None and length.rank is not None and pos.rank != length.rank:
        raise ValueError(f"Shape must be rank {length.rank} but is rank {pos.rank}")
    if not pos.is_compatible_with(length):
        raise ValueError(
            f"pos and len shapes must match: {bracketed(pos.as_list())} vs. {bracketed(length.as_list())}"
        )
    return broadcast_shape(text, pos.merge_with(length))


@op(
    "Substr",
    "input: string, pos: T, len: T -> output: string",
    f"T: index; {_UNIT}",
    shape=_part_shape,
    host=True,
    packed=True,
    examples=[
        case(np.array([b"hello", b"world"], object), np.array([1, -3], np.int32), np.array([2, 9], np.int32)),
        case(np.array("日本é".encode(), object), np.array(1), np.array(1), unit=b"UTF8_CHAR"),
        case(np.array(b"hello", object), np.array([0, 5]), np.array([1, 1])),
    ],
)
def _substr(
    ctx: HostContext, strings: Strings | Array, pos: Array, length: Array, *, unit: bytes
) -> Strings | Array:
    if np.shape(pos) != np.shape(length):
        raise invalid(f"pos and len should have the same shape, got: {np.shape(pos)} vs. {np.shape(length)}")
    shape = np.shape(strings)
    if np.shape(pos) not in ((), shape):
        try:
            shape = np.broadcast_shapes(shape, np.shape(pos))
        except ValueError:
            raise invalid("Input and pos must have shapes that broadcast together") from None
    part = _at_once(strings, pos, length) if unit == b"BYTE" and shape == np.shape(strings) else None
    if part is not None:
        return part
    cut = _bytes_from if unit == b"BYTE" else _characters_from
    arrays = [np.asarray(a) for a in (strings, pos, length)]
    if arrays[1].size == 1:
        texts, start, count = arrays[0].ravel().tolist(), arrays[1].item(), arrays[2].item()
        # No string is too short: a slice for each needs no check. An end of 0 would mean the start, so it is None.
        if unit == b"BYTE" and -(shortest := min(map(len, texts), default=0)) <= start <= shortest:
            end = None if count < 0 or start < 0 <= start + count else start + count
            parts = [text[start:end] for text in texts]
        else:
            parts = [cut(text, start, count, i) for i, text in enumerate(texts)]
    else:
        spread = [a if a.shape == shape else np.broadcast_to(a, shape) for a in arrays]
        rows = zip(*(a.ravel().tolist() for a in spread), itertools.count())
        parts = [cut(*row) for row in rows]
    return np.fromiter(parts, object, len(parts)).reshape(shape)


def _at_once(strings: Strings | Array, pos: Array, length: Array) -> Strings | Array | None:
    """The parts of many strings; None when they are few, or some too short."""
    if isinstance(strings, np.ndarray) and strings.size >= MANY and np.size(pos) == 1:
        parts = _parts_within(strings.ravel(), np.asarray(pos).item(), np.asarray(length).item())
        if parts is not None:
            return parts.reshape(strings.shape)
    many = together(strings, _MIN_PACKED_PARTS)
    return None if many is None else _parts_together(many, pos, length)


def _parts_within(texts: Array, start: int, count: int) -> Array | None:
    """Parts of `count` bytes, read from the objects' memory; None when some string ends before."""
    if not 0 < count <= _MAX_PART_BYTES:
        return None
    result = np.empty(len(texts), object)
    for places, source in Strings.of(texts).sources():
        begin = start if start >= 0 else source.lengths + start
        if np.min(begin) < 0 or (begin + count > source.lengths).any():
            return None
        result[places] = objects_of(source.words(source.starts + begin, f"V{count}"))
    return result


def _parts_together(texts: Strings, pos: Array, length: Array) -> Strings | Array | None:
    """Parts of all strings; None when some are too short."""
    buffer = texts.buffer
    starts, wanted = (
        a.ravel() if a.size == 1 else np.broadcast_to(a, texts.shape).ravel()
        for a in (np.asarray(pos), np.asarray(length))
    )
    begin = np.where(starts < 0, starts + buffer.lengths, starts)
    left = buffer.lengths - begin
    if min(begin.min(), left.min()) < 0:
        return None
    counts = np.where(wanted < 0, left, np.minimum(wanted, left))
    return strings_in(Buffer(buffer.data, buffer.starts + begin, counts), texts.shape)


def _bytes_from(text: bytes, start: int, count: int, at: int) -> bytes:
    if not -len(text) <= start <= len(text):
        raise invalid(f"pos {start} out of range for string {text!r} at index {at}")
    start = start + len(text) if start < 0 else start
    return text[start:] if count < 0 else text[start : start + count]


def _characters_from(text: bytes, start: int, count: int, at: int) -> bytes:
    starts = [*_character_starts(text), len(text)]
    total = len(starts) - 1
    if not -total <= start <= total:
        raise invalid(f"pos {start} out of range for string at index {at}")
    start = start + total if start < 0 else start
    end = total if count < 0 else min(start + count, total)
    return text[starts[start] : starts[end]]


@export("strings.substr", "substr")
def substr(
    input: TensorLike, pos: TensorLike, len: TensorLike, name: str | None = None, unit: str = "BYTE"
) -> Tensor:
    """`len` bytes (or with `unit="UTF8_CHAR"` characters) of each string from `pos`, which may count from the end."""
    return apply("Substr", input, pos, len, unit=unit, name=name)


# -- numbers -----------------------------------------------------------------------------------------

# What is read is not given back: to try fewer digits would take a time that grows with the square of their number.
_FLOAT = re.compile(rb"[+-]?(\d++\.?\d*+([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf(inity)?|nan)", re.IGNORECASE)
_HEX = re.compile(rb"[+-]?0[xX]([0-9a-fA-F]++\.?[0-9a-fA-F]*+|\.[0-9a-fA-F]+)([pP][+-]?\d+)?")
_INTEGER = re.compile(rb"[+-]?\d+")


def _number(s: bytes, dtype: np.dtype[Any]) -> float:
    text = s.strip(b" \t\n\v\f\r")
    if dtype.kind == "f":
        if _FLOAT.fullmatch(text):
            return float(text)
        if _HEX.fullmatch(text):
            return float.fromhex(text.decode())
    elif _INTEGER.fullmatch(text):
        value, limits = int(text), np.iinfo(dtype)
        if limits.min <= value <= limits.max:
            return value
    raise invalid(
        f"StringToNumberOp could not correctly convert string: {s.decode(errors='backslashreplace')}"
    )


def _plain_numbers(texts: Strings | Array, dtype: np.dtype[Any]) -> Array | None:
    """The numbers that strings spell as Python spells them; None when some do not."""
    many = together(texts)
    if many is None:
        return _spelled(np.ravel(texts).tolist(), dtype)
    result, unread = decimals(many.buffer, dtype)
    if len(unread):
        rest = _spelled(many.objects[unread].tolist(), dtype)
        if rest is None:
            return None
        result[unread] = rest
    return result


def _spelled(texts: list[bytes], dtype: np.dtype[Any]) -> Array | None:
    if b"_" in b"".join(texts):  # Python allows underscores between digits, TensorFlow does not
        return None
    try:
        if dtype.kind == "f":
            return np.fromiter(map(float, texts), np.float64, len(texts)).astype(dtype)
        whole = np.fromiter(map(int, texts), np.int64, len(texts))
    except (ValueError, OverflowError):
        return None
    return whole.astype(dtype) if np.array_equal(whole.astype(dtype), whole) else None


@op(
    "StringToNumber",
    "string_tensor: string -> output: out_type",
    "out_type: {float, double, int32, int64, uint32, uint64} = float",
    shape=same_as_input,
    host=True,
    packed=True,
    examples=[
        case(np.array([[b"1.5"], [b" -2e3 "]], object)),
        case(np.array([b"7", b"-8"], object), out_type="int64"),
        case(np.array(b"inf", object), out_type="double"),
    ],
)
def _to_number(ctx: HostContext, strings: Strings | Array, *, out_type: dtypes.DType) -> Array:
    kind = out_type.np_dtype
    with np.errstate(over="ignore"):
        numbers = _plain_numbers(strings, kind)
        if numbers is not None:
            return numbers.reshape(np.shape(strings))
        return each(lambda s: _number(s, kind), strings, kind)


@export("strings.to_number", "string_to_number")
def string_to_number(
    string_tensor: TensorLike = None,
    out_type: DTypeLike = dtypes.float32,
    name: str | None = None,
    input: TensorLike = None,
) -> Tensor:
    """The numbers that strings spell; the run fails at one that spells none."""
    strings = string_tensor if input is None else input
    return apply("StringToNumber", strings, out_type=out_type, name=name)


_TEXTUAL = (
    "{float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, complex64, "
    "complex128, bool, variant, string}"
)


@op(
    "AsString",
    "input: T -> output: string",
    f"T: {_TEXTUAL}; precision: int = -1; scientific: bool = false; shortest: bool = false; width: int = -1; "
    "fill: string = ''",
    shape=same_as_input,
    host=True,
    packed=True,
    examples=[
        case(np.array([[1.5, -2.25]])),
        case(np.array([1.5, 1e20], np.float32), shortest=True),
        case(np.array([1234.5]), scientific=True, precision=2, width=12),
        case(np.array([1, -20], np.int32), width=5, fill=b"0"),
        case(np.array([True, False])),
        case(np.array([1 + 2j], np.complex64)),
    ],
)
def _as_string(
    ctx: HostContext,
    values: Array,
    *,
    precision: int,
    scientific: bool,
    shortest: bool,
    width: int,
    fill: bytes,
) -> Strings | Array:
    array = np.asarray(values)
    kind = array.dtype.kind
    _check_format(array.dtype, precision, scientific, shortest, fill)
    letter = "d" if kind in "iu" else "e" if scientific else "g" if shortest else "f"
    fixed = (str(width) if width >= 0 else "") + (f".{precision}" if precision >= 0 else "")
    template = f"%{fill.decode()}{fixed}{letter}"
    flat = array.ravel()
    if kind in "fV":
        flat = flat.astype(np.float64)
    if (
        template in ("%d", "%f")
        and flat.size >= MANY
        and (buffer := _digits_of(flat, array.dtype)) is not None
    ):
        return strings_in(buffer, array.shape)
    if kind in "iufV":
        # One text for all of them, which is then cut: many times faster than a text for each.
        together = f"{template}\n".encode() * flat.size % tuple(flat.tolist())
        return np.fromiter(together.split(b"\n"), object, flat.size).reshape(array.shape)
    written = np.fromiter((_written(v, template) for v in flat.tolist()), object, flat.size)
    return written.reshape(array.shape)


def _digits_of(flat: Array, dtype: np.dtype[Any]) -> Buffer | None:
    """Whole numbers, or those of at most 24 bits with six digits behind the point; None when some are too large."""
    if dtype.kind in "iu":
        wide = flat.astype(np.uint64) if dtype.kind == "u" else np.abs(flat.astype(np.int64)).view(np.uint64)
        return spelled(wide, flat < 0)
    # 24 bits times a million fit the 53 bits of a double, so the product and its rounding are exact.
    if dtype.itemsize > 4 or not (np.abs(flat) < 1e12).all():
        return None
    return spelled(np.rint(np.abs(flat) * 1e6).astype(np.uint64), np.signbit(flat), 6)


def _written(value: bytes | bool | complex, template: str) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, bool):
        return b"true" if value else b"false"
    return f"({template % value.real},{template % value.imag})".encode()


def _check_format(
    dtype: np.dtype[Any], precision: int, scientific: bool, shortest: bool, fill: bytes
) -> None:
    if len(fill) > 1:
        raise invalid(f"Fill string must be one or fewer characters, got {fill.decode()!r}")
    if fill not in (b"", b" ", b"+", b"-", b"0", b"#"):
        raise invalid(f'Fill argument not supported: "{fill.decode()}"')
    name = dtypes.as_dtype(dtype).name
    if dtype.kind in "iubO":
        if scientific or shortest:
            raise invalid(f"scientific and shortest format not supported for datatype {name}")
        if precision >= 0:
            raise invalid(f"precision not supported for datatype {name}")
    if scientific and shortest:
        raise invalid("Cannot select both scientific and shortest notation")


as_string = op_function(
    "AsString",
    "input, precision=-1, scientific=False, shortest=False, width=-1, fill='', name=None",
    "dtypes.as_string strings.as_string as_string",
    "Numbers spelled out: with `precision` digits behind the point, `width` wide, filled up with `fill`.",
)


not_differentiable("StringStrip", "StringLower", "StringUpper", "StringLength", "Substr")
not_differentiable("StringToNumber", "AsString")
