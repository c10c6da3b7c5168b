"""Moments, normalization and dropout."""

import numpy as np
import pytest

import tensorfleet as tf

X = np.random.RandomState(0).randn(4, 3, 5).astype(np.float32)


@pytest.mark.parametrize("keep", [False, True])
def test_moments(session, keep):
    mean, variance = tf.nn.moments(tf.constant(X), [0, 1], keep_dims=keep)
    got = session.run([mean, variance])
    np.testing.assert_allclose(got[0], X.mean((0, 1), keepdims=keep), atol=1e-6)
    np.testing.assert_allclose(got[1], X.var((0, 1), keepdims=keep), rtol=1e-5)


def test_moments_of_half_precision_stay_half(session):
    mean, variance = tf.nn.moments(tf.constant(X.astype(np.float16)), [0])
    assert mean.dtype == variance.dtype == tf.float16


def test_weighted_moments(session):
    w = np.abs(X[..., :1])
    mean, variance = session.run(tf.nn.weighted_moments(tf.constant(X), [0, 1], w))
    expected = (w * X).sum((0, 1)) / w.sum()
    np.testing.assert_allclose(mean, expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(variance, (w * (X - expected) ** 2).sum((0, 1)) / w.sum(), rtol=1e-4)


@pytest.mark.parametrize("shift", [None, 0.5])
def test_statistics_then_moments(session, shift):
    x = tf.placeholder(tf.float32, [None, 3, 5])
    counts, sums, squares, moved = tf.nn.sufficient_statistics(x, [0, 1], shift=shift)
    mean, variance = tf.nn.normalize_moments(counts, sums, squares, moved)
    got = session.run([counts, mean, variance], {x: X})
    assert got[0] == 12
    np.testing.assert_allclose(got[1], X.mean((0, 1)), atol=1e-6)
    np.testing.assert_allclose(got[2], X.var((0, 1)), rtol=1e-4)


def test_batch_normalization_with_and_without_scale(session):
    m, v = X.mean((0, 1)), X.var((0, 1))
    full = tf.nn.batch_normalization(tf.constant(X), m, v, tf.constant(1.0), tf.constant(2.0), 1e-3)
    bare = tf.nn.batch_normalization(tf.constant(X), m, v, None, None, 1e-3)
    unit = (X - m) / np.sqrt(v + 1e-3)
    got = session.run([full, bare])
    np.testing.assert_allclose(got[0], unit * 2 + 1, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got[1], unit, rtol=1e-4, atol=1e-5)


def test_l2_normalize(session):
    y = tf.nn.l2_normalize(tf.constant(X), dim=2)
    np.testing.assert_allclose((session.run(y) ** 2).sum(2), np.ones([4, 3]), rtol=1e-5)
    assert session.run(tf.nn.l2_normalize(tf.zeros([3]))).tolist() == [0, 0, 0]


def test_zero_fraction(session):
    assert session.run(tf.nn.zero_fraction([0.0, 1, 2, 0])) == 0.5


def test_dropout_keeps_and_scales(session):
    x = tf.ones([1000])
    y = session.run(tf.nn.dropout(x, 0.8, seed=1))
    assert set(np.unique(y)) <= {0, np.float32(1.25)}
    assert 0.75 < (y > 0).mean() < 0.85
    again = session.run(tf.nn.dropout(x, rate=0.2, seed=1))
    np.testing.assert_array_equal(y, again)


def test_dropout_with_a_noise_shape_drops_whole_rows(session):
    y = tf.nn.dropout(
        tf.placeholder_with_default(np.ones([50, 4], "f"), [None, 4]), 0.5, noise_shape=[None, 1]
    )
    got = session.run(y)
    assert (got == got[:, :1]).all() and 0 < (got[:, 0] == 0).sum() < 50
    assert y.shape.as_list() == [None, 4]


def test_dropout_of_a_tensor_rate_and_its_gradient(session):
    x, keep = tf.ones([100]), tf.placeholder(tf.float32, [])
    y = tf.nn.dropout(x, keep, seed=2)
    (g,) = tf.gradients(y, x)
    a, b = session.run([y, g], {keep: 0.5})
    np.testing.assert_array_equal(a, b)
    assert session.run(y, {keep: 1.0}).tolist() == [1] * 100


def test_dropout_refuses_what_makes_no_sense():
    x = tf.ones([2])
    assert tf.nn.dropout(x, 1.0) is x
    with pytest.raises(ValueError, match=r"in the range \[0, 1\), got -0.5"):
        tf.nn.dropout(x, 1.5)
    with pytest.raises(ValueError, match="must provide a rate"):
        tf.nn.dropout(x)
    with pytest.raises(ValueError, match="both"):
        tf.nn.dropout(x, 0.5, rate=0.5)
    with pytest.raises(ValueError, match="floating point"):
        tf.nn.dropout([1, 2], 0.5)


def test_names_of_dropout_are_those_of_tensorflow():
    tf.nn.dropout(tf.ones([2]), 0.5)
    names = [op.name for op in tf.get_default_graph().get_operations()]
    assert {"dropout/rate", "dropout/random_uniform/RandomUniform", "dropout/GreaterEqual"} <= set(names)
    assert names[-1] == "dropout/mul_1"


def test_a_list_is_no_probability():
    with pytest.raises(ValueError, match="keep_prob must be a floating point number or Tensor"):
        tf.nn.dropout(tf.ones([2]), [0.0, 1.0])
