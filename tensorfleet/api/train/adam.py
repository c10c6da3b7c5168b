"""Adam."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tensorfleet.api.train.optimizer import Optimizer, cast
from tensorfleet.api.variables.variable import ResourceVariable, Variable, assign, assign_sub
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.graph.apply import apply, apply_any, apply_op
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import colocate_with, control_dependencies, get_default_graph
from tensorfleet.ops.array.basic import group
from tensorfleet.ops.state.scatter_variables import scatter_add

if TYPE_CHECKING:
    from tensorfleet.api.train.types import Hyperparameter


@export("train.AdamOptimizer")
class AdamOptimizer(Optimizer):
    """Steps by the running mean of the gradients over the root of their running mean square.

    A gradient by rows moves every row that still has momentum, as a dense one would.
    """

    def __init__(
        self,
        learning_rate: Hyperparameter = 0.001,
        beta1: Hyperparameter = 0.9,
        beta2: Hyperparameter = 0.999,
        epsilon: Hyperparameter = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
    ) -> None:
        super().__init__(use_locking, name)
        self._lr = learning_rate
        self._beta1 = beta1
        self._beta2 = beta2
        self._epsilon = epsilon
        self._lr_t: Tensor | None = None
        self._beta1_t: Tensor | None = None
        self._beta2_t: Tensor | None = None
        self._epsilon_t: Tensor | None = None

    def _get_beta_accumulators(self) -> tuple[Any, Any]:
        graph = get_default_graph()
        power1 = self._get_non_slot_variable("beta1_power", graph=graph)
        return power1, self._get_non_slot_variable("beta2_power", graph=graph)

    def _create_slots(self, var_list: list[Variable]) -> None:
        # With parameter servers, the two powers go where the alphabetically first variable is.
        first = min(var_list, key=lambda v: v.name)
        self._create_non_slot_variable(self._beta1, "beta1_power", first)
        self._create_non_slot_variable(self._beta2, "beta2_power", first)
        for v in var_list:
            self._zeros_slot(v, "m", self._name)
            self._zeros_slot(v, "v", self._name)

    def _prepare(self) -> None:
        self._lr_t = to_tensor(self._call_if_callable(self._lr), name="learning_rate")
        self._beta1_t = to_tensor(self._call_if_callable(self._beta1), name="beta1")
        self._beta2_t = to_tensor(self._call_if_callable(self._beta2), name="beta2")
        self._epsilon_t = to_tensor(self._call_if_callable(self._epsilon), name="epsilon")

    def _hyperparameters(self, dtype: DType) -> list[Any]:
        prepared = (self._lr_t, self._beta1_t, self._beta2_t, self._epsilon_t)
        return [cast(t, dtype) for t in (*self._get_beta_accumulators(), *prepared)]

    def _apply_dense(self, grad: Tensor, var: Variable) -> Operation:
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        rates = self._hyperparameters(var.dtype.base_dtype)
        return apply("ApplyAdam", var, m, v, *rates, grad, use_locking=self._use_locking).op

    def _resource_apply_dense(self, grad: Tensor, handle: ResourceVariable) -> Operation:
        m, v = self.get_slot(handle, "m"), self.get_slot(handle, "v")
        rates = self._hyperparameters(grad.dtype.base_dtype)
        state = [handle.handle, m.handle, v.handle]
        return apply_op("ResourceApplyAdam", *state, *rates, grad, use_locking=self._use_locking)

    def _apply_sparse_shared(
        self,
        grad: Tensor,
        var: Variable,
        indices: Tensor,
        scatter_add: Callable[[Any, Tensor, Tensor], Tensor],
    ) -> Operation:
        """Decays the whole of both moments, adds the rows, then moves the whole variable."""
        # The formula of ApplyAdam, in pieces: rows are added to moments that decay as a whole.
        power1, power2, lr, beta1, beta2, epsilon = self._hyperparameters(var.dtype.base_dtype)
        rate = lr * apply("Sqrt", 1 - to_tensor(power2)) / (1 - to_tensor(power1))
        m_t = self._decayed(self.get_slot(var, "m"), beta1, grad, None, indices, scatter_add)
        v_t = self._decayed(self.get_slot(var, "v"), beta2, grad, grad, indices, scatter_add)
        root = apply("Sqrt", v_t)
        step = rate * m_t / (root + epsilon)
        return group(assign_sub(var, step, use_locking=self._use_locking), m_t, v_t)

    def _decayed(
        self,
        slot: Variable,
        beta: Tensor,
        grad: Tensor,
        factor: Tensor | None,
        indices: Tensor,
        add: Callable[[Any, Tensor, Tensor], Tensor],
    ) -> Tensor:
        """`slot` times `beta`, with (1 - beta) times the gradient, or its square, added to the rows."""
        rows = (grad if factor is None else grad * factor) * (1 - beta)
        decayed = assign(slot, to_tensor(slot) * beta, use_locking=self._use_locking)
        with control_dependencies([decayed]):
            return add(slot, indices, rows)

    def _apply_sparse(self, grad: IndexedSlices, var: Variable) -> Operation:
        def add(x: Variable, i: Tensor, v: Tensor) -> Tensor:
            changed: Tensor = scatter_add(x, i, v, use_locking=self._use_locking)
            return changed

        return self._apply_sparse_shared(grad.values, var, grad.indices, add)

    def _resource_scatter_add(self, x: ResourceVariable, i: Tensor, v: Tensor) -> Tensor:
        with control_dependencies([apply_any("ResourceScatterAdd", x.handle, i, v)]):
            return x.value()

    def _resource_apply_sparse(self, grad: Tensor, handle: ResourceVariable, indices: Tensor) -> Operation:
        return self._apply_sparse_shared(grad, handle, indices, self._resource_scatter_add)

    def _finish(self, update_ops: list[Any], name_scope: str) -> Operation:
        power1, power2 = self._get_beta_accumulators()
        # All updates of a step use the same powers: they change after the last update.
        with control_dependencies(update_ops), colocate_with(power1.op):
            update1 = power1.assign(to_tensor(power1) * self._beta1_t, use_locking=self._use_locking)
            update2 = power2.assign(to_tensor(power2) * self._beta2_t, use_locking=self._use_locking)
        return group(*update_ops, update1, update2, name=name_scope)
