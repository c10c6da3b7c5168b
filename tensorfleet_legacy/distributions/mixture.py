"""Distributions of vectors, and distributions made of others."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base.arguments import with_defaults
from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.apply import apply
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.constructors import zeros_like
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet_legacy.distributions.categorical import Categorical
from tensorfleet_legacy.distributions.distribution import (
    FULLY_REPARAMETERIZED,
    NOT_REPARAMETERIZED,
    Distribution,
    counted,
    number,
    tensors,
)
from tensorfleet_legacy.distributions.kullback_leibler import RegisterKL, kl_divergence

_LAST = np.array([-1], np.int32)


class Independent(Distribution):
    """A batch of variables taken as one: the last axes of the batch become axes of the event."""

    def __init__(
        self,
        distribution: Any,
        reinterpreted_batch_ndims: int | None = None,
        validate_args: bool = False,
        name: str | None = None,
    ) -> None:
        given = locals()
        self._inner = distribution
        rank = distribution.batch_shape.rank
        count = reinterpreted_batch_ndims
        self._count = int(count if count is not None else max(0, (rank or 1) - 1))
        super().__init__(
            distribution.dtype,
            distribution.reparameterization_type,
            validate_args,
            distribution.allow_nan_stats,
            given,
            name=name or f"Independent{distribution.name}",
        )

    distribution = readonly("_inner", "The batch of variables.")

    def _batch_shape(self) -> TensorShape:
        shape = self._inner.batch_shape
        return shape if shape.rank is None or not self._count else shape[: -self._count]

    def _event_shape(self) -> TensorShape:
        shape = self._inner.batch_shape
        if shape.rank is None:
            return shape
        return shape[shape.rank - self._count :].concatenate(self._inner.event_shape)

    def _batch_shape_tensor(self) -> Tensor:
        whole = self._inner.batch_shape_tensor()
        return whole[: -self._count] if self._count else whole

    def _event_shape_tensor(self) -> Tensor:
        whole = self._inner.batch_shape_tensor()
        mine = whole[-self._count :] if self._count else whole[:0]
        return apply("ConcatV2", [mine, self._inner.event_shape_tensor()], 0)

    def _sample_n(self, count: Any, seed: int | None) -> Tensor:
        return self._inner.sample(apply("Reshape", count, [1]), seed=seed)

    def _summed(self, value: Tensor) -> Tensor:
        return apply("Sum", value, np.arange(-self._count, 0, dtype=np.int32))

    def _log_prob(self, x: Tensor) -> Tensor:
        return self._summed(self._inner.log_prob(x))

    def _entropy(self) -> Tensor:
        return self._summed(self._inner.entropy())

    def _mean(self) -> Tensor:
        return self._inner.mean()

    def _mode(self) -> Tensor:
        return self._inner.mode()

    def _variance(self) -> Tensor:
        return self._inner.variance()

    def _stddev(self) -> Tensor:
        return self._inner.stddev()


@RegisterKL(Independent, Independent)
def _kl_independent(a: Independent, b: Independent, name: str | None = None) -> Tensor:
    return a._summed(kl_divergence(a.distribution, b.distribution, name=name))


class Mixture(Distribution):
    """One of several distributions, chosen by a `Categorical`."""

    def __init__(
        self,
        cat: Categorical,
        components: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        use_static_graph: bool = False,
        name: str = "Mixture",
    ) -> None:
        given = locals()
        if not isinstance(cat, Categorical):
            raise TypeError(f"cat must be a Categorical distribution, but saw: {cat}")
        if not components:
            raise ValueError("components must be a non-empty list or tuple")
        self._cat, self._components = cat, list(components)
        self._start(self._components[0].dtype, NOT_REPARAMETERIZED, given)

    cat = readonly("_cat", "What chooses the component.")

    @property
    def components(self) -> list:
        """The distributions that are chosen from."""
        return list(self._components)

    @property
    def num_components(self) -> int:
        """How many there are."""
        return len(self._components)

    def _batch_shape(self) -> TensorShape:
        return self._cat.batch_shape

    def _event_shape(self) -> TensorShape:
        return self._components[0].event_shape

    def _batch_shape_tensor(self) -> Tensor:
        return self._cat.batch_shape_tensor()

    def _event_shape_tensor(self) -> Tensor:
        return self._components[0].event_shape_tensor()

    def _behind(self, value: Tensor) -> Tensor:
        """Values of the batch with axes for the event behind them."""
        for _ in range(self.event_shape.rank or 0):
            value = apply("ExpandDims", value, -1)
        return value

    def _sample_n(self, count: Any, seed: int | None) -> Tensor:
        size = apply("Reshape", count, [1])
        chosen = self._cat.sample(size, seed=seed)
        total: Any = 0
        for i, component in enumerate(self._components):
            inner = None if seed is None else (seed + 7919 * (i + 1)) % (2**31 - 1)
            mine = find("cast")(apply("Equal", chosen, number(i, chosen)), self._dtype)
            total = component.sample(size, seed=inner) * self._behind(mine) + total
        return total

    def _log_prob(self, x: Tensor) -> Tensor:
        weights = find("unstack")(find("nn.log_softmax")(self._cat.logits), num=self.num_components, axis=-1)
        each = [w + c.log_prob(x) for w, c in zip(weights, self._components, strict=True)]
        return find("reduce_logsumexp")(apply("Pack", each), [0])

    def _mean(self) -> Tensor:
        weights = find("unstack")(self._cat.probs, num=self.num_components, axis=-1)
        return apply(
            "AddN",
            [self._behind(w) * c.mean() for w, c in zip(weights, self._components, strict=True)],
        )

    def _stddev(self) -> Tensor:
        weights = find("unstack")(self._cat.probs, num=self.num_components, axis=-1)
        mean = self._mean()
        parts = [
            self._behind(w) * (c.variance() + apply("Square", c.mean() - mean))
            for w, c in zip(weights, self._components, strict=True)
        ]
        return apply("Sqrt", apply("AddN", parts))


class _Always(Distribution):
    """Always `loc`."""

    def __init__(
        self,
        loc: Any,
        atol: Any = None,
        rtol: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Deterministic",
    ) -> None:
        given = locals()
        (self._loc,) = tensors(loc=loc)
        kind = self._loc.dtype.base_dtype
        self._atol, self._rtol = (tensors(kind, t=0 if t is None else t)[0] for t in (atol, rtol))
        self._slack = self._atol + self._rtol * apply("Abs", self._loc)
        self._start(self._loc.dtype.base_dtype, FULLY_REPARAMETERIZED, given)

    loc = readonly("_loc", "The value.")

    atol = readonly("_atol", "How far a value may be away.")
    rtol = readonly("_rtol", "The same for each unit of `loc`.")

    _each = ("_loc",)

    def _sample_n(self, count: Any, seed: int | None) -> Tensor:
        return find("broadcast_to")(self._loc, counted(count, shape_of(self._loc)))

    def _mean(self) -> Tensor:
        return apply("Identity", self._loc)

    _mode = _mean

    def _variance(self) -> Tensor:
        return zeros_like(self._loc)


class Deterministic(_Always):
    """Always the number `loc`."""

    __init__ = with_defaults(_Always.__init__, name="Deterministic")

    def _prob(self, x: Tensor) -> Tensor:
        return find("cast")(apply("Abs", x - self._loc) <= self._slack, self._dtype)

    def _cdf(self, x: Tensor) -> Tensor:
        return find("cast")(x >= self._loc - self._slack, self._dtype)

    def _entropy(self) -> Tensor:
        return zeros_like(self._loc)


class VectorDeterministic(_Always):
    """Always the vector `loc`."""

    __init__ = with_defaults(_Always.__init__, name="VectorDeterministic")

    def _batch_shape(self) -> TensorShape:
        return TensorShape(None) if self._loc.shape.rank is None else self._loc.shape[:-1]

    def _batch_shape_tensor(self) -> Tensor:
        return shape_of(self._loc)[:-1]

    def _event_shape(self) -> TensorShape:
        return TensorShape(None) if self._loc.shape.rank is None else self._loc.shape[-1:]

    def _event_shape_tensor(self) -> Tensor:
        return shape_of(self._loc)[-1:]

    def _prob(self, x: Tensor) -> Tensor:
        near = apply("All", apply("Abs", x - self._loc) <= self._slack, _LAST)
        return find("cast")(near, self._dtype)

    def _entropy(self) -> Tensor:
        return zeros_like(self._loc[..., 0])


@RegisterKL(_Always, Distribution)
def _kl_deterministic(a: _Always, b: Distribution, name: str | None = None) -> Tensor:
    with name_scope(name, "kl_deterministic_distribution", [a.loc]):
        return apply("Neg", b.log_prob(a.loc))
