"""Rows replaced, added to and subtracted from."""

import numpy as np
import pytest
from tensorfleet.python.ops import gen_array_ops, inplace_ops

import tensorfleet as tf
from tests.support.sessions import run


def test_rows_by_number_and_all_of_them():
    x = tf.ones([3, 2])
    assert run(inplace_ops.inplace_update(x, [0, 2], [[5.0, 5.0], [6.0, 6.0]])).tolist() == [
        [5, 5],
        [1, 1],
        [6, 6],
    ]
    assert run(inplace_ops.inplace_add(x, 1, [2.0, 3.0])).tolist() == [[1, 1], [3, 4], [1, 1]]
    assert run(inplace_ops.inplace_sub(x, None, np.ones([3, 2], np.float32))).tolist() == [[0, 0]] * 3
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(inplace_ops.inplace_add(x, [3], [[1.0, 1.0]]))


def test_empty_tensors_have_their_shape_and_type():
    assert run(inplace_ops.empty([2], tf.int32)).tolist() == [0, 0]
    assert run(inplace_ops.empty_like(tf.ones([2, 1]))).shape == (2, 1)


def test_a_sum_scattered_into_a_new_tensor_has_a_gradient():
    x, u = tf.constant([1.0, 2.0]), tf.constant([5.0])
    y = gen_array_ops.scatter_nd_non_aliasing_add(x, [[1]], u)
    assert run(y).tolist() == [1, 7]
    assert [g.tolist() for g in run(tf.gradients(y * y, [x, u]))] == [[2, 14], [14]]


@pytest.mark.parametrize(
    ("i", "v", "words"),
    [
        ([[0]], [[10]], "i must be a vector"),
        ([0], [10], "x and v shape doesn't match"),
        ([0], [[10, 11]], "x and v shape doesn't match at index 1"),
        ([0, 1], [[10]], "i and x shape doesn't match"),
    ],
)
def test_rows_that_do_not_fit_are_refused(i, v, words):
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match=words):
        sess.run(inplace_ops.inplace_update([[1.0]], i, v))


def test_values_become_those_of_the_tensor_and_indices_are_of_any_type():
    with tf.Session() as sess:
        result = sess.run(inplace_ops.inplace_add(tf.ones([3]), np.array([2]), np.array([5])))
        assert result.tolist() == [1, 1, 6]
        assert sess.run(inplace_ops.empty((), tf.string)) == b""
