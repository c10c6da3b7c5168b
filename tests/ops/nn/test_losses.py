"""Softmax and the losses of classification."""

import numpy as np
import pytest

import tensorfleet as tf

LOGITS = np.array([[1.0, 2.0, -1.0, 0.5], [0.0, -3.0, 2.0, 1.0], [4.0, 1.0, 1.0, 1.0]], np.float32)
LABELS = np.array([[0.1, 0.2, 0.3, 0.4], [1, 0, 0, 0], [0.25, 0.25, 0.25, 0.25]], np.float32)


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@pytest.mark.parametrize("axis", [-1, 0, 1, 2])
def test_softmax_along_any_axis(session, axis):
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 5
    held = tf.placeholder(tf.float32, [None, 3, 4])
    soft, logs = tf.nn.softmax(held, axis=axis), tf.nn.log_softmax(held, axis=axis)
    got = session.run([soft, logs], {held: x})
    np.testing.assert_allclose(got[0], softmax(x, axis), rtol=1e-5)
    np.testing.assert_allclose(got[1], np.log(softmax(x, axis)), rtol=1e-4)
    assert soft.shape.as_list() == [None, 3, 4]


def test_softmax_of_large_logits_is_finite(session):
    x = tf.constant([[1000.0, 0.0], [-1000.0, -1000.0]])
    np.testing.assert_allclose(session.run(tf.nn.softmax(x)), [[1, 0], [0.5, 0.5]])
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[1, 0], logits=x)
    np.testing.assert_allclose(session.run(loss), [1000, np.log(2)], rtol=1e-6)


def test_softmax_refuses_an_axis_that_is_not_there():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"must be in the range \[-2, 2\)"):
        tf.nn.softmax(tf.constant(LOGITS), axis=2)
    with pytest.raises(ValueError, match="both"):
        tf.nn.softmax(tf.constant(LOGITS), axis=1, dim=1)


def test_cross_entropy_and_its_gradient(session):
    x, z = tf.constant(LOGITS), tf.constant(LABELS)
    loss = tf.nn.softmax_cross_entropy_with_logits(labels=z, logits=x)
    dx, dz = tf.gradients(loss, [x, z])
    assert dz is None
    value, slope = session.run([loss, dx])
    np.testing.assert_allclose(value, -(LABELS * np.log(softmax(LOGITS))).sum(1), rtol=1e-5)
    np.testing.assert_allclose(slope, softmax(LOGITS) - LABELS, atol=1e-6)


def test_cross_entropy_v2_differentiates_labels(session):
    x, z = tf.constant(LOGITS), tf.constant(LABELS)
    (dz,) = tf.gradients(tf.nn.softmax_cross_entropy_with_logits_v2(labels=z, logits=x), [z])
    np.testing.assert_allclose(session.run(dz), -np.log(softmax(LOGITS)), rtol=1e-5)


@pytest.mark.parametrize("sparse", [False, True])
def test_second_derivative_of_cross_entropy(session, sparse):
    x = tf.constant(LOGITS)
    if sparse:
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 1, 2], logits=x)
    else:
        loss = tf.nn.softmax_cross_entropy_with_logits(labels=LABELS, logits=x)
    (g,) = tf.gradients(loss, x)
    (gg,) = tf.gradients(g, x, tf.constant(LABELS))
    p = softmax(LOGITS)
    expected = p * (LABELS - (p * LABELS).sum(1, keepdims=True))
    np.testing.assert_allclose(session.run(gg), expected, atol=1e-6)


def test_a_first_derivative_makes_no_second_order_ops():
    x = tf.constant(LOGITS)
    tf.gradients(tf.nn.softmax_cross_entropy_with_logits(labels=LABELS, logits=x), x)
    assert "Softmax" not in {op.type for op in tf.get_default_graph().get_operations()}


def test_cross_entropy_of_more_dimensions_keeps_the_outer_ones(session):
    x = np.stack([LOGITS, -LOGITS])
    held = tf.placeholder(tf.float32, [None, 3, 4])
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.constant([[1, 2, 3]] * 2), logits=held)
    assert loss.shape.as_list() == [2, 3]
    expected = -np.log(softmax(x))[np.arange(2)[:, None], np.arange(3), [1, 2, 3]]
    np.testing.assert_allclose(session.run(loss, {held: x}), expected, rtol=1e-5)
    dense = tf.nn.softmax_cross_entropy_with_logits(labels=tf.ones([2, 3, 4]) / 4, logits=held, dim=1)
    assert dense.shape.as_list() == [None, 4]


@pytest.mark.parametrize("runs", [1, 5])
def test_a_label_out_of_range_is_reported(session, runs):
    labels = tf.placeholder(tf.int32, [None])
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=tf.constant(LOGITS))
    for _ in range(runs):
        session.run(loss, {labels: [0, 1, 2]})
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"Received a label value of 7 .* range of \[0, 4\)"
    ):
        session.run(loss, {labels: [1, 7, 2]})


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="Rank mismatch"):
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[[1, 2, 3]], logits=LOGITS)
    with pytest.raises(ValueError, match="Dimensions must be equal, but are 4 and 2"):
        tf.nn.softmax_cross_entropy_with_logits(labels=LABELS[:, :2], logits=LOGITS)
    with pytest.raises(ValueError, match="must have the same shape"):
        tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.ones([2, 3]), logits=LOGITS)


def test_sigmoid_cross_entropies(session):
    p = 1 / (1 + np.exp(-LOGITS))
    plain = tf.nn.sigmoid_cross_entropy_with_logits(labels=LABELS, logits=LOGITS)
    weighted = tf.nn.weighted_cross_entropy_with_logits(labels=LABELS, logits=LOGITS, pos_weight=3.0)
    yes, no = -LABELS * np.log(p), -(1 - LABELS) * np.log(1 - p)
    np.testing.assert_allclose(session.run(plain), yes + no, rtol=1e-4)
    np.testing.assert_allclose(session.run(weighted), 3 * yes + no, rtol=1e-4)


def test_sigmoid_cross_entropy_differentiates_at_zero(session):
    x = tf.constant([0.0])
    (g,) = tf.gradients(tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.constant([1.0]), logits=x), x)
    np.testing.assert_allclose(session.run(g), [-0.5])


def test_log_poisson_loss(session):
    z = np.array([0.5, 3.0], np.float32)
    x = np.array([1.0, -1.0], np.float32)
    plain, full = np.exp(x) - x * z, z * np.log(z) - z + 0.5 * np.log(2 * np.pi * z)
    np.testing.assert_allclose(session.run(tf.nn.log_poisson_loss(z, x)), plain, rtol=1e-5)
    got = session.run(tf.nn.log_poisson_loss(z, x, compute_full_loss=True))
    np.testing.assert_allclose(got, plain + np.where(z <= 1, 0, full), rtol=1e-5)


def test_softmax_along_an_axis_that_only_a_run_knows(session):
    x = np.random.RandomState(0).randn(2, 3, 4).astype(np.float32)
    axis, whole = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32)
    wanted = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    assert np.allclose(session.run(tf.nn.softmax(x, axis), {axis: -2}), wanted, atol=1e-6)
    assert np.allclose(session.run(tf.nn.softmax(whole, 1), {whole: x}), wanted, atol=1e-6)
