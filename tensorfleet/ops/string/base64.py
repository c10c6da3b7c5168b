"""Strings in the base64 that is safe in URLs, and back."""

from __future__ import annotations

import binascii
import string

import numpy as np

from tensorfleet.base.naming import export
from tensorfleet.base.types import Array, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.kernels.packed_strings import Strings, strings_in, together
from tensorfleet.kernels.string_buffers import Buffer, parts
from tensorfleet.ops.common import same_as_input
from tensorfleet.ops.samples import case
from tensorfleet.ops.string.elements import each, invalid

_TEXTS = np.array([[b"", b"a", b"\0b"], [b"\xff\xfe?", b"four", b"letters"]], object)
_LETTERS = (string.ascii_uppercase + string.ascii_lowercase + string.digits + "-_").encode()
_TO_URL, _FROM_URL = bytes.maketrans(b"+/", b"-_"), bytes.maketrans(b"-_", b"+/")
_NO_LETTER = 255
# From so many strings on, all are coded at once; below, `binascii` for each is faster.
_MIN_PACKED = 1024
_SIX_BITS = bytes(_LETTERS.find(i) & _NO_LETTER for i in range(256))


@op(
    "EncodeBase64",
    "input: string -> output: string",
    "pad: bool = false",
    shape=same_as_input,
    host=True,
    packed=True,
    examples=[case(_TEXTS, pad=True), case(_TEXTS), case(np.zeros((0, 2), object), pad=True)],
)
def _encode(ctx: HostContext, strings: Strings | Array, *, pad: bool) -> Strings | Array:
    many = together(strings, _MIN_PACKED)
    columns = None if many is None else many.columns()
    if many is None or columns is None:
        return each(lambda s: _encoded(s, pad), strings)
    return strings_in(_encoded_together(columns, many.lengths, pad), many.shape)


def _encoded(s: bytes, pad: bool) -> bytes:
    encoded = binascii.b2a_base64(s, newline=False).translate(_TO_URL)
    return encoded if pad else encoded.rstrip(b"=")


def _encoded_together(columns: Array, lengths: Array, pad: bool) -> Buffer:
    """Three words of all strings after the other: six bytes each become eight letters."""
    count, width = len(lengths), -(-len(columns) // 3)
    groups = np.zeros((count + 1, 4 * width), np.uint64)
    letters = groups.view(np.uint8)
    for places, some in parts(lengths):
        encoded = groups[places][: len(some)]
        for i in range(width):
            words = columns[3 * i : 3 * i + 3, places]
            for j in range(len(words) + 1):
                encoded[:, 4 * i + j] = _spread(_six_bytes(words, j))
        _to_letters(encoded.view(np.uint8))
    kept = (4 * lengths + 2) // 3
    starts = np.arange(0, 32 * width * count, 32 * width)
    if pad:
        for missing in (1, 2):
            rows = np.flatnonzero(-lengths % 3 >= missing)
            letters.reshape(-1)[starts[rows] + kept[rows] + (missing - 1)] = ord("=")
        kept += -lengths % 3
    return Buffer(letters.reshape(-1), starts, kept)


def _six_bytes(words: Array, part: int) -> Array:
    """The first, second, third or fourth six bytes of three words; words that are not there are zero."""
    result: Array = words[part] << np.uint64(16 * part) if part < len(words) else np.zeros_like(words[0])
    if part:
        result |= words[part - 1] >> np.uint64(64 - 16 * part)
    return result


# Three bytes lie in the lower part of a half word: the mask of each run of bits, and by how much it moves up.
_BITS = [(0x3, 12), (0xFC, -2), (0xF00, 10), (0xF000, -4), (0x3F0000, 8), (0xC00000, -6)]


def _both(mask: int) -> np.uint64:
    """A mask of either half of a word."""
    return np.uint64(mask << 32 | mask)


def _spread(six: Array) -> Array:
    """Eight times six bits out of the lower six bytes of each word, a byte for each."""
    halves = (six & np.uint64(0xFFFFFF000000)) << np.uint64(8)
    halves |= six & np.uint64(0xFFFFFF)
    return _moved(halves, _BITS)


def _moved(words: Array, moves: list[tuple[int, int]]) -> Array:
    result = np.zeros_like(words)
    for mask, by in moves:
        part = words & _both(mask)
        if by > 0:
            part <<= np.uint64(by)
        else:
            part >>= np.uint64(-by)
        result |= part
    return result


def _to_letters(values: Array) -> None:
    """Numbers below 64 become the letters of base64, in place."""
    # The letters are five runs of ASCII: A-Z, a-z, 0-9, "-" and "_". Each step leads from one run to the next.
    above = [values > limit for limit in (25, 51, 61, 62)]
    values += np.uint8(ord("A"))
    for more, step in zip(above, (6, 256 - 75, 256 - 13, 49), strict=True):
        values += more * np.uint8(step)


@op(
    "DecodeBase64",
    "input: string -> output: string",
    shape=same_as_input,
    host=True,
    packed=True,
    examples=[case(np.array([b"YQ", b"YWI=", b"", b"__79"], object))],
)
def _decode(ctx: HostContext, strings: Strings | Array) -> Strings | Array:
    many = together(strings, _MIN_PACKED)
    columns = None if many is None else many.columns()
    decoded = None if many is None or columns is None else _decoded_together(columns, many.lengths)
    return each(_decoded, strings) if decoded is None or many is None else strings_in(decoded, many.shape)


def _decoded_together(columns: Array, lengths: Array) -> Buffer | None:
    """The decoded strings, if none has padding or a wrong letter; else None."""
    if (lengths & 3 == 1).any():
        return None
    letters = np.frombuffer(columns.tobytes().translate(_SIX_BITS), np.uint8)
    outside = letters == _NO_LETTER
    # The bytes behind the ends are no letters either: any other such byte is padding, or wrong.
    if np.count_nonzero(outside) != letters.size - lengths.sum():
        return None
    bits = (letters * ~outside).view(np.uint64).reshape(columns.shape)
    count, width = len(lengths), -(-3 * len(columns) // 4)
    words = np.zeros((count + 1, width), np.uint64)
    for i, row in enumerate(bits):
        six = _gathered(row)
        at, over = divmod(48 * i, 64)
        words[:count, at] |= six << np.uint64(over)
        if over > 16:
            words[:count, at + 1] |= six >> np.uint64(64 - over)
    starts = np.arange(0, 8 * width * count, 8 * width)
    return Buffer(
        np.append(words.reshape(-1), np.zeros(2, np.uint64)).view(np.uint8), starts, lengths * 3 // 4
    )


def _gathered(letters: Array) -> Array:
    """The six bits in each byte of a word, in its lower six bytes."""
    halves = _moved(letters, [(mask << by if by > 0 else mask >> -by, -by) for mask, by in _BITS])
    return halves & np.uint64(0xFFFFFF) | halves >> np.uint64(8) & np.uint64(0xFFFFFF000000)


def _decoded(s: bytes) -> bytes:
    body = s[:-2] if s.endswith(b"==") else s[:-1] if s.endswith(b"=") else s
    if body.translate(None, _LETTERS) or (len(s) != len(body) and len(s) % 4):
        raise invalid("Invalid character found in base64.")
    if len(body) % 4 == 1:
        raise invalid("Base64 string length cannot be 1 modulo 4.")
    try:
        return binascii.a2b_base64(body.translate(_FROM_URL) + b"=" * (-len(body) % 4))
    except binascii.Error:
        raise invalid("Invalid character found in base64.") from None


@export("io.encode_base64", "encode_base64")
def encode_base64(input: TensorLike, pad: bool = False, name: str | None = None) -> Tensor:
    """Strings in the base64 that is safe in URLs, with `=` at the end if `pad`."""
    return apply("EncodeBase64", input, pad=pad, name=name)


@export("io.decode_base64", "decode_base64")
def decode_base64(input: TensorLike, name: str | None = None) -> Tensor:
    """The strings that URL-safe base64 stands for, with or without padding."""
    return apply("DecodeBase64", input, name=name)


not_differentiable("EncodeBase64", "DecodeBase64")
