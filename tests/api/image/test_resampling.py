"""Resizing as TensorFlow 2 does it."""

import numpy as np
import pytest

import tensorfleet as tf

image_ops = tf.python.ops.image_ops
METHODS = ["bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic"]


def _run(x):
    with tf.Session() as sess:
        return sess.run(x)


def test_pixels_are_taken_by_their_centers():
    x = np.arange(4, dtype=np.float32).reshape(1, 1, 4, 1)
    assert _run(image_ops.resize_images_v2(x, [1, 2])).ravel().tolist() == [0.5, 2.5]
    assert _run(image_ops.resize_images_v2(x, [1, 2], "nearest")).ravel().tolist() == [1, 3]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("antialias", [False, True])
def test_an_area_of_one_color_keeps_it(method, antialias):
    x = np.full((1, 7, 5, 3), 3.0, np.float32)
    result = image_ops.resize_images_v2(x, [4, 9], method, antialias=antialias)
    assert result.shape == [1, 4, 9, 3]
    np.testing.assert_allclose(_run(result), 3, rtol=1e-5)


def test_what_gets_smaller_is_smoothed_when_asked():
    stripes = np.tile(np.array([0, 1], np.float32), 16).reshape(1, 1, 32, 1)
    smooth = _run(image_ops.resize_images_v2(stripes, [1, 5], antialias=True))
    assert np.ptp(smooth) < 0.1 < np.ptp(_run(image_ops.resize_images_v2(stripes, [1, 5])))


def test_proportions_and_single_images_are_kept():
    x = np.zeros((10, 20, 1), np.uint8)
    assert image_ops.resize_images_v2(x, [5, 5], preserve_aspect_ratio=True).shape == [2, 5, 1]
    with pytest.raises(ValueError, match="Resize method is not implemented"):
        image_ops.resize_images_v2(x, [5, 5], "other")
    assert image_ops.resize_images(x, [5, 5], image_ops.ResizeMethod.AREA).shape == [5, 5, 1]


def test_gradients_of_scaled_images():
    x = tf.constant(np.random.RandomState(1).rand(1, 5, 4, 1).astype(np.float32))
    y = image_ops.resize_images_v2(x, [3, 6], "lanczos3", antialias=True)
    with tf.Session():
        assert tf.test.compute_gradient_error(x, [1, 5, 4, 1], y, [1, 3, 6, 1]) < 1e-3


def test_a_scale_must_be_positive_and_a_kernel_known():
    x = tf.zeros([1, 2, 2, 1])
    scale = tf.python.ops.gen_image_ops.scale_and_translate
    for how, text in (({"kernel_type": "other"}, "Unrecognized kernel type"), ({}, "greater than zero")):
        with pytest.raises(tf.errors.InvalidArgumentError, match=text):
            _run(scale(x, [2, 2], [0.0, 1.0], [0.0, 0.0], **how))
