"""`tf.contrib.opt`: optimizers that choose the size of a step in ways of their own."""

from __future__ import annotations

import abc
import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any

from tensorfleet.api.train.adam import AdamOptimizer
from tensorfleet.api.train.optimizer import Optimizer, cast
from tensorfleet.api.train.optimizers import AdagradOptimizer, MomentumOptimizer
from tensorfleet.api.variables.variable import ResourceVariable
from tensorfleet.base.arguments import with_defaults
from tensorfleet.base.naming import export, find
from tensorfleet.graph.apply import apply, apply_any
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import colocate_with, control_dependencies, get_default_graph
from tensorfleet.ops.array.basic import group
from tensorfleet.ops.state.scatter_variables import scatter_add, scatter_sub, scatter_update


def _state(var: Any, slots: list) -> tuple[str, list]:
    """How the name of a training op begins for a variable, and what it takes first."""
    if isinstance(var, ResourceVariable):
        return "ResourceApply", [v.handle for v in (var, *slots)]
    return "Apply", [var, *slots]


def _rows(var: Any, indices: Any) -> Tensor:
    return apply("GatherV2", to_tensor(var), indices, 0)


@export("contrib.opt.LARSOptimizer")
class LARSOptimizer(MomentumOptimizer):
    """Momentum whose rate is scaled, for each variable, by the norm of the variable over that of its gradient.

    Variables whose name has a text of `skip_list` in it keep the plain rate; so do gradients by rows.
    """

    def __init__(
        self,
        learning_rate: Any,
        momentum: float = 0.9,
        weight_decay: float = 0.0001,
        eeta: float = 0.001,
        epsilon: float = 0.0,
        name: str = "LARSOptimizer",
        skip_list: Any = None,
        use_nesterov: bool = False,
    ) -> None:
        for what, value in (("momentum", momentum), ("weight_decay", weight_decay)):
            if value < 0.0:
                raise ValueError(f"{what} should be positive: {value}")
        super().__init__(learning_rate, momentum, False, name, use_nesterov)
        self._weight_decay = weight_decay
        self._eeta = eeta
        self._epsilon = epsilon
        self._skip_list = skip_list

    def compute_lr(self, grad: Any, var: Any) -> Any:
        """The rate for one variable."""
        rate = cast(to_tensor(self._call_if_callable(self._learning_rate)), var.dtype)
        if any(text in var.name for text in self._skip_list or ()):
            return rate
        norm, where = find("norm"), find("where")
        of_var, of_grad = norm(to_tensor(var), ord=2), norm(to_tensor(grad), ord=2)
        whole = of_grad + self._weight_decay * of_var + self._epsilon
        usable = find("logical_and")(of_var > 0, of_grad > 0)
        safe = where(usable, whole, find("ones_like")(whole))
        return rate * where(usable, self._eeta * of_var / safe, find("ones_like")(whole))

    def _dense_inputs(self, grad: Any, var: Any) -> list:
        return [self.compute_lr(grad, var), grad, cast(self._momentum_tensor, var.dtype)]

    def _sparse_inputs(self, grad: Any, var: Any, indices: Any) -> list:
        rate, momentum = cast(self._learning_rate_tensor, var.dtype), cast(self._momentum_tensor, var.dtype)
        return [rate, grad, indices, momentum]


class ByRows(Optimizer):
    """An optimizer that updates variables of both kinds alike when their gradient is by rows."""

    @abc.abstractmethod
    def _apply_rows(self, grad: Any, var: Any, indices: Any) -> Any: ...

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        return self._apply_rows(grad.values, var, grad.indices)

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        return self._apply_rows(grad, handle, indices)

    def _moved(self, var: Any, indices: Any, step: Any, **slots: Any) -> Any:
        """Takes a step from rows of a variable, and sets the same rows of its slots."""
        locking = self._use_locking
        items = [(self.get_slot(var, name), rows) for name, rows in slots.items()]
        kept = [scatter_update(slot, indices, rows, use_locking=locking) for slot, rows in items]
        return group(scatter_sub(var, indices, step, use_locking=locking), *kept)


@export("contrib.opt.AdaMaxOptimizer")
class AdaMaxOptimizer(ByRows, AdamOptimizer):
    """Adam that divides by the largest recent gradient. A gradient by rows changes only these rows and their moments."""

    __init__ = with_defaults(AdamOptimizer.__init__, name="AdaMax")

    def _get_beta_accumulators(self) -> Any:
        return self._get_non_slot_variable("beta1_power", graph=get_default_graph())

    def _create_slots(self, var_list: list) -> None:
        first = min(var_list, key=lambda v: v.name)
        self._create_non_slot_variable(self._beta1, "beta1_power", first)
        for v in var_list:
            self._zeros_slot(v, "m", self._name)
            self._zeros_slot(v, "v", self._name)

    def _hyperparameters(self, dtype: Any) -> list:
        prepared = (self._lr_t, self._beta1_t, self._beta2_t, self._epsilon_t)
        return [cast(t, dtype) for t in (self._get_beta_accumulators(), *prepared)]

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        kind, state = _state(var, [self.get_slot(var, "m"), self.get_slot(var, "v")])
        rates = self._hyperparameters(var.dtype.base_dtype)
        result = apply_any(f"{kind}AdaMax", *state, *rates, grad, use_locking=self._use_locking)
        return result.op if isinstance(result, Tensor) else result

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        return self._apply_dense(grad, handle)

    def _apply_rows(self, grad: Any, var: Any, indices: Any) -> Any:
        power, lr, beta1, beta2, epsilon = self._hyperparameters(var.dtype.base_dtype)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        m_rows = beta1 * _rows(m, indices) + (1 - beta1) * grad
        v_rows = apply("Maximum", beta2 * _rows(v, indices), apply("Abs", grad))
        step = lr / (1 - to_tensor(power)) * (m_rows / (v_rows + epsilon))
        return self._moved(var, indices, step, m=m_rows, v=v_rows)

    def _finish(self, update_ops: list, name_scope: str) -> Any:
        power = self._get_beta_accumulators()
        with control_dependencies(update_ops), colocate_with(power.op):
            update = power.assign(to_tensor(power) * self._beta1_t, use_locking=self._use_locking)
        return group(*update_ops, update, name=name_scope)


class _SignOptimizer(ByRows):
    """Steps by the gradient, times a factor that tells whether it agrees in sign with its running mean."""

    _kind = ""

    def __init__(
        self,
        learning_rate: Any,
        factor: Any,
        beta: Any,
        sign_decay_fn: Callable | None,
        use_locking: bool,
        name: str,
    ) -> None:
        super().__init__(use_locking, name)
        self._lr = learning_rate
        self._factor = factor
        self._beta = beta
        self._sign_decay_fn = sign_decay_fn
        self._sign_decay: Any = None

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """Like `Optimizer.apply_gradients`; the step decides how much the sign counts."""
        if self._sign_decay_fn is not None:
            if global_step is None:
                raise ValueError("apply_gradients needs a global_step when there is a sign_decay_fn.")
            self._sign_decay = to_tensor(self._sign_decay_fn(global_step), name="sign_decay")
        else:
            self._sign_decay = to_tensor(1.0, name="sign_decay")
        return super().apply_gradients(grads_and_vars, global_step=global_step, name=name)

    def _create_slots(self, var_list: list) -> None:
        for v in var_list:
            self._zeros_slot(v, "m", self._name)

    def _prepared(self, dtype: Any) -> list:
        given = (self._lr, self._factor, self._sign_decay, self._beta)
        return [cast(to_tensor(self._call_if_callable(x)), dtype) for x in given]

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        kind, state = _state(var, [self.get_slot(var, "m")])
        rates = self._prepared(var.dtype.base_dtype)
        result = apply_any(kind + self._kind, *state, *rates, grad, use_locking=self._use_locking)
        return result.op if isinstance(result, Tensor) else result

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        return self._apply_dense(grad, handle)

    def _multiplier(self, factor: Any, agreement: Any) -> Any:
        raise AssertionError("A subclass says what the agreement is worth.")

    def _apply_rows(self, grad: Any, var: Any, indices: Any) -> Any:
        rate, factor, decay, beta = self._prepared(var.dtype.base_dtype)
        m = self.get_slot(var, "m")
        decayed = m.assign(to_tensor(m) * beta, use_locking=self._use_locking)
        with control_dependencies([decayed]):
            moved = scatter_add(m, indices, grad * (1 - beta), use_locking=self._use_locking)
        with control_dependencies([moved]):
            mean = apply("GatherV2", m.read_value(), indices, 0)
        agreement = decay * apply("Sign", grad) * apply("Sign", mean)
        step = rate * self._multiplier(factor, agreement) * grad
        return group(scatter_sub(var, indices, step, use_locking=self._use_locking), moved)


@export("contrib.opt.AddSignOptimizer")
class AddSignOptimizer(_SignOptimizer):
    """Steps by the gradient times `alpha` plus (or minus) one, when its sign agrees with its running mean's (or not).

    `sign_decay_fn(global_step)` makes the sign count less as training goes on.
    """

    _kind = "AddSign"

    def __init__(
        self,
        learning_rate: Any = 0.1,
        alpha: Any = 1.0,
        beta: Any = 0.9,
        sign_decay_fn: Callable | None = None,
        use_locking: bool = False,
        name: str = "AddSignOptimizer",
    ) -> None:
        super().__init__(learning_rate, alpha, beta, sign_decay_fn, use_locking, name)

    def _multiplier(self, factor: Any, agreement: Any) -> Any:
        return factor + agreement


@export("contrib.opt.PowerSignOptimizer")
class PowerSignOptimizer(_SignOptimizer):
    """Steps by the gradient times `base`, or its inverse, as its sign agrees with its running mean's or not.

    `sign_decay_fn(global_step)` makes the sign count less as training goes on.
    """

    _kind = "PowerSign"

    def __init__(
        self,
        learning_rate: Any = 0.1,
        base: float = math.e,
        beta: Any = 0.9,
        sign_decay_fn: Callable | None = None,
        use_locking: bool = False,
        name: str = "PowerSignOptimizer",
    ) -> None:
        super().__init__(learning_rate, math.log(base), beta, sign_decay_fn, use_locking, name)

    def _multiplier(self, factor: Any, agreement: Any) -> Any:
        return apply("Exp", factor * agreement)


_DECAYS = "contrib.opt.python.training.sign_decay"


def _progress(step: Any, decay_steps: int) -> Any:
    """The part of the decay that is behind us, from 0 to 1."""
    return apply("Minimum", cast(to_tensor(step), "float32"), float(decay_steps)) / float(decay_steps)


def _half_wave(fraction: Any, behind: Any, zero_after: float | None) -> Any:
    """Half a wave of the cosine down from 1; 0 once `behind` reaches `zero_after`."""
    wave = 0.5 * (1.0 + apply("Cos", math.pi * fraction))
    if zero_after is None:
        return wave
    return find("where")(behind >= zero_after, find("zeros_like")(wave), wave)


@export(f"{_DECAYS}.get_linear_decay_fn")
def get_linear_decay_fn(decay_steps: int) -> Callable:
    """A function of the step that falls from 1 to 0 in a straight line."""

    def linear_decay(step: Any) -> Any:
        return 1.0 - _progress(step, decay_steps)

    return linear_decay


@export(f"{_DECAYS}.get_cosine_decay_fn")
def get_cosine_decay_fn(
    decay_steps: int, num_periods: float = 0.5, zero_after: float | None = None
) -> Callable:
    """A function of the step that goes through some periods of the cosine, between 1 and 0."""

    def cosine_decay(step: Any) -> Any:
        periods = num_periods * _progress(step, decay_steps)
        return _half_wave(2.0 * periods, periods, zero_after)

    return cosine_decay


@export(f"{_DECAYS}.get_restart_decay_fn")
def get_restart_decay_fn(decay_steps: int, num_periods: int = 1, zero_after: float | None = None) -> Callable:
    """A function of the step that falls from 1 to 0 as half a cosine, again and again."""

    def restart_decay(step: Any) -> Any:
        periods = num_periods * _progress(step, decay_steps)
        return _half_wave(periods - apply("Floor", periods), periods, zero_after)

    return restart_decay


@export("contrib.opt.RegAdagradOptimizer")
class RegAdagradOptimizer(AdagradOptimizer):
    """Adagrad that can take a step, as for a regularizer, without counting its gradient."""

    _attrs: dict[str, Any] = {}
    __init__ = with_defaults(AdagradOptimizer.__init__, name="RegAdagrad")

    @contextlib.contextmanager
    def avoid_updating_slots(self) -> Iterator[None]:
        """Updates built in this block leave the accumulated squares as they are."""
        old, self._attrs = self._attrs, {"update_slots": False}
        try:
            yield
        finally:
            self._attrs = old


class ByGlobalStep:
    """Adam whose powers of the betas follow from the global step, so that no variable is shared by all workers."""

    def __init__(
        self,
        global_step: Any = 0,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
    ) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon, use_locking, name)  # type: ignore[call-arg]
        self._global_step = global_step

    def _get_beta_accumulators(self) -> tuple[Any, Any]:
        step = cast(to_tensor(self._global_step), "float32")
        betas = (self._beta1, self._beta2)  # type: ignore[attr-defined]
        first, second = (apply("Pow", to_tensor(b, "float32"), step + 1.0) for b in betas)
        return first, second

    def _create_slots(self, var_list: list) -> None:
        for v in var_list:
            for slot in ("m", "v"):
                self._zeros_slot(v, slot, self._name)  # type: ignore[attr-defined]

    def _finish(self, update_ops: list, name_scope: str) -> Any:
        return group(*update_ops, name=name_scope)


@export("contrib.opt.AdamGSOptimizer")
class AdamGSOptimizer(ByGlobalStep, AdamOptimizer):
    """Adam that takes the number of steps so far from the global step."""
