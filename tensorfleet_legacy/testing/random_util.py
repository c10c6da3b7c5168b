"""How far random numbers are from the distribution they should have."""

from __future__ import annotations

from typing import Any

import numpy as np


def test_moment_matching(samples: Any, number_moments: int, dist: Any, stride: int = 0) -> list:
    """How many deviations the first moments of samples are from those of a distribution of scipy.

    Higher moments take fewer of the samples when there is a `stride`.
    """
    kind, scores = np.finfo(samples.dtype), []
    for i in range(1, number_moments + 1):
        step = (i - 1) * stride + 1
        chosen = samples.flat[::step] if samples.ndim == 2 else samples[::step]
        expected = dist.moment(i)
        # The power costs as many roundings as it has factors.
        variance = (dist.moment(2 * i) - expected**2) / len(chosen) + i * kind.eps
        off = np.mean(chosen**i, axis=0) - expected
        scores.append(np.abs(off / np.sqrt(np.maximum(variance, kind.tiny))))
    return scores


test_moment_matching.__test__ = False  # type: ignore[attr-defined]


def chi_squared(x: Any, bins: int) -> Any:
    """Pearson's statistic of numbers in [0, 1) that should be uniform."""
    counts, _ = np.histogram(np.ravel(x), bins, (0, 1))
    expected = np.size(x) / bins
    return np.sum((counts - expected) ** 2 / expected)


def normal_cdf(x: Any) -> Any:
    """The share of the standard normal distribution below each number."""
    from scipy.special import ndtr

    return ndtr(x)


def anderson_darling(x: Any) -> Any:
    """The statistic of Anderson and Darling of numbers that should be standard normal."""
    below = normal_cdf(np.sort(np.ravel(x)))
    n = len(below)
    odd = 2 * np.arange(1, n + 1) - 1
    return -n - np.sum(odd * (np.log(below) + np.log1p(-below[::-1]))) / n


def test_truncated_normal(
    assert_equal: Any,
    assert_all_close: Any,
    n: int,
    y: Any,
    mean_atol: float = 5e-4,
    median_atol: float = 8e-4,
    variance_rtol: float = 1e-3,
) -> None:
    """Checks the count, the bounds, the mean, the median and the variance of normal numbers within two deviations."""
    from scipy import stats

    expected = stats.truncnorm(-2, 2)
    assert_equal((y.size, (np.abs(y) <= 2).all()), (n, True))
    assert_all_close(np.mean(y), expected.mean(), atol=mean_atol)
    assert_all_close(np.median(y), 0, atol=median_atol)
    assert_all_close(np.var(y), expected.var(), rtol=variance_rtol)


test_truncated_normal.__test__ = False  # type: ignore[attr-defined]
