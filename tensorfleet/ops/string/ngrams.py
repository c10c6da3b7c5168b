"""Strings as rows of their bytes, characters or n-grams."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.arguments import function, signature_of
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.types import Array, TensorLike
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.common import vector_of
from tensorfleet.ops.ragged.functions import convert_to_tensor_or_ragged_tensor
from tensorfleet.ops.ragged.ragged_tensor import RaggedTensor
from tensorfleet.ops.samples import case
from tensorfleet.ops.string.elements import invalid


def _on_vector(texts: TensorLike, function: Callable[[Tensor], RaggedTensor]) -> RaggedTensor | Tensor:
    """Applies a function of a vector, which gives ragged rows, to a tensor of any rank; a scalar gets the only row."""
    tensor = convert_to_tensor_or_ragged_tensor(texts, dtypes.string)
    if isinstance(tensor, RaggedTensor):
        return tensor.with_flat_values(_on_vector(tensor.flat_values, function))
    rank = tensor.shape.rank
    if rank is None:
        raise ValueError("Rank of `input` must be statically known.")
    if rank == 1:
        return function(tensor)
    if rank == 0:
        row: Tensor = function(apply("Reshape", tensor, [1])).values
        return row
    result = function(apply("Reshape", tensor, [-1]))
    for axis in range(rank - 1, 0, -1):
        whole = shape_of(tensor, out_type=dtypes.int64)
        rows = apply("Prod", whole[:axis], [0])
        lengths = apply("Fill", apply("Reshape", rows, [1]), whole[axis])
        result = RaggedTensor.from_row_lengths(result, lengths, validate=False)
    return result


@export("strings.bytes_split")
def string_bytes_split(input: TensorLike, name: str | None = None) -> Any:
    """The bytes of strings: a vector for one string, a ragged tensor for more."""
    with name_scope(name, "StringsByteSplit", [input]):

        def split(texts: Tensor) -> RaggedTensor:
            indices, values, shape = apply_list("StringSplit", texts, "", skip_empty=True)
            return RaggedTensor.from_value_rowids(values, indices[:, 0], shape[0], validate=False)

        return _on_vector(input, split)


# -- characters --------------------------------------------------------------------------------------


#: The characters of strings: rows, or a vector for one string.
Characters: TypeAlias = RaggedTensor | Tensor


def _characters(
    texts: TensorLike, name: str | None, default: str, split: bool, offsets: bool, **attrs: Any
) -> Characters | tuple[Characters, Characters]:
    """The characters (as strings if `split`, else as numbers), and with `offsets` where they begin."""
    with name_scope(name, default, [texts] if isinstance(texts, Tensor) else None):
        characters = _on_vector(texts, lambda v: _decoded(v, split, **attrs)[0])
        if not offsets:
            return characters
        return characters, _on_vector(texts, lambda v: _decoded(v, False, **attrs)[1])


def _decoded(vector: Tensor, split: bool, **attrs: Any) -> tuple[RaggedTensor, RaggedTensor]:
    splits, numbers, starts = apply_list("UnicodeDecodeWithOffsets", vector, **attrs)
    characters = numbers
    if split:
        count = apply("Size", numbers, out_type=dtypes.int64)
        characters = apply(
            "UnicodeEncode",
            numbers,
            apply("Range", 0, count + np.int64(1), 1, Tidx=dtypes.int64),
            output_encoding=attrs["input_encoding"],
            errors=attrs["errors"],
            replacement_char=attrs["replacement_char"],
        )
    return RaggedTensor._of(characters, splits), RaggedTensor._of(starts, splits)


def _unicode(
    public: str, kind: str, does: str, split: bool = False, offsets: bool = False
) -> Callable[..., Any]:
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


@op(
    "StringNGrams",
    "data: string[1], data_splits: Tsplits[1] -> ngrams: string, ngrams_splits: Tsplits",
    "separator: string; ngram_widths: list(int); left_pad: string; right_pad: string; pad_width: int; "
    "preserve_short_sequences: bool; Tsplits: index = int64",
    shape=lambda op: [vector_of(None), op._inputs[1].shape.with_rank(1)],
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
    ctx: HostContext,
    data: Array,
    splits: Array,
    *,
    separator: bytes,
    ngram_widths: list[int],
    left_pad: bytes,
    right_pad: bytes,
    pad_width: int,
    preserve_short_sequences: bool,
    Tsplits: DType,
) -> tuple[Array, Array]:
    bounds, words = np.asarray(splits).tolist(), data.tolist()
    for at, (a, b) in enumerate(itertools.pairwise([0, *bounds])):
        if not a <= b <= len(words) or (at == 0 and b):
            raise invalid(f"Invalid split value {b}, must be in [{a}, {len(words)}]")
    grams: list[bytes] = []
    ends = [0]
    for a, b in itertools.pairwise(bounds):
        row = words[a:b]
        of_row: list[bytes] = []
        for width in ngram_widths:
            pad = min(pad_width if pad_width >= 0 else width - 1, width - 1)
            padded = [left_pad] * pad + row + [right_pad] * pad
            of_row += [separator.join(padded[i : i + width]) for i in range(len(padded) - width + 1)]
        if preserve_short_sequences and not of_row and row:
            pad = max(pad_width, 0)
            of_row = [separator.join([left_pad] * pad + row + [right_pad] * pad)]
        grams += of_row
        ends.append(len(grams))
    return np.fromiter(grams, object, len(grams)), np.array(ends, Tsplits.np_dtype)


not_differentiable("StringNGrams")


@export("strings.ngrams")
def ngrams(
    data: TensorLike,
    ngram_width: int | Sequence[int],
    separator: str = " ",
    pad_values: str | bytes | tuple[str | bytes, str | bytes] | None = None,
    padding_width: int | None = None,
    preserve_short_sequences: bool = False,
    name: str | None = None,
) -> Any:
    """Each `ngram_width` neighbours along the last dimension joined; `pad_values` stand at the ends."""
    widths: list[Any] = list(ngram_width) if isinstance(ngram_width, (list, tuple)) else [ngram_width]
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
