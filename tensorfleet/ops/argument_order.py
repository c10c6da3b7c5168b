"""Calls with the arguments of before TensorFlow 1.0, where later versions refuse them.

Version 1.0 changed the order of arguments of some functions, and the names of some. Where a call in the old order is an
error in 1.15, it can have one meaning only. It is taken, with one warning for each function.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from tensorfleet.base import dtypes, logging
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.operation import Tensor

F = TypeVar("F", bound=Callable[..., Any])
_warned: set[str] = set()


def takes_old_order(
    public: str, old: str, when: Callable[..., bool], renamed: dict[str, str] | None = None
) -> Callable[[F], F]:
    """Lets the decorated function be called with the arguments `old`, in their order before 1.0.

    `public` is its name after `tf.`. `when(*args)` says whether positional arguments can only be meant in the old order;
    `renamed` has today's names of arguments that had others. A name that is in `old` twice takes a list of two.
    """
    order, names = old.split(), renamed or {}

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            given = {names.get(name, name): value for name, value in kwargs.items()} if names else kwargs
            by_place = 0 < len(args) <= len(order) and not set(order[: len(args)]) & set(given)
            if by_place and when(*args):
                _warn(public, order)
                return function(**_named(order, args), **given)
            if not kwargs.keys().isdisjoint(names):
                _warn(public, order)
                return function(*args, **given)
            return function(*args, **kwargs)

        return call  # type: ignore[return-value]

    return decorate


def _named(
    order: list[str],
    args: tuple[TensorLike, ...],
) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, value in zip(order, args, strict=False):
        result[name] = [*result.get(name, ()), value] if order.count(name) > 1 else value
    return result


def _warn(public: str, order: list[str]) -> None:
    if public not in _warned:
        _warned.add(public)
        logging.get_logger().warning(
            "tf.%s is called with its arguments of before TensorFlow 1.0. Give them by name: %s.",
            public,
            ", ".join(f"{name}=..." for name in dict.fromkeys(order)),
            stacklevel=3,
        )


def loss_of(function: Callable[..., Tensor], labels: TensorLike, logits: TensorLike) -> Tensor:
    """What a loss function of the user's gives.

    It is called with `labels` and `logits` by name. Before 1.2 it was called by position, and had names of its own for
    them: labels first if it calls its first argument so, else logits first, as before 1.0.
    """
    try:
        taken = inspect.signature(function).parameters
    except ValueError:  # a function that is not Python's
        return function(labels=labels, logits=logits)
    by_name = {"labels", "logits"} <= taken.keys()
    if by_name or any(p.kind is inspect.Parameter.VAR_KEYWORD for p in taken.values()):
        return function(labels=labels, logits=logits)
    first = next(iter(taken), "")
    return function(labels, logits) if first.startswith(("label", "target")) else function(logits, labels)


def is_tensor_of(value: TensorLike, kind: str) -> bool:
    """Whether a value is a tensor, variable or array of fractions ("floating") or of whole numbers ("integer")."""
    dtype = getattr(value, "dtype", None)
    return dtype is not None and bool(getattr(dtypes.as_dtype(dtype).base_dtype, f"is_{kind}"))


def has_dimensions(value: Tensor) -> bool:
    """Whether a value is a tensor or array, and not a scalar as far as is known."""
    if not isinstance(value, Tensor):
        return getattr(value, "ndim", 0) > 0
    return value.shape.rank != 0
