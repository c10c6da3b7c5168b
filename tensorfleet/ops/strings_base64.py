"""Strings in the base64 that is safe in URLs, and back."""

from __future__ import annotations

import binascii
import string
from typing import Any

import numpy as np

from tensorfleet.api import export
from tensorfleet.graph.apply import apply
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.ops.common import same_as_input
from tensorfleet.ops.examples import case
from tensorfleet.ops.string_buffers import MANY, Buffer, by_length, objects_of, parts
from tensorfleet.ops.strings import each, invalid

_TEXTS = np.array([[b"", b"a", b"\0b"], [b"\xff\xfe?", b"four", b"letters"]], object)
_LETTERS = (string.ascii_uppercase + string.ascii_lowercase + string.digits + "-_").encode()
_TO_URL, _FROM_URL = bytes.maketrans(b"+/", b"-_"), bytes.maketrans(b"-_", b"+/")
_NO_LETTER = 255
_SIX_BITS = bytes(_LETTERS.find(i) & _NO_LETTER for i in range(256))
_LETTER_OF = _LETTERS * 4


@op(
    "EncodeBase64",
    "input: string -> output: string",
    "pad: bool = false",
    shape=same_as_input,
    host=True,
    examples=[case(_TEXTS, pad=True), case(_TEXTS), case(np.zeros((0, 2), object), pad=True)],
)
def _encode(ctx: Any, strings: Any, *, pad: bool) -> Any:
    array = np.asarray(strings, object)
    if array.size < MANY:
        return each(lambda s: _encoded(s, pad), array)
    made = np.empty(array.size, object)
    for places, some in parts(array.ravel()):
        made[places] = _encoded_together(Buffer.of(some), pad)
    return made.reshape(array.shape)


def _encoded(s: bytes, pad: bool) -> bytes:
    made = binascii.b2a_base64(s, newline=False).translate(_TO_URL)
    return made if pad else made.rstrip(b"=")


def _encoded_together(buffer: Buffer, pad: bool) -> np.ndarray:
    made = np.empty(len(buffer.lengths), object)
    for length, rows in by_length(buffer.lengths):
        groups = -(-length // 3)
        table = np.zeros((len(rows), groups, 3), np.uint8)
        table.reshape(len(rows), -1)[:, :length] = buffer.table(rows, length) if length else 0
        a, b, c = (table[..., i].astype(np.uint32) for i in range(3))
        bits = a >> 2 | (a & 3) << 12 | (b & 0xF0) << 4 | (b & 15) << 18 | (c & 0xC0) << 10 | (c & 63) << 24
        letters = np.frombuffer(bytearray(bits.astype("<u4").tobytes().translate(_LETTER_OF)), np.uint8)
        written = letters.reshape(len(rows), 4 * groups)
        kept = 4 * groups if pad else length + groups
        written[:, length + groups :] = ord("=")
        made[rows] = objects_of(written[:, :kept]) if length else b""
    return made


@op(
    "DecodeBase64",
    "input: string -> output: string",
    shape=same_as_input,
    host=True,
    examples=[case(np.array([b"YQ", b"YWI=", b"", b"__79"], object))],
)
def _decode(ctx: Any, strings: Any) -> Any:
    array = np.asarray(strings, object)
    if array.size < MANY:
        return each(_decoded, array)
    made = np.empty(array.size, object)
    for places, some in parts(array.ravel()):
        together = _decoded_together(Buffer.of(some))
        made[places] = each(_decoded, some) if together is None else together
    return made.reshape(array.shape)


def _decoded_together(buffer: Buffer) -> np.ndarray | None:
    """What strings without padding stand for; None when some have it, or are wrong."""
    made = np.empty(len(buffer.lengths), object)
    for length, rows in by_length(buffer.lengths):
        if not length:
            made[rows] = b""
            continue
        if length % 4 == 1:
            return None
        groups = -(-length // 4)
        table = np.full((len(rows), 4 * groups), ord("A"), np.uint8)
        table[:, :length] = buffer.table(rows, length)
        bits = np.frombuffer(table.tobytes().translate(_SIX_BITS), "<u4")
        if (bits.view(np.uint8) == _NO_LETTER).any():
            return None
        whole = (bits & 63) << 26 | (bits & 0x3F00) << 12 | bits >> 2 & 0xFC000 | bits >> 16 & 0x3F00
        plain = whole.astype(">u4").view(np.uint8).reshape(len(rows), groups, 4)[..., :3]
        made[rows] = objects_of(plain.reshape(len(rows), -1)[:, : length * 3 // 4])
    return made


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
def encode_base64(input: Any, pad: bool = False, name: str | None = None) -> Tensor:
    """Strings in the base64 that is safe in URLs, with `=` at the end if `pad`."""
    return apply("EncodeBase64", input, pad=pad, name=name)


@export("io.decode_base64", "decode_base64")
def decode_base64(input: Any, name: str | None = None) -> Tensor:
    """The strings that URL-safe base64 stands for, with or without padding."""
    return apply("DecodeBase64", input, name=name)


not_differentiable("EncodeBase64", "DecodeBase64")
