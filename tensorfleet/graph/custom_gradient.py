"""`tf.custom_gradient`: functions that bring their gradients along."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tensorfleet.base import nest
from tensorfleet.base.naming import export
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.gradient_sources import source
from tensorfleet.graph.gradients import gradients
from tensorfleet.graph.operation import Operation
from tensorfleet.graph.scopes import GraphKeys, control_dependencies, get_collection, get_default_graph

if TYPE_CHECKING:
    from tensorfleet.base.types import TensorLike
    from tensorfleet.graph.operation import Tensor
    from tensorfleet.graph.registry import Gradient


@export("custom_gradient")
def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: `f` returns its result and the function that computes its gradient."""

    @functools.wraps(f)
    def wrapped(*args: TensorLike, **kwargs: object) -> Any:
        if kwargs:
            raise ValueError(
                "The custom_gradient decorator currently supports keywords arguments only when eager execution is enabled."
            )
        graph = get_default_graph()
        inputs = [to_tensor(a) for a in args]
        first, before = len(graph.get_operations()), set(map(id, get_collection(GraphKeys.GLOBAL_VARIABLES)))
        result, grad_fn = f(*inputs)
        variables = _used(graph.get_operations()[first:], before)
        options = {"variables": variables} if variables else {}
        if variables and not _takes_variables(grad_fn):
            raise TypeError(
                "If using @custom_gradient with a function that uses variables, then grad_fn must accept a "
                "'variables' keyword argument."
            )
        flat = nest.flatten(result)
        # The inputs and variables pass through the IdentityN as well, so that it lies between them and the result in the
        # graph: `gradients` then reaches it from each of them, and it hands their gradients out.
        outputs = apply_list(
            "IdentityN", [*[to_tensor(r) for r in flat], *inputs, *map(to_tensor, variables)]
        )
        count = len(flat)

        def gradient(op: Operation, *grads: Tensor | None) -> list[Gradient]:
            result = grad_fn(*grads[:count], **options)
            given, of_variables = result if variables else (result, [])
            given = nest.flatten(given)
            for what, some, wanted in (("inputs", given, inputs), ("variables", of_variables, variables)):
                if len(some) != len(wanted):
                    raise ValueError(
                        f"The gradient function of {f.__name__} gave {len(some)} gradients for {len(wanted)} {what}."
                    )
            return [None] * count + given + list(of_variables)

        outputs[0]._op._gradient_function = gradient
        return nest.pack_sequence_as(result, list(outputs[:count]))

    return wrapped


def _used(ops: list[Operation], before: set[int]) -> list[Any]:
    """The trainable variables that operations use; TypeError when new ones are not resources."""
    every = get_collection(GraphKeys.GLOBAL_VARIABLES)
    if any(id(v) not in before and v.dtype._is_ref_dtype for v in every):
        raise TypeError(
            "All variables used by `f` wrapped with @custom_gradient must be `ResourceVariable`s. Ensure that no "
            "`variable_scope` is created with `use_resource=False`."
        )
    handles = {t for op in ops for t in op._inputs if t.dtype.name == "resource"}
    return [v for v in every if getattr(v, "trainable", False) and getattr(v, "handle", None) in handles]


def _takes_variables(function: Callable[..., Any]) -> bool:
    given = inspect.signature(function).parameters.values()
    return any(p.name == "variables" or p.kind is p.VAR_KEYWORD for p in given)


@export("python.ops.custom_gradient.get_dependent_variables")
def dependent_variables(input_ops: object, output_ops: object) -> list[Any]:
    """The trainable variables that lie behind outputs, but not behind inputs, on paths that have gradients."""
    inputs, outputs = nest.flatten(input_ops), nest.flatten(output_ops)
    variables = {source(v): v for v in get_collection(GraphKeys.TRAINABLE_VARIABLES)}
    ends = {t._op for t in inputs}
    seen: set[Operation] = set()
    result: list[Any] = []
    back = [t._op for t in reversed(outputs)]
    while back:
        op = back.pop()
        if op in seen or op in ends:
            continue
        seen.add(op)
        result += [variables[t] for t in op._outputs if t in variables]
        if op._gradient_function is not None or op.spec.differentiable:
            back += [t._op for t in reversed(op._inputs)]
    return result


@export("recompute_grad")
def recompute_grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function like `f` that computes its inner values again for the gradient instead of keeping them."""

    @custom_gradient
    def inner(*args: Tensor) -> tuple[Any, Callable[..., Any]]:
        result = f(*args)

        def gradient(*grads: Gradient, variables: Sequence[TensorLike] = ()) -> Any:
            with control_dependencies([g for g in grads if g is not None]):
                fresh = [apply("Identity", a) for a in args]  # one tensor may have been given twice
                again = f(*fresh)
            result = gradients(again, [*fresh, *variables], list(grads))
            return (result[: len(args)], result[len(args) :]) if variables else result

        return result, gradient

    return inner
