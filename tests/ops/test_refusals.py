"""What operations refuse: the class of the error and the words that TensorFlow's tests look for."""

import numpy as np
import pytest

import tensorfleet as tf

SPARSE = ([[0, 0]], [1], [2, 2])
AT_RUN = {
    "a pooling ratio above the size": (
        lambda: tf.nn.fractional_max_pool(tf.ones([1, 2, 2, 1]), [1.0, 3.0, 1.0, 1.0])[0],
        "Pooling ratio is higher than input dimension size for dimension 1",
    ),
    "a split along two axes": (
        lambda: tf.sparse.split(sp_input=tf.SparseTensor(*SPARSE), num_split=2, axis=[0, 1])[0].values,
        "axis should be a scalar",
    ),
    "more Poisson numbers than can be counted": (
        lambda: tf.random_poisson(tf.ones([4] * 5), [46902, 51188, 34063, 59195]),
        "overflow",
    ),
    "more gamma numbers than can be counted": (
        lambda: tf.random_gamma([46902, 51188, 34063, 59195], tf.ones([4] * 5)),
        "overflow",
    ),
}


@pytest.mark.parametrize(("make", "words"), AT_RUN.values(), ids=AT_RUN)
def test_what_is_refused_when_it_runs(make, words, session):
    result = make()
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        session.run(result)


@pytest.mark.parametrize(
    ("n", "words"), [(-1, "non-negative but is -1"), (2, "last dimension > n = 2 but is 2")]
)
def test_a_place_that_no_row_has_is_refused_at_once(n, words):
    with pytest.raises(ValueError, match=words):
        tf.contrib.nn.nth_element([1.0, 2.0], n)


def test_the_shape_of_a_sparse_tensor_may_be_given_as_int32(session):
    shape = tf.placeholder(tf.int32)
    result = tf.sparse.reset_shape(tf.SparseTensor(*SPARSE), shape)
    assert session.run(result.dense_shape, {shape: [3, 4]}).tolist() == [3, 4]
    with pytest.raises(tf.errors.InvalidArgumentError):
        session.run(result.dense_shape, {shape: [1, 4]})


def test_texts_in_a_format_are_quoted_as_c_writes_them(session):
    text = tf.strings.format("{}|{}", [tf.constant("ä\n"), tf.constant([b'"', b"\xff", b"\x01"])])
    assert session.run(text) == b'"\xc3\xa4\\n"|["\\"" "\xff" "\\001"]'


def test_rows_of_ragged_matrices_of_characters_are_spelled(session):
    letters = tf.RaggedTensor.from_row_splits(np.arange(97, 109, dtype=np.int32).reshape(3, 2, 2), [0, 1, 3])
    result = session.run(tf.strings.unicode_encode(letters, "UTF-8"))
    assert result.values.tolist() == [[b"ab", b"cd"], [b"ef", b"gh"], [b"ij", b"kl"]]
