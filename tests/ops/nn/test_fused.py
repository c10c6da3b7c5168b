"""Operations that do several steps of a network."""

import numpy as np
import pytest
from tensorfleet.python.framework import test_util
from tensorfleet.python.ops import gen_nn_ops

import tensorfleet as tf
from tests.support.sessions import run

RANDOM = np.random.RandomState(0)


def test_padding_and_resize_are_part_of_the_convolution():
    images, weights = (RANDOM.rand(*s).astype(np.float32) for s in ((2, 3, 4, 2), (2, 2, 2, 3)))
    around = [[0, 0], [1, 2], [2, 0], [0, 0]]
    result = gen_nn_ops.fused_resize_and_pad_conv2d(
        images, [6, 7], around, weights, mode="SYMMETRIC", strides=[1, 2, 1, 1], padding="SAME"
    )
    resized = tf.image.resize_bilinear(images, [6, 7])
    by_steps = tf.nn.conv2d(tf.pad(resized, around, "SYMMETRIC"), weights, [1, 2, 1, 1], "SAME")
    assert result.shape == by_steps.shape
    np.testing.assert_allclose(run(result), run(by_steps), rtol=1e-5)


def test_shapes_that_are_not_known_yet():
    paddings = tf.placeholder(tf.int32, [4, 2])
    images = tf.placeholder(tf.float32, [5, 3, 4, 2])
    result = gen_nn_ops.fused_pad_conv2d(
        images, paddings, np.ones((2, 2, 2, 3), np.float32), mode="REFLECT", strides=[1] * 4, padding="VALID"
    )
    assert result.shape.as_list() == [None, None, None, 3]


@pytest.mark.parametrize("scaled", [True, False])
def test_the_normalization_of_old_graphs_has_a_gradient(session, scaled):
    x = tf.constant(RANDOM.rand(2, 3, 2, 4))
    mean, variance, beta, gamma = (tf.constant(RANDOM.rand(4)) for _ in range(4))
    test_util.set_producer_version(tf.get_default_graph(), 8)
    old = gen_nn_ops._batch_norm_with_global_normalization(x, mean, variance, beta, gamma, 0.01, scaled)
    new = tf.nn.batch_normalization(x, mean, variance, beta, gamma if scaled else None, 0.01)
    weights = RANDOM.rand(2, 3, 2, 4)
    wanted = [x, mean, variance, beta] + ([gamma] if scaled else [])
    by_both = [tf.gradients(y, wanted, weights) for y in (old, new)]
    for one, other in zip(*session.run([[old, *by_both[0]], [new, *by_both[1]]]), strict=True):
        np.testing.assert_allclose(one, other)
    if not scaled:
        np.testing.assert_array_equal(session.run(tf.gradients(old, gamma)[0]), np.zeros(4))


def test_graphs_of_today_do_not_have_it():
    ones = tf.ones([1])
    with pytest.raises(NotImplementedError, match="removed in version 9"):
        gen_nn_ops._batch_norm_with_global_normalization(tf.ones([1] * 4), ones, ones, ones, ones, 0.1, True)
