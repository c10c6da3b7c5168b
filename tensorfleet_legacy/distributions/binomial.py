"""Distributions of how often things happen in trials."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet_legacy.distributions.distribution import (
    NOT_REPARAMETERIZED,
    Distribution,
    counted,
    number,
    tensors,
)
from tensorfleet_legacy.distributions.util_assertions import (
    embed_check_nonnegative_integer_form,
    get_logits_and_probs,
)


class _Trials(Distribution):
    """Trials that succeed with probability `probs`, or `sigmoid(logits)`."""

    _logits: Tensor
    _probs: Tensor
    _total: Tensor

    logits = readonly("_logits", "The logarithm of the odds of success.")
    probs = readonly("_probs", "The probability of success.")

    def _with_total(self, total_count: Any, given: dict[str, Any]) -> None:
        """Ends the constructor of a distribution that has a number of trials, with its `locals()`."""
        checks = given["validate_args"]
        with name_scope(given["name"]) as scope:
            self._logits, self._probs = get_logits_and_probs(
                given["logits"], given["probs"], validate_args=checks, name=scope
            )
            (self._total,) = tensors(self._probs.dtype.base_dtype, total_count=total_count)
        self._start(self._probs.dtype.base_dtype, NOT_REPARAMETERIZED, given, scope)

    _each: ClassVar[tuple[str, ...]] = ("_total", "_probs")

    def _counts(self, value: Tensor) -> Tensor:
        return embed_check_nonnegative_integer_form(value) if self._validate_args else value

    def _uniform(self, size: Any, seed: int | None) -> Tensor:
        """Numbers between 0 and 1, neither of them."""
        tiny = float(np.finfo(self._dtype.as_numpy_dtype).tiny)
        return find("random_uniform")(size, tiny, 1.0, dtype=self._dtype, seed=seed)


class Binomial(_Trials):
    """How many of `total_count` trials succeed."""

    def __init__(
        self,
        total_count: Any,
        logits: Any = None,
        probs: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Binomial",
    ) -> None:
        given = locals()
        self._with_total(total_count, given)
        if validate_args:
            self._total = embed_check_nonnegative_integer_form(self._total)

    total_count = readonly("_total", "The number of trials.")

    def _sample_n(self, count: Any, seed: int | None) -> Tensor:
        batch, cast = self.batch_shape_tensor(), find("cast")
        total = find("broadcast_to")(self._total, batch)
        most = cast(find("reduce_max")(total), dtypes.int32)
        size = find("concat")([counted(count, batch), [most]], 0)
        succeeds = find("random_uniform")(size, dtype=self._dtype, seed=seed) < self._probs[..., None]
        tried = find("sequence_mask")(cast(total, dtypes.int32), most)
        return find("reduce_sum")(cast(find("logical_and")(succeeds, tried), self._dtype), -1)

    def _log_prob(self, counts: Tensor) -> Tensor:
        counts = self._counts(counts)
        lgamma, one = find("lgamma"), number(1, counts)
        failed = self._total - counts
        ways = lgamma(self._total + one) - lgamma(counts + one) - lgamma(failed + one)
        softplus = find("nn.softplus")
        return ways - counts * softplus(-self._logits) - failed * softplus(self._logits)

    def _cdf(self, counts: Tensor) -> Tensor:
        whole = find("floor")(counts) + 0 * self._probs * self._total
        total, probs = whole * 0 + self._total, whole * 0 + self._probs
        inside = find("logical_and")(whole >= 0, whole < total)
        k = find("where")(inside, whole, find("zeros_like")(whole))
        n = find("where")(inside, total, find("ones_like")(whole))
        result = find("betainc")(n - k, k + 1, 1 - probs)
        outside = find("cast")(whole >= total, self._dtype)
        return find("where")(inside, result, outside)

    def _mean(self) -> Tensor:
        return self._total * self._probs

    def _variance(self) -> Tensor:
        return self._mean() * (1 - self._probs)

    def _mode(self) -> Tensor:
        return find("floor")((1 + self._total) * self._probs)


class NegativeBinomial(_Trials):
    """How many trials succeed before `total_count` have failed."""

    def __init__(
        self,
        total_count: Any,
        logits: Any = None,
        probs: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "NegativeBinomial",
    ) -> None:
        given = locals()
        self._with_total(total_count, given)

    total_count = readonly("_total", "The number of failures.")

    def _sample_n(self, count: Any, seed: int | None) -> Tensor:
        # Poisson numbers whose rates are drawn from a gamma distribution.
        rate = find("random_gamma")(
            find("reshape")(count, [1]),
            self._total + 0 * self._probs,
            beta=find("exp")(-self._logits),
            dtype=self._dtype,
            seed=seed,
        )
        second = None if seed is None else (seed * 1_000_003 + 12345) % (2**31 - 1)
        return find("random_poisson")(rate, [], dtype=self._dtype, seed=second)

    def _log_prob(self, x: Tensor) -> Tensor:
        x, lgamma, softplus = self._counts(x), find("lgamma"), find("nn.softplus")
        chances = -self._total * softplus(self._logits) - x * softplus(-self._logits)
        return chances + lgamma(self._total + x) - lgamma(1.0 + x) - lgamma(self._total)

    def _cdf(self, x: Tensor) -> Tensor:
        whole = find("floor")(x)
        zero = find("zeros_like")(whole * self._probs * self._total)
        inside = find("maximum")(whole + zero, zero)
        result = find("betainc")(self._total + zero, 1.0 + inside, 1.0 - self._probs + zero)
        return find("where")(whole + zero >= 0, result, zero)

    def _mean(self) -> Tensor:
        return self._total * find("exp")(self._logits)

    def _variance(self) -> Tensor:
        return self._mean() / (1.0 - self._probs)

    def _mode(self) -> Tensor:
        return find("maximum")(
            number(0, self._probs), find("floor")((self._total - 1) * find("exp")(self._logits))
        )


class Geometric(_Trials):
    """How many trials fail before the first succeeds."""

    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Geometric",
    ) -> None:
        given = locals()
        with name_scope(name) as scope:
            self._logits, self._probs = get_logits_and_probs(
                logits, probs, validate_args=validate_args, name=scope
            )
        self._start(self._probs.dtype.base_dtype, NOT_REPARAMETERIZED, given, scope)

    _each = ("_probs",)

    def _sample_n(self, count: Any, seed: int | None) -> Tensor:
        drawn = self._uniform(counted(count, self.batch_shape_tensor()), seed)
        return find("floor")(find("log")(drawn) / find("log1p")(-self._probs))

    def _log_prob(self, x: Tensor) -> Tensor:
        x = self._counts(x)
        failures = x * find("log1p")(-self._probs)
        # When every trial succeeds, 0 * log(0) stands for no failure at all.
        none = find("equal")(x + find("zeros_like")(self._probs), 0)
        return find("where")(none, find("zeros_like")(failures), failures) + find("log")(self._probs)

    def _cdf(self, x: Tensor) -> Tensor:
        whole = find("floor")(x)
        result = -find("expm1")((1.0 + whole) * find("log1p")(-self._probs))
        return find("where")(whole + result * 0 < 0, find("zeros_like")(result), result)

    def _entropy(self) -> Tensor:
        softplus = find("nn.softplus")
        return (
            softplus(-self._logits) * self._probs + softplus(self._logits) * (1 - self._probs)
        ) / self._probs

    def _mean(self) -> Tensor:
        return find("exp")(-self._logits)

    def _variance(self) -> Tensor:
        return self._mean() / self._probs

    def _mode(self) -> Tensor:
        return find("zeros_like")(self._probs)
