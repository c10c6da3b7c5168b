"""Writes branches and loops into MetaGraphs, and finds them again in an imported graph.

Their operations are in the graph anyway. A MetaGraph also has which of them belong to which branch or loop: an imported
graph needs that for its gradients.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tensorfleet.graph.graphdef import prepend_scope, strip_scope
from tensorfleet.graph.meta_graph import register_proto_function
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import GraphKeys, get_default_graph
from tensorfleet.ops.control.context import CondContext, ControlFlowContext, WhileContext

if TYPE_CHECKING:
    from tensorfleet.base.protos import CondContextDef, ControlFlowContextDef, WhileContextDef


def cond_to_proto(context: CondContext, export_scope: str | None = None) -> CondContextDef | None:
    """A branch as a `CondContextDef`; None for one outside of the scope that is exported."""
    from tensorfleet.base.protos import CondContextDef

    if not _exported(context, export_scope):
        return None
    result = CondContextDef(context_name=strip_scope(context.name, export_scope), branch=context.branch)
    result.pred_name = strip_scope(context.pred.name, export_scope)
    result.pivot_name = strip_scope(context.pivot.name, export_scope)
    _write(result, context, export_scope)
    return result


def while_to_proto(context: WhileContext, export_scope: str | None = None) -> WhileContextDef | None:
    """A loop as a `WhileContextDef`; None for one outside of the scope that is exported."""
    from tensorfleet.base.protos import WhileContextDef

    if not _exported(context, export_scope):
        return None
    result = WhileContextDef(
        context_name=strip_scope(context.name, export_scope),
        parallel_iterations=context.parallel_iterations,
        back_prop=context.back_prop,
        swap_memory=context.swap_memory,
        pivot_name=strip_scope(context.pivot.name, export_scope),
        pivot_for_pred_name=strip_scope(context._pivot_for_pred.name, export_scope),
        pivot_for_body_name=strip_scope(context._pivot_for_body.name, export_scope),
        loop_exit_names=[strip_scope(t.name, export_scope) for t in context.exits],
        loop_enter_names=[strip_scope(t.name, export_scope) for t in context.enters],
    )
    if context.maximum_iterations is not None:
        result.maximum_iterations_name = strip_scope(context.maximum_iterations.name, export_scope)
    _write(result, context, export_scope)
    return result


def _exported(context: ControlFlowContext, export_scope: str | None) -> bool:
    return not export_scope or context.name.startswith(export_scope)


def _write(proto: Any, context: ControlFlowContext, export_scope: str | None) -> None:
    names = sorted(t.name for t in context._known if t is not None)
    proto.values_def.values.extend(strip_scope(name, export_scope) for name in names)
    captured = dict(context._captured)
    if isinstance(context, CondContext):
        captured[context.pred] = context.pred
    for outside, inside in captured.items():
        proto.values_def.external_values[strip_scope(outside.name, export_scope)] = strip_scope(
            inside.name, export_scope
        )
    for nested in context._nested:
        if isinstance(nested, CondContext):
            proto.nested_contexts.add().cond_ctxt.CopyFrom(cond_to_proto(nested, export_scope))
        # A gradient loop is not written: nobody differentiates it again.
        elif isinstance(nested, WhileContext) and nested.grad_state is None:
            proto.nested_contexts.add().while_ctxt.CopyFrom(while_to_proto(nested, export_scope))


def cond_from_proto(context_def: CondContextDef, import_scope: str | None = None) -> CondContext:
    """The branch that a `CondContextDef` describes, around its operations in the current graph."""
    find = _TensorFinder(import_scope)
    context = CondContext(find(context_def.pred_name), find(context_def.pivot_name), context_def.branch)
    _read(context, context_def, find)
    return context


def while_from_proto(context_def: WhileContextDef, import_scope: str | None = None) -> WhileContext:
    """The loop that a `WhileContextDef` describes, around its operations in the current graph."""
    find = _TensorFinder(import_scope)
    limit = context_def.maximum_iterations_name
    context = WhileContext(
        find(limit) if limit else None,
        context_def.parallel_iterations or 10,
        context_def.back_prop,
        context_def.swap_memory,
    )
    context._pivot = find(context_def.pivot_name)
    context._pivot_for_pred = find(context_def.pivot_for_pred_name)
    context._pivot_for_body = find(context_def.pivot_for_body_name)
    context.exits = [find(name) for name in context_def.loop_exit_names]
    for left in context.exits:  # Exit <- Switch <- Merge <- (Enter, NextIteration)
        switched = left._op._inputs[0]._op
        merged = switched._inputs[0]
        context.switches.append(list(switched._outputs))
        context.merges.append(merged)
        context.enters.append(merged._op._inputs[0])
        context.nexts.append(merged._op._inputs[1])
    _read(context, context_def, find)
    return context


class _TensorFinder:
    """Finds tensors of the current graph by the names they had where they were exported."""

    def __init__(self, import_scope: str | None) -> None:
        self.scope = import_scope
        self._graph = get_default_graph()

    def __call__(self, name: str) -> Tensor:
        tensor: Tensor = self._graph.as_graph_element(prepend_scope(name, self.scope))
        return tensor

    def all(self, names: Iterable[str]) -> list[Tensor]:
        """The tensors that exist: those outside of an exported scope may be missing."""
        graph = self._graph
        scoped = [prepend_scope(name, self.scope) for name in names]
        return [graph.as_graph_element(n) for n in scoped if n.split(":")[0] in graph._by_name]


def _read(context: ControlFlowContext, context_def: Any, find: _TensorFinder) -> None:
    context._name = prepend_scope(context_def.context_name, find.scope)
    values = context_def.values_def
    for outside, inside in values.external_values.items():
        context._captured.update(zip(find.all([outside]), find.all([inside]), strict=False))
    if isinstance(context, CondContext):
        context._captured[context.pred] = context.pred
    context._known.update(find.all(values.values))
    for t in context._known - set(context._captured):
        t._op._set_control_flow_context(context)
        if t._op.type in ("Enter", "RefEnter"):  # two imports of one loop are two loops
            t._op._attrs["frame_name"] = context.name.encode()
    with context:
        for nested in context_def.nested_contexts:
            from_context_def(nested, find.scope)


def from_context_def(
    context_def: ControlFlowContextDef, import_scope: str | None = None
) -> ControlFlowContext:
    """The branch or loop that a `ControlFlowContextDef` describes."""
    if context_def.HasField("cond_ctxt"):
        return cond_from_proto(context_def.cond_ctxt, import_scope)
    return while_from_proto(context_def.while_ctxt, import_scope)


register_proto_function(GraphKeys.COND_CONTEXT, "CondContextDef", cond_to_proto, cond_from_proto)
register_proto_function(GraphKeys.WHILE_CONTEXT, "WhileContextDef", while_to_proto, while_from_proto)
