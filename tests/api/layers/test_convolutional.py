"""Convolution layers: shapes, names, values by a plain loop, and arguments that make no sense."""

import numpy as np
import pytest

import tensorfleet as tf
from tests.support.sessions import run_initialized as run

L = tf.layers


def x(*shape):
    return tf.placeholder(tf.float32, shape)


@pytest.mark.parametrize(
    ("make", "name", "shape"),
    [
        (lambda: L.conv1d(x(None, 8, 3), 4, 3), "conv1d/BiasAdd:0", [None, 6, 4]),
        (lambda: L.conv1d(x(None, 8, 3), 4, 3, padding="causal"), "conv1d/BiasAdd:0", [None, 8, 4]),
        (lambda: L.conv1d(x(None, 3, 8), 4, 3, data_format="channels_first"), "conv1d/add:0", [None, 4, 6]),
        (lambda: L.conv2d(x(2, 9, 9, 3), 4, 3, 2, activation=tf.nn.relu), "conv2d/Relu:0", [2, 4, 4, 4]),
        (lambda: L.conv2d(x(2, 9, 9, 3), 4, 3, use_bias=False), "conv2d/Conv2D:0", [2, 7, 7, 4]),
        (lambda: L.conv2d(x(2, 9, 9, 3), 4, 3, dilation_rate=2), "conv2d/BiasAdd:0", [2, 5, 5, 4]),
        (lambda: L.conv3d(x(2, 9, 9, 9, 3), 4, 3, padding="same"), "conv3d/BiasAdd:0", [2, 9, 9, 9, 4]),
        (lambda: L.separable_conv1d(x(2, 9, 3), 4, 3), "separable_conv1d/Squeeze:0", [2, 7, 4]),
        (lambda: L.separable_conv2d(x(2, 9, 9, 3), 4, 3, 2), "separable_conv2d/BiasAdd:0", [2, 4, 4, 4]),
        (lambda: L.conv2d_transpose(x(2, 5, 5, 3), 4, 3, 2), "conv2d_transpose/BiasAdd:0", [2, 11, 11, 4]),
        (
            lambda: L.conv2d_transpose(x(None, None, 5, 3), 4, 3, 2, padding="same"),
            "conv2d_transpose/BiasAdd:0",
            [None, None, 10, 4],
        ),
        (
            lambda: L.conv3d_transpose(x(2, 5, 5, 5, 3), 4, 3, 2),
            "conv3d_transpose/BiasAdd:0",
            [2, 11, 11, 11, 4],
        ),
    ],
)
def test_names_and_shapes(make, name, shape):
    y = make()
    assert (y.name, y.shape.as_list()) == (name, shape)
    feed = {
        t: np.ones([d or 2 for d in t.shape.as_list()])
        for t in [tf.get_default_graph().get_operations()[0].outputs[0]]
    }
    if "first" not in name and tf.global_variables():
        assert list(run(y, feed).shape) == [d or n for d, n in zip(shape, run(y, feed).shape, strict=True)]


def test_a_convolution_sums_over_windows():
    data = np.random.RandomState(0).randn(1, 5, 5, 2).astype(np.float32)
    y = run(
        L.conv2d(data, 1, 3, kernel_initializer=tf.ones_initializer(), bias_initializer=tf.ones_initializer())
    )
    for i in range(3):
        for j in range(3):
            assert y[0, i, j, 0] == pytest.approx(1 + data[0, i : i + 3, j : j + 3].sum(), abs=1e-4)


def test_a_causal_convolution_sees_only_the_past():
    data = np.eye(6, dtype=np.float32)[2].reshape(1, 6, 1)
    y = run(L.conv1d(data, 1, 2, padding="causal", dilation_rate=2, kernel_initializer=tf.ones_initializer()))
    assert y.ravel().tolist() == [0, 0, 1, 0, 1, 0]


def test_kernels_of_separable_convolutions():
    L.separable_conv2d(x(2, 9, 9, 3), 4, 5, depth_multiplier=2)
    assert {v.name: v.shape.as_list() for v in tf.global_variables()} == {
        "separable_conv2d/depthwise_kernel:0": [5, 5, 3, 2],
        "separable_conv2d/pointwise_kernel:0": [1, 1, 6, 4],
        "separable_conv2d/bias:0": [4],
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(kernel_size=(3, 3, 3)), "`kernel_size` argument must be a tuple of 2 integers"),
        (dict(padding="bad"), "`padding` argument"),
        (dict(padding="causal"), "only for `Conv1D`"),
        (dict(data_format="bad"), "`data_format` argument"),
        (dict(strides=2, dilation_rate=2), "strides > 1 not supported"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        L.conv2d(x(2, 9, 9, 3), 4, **{"kernel_size": 3, **options})


def test_the_number_of_channels_must_be_known():
    with pytest.raises(ValueError, match="channel dimension of the inputs should be defined"):
        L.conv2d(x(2, 9, 9, None), 4, 3)
