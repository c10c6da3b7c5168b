"""Strings as rows of their bytes, characters or n-grams."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.arguments import function, signature_of
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.common import vector_of
from tensorfleet.ops.ragged.functions import convert_to_tensor_or_ragged_tensor
from tensorfleet.ops.ragged.ragged_tensor import RaggedTensor
from tensorfleet.ops.samples import case
from tensorfleet.ops.string.elements import invalid


def _on_vector(texts: Any, function: Any) -> Any:
    """`function` of a vector gives ragged rows; of other shapes, rows in that shape, or the only row."""
    tensor = convert_to_tensor_or_ragged_tensor(texts, dtypes.string)
    if isinstance(tensor, RaggedTensor):
        return tensor.with_flat_values(_on_vector(tensor.flat_values, function))
    rank = tensor.shape.rank
    if rank is None:
        raise ValueError("Rank of `input` must be statically known.")
    if rank == 1:
        return function(tensor)
    if rank == 0:
        return function(apply("Reshape", tensor, [1])).values
    made = function(apply("Reshape", tensor, [-1]))
    for axis in range(rank - 1, 0, -1):
        whole = shape_of(tensor, out_type=dtypes.int64)
        rows = apply("Prod", whole[:axis], [0])
        lengths = apply("Fill", apply("Reshape", rows, [1]), whole[axis])
        made = RaggedTensor.from_row_lengths(made, lengths, validate=False)
    return made


@export("strings.bytes_split")
def string_bytes_split(input: Any, name: str | None = None) -> Any:
    """The bytes of strings: a vector for one string, a ragged tensor for more."""
    with name_scope(name, "StringsByteSplit", [input]):

        def split(texts: Tensor) -> RaggedTensor:
            indices, values, shape = apply_list("StringSplit", texts, "", skip_empty=True)
            return RaggedTensor.from_value_rowids(values, indices[:, 0], shape[0], validate=False)

        return _on_vector(input, split)


# -- characters --------------------------------------------------------------------------------------


def _characters(texts: Any, name: str | None, default: str, split: bool, offsets: bool, **attrs: Any) -> Any:
    """The characters (as strings if `split`, else as numbers), and with `offsets` where they begin."""
    with name_scope(name, default, [texts] if isinstance(texts, Tensor) else None):
        found = _on_vector(texts, lambda vector: _decoded(vector, split, **attrs)[0])
        return (found, _on_vector(texts, lambda v: _decoded(v, False, **attrs)[1])) if offsets else found


def _decoded(vector: Tensor, split: bool, **attrs: Any) -> tuple[RaggedTensor, RaggedTensor]:
    splits, numbers, starts = apply_list("UnicodeDecodeWithOffsets", vector, **attrs)
    found = numbers
    if split:
        count = apply("Size", numbers, out_type=dtypes.int64)
        found = apply(
            "UnicodeEncode",
            numbers,
            apply("Range", 0, count + np.int64(1), 1, Tidx=dtypes.int64),
            output_encoding=attrs["input_encoding"],
            errors=attrs["errors"],
            replacement_char=attrs["replacement_char"],
        )
    return RaggedTensor._of(found, splits), RaggedTensor._of(starts, splits)


def _unicode(public: str, kind: str, does: str, split: bool = False, offsets: bool = False) -> Callable:
    control = "" if split else "replace_control_characters=False, "
    signature = signature_of(
        f"input, input_encoding, errors='replace', replacement_char=65533, {control}name=None"
    )

    def body(given: dict[str, Any]) -> Any:
        return _characters(given.pop("input"), given.pop("name"), kind, split, offsets, **given)

    return export(f"strings.{public}")(function(signature, public, body, does))


unicode_decode = _unicode(
    "unicode_decode",
    "UnicodeDecode",
    "The numbers of the characters of strings: a vector for one string, a ragged tensor for more.",
)
unicode_decode_with_offsets = _unicode(
    "unicode_decode_with_offsets",
    "UnicodeDecodeWithOffsets",
    "The numbers of the characters of strings, and at which byte each begins.",
    offsets=True,
)
unicode_split = _unicode(
    "unicode_split",
    "UnicodeSplit",
    "The characters of strings, each a string: a vector for one string, a ragged tensor for more.",
    split=True,
)
unicode_split_with_offsets = _unicode(
    "unicode_split_with_offsets",
    "UnicodeSplitWithOffsets",
    "The characters of strings, each a string, and at which byte each begins.",
    split=True,
    offsets=True,
)


# -- n-grams -----------------------------------------------------------------------------------------


def _ngrams_shape(op: Operation) -> list[TensorShape]:
    return [vector_of(None), op._inputs[1].shape.with_rank(1)]


@op(
    "StringNGrams",
    "data: string[1], data_splits: Tsplits[1] -> ngrams: string, ngrams_splits: Tsplits",
    "separator: string; ngram_widths: list(int); left_pad: string; right_pad: string; pad_width: int; "
    "preserve_short_sequences: bool; Tsplits: index = int64",
    shape=_ngrams_shape,
    host=True,
    examples=[
        case(
            np.array([b"a", b"b", b"c", b"d"], object),
            np.array([0, 3, 4]),
            separator=b"-",
            ngram_widths=[2, 1],
            left_pad=b"<",
            right_pad=b">",
            pad_width=pad,
            preserve_short_sequences=pad == 0,
        )
        for pad in (0, -1)
    ],
)
def _ngrams(
    ctx: Any,
    data: Any,
    splits: Any,
    *,
    separator: bytes,
    ngram_widths: list,
    left_pad: bytes,
    right_pad: bytes,
    pad_width: int,
    preserve_short_sequences: bool,
    Tsplits: DType,
) -> tuple:
    bounds, words = np.asarray(splits).tolist(), data.tolist()
    for at, (a, b) in enumerate(itertools.pairwise([0, *bounds])):
        if not a <= b <= len(words) or (at == 0 and b):
            raise invalid(f"Invalid split value {b}, must be in [{a}, {len(words)}]")
    made: list[bytes] = []
    ends = [0]
    for a, b in itertools.pairwise(bounds):
        row = words[a:b]
        found: list[bytes] = []
        for width in ngram_widths:
            pad = min(pad_width if pad_width >= 0 else width - 1, width - 1)
            padded = [left_pad] * pad + row + [right_pad] * pad
            found += [separator.join(padded[i : i + width]) for i in range(len(padded) - width + 1)]
        if preserve_short_sequences and not found and row:
            pad = max(pad_width, 0)
            found = [separator.join([left_pad] * pad + row + [right_pad] * pad)]
        made += found
        ends.append(len(made))
    grams = np.empty(len(made), object)
    grams[:] = made
    return grams, np.array(ends, Tsplits.np_dtype)


not_differentiable("StringNGrams")


@export("strings.ngrams")
def ngrams(
    data: Any,
    ngram_width: Any,
    separator: Any = " ",
    pad_values: Any = None,
    padding_width: Any = None,
    preserve_short_sequences: bool = False,
    name: str | None = None,
) -> Any:
    """Each `ngram_width` neighbours along the last dimension joined; `pad_values` stand at the ends."""
    widths = list(ngram_width) if isinstance(ngram_width, (list, tuple)) else [ngram_width]
    if not all(isinstance(w, int) for w in widths):
        raise TypeError(f"ngram_width must be an integer or list of integers. Got {ngram_width}")
    if any(w < 1 for w in widths):
        raise ValueError(f"All ngram_widths must be greater than 0. Got {ngram_width}")
    if padding_width is not None and padding_width < 0:
        raise ValueError(f"padding_width must be greater than 0. Got {padding_width}")
    pads = (pad_values, pad_values) if isinstance(pad_values, (str, bytes)) else pad_values
    if pads is None and padding_width is not None:
        raise ValueError("pad_values must be provided if padding_width is set.")
    pad = 0 if pads is None else -1 if padding_width is None else padding_width
    with name_scope(name, "StringNGrams", [data] if isinstance(data, Tensor) else None):
        source = data if isinstance(data, RaggedTensor) else to_tensor(data, dtypes.string, name="data")
        rows = source if isinstance(source, RaggedTensor) else _as_rows(source)
        outer = rows.nested_row_splits
        grams, splits = apply_list(
            "StringNGrams",
            rows.flat_values,
            outer[-1],
            separator=separator,
            ngram_widths=widths,
            left_pad=pads[0] if pads else "",
            right_pad=pads[1] if pads else "",
            pad_width=pad,
            preserve_short_sequences=preserve_short_sequences,
        )
        if isinstance(source, RaggedTensor):
            return RaggedTensor.from_nested_row_splits(grams, [*outer[:-1], splits], validate=False)
        whole = shape_of(source, out_type=dtypes.int64)[:-1]
        return apply("Reshape", grams, apply("ConcatV2", [whole, np.array([-1])], 0))


def _as_rows(dense: Tensor) -> RaggedTensor:
    """The last dimension of a dense tensor as rows."""
    flat = apply(
        "Reshape", dense, apply("ConcatV2", [np.array([-1]), shape_of(dense, out_type="int64")[-1:]], 0)
    )
    return RaggedTensor.from_tensor(flat)
