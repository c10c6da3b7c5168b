"""What is said of shapes that are wrong and were unknown until the step ran."""

import numpy as np
import pytest

import tensorfleet as tf


@pytest.mark.parametrize(
    ("build", "value", "words"),
    [
        (lambda x: tf.depth_to_space(x, 2), np.zeros((1, 2, 2, 3)), "evenly divisible by 4 but is 3"),
        (lambda x: tf.segment_sum(x, [0, 0, 1]), 0.0, "Shape must be at least rank 1 but is rank 0"),
        (
            lambda x: tf.nn.conv2d(x, np.zeros((1, 1, 2, 3)), [1, 1, 1, 1], "SAME"),
            np.zeros(3),
            "must be rank 4",
        ),
    ],
)
def test_the_shape_function_says_what_is_wrong_with_them(build, value, words):
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32)
        made = build(x)
        for _ in range(3):  # in numpy and in a program
            with pytest.raises(tf.errors.InvalidArgumentError, match=words) as caught:
                sess.run(made, {x: value})
        assert caught.value.op is made.op


@pytest.mark.parametrize(
    ("build", "value", "words"),
    [
        (tf.matrix_diag, 0.0, r"diagonal must be at least 1-dim, received shape: \[\]"),
        (tf.matrix_diag_part, [1.0], r"input must be at least 2-dim, received shape: \[1\]"),
        (
            lambda x: tf.matrix_set_diag([[x]], x),
            0.0,
            r"received input shape: \[1,1\] and diagonal shape: \[\]",
        ),
        (
            lambda x: tf.betainc(x, [0.5], [0.5]),
            [0.5] * 2,
            r"Shapes of a and b are inconsistent: \[2\] vs. \[1\]",
        ),
        (lambda x: tf.multinomial(x, 3), 1.0, r"logits should be a matrix, got shape \[\]"),
        (
            lambda x: tf.image.draw_bounding_boxes(x, np.zeros((1, 1, 4))),
            0.0,
            "The rank of the images should be 4",
        ),
    ],
)
def test_tensorflows_kernels_have_words_of_their_own(build, value, words):
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32)
        made = build(x)
        with pytest.raises(tf.errors.InvalidArgumentError, match=words):
            sess.run(made, {x: value})


def test_the_kernels_own_words_stay_where_the_shapes_are_right():
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.int32)
        with pytest.raises(tf.errors.InvalidArgumentError, match="negative integer powers"):
            sess.run(tf.pow(x, -1), {x: [2]})
