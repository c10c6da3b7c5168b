"""Blocks of space moved into the batch and back."""

import numpy as np
import pytest

import tensorfleet as tf


def test_what_lies_behind_blocks_of_unknown_size_is_known():
    blocks = tf.placeholder(tf.int32, [2])
    image = tf.placeholder(tf.float32, [None, None, None, 3])
    assert tf.batch_to_space_nd(image, blocks, tf.placeholder(tf.int32)).shape.as_list() == [None] * 3 + [3]
    assert tf.space_to_batch_nd(image, blocks, [[0, 0], [0, 0]]).shape.as_list() == [None] * 3 + [3]


def test_blocks_have_at_least_one_element():
    with pytest.raises(ValueError, match="block_shape must be positive"):
        tf.batch_to_space(np.zeros([4, 1, 1, 1]), [[0, 0], [0, 0]], block_size=0)
