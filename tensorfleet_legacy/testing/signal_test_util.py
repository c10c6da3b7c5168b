"""Constant folding for tests of signals: `tensorflow.python.kernel_tests.signal.test_util`."""

from __future__ import annotations

from typing import Any

from tensorfleet.base.naming import find


def grappler_optimize(graph: Any, fetches: Any = None, config_proto: Any = None) -> Any:
    """A GraphDef of a graph in which what follows from constants is constant; `fetches` are what it is to give."""
    if config_proto is None:
        config_proto = find("ConfigProto")()
        config_proto.graph_options.rewrite_options.min_graph_nodes = -1
    for fetch in fetches or ():
        graph.add_to_collection("train_op", fetch)
    meta = find("train.export_meta_graph")(graph_def=graph.as_graph_def(), graph=graph)
    return find("python.grappler.tf_optimizer.OptimizeGraph")(config_proto, meta)
