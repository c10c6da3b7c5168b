"""Distributions with heavy or bent tails, and those of positive numbers."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from tensorfleet.base.arguments import with_defaults
from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet_legacy.distributions.bijector_impl import Chain
from tensorfleet_legacy.distributions.bijectors.affine_scalar import AffineScalar
from tensorfleet_legacy.distributions.bijectors.affine_scalar import Kumaraswamy as KumaraswamyBijector
from tensorfleet_legacy.distributions.bijectors.affine_scalar import SinhArcsinh as SinhArcsinhBijector
from tensorfleet_legacy.distributions.distribution import (
    FULLY_REPARAMETERIZED,
    Distribution,
    checked,
    counted,
    number,
    tensors,
)
from tensorfleet_legacy.distributions.gamma import Gamma, _or_nan
from tensorfleet_legacy.distributions.kullback_leibler import RegisterKL
from tensorfleet_legacy.distributions.normal import Normal, _LocationScale, positive
from tensorfleet_legacy.distributions.transformed_distribution import TransformedDistribution
from tensorfleet_legacy.distributions.uniform import Uniform


class Cauchy(_LocationScale):
    """The Cauchy distribution, which has no mean."""

    __init__ = with_defaults(_LocationScale.__init__, name="Cauchy")

    def _sample_n(self, count: Any, seed: int | None) -> Tensor:
        drawn = find("random_uniform")(self._size(count), dtype=self._dtype, seed=seed)
        return self._quantile(drawn)

    def _log_prob(self, x: Tensor) -> Tensor:
        return -find("log1p")(find("square")(self._z(x))) - (math.log(math.pi) + find("log")(self._scale))

    def _cdf(self, x: Tensor) -> Tensor:
        return find("atan")(self._z(x)) / math.pi + 0.5

    def _log_cdf(self, x: Tensor) -> Tensor:
        return find("log1p")(2 / math.pi * find("atan")(self._z(x))) - math.log(2)

    def _entropy(self) -> Tensor:
        return find("log")(self._scale + find("zeros_like")(self._loc)) + math.log(4 * math.pi)

    def _quantile(self, p: Tensor) -> Tensor:
        return self._loc + self._scale * find("tan")(math.pi * (p - 0.5))

    def _mode(self) -> Tensor:
        return self._loc + find("zeros_like")(self._scale)

    def _mean(self) -> Tensor:
        if not self._allow_nan_stats:
            raise ValueError("`mean` is undefined for Cauchy distribution.")
        return self._mode() * 0 + np.nan

    def _stddev(self) -> Tensor:
        if not self._allow_nan_stats:
            raise ValueError("`stddev` is undefined for Cauchy distribution.")
        return self._mode() * 0 + np.nan


class HalfNormal(Distribution):
    """The absolute value of a normal variable with mean 0."""

    def __init__(
        self, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "HalfNormal"
    ) -> None:
        given = locals()
        with name_scope(name) as scope:
            (given_scale,) = tensors(scale=scale)
            self._scale = checked(validate_args, positive(given_scale), given_scale)
        self._start(self._scale.dtype.base_dtype, FULLY_REPARAMETERIZED, given, scope)

    scale = readonly("_scale", "The deviation of the normal variable.")
    _alike = ("scale",)

    _each = ("_scale",)

    def _sample_n(self, count: Any, seed: int | None) -> Tensor:
        size = counted(count, self.batch_shape_tensor())
        return find("abs")(find("random_normal")(size, dtype=self._dtype, seed=seed)) * self._scale

    def _prob(self, x: Tensor) -> Tensor:
        density = math.sqrt(2 / math.pi) / self._scale * find("exp")(-0.5 * find("square")(x / self._scale))
        return density * find("cast")(x >= 0, self._dtype)

    def _cdf(self, x: Tensor) -> Tensor:
        return find("erf")(find("maximum")(x, number(0, x)) / self._scale / math.sqrt(2))

    def _quantile(self, p: Tensor) -> Tensor:
        return Normal(number(0, p), self._scale).quantile(0.5 * (p + 1))

    def _entropy(self) -> Tensor:
        return 0.5 * find("log")(math.pi * find("square")(self._scale) / 2) + 0.5

    def _mean(self) -> Tensor:
        return self._scale * math.sqrt(2 / math.pi)

    def _mode(self) -> Tensor:
        return find("zeros_like")(self._scale)

    def _variance(self) -> Tensor:
        return find("square")(self._scale) * (1 - 2 / math.pi)


@RegisterKL(HalfNormal, HalfNormal)
def _kl_half_normal(a: HalfNormal, b: HalfNormal, name: str | None = None) -> Tensor:
    with name_scope(name, "kl_half_normal_half_normal", [a.scale, b.scale]):
        ratio = find("square")(a.scale / b.scale)
        return find("log")(b.scale / a.scale) + 0.5 * (ratio - 1)


class InverseGamma(Distribution):
    """The inverse of a gamma variable."""

    _concentration: Tensor
    _rate: Tensor
    __init__ = with_defaults(Gamma.__init__, name="InverseGamma")

    concentration = readonly("_concentration", "The shape parameter.")
    rate = readonly("_rate", "The scale.")
    _alike = ("concentration", "rate")

    _each = ("_concentration", "_rate")

    def _sample_n(self, count: Any, seed: int | None) -> Tensor:
        alpha, size = self._concentration, find("reshape")(count, [1])
        return 1 / find("random_gamma")(size, alpha, beta=self._rate, dtype=self._dtype, seed=seed)

    def _log_prob(self, x: Tensor) -> Tensor:
        a, b, log = self._concentration, self._rate, find("log")
        return -(1 + a) * log(x) - b / x - (find("lgamma")(a) - a * log(b))

    def _cdf(self, x: Tensor) -> Tensor:
        return find("igammac")(self._concentration, self._rate / x)

    def _entropy(self) -> Tensor:
        a = self._concentration
        return a + find("log")(self._rate) + find("lgamma")(a) - (1 + a) * find("digamma")(a)

    def _mean(self) -> Tensor:
        value = self._rate / (self._concentration - 1)
        text = "mean undefined when any concentration <= 1"
        return _or_nan(self._allow_nan_stats, value, (self._concentration, text))

    def _variance(self) -> Tensor:
        a = self._concentration
        value = find("square")(self._rate) / find("square")(a - 1) / (a - 2)
        text = "variance undefined when any concentration <= 2"
        return _or_nan(self._allow_nan_stats, value, (a - 1, text))

    def _mode(self) -> Tensor:
        return self._rate / (1 + self._concentration)


class InverseGammaWithSoftplusConcentrationRate(InverseGamma):
    """An inverse gamma variable whose parameters are the softplus of what is given."""

    def __init__(
        self,
        concentration: Any,
        rate: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "InverseGammaWithSoftplusConcentrationRate",
    ) -> None:
        given = locals()
        with name_scope(name) as scope:
            alpha, beta = tensors(concentration=concentration, rate=rate)
            soft = find("nn.softplus")
            alpha, beta = soft(alpha, name="softplus_concentration"), soft(beta, name="softplus_rate")
        super().__init__(alpha, beta, validate_args, allow_nan_stats, scope)
        self._remember(given)


class Chi2(Gamma):
    """The sum of the squares of `df` standard normal variables."""

    def __init__(
        self, df: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Chi2"
    ) -> None:
        given = locals()
        with name_scope(name) as scope:
            (self._df,) = tensors(df=df)
            half = number(0.5, self._df)
            concentration = half * self._df
        super().__init__(concentration, half, validate_args, allow_nan_stats, scope)
        self._remember(given)

    df = readonly("_df", "The degrees of freedom.")
    _alike: ClassVar[tuple[str, ...]] = ("df",)


class Chi2WithAbsDf(Chi2):
    """A chi-square variable with `floor(abs(df))` degrees of freedom."""

    def __init__(
        self, df: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Chi2WithAbsDf"
    ) -> None:
        given = locals()
        with name_scope(name) as scope:
            whole = find("floor")(find("abs")(tensors(df=df)[0]))
        super().__init__(whole, validate_args, allow_nan_stats, scope)
        self._remember(given)


class Kumaraswamy(TransformedDistribution):
    """A distribution on the unit interval, like the beta distribution, with a simple cdf."""

    def __init__(
        self,
        concentration1: Any = None,
        concentration0: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Kumaraswamy",
    ) -> None:
        given = locals()
        with name_scope(name) as scope:
            a, b = tensors(concentration1=concentration1, concentration0=concentration0)
            bijector = KumaraswamyBijector(a, b, validate_args)
            low = find("zeros_like")(a + b)
            inner = Uniform(low, low + 1, allow_nan_stats=allow_nan_stats)
        super().__init__(inner, bijector, validate_args=validate_args, name=scope)
        self._remember(given)

    concentration1 = readonly("_bijector.concentration1", "The number a.")
    concentration0 = readonly("_bijector.concentration0", "The number b.")

    def _moment(self, n: int) -> Tensor:
        a, b, lgamma = self.concentration1, self.concentration0, find("lgamma")
        return find("exp")(find("log")(b) + lgamma(1 + n / a) + lgamma(b) - lgamma(1 + n / a + b))

    def _mean(self) -> Tensor:
        return self._moment(1)

    def _variance(self) -> Tensor:
        return self._moment(2) - find("square")(self._moment(1))

    def _entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = find("digamma")(b + 1) + np.euler_gamma
        return (1 - 1 / b) + (1 - 1 / a) * harmonic - find("log")(a) - find("log")(b)

    def _mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        value = ((a - 1) / (a * b - 1)) ** (1 / a)
        text = "Mode undefined for concentration{} <= 1."
        return _or_nan(self._allow_nan_stats, value, (a, text.format(1)), (b, text.format(0)))


class SinhArcsinh(TransformedDistribution):
    """A normal variable (or one of another `distribution`) that leans and has other tails."""

    def __init__(
        self,
        loc: Any,
        scale: Any,
        skewness: Any = None,
        tailweight: Any = None,
        distribution: Distribution | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "SinhArcsinh",
    ) -> None:
        given = locals()
        with name_scope(name) as scope:
            self._loc, self._scale = tensors(loc=loc, scale=scale)
            kind = self._scale.dtype.base_dtype
            tail, skew = tensors(
                kind,
                tailweight=1.0 if tailweight is None else tailweight,
                skewness=0.0 if skewness is None else skewness,
            )
            batch = find("zeros_like")(self._loc + self._scale + skew + tail)
            inner = distribution or Normal(batch, batch + 1, allow_nan_stats=allow_nan_stats)
            bent = SinhArcsinhBijector(skew, tail, validate_args)
            # Without lean, two stays two: so `scale` means about the same for all tails.
            two = SinhArcsinhBijector(tailweight=tail).forward(number(2, tail))
            moved = AffineScalar(self._loc, self._scale * 2 / two, validate_args)
        super().__init__(inner, Chain([moved, bent]), validate_args=validate_args, name=scope)
        self._skewness, self._tailweight = skew, tail
        self._remember(given)

    loc = readonly("_loc", "Where the middle is.")
    scale = readonly("_scale", "How wide it is.")
    skewness = readonly("_skewness", "How far it leans.")
    tailweight = readonly("_tailweight", "How heavy its tails are.")
