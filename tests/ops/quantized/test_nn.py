"""Layers on quantized tensors give, within a step, what they give for floats."""

import numpy as np

import tensorfleet as tf

X = np.linspace(-2, 10, 16).reshape(1, 4, 4, 1).astype(np.float32)
STEP = 12 / 255


def quantized(x, low, high):
    return tf.quantize(x, low, high, tf.quint8, mode="MIN_FIRST")


def floats(made, low, high):
    with tf.Session() as sess:
        return sess.run(tf.dequantize(made, low, high, mode="MIN_FIRST"))


def test_pools_and_activations():
    given = quantized(X, -2.0, 10.0)
    window = [1, 2, 2, 1], [1, 2, 2, 1], "VALID"
    blocks = X.reshape(2, 2, 2, 2).swapaxes(1, 2)
    means, greatest = blocks.mean((2, 3)).ravel(), blocks.max((2, 3)).ravel()
    np.testing.assert_allclose(
        floats(*tf.nn.quantized_avg_pool(*given, *window)).ravel(), means, atol=2 * STEP
    )
    np.testing.assert_allclose(
        floats(*tf.nn.quantized_max_pool(*given, *window)).ravel(), greatest, atol=STEP
    )
    cut = tf.nn.quantized_relu_x(given[0], 5.0, given[1], given[2])
    np.testing.assert_allclose(floats(*cut), np.clip(X, 0, 5), atol=STEP)


def test_joined_in_a_range_that_holds_both():
    parts = [quantized(X, -2.0, 10.0), quantized(X, -4.0, 12.0)]
    result = tf.quantized_concat(1, *[list(column) for column in zip(*parts, strict=True)])
    assert result[0].shape.as_list() == [1, 8, 4, 1]
    np.testing.assert_allclose(floats(*result), np.concatenate([X, X], 1), atol=3 * STEP)


def test_convolution(session):
    weights = np.array([[1.0, -0.5], [0.25, 2.0]], np.float32).reshape(2, 2, 1, 1)
    x, low, high = quantized(X, -2.0, 10.0)
    w, filter_low, filter_high = quantized(weights, -1.0, 2.0)
    result, bottom, top = tf.nn.quantized_conv2d(
        x, w, low, high, filter_low, filter_high, [1, 1, 1, 1], "VALID"
    )
    whole, top = session.run([tf.cast(result, tf.int32), top])
    wanted = session.run(tf.nn.conv2d(X, weights, [1, 1, 1, 1], "VALID"))
    np.testing.assert_allclose(whole * (top / (2**31 - 1)), wanted, atol=0.3)


def test_what_is_quantized_has_names_before_and_after_a_run():
    result = quantized([1.0, 2.0], 0.0, 255.0)
    with tf.Session() as sess:
        value = sess.run(result)
    assert result.output.dtype == tf.quint8
    np.testing.assert_array_equal(value.output, [1, 2])
    assert (value.output_min, value.output_max) == (0.0, 255.0)
