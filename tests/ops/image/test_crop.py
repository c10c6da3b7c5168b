"""Crops of images, and their gradients."""

import math

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.ops.image import crop as images_crop

BOXES = np.array(
    [[0.1, 0.05, 0.83, 0.9], [0.9, 0.71, 0.23, 0.17], [-0.3, 0.2, 1.2, 0.9], [2.0, 2.0, 3.0, 3.0]], np.float32
)
WHICH = np.array([0, 1, 1, 0], np.int32)


def pixel_by_pixel(dy, size, nearest):
    """The gradient as its definition has it."""
    image = np.zeros(size, np.float64)
    for box, (y1, x1, y2, x2), image_number in zip(dy, BOXES.astype(np.float64), WHICH, strict=True):
        rows, columns = box.shape[:2]
        for i in range(rows):
            y = y1 * (size[1] - 1) + i * (y2 - y1) * (size[1] - 1) / (rows - 1)
            for j in range(columns):
                x = x1 * (size[2] - 1) + j * (x2 - x1) * (size[2] - 1) / (columns - 1)
                if not (0 <= y <= size[1] - 1 and 0 <= x <= size[2] - 1):
                    continue
                if nearest:
                    image[image_number, math.floor(y + 0.5), math.floor(x + 0.5)] += box[i, j]
                    continue
                for row, down in ((math.floor(y), 1 - y % 1), (math.ceil(y), y % 1)):
                    for column, across in ((math.floor(x), 1 - x % 1), (math.ceil(x), x % 1)):
                        image[image_number, row, column] += down * across * box[i, j]
    return image


def gradient(session, dy, size, method):
    image = tf.placeholder(tf.float32, size)
    crops = tf.image.crop_and_resize(image, BOXES, WHICH, dy.shape[1:3], method=method)
    return session.run(tf.gradients(crops, image, dy)[0])


@pytest.mark.parametrize("method", ["bilinear", "nearest"])
@pytest.mark.parametrize("crop", [(4, 6), (13, 11)])
@pytest.mark.parametrize("size", [(2, 9, 7, 3), (2, 40, 50, 3), (2, 8, 9, 20)])
def test_the_gradient_of_a_crop_goes_to_the_pixels_that_it_is_made_of(session, size, crop, method):
    dy = np.random.RandomState(0).rand(len(BOXES), *crop, size[3]).astype(np.float32)
    grads = gradient(session, dy, size, method)
    np.testing.assert_allclose(grads, pixel_by_pixel(dy, size, method == "nearest"), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("step", [-(10**6), 10**6])
def test_both_ways_to_add_crops_give_the_same(session, monkeypatch, step):
    monkeypatch.setattr(images_crop, "_ROW_START_COST", step)
    dy = np.random.RandomState(0).rand(len(BOXES), 5, 6, 4).astype(np.float32)
    grads = gradient(session, dy, (2, 10, 12, 4), "bilinear")
    np.testing.assert_allclose(grads, pixel_by_pixel(dy, (2, 10, 12, 4), False), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("depth", [2, 40])
def test_what_a_crop_has_outside_of_the_image_does_not_come_back(session, depth):
    dy = np.ones([len(BOXES), 5, 5, depth], np.float32)
    dy[3] = np.nan
    assert np.isfinite(gradient(session, dy, (2, 6, 6, depth), "bilinear")).all()


def test_the_gradient_of_no_crops_is_zero(session):
    image = tf.placeholder(tf.float32, [1, 4, 5, 3])
    boxes = tf.placeholder(tf.float32, [None, 4])
    which = tf.placeholder(tf.int32, [None])
    slope = tf.gradients(tf.image.crop_and_resize(image, boxes, which, [2, 2]), image)[0]
    fed = {image: np.ones([1, 4, 5, 3]), boxes: np.zeros([0, 4]), which: np.zeros([0], np.int32)}
    assert not session.run(slope, fed).any()


def test_the_gradient_of_an_image_that_is_not_there_is_refused(session):
    slope = tf.raw_ops.CropAndResizeGradImage(
        grads=np.ones([1, 2, 2, 1], np.float32),
        boxes=BOXES[:1],
        box_ind=[1],
        image_size=[1, 3, 3, 1],
        T=tf.float32,
    )
    with pytest.raises(tf.errors.OutOfRangeError, match="box_index has values outside"):
        session.run(slope)
