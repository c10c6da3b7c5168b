"""Convolutions and pools made of others."""

import numpy as np
import pytest

import tensorfleet as tf

IMAGES = np.random.RandomState(0).randn(2, 7, 6, 3).astype(np.float32)
FILTER = np.random.RandomState(1).randn(3, 2, 3, 4).astype(np.float32)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("rate", [[2, 2], [2, 1], [1, 3]])
def test_dilation_by_space_to_batch_is_dilation(session, padding, rate):
    result = tf.nn.convolution(tf.constant(IMAGES), FILTER, padding, dilation_rate=rate)
    plain = tf.nn.conv2d(tf.constant(IMAGES), FILTER, 1, padding, dilations=rate)
    np.testing.assert_allclose(*session.run([result, plain]), rtol=1e-4, atol=1e-4)
    assert result.op.type == "BatchToSpaceND"


def test_dilation_with_channels_first_and_an_unknown_size(session):
    x = tf.placeholder(tf.float32, [None, 3, None, None])
    result = tf.nn.convolution(x, FILTER, "VALID", dilation_rate=[2, 2], data_format="NCHW")
    plain = tf.nn.conv2d(tf.constant(IMAGES), FILTER, 1, "VALID", dilations=[2, 2])
    got, expected = session.run([result, plain], {x: np.transpose(IMAGES, [0, 3, 1, 2])})
    np.testing.assert_allclose(got, np.transpose(expected, [0, 3, 1, 2]), rtol=1e-4, atol=1e-4)


def test_atrous_convolution_and_its_transpose(session):
    y = tf.nn.atrous_conv2d(tf.constant(IMAGES), FILTER, 2, "VALID")
    assert y.shape.as_list() == [2, 3, 4, 4]
    back = tf.nn.atrous_conv2d_transpose(y, FILTER, [2, 7, 6, 3], 2, "VALID")
    assert session.run(back).shape == (2, 7, 6, 3)


def test_strides_and_dilation_exclude_each_other():
    with pytest.raises(ValueError, match="strides > 1 not supported in conjunction with dilation_rate > 1"):
        tf.nn.convolution(tf.constant(IMAGES), FILTER, "SAME", strides=[2, 2], dilation_rate=[2, 2])


def test_a_sequence_is_an_image_one_pixel_high(session):
    x, w = IMAGES[:, :, 0], FILTER[:, 0]
    line = tf.nn.conv1d(tf.constant(x), w, 2, "SAME")
    plane = tf.nn.conv2d(tf.constant(x[:, None]), w[None], [1, 2], "SAME")
    a, b = session.run([line, plane])
    np.testing.assert_allclose(a, b[:, 0], rtol=1e-5)
    first = tf.nn.conv1d(tf.constant(np.transpose(x, [0, 2, 1])), w, 2, "SAME", data_format="NCW")
    np.testing.assert_allclose(session.run(first), np.transpose(a, [0, 2, 1]), rtol=1e-5)


def test_transposed_convolutions_of_every_rank(session):
    x = IMAGES[:, :, 0]
    w = np.random.RandomState(3).randn(3, 5, 3).astype(np.float32)
    line = tf.nn.conv_transpose(tf.constant(x), w, [2, 14, 5], 2)
    plane = tf.nn.conv_transpose(tf.constant(x[:, None]), w[None], [2, 1, 14, 5], [1, 2])
    solid = tf.nn.conv_transpose(tf.constant(x[:, None, None]), w[None, None], [2, 1, 1, 14, 5], [1, 1, 2])
    a, b, c = session.run([line, plane, solid])
    np.testing.assert_allclose(a, b[:, 0], rtol=1e-5)
    np.testing.assert_allclose(a, c[:, 0, 0], rtol=1e-5)


def test_separable_is_depthwise_then_pointwise(session):
    point = np.random.RandomState(2).randn(1, 1, 12, 2).astype(np.float32)
    y = tf.nn.separable_conv2d(tf.constant(IMAGES), FILTER, point, [1, 1, 1, 1], "SAME")
    deep = tf.nn.depthwise_conv2d(tf.constant(IMAGES), FILTER, [1, 1, 1, 1], "SAME")
    got, between = session.run([y, deep])
    np.testing.assert_allclose(got, between @ point[0, 0], rtol=1e-4, atol=1e-4)
    assert (y.op.name, deep.op.name) == ("separable_conv2d", "depthwise")


def test_pool_of_any_rank_and_dilation(session):
    x = tf.constant(IMAGES)
    np.testing.assert_array_equal(
        *session.run([tf.nn.pool(x, [2, 2], "MAX", "SAME", strides=[2, 2]), tf.nn.max_pool(x, 2, 2, "SAME")])
    )
    dilated = session.run(tf.nn.pool(x, [2, 2], "MAX", "VALID", dilation_rate=[2, 2]))
    corners = [IMAGES[:, a : a + 5, b : b + 4] for a in (0, 2) for b in (0, 2)]
    np.testing.assert_array_equal(dilated, np.max(corners, axis=0))
    line = session.run(tf.nn.pool(tf.constant(IMAGES[:, :, 0]), [2], "AVG", "VALID"))
    np.testing.assert_allclose(line, (IMAGES[:, :-1, 0] + IMAGES[:, 1:, 0]) / 2, rtol=1e-6)


def test_channels_in_front_of_unknown_space_are_known():
    images = tf.placeholder(tf.float32, [1, 10, None, None])
    result = tf.nn.convolution(
        images, tf.zeros([3, 3, 10, 20]), "VALID", dilation_rate=[2, 2], data_format="NCHW"
    )
    assert result.shape.as_list() == [1, 20, None, None]


def test_a_transposed_convolution_takes_its_number_of_dimensions_from_the_shape_of_its_result(session):
    x, filters = np.ones([2, 4, 3], np.float32), np.ones([3, 5, 3], np.float32)
    sized = tf.nn.conv_transpose(x, filters, [2, 8, 5], 2)
    shaped = tf.nn.conv_transpose(x, filters, tf.constant([2, 8, 5]), 2)
    np.testing.assert_array_equal(*session.run([sized, shaped]))
    with pytest.raises(ValueError, match="output_shape must be of length 3, 4 or 5 but was 6"):
        tf.nn.conv_transpose(x, filters, [2, 8, 5, 1, 1, 1], 2)
    with pytest.raises(ValueError, match="output_shape must be a tensor or sized collection"):
        tf.nn.conv_transpose(x, filters, None, 2)
