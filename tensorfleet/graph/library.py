"""Functions in a GraphDef: its library, out and in.

Inside a `FunctionDef` an argument is named by its name, and another tensor by its operation, the name of the
declared output and a position within that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tensorfleet.base import dtypes
from tensorfleet.base.shapes import TensorShape, as_shape
from tensorfleet.graph import registry
from tensorfleet.graph.functions import FunctionGraph
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.graphdef import attr_from_proto, attr_to_proto, guess_kind, node_def, versions
from tensorfleet.graph.importing import extend_graph
from tensorfleet.graph.operation import Operation, Tensor, arg_count

if TYPE_CHECKING:
    from tensorfleet.base.protos import FunctionDef, GraphDef, NodeDef

# -- out ----------------------------------------------------------------------------------------------


def add_library(proto: GraphDef, graph: Graph, ops: Iterable[Operation] | None = None) -> None:
    """Adds the functions of a graph to a GraphDef: all, or the ones that some operations use, directly or not."""
    names = list(graph._functions) if ops is None else _used(graph, ops)
    for name in names:
        body = graph._functions[name]
        proto.library.function.add().CopyFrom(function_def(body) if isinstance(body, FunctionGraph) else body)
        if name in graph._function_gradients:
            proto.library.gradient.add(function_name=name, gradient_func=graph._function_gradients[name])


def _used(graph: Graph, ops: Iterable[Operation]) -> list[str]:
    result: list[str] = []
    stack = [name for op in ops for name in _named(op)]
    while stack:
        name = stack.pop()
        if name in result or name not in graph._functions:
            continue
        result.append(name)
        if name in graph._function_gradients:
            stack.append(graph._function_gradients[name])
        body = graph._functions[name]
        if isinstance(body, FunctionGraph):
            stack += [inner for op in body._ops for inner in _named(op)]
        else:
            stack += [
                a.func.name for n in body.node_def for a in n.attr.values() if a.WhichOneof("value") == "func"
            ]
    return result


def _named(op: Operation) -> list[str]:
    kinds = op.spec.attrs
    return [str(v) for k, v in op._attrs.items() if k in kinds and kinds[k].kind == "func"]


def function_def(graph: FunctionGraph) -> FunctionDef:
    """A function's body as a `FunctionDef`."""
    from tensorfleet.base.protos import FunctionDef

    proto: FunctionDef = FunctionDef()
    proto.signature.name = graph.name
    proto.signature.description = graph.told.get("description") or ""
    for key, value in graph.told.get("attrs", {}).items():
        attr_to_proto(guess_kind(value), value, proto.attr[key])
    arguments: dict[Tensor, str] = {}
    for i, tensor in enumerate((*graph.inputs, *graph.captures.values())):
        # TensorFlow takes lower-case argument names only; the number keeps them apart.
        arguments[tensor] = name = re.sub(r"[^a-z0-9_]", "_", tensor._op.name.lower()).strip("_") + f"_{i}"
        proto.signature.input_arg.add(name=name, type=tensor.dtype.base_dtype.as_datatype_enum)
        proto.arg_attr[i].attr["_output_shapes"].list.shape.add().CopyFrom(tensor.shape.as_proto())
    names = graph.told.get("output_names") or [f"output_{i}" for i in range(len(graph.outputs))]
    add_body(proto, graph._ops, arguments, dict(zip(names, graph.outputs, strict=True)))
    return proto


def add_body(
    proto: FunctionDef,
    operations: Iterable[Operation],
    arguments: dict[Tensor, str],
    results: dict[str, Tensor],
) -> None:
    """Adds operations to a `FunctionDef`, and the names of its results."""
    given = {tensor._op: name for tensor, name in arguments.items()}
    for op in operations:
        if op not in given:
            node = node_def(op)
            del node.input[:]
            node.input.extend(_reference(t, arguments) for t in op._inputs)
            node.input.extend(f"^{given.get(c, c.name)}" for c in op._control_inputs)
            proto.node_def.add().CopyFrom(node)
            proto.signature.is_stateful |= bool(op.spec.stateful)
    for name, tensor in results.items():
        proto.signature.output_arg.add(name=name, type=tensor.dtype.base_dtype.as_datatype_enum)
        proto.ret[name] = _reference(tensor, arguments)


def _reference(tensor: Tensor, arguments: dict[Tensor, str]) -> str:
    if tensor in arguments:
        return arguments[tensor]
    op, left = tensor._op, tensor._value_index
    for arg in op.spec.outputs:
        count = arg_count(arg, op._attrs)
        if left < count:
            return f"{op.name}:{arg.name}:{left}"
        left -= count
    raise AssertionError(tensor.name)


# -- in -----------------------------------------------------------------------------------------------


def plain_nodes(proto: FunctionDef) -> GraphDef:
    """The nodes of a `FunctionDef` as a `GraphDef`, in which the arguments are missing."""
    from tensorfleet.base.protos import GraphDef

    nodes = {n.name: n for n in proto.node_def}
    plain = GraphDef(versions=versions())
    for node in proto.node_def:
        copy = plain.node.add()
        copy.CopyFrom(node)
        del copy.input[:]
        copy.input.extend(_plain(text, nodes) for text in node.input)
    return plain


def body_of(graph: Graph, proto: FunctionDef, shapes: Sequence[Any] | None = None) -> FunctionGraph:
    """The body that a `FunctionDef` describes; `shapes` are those of its arguments, if they are known otherwise."""
    result = FunctionGraph(proto.signature.name, graph)
    nodes, plain = {n.name: n for n in proto.node_def}, plain_nodes(proto)
    with result.as_default():
        mapping = {}
        for i, arg in enumerate(proto.signature.input_arg):
            shape = _shape_of(proto, i) if shapes is None else as_shape(shapes[i])
            tensor = result.add_input(dtypes.as_dtype(arg.type), shape, arg.name)
            mapping[f"{arg.name}:0"] = mapping[f"^{arg.name}"] = tensor
        used = {
            text if text[0] == "^" or ":" in text else f"{text}:0" for n in plain.node for text in n.input
        }
        extend_graph(result, plain, {k: v for k, v in mapping.items() if k in used})
        for arg in proto.signature.output_arg:
            text = _plain(proto.ret[arg.name], nodes)
            name = text if ":" in text else f"{text}:0"
            result.outputs.append(mapping[name] if name in mapping else result.get_tensor_by_name(name))
    return result


def _shape_of(proto: FunctionDef, i: int) -> TensorShape:
    if i in proto.arg_attr and "_output_shapes" in proto.arg_attr[i].attr:
        shapes: list[TensorShape] = attr_from_proto(proto.arg_attr[i].attr["_output_shapes"])
        if shapes:
            return shapes[0]
    return TensorShape(None)


def _plain(text: str, nodes: dict[str, NodeDef]) -> str:
    """A reference inside a function as one inside a graph."""
    name, _, rest = text.partition(":")
    if text.startswith("^") or not rest:
        return text
    wanted, _, index = rest.partition(":")
    node = nodes[name]
    spec = registry.get(node.op)
    attrs = {k: attr_from_proto(v) for k, v in node.attr.items()}
    start = 0
    for arg in spec.outputs:
        if arg.name == wanted:
            return f"{name}:{start + int(index or 0)}"
        start += arg_count(arg, attrs)
    raise ValueError(f"Node '{name}' ({node.op}) of a function has no output '{wanted}'.")
