"""Probabilities many of which are zero; a dropout that keeps mean and deviation."""

import numpy as np
import pytest

import tensorfleet as tf

Z = np.random.RandomState(0).normal(0, 2, [6, 5])


def nearest(z):
    """The point of the simplex nearest to z, by trying each number of elements that are not zero."""
    best = None
    for k in range(1, len(z) + 1):
        top = np.sort(z)[::-1][:k]
        p = np.maximum(z - (top.sum() - 1) / k, 0)
        if abs(p.sum() - 1) < 1e-9 and (best is None or np.square(p - z).sum() < np.square(best - z).sum()):
            best = p
    return best


def test_probabilities_are_the_nearest(session):
    got = session.run(tf.contrib.sparsemax.sparsemax(Z))
    np.testing.assert_allclose(got, [nearest(z) for z in Z], atol=1e-9)
    assert (got == 0).any()


def test_the_slope_of_the_loss_is_the_difference(session):
    z, labels = tf.constant(Z), np.eye(5)[[0, 1, 2, 3, 4, 0]]
    p = tf.contrib.sparsemax.sparsemax(z)
    loss = tf.contrib.sparsemax.sparsemax_loss(z, p, labels)
    values, slope, p = session.run([loss, tf.gradients(loss, z)[0], p])
    np.testing.assert_allclose(slope, p - labels, atol=1e-9)
    assert (values >= -1e-9).all()
    sure = tf.contrib.sparsemax.sparsemax_loss(9 * labels, labels, labels)
    np.testing.assert_allclose(session.run(sure), 0, atol=1e-9)


def test_a_dropout_keeps_mean_and_deviation(session):
    x = np.random.RandomState(1).normal(size=[200, 100]).astype(np.float32)
    y = session.run(tf.contrib.nn.alpha_dropout(tf.constant(x), 0.7, seed=1))
    np.testing.assert_allclose([y.mean(), y.std()], [0, 1], atol=0.05)
    with pytest.raises(ValueError, match="keep_prob must be"):
        tf.contrib.nn.alpha_dropout(x, 0.0)
