"""Parts of TensorFlow's modules of ragged tensors."""

import numpy as np
import pytest

import tensorfleet as tf

ragged = tf.python.ops.ragged


def _run(x):
    with tf.Session() as sess:
        return sess.run(x)


def test_strings_are_split_into_ragged_tensors():
    strings = ragged.ragged_string_ops
    assert _run(strings.string_split_v2(["a b", "", "c"])).to_list() == [[b"a", b"b"], [], [b"c"]]
    assert _run(strings.string_split_v2(["a,b,c"], ",", 1)).to_list() == [[b"a", b"b,c"]]
    assert _run(strings.string_bytes_split(["ab", "c"])).to_list() == [[b"a", b"b"], [b"c"]]
    assert strings.strings_split_v1 is tf.strings.split


def test_what_is_ragged_stays_so():
    convert = ragged.ragged_tensor.convert_to_tensor_or_ragged_tensor
    value = tf.ragged.constant_value([[1, 2], [3]])
    result = convert(value)
    assert ragged.ragged_tensor.is_ragged(value) and ragged.ragged_tensor.is_ragged(result)
    assert _run(result).to_list() == [[1, 2], [3]]
    assert convert(result) is result
    assert convert([1, 2], preferred_dtype=tf.float32).dtype == tf.float32
    with pytest.raises(ValueError, match="requested dtype string"):
        convert(result, tf.string)


def test_rows_are_counted_with_one_type():
    match = ragged.ragged_tensor.match_row_splits_dtypes
    small = tf.RaggedTensor.from_row_splits([1, 2], tf.constant([0, 2], tf.int32))
    large = tf.RaggedTensor.from_row_splits([1, 2], tf.constant([0, 2], tf.int64))
    kind, (a, b, c) = match(small, large, 3, return_dtype=True)
    assert kind == a.row_splits.dtype == b.row_splits.dtype == tf.int64 and c == 3
    assert match(small)[0].row_splits.dtype == tf.int32


def test_conversions_as_functions():
    there = ragged.ragged_conversion_ops
    rows = there.from_tensor([[1, 2], [3, 0]], padding=0)
    assert there.from_tensor(rows) is rows
    np.testing.assert_array_equal(_run(there.to_tensor(rows, -1)), [[1, 2], [3, -1]])
    assert _run(there.from_sparse(there.to_sparse(rows))).to_list() == [[1, 2], [3]]
