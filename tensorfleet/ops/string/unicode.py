"""Text between encodings, and between strings and the numbers of their characters."""

from __future__ import annotations

import codecs
import functools
import itertools
from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.common import same_as_input, vector_of
from tensorfleet.ops.public_functions import op_function
from tensorfleet.ops.ragged.ragged_tensor import RaggedTensor
from tensorfleet.ops.samples import case
from tensorfleet.ops.string.elements import each, invalid

_POLICY = "replacement_char: int = 65533; replace_control_characters: bool = false"
_ERRORS = "errors: string(strict|replace|ignore) = replace"
_OUTPUTS = "string(UTF-8|UTF-16-BE|UTF-32-BE)"
_CODECS = {b"UTF-8": "utf-8", b"UTF-16-BE": "utf-16-be", b"UTF-32-BE": "utf-32-be"}
_MARKED = ("utf-16", "utf-32")  # a mark in front may say the order of their bytes
_TEXTS = np.array(["hé日".encode(), b"a\xffb", b"", b"c\x01"], object)


class _Decoder:
    """Turns the bytes of an encoding into numbers of characters, and replaces or drops invalid ones."""

    def __init__(self, encoding: bytes, errors: bytes, replacement: int, control: bool) -> None:
        try:
            self.codec = codecs.lookup(encoding.decode()).name
        except LookupError:
            raise invalid(f"Could not create converter for input encoding: {encoding.decode()}") from None
        if not 0 <= replacement <= 0x10FFFF:
            raise invalid("replacement_char out of unicode codepoint range")
        self.errors, self.replacement, self.control = errors, replacement, control

    def characters(self, text: bytes) -> list[tuple[int, int]]:
        """(number, position of its first byte) of each character."""
        if self.codec in _MARKED:
            return self._marked(text)
        characters, position = [], 0
        while position < len(text):
            rest = text[position:]
            try:
                whole, bad, length = rest.decode(self.codec), 0, len(rest)
            except UnicodeDecodeError as e:
                whole, bad, length = rest[: e.start].decode(self.codec), e.end - e.start, e.start
            at = position
            for c in whole:
                characters.append((self._checked(ord(c)), at))
                at += len(c.encode(self.codec))
            if bad:
                if self.errors == b"strict":
                    raise invalid("Invalid formatting on input string")
                if self.errors == b"replace":
                    characters.append((self.replacement, position + length))
            position += length + bad
        return [(c, at) for c, at in characters if c >= 0]

    def _marked(self, text: bytes) -> list[tuple[int, int]]:
        """The characters of an encoding with a byte order mark; without the mark the high byte is first."""
        order = next(
            (end for end in ("le", "be") if text.startswith("\ufeff".encode(f"{self.codec}-{end}"))), ""
        )
        plain = _Decoder(
            f"{self.codec}-{order or 'be'}".encode(), self.errors, self.replacement, self.control
        )
        return plain.characters(text)[1 if order else 0 :]

    def _checked(self, number: int) -> int:
        if not self.control or not (number < 32 or 127 <= number < 160):
            return number
        if self.errors == b"strict":
            raise invalid("Invalid formatting on input string")
        return self.replacement if self.errors == b"replace" else -1


@op(
    "UnicodeTranscode",
    "input: string -> output: string",
    f"input_encoding: string; output_encoding: {_OUTPUTS}; {_ERRORS}; {_POLICY}",
    shape=same_as_input,
    host=True,
    examples=[
        case(_TEXTS, input_encoding=b"UTF-8", output_encoding=b"UTF-16-BE"),
        case(_TEXTS, input_encoding=b"UTF-8", output_encoding=b"UTF-8", errors=b"ignore"),
        case(_TEXTS, input_encoding=b"UTF-8", output_encoding=b"UTF-8", replace_control_characters=True),
    ],
)
def _transcode(
    ctx: HostContext,
    texts: Array,
    *,
    input_encoding: bytes,
    output_encoding: bytes,
    errors: bytes,
    replacement_char: int,
    replace_control_characters: bool,
) -> Array:
    decoder = _Decoder(input_encoding, errors, replacement_char, replace_control_characters)
    codec = _CODECS[output_encoding]

    def transcoded(s: bytes) -> bytes:
        if not decoder.control and decoder.codec not in _MARKED:
            try:
                return s.decode(decoder.codec).encode(codec)
            except UnicodeError:
                pass  # then character by character
        return "".join(chr(c) for c, _ in decoder.characters(s)).encode(codec)

    return each(transcoded, texts)


unicode_transcode = op_function(
    "UnicodeTranscode",
    "input, input_encoding, output_encoding, errors='replace', replacement_char=65533, "
    "replace_control_characters=False, name=None",
    "strings.unicode_transcode",
    """Strings from one encoding in another.

    Bytes that are no characters are replaced, ignored, or with `errors="strict"` refused.
    """,
)


def _decoded_shapes(op: Operation) -> list[TensorShape]:
    count = op._inputs[0].shape.num_elements()
    return [vector_of(None if count is None else count + 1), vector_of(None), vector_of(None)][
        : len(op._outputs)
    ]


def _decoded_plain(texts: list[bytes]) -> tuple[Array, Array, Array] | None:
    """All texts at once, when all of them are UTF-8 without an error."""
    data = b"".join(texts)
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    begins = np.cumsum(lengths) - lengths
    starts = np.frombuffer(data, np.uint8) & 0xC0 != 0x80
    try:
        whole = data.decode()
    except UnicodeDecodeError:
        return None
    if not starts[begins[lengths > 0]].all():  # two texts with an error each may join to a valid one
        return None
    before = np.concatenate([[0], np.cumsum(starts)])
    ends = before[np.concatenate([[0], begins + lengths])]
    numbers = np.frombuffer(whole.encode("utf-32-le"), "<u4").astype(np.int32)
    return ends, numbers, np.flatnonzero(starts) - np.repeat(begins, np.diff(ends))


def _decoded(texts: Array, decoder: _Decoder, splits: DType) -> tuple[Array, Array, Array]:
    flat_texts = np.asarray(texts, object).ravel().tolist()
    if decoder.codec == "utf-8" and not decoder.control and (plain := _decoded_plain(flat_texts)) is not None:
        return plain[0].astype(splits.np_dtype), *plain[1:]
    rows = [decoder.characters(s) for s in flat_texts]
    ends = np.cumsum([0, *(len(r) for r in rows)]).astype(splits.np_dtype)
    flat = np.array([pair for r in rows for pair in r], np.int64).reshape(-1, 2)
    return ends, flat[:, 0].astype(np.int32), flat[:, 1]


_DECODE = f"input_encoding: string; {_ERRORS}; {_POLICY}; Tsplits: index = int64"


@op(
    "UnicodeDecodeWithOffsets",
    "input: string -> row_splits: Tsplits, char_values: int32, char_to_byte_starts: int64",
    _DECODE,
    shape=_decoded_shapes,
    host=True,
    examples=[case(_TEXTS, input_encoding=b"UTF-8"), case(_TEXTS, input_encoding=b"UTF-8", errors=b"ignore")],
)
def _decode_with_offsets(
    ctx: HostContext,
    texts: Array,
    *,
    input_encoding: bytes,
    errors: bytes,
    replacement_char: int,
    replace_control_characters: bool,
    Tsplits: DType,
) -> tuple[Array, Array, Array]:
    decoder = _Decoder(input_encoding, errors, replacement_char, replace_control_characters)
    return _decoded(texts, decoder, Tsplits)


@functools.wraps(_decode_with_offsets)
def _decode(*args: Any, **attrs: Any) -> tuple[Array, Array]:
    splits, numbers, _ = _decode_with_offsets(*args, **attrs)
    return splits, numbers


op(
    "UnicodeDecode",
    "input: string -> row_splits: Tsplits, char_values: int32",
    _DECODE,
    shape=_decoded_shapes,
    host=True,
    examples=[case(_TEXTS, input_encoding=b"UTF-8"), case(_TEXTS[0], input_encoding=b"UTF-8")],
)(_decode)


@op(
    "UnicodeEncode",
    "input_values: int32[1], input_splits: Tsplits[1] -> output: string",
    f"errors: string(ignore|replace|strict) = replace; output_encoding: {_OUTPUTS}; replacement_char: int = 65533; "
    "Tsplits: index = int64",
    shape=lambda op: vector_of(None if (count := op._inputs[1].shape.num_elements()) is None else count - 1),
    host=True,
    examples=[
        case(np.array([104, 233, 0x65E5], np.int32), np.array([0, 2, 3]), output_encoding=b"UTF-8"),
        case(np.array([0xD800, 104], np.int32), np.array([0, 2]), output_encoding=b"UTF-16-BE"),
    ],
)
def _encode(
    ctx: HostContext,
    values: Array,
    splits: Array,
    *,
    errors: bytes,
    output_encoding: bytes,
    replacement_char: int,
) -> Array:
    bounds = np.asarray(splits).tolist()
    result = np.empty(len(bounds) - 1, object)
    for i, (a, b) in enumerate(itertools.pairwise(bounds)):
        result[i] = _encoded(values[a:b].tolist(), errors, output_encoding, replacement_char)
    return result


def _encoded(numbers: list[int], errors: bytes, encoding: bytes, replacement: int) -> bytes:
    text = []
    for number in numbers:
        if 0 <= number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF:
            text.append(chr(number))
        elif errors == b"strict":
            raise invalid("Code point is out of range for Unicode, or is a surrogate.")
        elif errors == b"replace":
            text.append(chr(replacement))
    return "".join(text).encode(_CODECS[encoding])


not_differentiable("UnicodeTranscode", "UnicodeDecode", "UnicodeDecodeWithOffsets", "UnicodeEncode")


@export("strings.unicode_encode")
def unicode_encode(
    input: TensorLike,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    name: str | None = None,
) -> Any:
    """The strings that rows of numbers of characters spell; the last dimension is the row."""

    def encoded(numbers: RaggedTensor | Tensor, splits: Tensor) -> Tensor:
        attrs = {"errors": errors, "output_encoding": output_encoding, "replacement_char": replacement_char}
        return apply("UnicodeEncode", numbers, splits, name=None, **attrs)

    with name_scope(name, "UnicodeEncode", [input]):
        if isinstance(input, RaggedTensor) and (input.flat_values.shape.rank or 1) > 1:
            inner = unicode_encode(input.flat_values, output_encoding, errors, replacement_char)
            return input.with_flat_values(inner)
        if isinstance(input, RaggedTensor) and input.ragged_rank == 1:
            return encoded(input.values, input.row_splits)
        if isinstance(input, RaggedTensor):
            inner = unicode_encode(input.values, output_encoding, errors, replacement_char)
            return input.with_values(inner)
        numbers = to_tensor(input, dtypes.int32)
        if numbers.shape.rank is None:
            raise ValueError("Rank of input_tensor must be statically known.")
        if numbers.shape.rank == 0:
            raise ValueError("input_tensor's rank must be at least 1.")
        whole = shape_of(numbers, out_type=dtypes.int64)
        flat = apply("Reshape", numbers, [-1])
        size = apply("Size", flat, out_type=dtypes.int64)
        splits = apply(
            "Range", 0, size + np.int64(1), apply("Maximum", whole[-1], np.int64(1)), Tidx=dtypes.int64
        )
        return apply("Reshape", encoded(flat, splits), whole[:-1])
