"""Rows of different lengths: made, fed, fetched, made dense."""

import numpy as np
import pytest

import tensorfleet as tf


def test_constants_are_fetched_as_values(session):
    result = tf.ragged.constant([[[1, 2], [3]], [], [[4]]])
    assert result.shape.as_list() == [3, None, None] and result.ragged_rank == 2 and result.dtype == tf.int32
    got = session.run({"a": result})["a"]
    assert isinstance(got, tf.ragged.RaggedTensorValue)
    assert got.to_list() == result.eval().to_list() == [[[1, 2], [3]], [], [[4]]]
    assert got.shape == (3, None, None) and got.ragged_rank == 2


def test_feeding(session):
    result = tf.ragged.placeholder(tf.int32, 1)
    value = tf.ragged.constant_value([[1, 2], [3]], dtype=tf.int32)
    assert session.run(result.row_lengths(), {result: value}).tolist() == [2, 1]
    assert session.run(result.to_tensor(), {result: value}).tolist() == [[1, 2], [3, 0]]


def test_wrong_rows_are_refused(session):
    values, splits = tf.placeholder_with_default([1, 2], None), tf.placeholder(tf.int64, [None])
    result = tf.RaggedTensor.from_row_splits(values, splits)
    for wrong in ([1, 2], [0, 2, 1], [0, 1, 5]):
        with pytest.raises(tf.errors.InvalidArgumentError, match="do not form a valid RaggedTensor"):
            session.run(result, {splits: wrong})
    assert session.run(result, {splits: [0, 1, 2]}).to_list() == [[1], [2]]


def test_gradients_reach_the_values(session):
    values = tf.constant([1.0, 2.0, 3.0])
    result = tf.RaggedTensor.from_row_lengths(values, [2, 1])
    weights = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    grad = tf.gradients(result.to_tensor() * weights, values)[0]
    assert session.run(grad).tolist() == [1, 2, 3]


def test_sparse_tensors_with_holes_have_no_rows(session):
    holes = tf.SparseTensor([[0, 1]], [1], [1, 2])
    with pytest.raises(tf.errors.InvalidArgumentError, match="right-ragged"):
        session.run(tf.RaggedTensor.from_sparse(holes))
