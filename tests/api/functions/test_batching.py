"""Calls of several steps, computed as one batch."""

import threading

import numpy as np
import pytest

import tensorfleet as tf


def test_steps_at_the_same_time_are_one_batch():
    @tf.nondifferentiable_batch_function(1, 4, 10_000_000)
    def double(x):
        return tf.identity(x) * 2.0

    x = tf.placeholder(tf.float32, [None, 2])
    (y,) = double(x)
    assert y.op.type == "BatchFunction"
    by_name = {}
    with tf.Session() as sess:

        def run(i):
            by_name[i] = sess.run(y, {x: np.full([2, 2], i, np.float32)})

        # Two calls of two rows fill a batch: neither waits for the time to be over.
        threads = [threading.Thread(target=run, args=(i,)) for i in (1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert {i: v.tolist() for i, v in by_name.items()} == {i: [[2.0 * i] * 2] * 2 for i in (1, 2)}


def test_a_batch_is_filled_up_to_an_allowed_size():
    @tf.nondifferentiable_batch_function(1, 10, 1000, allowed_batch_sizes=[4, 10])
    def size(x):
        return x + tf.shape(x)[0]

    assert tf.Session().run(size(tf.constant([1, 2, 3])))[0].tolist() == [5, 6, 7]
    with pytest.raises(tf.errors.InvalidArgumentError, match="larger than maximum"):
        tf.Session().run(size(tf.zeros([11], tf.int32)))


def test_a_function_takes_what_is_around_it():
    scale = tf.constant(np.arange(5000.0))

    @tf.nondifferentiable_batch_function(1, 10, 1000)
    def scaled(x):
        return x * tf.reduce_sum(scale)

    np.testing.assert_allclose(
        tf.Session().run(scaled(tf.constant([1.0, 2.0], tf.float64)))[0], [12497500.0, 24995000.0]
    )


def test_what_is_wrong_is_said():
    @tf.nondifferentiable_batch_function(1, 10, 1000)
    def total(x):
        return tf.reduce_sum(x)

    with pytest.raises(tf.errors.FailedPreconditionError, match="0th dimension does not equal the sum"):
        tf.Session().run(total(tf.constant([1.0, 2.0])))
    with pytest.raises(ValueError, match="supposed to be Tensors"):
        total(1.0)
