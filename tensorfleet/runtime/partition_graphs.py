"""The graph of each device in a step, with a send and a receive wherever a value goes to another device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensorfleet.base import dtypes
from tensorfleet.passes.plan import Plan

if TYPE_CHECKING:
    from tensorfleet.base.protos import GraphDef, NodeDef, RunMetadata
    from tensorfleet.graph.operation import Operation, Tensor


@dataclass(frozen=True, slots=True)
class Edge:
    """One value that goes from a device to another; without a tensor, only that an operation is done."""

    number: int
    source: Operation
    tensor: Tensor | None
    sender: str
    receiver: str
    #: the operation that gives it, or the receive from the client of one that is fed
    giver: str
    #: the operation that takes it, or the send to the client of one that is fetched
    taker: str

    @property
    def name(self) -> str:
        """What identifies it in the step."""
        index = self.tensor.value_index if self.tensor is not None else 0
        return f"edge_{self.number}_{self.giver}" + (f":{index}" if index else "")

    @property
    def crosses_tasks(self) -> bool:
        """Whether it leaves its task."""
        return self.sender.rpartition("/device:")[0] != self.receiver.rpartition("/device:")[0]

    def node(self, end: int) -> str:
        """The name of its send (0) or receive (1)."""
        return f"{self.giver}_S{2 * self.number + end}"


def edges_between_tasks(plan: Plan, home: str, placed: Mapping[Operation, str]) -> list[Edge]:
    """Where values go from one device to another. What is fed comes from the device `home`, what is fetched goes there."""
    edges: dict[tuple[object, str], Edge] = {}

    def note(source: Operation, tensor: Tensor | None, taker: str, receiver: str) -> None:
        sender, giver = placed.get(source, "") or home, source.name
        if tensor is not None and tensor in plan.fed:
            sender, giver = home, _fed_name(tensor)
        key = (tensor if tensor is not None else source), receiver
        if sender != receiver and key not in edges and not (tensor is None and (source, receiver) in edges):
            edges[key] = Edge(len(edges), source, tensor, sender, receiver, giver, taker)

    for op in sorted(placed, key=lambda op: op._id):
        receiver = placed[op] or home
        for t in op._inputs:
            if t in plan.fed or t._op in placed:
                note(t._op, t, op.name, receiver)
        for before in op._control_inputs:
            if before in placed:
                note(before, None, op.name, receiver)
    for t in plan.fetches:
        if t in plan.fed or t._op in placed:
            note(t._op, t, _fetched_name(t), home)
    return list(edges.values())


def fill_partition_graphs(
    run_metadata: RunMetadata,
    placed: Mapping[Operation, str],
    edges: list[Edge],
    plan: Plan,
    home: str,
    with_client: bool,
) -> None:
    """Writes the graph of each device into a `RunMetadata`; `with_client`, with what the client feeds and fetches."""
    graphs: dict[str, GraphDef] = {}

    def graph_of(device: str) -> GraphDef:
        if device not in graphs:
            graphs[device] = run_metadata.partition_graphs.add()
        return graphs[device]

    arriving: dict[tuple[object, str], Edge] = {
        ((e.tensor if e.tensor is not None else e.source), e.receiver): e for e in edges
    }
    is_divided = with_client or bool(edges)
    for op, device in placed.items():
        node = graph_of(device).node.add()
        node.CopyFrom(op.node_def)
        node.device = device
        if is_divided:
            _take_what_arrives(node, op, arriving, device or home, plan)
    for edge in edges:
        _add_transfer(graph_of(edge.sender), graph_of(edge.receiver), edge, plan)
    if is_divided:
        _add_client(graph_of(home), home, plan, arriving, placed)


def _take_what_arrives(
    node: NodeDef, op: Operation, arriving: Mapping[tuple[object, str], Edge], device: str, plan: Plan
) -> None:
    """Lets a node take from receives what comes from other devices, or from the client."""
    inputs = []
    for t in op._inputs:
        edge = arriving.get((t, device))
        if edge is not None:
            inputs.append(edge.node(1))
        elif t in plan.fed:
            inputs.append(_fed_name(t))
        else:
            inputs.append(t._op.name + (f":{t.value_index}" if t.value_index else ""))
    for before in op._control_inputs:
        edge = arriving.get((before, device))
        inputs.append("^" + (before.name if edge is None else edge.node(1)))
    del node.input[:]
    node.input.extend(inputs)


def _fed_name(tensor: Tensor) -> str:
    return f"_recv_{tensor._op.name}_{tensor.value_index}"


def _fetched_name(tensor: Tensor) -> str:
    return f"_send_{tensor._op.name}_{tensor.value_index}"


def _add_transfer(sender: GraphDef, receiver: GraphDef, edge: Edge, plan: Plan) -> None:
    """The send and the receive of one value."""
    tensor = edge.tensor
    if tensor is None:  # nothing but the fact that it is done
        const = sender.node.add(name=f"{edge.source.name}_C{edge.number}", op="Const", device=edge.sender)
        const.input.append(f"^{edge.source.name}")
        kind = dtypes.float32.as_datatype_enum
        const.attr["dtype"].type = const.attr["value"].tensor.dtype = kind
        const.attr["value"].tensor.tensor_shape.dim.add(size=0)
        source, on_host = const.name, False
    elif tensor in plan.fed:
        source, kind = _fed_name(tensor), tensor.dtype.base_dtype.as_datatype_enum
        on_host = False
    else:
        source = edge.source.name + (f":{tensor.value_index}" if tensor.value_index else "")
        kind, on_host = tensor.dtype.base_dtype.as_datatype_enum, tensor.dtype.base_dtype.name == "string"
    prefix = "_Host" if on_host else "_"
    send = sender.node.add(name=edge.node(0), op=f"{prefix}Send", device=edge.sender, input=[source])
    send.attr["T"].type = kind
    receive = receiver.node.add(name=edge.node(1), op=f"{prefix}Recv", device=edge.receiver)
    receive.attr["tensor_type"].type = kind
    for node in (send, receive):
        _describe(node, edge.name, edge.sender, edge.receiver, client=False)
        node.attr["_src"].s = edge.giver.encode()
        node.attr["_dst"].s = edge.taker.encode()


def _add_client(
    graph: GraphDef,
    home: str,
    plan: Plan,
    arriving: Mapping[tuple[object, str], Edge],
    placed: Mapping[Operation, str],
) -> None:
    """What the client feeds, and what it fetches."""
    for t in plan.feeds:
        node = graph.node.add(name=_fed_name(t), op="_Recv", device=home)
        node.attr["tensor_type"].type = t.dtype.base_dtype.as_datatype_enum
        _describe(node, t.name, home, home, client=True)
    for t in dict.fromkeys(plan.fetches):
        if t not in plan.fed and t._op not in placed:
            continue
        edge = arriving.get((t, home))
        source = t._op.name + (f":{t.value_index}" if t.value_index else "")
        if edge is not None:
            source = edge.node(1)
        elif t in plan.fed:
            source = _fed_name(t)
        node = graph.node.add(name=_fetched_name(t), op="_Send", device=home, input=[source])
        node.attr["T"].type = t.dtype.base_dtype.as_datatype_enum
        _describe(node, t.name, home, home, client=True)


def _describe(node: NodeDef, tensor_name: str, sender: str, receiver: str, client: bool) -> None:
    node.attr["tensor_name"].s = tensor_name.encode()
    node.attr["send_device"].s = sender.encode()
    node.attr["send_device_incarnation"].i = 0
    node.attr["recv_device"].s = receiver.encode()
    node.attr["client_terminated"].b = client
