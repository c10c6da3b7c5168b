"""Moving means and variances, and correlations of a sequence with itself."""

import numpy as np
import pytest

import tensorfleet as tf

D = tf.contrib.distributions
VALUES = np.random.RandomState(0).normal(2, 3, [40]).astype(np.float32)


def test_a_mean_and_a_variance_move(session):
    x = tf.placeholder(tf.float32, [])
    mean, variance = D.moving_mean_variance(x, decay=0.9)
    session.run(tf.global_variables_initializer())
    m = v = 0.0
    for value in VALUES:
        session.run([mean, variance], {x: value})
        away = value - m
        v = v - 0.1 * (v - 0.9 * away**2)
        m = m + 0.1 * away
    kept = {w.op.name: session.run(w) for w in tf.global_variables()}
    np.testing.assert_allclose(kept["moving_mean_variance/moving_mean"], m, rtol=1e-4)
    np.testing.assert_allclose(kept["moving_mean_variance/moving_variance"], v, rtol=1e-4)
    with pytest.raises(TypeError, match="does not have float type"):
        D.moving_mean_variance(tf.constant(1), 0.9)


def test_the_logarithm_of_a_mean_moves(session):
    kept = tf.Variable(0.0)
    move = D.assign_log_moving_mean_exp(kept, np.float32(np.log(3.0)), 0.75)
    session.run(tf.global_variables_initializer())
    np.testing.assert_allclose(session.run(move), np.log(0.75 * 1 + 0.25 * 3), rtol=1e-5)


@pytest.mark.parametrize("normalize", [True, False])
def test_a_sequence_correlates_with_itself_some_steps_later(session, normalize):
    x = VALUES.reshape(20, 2)
    result = session.run(D.auto_correlation(x, axis=0, max_lags=5, normalize=normalize))
    off = x - x.mean(0)
    wanted = np.array([(off[: 20 - k] * off[k:]).sum(0) / (20 - k) for k in range(6)])
    np.testing.assert_allclose(result, wanted / wanted[0] if normalize else wanted, rtol=1e-3, atol=1e-4)


def test_streams_of_seeds_differ():
    first, second = D.SeedStream(1, "a"), D.SeedStream(1, "b")
    seeds = [first(), first(), second(), D.SeedStream(first, "a")()]
    assert len(set(seeds[:3])) == 3 and seeds[3] == seeds[0]
    assert D.SeedStream(None, "a")() is None
