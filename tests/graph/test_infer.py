"""Shapes that an op refuses when it is made."""

from __future__ import annotations

import numpy as np
import pytest

import tensorfleet as tf

X = np.ones([2, 3, 4], np.float32)
RANKS = "Shape must be rank {} but is rank {} for"


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: tf.argmax(X, [1]), RANKS.format(0, 1)),
        (lambda: tf.concat([X, X], [0, 1]), RANKS.format(0, 1)),
        (lambda: tf.gather(X, [0], axis=[1]), RANKS.format(0, 1)),
        (lambda: tf.range([1], 3), RANKS.format(0, 1)),
        (lambda: tf.slice(X, [[0]], [1]), RANKS.format(1, 2)),
        (lambda: tf.transpose(X, [[0, 1, 2]]), RANKS.format(1, 2)),
        (lambda: tf.invert_permutation(tf.constant([[0]])), RANKS.format(1, 2)),
        (lambda: tf.random_uniform([[2]]), RANKS.format(1, 2)),
        (lambda: tf.sparse_segment_sum(X, [0], [[0]]), RANKS.format(1, 2)),
        (lambda: tf.matrix_set_diag(X, [1.0]), RANKS.format(2, 1)),
        (lambda: tf.matrix_set_diag([1.0], [1.0]), "Shape must be at least rank 2 but is rank 1"),
        (lambda: tf.roll(1.0, 1, 0), "Shape must be at least rank 1 but is rank 0"),
        (lambda: tf.roll(X, [[1]], [0]), "Shape must be at most rank 1 but is rank 2"),
        (lambda: tf.roll(X, [1, 2], [0]), "Dimension 0 in both shapes must be equal, but are 2 and 1"),
        (lambda: tf.reverse_sequence(X, [1, 1], seq_axis=3), "seq_dim must be < input rank: 3 vs. 3"),
        (lambda: tf.reverse_sequence(X, [1] * 3, seq_axis=1), "Dimensions must be equal, but are 2 and 3"),
        (lambda: tf.transpose(X, tf.placeholder(tf.int32, [2])), "Dimension must be 3 but is 2"),
        (lambda: tf.split(X, [-1, -1]), "size_splits can only have one -1"),
        (lambda: tf.space_to_depth(X[None], 1), "Attr 'block_size' of 'SpaceToDepth' Op passed 1 less than"),
        (
            lambda: tf.extract_image_patches(X[None], [2], *[[1] * 4] * 2, "SAME"),
            "passed list of length 1 less",
        ),
    ],
)
def test_what_does_not_fit_is_refused_when_the_op_is_made(make, complaint):
    with pytest.raises(ValueError, match=complaint):
        make()


def test_what_is_not_known_yet_is_refused_when_the_op_runs():
    p, s = tf.placeholder(tf.int32), tf.Session()
    for value, tensor, complaint in [
        (-7, tf.nn.top_k(X, p).values, "Need k >= 0, got -7"),
        ([9, 1], tf.reverse_sequence(X, p, seq_axis=1), r"seq_lens\(0\) > input.dims\(1\)"),
    ]:
        with pytest.raises(tf.errors.InvalidArgumentError, match=complaint):
            s.run(tensor, {p: value})


def test_shapes_are_filled_in_from_the_other_input():
    lengths = tf.placeholder(tf.int32, [5])
    assert tf.reverse_sequence(tf.placeholder(tf.float32, [None, 3]), lengths, 1).shape.as_list() == [5, 3]
    diagonal = tf.placeholder(tf.float32, [5, 2])
    assert tf.matrix_set_diag(tf.placeholder(tf.float32), diagonal).shape.as_list() == [5, None, None]
