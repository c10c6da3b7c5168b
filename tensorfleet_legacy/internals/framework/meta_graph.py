"""`tf.python.framework.meta_graph`: parts of graphs as MetaGraphs, out and in."""

from __future__ import annotations

from typing import Any

from tensorfleet.base.naming import export, publish
from tensorfleet.graph import meta_graph
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.graphdef import strip_scope
from tensorfleet.graph.scopes import GraphKeys, get_default_graph

_MODULE = "python.framework.meta_graph"

publish(meta_graph.read_meta_graph_file, f"{_MODULE}.read_meta_graph_file")
publish(meta_graph.add_collection_def, f"{_MODULE}.add_collection_def")
publish(meta_graph.ops_of, f"{_MODULE}.stripped_op_list_for_graph")
publish(meta_graph.used_ops, f"{_MODULE}.ops_used_by_graph_def")


@export(f"{_MODULE}.strip_graph_default_valued_attrs")
def strip_graph_default_valued_attrs(meta_graph_def: Any) -> None:
    """Removes the attributes of nodes that have the value they would have anyway."""
    meta_graph.strip_default_attrs(meta_graph_def.graph_def)
    meta_graph_def.meta_info_def.stripped_default_attrs = True


@export(f"{_MODULE}.create_meta_graph_def")
def create_meta_graph_def(
    meta_info_def: Any = None,
    graph_def: Any = None,
    saver_def: Any = None,
    collection_list: Any = None,
    graph: Graph | None = None,
    export_scope: str | None = None,
    exclude_nodes: Any = None,
    clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False,
) -> Any:
    """A graph with its collections as a `MetaGraphDef`."""
    return meta_graph.export_meta_graph(
        meta_info_def=meta_info_def,
        graph_def=graph_def,
        saver_def=saver_def,
        collection_list=collection_list,
        graph=graph,
        export_scope=export_scope,
        strip_default_attrs=strip_default_attrs,
    )


def _variables(graph: Graph, scope: str | None) -> dict[str, Any]:
    """The variables under a scope, by their names without it."""
    # A scope is a whole part of a name: "s" has nothing of "s_1".
    prefix = f"{scope.rstrip('/')}/" if scope else ""
    result: dict[str, Any] = {}
    for key in (GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES):
        for variable in graph.get_collection(key):
            if variable.name.startswith(prefix):
                result[strip_scope(variable.name, scope)] = variable
    return result


@export(f"{_MODULE}.export_scoped_meta_graph")
def export_scoped_meta_graph(
    filename: str | None = None,
    graph_def: Any = None,
    graph: Graph | None = None,
    export_scope: str | None = None,
    as_text: bool = False,
    unbound_inputs_col_name: str | None = "unbound_inputs",
    clear_devices: bool = False,
    saver_def: Any = None,
    clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False,
    save_debug_info: bool = False,
    **kwargs: Any,
) -> tuple[Any, dict[str, Any]]:
    """A part of a graph as a `MetaGraphDef`, and its variables by their names in it."""
    graph = graph or get_default_graph()
    meta = meta_graph.export_meta_graph(
        filename=filename,
        graph_def=graph_def,
        graph=graph,
        export_scope=export_scope,
        as_text=as_text,
        unbound_inputs_col_name=unbound_inputs_col_name,
        clear_devices=clear_devices,
        saver_def=saver_def,
        strip_default_attrs=strip_default_attrs,
        **kwargs,
    )
    return meta, _variables(graph, export_scope)


@export(f"{_MODULE}.import_scoped_meta_graph")
def import_scoped_meta_graph(meta_graph_or_file: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """Adds a MetaGraph to a graph; gives its variables by their names in it."""
    return import_scoped_meta_graph_with_return_elements(meta_graph_or_file, *args, **kwargs)[0]


@export(f"{_MODULE}.import_scoped_meta_graph_with_return_elements")
def import_scoped_meta_graph_with_return_elements(
    meta_graph_or_file: Any,
    clear_devices: bool = False,
    graph: Graph | None = None,
    import_scope: str | None = None,
    input_map: Any = None,
    unbound_inputs_col_name: str | None = "unbound_inputs",
    restore_collections_predicate: Any = lambda key: True,
    return_elements: Any = None,
) -> tuple[dict[str, Any], Any]:
    """Adds a MetaGraph to a graph; gives its variables by their names in it, and the elements asked for."""
    graph = graph or get_default_graph()
    _, scope, result = meta_graph.import_meta_graph_def(
        meta_graph_or_file,
        clear_devices,
        graph,
        import_scope,
        input_map,
        unbound_inputs_col_name,
        restore_collections_predicate,
        return_elements,
    )
    return _variables(graph, scope), result


@export(f"{_MODULE}.copy_scoped_meta_graph")
def copy_scoped_meta_graph(
    from_scope: str, to_scope: str, from_graph: Graph | None = None, to_graph: Graph | None = None
) -> dict[str, Any]:
    """Copies what is under one scope to another, maybe in another graph; gives the variables of the copy."""
    source = from_graph or get_default_graph()
    target = to_graph or get_default_graph()
    if source is target and from_scope == to_scope:
        raise ValueError(
            "'from_scope' and 'to_scope' need to be different when performing copy in the same graph."
        )
    meta, variables = export_scoped_meta_graph(graph=source, export_scope=from_scope)
    copies = import_scoped_meta_graph(meta, graph=target, import_scope=to_scope)
    return {name: copies[name] for name in variables if name in copies}
