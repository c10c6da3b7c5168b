"""`tf.train.Optimizer`: from a loss to gradients, from gradients to one operation that trains.

A subclass says which slots it needs (`_create_slots`), prepares its hyperparameters (`_prepare`), updates
one variable (`_apply_dense`, `_apply_sparse` and their resource twins) and may act once all are updated
(`_finish`). They are called in this order.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from tensorfleet.api.distribute import context as distribution
from tensorfleet.api.train import slots
from tensorfleet.api.variables.lists import trainable_variables
from tensorfleet.api.variables.variable import ResourceVariable, Variable, assign_add
from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.types import DTypeLike, ShapeLike, TensorLike
from tensorfleet.graph.apply import apply, apply_list, apply_op
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.gradients import gradients
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import (
    GraphKeys,
    colocate_with,
    control_dependencies,
    get_collection,
    get_default_graph,
    name_scope,
)
from tensorfleet.ops.array.basic import group, tuple_
from tensorfleet.ops.math.cast import cast as to_type

if TYPE_CHECKING:
    from tensorfleet.api.train.types import GlobalStep, Gradient, GradsAndVars, Hyperparameter, VariableList
    from tensorfleet.api.variables.types import InitializerLike

#: Applies gradients in another way than the optimizer itself would.
Detour: TypeAlias = (
    "Callable[[Optimizer, Sequence[tuple[Any, Any]], GlobalStep | None, str | None], Operation]"
)
#: the way of all updates of this process, where its run asks for a consistency (`fleet/consistency/of_run.py`)
detour: Detour | None = None
_on_detour = threading.local()

_TRAINABLE_TYPES = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64, dtypes.resource)


@contextlib.contextmanager
def without_detour() -> Iterator[None]:
    """Has the optimizers that are called inside apply gradients themselves."""
    _on_detour.depth = getattr(_on_detour, "depth", 0) + 1
    try:
        yield
    finally:
        _on_detour.depth -= 1


def cast(value: TensorLike, dtype: DTypeLike) -> Any:
    """`value` in the type of a variable; itself, unread, when it is a variable of that type already."""
    wanted = dtypes.as_dtype(dtype).base_dtype
    if isinstance(value, Variable) and value.dtype.base_dtype == wanted:
        return value
    return to_type(value, wanted)


def _var_key(var: Variable | Tensor) -> tuple[Graph, str]:
    whole = getattr(var, "_copy_of", var)  # the copies of a variable share its slots
    op = getattr(whole, "_primary", whole).op
    return op.graph, op.name


@export("train.Optimizer")
class Optimizer:
    """The base of all optimizers. Use one of its subclasses, or write your own.

    `minimize(loss)` is `compute_gradients` followed by `apply_gradients`; call the two yourself to clip or
    otherwise change gradients in between.
    """

    GATE_NONE = 0
    GATE_OP = 1
    GATE_GRAPH = 2

    def __init__(self, use_locking: bool, name: str) -> None:
        if not name:
            raise ValueError("Must specify the optimizer name")
        self._use_locking = use_locking
        self._name = name
        self._slots: dict[str, dict[Any, Variable]] = {}
        self._non_slot_dict: dict[Any, Variable] = {}

    def get_name(self) -> str:
        """The name given to the constructor."""
        return self._name

    def minimize(
        self,
        loss: Tensor | Callable[[], Tensor],
        global_step: GlobalStep | None = None,
        var_list: VariableList | None = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: Tensor | None = None,
    ) -> Operation:
        """An operation that updates `var_list` (all trainable variables) once to lower `loss`.

        With `global_step`, a variable, the operation also adds one to it.
        """
        grads_and_vars = self.compute_gradients(
            loss,
            var_list=var_list,
            gate_gradients=gate_gradients,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
            grad_loss=grad_loss,
        )
        if all(g is None for g, _ in grads_and_vars):
            raise ValueError(
                "No gradients provided for any variable, check your graph for ops that do not support "
                f"gradients, between variables {[str(v) for _, v in grads_and_vars]} and loss {loss}."
            )
        return self.apply_gradients(grads_and_vars, global_step=global_step, name=name)

    def compute_gradients(
        self,
        loss: Tensor | Callable[[], Tensor],
        var_list: VariableList | None = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Tensor | None = None,
    ) -> list[tuple[Any, Any]]:
        """(gradient, variable) pairs; a gradient is a Tensor, IndexedSlices, or None where there is none."""
        if gate_gradients not in (Optimizer.GATE_NONE, Optimizer.GATE_OP, Optimizer.GATE_GRAPH):
            raise ValueError(
                "gate_gradients must be one of: Optimizer.GATE_NONE, Optimizer.GATE_OP, "
                f"Optimizer.GATE_GRAPH.  Not {gate_gradients}"
            )
        if callable(loss):
            loss = loss()
        # Gradients of replicas are summed later: a mean loss is divided here, so that the sum is the mean.
        loss = distribution.scaled_loss(loss)
        self._assert_valid_dtypes([loss])
        if grad_loss is not None:
            self._assert_valid_dtypes([grad_loss])
        variables = _flat_variables(var_list)
        if not variables:
            raise ValueError("No variables to optimize.")
        grads = gradients(
            loss,
            variables,
            grad_ys=grad_loss,
            gate_gradients=gate_gradients == Optimizer.GATE_OP,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
        )
        if gate_gradients == Optimizer.GATE_GRAPH:
            grads = tuple_(grads)
        pairs = list(zip(grads, variables, strict=True))
        self._assert_valid_dtypes([v for g, v in pairs if g is not None])
        return pairs

    def apply_gradients(
        self, grads_and_vars: GradsAndVars, global_step: GlobalStep | None = None, name: str | None = None
    ) -> Operation:
        """An operation that updates each variable by its gradient, then adds one to `global_step`."""
        pairs = _checked_pairs(grads_and_vars)
        if distribution.has_strategy():
            from tensorfleet.api.distribute import optimizing

            if optimizing.updates_copies():
                return optimizing.apply_gradients(self, pairs, global_step, name)  # type: ignore[arg-type]  # it has copies: no tensor
        var_list = [v for g, v in pairs if g is not None]
        if var_list and detour is not None and not getattr(_on_detour, "depth", 0):
            return detour(self, pairs, global_step, name)
        if not var_list:
            raise ValueError(f"No gradients provided for any variable: {[str(v) for _, v in pairs]}.")
        # Slots are made once; a dependency on the caller's operations would run those at initialization.
        with control_dependencies(None):
            self._create_slots(var_list)
        update_ops = []
        with name_scope(name, self._name) as scope:
            self._prepare()
            for grad, var in pairs:
                if grad is not None:
                    # On a parameter server the update runs where the variable is: the gradient travels, not
                    # the variable.
                    with name_scope("update_" + var.op.name), colocate_with(var.op):
                        update_ops.append(self._apply_gradient(grad, var))
            done = self._finish(update_ops, scope if global_step is None else "update")
            if global_step is not None:
                done = _count_step(done, global_step, scope)
        return collect_train_op(done.op if isinstance(done, Tensor) else done)

    def get_slot(self, var: Variable, name: str) -> Any:
        """The slot called `name` that this optimizer keeps for `var`, or None."""
        named = self._slots.get(name)
        return named.get(_var_key(var)) if named else None

    def get_slot_names(self) -> list[str]:
        """The names of the slots, as `get_slot` takes them."""
        return sorted(self._slots)

    def variables(self) -> list[Variable]:
        """Everything the optimizer keeps in the current graph: its slots, and variables of its own."""
        graph = get_default_graph()
        own = [v for v in self._non_slot_variables() if v.graph is graph]
        kept = [v for named in self._slots.values() for v in named.values() if v.graph is graph]
        return sorted(own + kept, key=lambda v: v.name)

    # -- for a subclass to override --

    def _create_slots(self, var_list: list[Variable]) -> None:
        """Makes the slots for these variables."""

    def _prepare(self) -> None:
        """Turns hyperparameters into tensors, before the first update is built."""

    def _apply_dense(self, grad: Tensor, var: Variable) -> Any:
        """Updates a reference variable by a dense gradient."""
        raise NotImplementedError(
            f"{type(self).__name__} must define _apply_dense() for this kind of variable and gradient."
        )

    def _resource_apply_dense(self, grad: Tensor, handle: ResourceVariable) -> Any:
        """Updates a resource variable by a dense gradient."""
        raise NotImplementedError(
            f"{type(self).__name__} must define _resource_apply_dense() for this kind of variable and gradient."
        )

    def _apply_sparse(self, grad: IndexedSlices, var: Variable) -> Any:
        """Updates a reference variable by rows, no row twice."""
        raise NotImplementedError(
            f"{type(self).__name__} must define _apply_sparse() for this kind of variable and gradient."
        )

    def _resource_apply_sparse(self, grad: Tensor, handle: ResourceVariable, indices: Tensor) -> Any:
        """Updates a resource variable by rows, no row twice."""
        raise NotImplementedError(
            f"{type(self).__name__} must define _resource_apply_sparse() for this kind of variable and gradient."
        )

    def _apply_sparse_duplicate_indices(self, grad: IndexedSlices, var: Variable) -> Any:
        """Updates a reference variable by rows that may repeat: adds them up first."""
        summed, unique = _deduplicate_indexed_slices(grad.values, grad.indices)
        return self._apply_sparse(IndexedSlices(summed, unique, grad.dense_shape), var)

    def _resource_apply_sparse_duplicate_indices(
        self, grad: Tensor, handle: ResourceVariable, indices: Tensor
    ) -> Any:
        """Updates a resource variable by rows that may repeat: adds them up first."""
        summed, unique = _deduplicate_indexed_slices(grad, indices)
        return self._resource_apply_sparse(summed, handle, unique)

    def _finish(self, update_ops: list[Any], name_scope: str) -> Any:
        """The operation that stands for all updates."""
        return group(*update_ops, name=name_scope)

    def _valid_dtypes(self) -> set[DType]:
        """The types a loss and a variable may have."""
        return set(_TRAINABLE_TYPES)

    # -- for a subclass to use --

    def _apply_gradient(self, grad: Tensor | IndexedSlices, var: Variable) -> Any:
        """The update of one variable, with its constraint."""
        if not isinstance(var, Variable):
            raise NotImplementedError("Trying to update a Tensor ", var)
        if isinstance(grad, IndexedSlices):
            if var.constraint is not None:
                raise RuntimeError("Cannot use a constraint function on a sparse variable.")
            if isinstance(var, ResourceVariable):
                return self._resource_apply_sparse_duplicate_indices(grad.values, var, grad.indices)
            return self._apply_sparse_duplicate_indices(grad, var)
        if isinstance(var, ResourceVariable):
            update = self._resource_apply_dense(grad, var)
        else:
            update = self._apply_dense(grad, var)
        if var.constraint is None:
            return update
        with control_dependencies([update]):
            # A reference variable's own read may come before the update; this one comes after.
            return var.assign(var.constraint(var if isinstance(var, ResourceVariable) else var.read_value()))

    def _assert_valid_dtypes(self, tensors: Sequence[Tensor | Variable]) -> None:
        valid = self._valid_dtypes()
        for t in tensors:
            dtype = t.dtype.base_dtype
            if dtype not in valid:
                allowed = [v for v in _TRAINABLE_TYPES if v in valid and v != dtypes.resource]
                raise ValueError(f"Invalid type {dtype!r} for {t.name}, expected: {allowed}.")

    def _call_if_callable(self, param: Hyperparameter) -> TensorLike:
        return param() if callable(param) else param

    def _create_non_slot_variable(
        self, initial_value: Hyperparameter, name: str, colocate_with: Variable
    ) -> Variable:
        """A variable of the optimizer's own, one per graph."""
        key = (name, colocate_with.graph)
        variable = self._non_slot_dict.get(key)
        if variable is None:
            resource = isinstance(colocate_with, ResourceVariable)
            # As a function's result, a resource variable's initial value is built beside it.
            plain = callable(initial_value) or not resource
            value = initial_value if plain else (lambda: initial_value)
            with get_default_graph().colocate_with(colocate_with.op):
                variable = Variable(value, name=name, trainable=False, use_resource=resource)
            self._non_slot_dict[key] = variable
        return variable

    def _get_non_slot_variable(self, name: str, graph: Graph | None = None) -> Any:
        return self._non_slot_dict.get((name, graph))

    def _non_slot_variables(self) -> Collection[Variable]:
        return self._non_slot_dict.values()

    def _checkpoint_dependencies(self) -> Iterator[tuple[str, Any]]:
        yield from sorted(
            ((name, v) for (name, _), v in self._non_slot_dict.items()), key=lambda pair: pair[0]
        )

    def _slot_dict(self, slot_name: str) -> dict[Any, Variable]:
        return self._slots.setdefault(slot_name, {})

    def _get_or_make_slot(self, var: Variable, val: Tensor, slot_name: str, op_name: str) -> Variable:
        """The slot of `var`; made at the first call, starting as `val`."""
        return self._slot(var, slot_name, lambda: slots.create_slot(var, val, op_name))

    def _get_or_make_slot_with_initializer(
        self,
        var: Variable,
        initializer: InitializerLike,
        shape: ShapeLike,
        dtype: DType,
        slot_name: str,
        op_name: str,
    ) -> Variable:
        """The slot of `var`; made at the first call, filled by an initializer."""
        make = slots.create_slot_with_initializer
        return self._slot(var, slot_name, lambda: make(var, initializer, shape, dtype, op_name))

    def _zeros_slot(self, var: Variable, slot_name: str, op_name: str) -> Variable:
        """The slot of `var`; made at the first call, starting at zero."""
        return self._slot(var, slot_name, lambda: slots.create_zeros_slot(var, op_name))

    def _slot(self, var: Variable, slot_name: str, make: Callable[[], Variable]) -> Variable:
        named = self._slot_dict(slot_name)
        key = _var_key(var)
        if key not in named:
            named[key] = make()
        return named[key]


def collect_train_op(train_op: Operation) -> Operation:
    """Adds an operation to the graph's training operations, and gives it."""
    collected = get_default_graph().get_collection_ref(GraphKeys.TRAIN_OP)
    if train_op not in collected:
        collected.append(train_op)
    return train_op


def _flat_variables(var_list: VariableList | None) -> list[Any]:
    if var_list is None:
        result = trainable_variables() + get_collection(GraphKeys.TRAINABLE_RESOURCE_VARIABLES)
        return result
    if isinstance(var_list, dict):
        var_list = [var_list[k] for k in sorted(var_list)]
    if not isinstance(var_list, (list, tuple)):
        var_list = [var_list]
    flat: list[Any] = []
    for item in var_list:
        if isinstance(item, (list, tuple, dict)):
            flat += _flat_variables(item)
        elif isinstance(item, (Variable, Tensor)):
            flat.append(item)
        else:
            raise NotImplementedError("Trying to optimize unsupported type ", item)
    return flat


def _checked_pairs(grads_and_vars: GradsAndVars) -> tuple[tuple[Gradient, Any], ...]:
    pairs = tuple(grads_and_vars)
    if not pairs:
        raise ValueError("No variables provided.")
    checked = []
    for pair in pairs:
        try:
            grad, var = pair
        except (TypeError, ValueError):
            raise TypeError(
                f"grads_and_vars must be a list of (gradient, variable) pairs, not {pair!r}."
            ) from None
        if grad is not None and not isinstance(grad, IndexedSlices):
            try:
                grad = to_tensor(grad)
            except TypeError:
                raise TypeError(
                    f"Gradient must be convertible to a Tensor or IndexedSlices, or None: {grad}"
                ) from None
        if not isinstance(var, (Variable, Tensor)):
            raise NotImplementedError("Trying to optimize unsupported type ", var)
        checked.append((grad, var))
    return tuple(checked)


def _count_step(updated: Operation, global_step: GlobalStep, scope: str) -> Any:
    """Adds one to the global step when the updates are done, under the name of the whole."""
    with control_dependencies([updated]), colocate_with(global_step.op):
        if isinstance(global_step, ResourceVariable):
            one = to_tensor(1, global_step.dtype)
            return apply_op("AssignAddVariableOp", global_step.handle, one, name=scope)
        return assign_add(global_step, 1, name=scope)


def _deduplicate_indexed_slices(values: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    """The rows with those of equal index added up, and the indices, each once."""
    # Equal rows applied one after the other differ from their sum, except in plain descent.
    unique, positions = apply_list("Unique", indices)
    return apply("UnsortedSegmentSum", values, positions, apply("Shape", unique)[0]), unique
