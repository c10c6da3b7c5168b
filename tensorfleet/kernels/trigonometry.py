"""Trigonometric functions of float32 and their inverses for XLA, whose own are five to ten times slower.

The polynomials are fitted at Chebyshev's points to the odd part of the function; the largest relative error is that
of the last bit or two of a float32.
"""

from __future__ import annotations

import numpy as np

from tensorfleet.base.types import Array, ArrayModule

_F = np.float32
_PI, _HALF_PI = _F(np.pi), _F(np.pi / 2)
# (asin(x) - x) / x**3 by x**2, to 1/4; (atan(x) - x) / x**3 by x**2, to 1. The highest power first.
_ASIN = (0.03380585287, 0.01707778749, 0.03111617441, 0.04459803026, 0.07500098771, 0.1666666632)
_ATAN = (
    0.001526713172, -0.0093172368, 0.02663191098, -0.04929491871, 0.07051889574,
    -0.08938853406, 0.1108965463, -0.1428414274, 0.1999995469, -0.3333333312,
)  # fmt: skip
# (sin(x) - x) / x**3 and (cos(x) - 1 + x**2 / 2) / x**4 by x**2, to (pi/4)**2.
_SIN = (-0.0001957778526, 0.008332700659, -0.1666666441)
_COS = (2.453780404e-05, -0.001388825526, 0.04166666441)
# Half pi in three parts: what is left of the first two has enough zeros at its end that a small multiple is exact.
_QUARTERS = (1.5703125, 0.000483751296997, 7.54978995489e-08)
_MAX_REDUCED_ANGLE = 1000.0  # where the multiple is small


def _polynomial(x: Array, coefficients: tuple[float, ...]) -> Array:
    """The polynomial with these coefficients, that of the highest power first."""
    value = x * _F(coefficients[0]) + _F(coefficients[1])
    for c in coefficients[2:]:
        value = value * x + _F(c)
    return value


def _odd(x: Array, square: Array, coefficients: tuple[float, ...]) -> Array:
    beyond: Array = x * square * _polynomial(square, coefficients)
    return x + beyond


def arcsin(xp: ArrayModule, x: Array) -> Array:
    """The angle whose sine is `x`."""
    far = xp.abs(x) > _F(0.5)
    square = xp.where(far, (1 - xp.abs(x)) * _F(0.5), x * x)
    root = xp.where(far, xp.sqrt(square), xp.abs(x))
    near = _odd(root, square, _ASIN)
    return xp.copysign(xp.where(far, _HALF_PI - 2 * near, near), x)


def arccos(xp: ArrayModule, x: Array) -> Array:
    """The angle whose cosine is `x`."""
    far = xp.abs(x) > _F(0.5)
    square = xp.where(far, (1 - xp.abs(x)) * _F(0.5), x * x)
    root = xp.where(far, xp.sqrt(square), x)
    near = _odd(root, square, _ASIN)
    return xp.where(far, xp.where(x < 0, _PI - 2 * near, 2 * near), _HALF_PI - near)


def arctan2(xp: ArrayModule, y: Array, x: Array) -> Array:
    """The angle of the point (x, y)."""
    across, up = xp.abs(x), xp.abs(y)
    larger, smaller = xp.maximum(across, up), xp.minimum(across, up)
    ratio = xp.where(larger == 0, _F(0), smaller / larger)
    ratio = xp.where(smaller == np.inf, _F(1), ratio)
    angle = _odd(ratio, ratio * ratio, _ATAN)
    angle = xp.where(up > across, _HALF_PI - angle, angle)
    return xp.copysign(xp.where(xp.signbit(x), _PI - angle, angle), y)


def sin(xp: ArrayModule, x: Array) -> Array:
    """The sine."""
    return xp.where(x == 0, x, _wave(xp, x, 0))


def cos(xp: ArrayModule, x: Array) -> Array:
    """The cosine."""
    return _wave(xp, x, 1)


def _wave(xp: ArrayModule, x: Array, shift: int) -> Array:
    from tensorfleet.kernels.xla import lax

    near = xp.max(xp.abs(x), initial=0) < _MAX_REDUCED_ANGLE
    return lax.cond(near, lambda: _near_wave(xp, x, shift), lambda: xp.cos(x) if shift else xp.sin(x))


def _near_wave(xp: ArrayModule, x: Array, shift: int) -> Array:
    """The sine, `shift` quarters of a turn further, of angles that are not too large."""
    turns = xp.round(x * _F(2 / np.pi))
    left = x
    for part in _QUARTERS:
        left = left - turns * _F(part)
    square = left * left
    sine = _odd(left, square, _SIN)
    cosine = 1 - _F(0.5) * square + square * square * _polynomial(square, _COS)
    quarter = turns.astype(np.int32) + np.int32(shift)
    wave = xp.where(quarter & 1, cosine, sine)
    return xp.where(quarter & 2, -wave, wave)
