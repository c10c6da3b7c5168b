"""Tensors whose shapes are checked, now or when they are run."""

import numpy as np
import pytest

import tensorfleet as tf

framework = tf.contrib.framework


def test_a_known_shape_is_checked_at_once():
    x = tf.zeros([2, 3])
    assert framework.with_shape([2, 3], x) is x
    assert framework.with_shape(tf.TensorShape([None, 3]), x) is x
    assert framework.with_same_shape(tf.ones([2, 3]), x) is x
    for shape, message in (([3], "Wrong shape"), ([[2, 3]], "Invalid rank"), ([2.0, 3.0], "Invalid dtype")):
        with pytest.raises(ValueError, match=message):
            framework.with_shape(shape, x)


@pytest.mark.parametrize("expected", [[2, 2], tf.TensorShape([2, 2])])
def test_a_shape_not_known_yet_is_checked_when_it_is_run(expected, session):
    x = tf.placeholder(tf.float32)
    for checked in (framework.with_shape(expected, x), framework.with_same_shape(tf.ones([2, 2]), x)):
        assert checked.shape.as_list() == [2, 2]
        assert session.run(checked, {x: np.ones([2, 2])}).sum() == 4
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"Wrong shape for .* \[2 2\] \[2\]"):
            session.run(checked, {x: [1.0, 2.0]})


def test_a_shape_given_as_a_tensor_is_checked_when_it_is_run(session):
    shape, like = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.float32)
    x = tf.zeros([1])
    by_shape, by_tensor = framework.with_shape(shape, x), framework.with_same_shape(like, x)
    session.run([by_shape, by_tensor], {shape: [1], like: [5.0]})
    for fetch, feed in ((by_shape, {shape: [1, 1]}), (by_tensor, {like: [[5.0]]})):
        with pytest.raises(tf.errors.InvalidArgumentError, match="Wrong shape"):
            session.run(fetch, feed)


def test_sums_scalars_and_dimensions_of_size_one(session):
    assert session.run(framework.reduce_sum_n([tf.constant(1), tf.constant([2, 3])])) == 6
    assert session.run(framework.assert_scalar_int(3)) == 3
    for value, message in ((3.0, "Expected integer"), ([3], "Expected scalar")):
        with pytest.raises(ValueError, match=message):
            framework.assert_scalar_int(tf.constant(value))
    predictions, labels = framework.remove_squeezable_dimensions(tf.zeros([4, 1]), tf.zeros([4]))
    assert predictions.shape == labels.shape == [4]
