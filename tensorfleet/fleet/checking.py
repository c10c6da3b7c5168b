"""Checks of arguments, with errors that name the argument."""

from __future__ import annotations

import math
import operator


def whole_number(name: str, value: object, least: int) -> int:
    """A whole number of at least `least`; TypeError or ValueError for anything else."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]  # TypeError is expected
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise TypeError(f"{name} must be a whole number of {least} or more, not {value!r}.")
    if number < least:
        raise ValueError(f"{name} must be {least} or more, not {number}.")
    return number


def positive_number(name: str, value: object) -> float:
    """A finite number above 0; TypeError or ValueError for anything else."""
    try:
        number = None if isinstance(value, (str, bytes, bool)) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = None
    if number is None:
        raise TypeError(f"{name} must be a number above 0, not {value!r}.")
    if not (number > 0 and math.isfinite(number)):
        raise ValueError(f"{name} must be above 0 and finite, not {number}.")
    return number
