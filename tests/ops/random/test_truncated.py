"""Normal numbers between bounds."""

import numpy as np
import pytest
from scipy import stats

import tensorfleet as tf

normal = tf.python.ops.random_ops.parameterized_truncated_normal


def _run(*args, **kwargs):
    with tf.Session() as sess:
        return sess.run(normal(*args, seed=7, **kwargs))


@pytest.mark.parametrize(
    ("mean", "deviation", "low", "high"),
    [
        (0.0, 1.0, -2.0, 2.0),
        (5.0, 2.0, 4.0, np.inf),
        (0.0, 1.0, 4.0, 20.0),
        (1.0, 3.0, -100.0, -20.0),
        (0.0, 1.0, 9.0, 9.1),
    ],
)
def test_numbers_are_distributed_as_scipy_says(mean, deviation, low, high):
    result = _run([1, 20000], mean, deviation, low, high, tf.float64)[0]
    expected = stats.truncnorm((low - mean) / deviation, (high - mean) / deviation, mean, deviation)
    assert result.min() >= low and result.max() <= high
    assert abs(result.mean() - expected.mean()) < 4 * expected.std() / np.sqrt(len(result))
    assert stats.kstest(result, expected.cdf).pvalue > 1e-4


def test_each_batch_has_its_own_parameters():
    result = _run([3, 1000], [0.0, 10.0, -10.0], 1.0, [-1.0, 9.0, -11.0], [1.0, 11.0, -9.0])
    np.testing.assert_allclose(result.mean(1), [0, 10, -10], atol=0.1)


def test_bounds_that_leave_nothing_give_no_numbers():
    assert np.isnan(_run([1, 3], minvals=2.0, maxvals=1.0)).all()
    assert np.isnan(_run([1, 3], stddevs=0.0)).all()


def test_parameters_that_do_not_fit_the_batches_are_told():
    with pytest.raises(tf.errors.InvalidArgumentError, match="Means must have length 1 or 2"):
        _run([2, 3], means=[1.0, 2.0, 3.0])


def test_the_old_poisson_op_gives_numbers_of_the_rates_type():
    tf.python.framework.test_util.set_producer_version(tf.get_default_graph(), 24)
    with tf.Session() as sess:
        result = sess.run(tf.python.ops.gen_random_ops.random_poisson([1000], [2.0, 50.0], seed=3))
    assert result.shape == (1000, 2) and result.dtype == np.float32
    np.testing.assert_allclose(result.mean(0), [2, 50], rtol=0.1)
