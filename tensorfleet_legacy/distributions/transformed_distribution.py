"""Distributions seen through a bijector, and those whose methods take further arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.constant import constant_value_as_shape
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.distributions.bijector_impl import Bijector, Identity
from tensorfleet_legacy.distributions.distribution import NOT_REPARAMETERIZED, Distribution
from tensorfleet_legacy.distributions.util import rotate_transpose


class ConditionalDistribution(Distribution):
    """A distribution whose methods take further keyword arguments."""

    def sample(
        self, sample_shape: Any = (), seed: int | None = None, name: str = "sample", **condition_kwargs: Any
    ) -> Tensor:
        """Samples of shape `sample_shape + batch_shape + event_shape`."""
        return self._call_sample_n(sample_shape, seed, name, **condition_kwargs)

    def log_prob(self, value: Any, name: str = "log_prob", **condition_kwargs: Any) -> Tensor:
        """The logarithm of the density (or probability) at `value`."""
        return self._ask("log_prob", value, name, **condition_kwargs)

    def prob(self, value: Any, name: str = "prob", **condition_kwargs: Any) -> Tensor:
        """The density (or probability) at `value`."""
        return self._ask("prob", value, name, **condition_kwargs)

    def log_cdf(self, value: Any, name: str = "log_cdf", **condition_kwargs: Any) -> Tensor:
        """The logarithm of the probability of at most `value`."""
        return self._ask("log_cdf", value, name, **condition_kwargs)

    def cdf(self, value: Any, name: str = "cdf", **condition_kwargs: Any) -> Tensor:
        """The probability of at most `value`."""
        return self._ask("cdf", value, name, **condition_kwargs)

    def log_survival_function(
        self, value: Any, name: str = "log_survival_function", **condition_kwargs: Any
    ) -> Tensor:
        """The logarithm of the probability of more than `value`."""
        return self._log_above(value, name, **condition_kwargs)

    def survival_function(
        self, value: Any, name: str = "survival_function", **condition_kwargs: Any
    ) -> Tensor:
        """The probability of more than `value`."""
        return self._above(value, name, **condition_kwargs)


class _Override:
    """A shape that replaces the `[]` of the distribution inside; without axes, none does."""

    def __init__(self, shape: Any, base_is_scalar: bool | None, what: str) -> None:
        self.tensor = to_tensor([] if shape is None else shape, np.int32)
        if self.tensor.shape.rank != 1:
            raise ValueError("shape override must be a vector")
        known = find("get_static_value")(self.tensor)
        if known is not None and (known < 0).any():
            raise ValueError("shape override must have non-negative elements")
        self.static = constant_value_as_shape(self.tensor)
        rank = self.static.rank
        if rank is None:
            raise ValueError(f"The number of axes of {what} must be known while the graph is built.")
        if rank and base_is_scalar is False:
            raise ValueError(f"base distribution is not scalar, so its {what} cannot be overridden.")
        self.axes = rank

    def __bool__(self) -> bool:
        return self.axes > 0


class TransformedDistribution(Distribution):
    """The distribution of a bijector's results for samples of another distribution."""

    def __init__(
        self,
        distribution: Distribution,
        bijector: Bijector | None = None,
        batch_shape: Any = None,
        event_shape: Any = None,
        validate_args: bool = False,
        name: str | None = None,
    ) -> None:
        given = locals()
        self._distribution, self._bijector = distribution, bijector or Identity(validate_args)
        ranks = distribution.batch_shape.rank, distribution.event_shape.rank
        scalar_batch, scalar_event = (None if rank is None else not rank for rank in ranks)
        self._own_batch = _Override(batch_shape, scalar_batch, "batch_shape")
        self._own_event = _Override(event_shape, scalar_event, "event_shape")
        # Samples of many numbers for each variable of a batch come with the numbers first.
        self._rotates = bool(self._own_event and not self._own_batch and not scalar_batch)
        super().__init__(
            distribution.dtype,
            distribution.reparameterization_type,
            validate_args,
            distribution.allow_nan_stats,
            given,
            name=name or self._bijector.name + distribution.name,
        )

    distribution = readonly("_distribution", "The distribution inside.")
    bijector = readonly("_bijector", "What its samples go through.")

    # -- shapes --------------------------------------------------------------------------------------

    def _event_before(self) -> TensorShape:
        return self._own_event.static if self._own_event else self._distribution.event_shape

    def _event_shape(self) -> TensorShape:
        return self._bijector.forward_event_shape(self._event_before())

    def _event_shape_tensor(self) -> Tensor:
        before = self._own_event.tensor if self._own_event else self._distribution.event_shape_tensor()
        return self._bijector.forward_event_shape_tensor(before)

    def _batch_shape(self) -> TensorShape:
        return self._own_batch.static if self._own_batch else self._distribution.batch_shape

    def _batch_shape_tensor(self) -> Any:
        return self._own_batch.tensor if self._own_batch else self._distribution.batch_shape_tensor()

    def _axes(self) -> int:
        """How many axes an event has."""
        rank = self.event_shape.rank
        if rank is None:
            raise ValueError("The rank of an event must be known while the graph is built.")
        return rank

    # -- values --------------------------------------------------------------------------------------

    def _sample_n(
        self,
        count: Any,
        seed: int | None = None,
        bijector_kwargs: Any = None,
        distribution_kwargs: Any = None,
    ) -> Tensor:
        count = find("reshape")(count, [1])
        event, batch = self._own_event.tensor, self._own_batch.tensor
        shape = find("concat")([event, count] if self._rotates else [count, batch, event], 0)
        x = self._distribution.sample(shape, seed=seed, **(distribution_kwargs or {}))
        if self._rotates:
            x = rotate_transpose(x, -self._own_event.axes)
        return self._bijector.forward(x, **(bijector_kwargs or {}))

    def _log_prob(self, y: Tensor, bijector_kwargs: Any = None, distribution_kwargs: Any = None) -> Tensor:
        bijecting, inner = bijector_kwargs or {}, distribution_kwargs or {}
        x = self._bijector.inverse(y, **bijecting)
        stretch = self._bijector.inverse_log_det_jacobian(y, self._axes(), **bijecting)
        if self._bijector._is_injective:
            return self._one_log_prob(x, stretch, inner)
        each = [self._one_log_prob(a, b, inner) for a, b in zip(x, stretch, strict=True)]
        return find("reduce_logsumexp")(find("stack")(each), 0)

    def _one_log_prob(self, x: Tensor, stretch: Tensor, inner: dict) -> Tensor:
        axes = self._own_event.axes
        if self._rotates:
            x = rotate_transpose(x, axes)
        result = self._distribution.log_prob(x, **inner)
        if axes:
            result = find("reduce_sum")(result, list(range(axes) if self._rotates else range(-axes, 0)))
        return result + find("cast")(stretch, result.dtype.base_dtype)

    def _through_inverse(
        self, what: str, y: Tensor, bijector_kwargs: Any, distribution_kwargs: Any
    ) -> Tensor:
        if self._own_event:
            raise NotImplementedError(f"{what} is not implemented when overriding event_shape")
        if not self._bijector._is_injective:
            raise NotImplementedError(f"{what} is not implemented when bijector is not injective.")
        x = self._bijector.inverse(y, **(bijector_kwargs or {}))
        return getattr(self._distribution, what)(x, **(distribution_kwargs or {}))

    def _cdf(self, y: Tensor, bijector_kwargs: Any = None, distribution_kwargs: Any = None) -> Tensor:
        return self._through_inverse("cdf", y, bijector_kwargs, distribution_kwargs)

    def _log_cdf(self, y: Tensor, bijector_kwargs: Any = None, distribution_kwargs: Any = None) -> Tensor:
        return self._through_inverse("log_cdf", y, bijector_kwargs, distribution_kwargs)

    def _survival_function(
        self, y: Tensor, bijector_kwargs: Any = None, distribution_kwargs: Any = None
    ) -> Tensor:
        return self._through_inverse("survival_function", y, bijector_kwargs, distribution_kwargs)

    def _log_survival_function(
        self, y: Tensor, bijector_kwargs: Any = None, distribution_kwargs: Any = None
    ) -> Tensor:
        return self._through_inverse("log_survival_function", y, bijector_kwargs, distribution_kwargs)

    def _quantile(self, value: Tensor) -> Tensor:
        if self._own_event:
            raise NotImplementedError("quantile is not implemented when overriding event_shape")
        if not self._bijector._is_injective:
            raise NotImplementedError("quantile is not implemented when bijector is not injective.")
        return self._bijector.forward(self._distribution.quantile(value))

    def _mean(self) -> Tensor:
        if not (self._bijector.is_constant_jacobian and self._bijector._is_injective):
            raise NotImplementedError("mean is not implemented for non-affine bijectors")
        x = self._distribution.mean()
        if self._own_batch or self._own_event:
            shape = find("shape")(x)
            if self._own_event and not self._own_batch:
                for _ in range(self._own_event.axes):
                    x = find("expand_dims")(x, -1)
                shape = find("concat")([shape, self._own_event.tensor], 0)
            else:
                shape = find("concat")([self._own_batch.tensor, self._own_event.tensor, shape], 0)
            x = find("broadcast_to")(x, shape)
        result = self._bijector.forward(x)
        result.set_shape(self.batch_shape.concatenate(self.event_shape))
        return result

    def _entropy(self) -> Tensor:
        if not self._bijector.is_constant_jacobian:
            raise NotImplementedError("entropy is not implemented")
        if not self._bijector._is_injective:
            raise NotImplementedError("entropy is not implemented when bijector is not injective.")
        entropy = self._distribution.entropy()
        if self._own_event:
            entropy = entropy * find("cast")(find("reduce_prod")(self._own_event.tensor), self._dtype)
        if self._own_batch:
            entropy = find("broadcast_to")(entropy, self._own_batch.tensor)
        some = find("zeros")(
            find("concat")([find("ones_like")(self.batch_shape_tensor()), self.event_shape_tensor()], 0),
            self._dtype,
        )
        stretch = self._bijector.inverse_log_det_jacobian(some, self._axes())
        entropy = entropy - find("cast")(stretch, entropy.dtype.base_dtype)
        entropy.set_shape(self.batch_shape)
        return entropy


class ConditionalTransformedDistribution(ConditionalDistribution, TransformedDistribution):
    """A transformed distribution whose methods take `bijector_kwargs` and `distribution_kwargs`."""


class QuantizedDistribution(Distribution):
    """Another distribution rounded up to whole numbers, and kept between `low` and `high`."""

    def __init__(
        self,
        distribution: Distribution,
        low: Any = None,
        high: Any = None,
        validate_args: bool = False,
        name: str = "QuantizedDistribution",
    ) -> None:
        given = locals()
        self._inner = distribution
        self._low, self._high = (
            None if limit is None else to_tensor(limit, distribution.dtype) for limit in (low, high)
        )
        super().__init__(
            distribution.dtype,
            NOT_REPARAMETERIZED,
            validate_args,
            distribution.allow_nan_stats,
            given,
            name=name,
        )

    distribution = readonly("_inner", "The distribution that is rounded.")
    low = readonly("_low", "The least value, or None.")
    high = readonly("_high", "The greatest value, or None.")

    def _batch_shape(self) -> TensorShape:
        return self._inner.batch_shape

    def _batch_shape_tensor(self) -> Tensor:
        return self._inner.batch_shape_tensor()

    def _event_shape(self) -> TensorShape:
        return self._inner.event_shape

    def _event_shape_tensor(self) -> Tensor:
        return self._inner.event_shape_tensor()

    def _sample_n(self, count: Any, seed: int | None = None) -> Tensor:
        result = find("ceil")(self._inner.sample(find("reshape")(count, [1]), seed=seed))
        result = result if self._low is None else find("maximum")(result, self._low)
        return result if self._high is None else find("minimum")(result, self._high)

    def _at_most(self, y: Tensor, function: Any, none: float, all_: float) -> Tensor:
        """A function of the distribution inside at the whole number below, and its values outside the limits."""
        y = find("floor")(y)
        result, where = function(y), find("where")
        if self._low is not None:
            result = where(
                y < self._low, find("fill")(find("shape")(result), to_tensor(none, self._dtype)), result
            )
        if self._high is not None:
            result = where(
                y >= self._high, find("fill")(find("shape")(result), to_tensor(all_, self._dtype)), result
            )
        return result

    def _cdf(self, y: Tensor) -> Tensor:
        return self._at_most(y, self._inner.cdf, 0.0, 1.0)

    def _log_cdf(self, y: Tensor) -> Tensor:
        return self._at_most(y, self._inner.log_cdf, -np.inf, 0.0)

    def _survival_function(self, y: Tensor) -> Tensor:
        return self._at_most(y, self._inner.survival_function, 1.0, 0.0)

    def _log_survival_function(self, y: Tensor) -> Tensor:
        return self._at_most(y, self._inner.log_survival_function, 0.0, -np.inf)

    def _prob(self, y: Tensor) -> Tensor:
        return self._cdf(y) - self._cdf(y - 1.0)

    def _log_prob(self, y: Tensor) -> Tensor:
        # Far to the right both probabilities are near one, and those of more are better known.
        right, left = self._log_cdf(y), self._log_cdf(y - 1.0)
        above, above_left = self._log_survival_function(y), self._log_survival_function(y - 1.0)
        by_tail = above < right
        more = find("where")(by_tail, above_left, right)
        less = find("where")(by_tail, above, left)
        return more + find("log1p")(-find("exp")(less - more))
