"""`tf.contrib.integrate`: ordinary differential equations, with steps of fixed sizes or of sizes that an error allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.base import dtypes
from tensorfleet.base.naming import find
from tensorfleet.graph.convert import convert_to_tensor, to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import control_dependencies, name_scope

# Dormand and Prince 1980: times, slopes that each slope is made at, the error, and the middle of a step.
_TIMES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_ERROR = (
    35 / 384 - 1951 / 21600,
    0,
    500 / 1113 - 22642 / 50085,
    125 / 192 - 451 / 720,
    -2187 / 6784 + 12231 / 42400,
    11 / 84 - 649 / 6300,
    -1 / 60,
)
_MIDDLE = (
    6025192743 / 30085553152 / 2,
    0,
    51252292925 / 65400821598 / 2,
    -2691868925 / 45128329728 / 2,
    187940372067 / 1594534317056 / 2,
    -1776094331 / 19743644256 / 2,
    11237099 / 235043384 / 2,
)


def _mixed(factors: Any, parts: list) -> Tensor:
    return find("add_n")([f * p for f, p in zip(factors, parts, strict=False) if not _is_zero(f)])


def _is_zero(factor: Any) -> bool:
    return not isinstance(factor, Tensor) and factor == 0


def _check(y0: Tensor, t: Tensor, dt: Tensor | None = None) -> None:
    if not (y0.dtype.is_floating or y0.dtype.is_complex):
        raise TypeError("`y0` must have a floating point or complex floating point dtype")
    for label, value in (("t", t), ("dt", dt)):
        if value is not None and not value.dtype.is_floating:
            raise TypeError(f"`{label}` must have a floating point dtype")


def _increasing(t: Tensor) -> Any:
    check = find("Assert")(find("reduce_all")(t[1:] > t[:-1]), ["`t` must be monotonic increasing"])
    return control_dependencies([check])


def odeint(
    func: Callable,
    y0: Any,
    t: Any,
    rtol: Any = 1e-6,
    atol: Any = 1e-12,
    method: str | None = None,
    options: dict | None = None,
    full_output: bool = False,
    name: str | None = None,
) -> Any:
    """The solution of dy/dt = func(y, t) at times, from y0 at the first of them, to a tolerance (Dormand-Prince)."""
    if method is not None and method != "dopri5":
        raise ValueError(f"invalid method: {method!r}")
    if options is not None and method is None:
        raise ValueError("cannot supply `options` without specifying `method`")
    with name_scope(name, "odeint", [y0, t, rtol, atol]):
        y0 = to_tensor(y0, name="y0")
        t = convert_to_tensor(t, preferred_dtype=dtypes.float64, name="t")
        _check(y0, t)
        real = find("abs")(y0).dtype
        relative, absolute = to_tensor(rtol, real), to_tensor(atol, real)
        return _Adaptive(func, t, relative, absolute, **(options or {})).solve(y0, full_output)


class _Adaptive:
    """Steps whose size follows the error of the last."""

    def __init__(
        self,
        func: Callable,
        t: Tensor,
        rtol: Tensor,
        atol: Tensor,
        first_step: Any = None,
        safety: float = 0.9,
        ifactor: float = 10.0,
        dfactor: float = 0.2,
        max_num_steps: int = 1000,
    ) -> None:
        self._func, self._t, self._rtol, self._atol = func, t, rtol, atol
        self._first = to_tensor(1.0 if first_step is None else first_step, t.dtype)
        self._safety, self._ifactor, self._dfactor = safety, ifactor, dfactor
        self._max_num_steps = max_num_steps

    def solve(self, y0: Tensor, full_output: bool) -> Any:
        """The solution, and with `full_output` what it took to find it."""
        array, loop, t = find("TensorArray"), find("while_loop"), self._t
        with _increasing(t):
            count = find("size")(t)
        points = array(t.dtype, size=0, dynamic_size=True)
        errors = array(self._rtol.dtype, size=0, dynamic_size=True)
        curve = [find("identity")(y0) for _ in range(5)]
        state = [y0, self._func(y0, t[0]), t[0], t[0], self._first, *curve, points, errors]

        def interval(i: Tensor, found: Any, *state: Any) -> list:
            _, *state = loop(
                lambda n, *s: t[i] > s[3],
                self._step,
                [find("constant")(0), *state],
                shape_invariants=None,
            )
            with control_dependencies([state[0]]):
                share = find("cast")((t[i] - state[2]) / (state[3] - state[2]), y0.dtype)
            powers = [share**k for k in (4, 3, 2, 1)]
            y = _mixed([*powers, 1.0], list(state[5:10]))
            return [i + 1, found.write(i, y), *state]

        result = array(y0.dtype, size=count).write(0, y0)
        _, result, *state = loop(lambda i, *_: i < count, interval, [find("constant")(1), result, *state])
        y = result.stack()
        y.set_shape(t.shape.concatenate(y0.shape))
        if not full_output:
            return y
        points, ratios = state[10].stack(), state[11].stack()
        evaluations = 6 * find("size")(points) + 1
        return y, {"num_func_evals": evaluations, "integrate_points": points, "error_ratio": ratios}

    def _step(
        self, n: Tensor, y0: Tensor, f0: Tensor, before: Tensor, t0: Tensor, dt: Tensor, *rest: Any
    ) -> list:
        *curve, points, errors = rest
        checks = [
            find("Assert")(t0 + dt > t0, ["underflow in dt", dt]),
            find("Assert")(n < self._max_num_steps, ["max_num_steps exceeded"]),
            find("Assert")(
                find("reduce_all")(find("is_finite")(find("abs")(y0))), ["non-finite values in state `y`", y0]
            ),
        ]
        with control_dependencies(checks):
            step = find("cast")(dt, y0.dtype)
        slopes = [f0]
        for time, stage in zip(_TIMES, _STAGES, strict=True):
            y1 = y0 + step * _mixed(stage, slopes)
            slopes.append(self._func(y1, t0 + time * dt))
        error = step * _mixed(_ERROR, slopes)
        larger = find("maximum")(find("abs")(y0), find("abs")(y1))
        allowed = self._atol + self._rtol * larger
        ratio = find("sqrt")(find("reduce_mean")(find("square")(find("abs")(error) / allowed)))
        good = ratio <= 1
        fitted = _fitted(y0, y1, y0 + step * _mixed(_MIDDLE, slopes), f0, slopes[-1], step)
        pairs = [(y1, y0), (slopes[-1], f0), (t0, t0), (t0 + dt, t0)]
        chosen = find("cond")(
            good,
            lambda: [find("identity")(x) for x in ([a for a, _ in pairs] + fitted)],
            lambda: [find("identity")(x) for x in ([b for _, b in pairs] + curve)],
        )
        y, f, start, end, *curve = chosen
        # A step that is refused leaves the curve of the step before, and its times.
        start = find("where")(good, start, before)
        slower = find("cast")(ratio, dt.dtype) ** 0.2 / self._safety
        factor = find("clip_by_value")(slower, 1 / self._ifactor, 1 / self._dfactor)
        size = points.size()
        kept = points.write(size, t0 + dt), errors.write(size, ratio)
        return [n + 1, y, f, start, end, dt / factor, *curve, *kept]


def _fitted(y0: Tensor, y1: Tensor, middle: Tensor, f0: Tensor, f1: Tensor, dt: Tensor) -> list[Tensor]:
    """The polynomial of the fourth degree through three values with two slopes, highest power first."""
    values = [f0, f1, y0, y1, middle]
    return [
        _mixed([-2 * dt, 2 * dt, -8, -8, 16], values),
        _mixed([5 * dt, -3 * dt, 18, 14, -32], values),
        _mixed([-4 * dt, dt, -11, -5, 16], values),
        dt * f0,
        y0,
    ]


def _midpoint(func: Callable, t: Tensor, dt: Tensor, y: Tensor) -> Tensor:
    step = find("cast")(dt, y.dtype)
    return step * func(y + func(y, t) * step / 2, t + dt / 2)


def _rk4(func: Callable, t: Tensor, dt: Tensor, y: Tensor) -> Tensor:
    step = find("cast")(dt, y.dtype)
    k1 = func(y, t)
    k2 = func(y + step * k1 / 2, t + dt / 2)
    k3 = func(y + step * k2 / 2, t + dt / 2)
    k4 = func(y + step * k3, t + dt)
    return step * (k1 + 2 * k2 + 2 * k3 + k4) / 6


_METHODS = {"midpoint": _midpoint, "rk4": _rk4}


def odeint_fixed(
    func: Callable, y0: Any, t: Any, dt: Any = None, method: str = "rk4", name: str | None = None
) -> Tensor:
    """The solution of dy/dt = func(y, t) at times, by steps of fixed sizes: at most `dt`, and whole in each interval."""
    with name_scope(name, "odeint_fixed", [y0, t, dt]):
        t = convert_to_tensor(t, preferred_dtype=dtypes.float64, name="t")
        y0 = to_tensor(y0, name="y0")
        spans = t[1:] - t[:-1]
        largest = spans if dt is None else convert_to_tensor(dt, preferred_dtype=dtypes.float64, name="dt")
        _check(y0, t, largest)
        if t.shape.ndims is not None and t.shape.ndims > 1:
            raise ValueError("t must be a 1D tensor")
        if largest.shape.ndims and not (spans.shape.is_compatible_with(largest.shape)):
            raise ValueError("t and dt have incompatible lengths, must be N and N-1")
        if method not in _METHODS:
            raise ValueError(f"method not supported: {method}")
        steps = find("ceil")(spans / largest)
        sizes, counts = spans / steps, find("cast")(steps, dtypes.int32)
        loop = find("while_loop")

        def interval(i: Tensor, found: Any, y: Tensor) -> list:
            size = sizes[i - 1]

            def step(n: Tensor, y: Tensor, now: Tensor) -> list:
                return [n + 1, y + find("cast")(_METHODS[method](func, now, size, y), y.dtype), now + size]

            _, y, _ = loop(lambda n, *_: n < counts[i - 1], step, [find("constant")(0), y, t[i - 1]])
            return [i + 1, found.write(i, y), y]

        with _increasing(t):
            count = find("size")(t)
        output = find("TensorArray")(y0.dtype, size=count).write(0, y0)
        _, output, _ = loop(lambda i, *_: i < count, interval, [find("constant")(1), output, y0])
        result = output.stack()
        result.set_shape(t.shape.concatenate(y0.shape))
        return result
