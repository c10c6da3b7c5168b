"""Ordinary differential equations."""

import numpy as np
import pytest

import tensorfleet as tf

INTEGRATE = tf.contrib.integrate
TIMES = np.linspace(0.0, 3.0, 7)


def test_growth_is_exponential(session):
    y = session.run(INTEGRATE.odeint(lambda y, t: y, tf.constant([1.0, 2.0], tf.float64), TIMES))
    np.testing.assert_allclose(y, np.exp(TIMES)[:, None] * [1, 2], rtol=1e-5)


def test_a_complex_number_turns(session):
    y = session.run(INTEGRATE.odeint(lambda y, t: 1j * y, tf.constant(1 + 0j, tf.complex128), TIMES))
    np.testing.assert_allclose(y, np.exp(1j * TIMES), rtol=1e-4)


def test_steps_are_told(session):
    y, info = INTEGRATE.odeint(
        lambda y, t: tf.stack([y[1], -y[0]]), [1.0, 0.0], TIMES, rtol=1e-5, full_output=True
    )
    value, info = session.run([y, info])
    np.testing.assert_allclose(value[:, 0], np.cos(TIMES), atol=1e-3)
    assert info["num_func_evals"] == 6 * len(info["integrate_points"]) + 1
    assert (info["error_ratio"] >= 0).all() and info["integrate_points"][-1] >= 3


def test_a_slope_that_depends_on_time(session):
    y = session.run(
        INTEGRATE.odeint(lambda y, t: tf.cast(2 * t, y.dtype), tf.constant(0.0, tf.float64), TIMES)
    )
    np.testing.assert_allclose(y, TIMES**2, atol=1e-8)


@pytest.mark.parametrize(("method", "error"), [("rk4", 1e-4), ("midpoint", 2e-2)])
def test_fixed_steps(session, method, error):
    y = session.run(
        INTEGRATE.odeint_fixed(lambda y, t: -y, tf.constant(1.0, tf.float64), TIMES, dt=0.2, method=method)
    )
    np.testing.assert_allclose(y, np.exp(-TIMES), rtol=error)


def test_a_solution_has_gradients(session):
    rate = tf.constant(0.5, tf.float64)
    y = INTEGRATE.odeint_fixed(lambda y, t: rate * y, tf.constant(1.0, tf.float64), TIMES, dt=0.1)
    np.testing.assert_allclose(session.run(tf.gradients(y[-1], rate)[0]), 3 * np.exp(1.5), rtol=1e-4)


def test_times_must_increase_and_methods_exist(session):
    with pytest.raises(tf.errors.InvalidArgumentError, match="monotonic increasing"):
        session.run(INTEGRATE.odeint(lambda y, t: y, 1.0, [0.0, 2.0, 1.0]))
    with pytest.raises(ValueError, match="invalid method"):
        INTEGRATE.odeint(lambda y, t: y, 1.0, TIMES, method="euler")
    with pytest.raises(ValueError, match="method not supported"):
        INTEGRATE.odeint_fixed(lambda y, t: y, 1.0, TIMES, method="euler")
    with pytest.raises(TypeError, match="`y0` must have a floating point"):
        INTEGRATE.odeint(lambda y, t: y, 1, TIMES)
