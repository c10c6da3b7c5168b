"""A learning rate that follows how many workers make an update together: linear scaling, with a warm-up.

An update from the gradients of n workers has n times the examples, so its step may be n times as long (Goyal et al.,
2017, arXiv:1706.02677). At the beginning of a training that is too long, hence the warm-up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.api.train.optimizer import Optimizer
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.ops.math.cast import cast

if TYPE_CHECKING:
    from tensorfleet.base.types import TensorLike

# What optimizers call the learning rate that they were made with.
_NAMES = ("_lr", "_learning_rate")


@dataclass(frozen=True)
class RateScaling:
    """By what a learning rate is multiplied that was chosen for `workers` workers."""

    workers: int
    #: over how many steps it rises to that
    warm_up_steps: int = 0

    def factor(self, gradients: Tensor, step: Tensor | None) -> Tensor:
        """The factor for an update from so many gradients."""
        whole: Tensor = cast(gradients, np.float32) / np.float32(self.workers)
        if not self.warm_up_steps or step is None:
            return whole
        part: Tensor = apply(
            "Minimum", cast(step, np.float32) / np.float32(self.warm_up_steps), np.float32(1)
        )
        rising: Tensor = 1.0 + (whole - 1.0) * part
        return rising


def multiply_rate(opt: Optimizer, factor: float) -> None:
    """Multiplies the learning rate that an optimizer was made with: a number, a tensor or a function."""
    name = rate_of(opt)
    setattr(opt, name, _times(getattr(opt, name), factor))


@contextmanager
def multiplied_rate(opt: Optimizer, factor: Tensor) -> Iterator[None]:
    """Multiplies the learning rate of the operations that the optimizer makes inside."""
    name = rate_of(opt)
    given = getattr(opt, name)
    rate = to_tensor(given() if callable(given) else given, np.float32 if _is_number(given) else None)
    setattr(opt, name, rate * cast(factor, rate.dtype.base_dtype))
    try:
        yield
    finally:
        setattr(opt, name, given)


def rate_of(opt: Optimizer) -> str:
    """The attribute of an optimizer that has its learning rate. ValueError if it has none."""
    for name in _NAMES:
        if getattr(opt, name, None) is not None:
            return name
    raise ValueError(f"{type(opt).__name__} has no learning rate that could be changed.")


def _times(given: Callable[[], Any] | TensorLike, factor: float) -> Any:
    if callable(given):
        return lambda: given() * factor
    product: Any = given
    return product * factor


def _is_number(given: object) -> bool:
    return isinstance(given, (int, float))
