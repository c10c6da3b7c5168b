"""Bijectors that map number by number."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.distributions.bijector_impl import Bijector
from tensorfleet_legacy.distributions.distribution import number, tensors
from tensorfleet_legacy.distributions.util import softplus_inverse
from tensorfleet_legacy.distributions.util_assertions import after


class _Elementwise(Bijector):
    """A bijector of single numbers."""

    def _begin(self, validate_args: bool, name: str, constant: bool = False, parents: Any = ()) -> None:
        Bijector.__init__(
            self,
            graph_parents=[p for p in parents if p is not None],
            forward_min_event_ndims=0,
            is_constant_jacobian=constant,
            validate_args=validate_args,
            name=name,
        )

    def _checked(self, value: Tensor, *checks: tuple[str, float, str]) -> Tensor:
        """`value`, after checks such as ("assert_greater", 0, "must be positive"), if they are asked for."""
        if not self._validate_args:
            return value
        items = [find(c)(value, number(limit, value), message=text) for c, limit, text in checks]
        return after(items, value)


class PowerTransform(_Elementwise):
    """y = (1 + c x)^(1 / c), and the exponential for c = 0."""

    def __init__(
        self, power: float = 0.0, validate_args: bool = False, name: str = "power_transform"
    ) -> None:
        if power is None or power < 0:
            raise ValueError("`power` must be a non-negative TF primitive.")
        self._power = power
        self._begin(validate_args, name)

    power = readonly("_power", "The number c.")

    def _forward(self, x: Tensor) -> Tensor:
        if not self._power:
            return find("exp")(x)
        x = self._checked(
            x, ("assert_greater", -1 / self._power, "Forward transformation input must be > -1/c.")
        )
        return find("exp")(find("log1p")(x * self._power) / self._power)

    def _inverse(self, y: Tensor) -> Tensor:
        y = self._above_zero(y)
        if not self._power:
            return find("log")(y)
        return find("expm1")(find("log")(y) * self._power) / self._power

    def _above_zero(self, y: Tensor) -> Tensor:
        return self._checked(
            y, ("assert_greater", 0.0, "Inverse transformation input must be greater than 0.")
        )

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        return (self._power - 1.0) * find("log")(self._above_zero(y))

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        if not self._power:
            return x
        return (1.0 / self._power - 1.0) * find("log1p")(x * self._power)


class Exp(PowerTransform):
    """y = exp(x)."""

    def __init__(self, validate_args: bool = False, name: str = "exp") -> None:
        super().__init__(0.0, validate_args, name)


class Sigmoid(_Elementwise):
    """y = 1 / (1 + exp(-x))."""

    def __init__(self, validate_args: bool = False, name: str = "sigmoid") -> None:
        self._begin(validate_args, name)

    def _forward(self, x: Tensor) -> Tensor:
        return find("sigmoid")(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return find("log")(y) - find("log1p")(-y)

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        return -find("log")(y) - find("log1p")(-y)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return -find("nn.softplus")(-x) - find("nn.softplus")(x)


class Softplus(_Elementwise):
    """y = c log(1 + exp(x / c)), where `hinge_softness` c is 1 if not given."""

    def __init__(
        self, hinge_softness: Any = None, validate_args: bool = False, name: str = "softplus"
    ) -> None:
        self._hinge = None if hinge_softness is None else tensors(hinge_softness=hinge_softness)[0]
        if self._hinge is not None and validate_args:
            zero = number(0, self._hinge)
            check = find("assert_none_equal")(zero, self._hinge, message="hinge_softness must be non-zero")
            self._hinge = after([check], self._hinge)
        self._begin(validate_args, name, parents=[self._hinge])

    hinge_softness = readonly("_hinge", "How soft the bend is.")

    def _scaled(self, function: Callable, x: Tensor) -> Tensor:
        if self._hinge is None:
            return function(x)
        hinge = find("cast")(self._hinge, x.dtype.base_dtype)
        return hinge * function(x / hinge)

    def _forward(self, x: Tensor) -> Tensor:
        return self._scaled(find("nn.softplus"), x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self._scaled(softplus_inverse, y)

    def _bent(self, x: Tensor) -> Tensor:
        return x if self._hinge is None else x / find("cast")(self._hinge, x.dtype.base_dtype)

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        return -find("log")(-find("expm1")(-self._bent(y)))

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return -find("nn.softplus")(-self._bent(x))


class Softsign(_Elementwise):
    """y = x / (1 + |x|)."""

    def __init__(self, validate_args: bool = False, name: str = "softsign") -> None:
        self._begin(validate_args, name)

    def _forward(self, x: Tensor) -> Tensor:
        return x / (1.0 + find("abs")(x))

    def _inside(self, y: Tensor) -> Tensor:
        text = "Inverse transformation input must be {} than {}."
        return self._checked(
            y,
            ("assert_greater", -1.0, text.format("greater", "-1")),
            ("assert_less", 1.0, text.format("less", "1")),
        )

    def _inverse(self, y: Tensor) -> Tensor:
        y = self._inside(y)
        return y / (1.0 - find("abs")(y))

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        return -2.0 * find("log1p")(-find("abs")(self._inside(y)))

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return -2.0 * find("log1p")(find("abs")(x))


class Square(_Elementwise):
    """y = x^2, of numbers that are not negative."""

    def __init__(self, validate_args: bool = False, name: str = "square") -> None:
        self._begin(validate_args, name)

    def _not_negative(self, x: Tensor, way: str) -> Tensor:
        return self._checked(
            x, ("assert_greater_equal", 0.0, f"{way} transformation input must be non-negative.")
        )

    def _forward(self, x: Tensor) -> Tensor:
        return find("square")(self._not_negative(x, "Forward"))

    def _inverse(self, y: Tensor) -> Tensor:
        return find("sqrt")(self._not_negative(y, "Inverse"))

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return math.log(2.0) + find("log")(self._not_negative(x, "Forward"))


class AbsoluteValue(_Elementwise):
    """y = |x|; what is mapped to y is the pair (-y, y)."""

    _is_injective = False

    def __init__(self, validate_args: bool = False, name: str = "absolute_value") -> None:
        self._begin(validate_args, name, constant=True)

    def _forward(self, x: Tensor) -> Tensor:
        return find("abs")(x)

    def _inverse(self, y: Tensor) -> tuple:
        y = self._checked(y, ("assert_greater_equal", 0.0, "Argument y was negative"))
        return -y, y

    def _inverse_log_det_jacobian(self, y: Tensor) -> tuple:
        none = number(0.0, y)
        return none, none


class AffineScalar(_Elementwise):
    """y = scale * x + shift, number by number."""

    def __init__(
        self,
        shift: Any = None,
        scale: Any = None,
        validate_args: bool = False,
        name: str = "affine_scalar",
    ) -> None:
        self._shift = None if shift is None else tensors(shift=shift)[0]
        self._scale = None if scale is None else tensors(scale=scale)[0]
        if self._scale is not None and validate_args:
            zero = number(0, self._scale)
            self._scale = after([find("assert_none_equal")(self._scale, zero)], self._scale)
        self._begin(validate_args, name, constant=True, parents=[self._shift, self._scale])

    shift = readonly("_shift", "What is added.")
    scale = readonly("_scale", "What is multiplied with.")

    def _forward(self, x: Tensor) -> Tensor:
        cast, kind = find("cast"), x.dtype.base_dtype
        x = x if self._scale is None else x * cast(self._scale, kind)
        return x if self._shift is None else x + cast(self._shift, kind)

    def _inverse(self, y: Tensor) -> Tensor:
        cast, kind = find("cast"), y.dtype.base_dtype
        y = y if self._shift is None else y - cast(self._shift, kind)
        return y if self._scale is None else y / cast(self._scale, kind)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return number(0.0, x) if self._scale is None else find("log")(find("abs")(self._scale))


class _Shaped(_Elementwise):
    """A bijector with parameters that must be positive."""

    def _positive(self, validate: bool, value: Tensor, name: str) -> Tensor:
        if not validate:
            return value
        return after([find("assert_positive")(value, message=f"Argument {name} was not positive")], value)


class Gumbel(_Shaped):
    """y = exp(-exp(-(x - loc) / scale)): to the unit interval."""

    def __init__(
        self, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool = False, name: str = "gumbel"
    ) -> None:
        self._loc, scale = tensors(loc=loc, scale=scale)
        self._scale = self._positive(validate_args, scale, "scale")
        self._begin(validate_args, name, parents=[self._loc, self._scale])

    loc = readonly("_loc", "Where the bend is.")
    scale = readonly("_scale", "How wide it is.")

    def _forward(self, x: Tensor) -> Tensor:
        return find("exp")(-find("exp")(-(x - self._loc) / self._scale))

    def _inverse(self, y: Tensor) -> Tensor:
        return self._loc - self._scale * find("log")(-find("log")(y))

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        return find("log")(self._scale / (-find("log")(y) * y))

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        z = (x - self._loc) / self._scale
        return -z - find("exp")(-z) - find("log")(self._scale)


class Weibull(_Shaped):
    """y = 1 - exp(-(x / scale)^concentration): to the unit interval."""

    def __init__(
        self,
        scale: Any = 1.0,
        concentration: Any = 1.0,
        validate_args: bool = False,
        name: str = "weibull",
    ) -> None:
        scale, concentration = tensors(scale=scale, concentration=concentration)
        self._scale = self._positive(validate_args, scale, "scale")
        self._concentration = self._positive(validate_args, concentration, "concentration")
        self._begin(validate_args, name, parents=[self._scale, self._concentration])

    scale = readonly("_scale", "The scale.")
    concentration = readonly("_concentration", "The power.")

    def _forward(self, x: Tensor) -> Tensor:
        return -find("expm1")(-((x / self._scale) ** self._concentration))

    def _inverse(self, y: Tensor) -> Tensor:
        return self._scale * (-find("log1p")(-y)) ** (1 / self._concentration)

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        log, log1p, c = find("log"), find("log1p"), self._concentration
        return -log1p(-y) + (1 / c - 1) * log(-log1p(-y)) + log(self._scale / c)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        log, c, z = find("log"), self._concentration, x / self._scale
        return -(z**c) + (c - 1) * log(z) + log(c) - log(self._scale)


class Kumaraswamy(_Shaped):
    """y = (1 - (1 - x)^(1 / b))^(1 / a): from the unit interval to it."""

    def __init__(
        self,
        concentration1: Any = None,
        concentration0: Any = None,
        validate_args: bool = False,
        name: str = "kumaraswamy",
    ) -> None:
        a, b = tensors(concentration1=concentration1, concentration0=concentration0)
        self._a = self._positive(validate_args, a, "concentration1")
        self._b = self._positive(validate_args, b, "concentration0")
        self._begin(validate_args, name, parents=[self._a, self._b])

    concentration1 = readonly("_a", "The number a.")
    concentration0 = readonly("_b", "The number b.")

    def _forward(self, x: Tensor) -> Tensor:
        log1p, expm1 = find("log1p"), find("expm1")
        return find("exp")(find("log")(-expm1(log1p(-x) / self._b)) / self._a)

    def _inverse(self, y: Tensor) -> Tensor:
        return -find("expm1")(self._b * find("log1p")(-(y**self._a)))

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        log = find("log")
        return (
            log(self._a)
            + log(self._b)
            + (self._a - 1) * log(y)
            + (self._b - 1) * find("log1p")(-(y**self._a))
        )


class SinhArcsinh(_Elementwise):
    """y = sinh((arcsinh(x) + skewness) * tailweight)."""

    def __init__(
        self,
        skewness: Any = None,
        tailweight: Any = None,
        validate_args: bool = False,
        name: str = "SinhArcsinh",
    ) -> None:
        tail, skew = tensors(
            tailweight=1.0 if tailweight is None else tailweight,
            skewness=0.0 if skewness is None else skewness,
        )
        if validate_args:
            tail = after(
                [find("assert_positive")(tail, message="Argument tailweight was not positive")], tail
            )
        self._skewness, self._tailweight = skew, tail
        self._begin(validate_args, name, parents=[skew, tail])

    skewness = readonly("_skewness", "How far it leans.")
    tailweight = readonly("_tailweight", "How heavy its tails are.")

    def _forward(self, x: Tensor) -> Tensor:
        return find("sinh")((find("asinh")(x) + self._skewness) * self._tailweight)

    def _inverse(self, y: Tensor) -> Tensor:
        return find("sinh")(find("asinh")(y) / self._tailweight - self._skewness)

    def _stretch(self, inner: Tensor, at: Tensor) -> Tensor:
        """log(cosh(inner) / sqrt(at^2 + 1)), also where cosh is beyond all numbers."""
        size = find("abs")(inner)
        log_cosh = size + find("nn.softplus")(-2.0 * size) - number(math.log(2.0), size)
        root = number(np.sqrt(float(np.finfo(at.dtype.as_numpy_dtype).max)), at)
        small = find("minimum")(find("abs")(at), root)
        log_root = find("where")(
            find("abs")(at) > root, find("log")(find("abs")(at)), 0.5 * find("log1p")(find("square")(small))
        )
        return log_cosh - log_root

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        inner = find("asinh")(y) / self._tailweight - self._skewness
        return self._stretch(inner, y + 0 * inner) - find("log")(self._tailweight)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        inner = (find("asinh")(x) + self._skewness) * self._tailweight
        return self._stretch(inner, x + 0 * inner) + find("log")(self._tailweight)


class Ordered(Bijector):
    """From vectors that rise to all vectors: the first element, then the logarithms of the steps."""

    def __init__(self, validate_args: bool = False, name: str = "ordered") -> None:
        super().__init__(forward_min_event_ndims=1, validate_args=validate_args, name=name)

    def _forward(self, x: Tensor) -> Tensor:
        if self._validate_args:
            rises = find("assert_positive")(
                x[..., 1:] - x[..., :-1], message="Forward transformation input must be strictly increasing."
            )
            x = after([rises], x)
        return find("concat")([x[..., :1], find("log")(x[..., 1:] - x[..., :-1])], -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return find("cumsum")(find("concat")([y[..., :1], find("exp")(y[..., 1:])], -1), axis=-1)

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        return find("reduce_sum")(y[..., 1:], -1)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return -find("reduce_sum")(find("log")(x[..., 1:] - x[..., :-1]), -1)
