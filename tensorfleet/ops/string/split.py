"""Strings taken apart at separators, and tensors of strings put together along axes."""

from __future__ import annotations

from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, TensorLike
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.graph.sparse_tensor import SparseTensor
from tensorfleet.kernels.packed_strings import Strings, strings_in, together
from tensorfleet.kernels.string_buffers import WORTH_PACKING, Buffer
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.common import UNKNOWN, check_prefix, static_value
from tensorfleet.ops.elementwise import bracketed
from tensorfleet.ops.ragged.functions import convert_to_tensor_or_ragged_tensor
from tensorfleet.ops.ragged.ragged_tensor import RaggedTensor
from tensorfleet.ops.samples import case
from tensorfleet.ops.sparse.arrange import sparse_reshape, sparse_shapes
from tensorfleet.ops.string.elements import invalid

_TEXTS = np.array([b"a b  c", b"", b" d"], object)
_WHITESPACE = b" \t\n\r\v\f"
_SPACE = np.array(b" ", object)


# -- apart -------------------------------------------------------------------------------------------


def _vector_and_scalar(op: Operation) -> list[TensorShape]:
    for tensor, rank in zip(op._inputs, (1, 0), strict=True):
        if tensor.shape.rank not in (None, rank):
            raise ValueError(f"Shape must be rank {rank} but is rank {tensor.shape.rank}")
    return sparse_shapes(2)


def _check(texts: Strings | Array, separator: Strings | Array, what: str) -> bytes:
    if np.ndim(texts) != 1:
        raise invalid(f"input must be a vector, got shape: {bracketed(np.shape(texts))}")
    if np.ndim(separator):
        raise invalid(f"{what} must be a scalar, got shape: {bracketed(np.shape(separator))}")
    text: bytes = np.asarray(separator, object).item()
    return text


#: A sparse matrix of strings: its indices, values and dense shape.
SparseStrings: TypeAlias = tuple[Array, Strings | Array, Array]


def as_sparse(rows: list[list[bytes]]) -> SparseStrings:
    """The sparse matrix of rows of strings, each row filled from the left."""
    counts = np.fromiter(map(len, rows), np.int64, len(rows))
    return _in_rows(np.fromiter(chain.from_iterable(rows), object, int(counts.sum())), counts)


def _in_rows(values: Strings | Array, counts: Array) -> SparseStrings:
    """The sparse matrix of strings, of which row `i` has the next `counts[i]`."""
    total = len(values)
    indices = np.empty((total, 2), np.int64)
    indices[:, 0] = np.repeat(np.arange(len(counts)), counts)
    indices[:, 1] = np.arange(total)
    indices[:, 1] -= np.repeat(np.cumsum(counts) - counts, counts)
    return indices, values, np.array([len(counts), counts.max(initial=0)], np.int64)


def _cut_at_once(texts: Strings | Array, separators: bytes, empty: bool, whole: bool) -> SparseStrings | None:
    """Cuts many strings at any of the separators; None when they are few, or without separators, or with a zero byte.

    `empty` keeps empty pieces between two separators; `whole` keeps strings that are empty altogether.
    """
    many = together(texts)
    if many is None or not separators or b"\0" in separators:
        return None
    if isinstance(texts, np.ndarray) and len(texts) < WORTH_PACKING:
        return _cut_objects(texts.tolist(), separators, empty, whole)
    return _cut_together(many, separators, empty, whole)


def _cut_objects(texts: list[bytes], separators: bytes, empty: bool, whole: bool) -> SparseStrings | None:
    """Like `_cut_at_once`, of objects into objects; None when a string has a zero byte."""
    data = b"\0".join([*texts, b""])  # a zero byte ends each string
    if data.count(b"\0") != len(texts):
        return None
    pieces = data.translate(bytes.maketrans(separators, bytes(len(separators))))
    ends = np.flatnonzero(np.frombuffer(pieces, np.uint8) == 0)
    values = np.fromiter(pieces.split(b"\0"), object, len(ends))
    rows = np.flatnonzero(np.frombuffer(data, np.uint8)[ends] == 0)  # the last piece of each string
    counts = np.diff(rows, prepend=-1)
    full = np.diff(ends, prepend=-1) > 1
    if empty:
        lengths = np.diff(ends[rows], prepend=-1) - 1
        full[:] = True
        full[rows] = (counts > 1) | (lengths > 0) | whole
    if not full.all():
        values, counts = values[full], np.add.reduceat(full, rows - counts + 1, dtype=np.int64)
    return _in_rows(values, counts)


def _cut_together(texts: Strings, separators: bytes, empty: bool, whole: bool) -> SparseStrings:
    """Like `_cut_at_once`, of strings in a buffer: the pieces are places in the same buffer."""
    buffer = texts.apart()
    cut = buffer.data == separators[0]
    for separator in separators[1:]:
        cut |= buffer.data == separator
    last = buffer.starts + buffer.lengths
    cut[last] = True
    ends = np.flatnonzero(cut)
    rows = _places_of(last, ends)  # the last piece of each string
    counts = np.diff(rows, prepend=-1)
    starts = np.empty_like(ends)
    starts[1:] = ends[:-1]
    starts += 1
    starts[rows - counts + 1] = buffer.starts
    ends -= starts
    full = ends > 0
    if empty:
        full[:] = True
        full[rows] = (counts > 1) | (buffer.lengths > 0) | whole
    if not full.all():
        counts = np.add.reduceat(full, rows - counts + 1, dtype=np.int64)
        starts, ends = starts[full], ends[full]
    return _in_rows(strings_in(Buffer(buffer.data, starts, ends), ends.shape), counts)


def _places_of(some: Array, ordered: Array) -> Array:
    """Where numbers are among others, both in order."""
    marks = np.zeros(int(ordered[-1]) + 1, np.bool_)
    marks[some] = True
    return np.flatnonzero(marks[ordered])


@op(
    "StringSplit",
    "input: string, delimiter: string -> indices: int64, values: string, shape: int64",
    "skip_empty: bool = true",
    shape=_vector_and_scalar,
    host=True,
    packed=True,
    examples=[
        case(_TEXTS, _SPACE),
        case(_TEXTS, _SPACE, skip_empty=False),
        case(_TEXTS, np.array(b"", object)),
        case(np.array([b"1,2;3"], object), np.array(b",;", object)),
        case(np.zeros(0, object), _SPACE),
    ],
)
def _string_split(
    ctx: HostContext, texts: Strings | Array, delimiter: Strings | Array, *, skip_empty: bool
) -> SparseStrings:
    separators = _check(texts, delimiter, "delimiter")
    result = _cut_at_once(texts, separators, not skip_empty, False)
    if result is not None:
        return result
    rows = [_cut(t, separators) if t else [] for t in np.asarray(texts).tolist()]
    return as_sparse([[w for w in r if w] if b"" in r else r for r in rows] if skip_empty else rows)


def _cut(text: bytes, separators: bytes) -> list[bytes]:
    if not separators:
        return [text[i : i + 1] for i in range(len(text))]
    if len(separators) > 1:
        text = text.translate(bytes.maketrans(separators, separators[:1] * len(separators)))
    return text.split(separators[:1])


@op(
    "StringSplitV2",
    "input: string, sep: string -> indices: int64, values: string, shape: int64",
    "maxsplit: int = -1",
    shape=_vector_and_scalar,
    host=True,
    packed=True,
    examples=[
        case(_TEXTS, np.array(b"", object)),
        case(_TEXTS, _SPACE),
        case(_TEXTS, _SPACE, maxsplit=1),
        case(np.array([b"1<>2<><>3"], object), np.array(b"<>", object)),
    ],
)
def _string_split_v2(
    ctx: HostContext, texts: Strings | Array, sep: Strings | Array, *, maxsplit: int
) -> SparseStrings:
    separator = _check(texts, sep, "sep")
    apart = maxsplit == -1 and len(separator) < 2
    result = _cut_at_once(texts, separator or _WHITESPACE, bool(separator), True) if apart else None
    if result is not None:
        return result
    return as_sparse([_pieces(t, separator, maxsplit) for t in np.asarray(texts).tolist()])


def _pieces(text: bytes, separator: bytes, maxsplit: int) -> list[bytes]:
    if maxsplit == 0:
        return [text]
    if separator:
        return text.split(separator, maxsplit)
    words = text.split(None, maxsplit)
    # A last cut behind the last word leaves an empty rest.
    return [*words, b""] if len(words) == maxsplit else words


not_differentiable("StringSplit", "StringSplitV2")


@export("string_split")
def string_split(
    source: TensorLike,
    sep: TensorLike = None,
    skip_empty: bool = True,
    delimiter: TensorLike = None,
    result_type: str = "SparseTensor",
    name: str | None = None,
) -> Any:
    """The words of each string of a vector, as a sparse matrix.

    Each character of `sep` (or `delimiter`: a space) separates; an empty one cuts into single bytes.
    """
    with name_scope(name, "StringSplit", [source]):
        separator = delimiter if sep is None else sep
        separator = to_tensor(" " if separator is None else separator, dtypes.string)
        texts = to_tensor(source, dtypes.string)
        ragged = _is_ragged(result_type)
        words = SparseTensor(*apply_list("StringSplit", texts, separator, skip_empty=skip_empty))
        return _rows_of(words) if ragged else words


def _is_ragged(result_type: str) -> bool:
    if result_type not in ("SparseTensor", "RaggedTensor"):
        raise ValueError("result_type must be 'RaggedTensor' or 'SparseTensor'.")
    return result_type == "RaggedTensor"


def _rows_of(words: SparseTensor) -> RaggedTensor:
    rows = words.indices[:, 0]
    return RaggedTensor.from_value_rowids(words.values, rows, words.dense_shape[0], validate=False)


@export("strings.split")
def strings_split(
    input: TensorLike = None,
    sep: TensorLike = None,
    maxsplit: int = -1,
    result_type: str = "SparseTensor",
    source: TensorLike = None,
    name: str | None = None,
) -> Any:
    """The words of each string, as a sparse tensor of one dimension more.

    `sep` as a whole separates; without one, any whitespace does. At most `maxsplit` cuts are made.
    """
    texts = source if input is None else input
    with name_scope(name, "StringSplit", [texts]):
        texts = convert_to_tensor_or_ragged_tensor(texts, dtypes.string, name="input")
        separator = to_tensor("" if sep is None else sep, dtypes.string, name="sep")
        if _is_ragged(result_type):
            return _split_rows(texts, separator, maxsplit)
        if isinstance(texts, RaggedTensor):
            rows = texts.with_flat_values(_split_rows(texts.flat_values, separator, maxsplit))
            return rows.to_sparse()
        flat = texts if texts.shape.rank == 1 else apply("Reshape", texts, [-1])
        result = SparseTensor(*apply_list("StringSplitV2", flat, separator, maxsplit=maxsplit))
        if texts.shape.rank in (0, 1):
            return result
        outer = shape_of(texts, out_type=dtypes.int64)
        return sparse_reshape(result, apply("ConcatV2", [outer, result.dense_shape[1:]], 0))


def _split_rows(texts: Tensor | RaggedTensor, separator: Tensor, maxsplit: int) -> RaggedTensor | Tensor:
    """The words of each string as a ragged row; the words of a single string as a vector."""

    def split_vector(vector: Tensor) -> RaggedTensor:
        return _rows_of(SparseTensor(*apply_list("StringSplitV2", vector, separator, maxsplit=maxsplit)))

    if isinstance(texts, RaggedTensor):
        return texts.with_flat_values(_split_rows(texts.flat_values, separator, maxsplit))
    if texts.shape.rank == 0:
        words: Tensor = split_vector(apply("Reshape", texts, [1])).values
        return words
    if texts.shape.rank not in (None, 1):
        return _split_rows(RaggedTensor.from_tensor(texts), separator, maxsplit)
    return split_vector(texts)


# -- together ----------------------------------------------------------------------------------------


def _joined_shape(op: Operation) -> TensorShape:
    shape, axes = op._inputs[0].shape, static_value(op, 1)
    if op._inputs[1].shape.rank == 1 and op._inputs[1].shape.num_elements() == 0:
        return shape
    if shape.rank is None or axes is None:
        return UNKNOWN
    for axis in axes.ravel():
        if not -shape.rank <= axis < shape.rank:
            raise ValueError(f"Invalid reduction dimension {axis} for input with {shape.rank} dimensions.")
    gone = {int(a) % shape.rank for a in axes.ravel()}
    if op._attrs["keep_dims"]:
        return TensorShape([1 if d in gone else n for d, n in enumerate(shape.as_list())])
    return TensorShape([n for d, n in enumerate(shape.as_list()) if d not in gone])


_SQUARE = np.array([[b"a", b"b"], [b"c", b"d"]], object)


@op(
    "ReduceJoin",
    "inputs: string, reduction_indices: int32[1-] -> output: string",
    "keep_dims: bool = false; separator: string = ''",
    shape=_joined_shape,
    host=True,
    examples=[
        case(_SQUARE, np.array([1, 0], np.int32), separator=b","),
        case(_SQUARE, np.array(-1, np.int32), keep_dims=True),
        case(_SQUARE, np.zeros(0, np.int32)),
        case(np.zeros((2, 0), object), np.array([1], np.int32)),
    ],
)
def _reduce_join(ctx: HostContext, texts: Array, axes: Array, *, keep_dims: bool, separator: bytes) -> Array:
    array, order = np.asarray(texts, object), []
    for axis in np.asarray(axes).ravel().tolist():
        if not -array.ndim <= axis < array.ndim:
            text = f"Invalid reduction dimension {axis} for input with {array.ndim} dimension(s)"
            raise errors.OutOfRangeError(None, None, text)
        if axis % array.ndim in order:
            raise invalid(f"Duplicate reduction dimension {axis % array.ndim}")
        order.append(axis % array.ndim)
    if not order:
        return array
    left = [d for d in range(array.ndim) if d not in order]
    outer = [array.shape[d] for d in left]
    # The axis that is named first is the first to be joined.
    length = int(np.prod([array.shape[d] for d in order], dtype=np.int64))
    count = int(np.prod(outer, dtype=np.int64))
    flat = np.transpose(array, left + order[::-1]).ravel().tolist()
    joined = np.empty(count, object)
    joined[:] = [separator.join(flat[i * length : (i + 1) * length]) for i in range(count)]
    kept = [1 if d in order else n for d, n in enumerate(array.shape)]
    return joined.reshape(kept if keep_dims else outer)


@export("strings.reduce_join", "reduce_join")
def reduce_join(
    inputs: TensorLike,
    axis: TensorLike = None,
    keep_dims: bool | None = None,
    separator: str = "",
    name: str | None = None,
    reduction_indices: TensorLike = None,
    keepdims: bool | None = None,
) -> Tensor:
    """Strings joined along axes, first along the one named first; without any, all of them row by row."""
    if keepdims is not None and keep_dims is not None:
        raise ValueError("Cannot specify both 'keep_dims' and 'keepdims'")
    if axis is not None and reduction_indices is not None:
        raise ValueError("Cannot specify both 'axis' and 'reduction_indices'")
    axis = reduction_indices if axis is None else axis
    keep = bool(keep_dims if keepdims is None else keepdims)
    with name_scope(None, "ReduceJoin", [inputs]):
        texts = to_tensor(inputs, dtypes.string)
        return apply(
            "ReduceJoin", texts, _all_axes(texts, axis), keep_dims=keep, separator=separator, name=name
        )


def _all_axes(texts: Tensor, axis: TensorLike) -> TensorLike:
    if axis is not None:
        return axis
    if texts.shape.rank is not None:
        return to_tensor(np.arange(texts.shape.rank - 1, -1, -1, dtype=np.int32))
    return apply("Range", apply("Rank", texts) - np.int32(1), -1, -1)


def _segments_shape(op: Operation) -> TensorShape:
    texts, ids, count = op._inputs[0].shape, op._inputs[1].shape, static_value(op, 2)
    if texts.rank is None or ids.rank is None:
        return UNKNOWN
    check_prefix(texts, ids)
    return TensorShape([None if count is None else int(count), *texts.as_list()[ids.rank :]])


@op(
    "UnsortedSegmentJoin",
    "inputs: string, segment_ids: Tindices, num_segments: Tnumsegments[0] -> output: string",
    "separator: string = ''; Tindices: index; Tnumsegments: index = int32",
    shape=_segments_shape,
    host=True,
    examples=[
        case(_SQUARE, np.array([1, 1], np.int32), np.int32(3), separator=b"-"),
        case(_SQUARE, np.array([[0, 1], [1, 0]]), np.int32(2)),
    ],
)
def _segment_join(ctx: HostContext, texts: Array, ids: Array, count: Array, *, separator: bytes) -> Array:
    array, segments, total = np.asarray(texts, object), np.asarray(ids), int(count)
    if array.shape[: segments.ndim] != segments.shape:
        raise invalid(
            f"segment_ids of shape {bracketed(segments.shape)} must begin the shape of inputs "
            f"{bracketed(array.shape)}"
        )
    if segments.size and not (segments.min() >= 0 and segments.max() < total):
        raise invalid("segment_ids are not allowed to exceed num_segments or to have negative values.")
    inner = array.shape[segments.ndim :]
    width = int(np.prod(inner, dtype=np.int64))
    rows = array.reshape(segments.size, width)
    joined: list[list[list[bytes]]] = [[[] for _ in range(width)] for _ in range(total)]
    for segment, row in zip(segments.ravel().tolist(), rows.tolist(), strict=True):
        for column, word in enumerate(row):
            joined[segment][column].append(word)
    strings = np.empty(total * width, object)
    strings[:] = [separator.join(words) for segment in joined for words in segment]
    return strings.reshape((total, *inner))


@export("strings.unsorted_segment_join")
def unsorted_segment_join(
    inputs: TensorLike,
    segment_ids: TensorLike,
    num_segments: TensorLike,
    separator: str = "",
    name: str | None = None,
) -> Tensor:
    """The strings of each segment joined, in the order in which they come."""
    return apply("UnsortedSegmentJoin", inputs, segment_ids, num_segments, separator=separator, name=name)


not_differentiable("ReduceJoin", "UnsortedSegmentJoin")


@export("strings.format")
def string_format(
    template: str,
    inputs: TensorLike,
    placeholder: str = "{}",
    summarize: int = 3,
    name: str | None = None,
) -> Tensor:
    """A string made of a template with the values of tensors in its places."""
    tensors = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    places = template.count(placeholder)
    if places != len(tensors):
        raise ValueError(
            f"The template expects {places} tensors, but the inputs only has {len(tensors)}. Please ensure the number "
            "of placeholders in template matches inputs length."
        )
    return apply(
        "StringFormat", tensors, template=template, placeholder=placeholder, summarize=summarize, name=name
    )
