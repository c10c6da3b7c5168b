"""Distances between sequences."""

import numpy as np
import pytest

import tensorfleet as tf


def sparse(rows, columns=9):
    places = [[i, j] for i, row in enumerate(rows) for j in range(len(row))]
    return tf.SparseTensor(
        np.array(places, np.int64).reshape(-1, 2), [x for row in rows for x in row], [len(rows), columns]
    )


def distance(*arguments, **options):
    with tf.Session() as sess:
        return sess.run(tf.edit_distance(*arguments, **options)).tolist()


def test_distance_counts_insertions_deletions_and_replacements():
    words = sparse([list("kitten"), list("abc"), ["x"]])
    truths = sparse([list("sitting"), list("c"), ["x"]])
    assert distance(words, truths, normalize=False) == [3, 2, 0]
    assert distance(words, truths) == pytest.approx([3 / 7, 2, 0])


def test_sequence_without_truth_is_infinitely_far_and_two_empty_ones_are_equal():
    assert distance(sparse([[1], [], []]), sparse([[], [2, 3], []])) == [np.inf, 1, 0]


def test_result_covers_the_larger_of_both_shapes():
    assert tf.edit_distance(sparse([[1], [2], [3]]), sparse([[1]])).shape == [3]
    assert distance(sparse([[1], [2], [3]]), sparse([[1]])) == [0, np.inf, np.inf]


def test_dense_sequences_and_other_ranks_are_refused():
    with pytest.raises(TypeError, match="Hypothesis must be a SparseTensor"):
        tf.edit_distance([[1]], sparse([[1]]))
    with pytest.raises(
        ValueError, match="Num elements of hypothesis_shape does not match truth_shape: 2 vs. 3"
    ):
        tf.edit_distance(sparse([[1]]), tf.SparseTensor([[0, 0, 0]], [1], [1, 1, 1]))


def test_index_beyond_the_shape_is_refused():
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of bounds"):
        distance(tf.SparseTensor([[5, 0]], [1], [1, 1]), sparse([[1]]))
