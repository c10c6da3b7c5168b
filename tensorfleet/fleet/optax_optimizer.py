"""`tf.fleet.OptaxOptimizer`: the optimizers of Optax as `tf.train.Optimizer`s."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from tensorfleet.api.train import slots
from tensorfleet.api.train.optimizer import Optimizer
from tensorfleet.api.variables.variable import ResourceVariable, Variable, assign
from tensorfleet.base.naming import export
from tensorfleet.base.types import Array
from tensorfleet.fleet.jax_functions import jax_op, trace_flat
from tensorfleet.fleet.jax_trees import Path, PyTree, flatten, unflatten, variable_name
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import colocate_with, control_dependencies
from tensorfleet.kernels.exported_functions import ArrayType
from tensorfleet.ops.array.basic import group
from tensorfleet.ops.array.gather import gather
from tensorfleet.ops.control.jax_call import update_variables
from tensorfleet.ops.state.scatter_variables import scatter_update
from tensorfleet.runtime.devices import load_jax

# With these it is tried out what a transformation looks at.
_PROBE_SCALES = (np.float32(1e3), np.float32(0.1))
_PROBE = np.array([[1, 2], [-3, 0.5], [0.1, -1]], np.float32)
_WIDE = ("float64", "complex128")


@export("fleet.OptaxOptimizer")
class OptaxOptimizer(Optimizer):
    """Trains variables by a gradient transformation of Optax: `tf.fleet.OptaxOptimizer(optax.adamw(1e-3))`.

    Each variable is a tree of its own for the transformation. Its state is in slots beside the variable, on its parameter
    server, and in checkpoints: "w/Optax/0/mu". The update is one XLA program there. A transformation that looks at
    several variables at once, such as `optax.clip_by_global_norm`, is refused.

    A gradient by rows (IndexedSlices) changes only these rows, of the variable and of its slots: to the transformation
    they are the whole variable. Counts go on by one each step.
    """

    def __init__(self, transformation: Any, use_locking: bool = False, name: str = "Optax") -> None:
        super().__init__(use_locking, name)
        if not (
            callable(getattr(transformation, "init", None))
            and callable(getattr(transformation, "update", None))
        ):
            raise TypeError(
                f"transformation must be one of Optax's, such as optax.adamw(1e-3), not {transformation!r}."
            )
        self._transformation = transformation
        self._states: dict[tuple[Any, ...], tuple[list[tuple[Path, Any]], Any]] = {}
        probe = {"a": _PROBE[0], "b": _PROBE}
        if not _works_on_parts(transformation, probe, [itemgetter("a"), itemgetter("b")]):
            raise ValueError(
                "transformation looks at several variables at once, as optax.clip_by_global_norm does; here each variable "
                "is updated on its own, where it is. Leave that part out, and change the gradients between "
                "compute_gradients and apply_gradients: tf.clip_by_global_norm."
            )

    def _state(self, var: Variable) -> tuple[list[tuple[Path, Any]], Any]:
        """The arrays of the state of a variable, each with its path, and their structure."""
        if not var.shape.is_fully_defined():
            raise ValueError(
                f"OptaxOptimizer needs the shape of {var.name}, which is {var.shape}. Give it one."
            )
        shape, dtype = tuple(var.shape.as_list()), var.dtype.base_dtype
        if (shape, dtype) not in self._states:
            jax, _ = load_jax()
            try:
                with jax.enable_x64(dtype.name in _WIDE):
                    made = jax.eval_shape(
                        self._transformation.init, jax.ShapeDtypeStruct(shape, dtype.as_numpy_dtype)
                    )
            except Exception as e:
                raise ValueError(
                    f"The transformation cannot start for {var.name} alone ({type(e).__name__}: {e}). Each variable is "
                    "a tree of its own: use several optimizers, each with its var_list."
                ) from e
            self._states[shape, dtype] = flatten(made)
        return self._states[shape, dtype]

    def _create_slots(self, var_list: list[Variable]) -> None:
        for var in var_list:
            leaves, _ = self._state(var)
            names = [variable_name(path) for path, _ in leaves]
            if all(self.get_slot(var, name) is not None for name in names):
                continue
            first = jax_op(self._transformation.init, name="init")(var.initialized_value())
            for name, (_, value) in zip(names, flatten(first)[0], strict=True):
                make = partial(slots.create_slot, var, value, f"{self._name}/{name}")
                self._slot(var, name, make)

    def _kept(self, var: Variable) -> list[Variable]:
        """The slots of a variable in the order of its state."""
        return [self.get_slot(var, variable_name(path)) for path, _ in self._state(var)[0]]

    def _stepped(self, structure: Any, param: Array, state: Sequence[Array], grad: Array) -> list[Array]:
        """The new value of a variable and its new state."""
        _, jnp = load_jax()
        updates, new = self._transformation.update(grad, unflatten(structure, state), param)
        leaves, made = flatten(new)
        if made != structure:
            raise ValueError(
                f"the state of the transformation changes its structure from {structure} to {made}"
            )
        return [jnp.asarray(param + updates).astype(param.dtype), *(jnp.asarray(leaf) for _, leaf in leaves)]

    # -- whole variables --

    def _apply_dense(self, grad: Tensor, var: Variable) -> Operation:
        structure = self._state(var)[1]
        variables = [var, *self._kept(var)]
        count = len(variables)

        def step(*values: Array) -> list[Array]:
            return self._stepped(structure, values[0], values[1:count], values[count])

        types = [_type_of(v) for v in variables]
        labels = [*(v.op.name for v in variables), f"the gradient of {var.op.name}"]
        traced = trace_flat(step, "update", labels, [*types, types[0]])
        if traced.exported.results != tuple(types):
            raise ValueError(
                f"The state of {var.op.name} changes its types in a step: from {types} to {traced.exported.results}. Use a "
                "transformation that keeps them."
            )
        handles = [
            v.handle if isinstance(v, ResourceVariable) else to_tensor(v, as_ref=True) for v in variables
        ]
        return update_variables(traced, handles, [grad])

    def _resource_apply_dense(self, grad: Tensor, handle: ResourceVariable) -> Operation:
        return self._apply_dense(grad, handle)

    # -- rows --

    def _apply_sparse(self, grad: IndexedSlices, var: Variable) -> Operation:
        leaves, structure = self._state(var)
        kept = self._kept(var)
        by_row = [tuple(leaf.shape) == tuple(var.shape.as_list()) for _, leaf in leaves]
        self._check_rows(var, [leaf for (_, leaf), rows in zip(leaves, by_row, strict=True) if not rows])

        def step(count: Array, param: Array, state: list[Array], grad: Array) -> list[Array]:
            _, jnp = load_jax()
            new = self._stepped(structure, param, state, grad)
            return [jnp.where(count > 0, n, o) for n, o in zip(new, [param, *state], strict=True)]

        count, indices, values = _padded(grad, len(var.shape))
        # The values of now, not those that the gradient was computed from.
        with control_dependencies([indices, values]):
            state = [
                gather(slot, indices) if rows else slot.read_value()
                for slot, rows in zip(kept, by_row, strict=True)
            ]
            param = gather(var, indices)
        new = jax_op(step, name="update_rows")(count, param, state, values)
        changed = [scatter_update(var, indices, new[0])]
        for slot, rows, value in zip(kept, by_row, new[1:], strict=True):
            changed.append(scatter_update(slot, indices, value) if rows else assign(slot, value))
        return group(*changed)

    def _resource_apply_sparse(self, grad: Tensor, handle: ResourceVariable, indices: Tensor) -> Operation:
        return self._apply_sparse(IndexedSlices(grad, indices), handle)

    def _check_rows(self, var: Variable, others: Sequence[Any]) -> None:
        """Refuses transformations that cannot change some rows alone."""
        rows = [itemgetter(slice(i, i + 1)) for i in range(len(_PROBE))]
        if any(leaf.shape for leaf in others) or not _works_on_parts(self._transformation, _PROBE, rows):
            raise ValueError(
                f"The gradient of {var.op.name} has some rows alone (IndexedSlices), and the transformation looks at the "
                "whole variable. Use one that treats each element by itself, such as optax.adamw, or make the gradient "
                "dense: tf.convert_to_tensor(gradient)."
            )


def _type_of(variable: Variable) -> ArrayType:
    sizes = ", ".join(str(d) for d in variable.shape.as_list())
    return ArrayType(variable.dtype.base_dtype.name, sizes)


def _padded(grad: IndexedSlices, rank: int) -> tuple[Tensor, Tensor, Tensor]:
    """How many rows there are, their indices and values, the last of them again and again up to a power of two.

    A program serves all numbers of rows up to its own, and a row that is written twice gets the same values. Where there
    are none, row 0 stands for them.
    """
    count = apply("Size", grad.indices)
    doublings = apply(
        "Ceil", apply("Log", apply("Cast", apply("Maximum", count, 1), DstT="float64")) / np.log(2.0)
    )
    size = apply("Cast", apply("Round", apply("Exp", doublings * np.log(2.0))), DstT="int32")
    with colocate_with(grad.values.op):
        places = apply("Minimum", apply("Range", 0, size, 1), apply("Maximum", count - 1, 0))
        indices = apply("Pad", grad.indices, [[0, 1]])
        values = apply("Pad", grad.values, [[0, 1], *([[0, 0]] * (rank - 1))])
        return count, gather(indices, places), gather(values, places)


def _works_on_parts(transformation: Any, whole: PyTree, parts: Sequence[Callable[[PyTree], PyTree]]) -> bool:
    """Whether the steps of a tree are those of its parts, each by itself.

    Tried out with gradients that are clipped, and then with some that are not. True where it cannot be tried: a step says what is wrong then.
    """
    jax, _ = load_jax()

    def steps(take: Callable[[PyTree], PyTree]) -> list[PyTree]:
        params = take(whole)
        state, made = transformation.init(params), []
        for scale in _PROBE_SCALES:
            grads = jax.tree_util.tree_map(lambda x, s=scale: s * x, params)
            updates, state = transformation.update(grads, state, params)
            made.append(updates)
        return made

    try:
        with jax.enable_x64(False):
            together = steps(lambda tree: tree)
            return all(
                np.allclose(alone, part(updates), rtol=1e-3, atol=1e-8)
                for part in parts
                for alone, updates in zip(steps(part), together, strict=True)
            )
    except Exception:  # of the transformation, which may want other arguments
        return True
