"""Labels, predictions and weights with a last dimension of 1, whether their ranks are known or not."""

import numpy as np
import pytest

import tensorfleet as tf

LOGITS = [[10.0, 0.0, 0.0], [0.0, 10.0, 0.0], [0.0, 0.0, 10.0]]


@pytest.mark.parametrize("weights", [[1.0, 2.0, 6.0], [[1.0], [2.0], [6.0]], 3.0])
@pytest.mark.parametrize("labels", [[2, 0, 1], [[2], [0], [1]]])
def test_a_loss_of_tensors_of_unknown_rank(labels, weights, session):
    y, p, w = tf.placeholder(tf.int32), tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    loss = tf.losses.sparse_softmax_cross_entropy(y, p, w)
    assert session.run(loss, {y: labels, p: LOGITS, w: weights}) == pytest.approx(30.0, abs=1e-2)


def test_a_loss_with_weights_of_unknown_rank(session):
    w = tf.placeholder(tf.float32)
    loss = tf.losses.sparse_softmax_cross_entropy(tf.constant([[2], [0], [1]]), tf.constant(LOGITS), w)
    assert session.run(loss, {w: [[3.0], [0.0], [3.0]]}) == pytest.approx(30.0, abs=1e-2)


@pytest.mark.parametrize(
    ("predictions", "labels", "weights"),
    [
        ([1.0, 3.0], [[2.0], [5.0]], [1.0, 3.0]),
        ([[1.0], [3.0]], [2.0, 5.0], [[1.0], [3.0]]),
        ([[1.0], [3.0]], [[2.0], [5.0]], [1.0, 3.0]),
    ],
)
def test_a_metric_of_tensors_of_unknown_rank(predictions, labels, weights, session):
    p, y, w = (tf.placeholder(tf.float32) for _ in range(3))
    _, update = tf.metrics.mean_absolute_error(y, p, w)
    session.run(tf.local_variables_initializer())
    assert session.run(update, {p: predictions, y: labels, w: weights}) == pytest.approx(7 / 4)


def test_a_metric_with_one_weight_of_unknown_rank(session):
    w = tf.placeholder(tf.float32)
    _, update = tf.metrics.mean_absolute_error(np.zeros([2, 1], np.float32), tf.constant([1.0, 3.0]), w)
    session.run(tf.local_variables_initializer())
    assert session.run(update, {w: 5.0}) == 2.0
