"""The equations of the optimizers: from a variable, its slots and a gradient to their new values.

Each rule works element by element, on whole variables (Apply*) and on some of their rows (SparseApply*)
alike. Its parameters are the inputs of the dense op, in order; it returns the new variable, then the
new slots.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.kernels.aligned_memory import stored


def _shrink(xp: Any, x: Any, threshold: Any) -> Any:
    """`x` moved towards zero by `threshold`, and no further than zero."""
    return xp.sign(x) * xp.maximum(xp.abs(x) - threshold, 0)


def gradient_descent(xp: Any, var: Any, alpha: Any, delta: Any) -> tuple:
    """One step down the gradient."""
    step = alpha * delta
    if type(step) is np.ndarray and step.dtype == var.dtype:
        return (np.subtract(var, step, out=step),)  # no second array: fresh memory takes longer than the sum
    return (var - step,)


def proximal_gradient_descent(xp: Any, var: Any, alpha: Any, l1: Any, l2: Any, delta: Any) -> tuple:
    """A step down the gradient, then the proximal step for the L1 and L2 penalties."""
    return (_shrink(xp, var - alpha * delta, alpha * l1) / (1 + alpha * l2),)


def momentum(
    xp: Any, var: Any, accum: Any, lr: Any, grad: Any, momentum: Any, *, use_nesterov: bool
) -> tuple:
    """Momentum over unscaled gradients."""
    accum = accum * momentum + grad
    step = grad + momentum * accum if use_nesterov else accum
    return var - lr * step, accum


def keras_momentum(
    xp: Any, var: Any, accum: Any, lr: Any, grad: Any, momentum: Any, *, use_nesterov: bool
) -> tuple:
    """Momentum over gradients scaled by the learning rate."""
    accum = accum * momentum - lr * grad
    return var + (accum * momentum - lr * grad if use_nesterov else accum), accum


def adagrad(xp: Any, var: Any, accum: Any, lr: Any, grad: Any, *, update_slots: bool) -> tuple:
    """Steps scaled by the root of the sum of all squared gradients."""
    if update_slots:
        accum = accum + xp.square(grad)
    return var - lr * grad / xp.sqrt(accum), accum


def adagrad_v2(
    xp: Any, var: Any, accum: Any, lr: Any, epsilon: Any, grad: Any, *, update_slots: bool
) -> tuple:
    """Adagrad with `epsilon` beside the root."""
    if update_slots:
        accum = accum + xp.square(grad)
    return var - lr * grad / (xp.sqrt(accum) + epsilon), accum


def proximal_adagrad(xp: Any, var: Any, accum: Any, lr: Any, l1: Any, l2: Any, grad: Any) -> tuple:
    """Adagrad, then the proximal step for the L1 and L2 penalties."""
    accum = accum + xp.square(grad)
    rate = lr / xp.sqrt(accum)
    return _shrink(xp, var - rate * grad, rate * l1) / (1 + rate * l2), accum


def adagrad_da(
    xp: Any, var: Any, gradients: Any, squares: Any, grad: Any, lr: Any, l1: Any, l2: Any, global_step: Any
) -> tuple:
    """Dual averaging: the variable is made anew from the sums of all gradients."""
    steps = xp.asarray(global_step).astype(grad.dtype)
    gradients = gradients + grad
    squares = squares + xp.square(grad)
    var = -lr * _shrink(xp, gradients, l1 * steps) / (l2 * steps * lr + xp.sqrt(squares))
    return var, gradients, squares


def adadelta(
    xp: Any, var: Any, accum: Any, accum_update: Any, lr: Any, rho: Any, epsilon: Any, grad: Any
) -> tuple:
    """Steps in the units of the variable: the root of past updates over the root of past gradients."""
    accum = accum * rho + xp.square(grad) * (1 - rho)
    update = stored(xp, xp.sqrt(accum_update + epsilon) / xp.sqrt(accum + epsilon) * grad)
    accum_update = accum_update * rho + xp.square(update) * (1 - rho)
    return var - lr * update, accum, accum_update


def adam(
    xp: Any, var: Any, m: Any, v: Any, beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any, beta2: Any,
    epsilon: Any, grad: Any, *, use_nesterov: bool,
) -> tuple:  # fmt: skip
    """First moment over the root of the second, both corrected for their start at zero."""
    rate = lr * xp.sqrt(1 - beta2_power) / (1 - beta1_power)
    m = m + (grad - m) * (1 - beta1)
    v = v + (xp.square(grad) - v) * (1 - beta2)
    step = m * beta1 + (1 - beta1) * grad if use_nesterov else m
    return var - rate * step / (xp.sqrt(v) + epsilon), m, v


def adam_with_amsgrad(
    xp: Any, var: Any, m: Any, v: Any, vhat: Any, beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any,
    beta2: Any, epsilon: Any, grad: Any,
) -> tuple:  # fmt: skip
    """Adam whose second moment never falls."""
    rate = lr * xp.sqrt(1 - beta2_power) / (1 - beta1_power)
    m = m + (grad - m) * (1 - beta1)
    v = v + (xp.square(grad) - v) * (1 - beta2)
    vhat = xp.maximum(vhat, v)
    return var - rate * m / (xp.sqrt(vhat) + epsilon), m, v, vhat


def ada_max(
    xp: Any,
    var: Any,
    m: Any,
    v: Any,
    beta1_power: Any,
    lr: Any,
    beta1: Any,
    beta2: Any,
    epsilon: Any,
    grad: Any,
) -> tuple:
    """Adam with the largest past gradient in place of the second moment."""
    m = m + (grad - m) * (1 - beta1)
    v = xp.maximum(beta2 * v, xp.abs(grad))
    return var - lr / (1 - beta1_power) * (m / (v + epsilon)), m, v


def rms_prop(
    xp: Any, var: Any, ms: Any, mom: Any, lr: Any, rho: Any, momentum: Any, epsilon: Any, grad: Any
) -> tuple:
    """Momentum over gradients scaled by the root of their running mean square."""
    ms = ms + (xp.square(grad) - ms) * (1 - rho)
    mom = mom * momentum + lr * grad / xp.sqrt(ms + epsilon)
    return var - mom, ms, mom


def centered_rms_prop(
    xp: Any, var: Any, mg: Any, ms: Any, mom: Any, lr: Any, rho: Any, momentum: Any, epsilon: Any, grad: Any
) -> tuple:
    """RMSProp scaled by the running standard deviation instead."""
    mg = mg + (grad - mg) * (1 - rho)
    ms = ms + (xp.square(grad) - ms) * (1 - rho)
    mom = mom * momentum + lr * grad / xp.sqrt(ms - xp.square(mg) + epsilon)
    return var - mom, mg, ms, mom


def _is_half(exponent: Any) -> bool:
    return isinstance(exponent, (np.ndarray, np.generic)) and bool(exponent == 0.5)


def _power(xp: Any, x: Any, exponent: Any) -> Any:
    return xp.sqrt(x) if _is_half(exponent) else xp.power(x, exponent)


def ftrl(
    xp: Any, var: Any, accum: Any, linear: Any, grad: Any, lr: Any, l1: Any, l2: Any, lr_power: Any, *,
    multiply_linear_by_lr: bool,
) -> tuple:  # fmt: skip
    """Follow the regularized leader."""
    return _ftrl(xp, var, accum, linear, grad, grad, lr, l1, l2, lr_power, multiply_linear_by_lr)


def ftrl_v2(
    xp: Any, var: Any, accum: Any, linear: Any, grad: Any, lr: Any, l1: Any, l2: Any, l2_shrinkage: Any,
    lr_power: Any, *, multiply_linear_by_lr: bool,
) -> tuple:  # fmt: skip
    """Follow the regularized leader, shrinking the variable a little at each step."""
    shrunk = grad + 2 * l2_shrinkage * var
    return _ftrl(xp, var, accum, linear, grad, shrunk, lr, l1, l2, lr_power, multiply_linear_by_lr)


def _ftrl(
    xp: Any, var: Any, accum: Any, linear: Any, grad: Any, shrunk: Any, lr: Any, l1: Any, l2: Any,
    lr_power: Any, by_lr: bool,
) -> tuple:  # fmt: skip
    total = accum + xp.square(grad)
    root = _power(xp, total, -lr_power)
    growth = root - _power(xp, accum, -lr_power)
    if by_lr:
        linear = linear + shrunk * lr - growth * var
        reach = l1 * lr
    else:
        linear = linear + shrunk - growth / lr * var
        reach = l1
    if xp is not np and _is_half(-lr_power):
        # Roots are taken again sooner than stored. With `linear` there, the accumulator's memory can get its new value.
        linear, accum = stored(xp, (linear, accum))
        total = accum + xp.square(grad)
        root = xp.sqrt(total)
    scale = root + 2 * l2 * lr if by_lr else root / lr + 2 * l2
    var = xp.where(xp.abs(linear) > reach, (reach * xp.sign(linear) - linear) / scale, 0)
    return var.astype(linear.dtype), total, linear


def add_sign(xp: Any, var: Any, m: Any, lr: Any, alpha: Any, sign_decay: Any, beta: Any, grad: Any) -> tuple:
    """Larger steps where gradient and momentum agree in sign, by adding."""
    m = m * beta + grad * (1 - beta)
    return var - lr * (alpha + sign_decay * xp.sign(grad) * xp.sign(m)) * grad, m


def power_sign(
    xp: Any, var: Any, m: Any, lr: Any, logbase: Any, sign_decay: Any, beta: Any, grad: Any
) -> tuple:
    """Larger steps where gradient and momentum agree in sign, by a power."""
    m = m * beta + grad * (1 - beta)
    return var - lr * xp.exp(logbase * sign_decay * xp.sign(grad) * xp.sign(m)) * grad, m
