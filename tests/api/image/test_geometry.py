"""Images whose rank is not known, and what is refused."""

import numpy as np
import pytest

import tensorfleet as tf


@pytest.mark.parametrize(
    "change",
    [
        tf.image.flip_left_right,
        tf.image.flip_up_down,
        tf.image.random_flip_left_right,
        tf.image.transpose_image,
        tf.image.rot90,
    ],
)
def test_what_is_of_unknown_rank_is_one_image(change):
    assert change(tf.placeholder(tf.uint8)).shape.ndims == 3
    with pytest.raises(ValueError, match="at least three-dimensional"):
        change(tf.placeholder(tf.uint8, [None, None]))


@pytest.mark.parametrize(
    "change",
    [
        lambda x: tf.image.pad_to_bounding_box(x, 1, 0, 3, 2),
        lambda x: tf.image.crop_to_bounding_box(x, 1, 1, 1, 1),
        lambda x: tf.image.resize_image_with_crop_or_pad(x, 1, 4),
    ],
)
def test_windows_of_images_of_unknown_rank(session, change):
    unknown = tf.placeholder(tf.float32)
    image = np.arange(12.0).reshape(2, 2, 3)
    np.testing.assert_array_equal(session.run(change(unknown), {unknown: image}), session.run(change(image)))
    for rank in (2, 5):
        with pytest.raises(ValueError, match="must have either 3 or 4 dimensions"):
            change(np.ones([2] * rank))


@pytest.mark.parametrize("adjust", [tf.image.adjust_hue, tf.image.adjust_saturation])
def test_colors_need_three_channels(session, adjust):
    with pytest.raises(tf.errors.InvalidArgumentError, match="3 channels but instead has 4"):
        session.run(adjust(np.ones([2, 2, 4], np.float32), 0.5))
