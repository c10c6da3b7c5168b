"""Images turned, moved and seen from elsewhere."""

import numpy as np
import pytest

import tensorfleet as tf

image = tf.contrib.image
IMAGES = np.random.RandomState(0).uniform(0, 1, [2, 5, 6, 3]).astype(np.float32)


def test_images_are_turned_counterclockwise(session):
    square = IMAGES[0, :5, :5]
    turned = session.run(image.rotate(square, np.pi / 2))
    np.testing.assert_array_equal(turned, np.rot90(square))
    both = session.run(image.rotate(IMAGES[:, :5, :5], [0.0, np.pi], interpolation="BILINEAR"))
    np.testing.assert_allclose(both[0], IMAGES[0, :5, :5], atol=1e-5)
    np.testing.assert_allclose(both[1], np.rot90(IMAGES[1, :5, :5], 2), atol=1e-5)


def test_images_are_moved(session):
    moved = session.run(image.translate(IMAGES, [1, -2]))
    expected = np.zeros_like(IMAGES)
    expected[:, :3, 1:] = IMAGES[:, 2:, :-1]
    np.testing.assert_array_equal(moved, expected)
    half = session.run(image.translate(IMAGES[0, :, :, 0], [[0.5, 0.0]], "BILINEAR"))
    plain = IMAGES[0, :, :, 0]
    np.testing.assert_allclose(half[:, 1:], (plain[:, 1:] + plain[:, :-1]) / 2, rtol=1e-5)
    np.testing.assert_allclose(half[:, 0], plain[:, 0] / 2, rtol=1e-5)


def test_projections_one_after_the_other(session):
    turn = image.angles_to_projective_transforms(0.3, 5.0, 6.0)
    back = image.angles_to_projective_transforms(-0.3, 5.0, 6.0)
    whole = session.run(image.compose_transforms(turn, back))
    np.testing.assert_allclose(whole, [[1, 0, 0, 0, 1, 0, 0, 0]], atol=1e-5)
    matrices = session.run(image.flat_transforms_to_matrices([[2.0, 0, 1, 0, 3, 0, 0, 0]]))
    assert matrices.tolist() == [[[2, 0, 1], [0, 3, 0], [0, 0, 1]]]


def test_gradients_reach_the_images(session):
    images = tf.constant(IMAGES)
    slope = tf.gradients(
        tf.reduce_sum(image.transform(images, [1, 0, 0.5, 0, 1, 0.0, 0, 0], "BILINEAR")), images
    )[0]
    np.testing.assert_allclose(session.run(slope)[:, :, 1:], 1, rtol=1e-5)


def test_sizes_and_mistakes(session):
    result = session.run(image.transform(IMAGES, [0.5, 0, 0, 0, 0.5, 0, 0, 0], output_shape=[10, 12]))
    assert result.shape == (2, 10, 12, 3)
    with pytest.raises(TypeError, match="rank between 2 and 4"):
        image.transform(np.zeros([3], np.float32), [1, 0, 0, 0, 1, 0, 0, 0])
    with pytest.raises(ValueError, match="Invalid interpolation"):
        image.rotate(IMAGES, 1.0, "CUBIC")
