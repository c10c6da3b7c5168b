"""Losses by hand, their reductions and collections, and weights that do not fit."""

import numpy as np
import pytest

import tensorfleet as tf
from tests.support.sessions import run

LABELS = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], np.float32)
GUESSES = np.array([[0.5, 0.25], [1.5, 0.5], [-1.0, 2.0]], np.float32)
ERRORS = (LABELS - GUESSES) ** 2


@pytest.mark.parametrize(
    ("reduction", "wanted"),
    [
        (tf.losses.Reduction.NONE, ERRORS * [[1], [0], [3]]),
        (tf.losses.Reduction.SUM, (ERRORS * [[1], [0], [3]]).sum()),
        (tf.losses.Reduction.MEAN, (ERRORS * [[1], [0], [3]]).sum() / 8),
        (tf.losses.Reduction.SUM_OVER_BATCH_SIZE, (ERRORS * [[1], [0], [3]]).sum() / 6),
        (tf.losses.Reduction.SUM_BY_NONZERO_WEIGHTS, (ERRORS * [[1], [0], [3]]).sum() / 4),
    ],
)
def test_reductions(reduction, wanted):
    loss = tf.losses.mean_squared_error(LABELS, GUESSES, [[1.0], [0.0], [3.0]], reduction=reduction)
    np.testing.assert_allclose(run(loss), wanted, rtol=1e-6)
    assert tf.losses.get_losses() == [loss]


def test_an_unknown_reduction_is_refused():
    with pytest.raises(ValueError, match="Invalid Reduction Key: average"):
        tf.losses.mean_squared_error(LABELS, GUESSES, reduction="average")


def test_weights_of_zero_give_a_loss_of_zero():
    loss = tf.losses.absolute_difference(LABELS, GUESSES, 0.0)
    assert run(loss) == 0


def test_the_loss_is_named_value_in_its_scope():
    assert tf.losses.huber_loss(LABELS, GUESSES).name == "huber_loss/value:0"
    assert tf.losses.log_loss(LABELS, np.abs(GUESSES) / 3, scope="mine").name == "mine/value:0"


def test_huber_grows_linearly_beyond_delta():
    assert run(tf.losses.huber_loss([0.0], [3.0], delta=0.5)) == pytest.approx(0.125 + 0.5 * 2.5)


def test_hinge_wants_logits_beyond_one():
    assert run(tf.losses.hinge_loss([1.0, 0.0, 1.0], [2.0, 0.5, -1.0])) == pytest.approx((0 + 1.5 + 2) / 3)


def test_cosine_distance_needs_an_axis():
    assert run(tf.losses.cosine_distance([[1.0, 0.0]], [[0.6, 0.8]], axis=1)) == pytest.approx(0.4)
    with pytest.raises(ValueError, match="You must specify 'axis'"):
        tf.losses.cosine_distance([[1.0, 0.0]], [[0.6, 0.8]])


def test_cross_entropies_agree_on_one_hot_labels():
    logits = np.array([[1.0, 2.0, 0.5], [0.0, -1.0, 3.0]], np.float32)
    dense = tf.losses.softmax_cross_entropy(np.eye(3)[[1, 2]], logits)
    sparse = tf.losses.sparse_softmax_cross_entropy([1, 2], logits)
    column = tf.losses.sparse_softmax_cross_entropy([[1], [2]], logits, weights=[[1.0], [1.0]])
    a, b, c = run([dense, sparse, column])
    assert a == pytest.approx(b) == pytest.approx(c)


def test_label_smoothing_moves_labels_towards_the_middle():
    logits = np.zeros((1, 2), np.float32)
    smooth = tf.losses.sigmoid_cross_entropy([[1.0, 0.0]], logits + 1, label_smoothing=1.0)
    half = tf.losses.sigmoid_cross_entropy([[0.5, 0.5]], logits + 1)
    a, b = run([smooth, half])
    assert a == pytest.approx(b)


def test_pairwise_errors_ignore_a_common_offset():
    assert run(tf.losses.mean_pairwise_squared_error(LABELS, LABELS + 5)) == pytest.approx(0, abs=1e-5)


def test_weights_that_do_not_fit_are_refused_while_building():
    with pytest.raises(ValueError, match="weights can not be broadcast to values"):
        tf.losses.mean_squared_error(LABELS, GUESSES, np.ones((2, 2), np.float32))
    with pytest.raises(ValueError, match="weights can not be broadcast to values"):
        tf.losses.mean_squared_error(LABELS, GUESSES, np.ones(3, np.float32))


def test_weights_of_unknown_shape_are_checked_when_running():
    weights = tf.placeholder(tf.float32)
    loss = tf.losses.mean_squared_error(LABELS, GUESSES, weights)
    assert run(loss, {weights: 1.0}) == pytest.approx(ERRORS.mean())
    assert run(loss, {weights: [[1.0], [0.0], [0.0]]}) == pytest.approx(ERRORS[0].mean())
    with pytest.raises(tf.errors.InvalidArgumentError, match="weights can not be broadcast to values"):
        run(loss, {weights: np.ones((1, 3, 2))})


def test_the_total_is_the_sum_of_all_losses_and_regularizers():
    loss = tf.losses.absolute_difference([1.0], [3.0])
    tf.losses.add_loss(tf.constant(10.0))
    tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, tf.constant(100.0))
    total = tf.losses.get_total_loss()
    assert total.op.name == "total_loss"
    plain = tf.losses.get_total_loss(add_regularization_losses=False)
    assert run([loss, total, plain, tf.losses.get_regularization_loss()]) == [2, 112, 12, 100]
    assert len(tf.losses.get_losses(scope="absolute_difference")) == 1


def test_without_a_collection_a_loss_is_not_added():
    tf.losses.absolute_difference([1.0], [3.0], loss_collection=None)
    assert tf.losses.get_losses() == []
    assert run(tf.losses.get_regularization_loss()) == 0


def test_missing_labels_are_named():
    with pytest.raises(ValueError, match="labels must not be None"):
        tf.losses.mean_squared_error(None, GUESSES)
    with pytest.raises(ValueError, match="are incompatible"):
        tf.losses.mean_squared_error(LABELS, GUESSES[:2])
