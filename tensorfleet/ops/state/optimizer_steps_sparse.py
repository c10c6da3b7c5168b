"""Optimizer steps on some rows of variables, in place: the SparseApply* and ResourceSparseApply* ops."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, ArrayModule
from tensorfleet.graph.kernel_types import Kernel
from tensorfleet.graph.operation import Operation
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.kernels import optimizer_rules as rules
from tensorfleet.kernels.lane_kernels import LaneKernel
from tensorfleet.kernels.lanes import Lanes
from tensorfleet.kernels.rows import IndexTurns, check_rows, put_rows
from tensorfleet.ops.common import SCALAR
from tensorfleet.ops.state.optimizer_steps import Rule, bare_names, flag_attrs, state_shape, typed

# Elements that are changed at a time: what a rule computes in between then stays in the cache.
_PIECE_ELEMENTS = 1 << 15


def _sparse_shape(op: Operation) -> TensorShape | list[TensorShape]:
    """Variable and slots have one shape, the gradient a row for each index; all else are scalars."""
    shape = state_shape(op, 0)
    named = {arg.name: t.shape for arg, t in zip(op.spec.inputs, op._inputs, strict=True)}
    for i, arg in enumerate(op.spec.inputs):
        if i in op.spec.updates:
            shape = shape.merge_with(state_shape(op, i))
        elif arg.name not in ("grad", "indices"):
            op._inputs[i].shape.merge_with(SCALAR)
    indices = named["indices"].with_rank(1)
    if shape.rank == 0:
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    rest = TensorShape(None) if shape.rank is None else shape[1:]
    named["grad"].merge_with(indices.concatenate(rest))
    return shape if op.spec.outputs else []


def _check(var: Array, grad: Array, indices: Array) -> Array:
    if indices.ndim != 1:
        raise errors.invalid("indices must be one-dimensional")
    if grad.shape != (indices.shape[0], *var.shape[1:]):
        raise errors.invalid(
            "grad must be the same size as indices in the first dimension, and as var in the others: grad "
            f"has {list(grad.shape)}, indices {list(indices.shape)}, var {list(var.shape)}"
        )
    return check_rows(indices, var.shape[0], "Index {value} at offset {where} in indices is out of range")


def _kernel(rule: Rule, state: list[str], inputs: list[str], flags: tuple[str, ...]) -> Kernel:
    count, grad_at, indices_at = len(state), inputs.index("grad"), inputs.index("indices")
    positions = _positions(rule, count, inputs)

    def kernel(xp: ArrayModule, *values: Array, op: Operation) -> None:
        arrays, grad = values[:count], np.asarray(values[grad_at])
        flat = _check(arrays[0], grad, np.asarray(values[indices_at]))
        if not flat.size:
            return
        chosen = {flag: op._attrs[flag] for flag in flags}

        def step(where: Array | slice) -> None:
            at, some = flat[where], grad[where]
            rest = [some if p == grad_at else values[p] for p in positions]
            new = rule(np, *[a.take(at, axis=0) for a in arrays], *rest, **chosen)
            for array, value in zip(arrays, new, strict=True):
                put_rows(array, at, value)

        IndexTurns(flat, len(arrays[0])).each(step, grad.size // len(flat))

    return kernel


def _several(rule: Rule, state: list[str], inputs: list[str], flags: tuple[str, ...]) -> LaneKernel:
    """The new rows of several variables at once, made of their old ones; no row occurs twice."""
    count, grad_at = len(state), inputs.index("grad")
    positions = _positions(rule, count, inputs)

    def several(ops: list[Operation], given: Sequence[Any]) -> tuple[Lanes, ...] | None:
        rows, grad = given[:count], given[grad_at]
        scalars = [given[p] for p in positions if p != grad_at]
        if grad.data.shape != rows[0].data.shape or any(isinstance(s, Lanes) or s.ndim for s in scalars):
            return None
        chosen = {flag: ops[0]._attrs[flag] for flag in flags}
        piece = max(_PIECE_ELEMENTS // max(math.prod(grad.data.shape[1:]), 1), 1)
        for start in range(0, len(grad.data), piece):
            part = slice(start, start + piece)
            old = [r.data[part] for r in rows]
            rest = [grad.data[part] if p == grad_at else given[p] for p in positions]
            for to, new in zip(old, rule(np, *old, *rest, **chosen), strict=True):
                to[...] = new
        return tuple(rows)

    return several


def _positions(rule: Rule, count: int, inputs: list[str]) -> list[int]:
    """The inputs of the op in the order in which the rule wants them, after its variables."""
    # The rule wants its arguments in the dense op's order, where "grad" may be called "delta".
    takes = [p.name for p in inspect.signature(rule).parameters.values() if p.kind is not p.KEYWORD_ONLY][1:]
    return [inputs.index("grad" if n == "delta" else n) for n in takes[count:]]


def _register(
    name: str, rule: Rule, state: str, rest: str, flags: tuple[str, ...] = (), resource_only: bool = False
) -> None:
    """Declares SparseApply<name> and ResourceSparseApply<name>."""
    variables = bare_names(state)
    inputs = variables + bare_names(rest)
    kernel = _kernel(rule, variables, inputs, flags)
    shared: dict[str, Any] = {"shape": _sparse_shape, "updates": variables, "rows": "indices"}
    shared["joined"] = _several(rule, variables, inputs, flags)
    rest = rest.replace("indices", "indices: Tindices")
    attrs = f"T: number; Tindices: index; {flag_attrs(flags)}"
    if not resource_only:
        signature = f"{typed(state, 'Ref(T)')}, {typed(rest, 'T')} -> out: Ref(T)"
        op(f"SparseApply{name}", signature, attrs, **shared)(kernel)
        not_differentiable(f"SparseApply{name}")
    signature = f"{typed(state, 'resource')}, {typed(rest, 'T')} ->"
    op(f"ResourceSparseApply{name}", signature, attrs, stateful=True, **shared)(kernel)
    not_differentiable(f"ResourceSparseApply{name}")


_register("ProximalGradientDescent", rules.proximal_gradient_descent, "var", "alpha, l1, l2, grad, indices")
_register("Momentum", rules.momentum, "var, accum", "lr, grad, indices, momentum", ("use_nesterov",))
_register(
    "KerasMomentum",
    rules.keras_momentum,
    "var, accum",
    "lr, grad, indices, momentum",
    ("use_nesterov",),
    resource_only=True,
)
_register("Adagrad", rules.adagrad, "var, accum", "lr, grad, indices", ("update_slots",))
_register("AdagradV2", rules.adagrad_v2, "var, accum", "lr, epsilon, grad, indices", ("update_slots",))
_register("ProximalAdagrad", rules.proximal_adagrad, "var, accum", "lr, l1, l2, grad, indices")
_register(
    "AdagradDA",
    rules.adagrad_da,
    "var, gradient_accumulator, gradient_squared_accumulator",
    "grad, indices, lr, l1, l2, global_step: int64",
)
_register("Adadelta", rules.adadelta, "var, accum, accum_update", "lr, rho, epsilon, grad, indices")
_register("RMSProp", rules.rms_prop, "var, ms, mom", "lr, rho, momentum, epsilon, grad, indices")
_register(
    "CenteredRMSProp",
    rules.centered_rms_prop,
    "var, mg, ms, mom",
    "lr, rho, momentum, epsilon, grad, indices",
)
_register(
    "Ftrl",
    rules.ftrl,
    "var, accum, linear",
    "grad, indices, lr, l1, l2, lr_power",
    ("multiply_linear_by_lr",),
)
_register(
    "FtrlV2",
    rules.ftrl_v2,
    "var, accum, linear",
    "grad, indices, lr, l1, l2, l2_shrinkage, lr_power",
    ("multiply_linear_by_lr",),
)
