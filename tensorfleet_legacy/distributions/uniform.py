"""Distributions over a part of the real line: an interval, or all that is not negative."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.graph.apply import apply
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.constructors import ones_like, zeros_like
from tensorfleet_legacy.distributions.distribution import (
    FULLY_REPARAMETERIZED,
    Distribution,
    checked,
    counted,
    number,
    softplus,
    tensors,
    turned,
)
from tensorfleet_legacy.distributions.kullback_leibler import RegisterKL
from tensorfleet_legacy.distributions.normal import positive


def _below(low: Tensor, high: Tensor) -> Any:
    return lambda: find("assert_less")(low, high, message="uniform not defined when low >= high.")


class Uniform(Distribution):
    """All numbers of `[low, high)` alike."""

    def __init__(
        self,
        low: Any = 0.0,
        high: Any = 1.0,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Uniform",
    ) -> None:
        given = locals()
        with name_scope(name) as scope:
            self._low, high = tensors(low=low, high=high)
            self._high = checked(validate_args, [_below(self._low, high)], high)
        self._start(self._low.dtype.base_dtype, FULLY_REPARAMETERIZED, given, scope)

    _alike = ("low", "high")
    low = readonly("_low", "The lower end.")
    high = readonly("_high", "The upper end.")

    def range(self, name: str = "range") -> Tensor:
        """The distance between the ends."""
        return apply("Sub", self._high, self._low, name=name)

    _each = ("_low", "_high")

    def _sample_n(self, count: Any, seed: int | None) -> Tensor:
        size = counted(count, self.batch_shape_tensor())
        drawn = find("random_uniform")(size, dtype=self._dtype, seed=seed)
        return self._low + self.range() * drawn

    def _prob(self, x: Tensor) -> Tensor:
        whole = x * ones_like(self.range())
        inside = apply("LogicalAnd", whole >= self._low, whole < self._high)
        density = ones_like(whole) / self.range()
        unknown = apply("IsNan", whole)
        return apply("Select", unknown, whole, apply("Select", inside, density, zeros_like(density)))

    def _cdf(self, x: Tensor) -> Tensor:
        part = (x - self._low) / self.range()
        return find("clip_by_value")(part, number(0, part), number(1, part))

    def _quantile(self, p: Tensor) -> Tensor:
        return self._low + p * self.range()

    def _entropy(self) -> Tensor:
        return apply("Log", self.range())

    def _mean(self) -> Tensor:
        return (self._low + self._high) / number(2, self._low)

    def _variance(self) -> Tensor:
        return apply("Square", self.range()) / number(12, self._low)

    def _stddev(self) -> Tensor:
        return self.range() / number(math.sqrt(12), self._low)


@RegisterKL(Uniform, Uniform)
def _kl_uniform(a: Uniform, b: Uniform, name: str | None = None) -> Tensor:
    with name_scope(name, "kl_uniform_uniform", [a.low, b.low]):
        ratio = apply("Log", b.range()) - apply("Log", a.range())
        within = apply("LogicalAnd", b.low * ones_like(ratio) <= a.low, a.high * ones_like(ratio) <= b.high)
        return apply("Select", within, ratio, number(float("inf"), ratio) * ones_like(ratio))


class Exponential(Distribution):
    """The waiting time for an event that happens `rate` times in one unit of time."""

    def __init__(
        self,
        rate: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Exponential",
    ) -> None:
        given = locals()
        with name_scope(name) as scope:
            (rate,) = tensors(rate=rate)
            self._rate = checked(validate_args, positive(rate), rate)
        self._start(self._rate.dtype.base_dtype, FULLY_REPARAMETERIZED, given, scope)

    rate = readonly("_rate", "How often the event happens.")

    @property
    def concentration(self) -> Tensor:
        """The shape of the gamma distribution that this is: 1."""
        return ones_like(self._rate)

    _each = ("_rate",)

    def _sample_n(self, count: Any, seed: int | None) -> Tensor:
        size = counted(count, self.batch_shape_tensor())
        tiny = np.finfo(self._dtype.as_numpy_dtype).tiny
        drawn = find("random_uniform")(size, tiny, 1.0, self._dtype, seed=seed)
        return apply("Neg", apply("Log", drawn)) / self._rate

    def _log_prob(self, x: Tensor) -> Tensor:
        return apply("Log", self._rate) - self._rate * x

    def _cdf(self, x: Tensor) -> Tensor:
        return apply("Neg", apply("Expm1", apply("Neg", self._rate) * x))

    def _log_survival_function(self, x: Tensor) -> Tensor:
        return apply("Neg", self._rate * x)

    def _quantile(self, p: Tensor) -> Tensor:
        return apply("Neg", apply("Log1p", apply("Neg", p))) / self._rate

    def _entropy(self) -> Tensor:
        return number(1, self._rate) - apply("Log", self._rate)

    def _mean(self) -> Tensor:
        return apply("Reciprocal", self._rate)

    _stddev = _mean

    def _mode(self) -> Tensor:
        return number(float("nan"), self._rate) * ones_like(self._rate)  # as that of any Gamma of shape 1


@RegisterKL(Exponential, Exponential)
def _kl_exponential(a: Exponential, b: Exponential, name: str | None = None) -> Tensor:
    with name_scope(name, "kl_exponential_exponential", [a.rate, b.rate]):
        return apply("Log", a.rate) - apply("Log", b.rate) + (b.rate - a.rate) / a.rate


class ExponentialWithSoftplusRate(Exponential):
    """An exponential distribution whose rate is the softplus of what is given."""

    __init__ = turned(Exponential, "ExponentialWithSoftplusRate", rate=softplus("softplus_rate"))
