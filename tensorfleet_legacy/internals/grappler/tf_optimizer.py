"""A graph optimized outside of a session: `tensorflow.python.grappler.tf_optimizer`.

A session optimizes what it runs, not the graph. Here the nodes that nothing wanted needs are left out, and what
follows from constants alone becomes constants.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base.naming import export, find
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.importing import import_graph_def
from tensorfleet.graph.operation import Operation
from tensorfleet.graph.tensor_proto import make_tensor_proto

# Graphs with fewer nodes are left alone, unless told otherwise.
_MIN_NODES = 4
# A larger constant is computed again rather than kept.
_MAX_CONSTANT_BYTES = 10 << 20
_OFF = 2
_NOT_FOLDED = """
    Placeholder PlaceholderV2 PlaceholderWithDefault Enter Exit NextIteration Switch Merge LoopCond ControlTrigger NoOp
    Assert CheckNumerics
"""
_KEEP = "_grappler_do_not_remove"


@export("python.grappler.tf_optimizer.OptimizeGraph")
def OptimizeGraph(
    config_proto: Any,
    metagraph: Any,
    verbose: bool = True,
    graph_id: bytes = b"graph_to_optimize",
    cluster: Any = None,
    strip_default_attributes: bool = False,
) -> Any:
    """The graph of a MetaGraph without what its collections do not need, its constants computed.

    What the collection "train_op" names is wanted; a MetaGraph without one is given back as it is.
    """
    result = type(metagraph.graph_def)()
    result.CopyFrom(metagraph.graph_def)
    options = config_proto.graph_options.rewrite_options
    fetched = set(_listed(metagraph, "train_op"))
    few = len(result.node) < (options.min_graph_nodes or _MIN_NODES)
    if options.disable_meta_optimizer or few or not fetched:
        return result
    kept = {name for key in metagraph.collection_def for name in _listed(metagraph, key)} - fetched
    kept |= {node.name for node in result.node if node.attr[_KEEP].b}
    chosen = {name.replace("constant folding", "constfold") for name in options.optimizers}
    if "constfold" in chosen or not (chosen or options.constant_folding == _OFF):
        _fold(result, fetched, kept)
    _prune(result, fetched | kept)
    return result


def _listed(metagraph: Any, key: str) -> list[str]:
    """The names of the nodes that a collection is about: of variables, their initializers."""
    if key not in metagraph.collection_def:
        return []
    collection = metagraph.collection_def[key]
    names = list(collection.node_list.value)
    if key.endswith("variables"):
        from tensorfleet.base.protos import VariableDef

        names += [VariableDef.FromString(v).initializer_name for v in collection.bytes_list.value]
    return [_node_name(name) for name in names]


def _node_name(name: str) -> str:
    return name.removeprefix("^").partition(":")[0]


def _prune(graph_def: Any, wanted: set[str]) -> None:
    """Leaves out what nothing wanted needs."""
    inputs = {node.name: [_node_name(i) for i in node.input] for node in graph_def.node}
    needed, waiting = set(), [name for name in wanted if name in inputs]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += inputs[name]
    left = [node for node in graph_def.node if node.name in needed]
    del graph_def.node[:]
    graph_def.node.extend(left)


def _fold(graph_def: Any, fetched: set[str], kept: set[str]) -> None:
    """Makes constants of the nodes that follow from constants, where something else needs them."""
    graph = Graph()
    with graph.as_default():
        import_graph_def(graph_def, name="")
    known = _known(graph)
    outside = fetched | {
        i.op.name for op in graph.get_operations() if op not in known or op.name in kept for i in op.inputs
    }
    items = [
        op.outputs[0]
        for op in known
        if op.type != "Const" and op.name in outside - kept and len(op.outputs) == 1
    ]
    with find("Session")(graph=graph) as session:
        values = dict(zip([t.op.name for t in items], session.run(items), strict=True))
    for node in graph_def.node:
        value = values.get(node.name)
        if value is not None and np.asarray(value).nbytes <= _MAX_CONSTANT_BYTES:
            kind = graph.get_tensor_by_name(f"{node.name}:0").dtype
            constant = type(node)(name=node.name, op="Const", device=node.device)
            constant.attr["dtype"].type = kind.as_datatype_enum
            constant.attr["value"].tensor.CopyFrom(make_tensor_proto(value, kind))
            node.CopyFrom(constant)


def _known(graph: Graph) -> dict[Operation, None]:
    """The operations that follow from constants alone, in the order of the graph."""
    known: dict[Operation, None] = {}
    for op in graph.get_operations():
        spec = op.spec
        pure = not (
            spec.stateful or spec.updates or spec.variable or spec.rng or op.type in _NOT_FOLDED.split()
        )
        plain = all(t.dtype.name not in ("resource", "variant") for t in op.outputs)
        needs = [*[t.op for t in op.inputs], *op.control_inputs]
        if pure and plain and (needs or op.type == "Const") and all(n in known for n in needs):
            known[op] = None
    return known
