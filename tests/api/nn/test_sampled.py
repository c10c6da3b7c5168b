"""Losses over a sample of the classes."""

import numpy as np

import tensorfleet as tf
from tests.support.sessions import run

random = np.random.RandomState(0)
WEIGHTS, BIASES = random.randn(30, 4).astype("f"), random.randn(30).astype("f")
INPUTS = random.randn(5, 4).astype("f")
LABELS = np.array([[1], [4], [7], [2], [2]])

RANDOM = np.random.RandomState(0)


def test_sampling_all_classes_gives_the_full_softmax(session):
    everything = tf.nn.all_candidate_sampler(LABELS, 1, 30, True)
    loss = tf.nn.sampled_softmax_loss(
        tf.constant(WEIGHTS), tf.constant(BIASES), LABELS, INPUTS, 30, 30, sampled_values=everything
    )
    logits = INPUTS @ WEIGHTS.T + BIASES
    full = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=LABELS[:, 0], logits=logits)
    np.testing.assert_allclose(*session.run([loss, full]), rtol=1e-4)


def test_nce_loss_by_hand(session):
    chosen = np.array([3, 9, 20])
    sampled = (tf.constant(chosen), tf.constant(np.full([5, 1], 0.3, "f")), tf.constant(np.full(3, 0.2, "f")))
    loss = tf.nn.nce_loss(WEIGHTS, BIASES, LABELS, INPUTS, 3, 30, sampled_values=sampled)
    true = (INPUTS * WEIGHTS[LABELS[:, 0]]).sum(1) + BIASES[LABELS[:, 0]] - np.log(0.3)
    noise = INPUTS @ WEIGHTS[chosen].T + BIASES[chosen] - np.log(0.2)
    expected = np.log1p(np.exp(-true)) + np.log1p(np.exp(noise)).sum(1)
    np.testing.assert_allclose(session.run(loss), expected, rtol=1e-4)


def test_accidental_hits_do_not_count(session):
    sampled = (tf.constant([1, 9]), tf.constant(np.ones([5, 1], "f")), tf.constant(np.ones(2, "f")))
    arguments = (WEIGHTS, BIASES, LABELS, INPUTS, 2, 30)
    with_hits = tf.nn.sampled_softmax_loss(*arguments, sampled_values=sampled, remove_accidental_hits=False)
    without = tf.nn.sampled_softmax_loss(*arguments, sampled_values=sampled)
    a, b = session.run([with_hits, without])
    assert b[0] < a[0]
    np.testing.assert_allclose(a[1:], b[1:], rtol=1e-6)


def test_gradients_touch_only_the_rows_looked_at(session):
    w, b = tf.get_variable("w", initializer=WEIGHTS), tf.get_variable("b", initializer=BIASES)
    loss = tf.nn.sampled_softmax_loss(w, b, LABELS, INPUTS, 6, 30, seed=1)
    grads = tf.gradients(loss, [w, b])
    assert all(isinstance(g, tf.IndexedSlices) for g in grads)
    session.run(tf.global_variables_initializer())
    assert session.run(grads[0].indices).shape == (11,)


def test_training_lowers_the_full_loss(session):
    w, b = tf.get_variable("w", initializer=WEIGHTS), tf.get_variable("b", initializer=BIASES)
    loss = tf.reduce_mean(tf.nn.sampled_softmax_loss(w, b, LABELS, INPUTS, 10, 30, seed=1))
    logits = tf.matmul(tf.constant(INPUTS), w, transpose_b=True) + b
    full = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=LABELS[:, 0], logits=logits))
    train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    session.run(tf.global_variables_initializer())
    before = session.run(full)
    for _ in range(30):
        session.run(train)
    assert session.run(full) < before / 2


def test_sampled_logits_as_they_are_and_corrected():
    from tensorfleet.python.ops.nn_impl import _compute_sampled_logits

    weights, biases = np.eye(4, dtype=np.float32), np.arange(4, dtype=np.float32)
    sampled = ([3, 0], np.full([1, 1], 0.5, np.float32), np.full([2], 0.25, np.float32))
    options = {"num_sampled": 2, "num_classes": 4, "sampled_values": sampled}
    given = (weights, biases, np.array([[1]]), np.ones([1, 4], np.float32))
    plain, labels = run(_compute_sampled_logits(*given, subtract_log_q=False, **options))
    corrected, _ = run(_compute_sampled_logits(*given, **options))
    assert plain.tolist() == [[2.0, 4.0, 1.0]] and labels.tolist() == [[1.0, 0.0, 0.0]]
    np.testing.assert_allclose(corrected - plain, [[np.log(2), np.log(4), np.log(4)]], rtol=1e-6)


def test_the_losses_of_tables_in_consecutive_parts():
    from tensorfleet.python.ops import nn_impl

    weights, biases = RANDOM.randn(5, 3).astype("f"), RANDOM.randn(5).astype("f")
    sampled = ([1, 0, 3], np.full([2, 1], 0.5, np.float32), np.full([3], 0.5, np.float32))
    rest = (np.array([[0], [4]]), RANDOM.randn(2, 3).astype("f"), 3, 5, 1, sampled)
    parts = [weights[:3], weights[3:]], [biases[:3], biases[3:]]
    for loss in (nn_impl.nce_loss_v2, nn_impl.sampled_softmax_loss_v2):
        np.testing.assert_allclose(run(loss(*parts, *rest)), run(loss(weights, biases, *rest)), rtol=1e-5)
