"""`tensorflow.python.framework.subscribe`: side effects for the values of tensors of a graph that is already built."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tensorfleet.base import dtypes
from tensorfleet.base.naming import export, find
from tensorfleet.graph.apply import apply
from tensorfleet.graph.operation import Operation, Tensor


@export("python.framework.subscribe.subscribe")
def subscribe(tensors: Any, side_effects: Any) -> Any:
    """Runs side effects whenever tensors are computed for something that uses them.

    `side_effects` are functions of a tensor that return an operation or tensors. Everything that used one of
    `tensors` uses instead a tensor that waits for the side effects; those are returned, arranged as `tensors`
    are. Handles of resources have no value and are returned as they are.
    """
    effects = side_effects if isinstance(side_effects, (list, tuple)) else [side_effects]
    waiting: dict[Operation, list[Operation]] = {}
    return _mapped(tensors, lambda tensor: _subscribed(tensor, effects, waiting))


def _mapped(structure: Any, change: Callable) -> Any:
    if isinstance(structure, (Tensor, find("Variable"))):
        return change(structure)
    if isinstance(structure, (list, tuple)):
        items = [_mapped(s, change) for s in structure]
        return type(structure)(*items) if hasattr(structure, "_fields") else type(structure)(items)
    if isinstance(structure, dict):
        return type(structure)((k, _mapped(v, change)) for k, v in structure.items())
    raise TypeError(
        f"subscribe argument {structure!r} has invalid type {type(structure).__name__!r}. Give a tensor, or lists, "
        "tuples or dictionaries of tensors."
    )


def _subscribed(of: Any, effects: Iterable[Callable], waiting: dict[Operation, list[Operation]]) -> Tensor:
    tensor: Tensor = of if isinstance(of, Tensor) else of.value()
    if is_subscribed_identity(tensor):
        tensor = tensor.op.inputs[0]
    if tensor.dtype.base_dtype in (dtypes.resource, dtypes.variant):
        return tensor
    graph, op = tensor.graph, tensor.op
    if not waiting:
        for other in graph.get_operations():
            for earlier in other._control_inputs:
                waiting.setdefault(earlier, []).append(other)
    output = next((c.outputs[0] for c in tensor.consumers() if is_subscribed_identity(c.outputs[0])), None)
    users = [] if output is not None else _users(tensor)
    with (
        graph.device(None),
        graph.device(op.device),
        graph.control_dependencies(None),
        graph.name_scope(f"{op.name}/subscription/"),
    ):
        graph._set_control_flow_context(op._get_control_flow_context())
        done = [t for effect in effects for t in _list(effect(tensor))]
        result = apply("Identity", tensor) if output is None else output
    result.op._add_control_inputs([getattr(t, "op", t) for t in done])
    for user, place in users:
        user._update_input(place, result)
    if output is None:
        for user in waiting.get(op, ()):
            others = [c for c in user.control_inputs if c is not op]
            user._remove_all_control_inputs()
            user._add_control_inputs([*others, result.op])
    return result


def _users(tensor: Tensor) -> list[tuple[Operation, int]]:
    """The consumers of a tensor with the position of the input; updates of a variable do not count."""
    return [
        (user, place)
        for user in dict.fromkeys(tensor.consumers())
        for place, given in enumerate(user.inputs)
        if given is tensor and not user._input_types[place]._is_ref_dtype
    ]


def _list(value: Any) -> list:
    return list(value) if isinstance(value, (list, tuple)) else [value]


@export("python.framework.subscribe._is_subscribed_identity")
def is_subscribed_identity(tensor: Tensor) -> bool:
    """Whether a tensor is one that `subscribe` returned."""
    op = tensor.op
    return op.type == "Identity" and op.name.startswith(f"{op.inputs[0].op.name}/subscription/Identity")
