"""`tf.profiler.profile`: what the nodes of a graph cost, added up along their names."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tensorfleet.base.naming import find
from tensorfleet.graph.operation import Operation
from tensorfleet_legacy.profiler.option_builder import defaults

_COUNTS = ("float_ops", "parameters", "exec_micros", "requested_bytes", "run_count", "definition_count")


@dataclass
class GraphNodeProto:
    """One node of a profile; `total_...` counts include its children."""

    name: str = ""
    float_ops: int = 0
    parameters: int = 0
    exec_micros: int = 0
    requested_bytes: int = 0
    run_count: int = 0
    definition_count: int = 0
    total_float_ops: int = 0
    total_parameters: int = 0
    total_exec_micros: int = 0
    total_requested_bytes: int = 0
    total_run_count: int = 0
    total_definition_count: int = 0
    shape: tuple = ()
    children: list = field(default_factory=list)


@dataclass
class MultiGraphNodeProto(GraphNodeProto):
    """A node that stands for all operations of one type."""


def _elements(tensor: Any) -> int:
    return tensor.shape.num_elements() or 0


def _matmul(op: Operation) -> int:
    a = op.inputs[0].shape.as_list() if op.inputs[0].shape.rank == 2 else [0, 0]
    inner = a[0] if op.get_attr("transpose_a") else a[1]
    return 2 * _elements(op.outputs[0]) * (inner or 0)


def _convolution(op: Operation) -> int:
    kernel = op.inputs[1].shape
    if kernel.rank is None or not kernel.is_fully_defined():
        return 0
    *window, channels, _ = kernel.as_list()
    return 2 * _elements(op.outputs[0]) * math.prod(window) * channels


def _depthwise(op: Operation) -> int:
    kernel = op.inputs[1].shape
    return (
        2 * _elements(op.outputs[0]) * math.prod((kernel.as_list() or [0])[:2])
        if kernel.is_fully_defined()
        else 0
    )


def _pooling(op: Operation) -> int:
    return _elements(op.outputs[0]) * math.prod(op.get_attr("ksize"))


def _each(times: int) -> Callable[[Operation], int]:
    return lambda op: times * _elements(op.outputs[0])


def _reduction(op: Operation) -> int:
    extra = _elements(op.outputs[0]) if op.type == "Mean" else 0
    return max(_elements(op.inputs[0]) - _elements(op.outputs[0]) + extra, 0)


_ONE_EACH = [
    "Add",
    "AddV2",
    "Sub",
    "Mul",
    "RealDiv",
    "Maximum",
    "Minimum",
    "Pow",
    "SquaredDifference",
    "Greater",
    "GreaterEqual",
    "Less",
    "LessEqual",
    "Equal",
    "NotEqual",
    "Reciprocal",
    "Square",
    "Rsqrt",
    "Log",
    "Neg",
    "RsqrtGrad",
    "AssignAdd",
    "AssignSub",
    "BiasAdd",
]
FLOPS: dict[str, Callable[[Operation], int]] = {
    **{name: _each(1) for name in _ONE_EACH},
    "MatMul": _matmul,
    "Conv2D": _convolution,
    "Conv3D": _convolution,
    "DepthwiseConv2dNative": _depthwise,
    "MaxPool": _pooling,
    "AvgPool": _pooling,
    "Softmax": _each(5),
    "L2Loss": lambda op: 3 * _elements(op.inputs[0]) - 1,
    "Sum": _reduction,
    "Mean": _reduction,
    "ArgMax": _reduction,
    "ArgMin": _reduction,
    "AddN": lambda op: _elements(op.outputs[0]) * (len(op.inputs) - 1),
}


class _Run:
    """Times and bytes of the nodes of a run, from its metadata; of several, the mean."""

    def __init__(self, run_meta: Any) -> None:
        self.micros: dict[str, int] = {}
        self.bytes: dict[str, int] = {}
        self.count: dict[str, int] = {}
        runs = run_meta if isinstance(run_meta, list) else [] if run_meta is None else [run_meta]
        for device in (d for run in runs for d in run.step_stats.dev_stats):
            for node in device.node_stats:
                self.micros[node.node_name] = self.micros.get(node.node_name, 0) + node.all_end_rel_micros
                self.count[node.node_name] = self.count.get(node.node_name, 0) + 1
                total = sum(m.total_bytes for m in node.memory)
                self.bytes[node.node_name] = self.bytes.get(node.node_name, 0) + total
        for counts in (self.micros, self.bytes) if len(runs) > 1 else ():
            counts.update({name: count // len(runs) for name, count in counts.items()})


def _node(op: Operation, run: _Run, trainable: set[str]) -> GraphNodeProto:
    node = GraphNodeProto(op.name, definition_count=1)
    node.float_ops = FLOPS[op.type](op) if op.type in FLOPS else 0
    if op.spec.variable and op.name in trainable:
        shape = op._attrs["shape"]
        node.parameters, node.shape = shape.num_elements() or 0, tuple(shape.as_list())
    node.exec_micros, node.requested_bytes = run.micros.get(op.name, 0), run.bytes.get(op.name, 0)
    node.run_count = run.count.get(op.name, 0)
    return node


def _matches(patterns: list, text: str) -> bool:
    return any(re.fullmatch(p, text) for p in patterns)


def _accounted(op: Operation, options: dict, trainable: set[str]) -> bool:
    kinds = [op.type, op.device]
    if op.name in trainable:
        kinds.append("_trainable_variables")
    return any(_matches(options["account_type_regexes"], kind) for kind in kinds)


_LEAST = {
    "min_float_ops": "float_ops",
    "min_params": "parameters",
    "min_micros": "exec_micros",
    "min_bytes": "requested_bytes",
}


def _shown(node: GraphNodeProto, options: dict) -> bool:
    if _matches(options["hide_name_regexes"], node.name):
        return False
    large = all(getattr(node, attribute) >= options.get(key, 0) for key, attribute in _LEAST.items())
    return large and _matches(options["show_name_regexes"], node.name)


def _by_name(nodes: list[GraphNodeProto]) -> GraphNodeProto:
    """The nodes in a tree of their names, with nodes of no cost for the scopes between."""
    root = GraphNodeProto("_TFProfRoot")
    known = {"": root}

    def place(name: str) -> GraphNodeProto:
        if name not in known:
            known[name] = GraphNodeProto(name)
            place(name.rpartition("/")[0]).children.append(known[name])
        return known[name]

    for node in sorted(nodes, key=lambda n: n.name.count("/")):
        if node.name in known:
            old = known[node.name]
            for key in _COUNTS:
                setattr(old, key, getattr(node, key))
            continue
        known[node.name] = node
        place(node.name.rpartition("/")[0]).children.append(node)
    return root


def _by_type(nodes: list[GraphNodeProto], types: dict[str, str]) -> MultiGraphNodeProto:
    root = MultiGraphNodeProto("_TFProfRoot")
    kinds: dict[str, MultiGraphNodeProto] = {}
    for node in nodes:
        kind = kinds.setdefault(types[node.name], MultiGraphNodeProto(types[node.name]))
        for key in _COUNTS:
            setattr(kind, key, getattr(kind, key) + getattr(node, key))
    root.children = list(kinds.values())
    return root


_ORDERS = {"float_ops": "total_float_ops", "params": "total_parameters", "micros": "total_exec_micros"}
_ORDERS |= {"bytes": "total_requested_bytes", "occurrence": "total_definition_count"}


def _added_up(node: GraphNodeProto, order: str) -> GraphNodeProto:
    for child in node.children:
        _added_up(child, order)
    for key in _COUNTS:
        own = getattr(node, key)
        setattr(node, f"total_{key}", own + sum(getattr(c, f"total_{key}") for c in node.children))
    attribute = _ORDERS.get(order)
    node.children.sort(key=lambda c: c.name if attribute is None else (-getattr(c, attribute), c.name))
    return node


_COLUMNS = {
    "params": ("parameters", "params"),
    "float_ops": ("float_ops", "flops"),
    "micros": ("exec_micros", "us"),
}
_COLUMNS |= {"bytes": ("requested_bytes", "B"), "occurrence": ("definition_count", "nodes")}


def _short(count: int) -> str:
    for size, letter in ((10**9, "b"), (10**6, "m"), (10**3, "k")):
        if count >= size:
            return f"{count / size:.2f}{letter}"
    return str(count)


def _lines(node: GraphNodeProto, select: list, depth: int, limit: int) -> list[str]:
    costs = []
    for key in select:
        if key in _COLUMNS:
            attribute, unit = _COLUMNS[key]
            own, total = getattr(node, attribute), getattr(node, f"total_{attribute}")
            costs.append(f"{_short(own) if own else '--'}/{_short(total)} {unit}")
    shape = ["x".join(map(str, node.shape))] if node.shape else []
    lines = [f"{'  ' * depth}{node.name} ({', '.join(shape + costs)})"]
    if depth < limit:
        for child in node.children:
            lines += _lines(child, select, depth + 1, limit)
    return lines


def _report(root: GraphNodeProto, options: dict) -> str:
    head = "==================Model Analysis Report======================"
    body = _lines(root, options["select"], 0, options["max_depth"])
    return "\n".join(["", head, *body, "", "======================End of Report=========================="])


def profile(
    graph: Any = None, run_meta: Any = None, op_log: Any = None, cmd: str = "scope", options: Any = 0
) -> GraphNodeProto:
    """The costs of a graph's nodes, as a tree by their names ("scope", "graph", "code") or by type ("op").

    `options` come from a `ProfileOptionBuilder`; times and bytes need the metadata of a traced run.
    """
    if cmd not in ("scope", "graph", "op", "code"):
        raise find("errors.InvalidArgumentError")(None, None, f"unknown cmd: {cmd}")
    chosen = {**defaults(), **(options or {})}
    graph = graph or find("get_default_graph")()
    with graph.as_default():
        trainable = {v.op.name for v in find("trainable_variables")()}
    run = _Run(run_meta)
    ops = [op for op in graph.get_operations() if _accounted(op, chosen, trainable)]
    nodes = [n for n in (_node(op, run, trainable) for op in ops) if _shown(n, chosen)]
    if cmd == "op":
        root: GraphNodeProto = _by_type(nodes, {op.name: op.type for op in ops})
    else:
        root = _by_name(nodes)
    _added_up(root, chosen["order_by"])
    _write(_report(root, chosen), chosen["output"])
    return root


def _write(text: str, output: str) -> None:
    if output == "stdout":
        print(text)
    elif output.startswith("file:outfile="):
        with find("gfile.GFile")(output.removeprefix("file:outfile="), "w") as f:
            f.write(text)
