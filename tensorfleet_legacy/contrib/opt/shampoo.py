"""`tf.contrib.opt`: optimizers that turn gradients by what earlier gradients were like in all directions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.api.train.optimizer import Optimizer
from tensorfleet.base import dtypes
from tensorfleet.base.naming import find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import colocate_with, control_dependencies
from tensorfleet.ops.array.basic import group
from tensorfleet.ops.state.scatter_variables import scatter_add


def _at(value: Any, step: Tensor) -> Any:
    """A parameter, which may be a function of the step."""
    return value(step) if callable(value) else value


class ShampooOptimizer(Optimizer):
    """Shampoo (Gupta et al. 2018): one matrix of second moments along each dimension of a variable.

    Dimensions larger than `max_matrix_size` have the diagonal alone. Powers of matrices are those of their
    eigenvalues, also with `use_iterative_root`.
    """

    def __init__(
        self,
        global_step: Any = 0,
        max_matrix_size: int = 768,
        gbar_decay: Any = 0.0,
        gbar_weight: Any = 1.0,
        mat_gbar_decay: Any = 1.0,
        mat_gbar_weight: Any = 1.0,
        learning_rate: Any = 1.0,
        svd_interval: Any = 1,
        precond_update_interval: Any = 1,
        epsilon: float = 1e-4,
        alpha: Any = 0.5,
        use_iterative_root: bool = False,
        use_locking: bool = False,
        name: str = "Shampoo",
    ) -> None:
        super().__init__(use_locking, name)
        self._global_step = find("cast")(global_step, dtypes.float32)
        self._max_matrix_size, self._epsilon, self._alpha = max_matrix_size, epsilon, alpha
        self._gbar_decay, self._gbar_weight = gbar_decay, gbar_weight
        self._mat_gbar_decay, self._mat_gbar_weight = mat_gbar_decay, mat_gbar_weight
        self._learning_rate = learning_rate
        self._svd_interval, self._update_interval = svd_interval, precond_update_interval

    def _create_slots(self, var_list: Any) -> None:
        for v in var_list:
            with colocate_with(v.op):
                self._zeros_slot(v, "gbar", self._name)
                for i, size in enumerate(v.shape.as_list()):
                    whole = size <= self._max_matrix_size
                    start = find("zeros")([size, size] if whole else [size])
                    self._get_or_make_slot(v, start, f"Gbar_{i}", self._name)
                    if whole and self._svd_interval != 1:
                        self._get_or_make_slot(v, find("eye")(size), f"H_{i}", self._name)

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        return self._step(grad, var)

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        return self._step(grad, handle)

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        return self._by_rows(grad.values, grad.indices, var)

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        return self._by_rows(grad, indices, handle)

    def _by_rows(self, values: Tensor, indices: Tensor, var: Any) -> Any:
        if var.shape.as_list()[0] <= self._max_matrix_size or self._gbar_decay != 0.0:
            shape = find("shape")(var, out_type=indices.dtype)
            return self._step(find("scatter_nd")(find("expand_dims")(indices, 1), values, shape), var)
        return self._step(values, var, indices)

    def _averaged(self, slot: Any, decay: Any, step: Tensor, new: Tensor) -> Tensor:
        """The new value of a slot: the old one times the decay, plus the new term; a decay of 0 keeps nothing."""
        if decay == 0.0:
            return new
        return slot.assign(_at(decay, step) * slot.read_value() + new)

    def _step(self, grad: Tensor, var: Any, indices: Any = None) -> Any:
        step = self._global_step + 1
        turned = grad
        if indices is None:
            weighted = _at(self._gbar_weight, step) * grad
            turned = self._averaged(self.get_slot(var, "gbar"), self._gbar_decay, step, weighted)
        sizes = var.shape.as_list()
        power = -_at(self._alpha, step) / len(sizes)
        for i, size in enumerate(sizes):
            # Each turn brings the next dimension to the front: after the last, all are in their places again.
            if size <= self._max_matrix_size:
                matrix = self._matrix(grad, var, i, step, power)
                turned = find("tensordot")(turned, matrix, [[0], [0]])
            else:
                factors = self._diagonal(grad, var, i, step, power, indices)
                turned = find("transpose")(turned, [*range(1, len(sizes)), 0]) * factors
        change = _at(self._learning_rate, step) * turned
        return var.assign_sub(change) if indices is None else scatter_add(var, indices, -change)

    def _matrix(self, grad: Tensor, var: Any, i: int, step: Tensor, power: Any) -> Tensor:
        """A power of the second moments along one dimension."""
        slot, size = self.get_slot(var, f"Gbar_{i}"), var.shape.as_list()[i]
        others = [d for d in range(len(var.shape)) if d != i]
        every = _at(self._update_interval, step)

        def updated() -> Tensor:
            outer = find("tensordot")(grad, grad, [others, others])
            weighted = _at(self._mat_gbar_weight, step) * every * outer
            return find("identity")(self._averaged(slot, self._mat_gbar_decay, step, weighted))

        now = find("cond")(find("mod")(step, every) < 1, updated, lambda: slot.read_value()) / float(size)
        if self._svd_interval == 1:
            return self._power(now, size, power)
        kept = self.get_slot(var, f"H_{i}")
        due = find("mod")(step, _at(self._svd_interval, step)) < 1
        return find("cond")(
            due,
            lambda: find("identity")(kept.assign(self._power(now, size, power))),
            lambda: kept.read_value(),
        )

    def _power(self, matrix: Tensor, size: int, power: Any) -> Tensor:
        if size == 1:
            return find("pow")(matrix + self._epsilon, power)
        values, vectors = find("self_adjoint_eig")(matrix + self._epsilon * find("eye")(size))
        scaled = vectors * find("pow")(find("maximum")(values, self._epsilon), power)
        return find("matmul")(scaled, vectors, transpose_b=True)

    def _diagonal(self, grad: Tensor, var: Any, i: int, step: Tensor, power: Any, indices: Any) -> Tensor:
        slot, size = self.get_slot(var, f"Gbar_{i}"), var.shape.as_list()[i]
        others = [d for d in range(len(var.shape)) if d != i]
        squares = grad * grad
        if others:
            squares = find("reduce_sum")(squares, others) / (1.0 if indices is not None else float(size))
        weighted = _at(self._mat_gbar_weight, step) * squares
        if i == 0 and indices is not None:
            with control_dependencies([scatter_add(slot, indices, weighted)]):
                moments = find("gather")(slot.read_value(), indices)
        else:
            moments = self._averaged(slot, self._mat_gbar_decay, step, weighted)
        moments = find("identity")(moments)
        return find("where")(moments > 0, find("pow")(moments, power), find("zeros_like")(moments))


class GGTOptimizer(Optimizer):
    """GGT (Agarwal et al. 2018): gradients scaled by the root of the products of the last `window` of them."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        use_locking: bool = False,
        name: str = "GGT",
        window: int = 10,
        eps: float = 1e-4,
        svd_eps: float = 1e-6,
        sigma_eps: float = 1e-2,
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate, self._beta1, self._window = learning_rate, beta1, window
        self._eps, self._svd_eps, self._sigma_eps = eps, svd_eps, sigma_eps

    def _create_slots(self, var_list: Any) -> None:
        self._ordered = sorted(var_list, key=lambda v: v.name)
        self._places, end = {}, 0
        for v in self._ordered:
            size = int(np.prod(v.shape.as_list()))
            self._places[v.name] = slice(end, end + size)
            end += size
        kind, first = var_list[0].dtype.base_dtype, var_list[0]
        for label, shape in (("global_step", []), ("grad_buffer", [self._window, end]), ("moment1", [end])):
            zeros = np.zeros(shape, kind.as_numpy_dtype)
            self._create_non_slot_variable(zeros, label, first)
        self._gradients: dict[str, Tensor] = {}

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        self._gradients[var.name] = find("reshape")(grad, [-1])
        return find("no_op")()

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        return self._apply_dense(grad, handle)

    def _finish(self, update_ops: Any, name_scope: str) -> Any:
        """One step of all variables together."""
        graph = find("get_default_graph")()
        step, buffer, moment = (
            self._get_non_slot_variable(n, graph) for n in ("global_step", "grad_buffer", "moment1")
        )
        kind = moment.dtype.base_dtype
        parts = [
            self._gradients.get(
                v.name, find("zeros")([self._places[v.name].stop - self._places[v.name].start], kind)
            )
            for v in self._ordered
        ]
        flat = find("concat")(parts, 0)
        with control_dependencies(update_ops):
            count = step.assign_add(find("ones")([], kind))
            mean = moment.assign(self._beta1 * moment.read_value() + (1.0 - self._beta1) * flat)
        mean, count = find("identity")(mean), find("identity")(count)
        place = find("floormod")(find("cast")(count - 1, dtypes.int32), self._window)
        rows = find("one_hot")(place, self._window, dtype=kind)
        kept = buffer.read_value()
        filled = find("identity")(buffer.assign(kept + find("expand_dims")(rows, 1) * (mean - kept)))
        number = find("minimum")(count, to_tensor(float(self._window), kind))
        change = self._change(find("transpose")(filled) / find("sqrt")(number), find("expand_dims")(mean, 1))
        rate = find("cast")(self._learning_rate, kind)
        moved = []
        for v in self._ordered:
            if v.name in self._gradients:
                own = find("reshape")(change[self._places[v.name]], v.shape.as_list())
                moved.append(v.assign_sub(rate * own))
        self._gradients = {}
        return group(*moved, name=name_scope)

    def _change(self, m: Tensor, mean: Tensor) -> Tensor:
        """The mean gradient over the root of the products: inside of what the window spans, and outside."""
        dot, root = find("matmul"), find("sqrt")
        damped = dot(m, m, transpose_a=True) + self._svd_eps * find("eye")(self._window, dtype=m.dtype)
        squares, u = find("self_adjoint_eig")(damped)
        squares = find("maximum")(squares, find("zeros_like")(squares))
        sizes, seen = root(squares), dot(u, dot(m, mean, transpose_a=True), transpose_a=True)

        def back(factors: Tensor) -> Tensor:
            return dot(m, dot(u, find("expand_dims")(factors, 1) * seen))

        inside = back(1.0 / find("pow")(sizes + self._sigma_eps, 3.0))
        smallest = find("reduce_min")(sizes)
        outside = (mean - back(1.0 / squares)) / smallest
        return find("where")(smallest > self._eps, inside + outside, inside)
