"""Functions with the arguments they have in TensorFlow 2, under their inner names."""

import inspect

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.base.naming import find
from tensorfleet_legacy.internals.ops import v2_signatures as second


@pytest.mark.parametrize("name", list(second._LINES))
def test_every_argument_is_one_of_the_public_function(name):
    _, public, places = second._LINES[name].split("|")
    known = inspect.signature(find(public.strip())).parameters
    for place in places.split():
        old = place.partition(":")[0].partition("=")
        assert (old[2] or old[0]) in {*known, "_"}


def test_arguments_go_by_their_places_in_version_2():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    turned = tf.python.ops.array_ops.transpose_v2(x, [1, 0], False, "turned")
    assert turned.op.name == "turned"
    masked = tf.python.ops.array_ops.boolean_mask_v2(x, [True, False], 1)
    joined = tf.python.ops.string_ops.reduce_join_v2([["a", "b"]], 1, True, "-")
    with tf.Session() as sess:
        np.testing.assert_array_equal(sess.run(turned), [[1, 3], [2, 4]])
        np.testing.assert_array_equal(sess.run(masked), [[1], [3]])
        assert sess.run(joined).tolist() == [[b"a-b"]]


def test_an_argument_too_many_is_told():
    with pytest.raises(TypeError, match="at most 3 arguments"):
        tf.python.ops.math_ops.scalar_mul_v2(1.0, 2.0, "name", 4)


def test_a_padding_that_is_not_given_is_valid():
    x = tf.ones([1, 4, 4, 1])
    assert tf.python.ops.nn_ops.pool_v2(x, [2, 2], "MAX").shape == [1, 3, 3, 1]
    assert tf.python.ops.nn_ops.convolution_v2(x, tf.ones([2, 2, 1, 1])).shape == [1, 3, 3, 1]


def test_reductions_of_sparse_tensors_are_dense_or_sparse():
    x = tf.SparseTensor([[0, 0], [0, 2], [1, 1]], [1, 5, 3], [2, 3])
    ops = tf.python.ops.sparse_ops
    with tf.Session() as sess:
        assert sess.run(ops.sparse_reduce_max_v2(x, 1)).tolist() == [5, 3]
        assert sess.run(ops.sparse_reduce_sum_v2(x, 1, output_is_sparse=True)).values.tolist() == [6, 3]


def test_functions_that_are_called_like_ops_are_not_the_ops():
    ops = tf.python.ops
    sparse = tf.SparseTensor([[0, 1]], [2.0], [1, 2])
    words = ops.string_ops.string_split_v2(["a b"], None, 1)
    padded = ops.array_ops.pad_v2([1, 2], [[1, 1]], "REFLECT")
    best = ops.math_ops.argmax_v2([[1, 3]], 1, tf.int32, "best")
    counts = ops.math_ops.bincount([1, 1], None, None, None, tf.int64, "counts")
    summed = ops.sparse_ops.sparse_dense_cwise_add(sparse, [[1.0, 5.0]])
    kept = ops.sparse_ops._add_sparse_to_tensors_map(sparse)
    taken = ops.sparse_ops._take_many_sparse_from_tensors_map(kept.op, tf.expand_dims(kept, 0), rank=3)
    assert best.op.name == "best" and best.dtype == tf.int32 and taken.indices.shape.as_list() == [None, 3]
    with tf.Session() as sess:
        assert sess.run(words).values.tolist() == [b"a", b"b"]
        assert sess.run([padded, counts])[0].tolist() == [2, 1, 2, 1]
        assert sess.run(counts).tolist() == [0, 2]
        assert sess.run(summed).values.tolist() == [7]
        assert sess.run(taken).values.tolist() == [2]


def test_what_is_printed_may_be_anything(capfd):
    with tf.Session() as sess:
        sess.run(tf.python.ops.logging_ops.print_v2("seen:", {"y": 3, "x": tf.constant([1, 2])}))
    assert "seen: {'x': [1 2], 'y': 3}" in capfd.readouterr().err


def test_the_parts_of_sparse_tensors_are_printed(capfd):
    with tf.Session() as sess:
        sess.run(tf.print([tf.SparseTensor([[0, 1]], [7], [1, 2])]))
    assert "['SparseTensor(indices=[[0 1]], values=[7], shape=[1 2])']" in capfd.readouterr().err


def test_one_string_is_printed_as_it_is():
    with tf.Graph().as_default() as graph:
        tf.print(tf.constant("text"))
    assert "StringFormat" not in [op.type for op in graph.get_operations()]


def test_what_prints_has_the_name_it_is_given():
    with tf.Graph().as_default() as graph:
        assert tf.print(tf.constant(1), name="shown").name == "shown"
        assert tf.print(tf.constant(1)).name == "PrintV2"
    assert "shown_format" in [op.name for op in graph.get_operations()]
