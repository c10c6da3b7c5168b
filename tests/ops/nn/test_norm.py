"""Local response normalization and fused batch normalization."""

import numpy as np
import pytest

import tensorfleet as tf

X = np.random.RandomState(0).randn(2, 3, 4, 5).astype(np.float32)
SCALE, OFFSET = np.linspace(0.5, 1.5, 5).astype("f"), np.linspace(-1, 1, 5).astype("f")


def test_lrn_divides_by_the_neighbouring_channels(session):
    y = tf.nn.lrn(tf.constant(X), depth_radius=1, bias=2.0, alpha=0.5, beta=0.75)
    squares = np.pad(X**2, [(0, 0)] * 3 + [(1, 1)])
    total = squares[..., :-2] + squares[..., 1:-1] + squares[..., 2:]
    np.testing.assert_allclose(session.run(y), X / (2 + 0.5 * total) ** 0.75, rtol=1e-5)


def test_lrn_gradient_matches_finite_differences(session):
    x = tf.placeholder(tf.float32, X.shape)
    loss = tf.reduce_sum(tf.sin(tf.nn.lrn(x, depth_radius=2)))
    (g,) = tf.gradients(loss, x)
    got = session.run(g, {x: X})
    for place in (0, 33):
        both = []
        for step in (1e-2, -1e-2):
            moved = X.copy()
            moved.flat[place] += step
            both.append(session.run(loss, {x: moved}))
        assert got.flat[place] == pytest.approx((both[0] - both[1]) / 2e-2, abs=2e-3)


def test_training_normalizes_by_the_batch(session):
    y, mean, variance = tf.nn.fused_batch_norm(tf.constant(X), SCALE, OFFSET, epsilon=0.01)
    got = session.run([y, mean, variance])
    m, v = X.mean((0, 1, 2)), X.var((0, 1, 2))
    np.testing.assert_allclose(got[0], (X - m) / np.sqrt(v + 0.01) * SCALE + OFFSET, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got[1], m, atol=1e-6)
    np.testing.assert_allclose(got[2], v * 24 / 23, rtol=1e-5)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_gradients_equal_those_of_the_plain_formula(session, training, layout):
    x = tf.constant(X if layout == "NHWC" else np.transpose(X, [0, 3, 1, 2]))
    scale, offset = tf.constant(SCALE), tf.constant(OFFSET)
    given = {} if training else dict(mean=tf.constant(OFFSET), variance=tf.constant(SCALE))
    y, _, _ = tf.nn.fused_batch_norm(x, scale, offset, is_training=training, data_format=layout, **given)
    axes, shape = ([0, 1, 2], [1, 1, 1, 5]) if layout == "NHWC" else ([0, 2, 3], [1, 5, 1, 1])
    if training:
        mean = tf.reduce_mean(x, axes, keepdims=True)
        variance = tf.reduce_mean(tf.square(x - mean), axes, keepdims=True)
    else:
        mean, variance = (tf.reshape(given[n], shape) for n in ("mean", "variance"))
    plain = (x - mean) * tf.rsqrt(variance + 0.001) * tf.reshape(scale, shape) + tf.reshape(offset, shape)
    one = session.run([y, *tf.gradients(tf.sin(y), [x, scale, offset])])
    two = session.run([plain, *tf.gradients(tf.sin(plain), [x, scale, offset])])
    for a, b in zip(one, two, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)


def test_given_statistics_are_refused_in_training():
    with pytest.raises(ValueError, match="must be None if is_training is True"):
        tf.nn.fused_batch_norm(tf.constant(X), SCALE, OFFSET, mean=OFFSET)
