"""Argument lists as data, as `tensorfleet.base.arguments` has them, for functions that are called often."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Signature
from typing import Any

from tensorfleet.base.arguments import REQUIRED, bound


def binder(signature: Signature, name: str) -> Callable[[tuple, dict[str, Any]], dict[str, Any]]:
    """A function of `(args, kwargs)` that gives the value of every argument of a call, in their order."""
    names = tuple(signature.parameters)
    defaults = {p.name: p.default for p in signature.parameters.values()}

    def bind(args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
        given = {**defaults, **dict(zip(names, args, strict=False)), **kwargs}
        is_right = len(args) <= len(names) == len(given)
        is_right = is_right and not (kwargs and any(key in kwargs for key in names[: len(args)]))
        if not is_right or any(value is REQUIRED for value in given.values()):
            return bound(signature, name, args, kwargs)  # it says what is wrong
        return given

    return bind
