"""`tf.contrib.opt`: optimizers around another one, that clip variables or leave some steps out."""

from __future__ import annotations

import contextlib
from typing import Any

from tensorfleet.api.train.optimizer import Optimizer
from tensorfleet.base import logging
from tensorfleet.base.naming import export, find
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.scopes import colocate_with, control_dependencies, name_scope
from tensorfleet.ops.array.basic import group
from tensorfleet.ops.state.scatter_variables import scatter_update


@export("contrib.opt.VariableClippingOptimizer")
class VariableClippingOptimizer(Optimizer):
    """Keeps the norms of variables, over some of their dimensions, below a bound after each step.

    `vars_to_clip_dims` maps variables to the dimensions of a norm. Of a variable whose gradient is by rows, only
    these rows are looked at.
    """

    def __init__(
        self,
        opt: Any,
        vars_to_clip_dims: dict,
        max_norm: float,
        use_locking: bool = False,
        colocate_clip_ops_with_vars: bool = False,
        name: str = "VariableClipping",
    ) -> None:
        super().__init__(use_locking, name)
        self._opt = opt
        self._dims = {id(var): (var, list(dims)) for var, dims in vars_to_clip_dims.items()}
        self._max_norm = max_norm
        self._colocate = colocate_clip_ops_with_vars

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        return self._opt.compute_gradients(*args, **kwargs)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> list[str]:
        return self._opt.get_slot_names(*args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """Applies gradients, then clips what was changed."""
        pairs = list(grads_and_vars)
        with name_scope(name, self._name) as scope:
            trained = self._opt.apply_gradients(pairs, global_step=global_step)
            clipped = []
            with control_dependencies([trained]):
                for grad, var in pairs:
                    if grad is not None and id(var) in self._dims:
                        clipped.append(self._clipped(grad, var, self._dims[id(var)][1]))
            return group(trained, *clipped, name=scope)

    def _clipped(self, grad: Any, var: Any, dims: list[int]) -> Any:
        with colocate_with(var.op) if self._colocate else contextlib.nullcontext():
            by_rows = isinstance(grad, IndexedSlices)
            if by_rows and 0 in dims:
                logging.warning(
                    "Clipping %s over its rows: all of it is looked at, at each step.", var.op.name
                )
            if not by_rows or 0 in dims:
                bounded = find("clip_by_norm")(var.read_value(), self._max_norm, dims)
                return var.assign(bounded, use_locking=self._use_locking)
            indices = apply_list("Unique", grad.indices)[0]
            rows = apply("GatherV2", var.read_value(), indices, 0)
            bounded = find("clip_by_norm")(rows, self._max_norm, dims)
            return scatter_update(var, indices, bounded, use_locking=self._use_locking)


@export("contrib.opt.MultitaskOptimizerWrapper")
class MultitaskOptimizerWrapper:
    """Lets an optimizer alone with a variable, its moments too, when the variable's gradient is all zero.

    For models with several tasks of which each step trains one.
    """

    def __init__(self, opt: Any) -> None:
        if not isinstance(opt, Optimizer):
            raise TypeError(f"Supplied optimizer must be an instance of tf.train.Optimizer, not {type(opt)}.")
        self._opt = opt
        for method in (
            "_apply_dense",
            "_resource_apply_dense",
            "_apply_sparse_duplicate_indices",
            "_resource_apply_sparse_duplicate_indices",
        ):
            setattr(opt, method, _unless_zero(getattr(opt, method)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._opt, name)


def _unless_zero(update: Any) -> Any:
    """An optimizer's update of one variable that is left out for a gradient of zeros."""

    def guarded(grad: Any, *args: Any) -> Any:
        values = grad.values if isinstance(grad, IndexedSlices) else grad
        zero = find("equal")(find("count_nonzero")(values), to_tensor(0, "int64"))

        def change() -> Any:
            with control_dependencies([group(update(grad, *args))]):
                return to_tensor(True)

        return group(find("cond")(zero, lambda: to_tensor(False), change))

    return guarded


@export(
    "contrib.opt.clip_gradients_by_global_norm",
    "contrib.opt.python.training.multitask_optimizer_wrapper.clip_gradients_by_global_norm",
)
def clip_gradients_by_global_norm(gradients_variables: Any, clip_norm: float = 20.0) -> tuple[list, Any]:
    """The pairs with gradients scaled so that their norm together is at most `clip_norm`, and that norm before."""
    pairs = list(gradients_variables)
    clipped, norm = find("clip_by_global_norm")([g for g, _ in pairs], clip_norm)
    return list(zip(clipped, [v for _, v in pairs], strict=True)), norm
