"""Classes and coins as numbers between 0 and 1, through which gradients flow (the Gumbel-softmax trick)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape, broadcast_shape
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet_legacy.distributions.bijectors.affine_scalar import Exp, Sigmoid
from tensorfleet_legacy.distributions.distribution import (
    FULLY_REPARAMETERIZED,
    Distribution,
    checked,
    counted,
    tensors,
)
from tensorfleet_legacy.distributions.normal import Logistic, positive
from tensorfleet_legacy.distributions.transformed_distribution import TransformedDistribution
from tensorfleet_legacy.distributions.util_assertions import get_logits_and_probs


class ExpRelaxedOneHotCategorical(Distribution):
    """The logarithm of a `RelaxedOneHotCategorical`."""

    def __init__(
        self,
        temperature: Any,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "ExpRelaxedOneHotCategorical",
    ) -> None:
        given = locals()
        with name_scope(name) as scope:
            self._logits, self._probs = get_logits_and_probs(
                logits, probs, True, validate_args, scope, dtype=dtype
            )
            (heat,) = tensors(self._logits.dtype.base_dtype, temperature=temperature)
            self._temperature = checked(validate_args, positive(heat), heat)
        self._start(self._logits.dtype.base_dtype, FULLY_REPARAMETERIZED, given, scope)

    temperature = readonly("_temperature", "How far from one class alone.")
    logits = readonly("_logits", "The logarithms of the classes' weights.")
    probs = readonly("_probs", "The probabilities of the classes.")

    @property
    def event_size(self) -> Tensor:
        """How many classes there are."""
        return find("shape")(self._logits)[-1]

    def _batch_shape(self) -> TensorShape:
        if self._logits.shape.rank is None:
            return TensorShape(None)
        return broadcast_shape(self._logits.shape[:-1], self._temperature.shape)

    def _batch_shape_tensor(self) -> Tensor:
        return find("broadcast_dynamic_shape")(
            find("shape")(self._logits)[:-1], find("shape")(self._temperature)
        )

    def _event_shape(self) -> TensorShape:
        return TensorShape(None) if self._logits.shape.rank is None else self._logits.shape[-1:]

    def _event_shape_tensor(self) -> Tensor:
        return find("shape")(self._logits)[-1:]

    def _sample_n(self, count: Any, seed: int | None) -> Tensor:
        size = find("concat")([counted(count, self.batch_shape_tensor()), [self.event_size]], 0)
        tiny = float(np.finfo(self._dtype.as_numpy_dtype).tiny)
        uniform = find("random_uniform")(size, tiny, 1.0, dtype=self._dtype, seed=seed)
        gumbel = -find("log")(-find("log")(uniform))
        return find("nn.log_softmax")((gumbel + self._logits) / self._temperature[..., None])

    def _log_prob(self, x: Tensor) -> Tensor:
        size = find("cast")(self.event_size, self._dtype)
        constant = find("lgamma")(size) + (size - 1) * find("log")(self._temperature)
        weights = find("nn.log_softmax")(self._logits - x * self._temperature[..., None])
        return constant + find("reduce_sum")(weights, -1)


class RelaxedOneHotCategorical(TransformedDistribution):
    """A class as a vector of shares: near one class alone when the temperature is low."""

    def __init__(
        self,
        temperature: Any,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "RelaxedOneHotCategorical",
    ) -> None:
        given = locals()
        inner = ExpRelaxedOneHotCategorical(temperature, logits, probs, dtype, validate_args, allow_nan_stats)
        super().__init__(inner, Exp(validate_args), validate_args=validate_args, name=name)
        self._remember(given)

    temperature = readonly("_distribution.temperature", "How far from one class alone.")
    logits = readonly("_distribution.logits", "The logarithms of the classes' weights.")
    probs = readonly("_distribution.probs", "The probabilities of the classes.")
    event_size = readonly("_distribution.event_size", "How many classes there are.")


class RelaxedBernoulli(TransformedDistribution):
    """A coin as a number between 0 and 1: near one of them when the temperature is low."""

    def __init__(
        self,
        temperature: Any,
        logits: Any = None,
        probs: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "RelaxedBernoulli",
    ) -> None:
        given = locals()
        with name_scope(name) as scope:
            self._logits, self._probs = get_logits_and_probs(
                logits, probs, validate_args=validate_args, name=scope
            )
            (heat,) = tensors(self._logits.dtype.base_dtype, temperature=temperature)
            self._temperature = checked(validate_args, positive(heat), heat)
            inner = Logistic(
                self._logits / self._temperature,
                1.0 / self._temperature,
                validate_args=validate_args,
                allow_nan_stats=allow_nan_stats,
            )
        super().__init__(inner, Sigmoid(validate_args), validate_args=validate_args, name=scope)
        self._remember(given)

    temperature = readonly("_temperature", "How far from 0 and 1.")
    logits = readonly("_logits", "The logarithm of the odds of 1.")
    probs = readonly("_probs", "The probability of 1.")
