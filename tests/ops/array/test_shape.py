"""Shapes worked out from what is given."""

import pytest

import tensorfleet as tf


def test_of_what_holds_nothing_the_missing_dimension_is_found(session):
    assert session.run(tf.reshape(tf.zeros([0, 6]), [0, -1, 3])).shape == (0, 2, 3)


def test_shapes_with_more_elements_than_int32_has():
    large = tf.reshape(tf.placeholder(tf.bool, [50000, 50000]), [50000**2])
    assert large.shape.as_list() == [50000**2]


def test_a_sequence_is_not_reversed_along_the_axis_of_its_batch(session):
    with pytest.raises(tf.errors.InvalidArgumentError, match="batch_dim == seq_dim == 0"):
        session.run(tf.reverse_sequence([[1, 2], [3, 4]], [2, 2], seq_axis=0))
