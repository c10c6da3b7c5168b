"""Shapes that an op refuses when it is made."""

from __future__ import annotations

import numpy as np
import pytest

import tensorfleet as tf

X = np.ones([2, 3, 4], np.float32)
PADS = [[0, 0], [-1, 0], [0, 0], [0, 0]]
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
    size = [2, tf.placeholder(tf.int32, [])]
    image = tf.placeholder(tf.float32, [None, None, None, 3])
    assert tf.image.resize_images(image, size).shape.as_list() == [None, 2, None, 3]
    diagonal = tf.placeholder(tf.float32, [5, 2])
    assert tf.matrix_set_diag(tf.placeholder(tf.float32), diagonal).shape.as_list() == [5, None, None]


@pytest.mark.parametrize(
    ("run", "kind", "complaint"),
    [
        (
            lambda: tf.image.encode_jpeg(np.zeros([4, 4, 3], np.uint8), quality=101),
            "InvalidArgumentError",
            "quality",
        ),
        (lambda: tf.matrix_band_part(X, 4, 0), "InvalidArgumentError", "num_lower must be negative or less"),
        (lambda: tf.transpose(X, [0, 1, 1]), "InvalidArgumentError", "2 is missing from {0,1,1}"),
        (
            lambda: tf.nn.conv2d_transpose(X[None], np.ones([2, 2, 1, 4]), [1, 9, 3, 1], 1),
            "InvalidArgumentError",
            "Size of out_backprop doesn't match computed: actual = 2, computed = 9",
        ),
        (lambda: tf.nn.max_pool(X[None], [2, 1, 1, 1], 1, "SAME"), "UnimplementedError", "batch dimension"),
        (lambda: tf.nn.max_pool(X[None], [1, 2, 1, 2], 1, "SAME"), "UnimplementedError", "exactly one of"),
        (lambda: tf.nn.max_pool(X[None], [1, 1, 1, 2], 1, "SAME"), "UnimplementedError", "equal the depth"),
        (
            lambda: tf.nn.max_pool(X[None], [1, 1, 1, 3], [1, 1, 1, 3], "SAME"),
            "UnimplementedError",
            "evenly divide the input depth",
        ),
    ],
)
def test_what_tensorflow_cannot_compute_is_refused_in_its_words(run, kind, complaint):
    with tf.Session() as s, pytest.raises(getattr(tf.errors, kind), match=complaint):
        s.run(run())


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: tf.unsorted_segment_sum(X, [0, 1, 2], 3), "Dimensions must be equal, but are 2 and 3"),
        (lambda: tf.dynamic_partition(1.0, [0], 2), "Shape must be at least rank 1 but is rank 0"),
        (lambda: tf.data.Dataset.range(3).unbatch(), "Cannot unbatch an input with scalar components"),
        (lambda: tf.nn.pool(X[None], [2, 2], "FOO", "SAME"), "2-D FOO pooling is not supported"),
        (lambda: tf.nn.max_pool(X[None], [1, 0, 1, 1], 1, "SAME"), "values must be positive"),
        (lambda: tf.nn.conv2d(X[None], np.ones([1, 1, 4, 1]), 1, PADS), "must be nonnegative"),
        (lambda: tf.nn.conv2d(X[None], np.ones([1, 1, 4, 1]), 1, [[1, 0]] * 4), "in the batch or depth"),
    ],
)
def test_windows_and_prefixes_that_do_not_fit_are_refused(make, complaint):
    with pytest.raises(ValueError, match=complaint):
        make()


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda p: tf.pad(X, p([3, 3])), "Dimension must be 2 but is 3"),
        (lambda p: tf.space_to_batch_nd(X, p([]), p([2, 2])), "block_shape must have rank 1"),
        (lambda p: tf.space_to_batch_nd(X, p([3]), p([3, 2])), "at least rank 4 but is rank 3"),
        (lambda p: tf.batch_to_space_nd(X, p([2]), p([1, 2])), r"Shapes are \[1,2\] and \[2,2\]"),
        (lambda p: tf.image.crop_and_resize(X[None], [[0.0] * 4], [0], p([3])), "must be 2 but is 3"),
        (lambda p: tf.raw_ops.RFFT(input=X, fft_length=p([2])), "Dimension must be 1 but is 2"),
        (lambda p: tf.random_uniform([2], p([2]), 9, tf.int32), r"minval must be a scalar; got .* \[2\]"),
        (lambda p: tf.scatter_nd(p([3, 3]), np.zeros([3, 4]), p([2])), "The inner 0 dimensions of output"),
        (
            lambda p: tf.nn.conv2d_transpose(X[None], np.ones([2, 2, 1, 5]), [1, 4, 6, 1], 2),
            "must be equal, but are 4 and 5",
        ),
        (lambda p: tf.concat([1.0, [2.0]], 0), "Can't concatenate scalars"),
        (lambda p: tf.split(1.0, [1, 2]), "Can't split scalars"),
        (lambda p: tf.substr(["a"], p([2]), p([3])), r"shapes must match: \[2\] vs. \[3\]"),
        (
            lambda p: tf.sets.set_union(p([2, 3]), p([1, 3])),
            "Dimension 0 in both shapes must be equal, but are 2 and 1",
        ),
    ],
)
def test_dimensions_other_than_the_op_tells_are_refused(make, complaint):
    with pytest.raises(ValueError, match=complaint):
        make(lambda shape: tf.placeholder(tf.int32, shape))
