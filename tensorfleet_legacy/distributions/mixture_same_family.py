"""Distributions made of others: mixtures of one family, batches in another shape, chains of dependent elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.constant import constant_value_as_shape
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.distributions.distribution import (
    FULLY_REPARAMETERIZED,
    NOT_REPARAMETERIZED,
    Distribution,
)


class MixtureSameFamily(Distribution):
    """One of several variables, which are the last axis of a batch, chosen by a `Categorical`."""

    def __init__(
        self,
        mixture_distribution: Any,
        components_distribution: Distribution,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MixtureSameFamily",
    ) -> None:
        given = locals()
        if not mixture_distribution.dtype.is_integer:
            raise ValueError(
                f"`mixture_distribution.dtype` ({mixture_distribution.dtype.name}) is not over integers"
            )
        rank, event = components_distribution.batch_shape.rank, components_distribution.event_shape.rank
        if event is None or rank == 0:
            raise ValueError("The last axis of the components' batch must be the components to choose from.")
        ours = components_distribution.batch_shape.as_list()[-1] if rank else None
        theirs = (
            mixture_distribution.logits.shape.as_list()[-1]
            if mixture_distribution.logits.shape.rank
            else None
        )
        if None not in (ours, theirs) and ours != theirs:
            raise ValueError(
                f"`mixture_distribution components` ({theirs}) does not equal "
                f"`components_distribution.batch_shape[-1]` ({ours})"
            )
        self._choice, self._inner, self._axes = mixture_distribution, components_distribution, event
        self._start(components_distribution.dtype, NOT_REPARAMETERIZED, given)

    mixture_distribution = readonly("_choice", "What chooses the component.")
    components_distribution = readonly("_inner", "What is chosen from.")

    def _batch_shape(self) -> TensorShape:
        shape = self._inner.batch_shape
        return shape if shape.rank is None else shape[:-1]

    def _batch_shape_tensor(self) -> Tensor:
        return self._inner.batch_shape_tensor()[:-1]

    def _event_shape(self) -> TensorShape:
        return self._inner.event_shape

    def _event_shape_tensor(self) -> Tensor:
        return self._inner.event_shape_tensor()

    def _over(self, weights: Tensor, values: Tensor, axes: int) -> Tensor:
        """The sum of the components' values, each with its weight; values have `axes` axes behind the components."""
        for _ in range(axes):
            weights = find("expand_dims")(weights, -1)
        return find("reduce_sum")(weights * values, -1 - axes)

    def _sample_n(self, count: Any, seed: int | None = None) -> Tensor:
        size = find("reshape")(count, [1])
        drawn = self._inner.sample(size, seed=seed)
        second = None if seed is None else (seed * 1_000_003 + 12345) % (2**31 - 1)
        shared = self._choice.batch_shape.rank == 0  # one choice of weights for all variables of the batch
        wanted = find("concat")([size, self.batch_shape_tensor()], 0) if shared else size
        chosen = self._choice.sample(wanted, seed=second)
        components = find("shape")(self._choice.logits)[-1]
        mask = find("one_hot")(chosen, components, dtype=self._dtype)
        return self._over(mask, drawn, self._axes)

    def _behind(self, x: Tensor) -> Tensor:
        return find("expand_dims")(x, -1 - self._axes)

    def _log_prob(self, x: Tensor) -> Tensor:
        each = self._inner.log_prob(self._behind(x))
        return find("reduce_logsumexp")(each + find("nn.log_softmax")(self._choice.logits), -1)

    def _cdf(self, x: Tensor) -> Tensor:
        each = self._inner.log_cdf(self._behind(x))
        return find("exp")(find("reduce_logsumexp")(each + find("nn.log_softmax")(self._choice.logits), -1))

    def _mean(self) -> Tensor:
        return self._over(self._choice.probs, self._inner.mean(), self._axes)

    def _variance(self) -> Tensor:
        apart = find("square")(self._inner.mean() - self._behind(self._mean()))
        return self._over(self._choice.probs, self._inner.variance() + apart, self._axes)

    def _covariance(self) -> Tensor:
        if self._axes != 1:
            raise ValueError("covariance is only for vectors.")
        apart = self._inner.mean() - self._behind(self._mean())
        outer = apart[..., None] * apart[..., None, :]
        return self._over(self._choice.probs, self._inner.covariance() + outer, 2)


class BatchReshape(Distribution):
    """Another distribution with its batch in another shape."""

    def __init__(
        self,
        distribution: Distribution,
        batch_shape: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str | None = None,
    ) -> None:
        given = locals()
        wanted = to_tensor(batch_shape, np.int32)
        count = find("reduce_prod")(distribution.batch_shape_tensor())
        known = find("get_static_value")(wanted)
        if known is not None and (known == -1).any():
            wanted = find("where")(
                find("equal")(wanted, -1), count // -find("reduce_prod")(wanted) + 0 * wanted, wanted
            )
        self._inner, self._wanted = distribution, wanted
        self._known = self._static(distribution, known, wanted)
        super().__init__(
            distribution.dtype,
            distribution.reparameterization_type,
            validate_args,
            allow_nan_stats,
            given,
            name=name or f"BatchReshape{distribution.name}",
        )

    @staticmethod
    def _static(distribution: Distribution, known: Any, wanted: Tensor) -> TensorShape:
        have = distribution.batch_shape
        if known is None:
            return constant_value_as_shape(wanted)
        shape = known.tolist()
        if have.is_fully_defined():
            total = int(np.prod(have.as_list()))
            shape = [total // -int(np.prod(shape)) if d == -1 else d for d in shape]
            if int(np.prod(shape)) != total:
                raise ValueError(
                    f"`batch_shape` size ({int(np.prod(shape))}) must match `distribution.batch_shape` "
                    f"size ({total})"
                )
        return TensorShape([None if d == -1 else d for d in shape])

    distribution = readonly("_inner", "The distribution in its own shape.")

    def _batch_shape(self) -> TensorShape:
        return self._known

    def _batch_shape_tensor(self) -> Tensor:
        return self._wanted

    def _event_shape(self) -> TensorShape:
        return self._inner.event_shape

    def _event_shape_tensor(self) -> Tensor:
        return self._inner.event_shape_tensor()

    def _sample_n(self, count: Any, seed: int | None = None) -> Tensor:
        size = find("reshape")(count, [1])
        drawn = self._inner.sample(size, seed=seed)
        return find("reshape")(drawn, find("concat")([size, self._wanted, self.event_shape_tensor()], 0))

    def _at(self, function: Callable, x: Tensor) -> Tensor:
        """A function of the distribution inside, whose result has its batch in the new shape."""
        axes = len(self._known.as_list()) + len(self._inner.event_shape.as_list())
        outer = find("shape")(x)[: find("rank")(x) - axes]
        inside = find("concat")([outer, self._inner.batch_shape_tensor(), self.event_shape_tensor()], 0)
        return find("reshape")(function(find("reshape")(x, inside)), find("concat")([outer, self._wanted], 0))

    def _log_prob(self, x: Tensor) -> Tensor:
        return self._at(self._inner.log_prob, x)

    def _cdf(self, x: Tensor) -> Tensor:
        return self._at(self._inner.cdf, x)

    def _log_cdf(self, x: Tensor) -> Tensor:
        return self._at(self._inner.log_cdf, x)

    def _whole(self, value: Tensor, events: int) -> Tensor:
        event = self.event_shape_tensor()
        return find("reshape")(value, find("concat")([self._wanted, *[event] * events], 0))

    def _entropy(self) -> Tensor:
        return self._whole(self._inner.entropy(), 0)

    def _mean(self) -> Tensor:
        return self._whole(self._inner.mean(), 1)

    def _mode(self) -> Tensor:
        return self._whole(self._inner.mode(), 1)

    def _stddev(self) -> Tensor:
        return self._whole(self._inner.stddev(), 1)

    def _variance(self) -> Tensor:
        return self._whole(self._inner.variance(), 1)

    def _covariance(self) -> Tensor:
        return self._whole(self._inner.covariance(), 2)


class Autoregressive(Distribution):
    """A vector each element of which depends on those before it: `distribution_fn(sample)` is a distribution."""

    def __init__(
        self,
        distribution_fn: Callable,
        sample0: Any = None,
        num_steps: int | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Autoregressive",
    ) -> None:
        given = locals()
        self._function, self._sample0 = distribution_fn, sample0
        self._distribution0 = distribution_fn() if sample0 is None else distribution_fn(sample0)
        self._num_steps = num_steps
        if num_steps is None:
            if not self._distribution0.event_shape.is_fully_defined():
                raise ValueError(
                    "distribution_fn must generate a distribution with fully known `event_shape`."
                )
            self._num_steps = int(np.prod(self._distribution0.event_shape.as_list()))
        if self._num_steps is not None and self._num_steps < 1:
            raise ValueError(f"num_steps ({self._num_steps}) must be at least 1.")
        self._start(self._distribution0.dtype, FULLY_REPARAMETERIZED, given)
        self._reparameterization_type = self._distribution0.reparameterization_type

    distribution_fn = readonly("_function", "What makes a distribution of a sample.")
    sample0 = readonly("_sample0", "The first sample, or None.")
    num_steps = readonly("_num_steps", "How often a sample is drawn from what the last one makes.")
    distribution0 = readonly("_distribution0", "The first distribution.")

    def _batch_shape(self) -> TensorShape:
        return self._distribution0.batch_shape

    def _batch_shape_tensor(self) -> Tensor:
        return self._distribution0.batch_shape_tensor()

    def _event_shape(self) -> TensorShape:
        return self._distribution0.event_shape

    def _event_shape_tensor(self) -> Tensor:
        return self._distribution0.event_shape_tensor()

    def _sample_n(self, count: Any, seed: int | None = None) -> Tensor:
        drawn = self._distribution0.sample(find("reshape")(count, [1]), seed=seed)
        for _ in range(self._num_steps or 0):
            drawn = self._function(drawn).sample(seed=seed)
        return drawn

    def _log_prob(self, x: Tensor) -> Tensor:
        return self._function(x).log_prob(x)
