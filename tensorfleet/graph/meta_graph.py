"""MetaGraphs: a graph with its collections, as TensorFlow writes and reads them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from tensorfleet.api import export
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.graphdef import export_graph, import_graph_def, prepend_scope, strip_scope
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import get_default_graph
from tensorfleet.io.whole_files import whole_file

# Collections whose items are written as protos: name -> (proto name, to_proto, from_proto).
_PROTO_COLLECTIONS: dict[Any, tuple[str, Callable, Callable]] = {}


def register_proto_function(name: Any, proto_type: str, to_proto: Callable, from_proto: Callable) -> None:
    """Declares how the items of a collection are written into MetaGraphs."""
    _PROTO_COLLECTIONS[name] = (proto_type, to_proto, from_proto)


@export("train.export_meta_graph")
def export_meta_graph(
    filename: str | None = None,
    meta_info_def: Any = None,
    graph_def: Any = None,
    saver_def: Any = None,
    collection_list: Any = None,
    as_text: bool = False,
    graph: Graph | None = None,
    export_scope: str | None = None,
    clear_devices: bool = False,
    clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False,
    save_debug_info: bool = False,
    **kwargs: Any,
) -> Any:
    """The graph with its collections as a `MetaGraphDef`, also written to `filename` when given."""
    from tensorfleet.protos import MetaGraphDef

    graph = graph or get_default_graph()
    meta = MetaGraphDef()
    if meta_info_def is not None:
        meta.meta_info_def.MergeFrom(meta_info_def)
    meta.meta_info_def.tensorflow_version = "1.15.0"
    meta.graph_def.CopyFrom(graph_def if graph_def is not None else export_graph(graph, add_shapes=True))
    if export_scope:
        _keep_scope(meta.graph_def, export_scope)
    if clear_devices:
        for node in meta.graph_def.node:
            node.device = ""
    if saver_def is not None:
        meta.saver_def.MergeFrom(saver_def)
    names = graph.get_all_collection_keys() if collection_list is None else collection_list
    for name in names:
        _write_collection(meta, name, graph.get_collection(name), export_scope)
    if filename:
        folder, base = os.path.split(filename)
        write_graph(meta, folder, base, as_text)
    return meta


def _keep_scope(graph_def: Any, scope: str) -> None:
    prefix = scope.rstrip("/") + "/"
    kept = [n for n in graph_def.node if n.name.startswith(prefix)]
    for node in kept:
        node.name = strip_scope(node.name, scope)
        for i, text in enumerate(node.input):
            node.input[i] = strip_scope(text, scope)
    copies = [type(n).FromString(n.SerializeToString()) for n in kept]
    del graph_def.node[:]
    graph_def.node.extend(copies)


def _write_collection(meta: Any, name: str, items: list, scope: str | None) -> None:
    target = meta.collection_def[name]
    if all(hasattr(i, "to_proto") for i in items) and (items or name in _PROTO_COLLECTIONS):
        protos = [i.to_proto(scope) if scope else i.to_proto() for i in items]
        target.bytes_list.value.extend(p.SerializeToString() for p in protos if p is not None)
    elif items and all(isinstance(i, (Tensor, Operation)) for i in items):
        target.node_list.value.extend(strip_scope(i.name, scope) for i in items)
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


def import_scoped_meta_graph(
    meta_graph_or_file: Any,
    clear_devices: bool = False,
    graph: Graph | None = None,
    import_scope: str | None = None,
) -> Any:
    """Adds a MetaGraph's nodes and collections to a graph; returns the MetaGraphDef."""
    from tensorfleet.protos import MetaGraphDef

    if isinstance(meta_graph_or_file, (str, os.PathLike)):
        meta = read_meta_graph_file(os.fspath(meta_graph_or_file))
    else:
        meta = MetaGraphDef.FromString(meta_graph_or_file.SerializeToString())
    if clear_devices:
        for node in meta.graph_def.node:
            node.device = ""
    graph = graph or get_default_graph()
    with graph.as_default():
        scope = scope_of_import(graph, import_scope)
        import_graph_def(meta.graph_def, name=import_scope or scope)
        for name, stored in meta.collection_def.items():
            for item in _read_collection(graph, name, stored, scope):
                graph.add_to_collection(name, item)
    return meta


def scope_of_import(graph: Graph, import_scope: str | None) -> str:
    """Where the nodes of a MetaGraph go that is imported now: the scope may be taken, or lie inside another."""
    return graph.unique_name(import_scope or "", mark_as_used=False)


def _read_collection(graph: Graph, name: str, stored: Any, scope: str) -> list:
    kind = stored.WhichOneof("kind")
    if kind == "node_list":
        return [graph.as_graph_element(prepend_scope(v, scope)) for v in stored.node_list.value]
    if kind == "bytes_list" and name in _PROTO_COLLECTIONS:
        from tensorfleet import protos

        message = getattr(protos, _PROTO_COLLECTIONS[name][0])
        make = _PROTO_COLLECTIONS[name][2]
        return [make(message.FromString(v), scope or None) for v in stored.bytes_list.value]
    return list(getattr(stored, kind).value) if kind else []


def read_meta_graph_file(filename: str) -> Any:
    """Reads a `MetaGraphDef`, binary or text."""
    from google.protobuf import text_format

    from tensorfleet.protos import MetaGraphDef

    if not os.path.exists(filename):
        raise OSError(f"File {filename} does not exist.")
    with open(filename, "rb") as f:
        content = f.read()
    meta = MetaGraphDef()
    try:
        meta.ParseFromString(content)
    except Exception:
        text_format.Merge(content.decode(), meta)
    return meta


@export("train.write_graph", "io.write_graph")
def write_graph(graph_or_graph_def: Any, logdir: str, name: str, as_text: bool = True) -> str:
    """Writes a graph to `logdir/name` as text or binary; returns the path."""
    from google.protobuf import text_format

    proto = graph_or_graph_def.as_graph_def() if isinstance(graph_or_graph_def, Graph) else graph_or_graph_def
    if logdir:
        os.makedirs(logdir, exist_ok=True)
    path = os.path.join(logdir, name)
    content = text_format.MessageToString(proto).encode() if as_text else proto.SerializeToString()
    with whole_file(path) as f:  # readers must never see half of it
        f.write(content)
    return path
