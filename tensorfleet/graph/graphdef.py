"""Graphs as `GraphDef`: out to TensorBoard and TensorFlow, in from either."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np

from tensorfleet import dtypes
from tensorfleet.api import export
from tensorfleet.dtypes import DType
from tensorfleet.graph import registry
from tensorfleet.graph.apply import add_raw
from tensorfleet.graph.checking import check_graph_def
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import get_default_graph
from tensorfleet.graph.tensor_proto import array_of, proto_of
from tensorfleet.shapes import TensorShape

_PRODUCER = 134  # the GraphDef version of TensorFlow 1.15
_MIN_CONSUMER = 0


def versions() -> Any:
    """The `VersionDef` of the graphs written here."""
    from tensorfleet.protos import VersionDef

    return VersionDef(producer=_PRODUCER, min_consumer=_MIN_CONSUMER)


# -- attributes ---------------------------------------------------------------------------------------


def attr_to_proto(kind: str, value: Any, proto: Any) -> None:
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


def _append(kind: str, value: Any, target: Any) -> None:
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
    else:
        raise TypeError(f"No way to write a list attribute of kind {kind}.")


def guess_kind(value: Any) -> str:
    """The kind of an attribute that is not in the op's declaration, such as `_class`."""
    if isinstance(value, (list, tuple)):
        return f"list({guess_kind(value[0]) if value else 'string'})"
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


def attr_from_proto(proto: Any) -> Any:
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


def _list_from_proto(values: Any) -> list:
    if values.type:
        return [dtypes.as_dtype(t) for t in values.type]
    if values.shape:
        return [TensorShape(s) for s in values.shape]
    if values.tensor:
        return [array_of(t) for t in values.tensor]
    for field in ("s", "i", "f", "b"):
        found = list(getattr(values, field))
        if found:
            return found
    return []


# -- out ----------------------------------------------------------------------------------------------


def op_def(spec: registry.OpSpec) -> Any:
    """The `OpDef` of an op type."""
    from tensorfleet.protos import OpDef

    proto: Any = OpDef(name=spec.name, is_stateful=spec.stateful or spec.host)
    for args, target in ((spec.inputs, proto.input_arg), (spec.outputs, proto.output_arg)):
        for arg in args:
            made = target.add(name=arg.name, type_attr=arg.type_attr, is_ref=arg.is_ref)
            made.number_attr, made.type_list_attr = arg.number_attr, arg.type_list_attr
            if arg.dtype is not None:
                made.type = arg.dtype.as_datatype_enum
    for attr in spec.attrs.values():
        made = proto.attr.add(name=attr.name, type=attr.kind)
        if attr.default is not registry.REQUIRED:
            attr_to_proto(attr.kind, attr.default, made.default_value)
        if attr.allowed is not None:
            made.allowed_values.list.SetInParent()
            for v in attr.allowed:
                _append("type" if isinstance(v, DType) else "string", v, made.allowed_values.list)
    return proto


def node_def(op: Operation, add_shapes: bool = False) -> Any:
    """The `NodeDef` of an operation."""
    from tensorfleet.protos import NodeDef

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


def export_graph(graph: Graph, from_version: int | None = None, add_shapes: bool = False) -> Any:
    """A graph as a `GraphDef`."""
    from tensorfleet.protos import GraphDef

    proto = GraphDef(versions=versions())
    # Other threads may be adding operations: whatever one here was given as input is further on in the list.
    for op in itertools.islice(graph._ops, from_version or 0, None):
        proto.node.add().CopyFrom(node_def(op, add_shapes))
    if graph._functions:
        from tensorfleet.graph.library import add_library

        add_library(proto, graph)
    return proto


# -- in -----------------------------------------------------------------------------------------------


@export("import_graph_def", "graph_util.import_graph_def")
def import_graph_def(
    graph_def: Any,
    input_map: Any = None,
    return_elements: Any = None,
    name: str | None = None,
    op_dict: Any = None,
    producer_op_list: Any = None,
) -> list | None:
    """Adds the nodes of a `GraphDef` to the default graph, under the scope `name` ("import" by default)."""
    graph_def = _as_graph_def(graph_def)
    if not isinstance(input_map or {}, dict):
        raise TypeError("input_map must be a dictionary mapping strings to Tensor objects.")
    mapping = {_tensor_name(k): v for k, v in (input_map or {}).items()}
    graph = get_default_graph()
    check_graph_def(graph_def, mapping)
    for function in graph_def.library.function:
        graph._functions.setdefault(function.signature.name, function)  # read when it is first called
    with graph.name_scope("import" if name is None else name) as scope:
        return _Import(graph, graph_def, mapping, scope).run(return_elements)


def _as_graph_def(graph_def: Any) -> Any:
    from tensorfleet.protos import GraphDef

    if isinstance(graph_def, GraphDef):
        return graph_def
    if hasattr(graph_def, "SerializeToString") and type(graph_def).__name__ == "GraphDef":
        return GraphDef.FromString(graph_def.SerializeToString())  # one made by TensorFlow itself
    raise TypeError(f"Argument `graph_def` must be a GraphDef proto, but got {type(graph_def).__name__}.")


_MERGES = ("Merge", "RefMerge")
_NEXTS = ("NextIteration", "RefNextIteration")


def _tensor_name(name: str) -> str:
    return name if name.startswith("^") or ":" in name else name + ":0"


class _Import:
    """One call of `import_graph_def`."""

    def __init__(self, graph: Graph, graph_def: Any, mapping: dict[str, Any], scope: str) -> None:
        self.graph = graph
        self.nodes = {node.name: node for node in graph_def.node}
        self.mapping = mapping
        self.used: set[str] = set()
        self.prefix = scope.rstrip("/")
        self.made: dict[str, Operation] = {}
        #: (operation, input, what it comes from) of the edges that lead back to the start of a loop
        self.back: list[tuple[Operation, int, str]] = []

    def run(self, return_elements: Any) -> list | None:
        """Adds every node after its inputs, then looks up what is to be returned."""
        for name in self.nodes:
            self._add(name)
        for op, i, text in self.back:
            source, _, index = text.partition(":")
            op._update_input(i, self._output(op.name, source, index))
        unused = [k for k in self.mapping if k not in self.used]
        if unused:
            raise ValueError(
                f"Attempted to map inputs that were not found in graph_def: [{', '.join(unused)}]"
            )
        if return_elements is None:
            return None
        return [self._element(e) for e in return_elements]

    def _element(self, name: str) -> Any:
        op_name, _, index = name.partition(":")
        if op_name not in self.made:
            raise ValueError(f"return_element {name!r} not found in graph_def.")
        op = self.made[op_name]
        return op._outputs[int(index)] if index else op

    def _add(self, name: str) -> None:
        stack = [name]
        while stack:
            current = stack[-1]
            if current in self.made:
                stack.pop()
                continue
            missing = [n for n in self._needs(self.nodes[current]) if n not in self.made]
            if missing:
                stack.extend(missing)
                continue
            self.made[current] = self._make(self.nodes[current])
            stack.pop()

    def _needs(self, node: Any) -> list[str]:
        return [
            text.lstrip("^").partition(":")[0]
            for text in node.input
            if _tensor_name(text) not in self.mapping and not self._leads_back(node, text)
        ]

    def _leads_back(self, node: Any, text: str) -> bool:
        """Whether an input closes a loop: it is set when everything is made."""
        if node.op not in _MERGES or text.startswith("^"):
            return False
        source = self.nodes.get(text.partition(":")[0])
        return source is not None and source.op in _NEXTS

    def _output(self, user: str, source: str, index: str) -> Tensor:
        outputs = self.made[source]._outputs
        i = int(index or 0)
        if i >= len(outputs):
            raise ValueError(
                f"Node '{user}': Connecting to invalid output {i} of source node {source} which has {len(outputs)} outputs."
            )
        return outputs[i]

    def _make(self, node: Any) -> Operation:
        inputs: list[Tensor] = []
        controls: list[Operation] = []
        back: list[tuple[int, str]] = []
        for text in node.input:
            if self._leads_back(node, text):
                if not inputs:
                    raise ValueError(f"Node '{node.name}': a loop must be entered before it goes round.")
                back.append((len(inputs), text))
                inputs.append(inputs[0])
                continue
            mapped = self.mapping.get(_tensor_name(text))
            if mapped is not None:
                self.used.add(_tensor_name(text))
                if text.startswith("^"):
                    controls.append(mapped if isinstance(mapped, Operation) else mapped.op)
                else:
                    inputs.append(_mapped_tensor(mapped))
            elif text.startswith("^"):
                controls.append(self.made[text[1:]])
            else:
                source, _, index = text.partition(":")
                inputs.append(self._output(node.name, source, index))
        attrs = {k: attr_from_proto(v) for k, v in node.attr.items() if k != "_output_shapes"}
        attrs = {k: v for k, v in attrs.items() if v is not None}
        spec = registry.get(node.op)
        if node.op == "Const" and node.attr["value"].tensor.dtype != node.attr["dtype"].type:
            raise ValueError(f"Node '{node.name}': its value is of another type than it says.")
        attrs = {k: v for k, v in attrs.items() if k in spec.attrs or k.startswith("_")}
        if self.prefix and "_class" in attrs:
            attrs["_class"] = [
                re.sub(rb"^loc:@", b"loc:@" + self.prefix.encode() + b"/", c) for c in attrs["_class"]
            ]
        # Inside the scope the node's own name is unique; the trailing slash makes it final.
        full = f"{self.prefix}/{node.name}" if self.prefix else node.name
        if full in self.graph._by_name:
            full = self.graph.unique_name(node.name)
        else:
            self.graph._names_in_use.setdefault(full.lower(), 1)
        try:
            op = add_raw(self.graph, node.op, inputs, attrs, full + "/")
        except (ArithmeticError, LookupError, AttributeError, RecursionError) as e:
            # What the shape function of an op says to attributes that the op's own Python functions never give it.
            raise ValueError(f"Node '{node.name}' ({node.op}) does not make sense: {e!r}") from e
        if node.device:
            from tensorfleet.devices import merged

            op._device = merged(op._device, node.device) if op._device else node.device
            op._set_device(op._device)
        if controls:
            op._add_control_inputs(controls)
        if back:
            # What comes round may have another shape than what went in.
            told = node.attr["_output_shapes"].list.shape if "_output_shapes" in node.attr else ()
            op._outputs[0]._shape = TensorShape(told[0]) if told else TensorShape(None)
            self.back += [(op, i, text) for i, text in back]
        return op


def _mapped_tensor(value: Any) -> Tensor:
    from tensorfleet.graph.convert import to_tensor

    return to_tensor(value)


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
