"""Taking parts of a graph out, and putting them together."""

from __future__ import annotations

from typing import Any

from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.contrib.graph_editor import reroute, select, subgraph, util

_View = subgraph.SubGraphView


def detach_control_inputs(sgv: Any) -> None:
    """Nothing inside waits for what is outside."""
    sgv = subgraph.make_view(sgv)
    for op in sgv.ops:
        reroute.remove_control_inputs(op, [cop for cop in op.control_inputs if cop not in list(sgv.ops)])


def detach_control_outputs(sgv: Any, control_outputs: Any) -> None:
    """Nothing outside waits for what is inside."""
    if not isinstance(control_outputs, util.ControlOutputs):
        raise TypeError(f"Expected a util.ControlOutputs, got: {type(control_outputs)}")
    sgv = subgraph.make_view(sgv)
    inside = list(sgv.ops)
    for op in inside:
        for waiting in list(control_outputs.update().get(op)):
            if waiting not in inside:
                reroute.remove_control_inputs(waiting, op)


def _placeholders(sgv: _View, ts: Any) -> list[Tensor]:
    if sgv.graph is None:
        return []
    with sgv.graph.as_default():
        return [util.make_placeholder_from_tensor(t) for t in ts]


def detach_inputs(sgv: Any, control_inputs: Any = False) -> tuple[_View, list[Tensor]]:
    """Placeholders instead of the inputs; the view as it is then, and the placeholders."""
    sgv = subgraph.make_view(sgv)
    result = _placeholders(sgv, sgv.inputs)
    reroute.reroute_ts(result, sgv.inputs, can_modify=sgv.ops)
    if control_inputs:
        detach_control_inputs(sgv)
    return sgv._with(_input_ts=result), result


def detach_outputs(sgv: Any, control_outputs: Any = None) -> tuple[_View, list[Tensor]]:
    """Placeholders for those who took the outputs; the view and the placeholders."""
    sgv = subgraph.make_view(sgv)
    inside = set(sgv.ops)
    used = [t for t in sgv.outputs if not inside.issuperset(t.consumers())]
    result = _placeholders(sgv, used)
    reroute.reroute_ts(result, used, cannot_modify=sgv.ops)
    if control_outputs is not None:
        detach_control_outputs(sgv, control_outputs)
    return sgv, result


def detach(
    sgv: Any, control_inputs: Any = False, control_outputs: Any = None, control_ios: Any = None
) -> tuple[_View, list[Tensor], list[Tensor]]:
    """Cuts a part out on both sides; the view, the placeholders before it and those behind."""
    waits, waiting = select.check_cios(control_inputs, control_outputs, control_ios)
    sgv, before = detach_inputs(sgv, waits)
    sgv, behind = detach_outputs(sgv, waiting)
    return sgv, before, behind


def connect(sgv0: Any, sgv1: Any, disconnect_first: bool = False) -> tuple[_View, _View]:
    """The second takes the outputs of the first, which is cut off before if `disconnect_first`."""
    first, second = subgraph.make_view(sgv0), subgraph.make_view(sgv1)
    util.check_graphs(*first.ops, *second.ops)
    if disconnect_first:
        detach_outputs(first)
    given = list(first.outputs)
    reroute.reroute_ts(given, second.inputs, can_modify=second.ops)
    return first, second._with(_input_ts=given)


def bypass(sgv: Any) -> tuple[_View, list[Tensor]]:
    """Gives those who took the outputs the inputs; the view, cut off, and the inputs it had."""
    sgv = subgraph.make_view(sgv)
    before = list(sgv.inputs)
    sgv, _ = detach_inputs(sgv)
    reroute.reroute_ts(before, sgv.outputs, cannot_modify=sgv.ops)
    return sgv, before
