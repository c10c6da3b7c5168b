"""`tensorflow.python.grappler`: a graph with what can be known of it worked out, as a session would before running it."""

from __future__ import annotations

from typing import Any

from tensorfleet.api import export, find
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.importing import import_graph_def
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.tensor_proto import make_tensor_proto
from tensorfleet.passes.fold import fold
from tensorfleet.passes.plan import Plan
from tensorfleet.passes.prune import prune


@export("python.grappler.tf_optimizer.OptimizeGraph")
def OptimizeGraph(
    config_proto: Any,
    metagraph: Any,
    verbose: bool = True,
    graph_id: bytes = b"graph_to_optimize",
    cluster: Any = None,
    strip_default_attributes: bool = False,
) -> Any:
    """What the collection `train_op` of a MetaGraph needs, with constants computed; all of the graph if there is none."""
    made = type(metagraph.graph_def)()
    made.CopyFrom(metagraph.graph_def)
    wanted = (
        metagraph.collection_def["train_op"].node_list.value if "train_op" in metagraph.collection_def else ()
    )
    if not wanted:
        return made
    with Graph().as_default() as graph:
        import_graph_def(metagraph.graph_def, name="")
    given = [graph.as_graph_element(name) for name in wanted]
    fetches = tuple(g for g in given if isinstance(g, Tensor))
    targets = tuple(g for g in given if isinstance(g, Operation))
    _rewrite(made, fold(prune(Plan(graph, fetches, targets, ()))))
    return made


def _rewrite(graph_def: Any, plan: Plan) -> None:
    """Takes from a GraphDef the nodes that nothing needs, and makes constants of those whose value is known."""
    running = set(plan.ops)
    known = {op for op in plan.folded if len(op.outputs) == 1} - running
    needed: set[Operation] = set()
    waiting = [*plan.ops, *(t.op for t in plan.fetches)]
    while waiting:
        op = waiting.pop()
        if op not in needed:
            needed.add(op)
            waiting += [] if op in known else [*(t.op for t in op.inputs), *op.control_inputs]
    nodes = {node.name: node for node in graph_def.node}
    del graph_def.node[:]
    for name, node in nodes.items():
        op = plan.graph.get_operation_by_name(name)
        if op in needed:
            graph_def.node.append(_constant(node, plan.constants, op.outputs[0]) if op in known else node)


def _constant(node: Any, values: dict[Tensor, Any], tensor: Tensor) -> Any:
    made = type(node)(name=node.name, op="Const", device=node.device)
    made.attr["dtype"].type = tensor.dtype.base_dtype.as_datatype_enum
    made.attr["value"].tensor.CopyFrom(make_tensor_proto(values[tensor], tensor.dtype.base_dtype))
    return made


@export("python.kernel_tests.signal.test_util.grappler_optimize")
def grappler_optimize(graph: Graph, fetches: Any = None, config_proto: Any = None) -> Any:
    """The GraphDef that is left of a graph when only some tensors of it are wanted."""
    for fetch in fetches or ():
        graph.add_to_collection("train_op", fetch)
    with graph.as_default():
        metagraph = find("train.export_meta_graph")(graph_def=graph.as_graph_def())
    return OptimizeGraph(config_proto, metagraph)
