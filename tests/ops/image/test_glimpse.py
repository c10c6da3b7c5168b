"""Glimpses: windows around given places of images."""

import numpy as np

import tensorfleet as tf


def test_a_glimpse_within_the_image_is_a_piece_of_it(session):
    images = np.random.RandomState(2).rand(2, 8, 9, 3).astype(np.float32)
    result = session.run(tf.image.extract_glimpse(images, [4, 3], tf.zeros([2, 2])))
    np.testing.assert_array_equal(result, images[:, 2:6, 3:6])


def test_a_glimpse_beyond_the_image_has_noise_there(session):
    images = np.full((2, 4, 4, 1), 7, np.float32)
    offsets = [[0.0, 0.0], [-1.0, 0.0]]
    inside, half = session.run(tf.image.extract_glimpse(images, [4, 4], offsets))
    assert (inside == 7).all()
    assert (half[2:] == 7).all() and (half[:2] < 1).all()
