"""Graphs as `GraphDef`: writing graphs, nodes and attributes; reading attributes."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph import registry
from tensorfleet.graph.checking import MAX_CONSTANT_BYTES
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Operation
from tensorfleet.graph.tensor_proto import array_of, proto_of, stored_bytes

if TYPE_CHECKING:
    from tensorfleet.base.protos import AttrValue, GraphDef, NodeDef, OpDef, VersionDef

GRAPH_DEF_VERSION = 134  # the GraphDef version of TensorFlow 1.15
_MIN_CONSUMER = 0


def versions() -> VersionDef:
    """The `VersionDef` of the graphs written here."""
    from tensorfleet.base.protos import VersionDef

    return VersionDef(producer=GRAPH_DEF_VERSION, min_consumer=_MIN_CONSUMER)


def graph_versions(graph: Graph) -> VersionDef:
    """The `VersionDef` of a graph; after an import, that of the imported nodes."""
    result = versions()
    if graph._versions is not None:
        result.CopyFrom(graph._versions)
    return result


# -- attributes ---------------------------------------------------------------------------------------


def attr_to_proto(kind: str, value: Any, proto: AttrValue) -> None:
    """Writes an attribute of a known kind into an `AttrValue`."""
    if kind.startswith("list("):
        target = proto.list
        target.SetInParent()
        inner = kind[5:-1]
        for v in value:
            _append(inner, v, target)
        return
    if kind == "type":
        proto.type = value.as_datatype_enum
    elif kind == "int":
        proto.i = value
    elif kind == "float":
        proto.f = value
    elif kind == "bool":
        proto.b = value
    elif kind == "string":
        proto.s = value
    elif kind == "shape":
        proto.shape.CopyFrom(value.as_proto())
    elif kind == "tensor":
        proto.tensor.CopyFrom(proto_of(value))
    elif kind == "func":
        proto.func.name = value if isinstance(value, str) else value.name
    else:
        raise TypeError(f"No way to write an attribute of kind {kind}.")


def _append(kind: str, value: Any, target: AttrValue.ListValue) -> None:
    if kind == "type":
        target.type.append(value.as_datatype_enum)
    elif kind == "int":
        target.i.append(value)
    elif kind == "float":
        target.f.append(value)
    elif kind == "bool":
        target.b.append(value)
    elif kind == "string":
        target.s.append(value)
    elif kind == "shape":
        target.shape.add().CopyFrom(value.as_proto())
    elif kind == "tensor":
        target.tensor.add().CopyFrom(proto_of(value))
    elif kind == "func":
        target.func.add(name=value if isinstance(value, str) else value.name)
    else:
        raise TypeError(f"No way to write a list attribute of kind {kind}.")


def attr_message(kind: str, value: Any, dtype: DType | None) -> Any:
    """An attribute whose values are protocol messages, or a list of them, as `Operation.get_attr` gives it."""
    from tensorfleet.base.protos import AttrValue

    message = AttrValue()
    attr_to_proto(kind, (value, dtype) if kind == "tensor" else value, message)
    inner = kind.removeprefix("list(").rstrip(")")
    return list(getattr(message.list, inner)) if kind.startswith("list(") else getattr(message, inner)


def guess_kind(value: object) -> str:
    """The kind of an attribute that is not in the op's declaration, such as `_class`."""
    if isinstance(value, (list, tuple)):
        return f"list({guess_kind(value[0]) if value else 'string'})"
    # bool before int, whose subclass it is.
    kinds: list[tuple[Any, str]] = [
        (bool, "bool"),
        (int, "int"),
        (float, "float"),
        (bytes, "string"),
        (str, "string"),
    ]
    kinds += [(DType, "type"), (TensorShape, "shape"), (np.ndarray, "tensor")]
    for cls, kind in kinds:
        if isinstance(value, cls):
            return kind
    raise TypeError(f"An attribute cannot hold {value!r}.")


def attr_from_proto(proto: AttrValue) -> Any:
    """The Python value of an `AttrValue`."""
    which = proto.WhichOneof("value")
    if which == "list":
        return _list_from_proto(proto.list)
    if which == "type":
        return dtypes.as_dtype(proto.type)
    if which == "shape":
        return TensorShape(proto.shape)
    if which == "tensor":
        return array_of(proto.tensor)
    if which == "func":
        return proto.func.name
    if which is None:
        return None
    return getattr(proto, which)


def _list_from_proto(values: AttrValue.ListValue) -> list[Any]:
    if values.type:
        return [dtypes.as_dtype(t) for t in values.type]
    if values.shape:
        return [TensorShape(s) for s in values.shape]
    if values.tensor:
        return [array_of(t) for t in values.tensor]
    for field in ("s", "i", "f", "b"):
        result = list(getattr(values, field))
        if result:
            return result
    return []


# -- out ----------------------------------------------------------------------------------------------


def op_def(spec: registry.OpSpec) -> OpDef:
    """The `OpDef` of an op type."""
    from tensorfleet.base.protos import OpDef

    proto = OpDef(name=spec.name, is_stateful=spec.stateful or spec.host)
    for args, target in ((spec.inputs, proto.input_arg), (spec.outputs, proto.output_arg)):
        for arg in args:
            entry = target.add(name=arg.name, type_attr=arg.type_attr, is_ref=arg.is_ref)
            entry.number_attr, entry.type_list_attr = arg.number_attr, arg.type_list_attr
            if arg.dtype is not None:
                entry.type = arg.dtype.as_datatype_enum
    for attr in spec.attrs.values():
        declared = proto.attr.add(name=attr.name, type=attr.kind)
        if attr.default is not registry.REQUIRED:
            attr_to_proto(attr.kind, attr.default, declared.default_value)
        if attr.allowed is not None:
            declared.allowed_values.list.SetInParent()
            for v in attr.allowed:
                _append("type" if isinstance(v, DType) else "string", v, declared.allowed_values.list)
    return proto


def node_def(op: Operation, add_shapes: bool = False) -> NodeDef:
    """The `NodeDef` of an operation."""
    from tensorfleet.base.protos import NodeDef

    node = NodeDef(name=op.name, op=op.type, device=op.device)
    node.input.extend(t._as_node_def_input() for t in op._inputs)
    node.input.extend(f"^{c.name}" for c in op._control_inputs)
    for name, value in op._attrs.items():
        kind = op.spec.attrs[name].kind if name in op.spec.attrs else guess_kind(value)
        if kind == "string" and isinstance(value, str):
            value = value.encode()
        if kind == "tensor":
            value = (value, op._attrs.get("dtype"))
        attr_to_proto(kind, value, node.attr[name])
    if add_shapes and op._outputs:
        target = node.attr["_output_shapes"].list
        for t in op._outputs:
            target.shape.add().CopyFrom(t.shape.as_proto())
    return node


def export_graph(graph: Graph, from_version: int | None = None, add_shapes: bool = False) -> GraphDef:
    """A graph as a `GraphDef`."""
    from tensorfleet.base.protos import GraphDef

    proto = GraphDef(versions=graph_versions(graph))
    constants = (op._attrs["value"] for op in list(graph._ops) if op.type == "Const")
    if sum(stored_bytes(value) for value in constants) >= MAX_CONSTANT_BYTES:
        raise ValueError("GraphDef cannot be larger than 2GB. Keep large constants in files or variables.")
    # Other threads may be adding operations: whatever one here was given as input is further on in the list.
    for op in itertools.islice(graph._ops, from_version or 0, None):
        proto.node.add().CopyFrom(node_def(op, add_shapes))
    if graph._functions:
        from tensorfleet.graph.library import add_library

        add_library(proto, graph)
    return proto


# -- scopes of exported names -------------------------------------------------------------------------


def strip_scope(name: str, export_scope: str | None) -> str:
    """A name without the scope it is exported from."""
    if not export_scope:
        return name
    prefix = export_scope.rstrip("/") + "/"
    for mark in ("loc:@", "^", ""):
        if name.startswith(mark + prefix):
            return mark + name[len(mark + prefix) :].lstrip("/")
    return name


def prepend_scope(name: str, import_scope: str | None) -> str:
    """A name inside the scope it is imported to."""
    if not import_scope:
        return name
    prefix = import_scope.rstrip("/") + "/"
    for mark in ("loc:@", "^"):
        if name.startswith(mark):
            return mark + prefix + name[len(mark) :]
    return prefix + name
