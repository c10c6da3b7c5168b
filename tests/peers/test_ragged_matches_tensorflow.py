"""Ragged tensors, and the functions of strings that give them: TensorFlow's values."""

from __future__ import annotations

import numpy as np
import pytest

import tensorfleet
from tests.peers.programs import outcome, refuse_alike, walk, walk_errors

pytestmark = pytest.mark.peers

FLAT, DEEP = [[1, 2], [], [3]], [[[1, 2], [3]], [], [[4]]]
TEXTS = ["hé日😀".encode(), b"a\xffb", b"", b"c\x01"]


def plain(value):
    """Ragged and sparse values, and arrays, as lists."""
    if hasattr(value, "nested_row_splits"):
        return value.to_list()
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return np.asarray(value).tolist()


def flat(tf):
    return tf.ragged.constant(FLAT)


def deep(tf):
    return tf.ragged.constant(DEEP)


VALUES = {
    "constant": lambda tf: [flat(tf), deep(tf), tf.ragged.constant([[b"a"], [b"b", b"c"]])],
    "dense": lambda tf: [flat(tf).to_tensor(), flat(tf).to_tensor(-1), deep(tf).to_tensor()],
    "sparse": lambda tf: [flat(tf).to_sparse(), deep(tf).to_sparse()],
    "from_tensor": lambda tf: [
        tf.RaggedTensor.from_tensor([[1, 2, 0], [3, 0, 0]], **k)
        for k in ({}, {"padding": 0}, {"lengths": [1, 2]})
    ],
    "from_tensor deep": lambda tf: tf.RaggedTensor.from_tensor([[[1, 2], [3, 0]]], ragged_rank=2, padding=0),
    "from_sparse": lambda tf: tf.RaggedTensor.from_sparse(
        tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [1, 2, 3], [3, 2])
    ),
    "from_row": lambda tf: [
        tf.RaggedTensor.from_row_splits([1, 2, 3], [0, 2, 2, 3]),
        tf.RaggedTensor.from_row_lengths([1, 2, 3], [2, 0, 1]),
        tf.RaggedTensor.from_row_starts([1, 2, 3], [0, 2, 2]),
        tf.RaggedTensor.from_row_limits([1, 2, 3], [2, 2, 3]),
        tf.RaggedTensor.from_value_rowids([1, 2, 3], [0, 0, 2]),
        tf.RaggedTensor.from_value_rowids([1, 2, 3], [0, 0, 2], nrows=5),
    ],
    "from_nested": lambda tf: [
        tf.RaggedTensor.from_nested_row_splits([1, 2, 3], [[0, 1, 2], [0, 2, 3]]),
        tf.RaggedTensor.from_nested_row_lengths([1, 2, 3], [[1, 1], [2, 1]]),
        tf.RaggedTensor.from_nested_value_rowids([1, 2, 3], [[0, 1], [0, 0, 1]]),
    ],
    "rows": lambda tf: [
        f() for f in (flat(tf).row_lengths, flat(tf).row_starts, flat(tf).row_limits, flat(tf).value_rowids)
    ],
    "counts": lambda tf: [flat(tf).nrows(), deep(tf).bounding_shape(), deep(tf).bounding_shape(axis=1)],
    "nested": lambda tf: [deep(tf).nested_row_lengths(), deep(tf).nested_row_splits, deep(tf).row_lengths(2)],
    "mapped": lambda tf: [
        flat(tf).with_values(flat(tf).values * 2),
        tf.ragged.map_flat_values(tf.add, deep(tf), 1),
    ],
    "operators": lambda tf: [flat(tf) + 1, 2 * flat(tf), flat(tf) - flat(tf), -deep(tf)],
    "range": lambda tf: [tf.ragged.range([2, 0, 3]), tf.ragged.range([1, 2], [3, 6], 2)],
    "segments": lambda tf: [
        tf.ragged.row_splits_to_segment_ids([0, 2, 2, 3]),
        tf.ragged.segment_ids_to_row_splits([0, 0, 2]),
        tf.ragged.segment_ids_to_row_splits([0, 0, 2], num_segments=5),
    ],
    "mask": lambda tf: tf.ragged.boolean_mask([[1, 2], [3, 4]], [[True, False], [True, True]]),
    "stack": lambda tf: tf.ragged.stack([flat(tf), flat(tf)]),
    "partitions": lambda tf: tf.ragged.stack_dynamic_partitions([b"a", b"b", b"c"], [2, 0, 2], 4),
    "gradient": lambda tf: tf.gradients(
        tf.RaggedTensor.from_row_splits(tf.constant([1.0, 2.0]), [0, 1, 2]).to_tensor() ** 2, []
    ),
    "transcode": lambda tf: [
        tf.strings.unicode_transcode(TEXTS, "UTF-8", out, **k)
        for out in ("UTF-8", "UTF-16-BE", "UTF-32-BE")
        for k in ({}, {"errors": "ignore"}, {"replacement_char": 63}, {"replace_control_characters": True})
    ],
    "transcode latin": lambda tf: tf.strings.unicode_transcode([b"\xe9"], "ISO-8859-1", "UTF-8"),
    "decode": lambda tf: [tf.strings.unicode_decode(t, "UTF-8") for t in (TEXTS[0], TEXTS, [TEXTS])],
    "decode offsets": lambda tf: tf.strings.unicode_decode_with_offsets(TEXTS, "UTF-8"),
    "split": lambda tf: [tf.strings.unicode_split(t, "UTF-8") for t in (TEXTS[0], TEXTS)],
    "split offsets": lambda tf: tf.strings.unicode_split_with_offsets(TEXTS[0], "UTF-8"),
    "encode": lambda tf: [
        tf.strings.unicode_encode(n, "UTF-8") for n in ([104, 233, 0x65E5], [[104, 105], [0xD800, 106]])
    ],
    "encode ragged": lambda tf: tf.strings.unicode_encode(
        tf.ragged.constant([[104, 105], [233]]), "UTF-16-BE"
    ),
    "bytes": lambda tf: [tf.strings.bytes_split(t) for t in (b"abc", [b"ab", b"", b"c"], [[b"ab"], [b"c"]])],
    "words": lambda tf: [
        tf.string_split([b"a b", b"", b"c"], result_type="RaggedTensor"),
        tf.strings.split([b"a b", b"c"], result_type="RaggedTensor"),
    ],
    "ngrams": lambda tf: [
        tf.strings.ngrams([b"a", b"b", b"c"], 2),
        tf.strings.ngrams([[b"a", b"b", b"c"]], [1, 2], separator="-"),
        tf.strings.ngrams([b"a", b"b"], 3, pad_values=("<", ">")),
        tf.strings.ngrams([b"a", b"b"], 3, preserve_short_sequences=True),
        tf.strings.ngrams([b"a", b"b"], 2, pad_values="*", padding_width=1),
        tf.strings.ngrams(tf.ragged.constant([[b"a", b"b"], [b"c"]]), 2),
    ],
}


@walk(VALUES)
def test_values(tensorflow, program):
    (ours, our_error), (theirs, their_error) = outcome(tensorfleet, program), outcome(tensorflow, program)
    assert their_error is None and our_error is None, our_error or their_error
    assert plain(ours) == plain(theirs)


ERRORS = {
    "depth": (lambda tf: tf.ragged.constant([[1], 2]), "all scalar values must have the same nesting depth"),
    "private": (lambda tf: tf.RaggedTensor(1, 2), "RaggedTensor constructor is private"),
    "splits": (lambda tf: tf.RaggedTensor.from_row_splits([1, 2], [0, 1.5]), "row_splits must have dtype"),
    "both": (lambda tf: tf.RaggedTensor.from_tensor([[1]], lengths=[1], padding=0), "but not both"),
    "strict": (
        lambda tf: tf.strings.unicode_transcode([b"\xff"], "UTF-8", "UTF-8", errors="strict"),
        "Invalid formatting on input string",
    ),
    "encoding": (
        lambda tf: tf.strings.unicode_transcode([b"a"], "foo", "UTF-8"),
        "Could not create converter for input encoding: foo",
    ),
    "surrogate": (
        lambda tf: tf.strings.unicode_encode([0xD800], "UTF-8", errors="strict"),
        "Code point is out of range for Unicode, or is a surrogate.",
    ),
    "width": (lambda tf: tf.strings.ngrams([b"a"], 0), "All ngram_widths must be greater than 0. Got 0"),
}


@walk_errors(ERRORS)
def test_errors(tensorflow, program, phrase):
    refuse_alike(tensorflow, program, phrase)
