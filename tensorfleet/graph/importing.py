"""`tf.import_graph_def`: the nodes of a `GraphDef` added to a graph."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tensorfleet.base.devices import merged
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph import registry
from tensorfleet.graph.apply import add_raw
from tensorfleet.graph.checking import check_graph_def
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.graphdef import GRAPH_DEF_VERSION, attr_from_proto, attr_to_proto, graph_versions
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import get_default_graph

if TYPE_CHECKING:
    from tensorfleet.base.protos import GraphDef, NodeDef, OpList, TensorShapeProto, VersionDef
    from tensorfleet.base.types import TensorLike

# Up to this version a placeholder of unknown shape was written like a scalar one.
_SCALAR_OR_UNKNOWN = 21
_MERGES = ("Merge", "RefMerge")
_NEXTS = ("NextIteration", "RefNextIteration")
# Ops whose handles TensorFlow itself wrote down with shapes that were wrong.
_SHAPES_NOT_BELIEVED = """
    Barrier BarrierIncompleteSize BarrierReadySize CuckooTable FIFOQueue FixedLengthRecordReader HashTable
    IdentityReader IndexTable LMDBReader MutableHashTable MutableHashTableOfTensors Mutex PaddingFIFOQueue
    PriorityQueue QueueSize RandomShuffleQueue RefEnter RefIdentity RefMerge RefNextIteration RefSwitch Stack
    TFRecordReader TextLineReader WholeFileReader
"""
_UNBELIEVED = frozenset(_SHAPES_NOT_BELIEVED.split())


@export("import_graph_def", "graph_util.import_graph_def")
def import_graph_def(
    graph_def: GraphDef,
    input_map: Mapping[Any, TensorLike] | None = None,
    return_elements: Iterable[str | bytes] | None = None,
    name: str | None = None,
    op_dict: object = None,
    producer_op_list: OpList | None = None,
) -> list[Any] | None:
    """Adds the nodes of a `GraphDef` to the default graph, under the scope `name` ("import" by default)."""
    graph_def = _as_graph_def(graph_def)
    if not isinstance(input_map or {}, dict):
        raise TypeError("input_map must be a dictionary mapping strings to Tensor objects.")
    mapping = {_tensor_name(_text(k)): v for k, v in (input_map or {}).items()}
    wanted = _wanted_names(return_elements)
    _check_versions(graph_def.versions)
    check_graph_def(graph_def, mapping)
    _check_colocation(graph_def)
    graph = get_default_graph()
    with graph.name_scope("import" if name is None else name) as scope:
        importer = _Import(graph, graph_def, _as_tensors(graph, mapping, scope), scope)
        importer.taken_scopes = _scopes_in_use(graph) if not name or name.endswith("/") else set()
        return importer.run(wanted)


def extend_graph(graph: Graph, graph_def: GraphDef, mapping: dict[str, Any]) -> None:
    """Adds nodes under their own names and on their own devices; `mapping` gives their inputs from the graph."""
    check_graph_def(graph_def, mapping)
    with graph.as_default(), graph.name_scope(None):
        _Import(graph, graph_def, mapping, "", exact=True).run(None)


# -- what the caller says -----------------------------------------------------------------------------


def _as_graph_def(graph_def: object) -> GraphDef:
    from tensorfleet.base.protos import GraphDef

    if isinstance(graph_def, GraphDef):
        _write_defaults(graph_def)
        return graph_def
    if hasattr(graph_def, "SerializeToString") and type(graph_def).__name__ == "GraphDef":
        return GraphDef.FromString(graph_def.SerializeToString())  # one made by TensorFlow itself
    raise TypeError("graph_def must be a GraphDef proto.")


def _write_defaults(graph_def: GraphDef) -> None:
    """Writes default attributes into the caller's own message; scripts read them there."""
    for node in graph_def.node:
        spec = registry.find(node.op)
        for attr in spec.attrs.values() if spec is not None else ():
            if attr.default is not registry.REQUIRED and attr.name not in node.attr:
                attr_to_proto(attr.kind, attr.default, node.attr[attr.name])


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name


def _tensor_name(name: str) -> str:
    return name if name.startswith("^") or ":" in name else name + ":0"


def _wanted_names(return_elements: Iterable[str | bytes] | None) -> list[str] | None:
    if return_elements is None:
        return None
    wanted = [_text(e) for e in return_elements]
    if not all(isinstance(e, str) for e in wanted):
        raise TypeError("return_elements must be a list of strings.")
    for e in wanted:
        if ":" in e and not re.fullmatch(r"[^:]+:\d+", e):
            raise ValueError(f"Cannot convert {e!r} to a tensor name.")
    return wanted


def _as_tensors(graph: Graph, mapping: dict[str, TensorLike], scope: str) -> dict[str, Any]:
    """The input map with tensors for values; operations stay, for control inputs."""
    if all(isinstance(v, (Tensor, Operation)) for v in mapping.values()):
        return mapping
    from tensorfleet.graph.convert import to_tensor

    if not scope:
        raise ValueError(
            "tf.import_graph_def() requires a non-empty `name` if `input_map` contains non-Tensor values. Try calling "
            "tf.convert_to_tensor() on `input_map` values before calling tf.import_graph_def()."
        )
    with graph.name_scope("_inputs"):
        return {k: v if isinstance(v, (Tensor, Operation)) else to_tensor(v) for k, v in mapping.items()}


# -- what the graph must be ---------------------------------------------------------------------------


def _check_versions(versions: VersionDef) -> None:
    from tensorfleet.base.versions import VERSION

    if versions.producer < 0:
        raise ValueError(
            f"GraphDef producer version {versions.producer} below min producer 0 supported by TensorFlow {VERSION}.  "
            "Please regenerate your graph."
        )
    if versions.min_consumer > GRAPH_DEF_VERSION:
        raise ValueError(
            f"GraphDef min consumer version {versions.min_consumer} above current version {GRAPH_DEF_VERSION} for "
            f"TensorFlow {VERSION}.  Please upgrade TensorFlow."
        )
    if GRAPH_DEF_VERSION in versions.bad_consumers:
        raise ValueError(
            f"GraphDef disallows consumer version {GRAPH_DEF_VERSION}.  Please upgrade TensorFlow: this version is "
            "likely buggy."
        )


def _check_colocation(graph_def: GraphDef) -> None:
    names = {node.name.encode() for node in graph_def.node}
    for node in graph_def.node:
        if "_class" not in node.attr:
            continue
        for group in node.attr["_class"].list.s:
            if group.startswith(b"loc:@") and group[5:] not in names:
                raise ValueError(
                    f"Node '{node.name}' expects to be colocated with unknown node '{group[5:].decode()}'"
                )


def _scopes_in_use(graph: Graph) -> set[str]:
    """The scopes that have operations in them."""
    result: set[str] = set()
    for name in graph._by_name:
        while "/" in name:
            name = name.rpartition("/")[0]
            if name in result:
                break
            result.add(name)
    return result


class _Import:
    """One call of `import_graph_def`."""

    def __init__(
        self,
        graph: Graph,
        graph_def: GraphDef,
        mapping: dict[str, Any],
        scope: str,
        exact: bool = False,
    ) -> None:
        self.graph = graph
        self.graph_def = graph_def
        self.nodes = {node.name: node for node in graph_def.node}
        self.mapping = mapping
        self.used: set[str] = set()
        self.prefix = scope.rstrip("/")
        self.exact = exact  # names and devices are those of the nodes, or it is an error
        self.taken_scopes: set[str] = set()
        self.made: dict[str, Operation] = {}
        #: (operation, input, what it comes from) of the edges that lead back to the start of a loop
        self.back: list[tuple[Operation, int, str]] = []

    def run(self, wanted: list[str] | None) -> list[Any] | None:
        """Adds every node after its inputs, then looks up the elements to return."""
        # First: operations that were removed from TensorFlow are accepted or refused by the version of the graph.
        self._merge_versions()
        for function in self.graph_def.library.function:  # read when it is first called
            self.graph._functions.setdefault(function.signature.name, function)
        for pair in self.graph_def.library.gradient:
            self.graph._function_gradients.setdefault(pair.function_name, pair.gradient_func)
        for name in self.nodes:
            self._add(name)
        for op, i, text in self.back:
            source, _, index = text.partition(":")
            # The back edges of loops come last: their sources did not exist when the Merge was made.
            op._update_input(i, self._output(op.name, source, index))
        self._colocate()
        unused = [k for k in self.mapping if k not in self.used and not self._exists(k)]
        if unused:
            raise ValueError(
                f"Attempted to map inputs that were not found in graph_def: [{', '.join(unused)}]"
            )
        return None if wanted is None else [self._element(e) for e in wanted]

    def _merge_versions(self) -> None:
        theirs = self.graph_def.versions
        if not (self.nodes or self.graph_def.HasField("versions")) or self.graph._building_function:
            return
        versions = graph_versions(self.graph)
        empty = not self.graph._ops
        versions.producer = theirs.producer if empty else min(versions.producer, theirs.producer)
        versions.min_consumer = (
            theirs.min_consumer if empty else max(versions.min_consumer, theirs.min_consumer)
        )
        self.graph._versions = versions

    def _exists(self, key: str) -> bool:
        """Whether a name of the input map is one of the graph's, though nothing takes it."""
        source, _, index = key.lstrip("^").partition(":")
        return source in self.made and int(index or 0) < max(1, len(self.made[source]._outputs))

    def _element(self, name: str) -> Tensor | Operation:
        op_name, _, index = name.partition(":")
        if op_name not in self.made:
            kind = "tensor" if index else "node"
            raise ValueError(f"Requested return {kind} '{name}' not found in graph def")
        op = self.made[op_name]
        if not index:
            return op
        if int(index) >= len(op._outputs):
            raise ValueError(
                f"Invalid return output {index} of node '{op_name}', which has {len(op._outputs)} output(s)"
            )
        mapped = self.mapping.get(name)
        return op._outputs[int(index)] if mapped is None else mapped

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

    def _needs(self, node: NodeDef) -> list[str]:
        return [
            text.lstrip("^").partition(":")[0]
            for text in node.input
            if _tensor_name(text) not in self.mapping and not self._leads_back(node, text)
        ]

    def _leads_back(self, node: NodeDef, text: str) -> bool:
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

    # -- one node --

    def _make(self, node: NodeDef) -> Operation:
        inputs, controls, back = self._inputs(node)
        attrs = self._attrs(node)
        try:
            op = add_raw(self.graph, node.op, inputs, attrs, self._name(node.name) + "/")
        except (ArithmeticError, LookupError, AttributeError, RecursionError) as e:
            # What the shape function of an op says to attributes that the op's own Python functions never give it.
            raise ValueError(f"Node '{node.name}' ({node.op}) does not make sense: {e!r}") from e
        if node.device:
            op._device = merged(op._device, node.device) if op._device else node.device
            op._set_device(op._device)
        if controls:
            op._add_control_inputs(controls)
        shapes = node.attr["_output_shapes"].list.shape if "_output_shapes" in node.attr else ()
        if back:
            # What comes round may have another shape than what went in.
            op._outputs[0]._shape = TensorShape(shapes[0]) if shapes else TensorShape(None)
            self.back += [(op, i, text) for i, text in back]
        elif shapes and node.op not in _UNBELIEVED:
            _believe(op, shapes)
        return op

    def _inputs(self, node: NodeDef) -> tuple[list[Tensor], list[Operation], list[tuple[int, str]]]:
        """The inputs and control inputs of a node, and which inputs close a loop."""
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
                    inputs.append(mapped)
            elif text.startswith("^"):
                controls.append(self.made[text[1:]])
            else:
                source, _, index = text.partition(":")
                inputs.append(self._output(node.name, source, index))
        return inputs, controls, back

    def _attrs(self, node: NodeDef) -> dict[str, Any]:
        spec = registry.get(node.op)
        if node.op == "Const" and node.attr["value"].tensor.dtype != node.attr["dtype"].type:
            raise ValueError(f"Node '{node.name}': its value is of another type than it says.")
        attrs = {k: attr_from_proto(v) for k, v in node.attr.items() if k != "_output_shapes"}
        attrs = {k: v for k, v in attrs.items() if v is not None and (k in spec.attrs or k.startswith("_"))}
        old = node.op == "Placeholder" and self.graph_def.versions.producer <= _SCALAR_OR_UNKNOWN
        if old and isinstance(attrs.get("shape"), TensorShape) and not attrs["shape"].rank:
            attrs["shape"] = TensorShape(None)
        return attrs

    def _name(self, name: str) -> str:
        """The name of a node in the graph. Inside a new scope the node's own name is unique."""
        full = first = f"{self.prefix}/{name}" if self.prefix else name
        count = 0
        while not self.exact and (
            full in self.graph._by_name or full in self.taken_scopes or (count and full in self.nodes)
        ):
            count += 1
            full = f"{first}_{count}"
        self.graph._names_in_use.setdefault(full.lower(), 1)
        return full

    # -- colocation --

    def _colocate(self) -> None:
        """Names the groups by the operations made, and puts each operation where the one it is placed with is."""
        for op in self.made.values():
            groups = op._attrs.get("_class")
            if groups:
                if not isinstance(groups, list) or not all(isinstance(g, bytes) for g in groups):
                    raise ValueError(
                        f"Node '{op.name}' has an attribute '_class' that is no list of strings."
                    )
                op._attrs["_class"] = [self._group(g) for g in groups]
        if self.exact:
            return
        for op in self.made.values():
            groups = op._attrs.get("_class", ())
            others = [g[5:].decode() for g in groups if g.startswith(b"loc:@")]
            others = [name for name in others if name != op.name]
            if others:
                members = (self.graph._by_name.get(name) for name in others)
                op._device = next((other._device for other in members if other and other._device), "")

    def _group(self, group: bytes) -> bytes:
        if not group.startswith(b"loc:@"):
            return group
        op = self.made.get(group[5:].decode())
        return group if op is None else b"loc:@" + op.name.encode()


def _believe(op: Operation, told: Iterable[TensorShapeProto]) -> None:
    """Narrows the shapes of an operation's outputs to those in the node."""
    for tensor, proto in zip(op._outputs, told, strict=False):
        shape = TensorShape(proto)
        if not tensor._shape.is_compatible_with(shape):
            raise ValueError(
                f"Node '{op.name}' has an _output_shapes attribute inconsistent with the GraphDef: Shapes {tensor._shape} "
                f"and {shape} are not compatible"
            )
        tensor._shape = tensor._shape.merge_with(shape)
