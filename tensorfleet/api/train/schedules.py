"""Learning rates that change with the step: functions from the global step to a scalar tensor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.apply import apply, constant
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.random.ops import random_normal


def _need(step: object, what: str) -> None:
    if step is None:
        raise ValueError(f"global_step is required for {what}.")


def _initial(rate: TensorLike) -> tuple[Tensor, Any]:
    rate = to_tensor(rate, name="initial_learning_rate")
    return rate, rate.dtype.base_dtype


def _decay(
    rate: TensorLike,
    step: TensorLike,
    steps: TensorLike,
    decay_rate: TensorLike,
    staircase: bool,
    name: str | None,
) -> Tensor:
    with name_scope(name, "ExponentialDecay") as scope:
        rate, dtype = _initial(rate)
        steps, decay_rate = cast(steps, dtype), cast(decay_rate, dtype)
        done = cast(step, dtype) / steps
        if staircase:
            done = apply("Floor", done)
        return apply("Mul", rate, apply("Pow", decay_rate, done), name=scope)


@export("train.exponential_decay")
def exponential_decay(
    learning_rate: TensorLike,
    global_step: TensorLike,
    decay_steps: TensorLike,
    decay_rate: TensorLike,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """learning_rate * decay_rate ** (global_step / decay_steps); `staircase` decays at whole multiples."""
    _need(global_step, "exponential_decay")
    return _decay(learning_rate, global_step, decay_steps, decay_rate, staircase, name)


@export("train.natural_exp_decay")
def natural_exp_decay(
    learning_rate: TensorLike,
    global_step: TensorLike,
    decay_steps: TensorLike,
    decay_rate: TensorLike,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """learning_rate * exp(-decay_rate * global_step / decay_steps)."""
    _need(global_step, "natural_exp_decay")
    natural = apply("Exp", apply("Neg", decay_rate))
    return _decay(learning_rate, global_step, decay_steps, natural, staircase, name)


@export("train.inverse_time_decay")
def inverse_time_decay(
    learning_rate: TensorLike,
    global_step: TensorLike,
    decay_steps: TensorLike,
    decay_rate: TensorLike,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """learning_rate / (1 + decay_rate * global_step / decay_steps)."""
    _need(global_step, "inverse_time_decay")
    with name_scope(name, "InverseTimeDecay") as scope:
        rate, dtype = _initial(learning_rate)
        steps, decay_rate = cast(decay_steps, dtype), cast(decay_rate, dtype)
        done = cast(global_step, dtype) / steps
        if staircase:
            done = apply("Floor", done)
        one = cast(constant(1), dtype)
        return apply(
            "RealDiv", rate, apply("AddV2", one, apply("Mul", decay_rate, done), name="Add"), name=scope
        )


@export("train.piecewise_constant", "train.piecewise_constant_decay")
def piecewise_constant(
    x: TensorLike, boundaries: Sequence[TensorLike], values: Sequence[TensorLike], name: str | None = None
) -> Tensor:
    """values[0] up to and including boundaries[0], values[1] up to boundaries[1], and so on."""
    boundaries, values = list(boundaries), list(values)
    if len(boundaries) != len(values) - 1:
        raise ValueError("The length of boundaries should be 1 less than the length of values")
    edges = [to_tensor(b) for b in boundaries]
    levels = [to_tensor(v) for v in values]
    x = to_tensor(x)
    edges = [_same_type(e, x) for e in edges]
    for level in levels[1:]:
        if level.dtype.base_dtype != levels[0].dtype.base_dtype:
            raise ValueError(
                f"Values must have elements all with the same dtype ({levels[0].dtype.base_dtype} vs "
                f"{level.dtype.base_dtype})."
            )
    with name_scope(name, "PiecewiseConstant"):
        result = levels[-1]
        for edge, level in zip(reversed(edges), reversed(levels[:-1]), strict=True):
            result = apply("Select", apply("LessEqual", x, edge), level, result)
        return result


def _same_type(edge: Tensor, x: Tensor) -> Tensor:
    edge_type, x_type = edge.dtype.base_dtype, x.dtype.base_dtype
    if edge_type == x_type:
        return edge
    # Python ints are int32, the global step is int64.
    if edge_type == dtypes.int32 and x_type == dtypes.int64:
        widened: Tensor = cast(edge, x_type)
        return widened
    raise ValueError(f"Boundaries ({edge_type}) must have the same dtype as x ({x_type}).")


@export("train.polynomial_decay")
def polynomial_decay(
    learning_rate: TensorLike,
    global_step: TensorLike,
    decay_steps: TensorLike,
    end_learning_rate: TensorLike = 0.0001,
    power: TensorLike = 1.0,
    cycle: bool = False,
    name: str | None = None,
) -> Tensor:
    """From `learning_rate` to `end_learning_rate` in `decay_steps` steps, along a polynomial.

    With `cycle`, the steps stretch to the next multiple of `decay_steps` instead of stopping there.
    """
    _need(global_step, "polynomial_decay")
    with name_scope(name, "PolynomialDecay") as scope:
        rate, dtype = _initial(learning_rate)
        end, power = cast(end_learning_rate, dtype), cast(power, dtype)
        step, steps = cast(global_step, dtype), cast(decay_steps, dtype)
        if cycle:
            steps = _stretched(step, steps, decay_steps)
        else:
            step = apply("Minimum", step, steps)
        done = step / steps
        height = rate - end
        return apply("AddV2", apply("Mul", height, apply("Pow", 1 - done, power)), end, name=scope)


def _stretched(step: Tensor, steps: Tensor, decay_steps: TensorLike) -> Tensor:
    first = apply("Equal", step, 0)
    periods = apply("Ceil", step / (decay_steps if not isinstance(decay_steps, Tensor) else steps))
    return apply("Mul", steps, apply("SelectV2", first, 1.0, periods))


@export("train.cosine_decay")
def cosine_decay(
    learning_rate: TensorLike,
    global_step: TensorLike,
    decay_steps: TensorLike,
    alpha: float | Tensor = 0.0,
    name: str | None = None,
) -> Tensor:
    """Half a cosine from `learning_rate` down to `alpha` times it."""
    _need(global_step, "cosine decay")
    with name_scope(name, "CosineDecay"):
        rate, dtype = _initial(learning_rate)
        steps = cast(decay_steps, dtype)
        step = apply("Minimum", cast(global_step, dtype), steps)
        wave = _half_wave(step / steps)
        return apply("Mul", rate, (1 - alpha) * wave + alpha)


def _pi(dtype: DType) -> Tensor:
    return constant(math.pi, dtype)


def _half_wave(done: Tensor) -> Tensor:
    """From one at 0 to zero at 1."""
    return 0.5 * (1.0 + apply("Cos", _pi(done.dtype) * done))


@export("train.cosine_decay_restarts")
def cosine_decay_restarts(
    learning_rate: TensorLike,
    global_step: TensorLike,
    first_decay_steps: TensorLike,
    t_mul: TensorLike = 2.0,
    m_mul: TensorLike = 1.0,
    alpha: TensorLike = 0.0,
    name: str | None = None,
) -> Tensor:
    """Cosine decays one after the other, each `t_mul` times as long and `m_mul` times as high as the last."""
    _need(global_step, "cosine decay restarts")
    with name_scope(name, "SGDRDecay") as scope:
        rate, dtype = _initial(learning_rate)
        first = cast(first_decay_steps, dtype)
        lowest, longer, higher = cast(alpha, dtype), cast(t_mul, dtype), cast(m_mul, dtype)
        done = cast(global_step, dtype) / first
        restarts, done = _restarts(done, longer)
        height = 0.5 * apply("Pow", higher, restarts, name="pow")
        wave = height * (1.0 + apply("Cos", _pi(dtype) * done))
        return apply("Mul", rate, (1 - lowest) * wave + lowest, name=scope)


def _restarts(done: Tensor, t_mul: Tensor) -> tuple[Tensor, Tensor]:
    """How many periods are over, and which fraction of the current one."""
    equal = apply("Equal", t_mul, 1.0)
    even = apply("Floor", done)
    grown = apply("Floor", apply("Log", 1.0 - done * (1.0 - t_mul)) / apply("Log", t_mul))
    length = apply("Pow", t_mul, grown)
    within = (done - (1.0 - length) / (1.0 - t_mul)) / length
    return apply("Select", equal, even, grown), apply("Select", equal, done - even, within)


@export("train.linear_cosine_decay")
def linear_cosine_decay(
    learning_rate: TensorLike,
    global_step: TensorLike,
    decay_steps: TensorLike,
    num_periods: TensorLike = 0.5,
    alpha: TensorLike = 0.0,
    beta: TensorLike = 0.001,
    name: str | None = None,
) -> Tensor:
    """A straight decay times a cosine of `num_periods` periods, never below `beta` times the rate."""
    _need(global_step, "linear cosine decay")
    with name_scope(name, "LinearCosineDecay") as scope:
        rate, dtype = _initial(learning_rate)
        steps = cast(decay_steps, dtype)
        periods, shift, lowest = cast(num_periods, dtype), cast(alpha, dtype), cast(beta, dtype)
        step = apply("Minimum", cast(global_step, dtype), steps)
        line = (steps - step) / steps
        return _linear_cosine(rate, line, step, steps, periods, shift, lowest, scope)


def _linear_cosine(
    rate: Tensor,
    line: Tensor,
    step: Tensor,
    steps: Tensor,
    periods: Tensor,
    alpha: Tensor,
    beta: Tensor,
    scope: str,
) -> Tensor:
    done = step / steps
    wave = _half_wave(2.0 * periods * done)
    return apply("Mul", rate, (alpha + line) * wave + beta, name=scope)


@export("train.noisy_linear_cosine_decay")
def noisy_linear_cosine_decay(
    learning_rate: TensorLike,
    global_step: TensorLike,
    decay_steps: TensorLike,
    initial_variance: TensorLike = 1.0,
    variance_decay: TensorLike = 0.55,
    num_periods: TensorLike = 0.5,
    alpha: TensorLike = 0.0,
    beta: TensorLike = 0.001,
    name: str | None = None,
) -> Tensor:
    """`linear_cosine_decay` with noise that fades as the steps go on."""
    _need(global_step, "noisy linear cosine decay")
    with name_scope(name, "NoisyLinearCosineDecay") as scope:
        rate, dtype = _initial(learning_rate)
        steps = cast(decay_steps, dtype)
        variance, fading = cast(initial_variance, dtype), cast(variance_decay, dtype)
        periods, shift, lowest = cast(num_periods, dtype), cast(alpha, dtype), cast(beta, dtype)
        step = apply("Minimum", cast(global_step, dtype), steps)
        line = (steps - step) / steps
        spread = apply("Sqrt", variance / apply("Pow", 1.0 + step, fading))
        noisy = line + random_normal(line.shape, stddev=spread)
        return _linear_cosine(rate, noisy, step, steps, periods, shift, lowest, scope)
