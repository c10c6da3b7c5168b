"""Functions of neural networks with the argument lists of TensorFlow 2."""

import numpy as np
import pytest
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


@pytest.mark.parametrize("layout", [None, "NHWC", "NCHW"])
def test_a_convolution_is_kept_for_inputs_of_a_shape(layout, session):
    x, w = np.random.RandomState(0).rand(2, 5, 5, 3).astype("float32"), np.ones([2, 2, 3, 4], "float32")
    given = x.transpose([0, 3, 1, 2]) if layout == "NCHW" else x
    kind = tf.python.ops.nn_ops.Convolution
    convolve = kind(tf.TensorShape(given.shape), tf.TensorShape(w.shape), "SAME", [2, 2], data_format=layout)
    result = session.run(convolve(given, w))
    wanted = session.run(tf.nn.conv2d(x, w, [1, 2, 2, 1], "SAME"))
    np.testing.assert_allclose(
        result.transpose([0, 2, 3, 1]) if layout == "NCHW" else result, wanted, rtol=1e-5
    )
    with pytest.raises(ValueError, match="number of input channels does not match"):
        kind(tf.TensorShape([2, 5, 5, 2]), tf.TensorShape(w.shape), "SAME")
    with pytest.raises(ValueError, match="input tensor must have rank 4"):
        kind(tf.TensorShape([2, 5, 5]), tf.TensorShape(w.shape), "SAME")
