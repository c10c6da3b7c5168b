"""Distributions over whole numbers and classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.arguments import with_defaults
from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.constructors import ones_like, zeros_like
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.math.cast import cast
from tensorfleet_legacy.distributions.distribution import (
    NOT_REPARAMETERIZED,
    Distribution,
    counted,
    number,
    tensors,
)
from tensorfleet_legacy.distributions.kullback_leibler import RegisterKL
from tensorfleet_legacy.distributions.util_assertions import (
    after,
    embed_check_integer_casting_closed,
    embed_check_nonnegative_integer_form,
    get_logits_and_probs,
)

_LAST = np.array([-1], np.int32)


class Bernoulli(Distribution):
    """Coins that show 1 with probability `probs`, or `sigmoid(logits)`."""

    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = dtypes.int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Bernoulli",
    ) -> None:
        given = locals()
        with name_scope(name) as scope:
            self._logits, self._probs = get_logits_and_probs(
                logits, probs, validate_args=validate_args, name=scope
            )
        self._start(dtypes.as_dtype(dtype), NOT_REPARAMETERIZED, given, scope)

    logits = readonly("_logits", "The logarithm of the odds of 1.")
    probs = readonly("_probs", "The probability of 1.")

    _alike = ("logits",)

    _each = ("_logits",)

    def _sample_n(self, count: Any, seed: int | None) -> Tensor:
        size = counted(count, self.batch_shape_tensor())
        drawn = find("random_uniform")(size, dtype=self._probs.dtype.base_dtype, seed=seed)
        return cast(drawn < self._probs, self._dtype)

    def _log_prob(self, event: Tensor) -> Tensor:
        if self._validate_args:
            event = embed_check_integer_casting_closed(event, target_dtype=dtypes.bool_)
        event = cast(event, self._logits.dtype.base_dtype)
        logits = self._logits * ones_like(event)
        event = event * ones_like(logits)
        return apply("Neg", find("nn.sigmoid_cross_entropy_with_logits")(labels=event, logits=logits))

    def _entropy(self) -> Tensor:
        softplus = apply("Softplus", apply("Neg", self._logits))
        return (
            apply("Neg", self._logits) * (apply("Sigmoid", self._logits) - number(1, self._logits)) + softplus
        )

    def _mean(self) -> Tensor:
        return apply("Identity", self._probs)

    def _variance(self) -> Tensor:
        return self._probs * (number(1, self._probs) - self._probs)

    def _mode(self) -> Tensor:
        return cast(self._probs > number(0.5, self._probs), self._dtype)


@RegisterKL(Bernoulli, Bernoulli)
def _kl_bernoulli(a: Bernoulli, b: Bernoulli, name: str | None = None) -> Tensor:
    with name_scope(name, "kl_bernoulli_bernoulli", [a.logits, b.logits]):
        off = apply("Softplus", b.logits) - apply("Softplus", a.logits)
        on = apply("Softplus", apply("Neg", b.logits)) - apply("Softplus", apply("Neg", a.logits))
        return apply("Sigmoid", a.logits) * on + apply("Sigmoid", apply("Neg", a.logits)) * off


class _Classes(Distribution):
    """Distributions over the classes along the last axis of the parameters."""

    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = dtypes.int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Categorical",
    ) -> None:
        given = locals()
        with name_scope(name) as scope:
            self._logits, self._probs = get_logits_and_probs(logits, probs, True, validate_args, scope)
        self._start(dtypes.as_dtype(dtype), NOT_REPARAMETERIZED, given, scope)

    logits = readonly("_logits", "The logarithms of the classes' weights.")
    probs = readonly("_probs", "The probabilities of the classes.")

    @property
    def event_size(self) -> Tensor:
        """How many classes there are."""
        return shape_of(self._logits)[-1]

    def _batch_shape(self) -> TensorShape:
        shape = self._logits.shape
        return TensorShape(None) if shape.rank is None else shape[:-1]

    def _batch_shape_tensor(self) -> Tensor:
        return shape_of(self._logits)[:-1]

    def _draw(self, count: Any, seed: int | None) -> Tensor:
        """Classes [count, *batch], as int64."""
        flat = apply("Reshape", self._logits_of_batch(), apply("Pack", [np.int32(-1), self.event_size]))
        drawn = find("multinomial")(flat, to_tensor(count, np.int32), seed=seed)
        return apply("Reshape", apply("Transpose", drawn, [1, 0]), counted(count, self.batch_shape_tensor()))

    def _logits_of_batch(self) -> Tensor:
        return self._logits

    def _entropy(self) -> Tensor:
        return apply("Neg", apply("Sum", self._probs * find("nn.log_softmax")(self._logits), _LAST))


class Categorical(_Classes):
    """One of several classes, as its number."""

    def _sample_n(self, count: Any, seed: int | None) -> Tensor:
        return cast(self._draw(count, seed), self._dtype)

    def _checked(self, classes: Tensor) -> Tensor:
        if self._validate_args:
            return embed_check_integer_casting_closed(classes, target_dtype=dtypes.int32)
        return classes

    def _log_prob(self, classes: Tensor) -> Tensor:
        classes = self._checked(classes)
        whole = find("broadcast_dynamic_shape")(shape_of(classes), self.batch_shape_tensor())
        labels = find("broadcast_to")(cast(classes, dtypes.int32), whole)
        logits = find("broadcast_to")(
            self._logits, apply("ConcatV2", [whole, apply("Reshape", self.event_size, [1])], 0)
        )
        result = apply(
            "Neg", find("nn.sparse_softmax_cross_entropy_with_logits")(labels=labels, logits=logits)
        )
        result.set_shape(find("broadcast_static_shape")(classes.shape, self.batch_shape))
        return result

    def _cdf(self, classes: Tensor) -> Tensor:
        classes = self._checked(classes)
        below = find("sequence_mask")(cast(classes, dtypes.int32), self.event_size)  # the class itself not
        return apply("Sum", self._probs * cast(below, self._probs.dtype.base_dtype), _LAST)

    def _mode(self) -> Tensor:
        return cast(find("argmax")(self._logits, axis=-1), self._dtype)


class _VectorOfClasses(_Classes):
    """A number for each class."""

    def _event_shape(self) -> TensorShape:
        return TensorShape(None) if self._logits.shape.rank is None else self._logits.shape[-1:]

    def _event_shape_tensor(self) -> Tensor:
        return shape_of(self._logits)[-1:]


class OneHotCategorical(_VectorOfClasses):
    """One of several classes, as a vector with a one in its place."""

    __init__ = with_defaults(_Classes.__init__, name="OneHotCategorical")

    def _sample_n(self, count: Any, seed: int | None) -> Tensor:
        return find("one_hot")(self._draw(count, seed), self.event_size, dtype=self._dtype)

    def _log_prob(self, x: Tensor) -> Tensor:
        chosen = cast(x, self._logits.dtype.base_dtype) * find("nn.log_softmax")(self._logits)
        return apply("Sum", chosen, _LAST)

    def _mean(self) -> Tensor:
        return apply("Identity", self._probs)

    def _mode(self) -> Tensor:
        return find("one_hot")(find("argmax")(self._logits, axis=-1), self.event_size, dtype=self._dtype)


@RegisterKL(OneHotCategorical, OneHotCategorical)
@RegisterKL(Categorical, Categorical)
def _kl_classes(a: _Classes, b: _Classes, name: str | None = None) -> Tensor:
    with name_scope(name, "kl_categorical_categorical", [a.logits, b.logits]):
        log_softmax = find("nn.log_softmax")
        return apply("Sum", a.probs * (log_softmax(a.logits) - log_softmax(b.logits)), _LAST)


class Multinomial(_VectorOfClasses):
    """How often each class comes in `total_count` draws."""

    def __init__(
        self,
        total_count: Any,
        logits: Any = None,
        probs: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Multinomial",
    ) -> None:
        given = locals()
        with name_scope(name) as scope:
            self._logits, self._probs = get_logits_and_probs(logits, probs, True, validate_args, scope)
            (total,) = tensors(self._logits.dtype.base_dtype, total_count=total_count)
            self._total = embed_check_nonnegative_integer_form(total) if validate_args else total
        self._start(self._probs.dtype.base_dtype, NOT_REPARAMETERIZED, given, scope)

    total_count = readonly("_total", "The number of draws.")

    def _batch_shape(self) -> TensorShape:
        return find("broadcast_static_shape")(super()._batch_shape(), self._total.shape)

    def _batch_shape_tensor(self) -> Tensor:
        return find("broadcast_dynamic_shape")(super()._batch_shape_tensor(), shape_of(self._total))

    def _logits_of_batch(self) -> Tensor:
        return self._logits * ones_like(self._total)[..., None]

    def _sample_n(self, count: Any, seed: int | None) -> Tensor:
        most = cast(apply("Max", self._total, find("range")(apply("Rank", self._total))), dtypes.int32)
        drawn = self._draw(to_tensor(count, np.int32) * most, seed)
        batch = self.batch_shape_tensor()
        split = apply("ConcatV2", [apply("Pack", [to_tensor(count, np.int32), most]), batch], 0)
        ones = find("one_hot")(apply("Reshape", drawn, split), self.event_size, dtype=self._dtype)
        counts = cast(self._total, dtypes.int32) + zeros_like(cast(self._logits[..., 0], dtypes.int32))
        used = find("sequence_mask")(counts, most, dtype=self._dtype)  # [*batch, most]
        order = apply(
            "ConcatV2", [apply("Rank", used)[None] - np.int32(1), find("range")(apply("Rank", used) - 1)], 0
        )
        used = apply("ExpandDims", apply("Transpose", used, order), -1)
        return apply("Sum", ones * used, np.array([1], np.int32))

    def _log_prob(self, counts: Tensor) -> Tensor:
        if self._validate_args:
            counts = checked_counts(counts, self._total, "counts must sum to `self.total_count`")
        core = apply("Sum", counts * find("nn.log_softmax")(self._logits), _LAST)
        return core + log_combinations(self._total, counts)

    def _mean(self) -> Tensor:
        return self._probs * self._total[..., None]

    def _variance(self) -> Tensor:
        return self._mean() * (number(1, self._probs) - self._probs)

    def _covariance(self) -> Tensor:
        p = self._probs * ones_like(self._total)[..., None]
        outer = apply("Neg", self._total[..., None, None] * p[..., None] * p[..., None, :])
        return find("matrix_set_diag")(outer, self._variance())


def checked_counts(counts: Tensor, total: Tensor, text: str) -> Tensor:
    """Counts, which must be whole numbers, not negative, and `total` together."""
    counts = embed_check_nonnegative_integer_form(counts)
    return after([find("assert_equal")(total, apply("Sum", counts, _LAST), message=text)], counts)


def log_combinations(total: Tensor, counts: Tensor) -> Tensor:
    """The logarithm of the number of ways in which `total` draws give these counts."""
    one = number(1, counts)
    return apply("Lgamma", total + one) - apply("Sum", apply("Lgamma", counts + one), _LAST)


class Poisson(Distribution):
    """How often something happens that happens `rate` times on average."""

    def __init__(
        self,
        rate: Any = None,
        log_rate: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Poisson",
    ) -> None:
        given = locals()
        if (rate is None) == (log_rate is None):
            raise ValueError("Must specify exactly one of `rate` and `log_rate`.")
        with name_scope(name) as scope:
            if rate is None:
                (self._log_rate,) = tensors(log_rate=log_rate)
                self._rate = apply("Exp", self._log_rate)
            else:
                (self._rate,) = tensors(rate=rate)
                self._log_rate = apply("Log", self._rate)
        self._start(self._rate.dtype.base_dtype, NOT_REPARAMETERIZED, given, scope)

    rate = readonly("_rate", "The mean.")
    log_rate = readonly("_log_rate", "The logarithm of the mean.")

    _each = ("_rate",)

    def _sample_n(self, count: Any, seed: int | None) -> Tensor:
        return find("random_poisson")(self._rate, apply("Reshape", count, [1]), self._dtype, seed=seed)

    def _log_prob(self, x: Tensor) -> Tensor:
        return x * self._log_rate - apply("Lgamma", x + number(1, x)) - self._rate

    def _cdf(self, x: Tensor) -> Tensor:
        return apply("Igammac", apply("Maximum", x + number(1, x), number(0, x)), self._rate)

    def _mean(self) -> Tensor:
        return apply("Identity", self._rate)

    _variance = _mean

    def _mode(self) -> Tensor:
        return apply("Floor", self._rate)
