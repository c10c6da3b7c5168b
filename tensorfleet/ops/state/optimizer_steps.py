"""Optimizer steps on whole variables: the Apply* and ResourceApply* ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, ArrayModule, Dims
from tensorfleet.graph.kernel_types import Kernel
from tensorfleet.graph.operation import Operation
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.kernels import optimizer_rules as rules
from tensorfleet.ops.common import SCALAR

#: The new values of a variable and its slots: `rule(xp, *variables, *other_inputs, **flags)`.
Rule: TypeAlias = Callable[..., Sequence[Array]]

_GRADIENTS = ("grad", "delta")


def state_shape(op: Operation, position: int) -> TensorShape:
    """The shape of the variable that an input refers to, by reference or by handle."""
    tensor = op._inputs[position]
    if tensor.dtype._is_ref_dtype:
        return tensor.shape
    source = tensor.op
    while source.type in ("Identity", "Enter", "Switch"):
        source = source._inputs[0].op
    return source._attrs["shape"] if source.type == "VarHandleOp" else TensorShape(None)


def _dense_shape(op: Operation) -> TensorShape | list[TensorShape]:
    """Variable, slots and gradient have one shape; all else are scalars."""
    shape = state_shape(op, 0)
    for i, arg in enumerate(op.spec.inputs):
        if i in op.spec.updates:
            shape = shape.merge_with(state_shape(op, i))
        elif arg.name in _GRADIENTS:
            shape = shape.merge_with(op._inputs[i].shape)
        else:
            op._inputs[i].shape.merge_with(SCALAR)
    return shape if op.spec.outputs else []


def bare_names(names: str) -> list[str]:
    """The argument names in "var, lr, global_step: int64"."""
    return [n.partition(":")[0].strip() for n in names.split(",")]


def typed(names: str, kind: str) -> str:
    """The names with `kind` as the type of those that have none."""
    return ", ".join(n if ":" in n else f"{n}: {kind}" for n in map(str.strip, names.split(",")))


def flag_attrs(flags: tuple[str, ...]) -> str:
    """The attributes of every training op, then the attributes that choose a variant of the rule."""
    defaults = {"update_slots": "true"}
    return "use_locking: bool = false" + "".join(f"; {f}: bool = {defaults.get(f, 'false')}" for f in flags)


def _kernel(rule: Rule, count: int, rest: list[str], flags: tuple[str, ...]) -> Kernel:
    # Inputs of the variable's shape; the others are scalars.
    whole = [True] * count + [name in _GRADIENTS for name in rest]

    def kernel(xp: ArrayModule, *values: Array, op: Operation) -> tuple[Array, ...]:
        shape, dtype = values[0].shape, values[0].dtype
        for i, value in enumerate(values):
            if value.shape != (shape if whole[i] else ()):
                wanted = shape if whole[i] else ()
                raise _mismatch(op.spec.inputs[i].name, shape, value.shape, wanted)
        attrs = op._attrs
        new = rule(xp, *values, **{flag: attrs[flag] for flag in flags}) if flags else rule(xp, *values)
        # A rule may pass on an array that it got: only that one must be copied, as the store will own it.
        inputs = [id(value) for value in values]
        return tuple([n if n.dtype == dtype and id(n) not in inputs else n.astype(dtype) for n in new])

    return kernel


def _descend_in_place(op: Operation, var: Array, alpha: Array, delta: Array) -> None:
    np.subtract(var, alpha * delta, out=var)


def _momentum_in_place(
    op: Operation, var: Array, accum: Array, lr: Array, grad: Array, momentum: Array
) -> None:
    np.multiply(accum, momentum, out=accum)
    np.add(accum, grad, out=accum)
    step = grad + momentum * accum if op._attrs["use_nesterov"] else accum
    np.subtract(var, lr * step, out=var)


def _mismatch(name: str, shape: Dims, got: Dims, wanted: Dims) -> Exception:
    if wanted == ():
        return errors.invalid(f"{name} is not a scalar: {list(got)}")
    return errors.invalid(f"var and {name} do not have the same shape {list(shape)} {list(got)}")


def _register(
    name: str, rule: Rule, state: str, rest: str, flags: tuple[str, ...] = (), resource_only: bool = False
) -> None:
    """Declares Apply<name> and ResourceApply<name>: `state` are the variables, `rest` the other inputs."""
    variables = bare_names(state)
    kernel = _kernel(rule, len(variables), bare_names(rest), flags)
    # Rules of more than a few operations are several times faster in XLA than piece by piece in numpy.
    in_place = {"GradientDescent": _descend_in_place, "Momentum": _momentum_in_place}.get(name)
    shared: dict[str, Any] = {"shape": _dense_shape, "updates": variables, "elementwise": in_place}
    attrs = f"T: number; {flag_attrs(flags)}"
    if not resource_only:
        signature = f"{typed(state, 'Ref(T)')}, {typed(rest, 'T')} -> out: Ref(T)"
        op(f"Apply{name}", signature, attrs, **shared)(kernel)
        not_differentiable(f"Apply{name}")
    signature = f"{typed(state, 'resource')}, {typed(rest, 'T')} ->"
    op(f"ResourceApply{name}", signature, attrs, stateful=True, **shared)(kernel)
    not_differentiable(f"ResourceApply{name}")


_register("GradientDescent", rules.gradient_descent, "var", "alpha, delta")
_register("ProximalGradientDescent", rules.proximal_gradient_descent, "var", "alpha, l1, l2, delta")
_register("Momentum", rules.momentum, "var, accum", "lr, grad, momentum", ("use_nesterov",))
_register(
    "KerasMomentum",
    rules.keras_momentum,
    "var, accum",
    "lr, grad, momentum",
    ("use_nesterov",),
    resource_only=True,
)
_register("Adagrad", rules.adagrad, "var, accum", "lr, grad", ("update_slots",))
_register("AdagradV2", rules.adagrad_v2, "var, accum", "lr, epsilon, grad", ("update_slots",))
_register("ProximalAdagrad", rules.proximal_adagrad, "var, accum", "lr, l1, l2, grad")
_register(
    "AdagradDA",
    rules.adagrad_da,
    "var, gradient_accumulator, gradient_squared_accumulator",
    "grad, lr, l1, l2, global_step: int64",
)
_register("Adadelta", rules.adadelta, "var, accum, accum_update", "lr, rho, epsilon, grad")
_register(
    "Adam",
    rules.adam,
    "var, m, v",
    "beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad",
    ("use_nesterov",),
)
_register(
    "AdamWithAmsgrad",
    rules.adam_with_amsgrad,
    "var, m, v, vhat",
    "beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad",
    resource_only=True,
)
_register("AdaMax", rules.ada_max, "var, m, v", "beta1_power, lr, beta1, beta2, epsilon, grad")
_register("RMSProp", rules.rms_prop, "var, ms, mom", "lr, rho, momentum, epsilon, grad")
_register("CenteredRMSProp", rules.centered_rms_prop, "var, mg, ms, mom", "lr, rho, momentum, epsilon, grad")
_register("Ftrl", rules.ftrl, "var, accum, linear", "grad, lr, l1, l2, lr_power", ("multiply_linear_by_lr",))
_register(
    "FtrlV2",
    rules.ftrl_v2,
    "var, accum, linear",
    "grad, lr, l1, l2, l2_shrinkage, lr_power",
    ("multiply_linear_by_lr",),
)
_register("AddSign", rules.add_sign, "var, m", "lr, alpha, sign_decay, beta, grad")
_register("PowerSign", rules.power_sign, "var, m", "lr, logbase, sign_decay, beta, grad")
