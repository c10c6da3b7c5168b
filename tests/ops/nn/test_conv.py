"""Convolution ops in a graph; their kernels have tests of their own."""

import numpy as np
import pytest

import tensorfleet as tf

IMAGES = np.random.RandomState(0).randn(2, 7, 6, 3).astype(np.float32)
FILTER = np.random.RandomState(1).randn(3, 2, 3, 4).astype(np.float32)


def correlate(x, w):
    """A VALID convolution, slowly."""
    h, width = x.shape[1] - w.shape[0] + 1, x.shape[2] - w.shape[1] + 1
    out = np.zeros((x.shape[0], h, width, w.shape[3]), np.float64)
    for i in range(h):
        for j in range(width):
            window = x[:, i : i + w.shape[0], j : j + w.shape[1], :]
            out[:, i, j] = np.tensordot(window, w, 3)
    return out


@pytest.mark.parametrize("strides", [1, [1], [1, 1], [1, 1, 1, 1]])
def test_strides_of_every_length(session, strides):
    y = tf.nn.conv2d(tf.constant(IMAGES), FILTER, strides, "VALID")
    np.testing.assert_allclose(session.run(y), correlate(IMAGES, FILTER), rtol=1e-4, atol=1e-4)


def test_channels_first_gives_the_same(session):
    x = tf.constant(np.transpose(IMAGES, [0, 3, 1, 2]))
    y = tf.nn.conv2d(x, FILTER, 1, "VALID", data_format="NCHW")
    expected = np.transpose(correlate(IMAGES, FILTER), [0, 3, 1, 2])
    np.testing.assert_allclose(session.run(y), expected, rtol=1e-4, atol=1e-4)


def test_explicit_padding_is_zeros_around_the_image(session):
    pads = [[0, 0], [1, 2], [0, 1], [0, 0]]
    y = tf.nn.conv2d(tf.constant(IMAGES), FILTER, 1, pads)
    np.testing.assert_allclose(session.run(y), correlate(np.pad(IMAGES, pads), FILTER), rtol=1e-4, atol=1e-4)


def test_gradients_are_the_backprop_ops_and_know_their_shapes(session):
    x, w = tf.placeholder(tf.float32, [None, 7, 6, 3]), tf.constant(FILTER)
    dx, dw = tf.gradients(tf.nn.conv2d(x, w, 1, "SAME"), [x, w])
    assert (dx.op.type, dw.op.type) == ("Conv2DBackpropInput", "Conv2DBackpropFilter")
    assert dx.shape.as_list() == [None, 7, 6, 3]
    assert dw.shape.as_list() == [3, 2, 3, 4]


def test_gradients_match_finite_differences(session):
    x, w = tf.placeholder(tf.float64, IMAGES.shape), tf.placeholder(tf.float64, FILTER.shape)
    loss = tf.reduce_sum(tf.sin(tf.nn.conv2d(x, w, 2, "SAME")))
    grads = tf.gradients(loss, [x, w])
    values = [IMAGES.astype(np.float64), FILTER.astype(np.float64)]
    got = session.run(grads, dict(zip((x, w), values, strict=True)))
    for i in range(2):
        for place in (0, 17):
            both = []
            for step in (1e-5, -1e-5):
                moved = [v.copy() for v in values]
                moved[i].flat[place] += step
                both.append(session.run(loss, dict(zip((x, w), moved, strict=True))))
            assert got[i].flat[place] == pytest.approx((both[0] - both[1]) / 2e-5, abs=1e-5)


def test_second_order_gradient_of_a_convolution(session):
    x, w = tf.constant(IMAGES), tf.constant(FILTER)
    (dx,) = tf.gradients(tf.nn.conv2d(x, w, 1, "VALID"), x)
    (dw,) = tf.gradients(tf.reduce_sum(dx), w)
    # the sum of dx counts, for each tap, the windows it is part of
    np.testing.assert_allclose(session.run(dw), np.full(FILTER.shape, 2 * 5 * 5), rtol=1e-5)


def test_transposed_convolution_is_the_gradient(session):
    w = np.random.RandomState(2).randn(3, 3, 5, 3).astype(np.float32)
    y = tf.nn.conv2d_transpose(tf.constant(IMAGES), w, [2, 14, 12, 5], [1, 2, 2, 1])
    x = tf.zeros([2, 14, 12, 5])
    (g,) = tf.gradients(tf.nn.conv2d(x, w, [1, 2, 2, 1], "SAME"), x, tf.constant(IMAGES))
    np.testing.assert_allclose(*session.run([y, g]), rtol=1e-5)
    assert y.op.name == "conv2d_transpose"


def test_depthwise_treats_channels_apart(session):
    y = tf.nn.depthwise_conv2d_native(tf.constant(IMAGES), FILTER, [1, 1, 1, 1], "VALID")
    first = correlate(IMAGES[..., 1:2], FILTER[:, :, 1:2])
    np.testing.assert_allclose(session.run(y)[..., 4:8], first, rtol=1e-4, atol=1e-4)


def test_a_volume_one_deep_is_an_image(session):
    flat = tf.nn.conv2d(tf.constant(IMAGES), FILTER, 1, "SAME")
    solid = tf.nn.conv3d(tf.constant(IMAGES[:, None]), FILTER[None], 1, "SAME")
    a, b = session.run([flat, solid])
    np.testing.assert_allclose(a, b[:, 0], rtol=1e-4, atol=1e-4)


def test_impossible_geometry_is_refused():
    x = tf.constant(IMAGES)
    with pytest.raises(
        ValueError, match=r"Depth of input \(3\) is not a multiple of input depth of filter \(2\)"
    ):
        tf.nn.conv2d(x, tf.ones([3, 3, 2, 4]), 1, "SAME")
    with pytest.raises(ValueError, match="Negative dimension size caused by subtracting 9 from 7"):
        tf.nn.conv2d(x, tf.ones([9, 9, 3, 4]), 1, "VALID")
    with pytest.raises(ValueError, match="Shape must be rank 4 but is rank 3"):
        tf.nn.conv2d(tf.ones([7, 6, 3]), FILTER, 1, "SAME")
    with pytest.raises(ValueError, match="strides should be of length 1, 2 or 4 but was 3"):
        tf.nn.conv2d(x, FILTER, [1, 1, 1], "SAME")
    with pytest.raises(ValueError, match="Cannot specify both"):
        tf.nn.conv2d(x, FILTER, 1, "SAME", filters=FILTER)


def test_a_filter_that_does_not_fit_is_reported_when_run(session):
    w = tf.placeholder(tf.float32)
    y = tf.nn.conv2d(tf.constant(IMAGES), w, 1, "SAME")
    with pytest.raises(tf.errors.InvalidArgumentError, match="not a multiple of input depth"):
        session.run(y, {w: np.ones([3, 3, 2, 4])})


@pytest.mark.parametrize(("depth", "padding"), [(4, "VALID"), (9, "SAME")])
def test_the_gradient_of_a_filter_is_that_found_by_small_steps(session, depth, padding):
    # The steps are small: units in the last place of a result, which is near 50, count.
    def rising(*shape):
        return tf.constant(np.arange(np.prod(shape)).reshape(shape) / np.prod(shape), tf.float32)

    x, w = rising(2, depth, 4, 7, 2), rising(4, 4, 4, 2, 3)
    y = tf.nn.conv3d(x, w, [1, 3, 3, 3, 1], padding)
    assert tf.test.compute_gradient_error(w, [4, 4, 4, 2, 3], y, y.shape.as_list()) < 4e-3
