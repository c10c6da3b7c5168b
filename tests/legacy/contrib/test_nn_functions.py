"""`tf.contrib.nn`."""

import numpy as np
import pytest

import tensorfleet as tf

nn = tf.contrib.nn
RANDOM = np.random.RandomState(0)
WEIGHTS = RANDOM.normal(size=[8, 3]).astype(np.float32)
BIASES = RANDOM.normal(size=[8]).astype(np.float32)
INPUTS = RANDOM.normal(size=[4, 3]).astype(np.float32)
LABELS = np.array([[1], [2], [7], [0]], np.int64)
SAMPLED = (
    np.array([3, 5, 6], np.int64),
    np.full([4, 1], 0.4, np.float32),
    np.array([0.5, 0.2, 0.3], np.float32),
)


def log_softmax_of_true(classes, counts):
    """The loss of each row over its true class and some others, each corrected by how often it is expected."""
    logits = INPUTS @ WEIGHTS.T + BIASES
    true = logits[np.arange(4), LABELS[:, 0]] - np.log(0.4)
    rest = logits[:, classes] - np.log(counts)
    return np.log(np.exp(true) + np.exp(rest).sum(1)) - true


def test_the_nth_element_of_each_row(session):
    x = np.array([[3, 1, 2], [6, 5, 4]], np.float32)
    np.testing.assert_array_equal(session.run(nn.nth_element(x, 1)), [2, 5])
    np.testing.assert_array_equal(session.run(nn.nth_element(x, 0, reverse=True)), [3, 6])


def test_a_scaled_softplus_bends_around_zero_and_is_clipped(session):
    x, alpha = tf.constant([-1.0, 0.5, 3.0]), tf.constant(0.7)
    y = nn.scaled_softplus(x, alpha)
    clipped = nn.scaled_softplus(x, alpha, clip=2.0)
    value, top, dx, da = session.run([y, clipped, *tf.gradients(y, [x, alpha])])
    v = np.array([-1, 0.5, 3])
    np.testing.assert_allclose(value, 0.7 * np.log1p(np.exp(v / 0.7)), rtol=1e-5)
    np.testing.assert_allclose(top, np.minimum(value, 2.0))
    np.testing.assert_allclose(dx, 1 / (1 + np.exp(-v / 0.7)), rtol=1e-5)
    step = 1e-5
    numeric = [((a * np.log1p(np.exp(v / a))).sum()) for a in (0.7 - step, 0.7 + step)]
    np.testing.assert_allclose(da, (numeric[1] - numeric[0]) / (2 * step), rtol=1e-3)
    assert session.run(tf.gradients(clipped, x)[0])[2] == 0


def test_a_sampled_loss_for_one_true_class(session):
    loss = nn.sampled_sparse_softmax_loss(WEIGHTS, BIASES, LABELS, INPUTS, 3, 8, SAMPLED)
    np.testing.assert_allclose(session.run(loss), log_softmax_of_true(SAMPLED[0], SAMPLED[2]), rtol=1e-5)


def test_a_ranked_loss_keeps_the_most_likely_of_the_sampled_classes(session):
    temperature = 0.8
    loss = nn.rank_sampled_softmax_loss(
        WEIGHTS, BIASES, LABELS, INPUTS, 3, 2, 8, 1, SAMPLED, temperature, True, "mod"
    )
    logits = (INPUTS @ WEIGHTS.T + BIASES)[:, SAMPLED[0]]
    best = np.argsort(-np.log(np.exp(logits / temperature).sum(0)))[:2]
    np.testing.assert_allclose(
        session.run(loss), log_softmax_of_true(SAMPLED[0][best], SAMPLED[2][best]), rtol=1e-5
    )
    with pytest.raises(ValueError, match="must be less than num_sampled"):
        nn.rank_sampled_softmax_loss(WEIGHTS, BIASES, LABELS, INPUTS, 3, 3, 8, 1, SAMPLED, 1.0, True, "mod")


def test_cross_entropies_take_their_logits_first(session):
    logits, labels = INPUTS, np.eye(3, dtype=np.float32)[[0, 1, 2, 0]]
    soft = session.run(nn.deprecated_flipped_softmax_cross_entropy_with_logits(logits, labels))
    wanted = np.log(np.exp(logits).sum(1)) - (logits * labels).sum(1)
    np.testing.assert_allclose(soft, wanted, rtol=1e-5)
    sparse = nn.deprecated_flipped_sparse_softmax_cross_entropy_with_logits(logits, [0, 1, 2, 0])
    np.testing.assert_allclose(session.run(sparse), wanted, rtol=1e-5)
    each = session.run(nn.deprecated_flipped_sigmoid_cross_entropy_with_logits(logits, labels))
    np.testing.assert_allclose(each, np.log1p(np.exp(logits)) - logits * labels, rtol=1e-4)


def test_transposed_convolutions_of_sequences_are_those_of_tf_nn():
    assert nn.conv1d_transpose is tf.nn.conv1d_transpose
