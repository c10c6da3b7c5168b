"""The normal distribution far from its middle."""

import numpy as np
import pytest
from scipy import special, stats

import tensorfleet as tf

math = tf.python.ops.distributions.special_math
X = np.concatenate([np.linspace(-30, 10, 81), [-200.0, 40.0]])


def _run(x):
    with tf.Session() as sess:
        return sess.run(x)


@pytest.mark.parametrize(("kind", "close"), [(np.float32, 2e-5), (np.float64, 1e-8)])
def test_logarithms_are_finite_in_both_tails(kind, close):
    x = X.astype(kind)
    np.testing.assert_allclose(
        _run(math.log_ndtr(x)), special.log_ndtr(x.astype(float)), rtol=close, atol=1e-30
    )
    np.testing.assert_allclose(
        _run(math.log_cdf_laplace(x)), stats.laplace.logcdf(x.astype(float)), rtol=close, atol=1e-30
    )
    log_cdf = tf.distributions.Normal(kind(1.0), kind(2.0)).log_cdf(x)
    np.testing.assert_allclose(
        _run(log_cdf), stats.norm(1, 2).logcdf(x.astype(float)), rtol=close, atol=1e-30
    )


def test_shares_and_their_inverse():
    p = np.array([1e-6, 0.1, 0.5, 0.9])
    np.testing.assert_allclose(_run(math.ndtri(p)), special.ndtri(p), atol=1e-9)
    np.testing.assert_allclose(_run(math.ndtr(X)), special.ndtr(X), rtol=1e-9)


def test_gradients_in_the_tail_are_numbers():
    x = tf.constant([-50.0, 0.0, 50.0], tf.float64)
    grads = _run(tf.gradients(math.log_ndtr(x), x)[0])
    expected = np.exp(stats.norm.logpdf([-50, 0, 50]) - special.log_ndtr([-50.0, 0.0, 50.0]))
    np.testing.assert_allclose(grads, expected, rtol=1e-6, atol=1e-30)


def test_types_and_orders_that_are_not_handled():
    with pytest.raises(TypeError, match="dtype=int32 is not handled"):
        math.ndtr([1])
    with pytest.raises(TypeError, match="Python integer"):
        math.log_ndtr([1.0], series_order=1.5)
    with pytest.raises(ValueError, match="between 0 and 30"):
        math.log_ndtr([1.0], series_order=31)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_inverse_is_exact_in_the_middle_and_infinite_at_the_ends(kind):
    p = np.concatenate([np.linspace(0, 1, 50), [np.exp(-32), 0.5 + 1e-6]]).astype(kind)
    close = 4 * np.finfo(kind).eps
    np.testing.assert_allclose(_run(math.ndtri(p)), special.ndtri(p.astype(float)), rtol=close, atol=close**2)
    q = np.linspace(0, 1, 50).astype(kind)
    np.testing.assert_allclose(_run(math.erfinv(q)), special.erfinv(q.astype(float)), rtol=20 * close)
    x = tf.constant(p)
    assert np.isfinite(_run(tf.gradients(math.ndtri(x), x)[0])).all()


def test_the_bounds_of_the_middle_are_known_by_name():
    assert math.LOGNDTR_FLOAT32_LOWER == -10 and math.LOGNDTR_FLOAT64_UPPER.dtype == np.float64


@pytest.mark.parametrize(
    ("make", "theirs"),
    [
        (lambda: tf.distributions.Normal(1.0, 2.0), stats.norm(1, 2)),
        (lambda: tf.distributions.Laplace(1.0, 2.0), stats.laplace(1, 2)),
        (lambda: tf.distributions.Exponential(0.5), stats.expon(scale=2)),
        (lambda: tf.contrib.distributions.Logistic(1.0, 2.0), stats.logistic(1, 2)),
    ],
)
def test_what_is_left_far_out_is_still_told(make, theirs):
    x = np.array([0.5, 3.0, 60.0, 150.0], np.float32)
    value = tf.constant(x)
    left = make().log_survival_function(value)
    np.testing.assert_allclose(_run(left), theirs.logsf(x.astype(float)), rtol=1e-4)
    assert np.isfinite(_run(tf.gradients(left, value)[0])).all()
    np.testing.assert_allclose(_run(make().log_cdf(-x[:1] * 0 + 0.25)), theirs.logcdf([0.25]), rtol=1e-5)
