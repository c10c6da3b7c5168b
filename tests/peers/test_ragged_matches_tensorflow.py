"""Ragged tensors, and the functions of strings that give them: TensorFlow's values."""

import numpy as np

import tensorfleet
from tests.peers.programs import outcome, refuse_alike, walk, walk_errors

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


def numbers(tf):
    return tf.ragged.constant([[1.5, 2.0], [4.0], [3.0, 0.5, 1.0]])


def sums_of_gradients(tf):
    x = tf.constant([1.0, 2.0, 3.0, 4.0])
    rows = tf.RaggedTensor.from_row_splits(x, [0, 1, 4])
    results = [
        tf.reduce_sum(rows * rows, 1),
        tf.concat([rows, rows * 2.0], 1).flat_values,
        rows[1, 1:],
        tf.reduce_max(rows, 0),
        tf.gather(rows, [1, 1]).flat_values,
    ]
    return [tf.convert_to_tensor(tf.gradients(y, x)[0]) for y in results]


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
    "rows by number": lambda tf: [flat(tf)[0], flat(tf)[-1], deep(tf)[0], deep(tf)[0, 1], flat(tf)[0, 1]],
    "slices of rows": lambda tf: [
        flat(tf)[k] for k in (slice(1, None), slice(None, -1), slice(None, None, 2), slice(None, None, -1))
    ],
    "slices inside": lambda tf: [
        deep(tf)[:, k]
        for k in (slice(1), slice(1, None), slice(-1, None), slice(None, None, -1), slice(None, None, 2))
    ],
    "deeper slices": lambda tf: [deep(tf)[:, :, :1], deep(tf)[..., 1:], deep(tf)[1:, :1, -1:]],
    "new dimensions": lambda tf: [
        flat(tf)[tf.newaxis],
        flat(tf)[:, tf.newaxis],
        *[tf.expand_dims(flat(tf), a) for a in (0, 1, 2, -1)],
    ],
    "sums": lambda tf: [
        f(numbers(tf), axis=a)
        for f in (tf.reduce_sum, tf.reduce_prod, tf.reduce_max, tf.reduce_min, tf.reduce_mean)
        for a in (None, 0, 1, -1)
    ],
    "deep sums": lambda tf: [
        tf.reduce_sum(deep(tf), axis=a) for a in (None, 0, 1, 2, [0, 1], [1, 2], [0, 2])
    ],
    "kept dimensions": lambda tf: [tf.reduce_sum(numbers(tf), axis=a, keepdims=True) for a in (0, 1)],
    "logical": lambda tf: [
        f(tf.ragged.constant([[True, False], [True], [False]]), axis=a)
        for f in (tf.reduce_any, tf.reduce_all)
        for a in (None, 0, 1)
    ],
    "concat": lambda tf: [
        tf.concat([flat(tf), flat(tf)], 0),
        tf.concat([flat(tf), tf.ragged.constant([[7], [8, 9], []])], 1),
        tf.concat([deep(tf), deep(tf)], 2),
        tf.concat([deep(tf), deep(tf)], -2),
        tf.concat([flat(tf), [[5, 6]]], 0),
    ],
    "stacked": lambda tf: (
        [tf.stack([flat(tf), flat(tf)], a) for a in (0, 1, 2)]
        + [tf.ragged.stack([[1, 2], [3]]), tf.ragged.stack([[1, 2], [3]], 0)]
    ),
    "gather": lambda tf: [
        tf.gather(flat(tf), [2, 0, 0]),
        tf.gather(deep(tf), [2, 0]),
        tf.gather(deep(tf), [[2], [0]]),
        tf.gather([10, 20, 30, 40], flat(tf)),
        tf.gather(flat(tf), tf.ragged.constant([[0], [2, 1]])),
    ],
    "tile": lambda tf: [tf.tile(flat(tf), m) for m in ([1, 2], [2, 1], [2, 2])],
    "masks": lambda tf: [
        tf.ragged.boolean_mask(flat(tf), [True, False, True]),
        tf.ragged.boolean_mask(flat(tf), tf.ragged.constant([[True, False], [], [True]])),
        tf.ragged.boolean_mask(deep(tf), tf.ragged.constant([[True, False], [], [True]])),
        tf.ragged.boolean_mask(deep(tf), tf.ragged.constant([[[True, False], [True]], [], [[False]]])),
        tf.ragged.boolean_mask([1, 2, 3], [True, False, True]),
    ],
    "where": lambda tf: [
        tf.where(tf.ragged.constant([[True, False], [True]])),
        tf.where(
            tf.ragged.constant([[True, False], [True]]),
            tf.ragged.constant([[1, 2], [3]]),
            tf.ragged.constant([[4, 5], [6]]),
        ),
    ],
    "elementwise": lambda tf: [
        tf.square(flat(tf)),
        tf.cast(deep(tf), tf.float32),
        tf.maximum(flat(tf), 2),
        tf.add(flat(tf), flat(tf)),
        tf.multiply(x=3, y=flat(tf)),
        tf.clip_by_value(flat(tf), 1, 2),
        tf.add_n([flat(tf), flat(tf)]),
        tf.zeros_like(flat(tf)),
        tf.equal(flat(tf), 2),
    ],
    "broadcast": lambda tf: [
        flat(tf) + tf.constant([[10], [20], [30]]),
        flat(tf) * tf.constant([[2]]),
        deep(tf) + tf.constant([[[10]], [[20]], [[30]]]),
        tf.RaggedTensor.from_row_splits([[1, 2], [3, 4]], [0, 2]) + [10, 20],
    ],
    "text": lambda tf: [
        tf.strings.upper(tf.ragged.constant([["a"], ["b", "c"]])),
        tf.strings.length(tf.ragged.constant([["a"], ["bb", "c"]])),
        tf.string_join([tf.ragged.constant([["a"], ["b"]]), tf.ragged.constant([["x"], ["y"]])], "-"),
    ],
    "size, rank": lambda tf: [tf.size(deep(tf)), tf.rank(deep(tf)), tf.rank(flat(tf))],
    "segment sums": lambda tf: [
        tf.unsorted_segment_sum(flat(tf), [0, 1, 0], 2),
        tf.unsorted_segment_max(deep(tf), [1, 1, 0], 3),
    ],
    "scripts": lambda tf: tf.strings.unicode_script([65, 0x3B1, 0x65E5, 33, -1, 0x110000, 0x1F600]),
    "all scripts": lambda tf: tf.strings.unicode_script(tf.range(0, 0x110000, 37)),
    "gradients": lambda tf: sums_of_gradients(tf),
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
    "inner index": (lambda tf: deep(tf)[:, 0], "Cannot index into an inner ragged dimension"),
    "axis": (lambda tf: tf.reduce_sum(flat(tf), 5), "axis=5 out of bounds"),
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
