"""Rows of different lengths: made, fed, fetched, made dense."""

import numpy as np
import pytest

import tensorfleet as tf


def test_constants_are_fetched_as_values(session):
    made = tf.ragged.constant([[[1, 2], [3]], [], [[4]]])
    assert made.shape.as_list() == [3, None, None] and made.ragged_rank == 2 and made.dtype == tf.int32
    got = session.run({"a": made})["a"]
    assert isinstance(got, tf.ragged.RaggedTensorValue)
    assert got.to_list() == made.eval().to_list() == [[[1, 2], [3]], [], [[4]]]
    assert got.shape == (3, None, None) and got.ragged_rank == 2


def test_feeding(session):
    made = tf.ragged.placeholder(tf.int32, 1)
    value = tf.ragged.constant_value([[1, 2], [3]], dtype=tf.int32)
    assert session.run(made.row_lengths(), {made: value}).tolist() == [2, 1]
    assert session.run(made.to_tensor(), {made: value}).tolist() == [[1, 2], [3, 0]]


def test_wrong_rows_are_refused(session):
    values, splits = tf.placeholder_with_default([1, 2], None), tf.placeholder(tf.int64, [None])
    made = tf.RaggedTensor.from_row_splits(values, splits)
    for wrong in ([1, 2], [0, 2, 1], [0, 1, 5]):
        with pytest.raises(tf.errors.InvalidArgumentError, match="do not form a valid RaggedTensor"):
            session.run(made, {splits: wrong})
    assert session.run(made, {splits: [0, 1, 2]}).to_list() == [[1], [2]]


def test_gradients_reach_the_values(session):
    values = tf.constant([1.0, 2.0, 3.0])
    made = tf.RaggedTensor.from_row_lengths(values, [2, 1])
    weights = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    grad = tf.gradients(made.to_tensor() * weights, values)[0]
    assert session.run(grad).tolist() == [1, 2, 3]


def test_sparse_tensors_with_holes_have_no_rows(session):
    holes = tf.SparseTensor([[0, 1]], [1], [1, 2])
    with pytest.raises(tf.errors.InvalidArgumentError, match="right-ragged"):
        session.run(tf.RaggedTensor.from_sparse(holes))
