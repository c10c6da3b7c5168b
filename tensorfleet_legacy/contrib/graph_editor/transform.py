"""Copies of parts of a graph, changed on the way."""

from __future__ import annotations

import copy as shallow
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tensorfleet.graph.graph import Graph
from tensorfleet.graph.graphdef import attr_from_proto
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.topology import in_order
from tensorfleet_legacy.contrib.graph_editor import select, subgraph, util


def replace_t_with_placeholder_handler(info: Any, t: Tensor) -> Tensor:
    """A placeholder in the new graph."""
    with info.graph_.as_default():
        return util.make_placeholder_from_tensor(t, scope=info.scope_)


def keep_t_if_possible_handler(info: Any, t: Tensor) -> Tensor:
    """The tensor itself within one graph, else a placeholder."""
    return t if info.graph is info.graph_ else replace_t_with_placeholder_handler(info, t)


def assign_renamed_collections_handler(info: Any, elem: Any, elem_: Any) -> None:
    """Puts the copy into the collections of the original: those of one's own get the scope before their names."""
    known = util.get_predefined_collection_names()
    for name in info.graph.get_all_collection_keys():
        if any(elem is x for x in info.graph.get_collection(name)):
            info.graph_.add_to_collection(name if name in known else info.new_name(name), elem_)


def transform_op_if_inside_handler(
    info: Any, op: Operation, keep_if_possible: bool = True
) -> Operation | None:
    """The copy of an operation that is copied too; else itself within one graph, or None."""
    if op in info.sgv._ops:
        return info.transformed_ops[op]
    return op if keep_if_possible and info.graph is info.graph_ else None


def copy_op_handler(
    info: Any, op: Operation, new_inputs: Any, copy_shape: bool = False, nodedef_fn: Callable | None = None
) -> tuple[Operation, list[Tensor]]:
    """A copy of an operation with other inputs, and its outputs; `nodedef_fn` may change its NodeDef before."""
    name, device, attrs = info.new_name(op.name), op.device, dict(op._attrs)
    if nodedef_fn is not None:
        node = shallow.deepcopy(op.node_def)
        node.name = name
        node = nodedef_fn(node)
        name, device = node.name, node.device
        own = {k: v for k, v in attrs.items() if k in op.spec.attrs}
        attrs = {**own, **{k: attr_from_proto(v) for k, v in node.attr.items() if k not in own}}
    attrs.pop("_class", None)
    with _bare(info.graph_):
        types = [t.dtype for t in op.outputs]
        result = info.graph_.add_op(
            op.spec, list(new_inputs), attrs, types, info.graph_.unique_name(name) + "/"
        )
    result._set_device(device)
    if copy_shape:
        for mine, theirs in zip(result.outputs, op.outputs, strict=True):
            mine.set_shape(theirs.shape)
    if op._original_op is not None:
        result._original_op = info.transform_original_op_handler(info, op._original_op)
    return result, result.outputs


@contextmanager
def _bare(graph: Graph) -> Iterator[None]:
    """A graph without the scopes that are open in it."""
    with graph.as_default(), graph.name_scope(None), graph.control_dependencies(None), graph.device(None):
        yield


class TransformerInfo:
    """The result of a copy: `transformed` and `original` of operations, tensors, views and trees of them."""

    def __init__(self, info: Any) -> None:
        self._graph, self._scope = info.graph, info.scope
        self._graph_, self._scope_ = info.graph_, info.scope_
        self._transformed = {**info.transformed_ops, **info.transformed_ts}
        self._original = {new: old for old, new in self._transformed.items()}

    def transformed(self, original: Any, missing_fn: Callable | None = None) -> Any:
        """The copies; of what was not copied `missing_fn` of it, or None."""
        return self._looked_up(original, self._transformed, missing_fn)

    def original(self, transformed: Any, missing_fn: Callable | None = None) -> Any:
        """The originals of copies; `missing_fn` of anything that is not a copy, or None."""
        return self._looked_up(transformed, self._original, missing_fn)

    def _looked_up(self, tree: Any, known: dict, missing_fn: Callable | None) -> Any:
        def one(x: Any) -> Any:
            x = getattr(x, "value", lambda: x)() if not isinstance(x, (Operation, Tensor)) else x
            if x in known:
                return known[x]
            return None if missing_fn is None else missing_fn(x)

        return util.transform_tree(tree, one)

    def __str__(self) -> str:
        return f"Transformer result info: from scope '{self._scope}' to '{self._scope_}', {len(self._transformed)} elements"


class _Work:
    """A copy under way: what handlers see."""

    def __init__(self, handlers: Transformer, sgv: Any, graph_: Graph, scope_: str, scope: str) -> None:
        self.sgv, self.graph, self.scope = sgv, sgv.graph, scope
        self.graph_, self.scope_ = graph_, scope_
        self.inputs = set(sgv.inputs)
        self.ops = frozenset(sgv.ops)
        self.control_outputs = util.ControlOutputs(self.graph)
        self.transformed_ops: dict[Operation, Operation] = {}
        self.transformed_ts: dict[Tensor, Tensor] = {}
        self.transform_original_op_handler = handlers.transform_original_op_handler
        #: inputs that came too early in a loop: the operation, the position and the tensor it is to get
        self.late: list[tuple[Operation, int, Tensor]] = []

    def new_name(self, name: str) -> str:
        """A name in the new scope."""
        if not name.startswith(self.scope):
            raise ValueError(f"{name} does not belong to source scope: {self.scope}.")
        return self.scope_ + name[len(self.scope) :]


class Transformer:
    """Copies a part of a graph. Its handlers, which may be replaced, decide what becomes of each operation and tensor."""

    def __init__(self) -> None:
        self.transform_op_handler: Callable = copy_op_handler
        self.transform_control_input_handler: Callable = transform_op_if_inside_handler
        self.assign_collections_handler: Callable = assign_renamed_collections_handler
        self.transform_external_input_handler: Callable = replace_t_with_placeholder_handler
        self.transform_external_hidden_input_handler: Callable = keep_t_if_possible_handler
        self.transform_original_op_handler: Callable = transform_op_if_inside_handler

    def __call__(
        self, sgv: Any, dst_graph: Graph, dst_scope: str, src_scope: str = "", reuse_dst_scope: bool = False
    ) -> tuple[subgraph.SubGraphView, TransformerInfo]:
        """The view of the copy, and what became of what."""
        sgv = subgraph.make_view(sgv)
        if not isinstance(dst_graph, Graph):
            raise TypeError(f"Expected a tf.Graph, got: {type(dst_graph)}")
        dst_scope, src_scope = util.scope_finalize(dst_scope), util.scope_finalize(src_scope)
        if dst_scope and not reuse_dst_scope:
            with dst_graph.name_scope(None):
                dst_scope = util.scope_finalize(dst_graph.unique_name(dst_scope[:-1]))
        info = _Work(self, sgv, dst_graph, dst_scope, src_scope)
        self._copy_ops(info)
        for op, place, tensor in info.late:
            op._update_input(place, info.transformed_ts[tensor])
        self._connect_control_inputs(info)
        return self._view(info), TransformerInfo(info)

    def _copy_ops(self, info: _Work) -> None:
        for op in _in_order(info.ops):
            late: list[tuple[int, Tensor]] = []
            inputs = [self._input(info, op, i, late) for i in range(len(op.inputs))]
            result, outputs = self.transform_op_handler(info, op, inputs)
            if op is result:
                raise ValueError("In-place transformation not allowed. Return another operation.")
            info.late += [(result, place, tensor) for place, tensor in late]
            info.transformed_ops[op] = result
            self.assign_collections_handler(info, op, result)
            for old, new in zip(op.outputs, outputs, strict=False):
                info.transformed_ts[old] = new
                self.assign_collections_handler(info, old, new)

    def _input(self, info: _Work, op: Operation, place: int, late: list) -> Tensor:
        tensor = op.inputs[place]
        if tensor in info.transformed_ts:
            return info.transformed_ts[tensor]
        if tensor.op in info.ops:  # a loop: the operation that gives it is copied after this one
            late.append((place, tensor))
            with _bare(info.graph_):
                return util.make_placeholder_from_tensor(tensor, info.scope_, "geph_tmp")
        external = self.transform_external_input_handler
        hidden = self.transform_external_hidden_input_handler
        result = (external if tensor in info.inputs else hidden)(info, tensor)
        info.transformed_ts[tensor] = result
        return result

    def _connect_control_inputs(self, info: _Work) -> None:
        for op, item in info.transformed_ops.items():
            waits = [self.transform_control_input_handler(info, c) for c in op.control_inputs]
            item._add_control_inputs([c for c in dict.fromkeys(waits) if c is not None])

    def _view(self, info: _Work) -> subgraph.SubGraphView:
        result = info.transformed_ts
        view = subgraph.SubGraphView(list(info.transformed_ops.values()))
        passing = [
            result.get(t, t) for t in info.sgv.passthroughs if t in result or info.graph is info.graph_
        ]
        return view._with(
            _passthrough_ts=passing,
            _input_ts=[result[t] for t in info.sgv.inputs if t in result],
            _output_ts=[result[t] for t in info.sgv.outputs if t in result],
        )


def _in_order(ops: frozenset[Operation]) -> list[Operation]:
    """Operations after those they take from, except where a loop goes back."""
    goes_back = ("NextIteration", "RefNextIteration")
    needs = {op: {t._op for t in op._inputs if t._op in ops and t._op.type not in goes_back} for op in ops}
    return in_order(needs, lambda op: op._id)


def copy(
    sgv: Any,
    dst_graph: Graph | None = None,
    dst_scope: str = "",
    src_scope: str = "",
    reuse_dst_scope: bool = False,
) -> tuple[subgraph.SubGraphView, TransformerInfo]:
    """Copies a part of a graph, into its own or another; inputs become placeholders."""
    sgv = subgraph.make_view(sgv)
    return Transformer()(
        sgv, sgv.graph if dst_graph is None else dst_graph, dst_scope, src_scope, reuse_dst_scope
    )


def copy_with_input_replacements(
    sgv: Any,
    replacement_ts: dict[Tensor, Tensor],
    dst_graph: Graph | None = None,
    dst_scope: str = "",
    src_scope: str = "",
    reuse_dst_scope: bool = False,
) -> tuple[subgraph.SubGraphView, TransformerInfo]:
    """Copies a part of a graph with other tensors for some of its inputs."""
    sgv = subgraph.make_view(sgv)
    graph = sgv.graph if dst_graph is None else dst_graph
    given = {util.make_list_of_t(old)[0]: new for old, new in replacement_ts.items()}
    for new in given.values():
        if new.graph is not graph:
            raise ValueError(f"{new.name} is of another graph than the copy. Make it there.")
    copier = Transformer()
    copier.transform_external_input_handler = lambda info, t: (
        given[t] if t in given else keep_t_if_possible_handler(info, t)
    )
    return copier(sgv, graph, dst_scope, src_scope, reuse_dst_scope)


def _with_loops(ops: list[Operation], control_ios: util.ControlOutputs) -> list[Operation]:
    """Operations and, for those of a loop or a condition, all of it: half a loop cannot be copied."""
    result = dict.fromkeys(ops)
    contexts = {op._get_control_flow_context() for op in ops} - {None}
    if contexts:
        graph = control_ios.graph
        result.update(
            dict.fromkeys(op for op in graph.get_operations() if op._get_control_flow_context() in contexts)
        )
    return list(result)


def graph_replace(
    target_ts: Any,
    replacement_ts: dict[Tensor, Tensor],
    dst_scope: str = "",
    src_scope: str = "",
    reuse_dst_scope: bool = False,
) -> Any:
    """The targets as they are when some tensors are replaced by others: what lies between is copied."""
    flat = util.flatten_tree(target_ts)
    graph = util.get_unique_graph(flat, check_types=(Tensor,))
    assert graph is not None
    control_ios = util.ControlOutputs(graph)
    between = select.get_walks_intersection_ops(list(replacement_ts), flat, control_ios=control_ios)
    if not between:
        raise ValueError("Targets and replacements are not connected! Replace what the targets depend on.")
    between = _with_loops(between, control_ios)
    _, info = copy_with_input_replacements(
        between, replacement_ts, None, dst_scope, src_scope, reuse_dst_scope
    )
    return info.transformed(target_ts, lambda original: original)
