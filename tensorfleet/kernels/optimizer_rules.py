"""The equations of the optimizers: from a variable, its slots and a gradient to their new values.

Each rule works element by element, on whole variables (Apply*) and on some of their rows (SparseApply*)
alike. Its parameters are the inputs of the dense op, in order; it returns the new variable, then the
new slots.
"""

from __future__ import annotations

import numpy as np

from tensorfleet.base.types import Array, ArrayModule
from tensorfleet.kernels.aligned_memory import stored


def _shrink(xp: ArrayModule, x: Array, threshold: Array) -> Array:
    """`x` moved towards zero by `threshold`, and no further than zero."""
    return xp.sign(x) * xp.maximum(xp.abs(x) - threshold, 0)


def gradient_descent(xp: ArrayModule, var: Array, alpha: Array, delta: Array) -> tuple[Array]:
    """One step down the gradient."""
    step = alpha * delta
    if type(step) is np.ndarray and step.dtype == var.dtype:
        return (np.subtract(var, step, out=step),)  # no second array: fresh memory takes longer than the sum
    return (var - step,)


def proximal_gradient_descent(
    xp: ArrayModule, var: Array, alpha: Array, l1: Array, l2: Array, delta: Array
) -> tuple[Array]:
    """A step down the gradient, then the proximal step for the L1 and L2 penalties."""
    return (_shrink(xp, var - alpha * delta, alpha * l1) / (1 + alpha * l2),)


def momentum(
    xp: ArrayModule, var: Array, accum: Array, lr: Array, grad: Array, momentum: Array, *, use_nesterov: bool
) -> tuple[Array, Array]:
    """Momentum over unscaled gradients."""
    accum = accum * momentum + grad
    step = grad + momentum * accum if use_nesterov else accum
    return var - lr * step, accum


def keras_momentum(
    xp: ArrayModule, var: Array, accum: Array, lr: Array, grad: Array, momentum: Array, *, use_nesterov: bool
) -> tuple[Array, Array]:
    """Momentum over gradients scaled by the learning rate."""
    accum = accum * momentum - lr * grad
    return var + (accum * momentum - lr * grad if use_nesterov else accum), accum


def adagrad(
    xp: ArrayModule, var: Array, accum: Array, lr: Array, grad: Array, *, update_slots: bool
) -> tuple[Array, Array]:
    """Steps scaled by the root of the sum of all squared gradients."""
    if update_slots:
        accum = accum + xp.square(grad)
    return var - lr * grad / xp.sqrt(accum), accum


def adagrad_v2(
    xp: ArrayModule, var: Array, accum: Array, lr: Array, epsilon: Array, grad: Array, *, update_slots: bool
) -> tuple[Array, Array]:
    """Adagrad with `epsilon` beside the root."""
    if update_slots:
        accum = accum + xp.square(grad)
    return var - lr * grad / (xp.sqrt(accum) + epsilon), accum


def proximal_adagrad(
    xp: ArrayModule, var: Array, accum: Array, lr: Array, l1: Array, l2: Array, grad: Array
) -> tuple[Array, Array]:
    """Adagrad, then the proximal step for the L1 and L2 penalties."""
    accum = accum + xp.square(grad)
    rate = lr / xp.sqrt(accum)
    return _shrink(xp, var - rate * grad, rate * l1) / (1 + rate * l2), accum


def adagrad_da(
    xp: ArrayModule,
    var: Array,
    gradients: Array,
    squares: Array,
    grad: Array,
    lr: Array,
    l1: Array,
    l2: Array,
    global_step: Array,
) -> tuple[Array, Array, Array]:
    """Dual averaging: the variable is made anew from the sums of all gradients."""
    steps = xp.asarray(global_step).astype(grad.dtype)
    gradients = gradients + grad
    squares = squares + xp.square(grad)
    var = -lr * _shrink(xp, gradients, l1 * steps) / (l2 * steps * lr + xp.sqrt(squares))
    return var, gradients, squares


def adadelta(
    xp: ArrayModule,
    var: Array,
    accum: Array,
    accum_update: Array,
    lr: Array,
    rho: Array,
    epsilon: Array,
    grad: Array,
) -> tuple[Array, Array, Array]:
    """Steps in the units of the variable: the root of past updates over the root of past gradients."""
    accum = accum * rho + xp.square(grad) * (1 - rho)
    update = stored(xp, xp.sqrt(accum_update + epsilon) / xp.sqrt(accum + epsilon) * grad)
    accum_update = accum_update * rho + xp.square(update) * (1 - rho)
    return var - lr * update, accum, accum_update


def adam(
    xp: ArrayModule, var: Array, m: Array, v: Array, beta1_power: Array, beta2_power: Array, lr: Array, beta1: Array, beta2: Array,
    epsilon: Array, grad: Array, *, use_nesterov: bool,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """First moment over the root of the second, both corrected for their start at zero."""
    rate = lr * xp.sqrt(1 - beta2_power) / (1 - beta1_power)
    m = m + (grad - m) * (1 - beta1)
    v = v + (xp.square(grad) - v) * (1 - beta2)
    step = m * beta1 + (1 - beta1) * grad if use_nesterov else m
    return var - rate * step / (xp.sqrt(v) + epsilon), m, v


def adam_with_amsgrad(
    xp: ArrayModule, var: Array, m: Array, v: Array, vhat: Array, beta1_power: Array, beta2_power: Array, lr: Array, beta1: Array,
    beta2: Array, epsilon: Array, grad: Array,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """Adam whose second moment never falls."""
    rate = lr * xp.sqrt(1 - beta2_power) / (1 - beta1_power)
    m = m + (grad - m) * (1 - beta1)
    v = v + (xp.square(grad) - v) * (1 - beta2)
    vhat = xp.maximum(vhat, v)
    return var - rate * m / (xp.sqrt(vhat) + epsilon), m, v, vhat


def ada_max(
    xp: ArrayModule,
    var: Array,
    m: Array,
    v: Array,
    beta1_power: Array,
    lr: Array,
    beta1: Array,
    beta2: Array,
    epsilon: Array,
    grad: Array,
) -> tuple[Array, Array, Array]:
    """Adam with the largest past gradient in place of the second moment."""
    m = m + (grad - m) * (1 - beta1)
    v = xp.maximum(beta2 * v, xp.abs(grad))
    return var - lr / (1 - beta1_power) * (m / (v + epsilon)), m, v


def rms_prop(
    xp: ArrayModule,
    var: Array,
    ms: Array,
    mom: Array,
    lr: Array,
    rho: Array,
    momentum: Array,
    epsilon: Array,
    grad: Array,
) -> tuple[Array, Array, Array]:
    """Momentum over gradients scaled by the root of their running mean square."""
    ms = ms + (xp.square(grad) - ms) * (1 - rho)
    mom = mom * momentum + lr * grad / xp.sqrt(ms + epsilon)
    return var - mom, ms, mom


def centered_rms_prop(
    xp: ArrayModule,
    var: Array,
    mg: Array,
    ms: Array,
    mom: Array,
    lr: Array,
    rho: Array,
    momentum: Array,
    epsilon: Array,
    grad: Array,
) -> tuple[Array, Array, Array, Array]:
    """RMSProp scaled by the running standard deviation instead."""
    mg = mg + (grad - mg) * (1 - rho)
    ms = ms + (xp.square(grad) - ms) * (1 - rho)
    mom = mom * momentum + lr * grad / xp.sqrt(ms - xp.square(mg) + epsilon)
    return var - mom, mg, ms, mom


def _is_half(exponent: Array) -> bool:
    return isinstance(exponent, (np.ndarray, np.generic)) and bool(exponent == 0.5)


def _power(xp: ArrayModule, x: Array, exponent: Array) -> Array:
    return xp.sqrt(x) if _is_half(exponent) else xp.power(x, exponent)


def ftrl(
    xp: ArrayModule, var: Array, accum: Array, linear: Array, grad: Array, lr: Array, l1: Array, l2: Array, lr_power: Array, *,
    multiply_linear_by_lr: bool,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Follow the regularized leader."""
    return _ftrl(xp, var, accum, linear, grad, grad, lr, l1, l2, lr_power, multiply_linear_by_lr)


def ftrl_v2(
    xp: ArrayModule, var: Array, accum: Array, linear: Array, grad: Array, lr: Array, l1: Array, l2: Array, l2_shrinkage: Array,
    lr_power: Array, *, multiply_linear_by_lr: bool,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Follow the regularized leader, shrinking the variable a little at each step."""
    shrunk = grad + 2 * l2_shrinkage * var
    return _ftrl(xp, var, accum, linear, grad, shrunk, lr, l1, l2, lr_power, multiply_linear_by_lr)


def _ftrl(
    xp: ArrayModule, var: Array, accum: Array, linear: Array, grad: Array, shrunk: Array, lr: Array, l1: Array, l2: Array,
    lr_power: Array, by_lr: bool,
) -> tuple[Array, Array, Array]:  # fmt: skip
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
        from tensorfleet.kernels.xla import lax

        linear, accum = lax.optimization_barrier((linear, accum))
        total = accum + xp.square(grad)
        root = xp.sqrt(total)
    scale = root + 2 * l2 * lr if by_lr else root / lr + 2 * l2
    var = xp.where(xp.abs(linear) > reach, (reach * xp.sign(linear) - linear) / scale, 0)
    return var.astype(linear.dtype), total, linear


def add_sign(
    xp: ArrayModule,
    var: Array,
    m: Array,
    lr: Array,
    alpha: Array,
    sign_decay: Array,
    beta: Array,
    grad: Array,
) -> tuple[Array, Array]:
    """Larger steps where gradient and momentum agree in sign, by adding."""
    m = m * beta + grad * (1 - beta)
    return var - lr * (alpha + sign_decay * xp.sign(grad) * xp.sign(m)) * grad, m


def power_sign(
    xp: ArrayModule,
    var: Array,
    m: Array,
    lr: Array,
    logbase: Array,
    sign_decay: Array,
    beta: Array,
    grad: Array,
) -> tuple[Array, Array]:
    """Larger steps where gradient and momentum agree in sign, by a power."""
    m = m * beta + grad * (1 - beta)
    return var - lr * xp.exp(logbase * sign_decay * xp.sign(grad) * xp.sign(m)) * grad, m
