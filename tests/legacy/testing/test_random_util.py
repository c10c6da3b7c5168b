"""How far random numbers are from what they should be."""

import numpy as np
import pytest
from scipy import stats

import tensorfleet as tf

util = tf.python.kernel_tests.random.util


def test_moments_tell_distributions_apart():
    samples = np.random.RandomState(0).gamma(2.0, size=(1000, 10))
    assert max(util.test_moment_matching(samples, 4, stats.gamma(2.0), 1)) < 5
    assert max(util.test_moment_matching(samples, 4, stats.gamma(2.5))) > 5
    columns = util.test_moment_matching(samples[None], 1, stats.gamma(2.0))
    assert columns[0].shape == (1000, 10)


def test_statistics_tell_distributions_apart():
    random = np.random.RandomState(0)
    assert util.chi_squared(random.rand(10000), 10) < 30 < util.chi_squared(random.rand(10000) ** 1.3, 10)
    normal = np.random.RandomState(1).randn(1000)
    assert util.anderson_darling(normal) < 2.492 < util.anderson_darling(normal * 1.3)
    assert util.normal_cdf(0.0) == 0.5


def test_truncated_normal_numbers_are_checked():
    case = tf.test.TestCase()
    y = stats.truncnorm(-2, 2).rvs(100000, random_state=1)

    def check(x):
        return util.test_truncated_normal(case.assertEqual, case.assertAllClose, 100000, x, 1e-2, 1e-2, 1e-2)

    check(y)
    with pytest.raises(AssertionError):
        check(y * 1.1)
