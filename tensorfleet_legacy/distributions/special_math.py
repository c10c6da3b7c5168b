"""The normal distribution in its middle and its tails."""

from __future__ import annotations

import math
from typing import Any

from tensorfleet.base import dtypes
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.ops.array.constructors import ones_like, zeros_like
from tensorfleet_legacy.distributions.distribution import number

# Below this the logarithm is a series.
_LIMITS = {dtypes.float64: -20.0, dtypes.float32: -10.0}


def checked(x: Any, name: str = "x") -> Tensor:
    """Numbers of a type that is exact enough; TypeError for others."""
    tensor = to_tensor(x, name=name)
    if tensor.dtype.base_dtype not in _LIMITS:
        raise TypeError(
            f"{name}.dtype={tensor.dtype.name} is not handled, see docstring for supported types."
        )
    return tensor


def ndtr(z: Tensor) -> Tensor:
    """The probability that a standard normal is at most z, exact in both tails."""
    half = number(math.sqrt(0.5), z)
    w = z * half
    near = number(1, z) + apply("Erf", w)
    far = apply("Erfc", apply("Abs", w))
    outside = apply("Select", apply("Greater", w, zeros_like(w)), number(2, z) - far, far)
    return number(0.5, z) * apply(
        "Select", apply("Less", apply("Abs", w), half * ones_like(w)), near, outside
    )


def ndtri(p: Tensor) -> Tensor:
    """Where a standard normal is at most that with probability p: a good guess, made exact by Newton steps."""
    half, zero, one = number(0.5, p), zeros_like(p), ones_like(p)
    # At the ends the value is infinite and the gradient none: neither may come of the guess.
    at_end = apply("LogicalOr", apply("Equal", p, zero), apply("Equal", p, one))
    inside = apply("Select", at_end, half * one, p)
    low = apply("Minimum", inside, number(1, p) - inside)
    t = apply("Sqrt", number(-2, p) * apply("Log", low))
    top = number(2.515517, p) + t * (number(0.802853, p) + t * number(0.010328, p))
    bottom = number(1, p) + t * (number(1.432788, p) + t * (number(0.189269, p) + t * number(0.001308, p)))
    z = apply("Neg", t - top / bottom)
    for _ in range(3):
        density = apply("Exp", number(-0.5, z) * z * z) * number(1 / math.sqrt(2 * math.pi), z)
        z = z - _beyond(z, low) / density
    z = apply("Select", apply("Less", p, half * one), z, apply("Neg", z))
    return apply("Select", at_end, apply("Sign", p - half) * number(math.inf, p), z)


def _beyond(z: Tensor, low: Tensor) -> Tensor:
    """How much more than `low` lies below z: from the middle there, from the far end in the tail."""
    half = number(0.5, z)
    middle = half * apply("Erf", z * number(math.sqrt(0.5), z)) - (low - half)
    in_tail = apply("Less", low, number(0.2, z) * ones_like(low))
    return apply("Select", in_tail, ndtr(z) - low, middle)


def erfinv(x: Tensor) -> Tensor:
    """Where the error function is x."""
    return ndtri((x + number(1, x)) / number(2, x)) / number(math.sqrt(2), x)


def log_ndtr(z: Tensor) -> Tensor:
    """The logarithm of `ndtr`, finite however far in the left tail."""
    low, zero = number(_LIMITS.get(z.dtype.base_dtype, -10.0), z), zeros_like(z)
    inner = apply("Log", ndtr(apply("Maximum", z, low)))
    far = _log_far_left(apply("Minimum", z, low))
    left = apply("Select", apply("Greater", z, low * ones_like(z)), inner, far)
    # To the right it is what is missing to one that counts.
    right = apply("Log1p", apply("Neg", ndtr(apply("Neg", apply("Maximum", z, zero)))))
    return apply("Select", apply("Greater", z, zero), right, left)


def _log_far_left(z: Tensor) -> Tensor:
    square = apply("Square", z)
    one, inverse = number(1, z), apply("Reciprocal", square)
    series = one - inverse * (one - inverse * (number(3, z) - inverse * number(15, z)))
    scale = number(-0.5 * math.log(2 * math.pi), z) - apply("Log", apply("Neg", z))
    return number(-0.5, z) * square + scale + apply("Log", series)


def log_cdf_laplace(x: Tensor) -> Tensor:
    """The logarithm of the share of a standard Laplace distribution below x, exact in both tails."""
    left = number(-math.log(2.0), x) + x
    right = apply("Log1p", number(-0.5, x) * apply("Exp", apply("Neg", apply("Abs", x))))
    return apply("Select", apply("Less", x, zeros_like(x)), left, right)
