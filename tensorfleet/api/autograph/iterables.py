"""Iterables of tensors besides tensors themselves: how converted code goes through them.

`tf.data` is built on AutoGraph, so AutoGraph cannot import it. `tf.data` registers its datasets here instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Sequenced:
    """A class of iterables, and what `enumerate` and `zip` do with them."""

    kind: type[Any]
    enumerated: Callable[[Any, int], Any]
    zipped: Callable[[Sequence[Any]], Any]


_REGISTERED: list[Sequenced] = []


def register(iterable: Sequenced) -> None:
    """Lets converted loops, `enumerate` and `zip` take a class of iterables."""
    _REGISTERED.append(iterable)


def registered_for(value: object) -> Sequenced | None:
    """The registered entry for the class of a value."""
    return next((r for r in _REGISTERED if isinstance(value, r.kind)), None)
