"""Functions of neural networks with the argument lists of TensorFlow 2."""

import numpy as np
from tensorfleet.python.ops import nn_impl, nn_ops

import tensorfleet as tf
from tests.support.sessions import run

X = np.array([[1.0, 2.0], [3.0, 6.0]], np.float32)


def test_they_are_what_tensorflow_1_has():
    mean, variance = run(nn_impl.moments_v2(X, [0], keepdims=True))
    assert mean.tolist() == [[2.0, 4.0]] and variance.tolist() == [[1.0, 4.0]]
    np.testing.assert_array_equal(run(nn_ops.softmax_v2(X, axis=0)), run(tf.nn.softmax(X, axis=0)))
    np.testing.assert_array_equal(run(nn_ops.log_softmax_v2(X)), run(tf.nn.log_softmax(X)))
    assert set(run(nn_ops.dropout_v2(tf.ones([40]), rate=0.5, seed=1)).tolist()) == {0.0, 2.0}
