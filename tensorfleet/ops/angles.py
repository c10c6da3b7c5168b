"""Inverse trigonometric functions of float32 for XLA, whose own are ten times slower.

The polynomials are fitted at Chebyshev's points to the odd part of the function; the largest relative error is that
of the last bit or two of a float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_F = np.float32
_PI, _HALF_PI = _F(np.pi), _F(np.pi / 2)
# (asin(x) - x) / x**3 by x**2, to 1/4; (atan(x) - x) / x**3 by x**2, to 1. The highest power first.
_ASIN = (0.03380585287, 0.01707778749, 0.03111617441, 0.04459803026, 0.07500098771, 0.1666666632)
_ATAN = (
    0.001526713172, -0.0093172368, 0.02663191098, -0.04929491871, 0.07051889574,
    -0.08938853406, 0.1108965463, -0.1428414274, 0.1999995469, -0.3333333312,
)  # fmt: skip


def _odd(x: Any, square: Any, coefficients: tuple[float, ...]) -> Any:
    made = _F(coefficients[0])
    for c in coefficients[1:]:
        made = made * square + _F(c)
    return x + x * square * made


def arcsin(xp: Any, x: Any) -> Any:
    """The angle whose sine is `x`."""
    far = xp.abs(x) > _F(0.5)
    square = xp.where(far, (1 - xp.abs(x)) * _F(0.5), x * x)
    root = xp.where(far, xp.sqrt(square), xp.abs(x))
    near = _odd(root, square, _ASIN)
    return xp.copysign(xp.where(far, _HALF_PI - 2 * near, near), x)


def arccos(xp: Any, x: Any) -> Any:
    """The angle whose cosine is `x`."""
    far = xp.abs(x) > _F(0.5)
    square = xp.where(far, (1 - xp.abs(x)) * _F(0.5), x * x)
    root = xp.where(far, xp.sqrt(square), x)
    near = _odd(root, square, _ASIN)
    return xp.where(far, xp.where(x < 0, _PI - 2 * near, 2 * near), _HALF_PI - near)


def arctan2(xp: Any, y: Any, x: Any) -> Any:
    """The angle of the point (x, y)."""
    across, up = xp.abs(x), xp.abs(y)
    larger, smaller = xp.maximum(across, up), xp.minimum(across, up)
    ratio = xp.where(larger == 0, _F(0), smaller / larger)
    ratio = xp.where(smaller == np.inf, _F(1), ratio)
    made = _odd(ratio, ratio * ratio, _ATAN)
    made = xp.where(up > across, _HALF_PI - made, made)
    return xp.copysign(xp.where(xp.signbit(x), _PI - made, made), y)
