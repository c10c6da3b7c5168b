"""Divergences between pairs of distributions, registered by their classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.base.naming import find
from tensorfleet.graph.apply import apply
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope

_DIVERGENCES: dict[tuple[type, type], Callable] = {}


def _registered_kl(a: type, b: type) -> Callable | None:
    for first in a.__mro__:
        for second in b.__mro__:
            if (first, second) in _DIVERGENCES:
                return _DIVERGENCES[first, second]
    return None


def kl_divergence(
    distribution_a: Any, distribution_b: Any, allow_nan_stats: bool = True, name: str | None = None
) -> Tensor:
    """How much information is lost when `distribution_b` stands for `distribution_a`, in nats."""
    result = _registered_kl(type(distribution_a), type(distribution_b))
    if result is None:
        raise NotImplementedError(
            f"No KL(distribution_a || distribution_b) registered for distribution_a type "
            f"{type(distribution_a).__name__} and distribution_b type {type(distribution_b).__name__}"
        )
    with name_scope("KullbackLeibler"):
        value = result(distribution_a, distribution_b, name=name)
        if allow_nan_stats:
            return value
        text = (
            f"KL calculation between {distribution_a.name} and {distribution_b.name} returned NaN values (and was "
            "called with allow_nan_stats=False). Values:"
        )
        known = find("reduce_all")(apply("LogicalNot", apply("IsNan", value)))
        with find("control_dependencies")([find("Assert")(known, [text, value])]):
            return apply("Identity", value, name="checked_kl")


def cross_entropy(ref: Any, other: Any, allow_nan_stats: bool = True, name: str | None = None) -> Tensor:
    """The mean of `-other.log_prob` under `ref`."""
    with name_scope(name, "cross_entropy"):
        return ref.entropy() + kl_divergence(ref, other, allow_nan_stats=allow_nan_stats)


class RegisterKL:
    """Decorator: makes a function the divergence between distributions of two classes."""

    def __init__(self, dist_cls_a: type, dist_cls_b: type) -> None:
        self._key = (dist_cls_a, dist_cls_b)

    def __call__(self, kl_fn: Callable) -> Callable:
        if not callable(kl_fn):
            raise TypeError(f"kl_fn must be callable, received: {kl_fn}")
        if self._key in _DIVERGENCES:
            a, b = self._key
            raise ValueError(
                f"KL({a.__name__} || {b.__name__}) has already been registered to: {_DIVERGENCES[self._key]}"
            )
        _DIVERGENCES[self._key] = kl_fn
        return kl_fn
