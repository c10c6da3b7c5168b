"""Calling functions of a graph: the operation, its gradient, and calls whose body is put in their place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, ArrayModule
from tensorfleet.graph.apply import apply_op
from tensorfleet.graph.functions import FunctionGraph, add_function, find_function
from tensorfleet.graph.gradients import vjp
from tensorfleet.graph.graphdef import export_graph
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.kernel_types import Check
from tensorfleet.graph.kernels import Kernel
from tensorfleet.graph.meta_graph import export_meta_graph, import_meta_graph_def
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, op
from tensorfleet.graph.scopes import get_default_graph
from tensorfleet.graph.topology import in_order
from tensorfleet.ops.common import UNKNOWN


def _called_shapes(op: Operation) -> list[TensorShape]:
    if str(op._attrs["f"]) not in op.graph._functions:
        return [UNKNOWN] * len(op._outputs)
    return [t.shape for t in find_function(op.graph, op._attrs["f"]).outputs]


@op(
    "PartitionedCall",
    "args: list(Tin) -> output: list(Tout)",
    "Tin: list(type); Tout: list(type); f: func; config: string = ''; config_proto: string = ''; "
    "executor_type: string = ''",
    shape=_called_shapes,
)
def _partitioned_call(
    xp: ArrayModule, args: list[Array], *, f: str, op: Operation, check: Check
) -> tuple[Array, ...]:
    return call_body(xp, called_body(op, f), args, check)


def called_body(op: Operation, name: str) -> FunctionGraph:
    """The function that an operation calls, which may have been added to the graph after the call."""
    if str(name) not in op.graph._functions:
        raise errors.NotFoundError(
            None,
            op,
            f"Op type not registered '{name}': no function of that name is in the graph's library. Add it.",
        )
    body = find_function(op.graph, name)
    wanted = [t.dtype.base_dtype for t in (*body.inputs, *body.captures.values())]
    types = [t.dtype.base_dtype for t in op._inputs]
    if types != wanted:
        named = [", ".join(t.name for t in each) for each in (types, wanted)]
        raise errors.InvalidArgumentError(
            None, op, f"Function '{name}' is called with arguments of types {named[0]}; it takes {named[1]}."
        )
    return body


@gradient("PartitionedCall")
def _partitioned_call_grad(op: Operation, *grads: Tensor) -> Sequence[Tensor | IndexedSlices | None]:
    function = op.graph._function_gradients.get(str(op._attrs["f"]))
    if function is None:
        return vjp(op, *grads)
    body = find_function(op.graph, function)
    types = [t.dtype.base_dtype for t in body.outputs]
    return list(apply_op("PartitionedCall", [*op.inputs, *grads], f=function, Tout=types)._outputs)


def call_body(xp: ArrayModule, body: FunctionGraph, args: Sequence[Any], check: Check) -> tuple[Array, ...]:
    """The results of a function for its arguments and then the tensors that it captures."""
    values: dict[Tensor, Any] = dict(zip((*body.inputs, *body.captures.values()), args, strict=True))
    for kernel in kernels_of(body):
        inner = kernel.op
        inputs = [values[t] for t in inner._inputs]
        # Values that are known while tracing stay in numpy: they may be shapes, which must be known.
        known = all(isinstance(v, (np.ndarray, np.generic)) for v in inputs)
        values.update(zip(inner._outputs, kernel.call(np if known else xp, inputs, check), strict=True))
    return tuple(values[t] for t in body.outputs)


def kernels_of(body: FunctionGraph) -> list[Kernel]:
    """The kernels of a body in order; arguments have none."""
    kernels: list[Kernel] | None = body.__dict__.get("_kernels")
    if kernels is None:
        own = set(own_ops(body))
        ops = in_order({op: {t._op for t in op._inputs} & own for op in own}, lambda op: op._id)
        for inner in ops:
            if not runs_alone(inner):
                raise ValueError(
                    f"Function '{body.name}' calls {inner.type} ('{inner.name}'), which has an effect or a state. Make "
                    "the call outside, or use tf.py_func."
                )
        kernels = body.__dict__["_kernels"] = [Kernel(inner) for inner in ops if inner._outputs]
    return kernels


def own_ops(body: FunctionGraph) -> list[Operation]:
    """The operations of a body but its arguments."""
    arguments = {t._op for t in (*body.inputs, *body.captures.values())}
    return [op for op in body._ops if op not in arguments]


def runs_alone(op: Operation) -> bool:
    """Whether a kernel is all it takes to run an operation: no state, no effect, no branch or loop around it."""
    return (op.spec.pure and op._control_flow_context is None) or op.type == "NoOp"


def call_traced(body: FunctionGraph, given: Sequence[Tensor], effects: Sequence[Operation]) -> Operation:
    """Calls a function with its arguments and captured tensors: one operation if it has no effects."""
    if not all(map(runs_alone, own_ops(body))):
        return _inlined(body, given, "StatefulPartitionedCall", None, effects)
    add_function(body)
    types = [t.dtype.base_dtype for t in body.outputs]
    return apply_op("PartitionedCall", given, f=body.name, Tout=types)


def _inlined(
    body: FunctionGraph,
    given: Sequence[Tensor],
    name: str,
    gradient: Callable[..., Any] | None,
    effects: Sequence[Operation] | None = None,
) -> Operation:
    """Calls a function that has effects: copies its operations to the place of the call.

    The operation returned gives the results, and waits for the effects: by default all stateful operations. `gradient`
    is its gradient function, if not None.
    """
    graph = get_default_graph()
    given = [t if t.graph is graph else graph.capture(t) for t in given]
    all_inputs = [*body.inputs, *body.captures.values()]
    places = {p._op.name: i for i, p in enumerate(all_inputs)}
    meta = export_meta_graph(graph=body, graph_def=export_graph(body, add_shapes=False))
    meta.graph_def.ClearField("library")
    for node in meta.graph_def.node:
        node.attr.pop("_class", None)  # names places around the function
        if node.name in places:
            kind = all_inputs[places[node.name]].dtype.base_dtype.as_datatype_enum
            node.attr.clear()
            node.op, node.attr["T"].type = "Identity", kind
            node.input[:] = [f"given:{places[node.name]}"]
    results = [t.name for t in body.outputs]
    if effects is None:
        effects = [op for op in own_ops(body) if op.spec.stateful and op._control_flow_context is None]
    _, scope, elements = import_meta_graph_def(
        meta,
        graph=graph,
        import_scope=graph.unique_name(name, mark_as_used=False).rpartition("/")[2],
        input_map={f"given:{i}": t for i, t in enumerate(given)},
        return_elements=[*results, *(op.name for op in effects)],
    )
    count, scope = len(results), f"{scope}/"
    with graph.control_dependencies(elements[count:]):
        if not count:
            return apply_op("NoOp", name=scope)
        call = apply_op("IdentityN", [*elements[:count], *(given if gradient else ())], name=scope)
    if gradient is not None:
        call._gradient_function = lambda op, *grads: (
            [None] * count + flat_results(gradient(as_called(op, count), *grads[:count]))
        )
    return call


def flat_results(values: Any) -> list[Any]:
    """The results of a function as a list: none, one, or several."""
    return list(values) if isinstance(values, (list, tuple)) else [] if values is None else [values]


def as_called(op: Operation, count: int) -> SimpleNamespace:
    """An inlined call for its gradient function: the first `count` inputs of the operation are the results."""
    return SimpleNamespace(inputs=op.inputs[count:], outputs=op.outputs[:count], name=op.name, graph=op.graph)
