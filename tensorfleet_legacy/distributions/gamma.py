"""Distributions built on gamma functions."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.apply import apply
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.constructors import ones_like
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet_legacy.distributions.categorical import Multinomial, checked_counts, log_combinations
from tensorfleet_legacy.distributions.distribution import (
    FULLY_REPARAMETERIZED,
    NOT_REPARAMETERIZED,
    Distribution,
    checked,
    number,
    softplus,
    tensors,
    turned,
)
from tensorfleet_legacy.distributions.kullback_leibler import RegisterKL
from tensorfleet_legacy.distributions.normal import _another, positive, to_count
from tensorfleet_legacy.distributions.util_assertions import after, embed_check_nonnegative_integer_form

_LAST = np.array([-1], np.int32)
_POSITIVE = "Concentration parameter must be positive."


def _weights(alpha: Tensor) -> list:
    """The checks of the weights of classes."""
    flat = "Concentration parameter must have >=1 dimensions."
    few = "Concentration parameter must have event_size >= 2."
    return [
        *positive(alpha, message=_POSITIVE),
        lambda: find("assert_rank_at_least")(alpha, 1, message=flat),
        lambda: find("assert_less")(np.int32(1), shape_of(alpha)[-1], message=few),
    ]


def _or_nan(allowed: bool, value: Tensor, *above_one: tuple[Tensor, str]) -> Tensor:
    """A moment where parameters are above 1; elsewhere NaN, or an error when that is not allowed."""
    one = number(1, value)
    if not allowed:
        return after([find("assert_less")(one, p, message=text) for p, text in above_one], value)
    ones = ones_like(value)
    exists = [p * ones > one for p, _ in above_one]
    for more in exists[1:]:
        exists[0] = apply("LogicalAnd", exists[0], more)
    return apply("Select", exists[0], value, number(float("nan"), value) * ones)


class Gamma(Distribution):
    """The gamma distribution with shape `concentration` and inverse scale `rate`."""

    def __init__(
        self,
        concentration: Any,
        rate: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Gamma",
    ) -> None:
        given = locals()
        with name_scope(name) as scope:
            alpha, beta = tensors(concentration=concentration, rate=rate)
            self._concentration = checked(validate_args, positive(alpha), alpha)
            self._rate = checked(validate_args, positive(beta), beta)
        self._start(alpha.dtype.base_dtype, FULLY_REPARAMETERIZED, given, scope)

    concentration = readonly("_concentration", "The shape parameter.")
    _alike: ClassVar[tuple[str, ...]] = ("concentration", "rate")
    rate = readonly("_rate", "The inverse of the scale.")

    _each = ("_concentration", "_rate")

    def _sample_n(self, count: Any, seed: int | None) -> Tensor:
        return find("random_gamma")(
            to_count(count), self._concentration, beta=self._rate, dtype=self._dtype, seed=seed
        )

    def _log_prob(self, x: Tensor) -> Tensor:
        x = checked(self._validate_args, positive(x), x)
        a, b = self._concentration, self._rate
        return apply("Xlogy", a - number(1, a), x) - b * x - (apply("Lgamma", a) - a * apply("Log", b))

    def _cdf(self, x: Tensor) -> Tensor:
        x = checked(self._validate_args, positive(x), x)
        return apply("Igamma", self._concentration, self._rate * x)

    def _entropy(self) -> Tensor:
        a = self._concentration
        return a - apply("Log", self._rate) + apply("Lgamma", a) + (number(1, a) - a) * apply("Digamma", a)

    def _mean(self) -> Tensor:
        return self._concentration / self._rate

    def _variance(self) -> Tensor:
        return self._concentration / apply("Square", self._rate)

    def _stddev(self) -> Tensor:
        return apply("Sqrt", self._concentration) / self._rate

    def _mode(self) -> Tensor:
        one = number(1, self._concentration)
        value = (self._concentration - one) / self._rate
        text = "mode not defined when any concentration <= 1"
        return _or_nan(self._allow_nan_stats, value, (self._concentration, text))


@RegisterKL(Gamma, Gamma)
def _kl_gamma(a: Gamma, b: Gamma, name: str | None = None) -> Tensor:
    with name_scope(name, "kl_gamma_gamma", [a.rate, b.rate]):
        shapes = (a.concentration - b.concentration) * apply("Digamma", a.concentration)
        shapes = shapes + apply("Lgamma", b.concentration) - apply("Lgamma", a.concentration)
        rates = b.concentration * (apply("Log", a.rate) - apply("Log", b.rate))
        return shapes + rates + a.concentration * (b.rate / a.rate - number(1, a.rate))


def _lbeta(a: Tensor, b: Tensor) -> Tensor:
    return apply("Lgamma", a) + apply("Lgamma", b) - apply("Lgamma", a + b)


class Beta(Distribution):
    """The beta distribution over (0, 1): `concentration1` pulls to one, `concentration0` to zero."""

    def __init__(
        self,
        concentration1: Any = None,
        concentration0: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Beta",
    ) -> None:
        given = locals()
        with name_scope(name) as scope:
            a, b = tensors(concentration1=concentration1, concentration0=concentration0)
            self._a = checked(validate_args, positive(a, message=_POSITIVE), a)
            self._b = checked(validate_args, positive(b, message=_POSITIVE), b)
        self._start(a.dtype.base_dtype, FULLY_REPARAMETERIZED, given, scope)

    _alike = ("concentration1", "concentration0")
    concentration1 = readonly("_a", "What pulls towards one.")
    concentration0 = readonly("_b", "What pulls towards zero.")

    @property
    def total_concentration(self) -> Tensor:
        """The sum of both."""
        return self._a + self._b

    _each = ("_a", "_b")

    def _sample_n(self, count: Any, seed: int | None) -> Tensor:
        ones = ones_like(self.total_concentration)
        first = find("random_gamma")(to_count(count), ones * self._a, dtype=self._dtype, seed=seed)
        second = find("random_gamma")(to_count(count), ones * self._b, dtype=self._dtype, seed=_another(seed))
        return first / (first + second)

    def _log_prob(self, x: Tensor) -> Tensor:
        one = number(1, x)
        below = lambda: find("assert_less")(x, one, message="sample must be less than `1`.")  # noqa: E731
        x = checked(self._validate_args, [*positive(x, message="sample must be positive"), below], x)
        core = apply("Xlogy", self._a - one, x) + (self._b - one) * apply("Log1p", apply("Neg", x))
        return core - _lbeta(self._a, self._b)

    def _cdf(self, x: Tensor) -> Tensor:
        ones = ones_like(x * self.total_concentration)
        return apply("Betainc", self._a * ones, self._b * ones, x * ones)

    def _entropy(self) -> Tensor:
        one, two = number(1, self._a), number(2, self._a)
        total = self.total_concentration
        turned = (self._a - one) * apply("Digamma", self._a) + (self._b - one) * apply("Digamma", self._b)
        return _lbeta(self._a, self._b) - turned + (total - two) * apply("Digamma", total)

    def _mean(self) -> Tensor:
        return self._a / self.total_concentration

    def _variance(self) -> Tensor:
        mean = self._mean()
        return mean * (number(1, mean) - mean) / (number(1, mean) + self.total_concentration)

    def _mode(self) -> Tensor:
        one, two = number(1, self._a), number(2, self._a)
        value = (self._a - one) / (self.total_concentration - two)
        texts = (f"Mode undefined for concentration{i} <= 1." for i in (1, 0))
        return _or_nan(self._allow_nan_stats, value, *zip((self._a, self._b), texts, strict=True))


@RegisterKL(Beta, Beta)
def _kl_beta(a: Beta, b: Beta, name: str | None = None) -> Tensor:
    with name_scope(name, "kl_beta_beta", [a.concentration1, b.concentration1]):

        def moved(x: Tensor, y: Tensor) -> Tensor:
            return apply("Digamma", x) * (x - y)

        total = moved(a.concentration1, b.concentration1) + moved(a.concentration0, b.concentration0)
        total = total - moved(a.total_concentration, b.total_concentration)
        norms = _lbeta(b.concentration1, b.concentration0) - _lbeta(a.concentration1, a.concentration0)
        return norms + total


class Dirichlet(Distribution):
    """Probabilities of several classes, drawn around those that `concentration` weighs."""

    def __init__(
        self,
        concentration: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Dirichlet",
    ) -> None:
        given = locals()
        with name_scope(name) as scope:
            (alpha,) = tensors(concentration=concentration)
            self._concentration = checked(validate_args, _weights(alpha), alpha)
        self._start(alpha.dtype.base_dtype, FULLY_REPARAMETERIZED, given, scope)

    concentration = readonly("_concentration", "The weights of the classes.")

    @property
    def total_concentration(self) -> Tensor:
        """The sum of the weights."""
        return apply("Sum", self._concentration, _LAST)

    def _batch_shape(self) -> TensorShape:
        shape = self._concentration.shape
        return TensorShape(None) if shape.rank is None else shape[:-1]

    def _event_shape(self) -> TensorShape:
        shape = self._concentration.shape
        return TensorShape(None) if shape.rank is None else shape[-1:]

    def _batch_shape_tensor(self) -> Tensor:
        return shape_of(self._concentration)[:-1]

    def _event_shape_tensor(self) -> Tensor:
        return shape_of(self._concentration)[-1:]

    def _sample_n(self, count: Any, seed: int | None) -> Tensor:
        drawn = find("random_gamma")(to_count(count), self._concentration, dtype=self._dtype, seed=seed)
        return drawn / apply("Sum", drawn, _LAST, keep_dims=True)

    def _log_prob(self, x: Tensor) -> Tensor:
        if self._validate_args:
            text = "sample last-dimension must sum to `1`"
            whole = find("assert_near")(number(1, x), apply("Sum", x, _LAST), message=text)
            x = after([find("assert_positive")(x, message="samples must be positive"), whole], x)
        core = apply("Sum", apply("Xlogy", self._concentration - number(1, x), x), _LAST)
        return core - find("lbeta")(self._concentration)

    def _entropy(self) -> Tensor:
        k = find("cast")(self._event_shape_tensor()[0], self._dtype)
        one, total = number(1, k), self.total_concentration
        each = apply("Sum", (self._concentration - one) * apply("Digamma", self._concentration), _LAST)
        return find("lbeta")(self._concentration) + (total - k) * apply("Digamma", total) - each

    def _mean(self) -> Tensor:
        return self._concentration / self.total_concentration[..., None]

    def _variance(self) -> Tensor:
        mean, one = self._mean(), number(1, self._concentration)
        return mean * (one - mean) / (one + self.total_concentration[..., None])

    def _covariance(self) -> Tensor:
        mean, one = self._mean(), number(1, self._concentration)
        outer = apply("Neg", mean[..., None] * mean[..., None, :])
        spread = outer / (one + self.total_concentration[..., None, None])
        return find("matrix_set_diag")(spread, self._variance())

    def _mode(self) -> Tensor:
        one = number(1, self._concentration)
        k = find("cast")(self._event_shape_tensor()[0], self._dtype)
        value = (self._concentration - one) / (self.total_concentration[..., None] - k)
        text = "Mode undefined when any concentration <= 1"
        if not self._allow_nan_stats:
            return _or_nan(False, value, (self._concentration, text))
        least = apply("Min", self._concentration, _LAST, keep_dims=True)
        return _or_nan(True, value, (least, text))


@RegisterKL(Dirichlet, Dirichlet)
def _kl_dirichlet(a: Dirichlet, b: Dirichlet, name: str | None = None) -> Tensor:
    with name_scope(name, "kl_dirichlet_dirichlet", [a.concentration, b.concentration]):
        turned = apply("Digamma", a.concentration) - apply("Digamma", a.total_concentration)[..., None]
        moved = apply("Sum", (a.concentration - b.concentration) * turned, _LAST)
        return moved - find("lbeta")(a.concentration) + find("lbeta")(b.concentration)


class DirichletMultinomial(Dirichlet):
    """How often each class comes in `total_count` draws, the classes' probabilities being Dirichlet."""

    def __init__(
        self,
        total_count: Any,
        concentration: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "DirichletMultinomial",
    ) -> None:
        given = locals()
        super().__init__(concentration, validate_args, allow_nan_stats, name)
        (total,) = tensors(self._dtype, total_count=total_count)
        self._total = embed_check_nonnegative_integer_form(total) if validate_args else total
        self._remember(given)
        self._reparameterization_type = NOT_REPARAMETERIZED

    total_count = readonly("_total", "The number of draws.")

    def _sample_n(self, count: Any, seed: int | None) -> Tensor:
        probs = super()._sample_n(count, seed)
        return Multinomial(self._total, probs=probs).sample(seed=_another(seed))

    def _log_prob(self, counts: Tensor) -> Tensor:
        if self._validate_args:
            text = "counts last-dimension must sum to `self.total_count`"
            counts = checked_counts(counts, self._total, text)
        together = find("lbeta")(self._concentration + counts) - find("lbeta")(self._concentration)
        return together + log_combinations(self._total, counts)

    def _mean(self) -> Tensor:
        return super()._mean() * self._total_beside_classes()

    def _total_beside_classes(self) -> Tensor:
        """The number of draws with a dimension for the classes, which may have been given with it."""
        has_it = (
            self._total.shape.rank is not None and self._total.shape.rank == self._concentration.shape.rank
        )
        return self._total if has_it else self._total[..., None]

    def _variance(self) -> Tensor:
        mean, one = super()._mean(), number(1, self._concentration)
        total, weight = self._total_beside_classes(), self.total_concentration[..., None]
        return total * mean * (one - mean) * (total + weight) / (one + weight)

    def _covariance(self) -> Tensor:
        mean, one = super()._mean(), number(1, self._concentration)
        total, weight = self._total_beside_classes()[..., None], self.total_concentration[..., None, None]
        outer = apply("Neg", mean[..., None] * mean[..., None, :])
        return find("matrix_set_diag")(outer * total * (total + weight) / (one + weight), self._variance())


class GammaWithSoftplusConcentrationRate(Gamma):
    """A gamma distribution whose parameters are softpluses of what is given."""

    __init__ = turned(
        Gamma,
        "GammaWithSoftplusConcentrationRate",
        concentration=softplus("softplus_concentration"),
        rate=softplus("softplus_rate"),
    )


class BetaWithSoftplusConcentration(Beta):
    """A beta distribution whose parameters are softpluses of what is given."""

    __init__ = turned(
        Beta,
        "BetaWithSoftplusConcentration",
        concentration1=softplus("softplus_concentration1"),
        concentration0=softplus("softplus_concentration0"),
    )
