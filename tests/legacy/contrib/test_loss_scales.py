"""Losses scaled up for half precision."""

import numpy as np
import pytest

import tensorfleet as tf

MP = tf.contrib.mixed_precision


def test_gradients_of_a_scaled_loss_are_scaled_back(session):
    x = tf.Variable([1.0, 2.0])
    opt = MP.LossScaleOptimizer(tf.train.GradientDescentOptimizer(0.1), MP.FixedLossScaleManager(8.0))
    train = opt.minimize(tf.reduce_sum(x * x))
    session.run(tf.global_variables_initializer())
    session.run(train)
    np.testing.assert_allclose(session.run(x), [0.8, 1.6], rtol=1e-6)
    with pytest.raises(ValueError, match="loss scale must be at least 1"):
        MP.FixedLossScaleManager(0.5)


def test_small_gradients_survive_in_half_precision(session):
    x = tf.Variable(1.0)
    half = tf.cast(x, tf.float16) * np.float16(1e-4)
    loss = tf.cast(half, tf.float32) * 1e-4  # the slope of the half is less than a half can tell
    plain = tf.gradients(loss, x)[0]
    opt = MP.LossScaleOptimizer(tf.train.GradientDescentOptimizer(1.0), MP.FixedLossScaleManager(2.0**14))
    ((scaled, _),) = opt.compute_gradients(loss, [x])
    session.run(tf.global_variables_initializer())
    lost, kept = session.run([plain, scaled])
    assert abs(kept - 1e-8) < 1e-11 < abs(lost - 1e-8)


def test_a_step_that_is_not_finite_is_left_out_and_the_scale_follows(session):
    factor = tf.placeholder(tf.float32, [])
    x = tf.Variable(1.0)
    manager = MP.ExponentialUpdateLossScaleManager(
        16.0, incr_every_n_steps=2, decr_every_n_nan_or_inf=2, decr_ratio=0.5
    )
    opt = MP.LossScaleOptimizer(tf.train.GradientDescentOptimizer(0.5), manager)
    train = opt.minimize(x * factor)
    session.run(tf.global_variables_initializer())
    seen = []
    for value in (1, 1, np.inf, 1, np.inf, np.inf, 1):
        session.run(train, {factor: value})
        seen.append(tuple(session.run([x, manager.get_loss_scale()])))
    assert [float(v) for v, _ in seen] == [0.5, 0.0, 0.0, -0.5, -0.5, -0.5, -1.0]
    # The third fails once, which is forgotten by nothing but a change of the scale.
    assert [float(s) for _, s in seen] == [16, 32, 32, 32, 16, 16, 16]


def test_a_manager_of_ones_own_defines_both_methods():
    with pytest.raises(TypeError):
        MP.LossScaleManager()
