"""The update of variables that have copies: gradients of all replicas are added, then applied to each copy."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tensorfleet.api.distribute import context
from tensorfleet.api.distribute.context import ReduceOp
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import colocate_with, control_dependencies, name_scope
from tensorfleet.ops.array.basic import group

if TYPE_CHECKING:
    from tensorfleet.api.distribute.strategy import Strategy
    from tensorfleet.api.train.optimizer import Optimizer
    from tensorfleet.api.train.types import Gradient
    from tensorfleet.api.variables.variable import Variable


def updates_copies() -> bool:
    """Whether gradients go to variables with copies; in a scope outside of replicas they cannot be applied at all."""
    here = context.current()
    if here.replica is None and here.updating is None:
        raise RuntimeError(
            "Use `_distributed_apply()` instead of `apply_gradients()` in a cross-replica context. Call the optimizer "
            "in the function that strategy.experimental_run_v2 calls for each replica."
        )
    return here.strategy.extended._has_copies


def apply_gradients(
    optimizer: Optimizer,
    pairs: Sequence[tuple[Gradient, Variable]],
    global_step: Variable | None,
    name: str | None,
) -> Operation:
    """`optimizer.apply_gradients` inside a replica."""
    live = [(grad, var) for grad, var in pairs if grad is not None]
    if not live:
        raise ValueError(f"No gradients provided for any variable: {[v.name for _, v in pairs]}.")
    merge = functools.partial(_apply, optimizer)
    applied: Operation = context.get_replica_context().merge_call(
        lambda strategy, *given: merge(strategy, *given), args=(live, global_step, name)
    )
    return applied


def _apply(
    optimizer: Optimizer,
    strategy: Strategy,
    pairs: Sequence[tuple[Gradient, Variable]],
    global_step: Variable | None,
    name: str | None,
) -> Operation:
    reduced = strategy.extended.batch_reduce_to(ReduceOp.SUM, pairs)
    return _apply_reduced(optimizer, strategy, reduced, [var for _, var in pairs], global_step, name)


def apply_above(
    optimizer: Optimizer,
    pairs: Sequence[tuple[Gradient, Variable]],
    global_step: Variable | None,
    name: str | None,
) -> Operation:
    """`optimizer.apply_gradients` above the replicas, for gradients of one model for all replicas of this process."""
    strategy = context.get_strategy()
    live = [(grad, var) for grad, var in pairs if grad is not None]
    # Keras computes one gradient for all replicas of a process; only the workers differ.
    reduced = strategy.extended._mean_over_workers([grad for grad, _ in live])
    return _apply_reduced(optimizer, strategy, reduced, [var for _, var in live], global_step, name)


def _apply_reduced(
    optimizer: Optimizer,
    strategy: Strategy,
    reduced: list[Any],
    variables: list[Variable],
    global_step: Variable | None,
    name: str | None,
) -> Operation:
    from tensorfleet.api.train.optimizer import collect_train_op

    extended = strategy.extended
    with control_dependencies(None):
        optimizer._create_slots(variables)

    def update(copy: Variable, grad: Tensor | IndexedSlices) -> Any:
        with name_scope("update_" + copy.op.name), colocate_with(copy.op):
            return optimizer._apply_gradient(grad, copy)

    with name_scope(name, optimizer._name) as scope:
        optimizer._prepare()
        updates: list[Any] = []
        for grad, var in zip(reduced, variables, strict=True):
            updates += extended.update(var, update, args=(grad,), group=False)
        done = optimizer._finish(updates, scope if global_step is None else "update")
        done = done.op if isinstance(done, Tensor) else done
        if global_step is not None:
            with control_dependencies([done]):
                counted = extended.update(
                    global_step, lambda v: v.assign_add(1, read_value=False), group=False
                )
            done = group(*counted, name=scope)
    return collect_train_op(done)
