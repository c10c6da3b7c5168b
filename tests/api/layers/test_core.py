"""Dense, dropout, flatten."""

import numpy as np
import pytest

import tensorfleet as tf
from tests.support.sessions import run_initialized


def run(*fetches):
    return run_initialized(list(fetches))


def test_dense_multiplies_the_last_axis_of_any_rank():
    data = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    flat = tf.layers.dense(tf.constant(data[0]), 2, kernel_initializer=tf.ones_initializer())
    deep = tf.layers.dense(
        data, 2, tf.negative, kernel_initializer="ones", bias_initializer=tf.ones_initializer
    )
    a, b = run(flat, deep)
    np.testing.assert_allclose(a, data[0].sum(-1, keepdims=True).repeat(2, 1))
    np.testing.assert_allclose(b, -1 - data.sum(-1, keepdims=True).repeat(2, 2))
    assert deep.shape.as_list() == [2, 3, 2]


def test_dense_takes_its_type_from_its_input():
    assert tf.layers.dense(tf.zeros([1, 2], tf.float64), 3).dtype == tf.float64
    with pytest.raises(TypeError, match="non-floating point dtype int32"):
        tf.layers.dense(tf.zeros([1, 2], tf.int32), 3)
    with pytest.raises(ValueError, match="last dimension of the inputs to `Dense` should be defined"):
        tf.layers.dense(tf.placeholder(tf.float32, [1, None]), 3)


def test_activations_may_be_named():
    assert tf.layers.dense(tf.zeros([1, 2]), 3, "relu").name == "dense/Relu:0"
    with pytest.raises(ValueError, match="Unknown activation function: wobble"):
        tf.layers.dense(tf.zeros([1, 2]), 3, "wobble")


def test_dropout_drops_in_training_only():
    ones = tf.ones([1000])
    dropped, kept = run(tf.layers.dropout(ones, 0.4, training=True, seed=1), tf.layers.dropout(ones, 0.4))
    assert (kept == 1).all()
    assert set(np.unique(dropped.round(4)).tolist()) == {0.0, np.float32(1 / 0.6).round(4)}
    assert 300 < (dropped == 0).sum() < 500


def test_dropout_can_be_decided_at_run_time():
    training = tf.placeholder(tf.bool, [])
    y = tf.layers.dropout(tf.ones([100]), training=training)
    assert y.name == "dropout/cond/Merge:0"
    with tf.Session() as session:
        assert (session.run(y, {training: False}) == 1).all()
        assert (session.run(y, {training: True}) == 0).any()
    with pytest.raises(TypeError, match="must be a Tensor, or a Python bool"):
        tf.layers.dropout(tf.ones([2]), training="yes")


def test_flatten_keeps_the_batch():
    known = tf.layers.flatten(tf.placeholder(tf.float32, [None, 3, 4]))
    unknown = tf.layers.flatten(tf.placeholder(tf.float32, [None, None, 4]))
    assert known.shape.as_list() == [None, 12] and unknown.shape.as_list() == [None, None]
    data = np.arange(12).reshape(1, 2, 3, 2)
    a, b = run(tf.layers.flatten(data), tf.layers.flatten(data, data_format="channels_first"))
    assert a.tolist() == [list(range(12))]
    assert b.tolist() == data.transpose(0, 2, 3, 1).reshape(1, 12).tolist()
    assert tf.layers.flatten(tf.zeros([5])).shape.as_list() == [5, 1]
