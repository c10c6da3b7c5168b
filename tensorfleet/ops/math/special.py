"""Special functions: error function, gamma and beta families, zeta, Bessel."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape, broadcast_shape, difference, shape_text
from tensorfleet.base.types import Array, ArrayModule, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.kernels.arrays import is_numpy
from tensorfleet.ops.array.constructors import zeros_like
from tensorfleet.ops.common import UNKNOWN
from tensorfleet.ops.elementwise import (
    POSITIVE,
    REAL,
    UNIT,
    binary,
    constant_like,
    on_values,
    unary,
    unbroadcast,
    wide,
)
from tensorfleet.ops.public_functions import function
from tensorfleet.ops.samples import case

_REAL = [case(REAL), case(UNIT)]
_POSITIVE = [case(POSITIVE.astype(np.float32)), case(POSITIVE)]
_PAIRS = [case(POSITIVE, POSITIVE + 0.5), case(POSITIVE.astype(np.float32), np.float32(1.5))]


def _special(xp: ArrayModule, scipy_name: str, jax_name: str, *args: Array) -> Array:
    """The function of that name from scipy in the numpy life, from XLA when traced."""
    dtype = args[0].dtype
    if is_numpy(xp):
        import scipy.special

        return np.asarray(getattr(scipy.special, scipy_name)(*map(wide, args))).astype(dtype)
    from tensorfleet.kernels.xla import lax

    result: Array = getattr(lax, jax_name)(*xp.broadcast_arrays(*args))
    return result


unary("Erf", "floating", examples=_REAL)(lambda xp, x: _special(xp, "erf", "erf", x))
gradient("Erf")(lambda op, dy: dy * _bell(op.inputs[0], 2 / np.sqrt(np.pi)))


def _bell(x: Tensor, height: float) -> Tensor:
    return constant_like(float(height), x) * apply("Exp", apply("Neg", apply("Square", x)))


# Where x >= 0, erfc(x) * exp(x * x) is q times a polynomial of q = 1 / (1 + 0.4 * x): these were fitted to be off by no more
# than 6e-8 of the result, and add up to 1. The highest power comes first.
_ERFC_SLOPE = 0.4
_ERFC = (
    0.041613296,
    -0.14208375,
    0.08766122,
    0.08372832,
    0.08270629,
    0.1921265,
    0.20221424,
    0.22639698,
    0.22563696,
)


@unary("Erfc", "floating", examples=_REAL)
def _erfc(xp: ArrayModule, x: Array) -> Array:
    if is_numpy(xp) or x.dtype.itemsize > 4:
        return _special(xp, "erfc", "erfc", x)
    # XLA has three formulas, and computes all of them for each number.
    single = x.astype(np.float32)
    q = 1 / (1 + np.float32(_ERFC_SLOPE) * xp.abs(single))
    series = np.float32(_ERFC[0]) * q + np.float32(_ERFC[1])
    for c in _ERFC[2:]:
        series = series * q + np.float32(c)
    right = series * q * xp.exp(-single * single)
    return xp.where(single < 0, 2 - right, right).astype(x.dtype)


gradient("Erfc")(lambda op, dy: dy * _bell(op.inputs[0], -2 / np.sqrt(np.pi)))
unary("Lgamma", "floating", examples=_POSITIVE)(lambda xp, x: _special(xp, "gammaln", "lgamma", x))
gradient("Lgamma")(lambda op, dy: dy * apply("Digamma", op.inputs[0]))


@unary("Digamma", "floating", examples=_POSITIVE)
def _digamma(xp: ArrayModule, x: Array) -> Array:
    value = _special(xp, "digamma", "digamma", x)
    at_pole = (x <= 0) & (x == xp.floor(x))
    return xp.where(at_pole, np.nan, value).astype(x.dtype)


@gradient("Digamma")
def _digamma_grad(op: Operation, dy: Tensor) -> Tensor:
    x = op.inputs[0]
    return dy * apply("Polygamma", constant_like(1, x), x)


_TWO = "{float, double}"


@binary(
    "Polygamma",
    _TWO,
    signature="a: T, x: T -> z: T",
    examples=[case(np.array([1.0, 2.0, 3.0]), POSITIVE, grad=False)],
)
def _polygamma(xp: ArrayModule, a: Array, x: Array) -> Array:
    if is_numpy(xp):
        import scipy.special as special

        n = a + 1
        sign = np.where(np.mod(a, 2) == 0, -1, 1)
        general = sign * special.gamma(n) * special.zeta(n, x)
        return np.asarray(np.where(a == 0, special.digamma(x), general)).astype(x.dtype)
    from tensorfleet.kernels.xla import lax

    return lax.polygamma(*xp.broadcast_arrays(a, x))


@gradient("Polygamma")
def _polygamma_grad(op: Operation, dy: Tensor) -> tuple[None, Tensor | None]:
    n, x = op.inputs
    gx = dy * apply("Polygamma", n + constant_like(1, n), x)
    return None, unbroadcast(n, x, None, gx)[1]


@binary("Zeta", _TWO, signature="x: T, q: T -> z: T", examples=[case(POSITIVE + 1.25, POSITIVE, grad=False)])
def _zeta(xp: ArrayModule, x: Array, q: Array) -> Array:
    return _special(xp, "zeta", "zeta", x, q)


@gradient("Zeta")
def _zeta_grad(op: Operation, dy: Tensor) -> tuple[None, Tensor | None]:
    x, q = op.inputs
    gq = dy * apply("Neg", x) * apply("Zeta", x + constant_like(1, x), q)
    return None, unbroadcast(x, q, None, gq)[1]


@export("math.zeta", "zeta")
def zeta(x: TensorLike, q: TensorLike, name: str | None = None) -> Tensor:
    """The Hurwitz zeta function: the sum of `(q + n) ** -x` over n = 0, 1, 2, ..."""
    return apply("Zeta", x, q, name=name)


@binary("Igamma", "floating", signature="a: T, x: T -> z: T", examples=_PAIRS)
def _igamma(xp: ArrayModule, a: Array, x: Array) -> Array:
    return _special(xp, "gammainc", "igamma", a, x)


@binary("Igammac", "floating", signature="a: T, x: T -> z: T", examples=_PAIRS)
def _igammac(xp: ArrayModule, a: Array, x: Array) -> Array:
    if is_numpy(xp) or a.dtype != np.float32:
        return _special(xp, "gammaincc", "igammac", a, x)
    from tensorfleet.kernels.xla import lax

    a, x = xp.broadcast_arrays(a, x)
    below = (x < 1) | (x < a)
    (series, fraction), (series_on, fraction_on) = (_gamma_parts(xp, a, x, n) for n in (_TERMS, _TERMS + 2))
    scale = xp.exp(a * xp.log(x) - x - lax.lgamma(a))
    value = xp.where(below, 1 - scale * series_on, scale * fraction_on)
    good = (
        (a > 0)
        & (x > 0)
        & (x < np.inf)
        & xp.where(below, _same(xp, series, series_on), _same(xp, fraction, fraction_on))
    )
    return lax.cond(xp.all(good), lambda: value, lambda: lax.igammac(a, x))


# Terms of a sum or a fraction that are enough for most numbers of 32 bits. Unlike a loop that goes on as long as some
# element needs it, which XLA has for all others, a fixed number of them is compiled into a single pass.
_TERMS = 20


def _gamma_parts(xp: ArrayModule, a: Array, x: Array, terms: int) -> tuple[Any, Any]:
    """The lower incomplete gamma function as a sum, and the upper as a fraction, over x^a e^-x."""
    series, fraction = xp.ones_like(x), xp.ones_like(x)
    for n in range(terms, 0, -1):
        series = 1 + series * x / (a + n)
        fraction = x + (2 * n + 1) - a - (n + 1) * (n + 1 - a) / fraction
    return series / a, 1 / (x + 1 - a - (1 - a) / fraction)


def _same(xp: ArrayModule, x: Array, y: Array) -> Array:
    """Whether two results are the same but for rounding."""
    result: Array = xp.abs(x - y) <= 2 * np.finfo(y.dtype).eps * xp.abs(y)
    return result


@gradient("Igamma", "Igammac")
def _igamma_grad(op: Operation, dy: Tensor) -> tuple[Tensor | None, Tensor | None]:
    a, x = op.inputs
    one = constant_like(1, x)
    density = apply("Exp", apply("Neg", x) + (a - one) * apply("Log", x) - apply("Lgamma", a))
    ga, gx = apply("IgammaGradA", a, x) * dy, density * dy
    if op.type == "Igammac":
        ga, gx = apply("Neg", ga), apply("Neg", gx)
    return unbroadcast(a, x, ga, gx)


@binary(
    "IgammaGradA", _TWO, signature="a: T, x: T -> z: T", examples=[case(POSITIVE, POSITIVE + 0.5, grad=False)]
)
def _igamma_grad_a(xp: ArrayModule, a: Array, x: Array) -> Array:
    import jax

    from tensorfleet.kernels.xla import lax

    if not is_numpy(xp):
        return lax.igamma_grad_a(*xp.broadcast_arrays(a, x))
    with jax.enable_x64(True):  # nothing may have been compiled before, and so nothing set
        return np.asarray(jax.lax.igamma_grad_a(*np.broadcast_arrays(a, x)))


def _scalars_or_alike(op: Operation) -> TensorShape:
    """The shape that all inputs have which are not scalars."""
    shapes = [t.shape for t in op._inputs if t.shape.rank != 0]
    known = [shape for shape in shapes if shape.rank is not None]
    for one, other in itertools.pairwise(known):
        if not one.is_compatible_with(other):
            raise ValueError(difference(one, other))
    merged = functools.reduce(TensorShape.merge_with, known, UNKNOWN)
    return merged if shapes else TensorShape([])


@op(
    "Betainc",
    "a: T, b: T, x: T -> z: T",
    "T: {float, double}",
    shape=_scalars_or_alike,
    examples=[case(POSITIVE, POSITIVE + 0.5, np.abs(UNIT), grad=False)],
)
def _betainc(xp: ArrayModule, a: Array, b: Array, x: Array) -> Array:
    sized = [(name, v.shape) for name, v in (("a", a), ("b", b), ("x", x)) if v.shape]
    for name, shape in sized[1:]:
        if shape != sized[0][1]:
            texts = f"{shape_text(sized[0][1])} vs. {shape_text(shape)}"
            raise errors.invalid(f"Shapes of {sized[0][0]} and {name} are inconsistent: {texts}")
    if is_numpy(xp) or a.dtype != np.float32:
        return _special(xp, "betainc", "betainc", a, b, x)
    from tensorfleet.kernels.xla import lax

    a, b, x = xp.broadcast_arrays(a, b, x)
    above = x > (a + 1) / (a + b + 2)
    p, q, y = xp.where(above, b, a), xp.where(above, a, b), xp.where(above, 1 - x, x)
    fraction, fraction_on = (_beta_fraction(xp, p, q, y, n) for n in (_TERMS // 2 - 2, _TERMS // 2 - 1))
    log_beta = lax.lgamma(a) + lax.lgamma(b) - lax.lgamma(a + b)
    value = xp.exp(p * xp.log(y) + q * xp.log1p(-y) - log_beta) / p * fraction_on
    good = (a > 0) & (b > 0) & (x >= 0) & (x <= 1) & _same(xp, fraction, fraction_on)
    return lax.cond(xp.all(good), lambda: xp.where(above, 1 - value, value), lambda: lax.betainc(a, b, x))


def _beta_fraction(xp: ArrayModule, a: Array, b: Array, x: Array, terms: int) -> Any:
    """The fraction of the incomplete beta function, which converges soon where x is not above its mean."""
    fraction = xp.ones_like(x)
    for k in range(terms - 1, -1, -1):
        fraction = 1 + (k + 1) * (b - (k + 1)) * x / ((a + (2 * k + 1)) * (a + (2 * k + 2)) * fraction)
        fraction = 1 - (a + k) * (a + b + k) * x / ((a + 2 * k) * (a + (2 * k + 1)) * fraction)
    return 1 / fraction


@gradient("Betainc")
def _betainc_grad(op: Operation, dy: Tensor) -> tuple[None, None, Tensor | None]:
    a, b, x = op.inputs
    one = constant_like(1, x)
    log_beta = apply("Lgamma", a) + apply("Lgamma", b) - apply("Lgamma", a + b)
    log_density = apply("Xlog1py", b - one, apply("Neg", x)) + apply("Xlogy", a - one, x) - log_beta
    return None, None, unbroadcast(x, a + b, dy * apply("Exp", log_density), None)[0]


@binary("Xlog1py", "inexact", examples=_PAIRS)
def _xlog1py(xp: ArrayModule, x: Array, y: Array) -> Array:
    zero = x == 0
    return xp.where(zero, 0, xp.multiply(x, xp.log1p(xp.where(zero, 1, y).astype(y.dtype)))).astype(x.dtype)


@gradient("Xlog1py")
def _xlog1py_grad(op: Operation, dy: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, y = op.inputs
    nonzero = apply("Cast", apply("NotEqual", x, constant_like(0, x)), DstT=x.dtype.base_dtype)
    gy = dy * apply("Xdivy", x, y + constant_like(1, y))
    return unbroadcast(x, y, dy * apply("Xlog1py", nonzero, y), gy)


@op(
    "NextAfter",
    "x1: T, x2: T -> output: T",
    "T: {double, float} = float",
    shape=lambda op: broadcast_shape(op._inputs[0].shape, op._inputs[1].shape),
    examples=[case(REAL, REAL[0] + 1), case(POSITIVE, -POSITIVE)],
)
def _next_after(xp: ArrayModule, x1: Array, x2: Array) -> Array:
    return xp.nextafter(x1, x2)


@gradient("NextAfter")
def _next_after_grad(op: Operation, dy: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x1, x2 = op.inputs
    return unbroadcast(x1, x2, dy, zeros_like(dy))


not_differentiable("IgammaGradA")


@export("math.nextafter")
def nextafter(x1: TensorLike, x2: TensorLike, name: str | None = None) -> Tensor:
    """The next number after `x1` that floating point can hold, going toward `x2`."""
    return apply("NextAfter", x1, x2, name=name)


unary("BesselI0e", "floating", examples=_REAL)(lambda xp, x: _special(xp, "i0e", "bessel_i0e", x))
unary("BesselI1e", "floating", examples=_REAL)(lambda xp, x: _special(xp, "i1e", "bessel_i1e", x))


@gradient("BesselI0e")
def _bessel_i0e_grad(op: Operation, dy: Tensor) -> Tensor:
    x, y = op.inputs[0], op.outputs[0]
    return dy * (apply("BesselI1e", x) - apply("Sign", x) * y)


@gradient("BesselI1e")
def _bessel_i1e_grad(op: Operation, dy: Tensor) -> Tensor:
    x, y = op.inputs[0], op.outputs[0]
    # At 0 the quotient y / x has the limit 1/2, which the general formula cannot give.
    zero = apply("Equal", x, constant_like(0, x))
    safe = apply("SelectV2", zero, constant_like(1, x), x)
    slope = apply("BesselI0e", safe) - y * (apply("Sign", safe) + apply("Reciprocal", safe))
    return dy * apply("SelectV2", zero, constant_like(0.5, x), slope)


@export("math.bessel_i0e")
def bessel_i0e(x: TensorLike, name: str | None = None) -> Any:
    """The modified Bessel function of order 0, scaled by `exp(-abs(x))`."""
    return on_values(x, bessel_i0e) or apply("BesselI0e", x, name=name)


@export("math.bessel_i1e")
def bessel_i1e(x: TensorLike, name: str | None = None) -> Any:
    """The modified Bessel function of order 1, scaled by `exp(-abs(x))`."""
    return on_values(x, bessel_i1e) or apply("BesselI1e", x, name=name)


@export("math.bessel_i0")
def bessel_i0(x: TensorLike, name: str | None = None) -> Tensor:
    """The modified Bessel function of order 0."""
    return _unscaled("BesselI0e", x, name, "bessel_i0")


@export("math.bessel_i1")
def bessel_i1(x: TensorLike, name: str | None = None) -> Tensor:
    """The modified Bessel function of order 1."""
    return _unscaled("BesselI1e", x, name, "bessel_i1")


def _unscaled(kind: str, x: Any, name: str | None, default: str) -> Tensor:
    with name_scope(name, default, [x]):
        x = to_tensor(x, name="x")
        return apply("Exp", apply("Abs", x)) * apply(kind, x)


@export("math.lbeta", "lbeta")
def lbeta(x: TensorLike, name: str | None = None) -> Tensor:
    """The logarithm of the absolute value of the beta function of the last dimension."""
    with name_scope(name, "lbeta", [x]):
        x = to_tensor(x, name="x")
        if x.shape.rank == 0:
            raise errors.invalid("lbeta needs at least one dimension to reduce.")
        last = np.array([-1], np.int32)
        separate = apply("Sum", apply("Lgamma", x), last)
        return separate - apply("Lgamma", apply("Sum", x, last))


@export("math.polyval")
def polyval(coeffs: Sequence[TensorLike], x: TensorLike, name: str | None = None) -> Tensor:
    """The polynomial with these coefficients, highest power first, at `x`."""
    with name_scope(name, "polyval", [*coeffs, x]):
        x = to_tensor(x, name="x")
        if not coeffs:
            return zeros_like(x)
        terms = [to_tensor(c, name=f"coeff_{i}") for i, c in enumerate(coeffs)]
        value = terms[0]
        for c in terms[1:]:
            value = c + value * x
        return value


# -- public functions of one op ------------------------------------------------------------------

erf = function("Erf", "x", "math.erf erf", "The Gauss error function.", sparse=True)
erfc = function("Erfc", "x", "math.erfc erfc", "`1 - erf(x)`, exact also for large `x`.")
lgamma = function(
    "Lgamma", "x", "math.lgamma lgamma", "The logarithm of the absolute value of the gamma function."
)
digamma = function("Digamma", "x", "math.digamma digamma", "The derivative of `lgamma`.")
polygamma = function(
    "Polygamma", "a x", "math.polygamma polygamma", "The derivative of order `a` of the digamma function."
)
igamma = function("Igamma", "a x", "math.igamma igamma", "The lower regularized incomplete gamma function.")
igammac = function(
    "Igammac", "a x", "math.igammac igammac", "The upper regularized incomplete gamma function."
)
betainc = function("Betainc", "a b x", "math.betainc betainc", "The regularized incomplete beta integral.")
