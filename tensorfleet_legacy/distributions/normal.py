"""Distributions over the whole real line."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from tensorfleet.base.arguments import with_defaults
from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.graph.apply import apply
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.constructors import ones_like, zeros_like
from tensorfleet_legacy.distributions import special_math as tails
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

_LOG_TWO_PI = math.log(2 * math.pi)


def positive(*values: Tensor, message: str | None = None) -> list:
    """The checks that values are above 0."""
    return [lambda v=v: find("assert_positive")(v, message=message) for v in values]


class _LocationScale(Distribution):
    """A shape that is moved by `loc` and stretched by `scale`."""

    def __init__(
        self,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Normal",
    ) -> None:
        given = locals()
        with name_scope(name) as scope:
            self._loc, scale = tensors(loc=loc, scale=scale)
            self._scale = checked(validate_args, positive(scale), scale)
        self._start(self._scale.dtype.base_dtype, FULLY_REPARAMETERIZED, given, scope)

    _alike: ClassVar[tuple[str, ...]] = ("loc", "scale")
    loc = readonly("_loc", "Where the middle is.")
    scale = readonly("_scale", "How wide it is.")

    _each: ClassVar[tuple[str, ...]] = ("_loc", "_scale")

    def _z(self, x: Tensor) -> Tensor:
        return (x - self._loc) / self._scale

    def _mean(self) -> Tensor:
        return self._loc * ones_like(self._scale)

    _mode = _mean

    def _size(self, count: Any) -> Tensor:
        return counted(count, self.batch_shape_tensor())


class Normal(_LocationScale):
    """The normal distribution with mean `loc` and standard deviation `scale`."""

    def _sample_n(self, count: Any, seed: int | None) -> Tensor:
        drawn = find("random_normal")(self._size(count), dtype=self._dtype, seed=seed)
        return drawn * self._scale + self._loc

    def _log_prob(self, x: Tensor) -> Tensor:
        normal = number(-0.5, x) * apply("Square", self._z(x))
        return normal - (number(0.5 * _LOG_TWO_PI, x) + apply("Log", self._scale))

    def _cdf(self, x: Tensor) -> Tensor:
        return tails.ndtr(self._z(x))

    def _log_cdf(self, x: Tensor) -> Tensor:
        return tails.log_ndtr(self._z(x))

    def _survival_function(self, x: Tensor) -> Tensor:
        return tails.ndtr(apply("Neg", self._z(x)))

    def _log_survival_function(self, x: Tensor) -> Tensor:
        return tails.log_ndtr(apply("Neg", self._z(x)))

    def _entropy(self) -> Tensor:
        scale = self._scale * ones_like(self._loc)
        return number(0.5 + 0.5 * _LOG_TWO_PI, scale) + apply("Log", scale)

    def _quantile(self, p: Tensor) -> Tensor:
        return tails.ndtri(p) * self._scale + self._loc

    def _stddev(self) -> Tensor:
        return self._scale * ones_like(self._loc)


@RegisterKL(Normal, Normal)
def _kl_normal(a: Normal, b: Normal, name: str | None = None) -> Tensor:
    with name_scope(name, "kl_normal_normal", [a.loc, b.loc]):
        one, half = number(1, a.loc), number(0.5, a.loc)
        ratio = apply("Square", a.scale / b.scale)
        moved = apply("Square", a.loc - b.loc) / (number(2, a.loc) * apply("Square", b.scale))
        return moved + half * (ratio - one - apply("Log", ratio))


class LogNormal(Normal):
    """A variable whose logarithm is normal."""

    def __init__(
        self,
        loc: Any = None,
        scale: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "LogNormal",
    ) -> None:
        super().__init__(loc, scale, validate_args, allow_nan_stats, name)

    def _sample_n(self, count: Any, seed: int | None) -> Tensor:
        return apply("Exp", super()._sample_n(count, seed))

    def _log_prob(self, x: Tensor) -> Tensor:
        log = apply("Log", x)
        return super()._log_prob(log) - log

    def _cdf(self, x: Tensor) -> Tensor:
        return super()._cdf(apply("Log", x))

    def _log_cdf(self, x: Tensor) -> Tensor:
        return super()._log_cdf(apply("Log", x))

    def _survival_function(self, x: Tensor) -> Tensor:
        return super()._survival_function(apply("Log", x))

    def _log_survival_function(self, x: Tensor) -> Tensor:
        return super()._log_survival_function(apply("Log", x))

    def _quantile(self, p: Tensor) -> Tensor:
        return apply("Exp", super()._quantile(p))

    def _entropy(self) -> Tensor:
        return super()._entropy() + self._loc

    def _mean(self) -> Tensor:
        return apply("Exp", self._loc + number(0.5, self._loc) * apply("Square", self._scale))

    def _mode(self) -> Tensor:
        return apply("Exp", self._loc - apply("Square", self._scale))

    def _stddev(self) -> Tensor:
        return apply("Sqrt", apply("Expm1", apply("Square", self._scale))) * self._mean()


class Laplace(_LocationScale):
    """The Laplace distribution: exponential on both sides of `loc`."""

    __init__ = with_defaults(_LocationScale.__init__, name="Laplace")

    def _sample_n(self, count: Any, seed: int | None) -> Tensor:
        kind = self._dtype.as_numpy_dtype
        low = np.nextafter(kind(-1), kind(0))
        drawn = find("random_uniform")(self._size(count), low, kind(1), self._dtype, seed=seed)
        return self._loc - self._scale * apply("Sign", drawn) * apply(
            "Log1p", apply("Neg", apply("Abs", drawn))
        )

    def _log_prob(self, x: Tensor) -> Tensor:
        return apply("Neg", apply("Abs", self._z(x))) - apply("Log", number(2, x) * self._scale)

    def _cdf(self, x: Tensor) -> Tensor:
        z = self._z(x)
        half, one = number(0.5, z), number(1, z)
        tail = half * apply("Exp", apply("Neg", apply("Abs", z)))
        return apply("Select", apply("Less", z, zeros_like(z)), tail, one - tail)

    def _log_cdf(self, x: Tensor) -> Tensor:
        return tails.log_cdf_laplace(self._z(x))

    def _log_survival_function(self, x: Tensor) -> Tensor:
        return tails.log_cdf_laplace(apply("Neg", self._z(x)))

    def _entropy(self) -> Tensor:
        scale = self._scale * ones_like(self._loc)
        return number(math.log(2) + 1, scale) + apply("Log", scale)

    def _stddev(self) -> Tensor:
        return number(math.sqrt(2), self._scale) * self._scale * ones_like(self._loc)


class Logistic(_LocationScale):
    """The logistic distribution, whose probabilities are sigmoids."""

    __init__ = with_defaults(_LocationScale.__init__, name="Logistic")

    def _sample_n(self, count: Any, seed: int | None) -> Tensor:
        tiny = np.finfo(self._dtype.as_numpy_dtype).tiny
        drawn = find("random_uniform")(self._size(count), tiny, 1.0, self._dtype, seed=seed)
        return (apply("Log", drawn) - apply("Log1p", apply("Neg", drawn))) * self._scale + self._loc

    def _log_prob(self, x: Tensor) -> Tensor:
        z = self._z(x)
        return apply("Neg", z) - number(2, z) * apply("Softplus", apply("Neg", z)) - apply("Log", self._scale)

    def _cdf(self, x: Tensor) -> Tensor:
        return apply("Sigmoid", self._z(x))

    def _log_cdf(self, x: Tensor) -> Tensor:
        return apply("Neg", apply("Softplus", apply("Neg", self._z(x))))

    def _survival_function(self, x: Tensor) -> Tensor:
        return apply("Sigmoid", apply("Neg", self._z(x)))

    def _log_survival_function(self, x: Tensor) -> Tensor:
        return apply("Neg", apply("Softplus", self._z(x)))

    def _entropy(self) -> Tensor:
        return number(2, self._scale) + apply("Log", self._scale * ones_like(self._loc))

    def _stddev(self) -> Tensor:
        return number(math.pi / math.sqrt(3), self._scale) * self._scale * ones_like(self._loc)


class StudentT(_LocationScale):
    """Student's t: like a normal with heavier tails, the fewer degrees of freedom `df`."""

    def __init__(
        self,
        df: Any,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "StudentT",
    ) -> None:
        given = locals()
        with name_scope(name) as scope:
            df, self._loc, self._scale = tensors(df=df, loc=loc, scale=scale)
            self._df = checked(validate_args, positive(df), df)
        self._start(self._scale.dtype.base_dtype, FULLY_REPARAMETERIZED, given, scope)

    _alike = ("df", "loc", "scale")
    df = readonly("_df", "The degrees of freedom.")

    _each = ("_df", "_loc", "_scale")

    def _sample_n(self, count: Any, seed: int | None) -> Tensor:
        normal = find("random_normal")(self._size(count), dtype=self._dtype, seed=seed)
        half = number(0.5, self._df)
        df = self._df * ones_like(self._loc * self._scale)
        chi = find("random_gamma")(to_count(count), half * df, half, self._dtype, seed=_another(seed))
        return normal * apply("Rsqrt", chi / df) * self._scale + self._loc

    def _log_prob(self, x: Tensor) -> Tensor:
        y = self._z(x)
        half, one = number(0.5, x), number(1, x)
        core = half * (self._df + one) * apply("Log1p", apply("Square", y) / self._df)
        return apply("Neg", core) - self._log_normalization()

    def _cdf(self, x: Tensor) -> Tensor:
        y = (x - self._loc) / apply("Abs", self._scale) * ones_like(self._df)
        df, half = self._df * ones_like(y), number(0.5, y)
        tail = half * apply("Betainc", half * df, half * ones_like(y), df / (y * y + df))
        return apply("Select", y < number(0, y), tail, number(1, y) - tail)

    def _log_normalization(self) -> Tensor:
        half, one = number(0.5, self._df), number(1, self._df)
        norm = apply("Log", apply("Abs", self._scale)) + half * apply("Log", self._df)
        norm = norm + number(0.5 * math.log(math.pi), self._df)
        return norm + apply("Lgamma", half * self._df) - apply("Lgamma", half * (self._df + one))

    def _entropy(self) -> Tensor:
        df = self._df * ones_like(self._loc * self._scale)
        half, one = number(0.5, df), number(1, df)
        beta = apply("Lgamma", half) + apply("Lgamma", half * df) - apply("Lgamma", half * (df + one))
        turn = half * (df + one) * (apply("Digamma", half * (df + one)) - apply("Digamma", half * df))
        return apply("Log", apply("Abs", self._scale)) + half * apply("Log", df) + beta + turn

    def _mean(self) -> Tensor:
        mean = self._loc * ones_like(self._df * self._scale)
        return self._above_one(mean, "mean")

    def _mode(self) -> Tensor:
        return self._loc * ones_like(self._df * self._scale)

    def _variance(self) -> Tensor:
        df = self._df * ones_like(self._loc * self._scale)
        two = number(2, df)
        safe = apply("Select", apply("Greater", df, two * ones_like(df)), df - two, ones_like(df))
        value = apply("Square", self._scale) * df / safe
        infinite = self._where_above(2, value, float("inf"))
        return self._above_one(infinite, "variance")

    def _above_one(self, value: Tensor, what: str) -> Tensor:
        """A moment that exists for more than one degree of freedom; elsewhere NaN, or an error if that is not allowed."""
        if self._allow_nan_stats:
            return self._where_above(1, value, float("nan"))
        text = f"{what} not defined for components of df <= 1"
        return checked(
            True, [lambda: find("assert_less")(number(1, self._df), self._df, message=text)], value
        )

    def _where_above(self, limit: float, value: Tensor, otherwise: float) -> Tensor:
        df = self._df * ones_like(value)
        return apply("Select", df > number(limit, df), value, number(otherwise, value) * ones_like(value))


class NormalWithSoftplusScale(Normal):
    """A normal distribution whose scale is the softplus of what is given."""

    __init__ = turned(Normal, "NormalWithSoftplusScale", scale=softplus("softplus_scale"))


class LaplaceWithSoftplusScale(Laplace):
    """A Laplace distribution whose scale is the softplus of what is given."""

    __init__ = turned(Laplace, "LaplaceWithSoftplusScale", scale=softplus("softplus_scale"))


class StudentTWithAbsDfSoftplusScale(StudentT):
    """Student's t with `floor(abs(df))` degrees of freedom, and the softplus of what is given as its scale."""

    __init__ = turned(
        StudentT,
        "StudentTWithAbsDfSoftplusScale",
        df=lambda df: apply("Floor", apply("Abs", df)),
        scale=softplus("softplus_scale"),
    )


def _another(seed: int | None) -> int | None:
    """A seed for the second source of randomness of one sample."""
    return None if seed is None else (seed * 1_000_003 + 12345) % (2**31 - 1)


def to_count(count: Any) -> Tensor:
    """A number of samples as a shape."""
    return apply("Reshape", count, [1])
