"""Small parts of `tf.contrib`: `util`, `memory_stats` and `copy_graph`."""

from __future__ import annotations

import resource
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet.api.variables.variable import Variable
from tensorfleet.base import dtypes
from tensorfleet.base.naming import find
from tensorfleet.graph import constant
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Operation, Tensor


def constant_value(tensor: Any, partial: bool = False) -> Any:
    """The value of a tensor that does not depend on feeds or state, or None.

    With `partial`, what is known of a stack of scalars; the others are None.
    """
    result = constant.constant_value(tensor)
    if result is None and partial and tensor.op.type == "Pack":
        parts = [constant.constant_value(x) for x in tensor.op.inputs]
        if any(p is not None for p in parts):
            return np.array([None if p is None else p.item() for p in parts], object)
    return result


def ops_used_by_graph_def(graph_def: Any) -> set[str]:
    """The types of the operations in a graph, those inside of its functions among them."""
    functions = {f.signature.name: f for f in graph_def.library.function}
    used: set[str] = set()
    left = [node.op for node in graph_def.node]
    while left:
        name = left.pop()
        if name in used:
            continue
        used.add(name)
        if name in functions:
            left += [node.op for node in functions[name].node_def]
    return used - set(functions)


def stripped_op_list_for_graph(graph_def: Any) -> Any:
    """The definitions of the operations that a graph uses."""
    from tensorfleet.base.protos import OpList

    result = OpList()
    for name in sorted(ops_used_by_graph_def(graph_def)):
        definition = find("python.framework.op_def_registry.get_registered_ops")().get(name)
        if definition is not None:
            result.op.add().CopyFrom(definition)
    return result


def _bytes(name: str, measure: Callable[[], int]) -> Tensor:
    result = find("py_func")(lambda: np.int64(measure()), [], dtypes.int64, stateful=True, name=name)
    result.set_shape([])
    return result


def _resident() -> int:
    import psutil  # 25 ms, for these three functions only

    return int(psutil.Process().memory_info().rss)


def _total() -> int:
    import psutil

    return int(psutil.virtual_memory().total)


def BytesInUse() -> Tensor:
    """The memory that the process has now."""
    return _bytes("BytesInUse", _resident)


def MaxBytesInUse() -> Tensor:
    """The most memory that the process had so far."""
    return _bytes(
        "MaxBytesInUse",
        lambda: max(_resident(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024),
    )


def BytesLimit() -> Tensor:
    """The memory of the machine."""
    return _bytes("BytesLimit", _total)


def _copied_name(name: str, scope: str) -> str:
    return f"{scope}/{name}" if scope else name


def copy_variable_to_graph(org_instance: Any, to_graph: Graph, scope: str = "") -> Variable:
    """A variable of another graph, made again with the value that it starts with there."""
    if not isinstance(org_instance, Variable):
        raise TypeError(f"{org_instance} is not a Variable")
    name = _copied_name(org_instance.op.name, scope)
    collections = [
        _copied_name(key, scope) if scope and key not in _standard() else key
        for key in org_instance.graph.get_all_collection_keys()
        if any(item is org_instance for item in org_instance.graph.get_collection(key))
    ]
    with org_instance.graph.as_default(), find("Session")(graph=org_instance.graph) as sess:
        value = sess.run(org_instance.initial_value)
    with to_graph.as_default():
        return find("Variable")(
            value,
            trainable=getattr(org_instance, "trainable", True),
            collections=collections,
            name=name,
            validate_shape=True,
        )


def _standard() -> set[str]:
    keys = find("GraphKeys")
    return {value for name, value in vars(keys).items() if name.isupper() and isinstance(value, str)}


def copy_op_to_graph(org_instance: Any, to_graph: Graph, variables: Any, scope: str = "") -> Any:
    """A tensor or an operation of another graph, made again with all that it needs.

    `variables` are those of the other graph that were copied before.
    """
    copies = {}
    for variable in variables:
        copied = _copied_name(variable.op.name, scope)
        copies[variable.op.name] = next(
            (v for v in to_graph.get_collection("variables") if v.op.name == copied), variable
        )
    if isinstance(org_instance, Variable):
        return copies.get(org_instance.op.name, org_instance)
    if isinstance(org_instance, Tensor):
        op = _copy(org_instance.op, to_graph, copies, scope)
        return op.outputs[org_instance.value_index]
    if not isinstance(org_instance, Operation):
        raise TypeError(f"Could not copy instance: {org_instance}")
    return _copy(org_instance, to_graph, copies, scope)


def _copy(op: Operation, graph: Graph, copies: dict[str, Any], scope: str) -> Operation:
    if op.name in copies:
        return copies[op.name].op
    name = _copied_name(op.name, scope)
    if _has(graph, name):
        return graph.get_operation_by_name(name)
    inputs = [_copy(t.op, graph, copies, scope).outputs[t.value_index] for t in op.inputs]
    controls = [_copy(c, graph, copies, scope) for c in op.control_inputs]
    with graph.as_default(), graph.control_dependencies(controls), find("name_scope")(None):
        return graph.create_op(
            op.type,
            inputs,
            [t.dtype for t in op.outputs],
            name=f"{name}/",
            attrs=dict(op.node_def.attr),
        )


def _has(graph: Graph, name: str) -> bool:
    try:
        graph.get_operation_by_name(name)
    except KeyError:
        return False
    return True


def get_copied_op(org_instance: Any, graph: Graph, scope: str = "") -> Any:
    """The copy in a graph of an operation of another graph."""
    return graph.as_graph_element(
        _copied_name(org_instance.name, scope), allow_tensor=True, allow_operation=True
    )
