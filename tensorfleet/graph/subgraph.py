"""`tf.graph_util`: parts of GraphDefs, and GraphDefs with constants for variables."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, TypeVar

from tensorfleet.base import dtypes, logging
from tensorfleet.base.naming import export
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.tensor_proto import make_tensor_proto

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from tensorfleet.base.protos import AttrValue, GraphDef, NodeDef
    from tensorfleet.base.shapes import TensorShape
    from tensorfleet.base.types import Array
    from tensorfleet.graph.operation import Operation, Tensor
    from tensorfleet.graph.scopes import SessionLike

M = TypeVar("M", bound="Message")
_VARIABLES = ("Variable", "VariableV2", "VarHandleOp")
# What hands a variable on as it is, into a branch or a loop.
_PASSING = ("Enter", "Identity", "Switch")


def _node_name(name: str) -> str:
    """The node that an input such as `^a`, or `a:1`, names."""
    return name.removeprefix("^").partition(":")[0]


def _copy(message: M) -> M:
    return type(message).FromString(message.SerializeToString())


def _same_library(graph_def: GraphDef) -> GraphDef:
    """An empty GraphDef with the functions and versions of another."""
    result = type(graph_def)()
    for part in ("library", "versions"):
        if graph_def.HasField(part):
            getattr(result, part).CopyFrom(getattr(graph_def, part))
    return result


@export("graph_util.extract_sub_graph")
def extract_sub_graph(graph_def: GraphDef, dest_nodes: Iterable[str]) -> GraphDef:
    """The nodes that `dest_nodes` need, in the order they had."""
    if not hasattr(graph_def, "node"):
        raise TypeError("graph_def must be a graph_pb2.GraphDef proto.")
    if isinstance(dest_nodes, str):
        raise TypeError(
            f"dest_nodes must be a list or another iterable of strings, but got type {type(dest_nodes)}."
        )
    nodes = {n.name: n for n in graph_def.node}
    for name in dest_nodes:
        if name not in nodes:
            raise AssertionError(f"{name} is not in graph")
    needed: set[str] = set()
    waiting = list(dest_nodes)
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += [_node_name(i) for i in nodes[name].input]
    result = _same_library(graph_def)
    result.node.extend(_copy(n) for n in graph_def.node if n.name in needed)
    return result


@export(
    "graph_util.convert_variables_to_constants", "python.framework.graph_util.convert_variables_to_constants"
)
def convert_variables_to_constants(
    sess: SessionLike,
    input_graph_def: GraphDef,
    output_node_names: list[str],
    variable_names_whitelist: Collection[str] | None = None,
    variable_names_blacklist: Collection[str] | None = None,
) -> GraphDef:
    """The nodes that the outputs need, with the variables replaced by constants of their values now."""
    graph_def = extract_sub_graph(input_graph_def, output_node_names)
    values = _values(sess, graph_def, variable_names_whitelist, variable_names_blacklist)
    kinds = _kinds(graph_def, values)
    result = _same_library(graph_def)
    for node in graph_def.node:
        result.node.append(
            _constant(node, values[node.name]) if node.name in values else _frozen(node, kinds)
        )
    logging.info("Converted %d variables to const ops.", len(values))
    return result


def _values(
    sess: SessionLike, graph_def: GraphDef, only: Collection[str] | None, never: Collection[str] | None
) -> dict[str, Array]:
    names = [
        n.name
        for n in graph_def.node
        if n.op in _VARIABLES and (only is None or n.name in only) and (never is None or n.name not in never)
    ]
    tensors = []
    for name in names:
        op = sess.graph.get_operation_by_name(name)
        tensors.append(_read_of(op).name if op.type == "VarHandleOp" else f"{name}:0")
    return dict(zip(names, sess.run(tensors), strict=True)) if names else {}


def _read_of(handle: Operation) -> Tensor:
    """A tensor that reads a resource variable."""
    for op in handle.outputs[0].consumers():
        if op.type == "ReadVariableOp":
            return op.outputs[0]
    raise ValueError(f"Variable {handle.name!r} is never read in this graph; read it, or leave it out.")


def _kinds(graph_def: GraphDef, values: dict[str, Array]) -> dict[str, AttrValue]:
    """The type, as an attribute, of each frozen variable, and of the nodes that hand it on."""
    kinds = {n.name: n.attr["dtype"] for n in graph_def.node if n.name in values}
    passing = [n for n in graph_def.node if n.op in _PASSING and n.input]
    before = -1
    # A handle may pass through several nodes, in any order in the message: until no more are found.
    while before != len(kinds):
        before = len(kinds)
        kinds |= {n.name: kinds[s] for n in passing if (s := _node_name(n.input[0])) in kinds}
    return kinds


def _frozen(node: NodeDef, kinds: dict[str, AttrValue]) -> NodeDef:
    """A node as it is once the variables are constants."""
    kind = kinds.get(_node_name(node.input[0])) if node.input else None
    if kind is not None and node.op == "ReadVariableOp":
        result = type(node)(name=node.name, op="Identity", input=node.input, device=node.device)
        result.attr["T"].CopyFrom(node.attr["dtype"])
        return result
    if kind is not None and node.op == "ResourceGather":
        return _gather(node)
    result = _copy(node)
    if kind is not None and node.name in kinds and node.attr["T"].type == dtypes.resource.as_datatype_enum:
        result.attr["T"].CopyFrom(kind)
        result.attr.pop("_output_shapes", None)
    return result


def _constant(node: NodeDef, value: Array) -> NodeDef:
    result = type(node)(name=node.name, op="Const", device=node.device)
    result.attr["dtype"].CopyFrom(node.attr["dtype"])
    result.attr["value"].tensor.CopyFrom(make_tensor_proto(value, dtypes.as_dtype(node.attr["dtype"].type)))
    return result


def _gather(node: NodeDef) -> NodeDef:
    """Rows of a constant; Gather, unlike GatherV2, needs no axis to be added as a node."""
    result = type(node)(name=node.name, op="Gather", input=node.input, device=node.device)
    result.attr["Tparams"].CopyFrom(node.attr["dtype"])
    result.attr["Tindices"].CopyFrom(node.attr["Tindices"])
    result.attr["validate_indices"].CopyFrom(node.attr["validate_indices"])
    return result


@export("graph_util.remove_training_nodes")
def remove_training_nodes(input_graph: GraphDef, protected_nodes: Iterable[str] | None = None) -> GraphDef:
    """The graph without CheckNumerics and Identity nodes, which inference does not need."""
    kept = set(protected_nodes or ())
    checks = {n.name for n in input_graph.node if n.op == "CheckNumerics"} - kept
    inputs = {n.name: [i for i in n.input if not _waits_for(i, checks)] for n in input_graph.node}
    waited_for = {_node_name(i) for given in inputs.values() for i in given if i.startswith("^")}
    replaced = {
        n.name: inputs[n.name][0]
        for n in input_graph.node
        if n.name in checks
        or (
            n.op == "Identity"
            and n.name not in kept | waited_for
            and not any(i.startswith("^") for i in inputs[n.name])
        )
    }

    def source(name: str) -> str:
        while _node_name(name) in replaced and not name.startswith("^"):
            name = replaced[_node_name(name)]
        return name

    result = _same_library(input_graph)
    for node in input_graph.node:
        if node.name not in replaced:
            new = result.node.add()
            new.CopyFrom(node)
            new.input[:] = [source(i) for i in inputs[node.name]]
    return result


def _waits_for(name: str, nodes: set[str]) -> bool:
    return name.startswith("^") and _node_name(name) in nodes


@export("graph_util.tensor_shape_from_node_def_name")
def tensor_shape_from_node_def_name(graph: Graph, input_name: str) -> TensorShape:
    """The static shape of a tensor named as a NodeDef names its inputs."""
    name = input_name if ":" in input_name else f"{input_name}:0"
    return graph.get_tensor_by_name(name).get_shape()


@export("graph_util.must_run_on_cpu")
def must_run_on_cpu(node: NodeDef | Operation, pin_variables_on_cpu: bool = False) -> bool:
    """Whether a node handles strings, or is a variable and these are to stay on the CPU."""
    node_def = node.node_def if hasattr(node, "node_def") else node
    if pin_variables_on_cpu and node_def.op in _VARIABLES:
        return True
    kind = {"Const": "dtype", "DynamicStitch": "T", "DynamicPartition": "T"}.get(node_def.op)
    if kind is None:
        return False
    wanted = dtypes.string if node_def.op == "Const" else dtypes.int32
    return dtypes.as_dtype(node_def.attr[kind].type) == wanted
