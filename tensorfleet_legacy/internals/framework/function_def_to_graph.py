"""Parts of graphs as `FunctionDef` messages, and these as graphs: what TensorFlow has inside for functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tensorfleet.base.naming import export
from tensorfleet.base.shapes import as_shape
from tensorfleet.graph import registry
from tensorfleet.graph.functions import FunctionGraph
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.graphdef import attr_from_proto, versions
from tensorfleet.graph.library import add_body, add_library, body_of, plain_nodes
from tensorfleet.graph.operation import Operation, Tensor, arg_count
from tensorfleet.graph.scopes import get_default_graph

_FRAMEWORK = "python.framework"


@export(f"{_FRAMEWORK}.graph_to_function_def.graph_to_function_def")
def graph_to_function_def(
    graph: Graph,
    operations: Sequence[Operation],
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    out_names: Sequence[str] | None = None,
) -> Any:
    """Some operations of a graph as the body of a function, with its arguments and results."""
    from tensorfleet.base.protos import FunctionDef

    if out_names is not None and len(out_names) != len(outputs):
        raise ValueError(
            f"Length of out_names ({len(out_names)}) does not match number of outputs ({len(outputs)}): {out_names}"
        )
    proto: Any = FunctionDef()
    proto.signature.name = "_"
    arguments: dict[Tensor, str] = {}
    for tensor in inputs:
        arguments[tensor] = name = _unused(_plain_name(tensor), arguments.values())
        proto.signature.input_arg.add(name=name, type=tensor.dtype.base_dtype.as_datatype_enum)
    results: dict[str, Tensor] = {}
    for i, tensor in enumerate(outputs):
        name = (
            _unused(_plain_name(tensor), (*arguments.values(), *results))
            if out_names is None
            else out_names[i]
        )
        results[name] = tensor
    add_body(proto, operations, arguments, results)
    return proto


def _plain_name(tensor: Tensor) -> str:
    return re.sub(":0$", "", tensor.name).replace(":", "_o")


def _unused(name: str, used: Any) -> str:
    taken, number, result = set(used), 0, name
    while result in taken:
        number += 1
        result = f"{name}_{number}"
    return result


def _shapes(fdef: Any, given: Sequence[Any] | None) -> list[Any] | None:
    """The shapes of a function's arguments: as told, or as it says itself."""
    if given is None and "_input_shapes" in fdef.attr:
        given = fdef.attr["_input_shapes"].list.shape
    if given is not None and len(given) != len(fdef.signature.input_arg):
        raise ValueError(
            f"Length of input_shapes must match the number of input_args. len(input_shapes): {len(given)} "
            f"len(input_arg): {len(fdef.signature.input_arg)}"
        )
    return None if given is None else list(given)


@export(f"{_FRAMEWORK}.function_def_to_graph.function_def_to_graph")
def function_def_to_graph(
    fdef: Any, input_shapes: Sequence[Any] | None = None, copy_functions: bool = True
) -> FunctionGraph:
    """The graph of a function, with its `inputs` and `outputs`; functions that it calls are the default graph's."""
    return body_of(get_default_graph(), fdef, _shapes(fdef, input_shapes))


@export(f"{_FRAMEWORK}.function_def_to_graph.function_def_to_graph_def")
def function_def_to_graph_def(
    fdef: Any, input_shapes: Sequence[Any] | None = None, copy_functions: bool = True
) -> tuple[Any, dict[str, str]]:
    """A function as a `GraphDef` with placeholders for its arguments; and its tensors' names in it, by those in `fdef`."""
    from tensorfleet.base.protos import GraphDef

    result, shapes = GraphDef(versions=versions()), _shapes(fdef, input_shapes)
    names: dict[str, str] = {}
    for i, arg in enumerate(fdef.signature.input_arg):
        node: Any = result.node.add(name=arg.name, op="Placeholder")
        node.attr["dtype"].type = arg.type
        if shapes is not None and shapes[i] is not None:
            node.attr["shape"].shape.CopyFrom(as_shape(shapes[i]).as_proto())
        for key, value in fdef.arg_attr[i].attr.items():
            node.attr[key].CopyFrom(value)
        names |= {arg.name: f"{arg.name}:0", f"^{arg.name}": f"^{arg.name}"}
    for plain in plain_nodes(fdef).node:
        inputs = [text if text.startswith("^") or ":" in text else f"{text}:0" for text in plain.input]
        del plain.input[:]
        plain.input.extend(inputs)
        result.node.add().CopyFrom(plain)
        names |= _names_of(plain)
    if copy_functions:
        add_library(result, get_default_graph())
    return result, names


def _names_of(node: Any) -> dict[str, str]:
    """The names of a node's results in a graph, by their names in a function."""
    attrs = {key: attr_from_proto(value) for key, value in node.attr.items()}
    inner = [
        f"{node.name}:{arg.name}:{i}"
        for arg in registry.get(node.op).outputs
        for i in range(arg_count(arg, attrs))
    ]
    return {f"^{node.name}": f"^{node.name}"} | {name: f"{node.name}:{i}" for i, name in enumerate(inner)}
