"""What the operations of a step cost, as a `CostGraphDef`: `tf.GraphOptions(build_cost_model=n)` asks for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.passes.plan import Plan, everything

if TYPE_CHECKING:
    from tensorfleet.base.protos import CostGraphDef
    from tensorfleet.runtime.trace import Event


def fill_costs(costs: CostGraphDef, plan: Plan, events: Iterable[Event], home: str) -> None:
    """Writes the operations of a plan, what they take and make, and the microseconds of each, into a message.

    What ran as one is timed as one: its operations have equal shares. A tensor whose shape is not known beforehand has no size.
    """
    placed = everything(plan)
    known = {t._op: home for op in placed for t in (*op._inputs, *plan.fetches) if t in plan.constants}
    placed = {**{op: device for op, device in known.items() if op not in placed}, **placed}
    ids: dict[Any, int] = {}
    _begin(costs, ids)
    fed = sorted(plan.feeds, key=lambda t: t.name)
    for i, t in enumerate(fed):
        node = _node(costs, ids, t, f"_arg_{t._op.name}_{t.value_index}_{i}", home)
        _describe(node.output_info.add(alias_input_port=-1), t)
        node.control_input.append(ids[None])
    ops = sorted(placed, key=lambda op: op._id)
    for op in ops:
        ids[op] = len(ids)
    spent = _spent(plan, events)
    for op in ops:
        _write(costs.node.add(name=op.name, device=placed[op], id=ids[op]), op, ids, spent)
    for i, t in enumerate(sorted(plan.fetches, key=lambda t: t.name)):
        node = _node(costs, ids, (t, i), f"_retval_{t._op.name}_{t.value_index}_{i}", home)
        _take(node, t, ids)
        costs.node[1].control_input.append(node.id)


def _begin(costs: CostGraphDef, ids: dict[Any, int]) -> None:
    _node(costs, ids, None, "_SOURCE", "")
    sink = _node(costs, ids, "sink", "_SINK", "")
    sink.control_input.append(ids[None])


def _node(costs: CostGraphDef, ids: dict[Any, int], key: object, name: str, device: str) -> CostGraphDef.Node:
    ids[key] = len(ids)
    return costs.node.add(name=name, device=device, id=ids[key])


def _write(node: CostGraphDef.Node, op: Operation, ids: dict[Any, int], spent: dict[str, float]) -> None:
    for t in op._inputs:
        _take(node, t, ids)
    for t in op._outputs:
        _describe(node.output_info.add(alias_input_port=-1), t)
    node.control_input.extend(ids[c] for c in op._control_inputs if c in ids)
    if not node.input_info and not node.control_input:
        node.control_input.append(ids[None])
    node.compute_cost = round(spent.get(op.name, 0))
    if op.spec.variable or op.type == "Const":
        node.persistent_memory_size = sum(o.size for o in node.output_info)


def _take(node: CostGraphDef.Node, tensor: Tensor, ids: dict[Any, int]) -> None:
    if tensor in ids:
        node.input_info.add(preceding_node=ids[tensor])
    elif tensor._op in ids:
        node.input_info.add(preceding_node=ids[tensor._op], preceding_port=tensor.value_index)


def _describe(info: CostGraphDef.Node.OutputInfo, tensor: Tensor) -> None:
    info.dtype = tensor.dtype.as_datatype_enum
    info.shape.CopyFrom(tensor.shape.as_proto())
    elements = tensor.shape.num_elements()
    if elements is not None:
        info.size = elements * (tensor.dtype.size or 0)


def _spent(plan: Plan, events: Iterable[Event]) -> dict[str, float]:
    """Microseconds by operation."""
    parts = {part.ops[-1].name: [op.name for op in part.ops] for part in plan.parts if part.ops}
    spent: dict[str, float] = {}
    for _, name, _, began, ended, *_ in events:
        names = parts.get(name, [name])
        for op_name in names:
            spent[op_name] = spent.get(op_name, 0.0) + (ended - began) / 1000 / len(names)
    return spent
