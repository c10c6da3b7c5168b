"""Calling functions: `function.Defun` of TensorFlow 1, and the operation behind it."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from tensorfleet import dtypes, errors
from tensorfleet.api import export, find
from tensorfleet.dtypes import DType
from tensorfleet.graph.apply import apply, apply_op
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.functions import FunctionGraph, add_function, find_function, trace
from tensorfleet.graph.gradients import vjp
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.graphdef import export_graph
from tensorfleet.graph.kernels import Kernel
from tensorfleet.graph.meta_graph import export_meta_graph, import_meta_graph_def
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, op
from tensorfleet.graph.scopes import get_default_graph
from tensorfleet.graph.topology import in_order
from tensorfleet.ops.common import UNKNOWN
from tensorfleet.shapes import TensorShape


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
def _partitioned_call(xp: Any, args: list, *, f: Any, op: Operation, check: Any) -> tuple:
    return call_body(xp, called_body(op, f), args, check)


def called_body(op: Operation, name: Any) -> FunctionGraph:
    """The function that an operation calls, which may have become known after the call was made."""
    if str(name) not in op.graph._functions:
        raise errors.NotFoundError(
            None,
            op,
            f"Op type not registered '{name}': no function of that name is in the graph's library. Add it.",
        )
    body = find_function(op.graph, name)
    wanted = [t.dtype.base_dtype for t in (*body.inputs, *body.captures.values())]
    given = [t.dtype.base_dtype for t in op._inputs]
    if given != wanted:
        named = [", ".join(t.name for t in types) for types in (given, wanted)]
        raise errors.InvalidArgumentError(
            None, op, f"Function '{name}' is called with arguments of types {named[0]}; it takes {named[1]}."
        )
    return body


@gradient("PartitionedCall")
def _partitioned_call_grad(op: Operation, *grads: Any) -> Any:
    told = op.graph._function_gradients.get(str(op._attrs["f"]))
    if told is None:
        return vjp(op, *grads)
    body = find_function(op.graph, told)
    types = [t.dtype.base_dtype for t in body.outputs]
    return list(apply_op("PartitionedCall", [*op.inputs, *grads], f=told, Tout=types)._outputs)


def call_body(xp: Any, body: FunctionGraph, args: Sequence[Any], check: Any) -> tuple:
    """The results of a function, given its arguments and then what it takes from around."""
    values: dict[Tensor, Any] = dict(zip((*body.inputs, *body.captures.values()), args, strict=True))
    for kernel in kernels_of(body):
        inner = kernel.op
        given = [values[t] for t in inner._inputs]
        known = all(isinstance(v, (np.ndarray, np.generic)) for v in given)
        values.update(zip(inner._outputs, kernel.call(np if known else xp, given, check), strict=True))
    return tuple(values[t] for t in body.outputs)


def kernels_of(body: FunctionGraph) -> list[Kernel]:
    """The kernels of a body in order; arguments have none."""
    found = body.__dict__.get("_kernels")
    if found is None:
        own = set(_own_ops(body))
        ops = in_order({op: {t._op for t in op._inputs} & own for op in own}, lambda op: op._id)
        for inner in ops:
            if not _runs_alone(inner):
                raise ValueError(
                    f"Function '{body.name}' calls {inner.type} ('{inner.name}'), which has an effect or a state. Make "
                    "the call outside, or use tf.py_func."
                )
        found = body.__dict__["_kernels"] = [Kernel(inner) for inner in ops if inner._outputs]
    return found


def _own_ops(body: FunctionGraph) -> list[Operation]:
    given = {t._op for t in (*body.inputs, *body.captures.values())}
    return [op for op in body._ops if op not in given]


def _runs_alone(op: Operation) -> bool:
    """Whether a kernel is all it takes to run an operation: no state, no effect, no branch or loop around it."""
    return (op.spec.pure and op._control_flow_context is None) or op.type == "NoOp"


def call_traced(body: FunctionGraph, given: Sequence[Tensor], effects: Sequence[Operation]) -> Operation:
    """A call of a function with its arguments and then what it takes from around: one operation if it has no effects."""
    if not all(map(_runs_alone, _own_ops(body))):
        return _inlined(body, given, "StatefulPartitionedCall", None, effects)
    add_function(body)
    types = [t.dtype.base_dtype for t in body.outputs]
    return apply_op("PartitionedCall", given, f=body.name, Tout=types)


def _inlined(
    body: FunctionGraph,
    given: Sequence[Tensor],
    name: str,
    told: Callable | None,
    effects: Sequence[Operation] | None = None,
) -> Operation:
    """A call of a function that has effects: its operations, made once more where it is called.

    The operation returned gives the results, and waits for the effects, which are found unless they are told; `told` is
    its gradient, if not None.
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
        effects = [op for op in _own_ops(body) if op.spec.stateful and op._control_flow_context is None]
    _, scope, found = import_meta_graph_def(
        meta,
        graph=graph,
        import_scope=graph.unique_name(name, mark_as_used=False).rpartition("/")[2],
        input_map={f"given:{i}": t for i, t in enumerate(given)},
        return_elements=[*results, *(op.name for op in effects)],
    )
    count, scope = len(results), f"{scope}/"
    with graph.control_dependencies(found[count:]):
        if not count:
            return apply_op("NoOp", name=scope)
        call = apply_op("IdentityN", [*found[:count], *(given if told else ())], name=scope)
    if told is not None:
        call._gradient_function = lambda op, *grads: (
            [None] * count + _flat(told(_seen(op, count), *grads[:count]))
        )
    return call


def _seen(op: Operation, count: int) -> Any:
    """A call as the function of its gradient sees it: of the inputs, the first are results."""
    return SimpleNamespace(inputs=op.inputs[count:], outputs=op.outputs[:count], name=op.name, graph=op.graph)


def _flat(values: Any) -> list:
    return list(values) if isinstance(values, (list, tuple)) else [] if values is None else [values]


def _digest(body: FunctionGraph) -> str:
    """Short letters that tell what a function does: the same function has the same name in every graph."""
    from tensorfleet.graph.library import function_def

    proto = function_def(body)
    proto.signature.name = ""
    return hashlib.sha256(proto.SerializeToString(deterministic=True)).hexdigest()[:8]


@export("python.framework.function._DefinedFunction")
class _Function:
    """A function whose body is traced for each graph and each set of argument types it is called in."""

    def __init__(self, call: Callable, types: Sequence[DType] | None, options: dict[str, Any]) -> None:
        self._call = call
        self._types = types
        self._options = options
        self._devices = list(get_default_graph()._local().devices)
        self._bodies: dict[Any, FunctionGraph] = {}

    @property
    def name(self) -> str:
        """The name that the function has in the library of the default graph."""
        return self._declared.name

    @property
    def declared_input_types(self) -> tuple[DType, ...]:
        """The types of the arguments, as declared."""
        return tuple(self._types or ())

    @property
    def captured_inputs(self) -> list[Tensor]:
        """The tensors around the function that it uses."""
        return list(self._declared.captures)

    @property
    def grad_func_name(self) -> str | None:
        """The name of the function that is its gradient, if it brought one along."""
        backward = self._options.get("grad_func")
        return None if backward is None else backward.name

    @property
    def stateful_ops(self) -> list[tuple[str, str]]:
        """The name and the type of each operation inside that has effects or a state."""
        return [(op.name, op.type) for op in _own_ops(self._declared) if op.spec.stateful]

    @property
    def definition(self) -> Any:
        """The function as a `FunctionDef`."""
        from tensorfleet.graph.library import function_def

        return function_def(self._declared)

    @property
    def _signature(self) -> Any:
        return self.definition.signature

    @property
    def _declared(self) -> FunctionGraph:
        return self._body(self.declared_input_types)

    def instantiate(self, input_types: Sequence[Any]) -> _Function:
        """The same function, for arguments of these types."""
        return _Function(self._call, [dtypes.as_dtype(t) for t in input_types], self._options)

    def add_to_graph(self, g: Graph) -> None:
        """Puts the function into the library of a graph."""
        with g.as_default():
            self._body(self.declared_input_types)

    def _body(self, types: Sequence[DType]) -> FunctionGraph:
        graph = get_default_graph()
        key = id(graph), tuple(types)
        found = self._bodies.get(key)
        if found is None or found.outer is not graph:
            found = self._bodies[key] = self._traced(types)
            if all(map(_runs_alone, _own_ops(found))):
                add_function(found)
                self._add_gradient(found)
        return found

    def _traced(self, types: Sequence[DType]) -> FunctionGraph:
        graph, scope = get_default_graph(), find("get_variable_scope")()
        variables: list = []

        def made_around(getter: Callable, name: str, **options: Any) -> Any:
            with graph.as_default():
                variables.append(scope.get_variable(None, name, **options))
                # The value of a resource variable is read outside, so that the function has no state.
                return apply("Identity", variables[-1]) if hasattr(variables[-1], "handle") else variables[-1]

        def run(*arguments: Tensor) -> Any:
            inner: Any = get_default_graph()
            inner.seed, inner.__dict__["_extra_vars"] = None, variables
            # For scopes that were opened elsewhere, such as a template's, and so do not ask `made_around`.
            inner.__dict__["_variables_live_in"] = graph
            inner._local().devices = list(self._devices)
            inner.copyable = frozenset(self._options.get("whitelisted_stateful_ops") or ())
            with find("variable_scope")("", custom_getter=made_around):
                return self._call(*arguments)

        chosen, by_value = self._options.get("func_name"), bool(self._options.get("capture_by_value"))
        name = str(chosen or getattr(self._call, "__name__", "function"))
        body, result = trace(run, name, [(t, UNKNOWN) for t in types], by_value, copies_variables=False)
        if chosen:
            body.name = name  # what the program chose is kept
        flat = _flat(result)
        if any(t is None for t in flat):
            raise ValueError(f"Function {name} can not return None.")
        names = self._options.get("out_names") or ()
        if names and len(names) != len(flat):
            raise errors.InvalidArgumentError(
                None,
                None,
                "output names must be either empty or equal in size to outputs. output names size = "
                f"{len(names)} outputs size = {len(flat)}",
            )
        with body.as_default():
            body.outputs = [t if t.graph is body else body.capture(t) for t in map(to_tensor, flat)]
        described = {
            k: v.encode() if isinstance(v, str) else v
            for k, v in self._options.items()
            if k.startswith(("_", "experimental_"))
        }
        body.told = {"description": self._call.__doc__, "output_names": names, "attrs": described}
        if self._options.get("noinline") is not None:
            described["_noinline"] = bool(self._options["noinline"])
        if not chosen:
            body.name = f"{name}_{_digest(body)}"
        elif name in graph._functions and _digest(find_function(graph, name)) != _digest(body):
            raise errors.InvalidArgumentError(
                None,
                None,
                f"Cannot add function '{name}' because a different function with the same name already exists.",
            )
        return body

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = kwargs.pop("name", None)
        if kwargs:
            raise ValueError(f"Unknown keyword arguments: {', '.join(kwargs)}")
        if self._types is not None and len(args) != len(self._types):
            raise ValueError(f"Expected number of arguments: {len(self._types)}, received: {len(args)}")
        wanted: Sequence[Any] = [t.base_dtype for t in self._types or ()] or [None] * len(args)
        tensors = [to_tensor(a, t) for a, t in zip(args, wanted, strict=True)]
        body = self._body([t.dtype.base_dtype for t in tensors])
        given = [*tensors, *body.captures]
        if body.name in body.outer._functions:
            types = [t.dtype.base_dtype for t in body.outputs]
            made = apply_op("PartitionedCall", given, f=body.name, Tout=types, name=name or body.name)
            made._gradient_function = self._gradient()
        else:
            made = _inlined(body, given, name or body.name, self._gradient())
        if not body.outputs:
            return made
        outputs = made.outputs[: len(body.outputs)]
        if self._options.get("shape_func") is not None:
            seen = SimpleNamespace(inputs=given, outputs=outputs, name=made.name, graph=made.graph)
            for tensor, shape in zip(outputs, self._options["shape_func"](seen), strict=True):
                tensor.set_shape(shape)
        return tuple(outputs) if len(outputs) > 1 else outputs[0]

    def _add_gradient(self, body: FunctionGraph) -> None:
        """Says in the graph's library which function `grad_func` is the gradient of this one."""
        backward = self._options.get("grad_func")
        if isinstance(backward, _Function) and not body.captures:
            types = [t.dtype.base_dtype for t in (*body.inputs, *body.outputs)]
            made = backward._body(types)
            if not made.captures:
                body.outer._function_gradients[body.name] = made.name

    def _gradient(self) -> Callable | None:
        if self._options.get("python_grad_func") is not None:
            return self._options["python_grad_func"]
        backward = self._options.get("grad_func")
        if backward is None:
            return None
        return lambda op, *grads: backward(*op.inputs, *grads)


@export("python.framework.function.Defun")
class Defun:
    """`@Defun(tf.float32)` makes a function that becomes one operation of the graph where it is called.

    Options: `func_name`, `grad_func` (a function of the arguments and the gradients), `python_grad_func` (of the
    operation and the gradients), `out_names`, `shape_func`, `noinline`, `capture_by_value`,
    `whitelisted_stateful_ops` (the operations with a state that may be captured so). Variables made inside
    belong to the graph around; a function with effects becomes its operations.
    """

    def __init__(self, *input_types: Any, **kwargs: Any) -> None:
        self._types = [dtypes.as_dtype(t) for t in input_types]
        self._options = kwargs

    def __call__(self, func: Callable) -> _Function:
        if not callable(func):
            raise ValueError(f"function {func} must be callable")
        taken = list(inspect.signature(func).parameters.values())
        if any(p.kind in (p.VAR_KEYWORD, p.KEYWORD_ONLY) or p.default is not p.empty for p in taken):
            raise ValueError(
                f"Functions with argument defaults or keywords arguments are not supported: {func}"
            )
        least = sum(p.kind is not p.VAR_POSITIONAL for p in taken)
        if self._types and not (len(self._types) == least or (len(self._types) > least < len(taken))):
            raise ValueError(
                f"The function takes {least} arguments, and there are {len(self._types)} specified input types."
            )
        return _Function(func, self._types or (None if taken else []), self._options)


@export("python.framework.function.get_extra_vars")
def get_extra_vars() -> list:
    """The variables that the function being made has asked for."""
    return list(get_default_graph().__dict__.get("_extra_vars", ()))


@export("python.framework.function.get_extra_inputs")
def get_extra_inputs() -> list[Tensor]:
    """The tensors from around that the function being made has used."""
    return list(getattr(get_default_graph(), "captures", ()))


@export("python.framework.function.get_extra_args")
def get_extra_args() -> list[Tensor]:
    """What stands inside the function being made for the tensors from around."""
    return list(getattr(get_default_graph(), "captures", {}).values())
