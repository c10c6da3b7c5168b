"""tf.contrib.losses: weights that belong to the first axes, and losses that an arg_scope keeps away."""

import numpy as np
import pytest

import tensorfleet as tf

L = tf.contrib.losses
PREDICTIONS = np.array([[4.0, 8, 12], [8, 1, 3]], np.float32)
LABELS = np.array([[1.0, 9, 2], [-5, -2, 6]], np.float32)


def test_a_vector_of_weights_has_one_for_each_example(session):
    loss = L.absolute_difference(tf.constant(PREDICTIONS), tf.constant(LABELS), tf.constant([1.2, 0.0]))
    expected = 1.2 * np.abs(PREDICTIONS - LABELS)[0].sum() / 3
    assert session.run(loss) == pytest.approx(expected)
    assert loss.op.name == "absolute_difference/value"


def test_a_column_of_weights_is_a_vector(session):
    loss = L.mean_squared_error(PREDICTIONS, LABELS, np.array([[1.2], [3.4]], np.float32))
    squares = ((PREDICTIONS - LABELS) ** 2).sum(1)
    assert session.run(loss) == pytest.approx((squares @ [1.2, 3.4]) / 6)


def test_losses_without_weight_are_zero(session):
    assert session.run(L.log_loss(tf.constant([0.5]), tf.constant([1.0]), 0.0)) == 0


def test_weights_with_more_axes_than_losses_are_refused():
    with pytest.raises(ValueError, match="more axes"):
        L.softmax_cross_entropy(tf.zeros([3, 3]), tf.eye(3), tf.ones([3, 3]))


def test_ranks_must_be_known():
    with pytest.raises(ValueError, match="ndims cannot be None"):
        L.cosine_distance(tf.placeholder(tf.float32), tf.placeholder(tf.float32), axis=0)


def test_an_axis_is_told_once():
    with pytest.raises(ValueError, match="must specify 'axis'"):
        L.cosine_distance(tf.ones([1]), tf.ones([1]))
    with pytest.raises(ValueError, match="both 'axis' and 'dim'"):
        L.cosine_distance(tf.ones([1]), tf.ones([1]), axis=0, dim=0)


def test_pairs_inside_of_examples_are_compared(session):
    loss = L.mean_pairwise_squared_error(PREDICTIONS, LABELS, weights=2.0)
    total = 0.0
    for difference in PREDICTIONS - LABELS:
        total += ((difference[:, None] - difference) ** 2).sum() / 9
    assert session.run(loss) == pytest.approx(2 * total, rel=1e-5)


def test_an_arg_scope_keeps_losses_out_of_the_collection():
    with tf.contrib.framework.arg_scope([L.add_loss], loss_collection=None):
        L.absolute_difference(tf.ones([2]), tf.zeros([2]))
    assert L.get_losses() == []
    L.absolute_difference(tf.ones([2]), tf.zeros([2]))
    assert len(L.get_losses()) == 1
