"""`tf.contrib.opt`: variants of Adam, weight decay apart from the loss, averages, and gradients that may be too old."""

from __future__ import annotations

from typing import Any

from tensorfleet.api.train.adam import AdamOptimizer
from tensorfleet.api.train.moving_averages import ExponentialMovingAverage
from tensorfleet.api.train.optimizer import Optimizer, cast
from tensorfleet.api.train.optimizers import MomentumOptimizer
from tensorfleet.api.train.saveables import by_name
from tensorfleet.api.train.saver import Saver
from tensorfleet.api.variables.base import Variable
from tensorfleet.api.variables.lists import global_variables
from tensorfleet.base.naming import export, find
from tensorfleet.graph.apply import apply, apply_op
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import GraphKeys, colocate_with, control_dependencies
from tensorfleet.ops.array.basic import group, identity
from tensorfleet.ops.state.scatter_variables import scatter_add, scatter_sub
from tensorfleet_legacy.contrib.opt.powersign import ByGlobalStep, ByRows


def _gather(var: Any, indices: Any) -> Tensor:
    return apply("GatherV2", to_tensor(var), indices, 0)


def _now(value: Any) -> Tensor:
    """The value at this place among the control dependencies."""
    return value.read_value() if isinstance(value, Variable) else to_tensor(value)


def _after(gradient: Any) -> Any:
    """The gradient, after the control dependencies."""
    if isinstance(gradient, IndexedSlices):
        return IndexedSlices(identity(gradient.values), gradient.indices, gradient.dense_shape)
    return identity(gradient)


@export("contrib.opt.LazyAdamOptimizer")
class LazyAdamOptimizer(ByRows, AdamOptimizer):
    """Adam that, for a gradient by rows, changes only these rows and their moments."""

    def _apply_rows(self, grad: Any, var: Any, indices: Any) -> Any:
        power1, power2, lr, beta1, beta2, epsilon = self._hyperparameters(var.dtype.base_dtype)
        rate = lr * apply("Sqrt", 1 - to_tensor(power2)) / (1 - to_tensor(power1))
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        m_rows = beta1 * _gather(m, indices) + (1 - beta1) * grad
        v_rows = beta2 * _gather(v, indices) + (1 - beta2) * apply("Square", grad)
        step = rate * m_rows / (apply("Sqrt", v_rows) + epsilon)
        return self._moved(var, indices, step, m=m_rows, v=v_rows)


@export("contrib.opt.LazyAdamGSOptimizer")
class LazyAdamGSOptimizer(ByGlobalStep, LazyAdamOptimizer):
    """`LazyAdamOptimizer` that takes the number of steps so far from the global step."""


@export("contrib.opt.NadamOptimizer")
class NadamOptimizer(AdamOptimizer):
    """Adam with Nesterov's momentum."""

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        rates = self._hyperparameters(var.dtype.base_dtype)
        flags: dict[str, Any] = {"use_locking": self._use_locking, "use_nesterov": True}
        return apply("ApplyAdam", var, m, v, *rates, grad, **flags).op

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        m, v = self.get_slot(handle, "m"), self.get_slot(handle, "v")
        rates = self._hyperparameters(grad.dtype.base_dtype)
        flags: dict[str, Any] = {"use_locking": self._use_locking, "use_nesterov": True}
        return apply_op("ResourceApplyAdam", handle.handle, m.handle, v.handle, *rates, grad, **flags)

    def _apply_sparse_shared(self, grad: Any, var: Any, indices: Any, scatter_add: Any) -> Any:
        """Decays the whole of both moments, and moves the rows that have a gradient."""
        power1, power2, lr, beta1, beta2, epsilon = self._hyperparameters(var.dtype.base_dtype)
        rate = lr * apply("Sqrt", 1 - to_tensor(power2)) / (1 - to_tensor(power1))
        m_t = self._decayed(self.get_slot(var, "m"), beta1, grad, None, indices, scatter_add)
        v_t = self._decayed(self.get_slot(var, "v"), beta2, grad, grad, indices, scatter_add)
        ahead = grad * (1 - beta1) + beta1 * _gather(m_t, indices)
        step = rate * ahead / (apply("Sqrt", _gather(v_t, indices)) + epsilon)
        return group(scatter_sub(var, indices, step, use_locking=self._use_locking), m_t, v_t)


@export("contrib.opt.DecoupledWeightDecayExtension")
class DecoupledWeightDecayExtension:
    """Shrinks variables by a part of themselves at each step, before an optimizer moves them.

    Goes in front of an optimizer in the list of base classes; `decay_var_list` says which variables decay.
    """

    def __init__(self, weight_decay: Any, **kwargs: Any) -> None:
        self._weight_decay = weight_decay
        self._weight_decay_tensor: Any = None
        self._decay_var_list: set | None = None
        super().__init__(**kwargs)

    def minimize(self, loss: Any, *args: Any, decay_var_list: Any = None, **kwargs: Any) -> Any:
        """Like `Optimizer.minimize`; `decay_var_list` are the variables that decay, by default all."""
        self._decay_var_list = set(decay_var_list) if decay_var_list else None
        return super().minimize(loss, *args, **kwargs)  # type: ignore[misc]

    def apply_gradients(
        self,
        grads_and_vars: Any,
        global_step: Any = None,
        name: str | None = None,
        decay_var_list: Any = None,
    ) -> Any:
        """Like `Optimizer.apply_gradients`; `decay_var_list` are the variables that decay, by default all."""
        if decay_var_list:
            self._decay_var_list = set(decay_var_list)
        return super().apply_gradients(grads_and_vars, global_step, name)  # type: ignore[misc]

    def _prepare(self) -> None:
        decay = self._weight_decay
        self._weight_decay_tensor = to_tensor(decay() if callable(decay) else decay, name="weight_decay")
        super()._prepare()  # type: ignore[misc]

    def _decays(self, var: Any) -> bool:
        return self._decay_var_list is None or var in self._decay_var_list

    def _decayed_whole(self, var: Any) -> list:
        if not self._decays(var):
            return []
        part = cast(self._weight_decay_tensor, var.dtype.base_dtype) * to_tensor(var)
        return [var.assign_sub(part, use_locking=self._use_locking)]  # type: ignore[attr-defined]

    def _decayed_rows(self, var: Any, indices: Any) -> list:
        if not self._decays(var):
            return []
        part = cast(self._weight_decay_tensor, var.dtype.base_dtype) * _gather(var, indices)
        return [scatter_add(var, indices, -part, use_locking=self._use_locking)]  # type: ignore[attr-defined]

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        with control_dependencies(self._decayed_whole(var)):
            return super()._apply_dense(grad, var)  # type: ignore[misc]

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        with control_dependencies(self._decayed_whole(var)):
            return super()._resource_apply_dense(grad, var)  # type: ignore[misc]

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        with control_dependencies(self._decayed_rows(var, grad.indices)):
            return super()._apply_sparse(grad, var)  # type: ignore[misc]

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        with control_dependencies(self._decayed_rows(var, indices)):
            return super()._resource_apply_sparse(grad, var, indices)  # type: ignore[misc]


@export("contrib.opt.extend_with_decoupled_weight_decay")
def extend_with_decoupled_weight_decay(base_optimizer: type) -> type:
    """A class like an optimizer's, whose first argument is the weight decay."""

    class OptimizerWithDecoupledWeightDecay(DecoupledWeightDecayExtension, base_optimizer):
        """An optimizer whose variables decay apart from their gradients."""

        def __init__(self, weight_decay: Any, *args: Any, **kwargs: Any) -> None:
            base_optimizer.__init__(self, *args, **kwargs)  # type: ignore[misc]
            self._weight_decay = weight_decay
            self._weight_decay_tensor = None
            self._decay_var_list = None

    return OptimizerWithDecoupledWeightDecay


@export("contrib.opt.AdamWOptimizer")
class AdamWOptimizer(DecoupledWeightDecayExtension, AdamOptimizer):
    """Adam with weight decay apart from the gradients."""

    def __init__(
        self,
        weight_decay: Any,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "AdamW",
    ) -> None:
        rates = {"learning_rate": learning_rate, "beta1": beta1, "beta2": beta2, "epsilon": epsilon}
        super().__init__(weight_decay, **rates, use_locking=use_locking, name=name)


@export("contrib.opt.MomentumWOptimizer")
class MomentumWOptimizer(DecoupledWeightDecayExtension, MomentumOptimizer):
    """Momentum with weight decay apart from the gradients."""

    def __init__(
        self,
        weight_decay: Any,
        learning_rate: Any,
        momentum: Any,
        use_locking: bool = False,
        name: str = "MomentumW",
        use_nesterov: bool = False,
    ) -> None:
        rates = {"learning_rate": learning_rate, "momentum": momentum, "use_nesterov": use_nesterov}
        super().__init__(weight_decay, **rates, use_locking=use_locking, name=name)


@export("contrib.opt.MovingAverageOptimizer")
class MovingAverageOptimizer(Optimizer):
    """Keeps moving averages of what an optimizer trains; `swapping_saver` saves these in the variables' place."""

    def __init__(
        self, opt: Any, average_decay: float = 0.9999, num_updates: Any = None, sequential_update: bool = True
    ) -> None:
        super().__init__(False, type(opt).__name__)
        self._optimizer = opt
        self._ema = ExponentialMovingAverage(average_decay, num_updates=num_updates)
        self._sequential_update = sequential_update
        self._swapped: dict[str, str] | None = None

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """Applies gradients, then updates the averages."""
        pairs = list(grads_and_vars)
        trained = self._optimizer.apply_gradients(pairs, global_step=global_step, name=name)
        variables = [v for g, v in pairs if g is not None]
        with control_dependencies([trained] if self._sequential_update else []):
            averaged = self._ema.apply(variables)
        averages = {v.op.name: self._ema.average(v) for v in variables}
        self._swapped = {name: average.op.name for name, average in averages.items() if average is not None}
        return group(trained, averaged, name="train_with_avg")

    def swapping_saver(self, var_list: Any = None, name: str = "swapping_saver", **kwargs: Any) -> Saver:
        """A saver under whose names of variables are their averages, and the other way round."""
        if self._swapped is None:
            raise RuntimeError("Must call apply_gradients or minimize before creating the swapping_saver")
        result = by_name(global_variables() if var_list is None else var_list)
        known = {
            v.op.name: v for item in result.values() for v in (item if isinstance(item, list) else [item])
        }
        other = {**self._swapped, **{average: v for v, average in self._swapped.items()}}

        def swapped(item: Any) -> Any:
            if isinstance(item, list):
                return [swapped(part) for part in item]
            wanted = other.get(item.op.name, item.op.name)
            if wanted not in known:
                raise ValueError(f"Variable to swap {wanted} is not in variables to save {list(known)}")
            return known[wanted]

        return Saver({key: swapped(item) for key, item in result.items()}, name=name, **kwargs)


@export("contrib.opt.DropStaleGradientOptimizer")
class DropStaleGradientOptimizer(Optimizer):
    """Drops gradients computed more than `staleness` global steps before they would be applied."""

    def __init__(
        self, opt: Any, staleness: int, use_locking: bool = False, name: str = "DropStaleGradient"
    ) -> None:
        super().__init__(use_locking, name)
        self._opt = opt
        self._staleness = staleness
        self._local_step: Any = None

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's gradients, computed after the global step was noted."""
        steps = find("train.get_or_create_global_step")()
        local = [GraphKeys.LOCAL_VARIABLES]
        with colocate_with(loss.op):
            zero = to_tensor(0, dtype=steps.dtype.base_dtype)
            self._local_step = Variable(zero, trainable=False, collections=local, name="local_step")
        noted = self._local_step.assign(_now(steps))
        with control_dependencies([noted]):
            pairs = self._opt.compute_gradients(identity(loss), *args, **kwargs)
            return [(None if g is None else _after(g), v) for g, v in pairs]

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """Applies gradients that are not too old, and counts the others."""
        if self._local_step is None:
            raise ValueError("compute_gradients must be called before apply_gradients.")
        if global_step is None:
            raise ValueError("Global step is required to check staleness")
        pairs = list(grads_and_vars)
        dropped = Variable(to_tensor(0.0), trainable=False, name="stale_counter")
        computed = [g for g, _ in pairs if g is not None]
        with control_dependencies([g.values if isinstance(g, IndexedSlices) else g for g in computed]):
            age = _now(global_step) - _now(self._local_step)
        part = to_tensor(dropped) / (cast(to_tensor(global_step), dropped.dtype.base_dtype) + 1.0)
        find("summary.scalar")("Gradient_staleness_percentage", part)

        def accept() -> Any:
            with control_dependencies([self._opt.apply_gradients(pairs, global_step=global_step, name=name)]):
                return identity(to_tensor(0.0))

        def drop() -> Any:
            return identity(dropped.assign_add(1.0, use_locking=True))

        self._create_slots_outside(pairs)
        return group(find("cond")(age <= self._staleness, accept, drop))

    def _create_slots_outside(self, pairs: list) -> None:
        """Makes the optimizer's own variables outside of the branch that applies the gradients."""
        variables = [v for g, v in pairs if g is not None]
        with control_dependencies(None):
            self._opt._create_slots(variables)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> list[str]:
        return self._opt.get_slot_names(*args, **kwargs)
