"""MetaGraphs: a graph with its collections, as TensorFlow writes and reads them."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tensorfleet.base import errors, index, logging
from tensorfleet.base.files import makedirs
from tensorfleet.base.formats.atomic_files import whole_file
from tensorfleet.base.naming import export
from tensorfleet.base.versions import GIT_VERSION
from tensorfleet.graph import registry
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.graphdef import export_graph, op_def, prepend_scope, strip_scope
from tensorfleet.graph.importing import import_graph_def
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import GraphKeys, get_default_graph

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from tensorfleet.base.protos import (
        CollectionDef,
        GraphDef,
        MetaGraphDef,
        NodeDef,
        OpDef,
        OpList,
        SaverDef,
    )
    from tensorfleet.base.types import PathLike, TensorLike

# Collections whose items are written as protos: name -> (proto name, to_proto, from_proto).
_PROTO_COLLECTIONS: dict[str, tuple[str, Callable[..., Any], Callable[..., Any]]] = {}
# What a part of a graph takes from outside is named after this in it, and listed in the collection of that name.
_UNBOUND = "unbound_inputs"


def register_proto_function(
    name: str, proto_type: str, to_proto: Callable[..., Any], from_proto: Callable[..., Any]
) -> None:
    """Declares how the items of a collection are written into MetaGraphs."""
    _PROTO_COLLECTIONS[name] = (proto_type, to_proto, from_proto)


def _as_protos(collection_name: str) -> tuple[str, Callable[..., Any], Callable[..., Any]] | None:
    index.load("collection", collection_name)
    return _PROTO_COLLECTIONS.get(collection_name)


def to_proto_function(collection_name: str) -> Callable[..., Any] | None:
    """The function that writes the items of a collection, if one was declared."""
    declared = _as_protos(collection_name)
    return declared[1] if declared else None


def from_proto_function(collection_name: str) -> Callable[..., Any] | None:
    """The function that reads the items of a collection, if one was declared."""
    declared = _as_protos(collection_name)
    return declared[2] if declared else None


@export("train.export_meta_graph")
def export_meta_graph(
    filename: str | None = None,
    meta_info_def: MetaGraphDef.MetaInfoDef | None = None,
    graph_def: GraphDef | None = None,
    saver_def: SaverDef | None = None,
    collection_list: Iterable[str] | None = None,
    as_text: bool = False,
    graph: Graph | None = None,
    export_scope: str | None = None,
    clear_devices: bool = False,
    clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False,
    save_debug_info: bool = False,
    **kwargs: Any,
) -> MetaGraphDef:
    """The graph with its collections as a `MetaGraphDef`, also written to `filename` when given.

    With `export_scope`, only the nodes under that scope; their inputs from outside are listed in the collection
    "unbound_inputs" (or `unbound_inputs_col_name`). Give them as `input_map` when you import it.
    """
    from tensorfleet.base.protos import MetaGraphDef

    graph = graph or get_default_graph()
    meta = MetaGraphDef()
    if meta_info_def is not None:
        meta.meta_info_def.MergeFrom(meta_info_def)
    meta.graph_def.CopyFrom(graph_def if graph_def is not None else export_graph(graph, add_shapes=True))
    collection = kwargs.get("unbound_inputs_col_name", _UNBOUND)
    if export_scope:
        unbound = _keep_scope(meta.graph_def, export_scope)
        if collection:
            graph.clear_collection(collection)
            graph.get_collection_ref(collection).extend(unbound)
    if clear_extraneous_savers:
        _drop_other_savers(meta.graph_def, saver_def)
    if clear_devices:
        for node in meta.graph_def.node:
            node.device = ""
    _describe(meta, strip_default_attrs)
    if saver_def is not None:
        meta.saver_def.MergeFrom(saver_def)
    names = graph.get_all_collection_keys() if collection_list is None else collection_list
    for name in names:
        add_collection_def(meta, name, graph, export_scope)
    if clear_extraneous_savers:
        meta.collection_def.pop(GraphKeys.SAVERS, None)
        if saver_def is not None:
            meta.collection_def[GraphKeys.SAVERS].bytes_list.value.append(saver_def.SerializeToString())
    if filename:
        folder, base = os.path.split(filename)
        write_graph(meta, folder, base, as_text)
    return meta


def _drop_other_savers(graph_def: GraphDef, saver_def: SaverDef | None) -> None:
    """Removes the operations of all savers but one, or of all."""
    scopes = {n.name.rpartition("/")[0] for n in graph_def.node if n.op == "SaveV2"}
    if saver_def is not None:
        scopes.discard(saver_def.filename_tensor_name.rpartition("/")[0])
    kept = [n for n in graph_def.node if not any(n.name.startswith(f"{scope}/") for scope in scopes if scope)]
    kept = [type(n).FromString(n.SerializeToString()) for n in kept]
    del graph_def.node[:]
    graph_def.node.extend(kept)


def _describe(meta: MetaGraphDef, strip: bool) -> None:
    """Adds the version that wrote it and the ops that it uses."""
    info = meta.meta_info_def
    if strip:
        strip_default_attrs(meta.graph_def)
        info.stripped_default_attrs = True
    if not info.stripped_op_list.op:
        info.stripped_op_list.MergeFrom(ops_of(meta.graph_def))
    info.tensorflow_version = "1.15.0"
    info.tensorflow_git_version = GIT_VERSION


def used_ops(graph_def: GraphDef) -> list[str]:
    """The types of a graph's operations, those inside the functions that it calls too."""
    bodies = {f.signature.name: f.node_def for f in graph_def.library.function}
    seen: set[str] = set()
    waiting = list(graph_def.node)
    while waiting:
        node = waiting.pop()
        named = [node.op, *(v.func.name for v in node.attr.values() if v.HasField("func"))]
        for name in named:
            if name not in seen:
                seen.add(name)
                waiting.extend(bodies.get(name, ()))
    return sorted(seen - set(bodies))


def ops_of(graph_def: GraphDef) -> OpList:
    """The `OpDef`s of the ops that a graph uses, as an `OpList`."""
    from tensorfleet.base.protos import OpList

    result = OpList()
    for name in used_ops(graph_def):
        if registry.find(name) is not None:
            result.op.add().CopyFrom(_known_op(name))
    return result


@functools.cache
def _known_op(name: str) -> OpDef:
    return op_def(registry.get(name))


def strip_default_attrs(graph_def: GraphDef) -> None:
    """Removes the attributes of nodes, also of those in functions, that have the value they would have anyway."""
    bodies = [graph_def.node, *(f.node_def for f in graph_def.library.function)]
    for node in (node for body in bodies for node in body):
        if registry.find(node.op) is None:
            continue
        for attr in _known_op(node.op).attr:
            given = attr.HasField("default_value") and attr.name in node.attr
            if given and node.attr[attr.name] == attr.default_value:
                del node.attr[attr.name]


def _keep_scope(graph_def: GraphDef, scope: str) -> list[str]:
    """Leaves only the nodes of a scope, without its name; gives the names of their inputs from outside."""
    prefix = scope.rstrip("/") + "/"
    unbound: dict[str, None] = {}
    kept = [type(n).FromString(n.SerializeToString()) for n in graph_def.node if n.name.startswith(prefix)]
    for node in kept:
        node.name = strip_scope(node.name, scope)
        for i, text in enumerate(node.input):
            mark, source = text[: text.startswith("^")], text.lstrip("^")
            if source.startswith(prefix):
                node.input[i] = strip_scope(text, scope)
            else:
                node.input[i] = f"{mark}${_UNBOUND}_{source}"
                unbound[node.input[i]] = None
        _keep_places(node, prefix, scope)
        if node.op in ("Enter", "RefEnter"):  # loops are told apart by names in the same scope
            node.attr["frame_name"].s = strip_scope(node.attr["frame_name"].s.decode(), scope).encode()
    del graph_def.node[:]
    graph_def.node.extend(kept)
    return list(unbound)


def _keep_places(node: NodeDef, prefix: str, scope: str) -> None:
    """Keeps which nodes of the same scope a node must be beside."""
    if "_class" not in node.attr:
        return
    texts = [text.decode() for text in node.attr["_class"].list.s]
    kept = [strip_scope(t, scope) for t in texts if t.removeprefix("loc:@").startswith(prefix)]
    if kept:
        node.attr["_class"].list.s[:] = [t.encode() for t in kept]
    else:
        del node.attr["_class"]


def add_collection_def(
    meta_graph_def: MetaGraphDef, key: str, graph: Graph | None = None, export_scope: str | None = None
) -> None:
    """Writes a collection into a `MetaGraphDef`, when its items have a written form."""
    if not isinstance(key, (str, bytes)):
        logging.warning(
            "Only collections with string type keys will be serialized. This key has %s", type(key)
        )
        return
    items = (graph or get_default_graph()).get_collection(key)
    try:
        _write_collection(meta_graph_def, key, items, export_scope)
    except (TypeError, ValueError, AttributeError, errors.OpError) as e:
        # Half a collection would be read as a whole one.
        meta_graph_def.collection_def.pop(key, None)
        logging.warning("Collection %r was not written: %s", key, e)


def _write_collection(meta: MetaGraphDef, name: str, items: list[Any], scope: str | None) -> None:
    target = meta.collection_def[name]
    if _as_protos(name) and all(hasattr(i, "to_proto") for i in items):
        protos = [i.to_proto(scope) if scope else i.to_proto() for i in items]
        target.bytes_list.value.extend(
            p.SerializeToString(deterministic=True) for p in protos if p is not None
        )
    elif items and all(isinstance(i, (Tensor, Operation)) or hasattr(i, "to_proto") for i in items):
        inside = (i.name for i in items if not scope or i.name.startswith(scope))
        target.node_list.value.extend(strip_scope(name, scope) for name in inside)
    elif items and all(isinstance(i, bool | int) for i in items):
        target.int64_list.value.extend(int(i) for i in items)
    elif items and all(isinstance(i, float) for i in items):
        target.float_list.value.extend(items)
    elif items and all(type(i).__name__ == "Any" and hasattr(i, "type_url") for i in items):
        target.any_list.value.extend(items)
    elif items and all(isinstance(i, (str, bytes)) for i in items):
        target.bytes_list.value.extend(i.encode() if isinstance(i, str) else i for i in items)
    else:  # objects that have no written form stay behind, as in TensorFlow
        del meta.collection_def[name]


def import_meta_graph_def(
    meta_graph_or_file: PathLike | MetaGraphDef,
    clear_devices: bool = False,
    graph: Graph | None = None,
    import_scope: str | None = None,
    input_map: Mapping[Any, TensorLike] | None = None,
    unbound_inputs_col_name: str | None = _UNBOUND,
    restore_collections_predicate: Callable[[str], bool] = lambda key: True,
    return_elements: Iterable[str | bytes] | None = None,
) -> tuple[MetaGraphDef, str, Any]:
    """Adds a MetaGraph's nodes and collections to a graph; gives its message, where it went, and `return_elements`."""
    from tensorfleet.base.protos import MetaGraphDef

    if isinstance(meta_graph_or_file, (str, bytes, os.PathLike)):
        meta = read_meta_graph_file(os.fsdecode(meta_graph_or_file))
    elif isinstance(meta_graph_or_file, MetaGraphDef):
        meta = meta_graph_or_file  # the caller finds in it what the nodes leave out
    else:
        meta = MetaGraphDef.FromString(meta_graph_or_file.SerializeToString())
    if unbound_inputs_col_name:
        _check_bound(meta, unbound_inputs_col_name, input_map)
    if clear_devices:
        for node in meta.graph_def.node:
            node.device = ""
    graph = graph or get_default_graph()
    with graph.as_default():
        scope = scope_of_import(graph, import_scope)
        elements = import_graph_def(meta.graph_def, input_map, return_elements, name=import_scope or scope)
        seen: dict[bytes, Any] = {}
        for name in sorted(meta.collection_def):
            if restore_collections_predicate(name):
                for item in _read_collection(graph, name, meta.collection_def[name], scope, seen):
                    graph.add_to_collection(name, item)
    return meta, scope, elements


def _check_bound(meta: MetaGraphDef, collection: str, input_map: Mapping[Any, TensorLike] | None) -> None:
    listed = meta.collection_def[collection].bytes_list.value if collection in meta.collection_def else ()
    missing = [name.decode() for name in listed if name.decode() not in (input_map or {})]
    if missing:
        raise ValueError(
            f"Graph contains unbound inputs: {', '.join(missing)}. Must provide these inputs through input_map."
        )


def scope_of_import(graph: Graph, import_scope: str | None) -> str:
    """Where the nodes of a MetaGraph go that is imported now: the scope may be taken, or lie inside another."""
    return graph.unique_name(import_scope or "", mark_as_used=False)


def _read_collection(
    graph: Graph, name: str, stored: CollectionDef, scope: str, seen: dict[bytes, Any]
) -> list[Any]:
    """The items of a collection. An item of several collections is one object, which `seen` remembers."""
    kind = stored.WhichOneof("kind")
    if kind == "node_list":
        return [graph.as_graph_element(prepend_scope(v, scope)) for v in stored.node_list.value]
    if kind == "bytes_list" and (declared := _as_protos(name)):
        from tensorfleet.base import protos

        proto_type, _, make = declared
        message = getattr(protos, proto_type)
        for value in stored.bytes_list.value:
            key = proto_type.encode() + b":" + value
            if key not in seen:
                seen[key] = make(message.FromString(value), scope or None)
        return [seen[proto_type.encode() + b":" + value] for value in stored.bytes_list.value]
    return list(getattr(stored, kind).value) if kind else []


def read_meta_graph_file(filename: str) -> MetaGraphDef:
    """Reads a `MetaGraphDef`, binary or text."""
    from google.protobuf import text_format

    from tensorfleet.base.protos import MetaGraphDef

    if not os.path.exists(filename):
        raise OSError(f"File {filename} does not exist.")
    with open(filename, "rb") as f:
        content = f.read()
    meta = MetaGraphDef()
    try:
        meta.ParseFromString(content)
    except Exception:
        try:
            text_format.Merge(content.decode(), meta)
        except (text_format.ParseError, UnicodeDecodeError) as e:
            raise OSError(f"Cannot parse file {filename}: {e}.") from e
    return meta


@export("train.write_graph", "io.write_graph")
def write_graph(graph_or_graph_def: Graph | Message, logdir: str, name: str, as_text: bool = True) -> str:
    """Writes a graph to `logdir/name` as text or binary; returns the path."""
    from google.protobuf import text_format

    proto = graph_or_graph_def.as_graph_def() if isinstance(graph_or_graph_def, Graph) else graph_or_graph_def
    if logdir:
        makedirs(logdir)
    path = os.path.join(logdir, name)
    content = text_format.MessageToString(proto).encode() if as_text else proto.SerializeToString()
    with whole_file(path) as f:  # readers must never see half of it
        f.write(content)
    return path
