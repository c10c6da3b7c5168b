"""`function.Defun` of TensorFlow 1: Python functions traced into functions of the graph."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tensorfleet.api.variables.scope import get_variable_scope, variable_scope
from tensorfleet.base import dtypes, errors
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.types import DTypeLike, TensorLike
from tensorfleet.graph.apply import apply, apply_op
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.functions import FunctionGraph, add_function, find_function, trace
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import get_default_graph
from tensorfleet.ops.common import UNKNOWN
from tensorfleet.ops.control.function_calls import _inlined, flat_results, own_ops, runs_alone

if TYPE_CHECKING:
    from tensorfleet.base.protos import FunctionDef, OpDef


def _digest(body: FunctionGraph) -> str:
    """Short letters that tell what a function does: the same function has the same name in every graph."""
    from tensorfleet.graph.library import function_def

    proto = function_def(body)
    proto.signature.name = ""
    return hashlib.sha256(proto.SerializeToString(deterministic=True)).hexdigest()[:8]


@export("python.framework.function._DefinedFunction")
class DefinedFunction:
    """A function whose body is traced for each graph and each set of argument types it is called in."""

    def __init__(
        self, call: Callable[..., Any], types: Sequence[DType] | None, options: dict[str, Any]
    ) -> None:
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
        return [(op.name, op.type) for op in own_ops(self._declared) if op.spec.stateful]

    @property
    def definition(self) -> FunctionDef:
        """The function as a `FunctionDef`."""
        from tensorfleet.graph.library import function_def

        return function_def(self._declared)

    @property
    def _signature(self) -> OpDef:
        return self.definition.signature

    @property
    def _declared(self) -> FunctionGraph:
        return self._body(self.declared_input_types)

    def instantiate(self, input_types: Sequence[Any]) -> DefinedFunction:
        """The same function, for arguments of these types."""
        return DefinedFunction(self._call, [dtypes.as_dtype(t) for t in input_types], self._options)

    def add_to_graph(self, g: Graph) -> None:
        """Puts the function into the library of a graph."""
        with g.as_default():
            self._body(self.declared_input_types)

    def _body(self, types: Sequence[DType]) -> FunctionGraph:
        graph = get_default_graph()
        key = id(graph), tuple(types)
        result = self._bodies.get(key)
        if result is None or result.outer is not graph:
            result = self._bodies[key] = self._traced(types)
            # A function with effects, or with variables of its own, is not in the library: calls copy its operations.
            if all(map(runs_alone, own_ops(result))):
                add_function(result)
                self._add_gradient(result)
        return result

    def _traced(self, types: Sequence[DType]) -> FunctionGraph:
        graph, scope = get_default_graph(), get_variable_scope()
        variables: list[Any] = []

        def made_around(getter: Callable[..., Any], name: str, **options: Any) -> Any:
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
            with variable_scope("", custom_getter=made_around):
                return self._call(*arguments)

        chosen, by_value = self._options.get("func_name"), bool(self._options.get("capture_by_value"))
        name = str(chosen or getattr(self._call, "__name__", "function"))
        body, result = trace(run, name, [(t, UNKNOWN) for t in types], by_value, copies_variables=False)
        if chosen:
            body.name = name  # what the program chose is kept
        flat = flat_results(result)
        if any(t is None for t in flat):
            raise ValueError(f"Function {name} can not return None.")
        names = self._options.get("out_names") or ()
        if names and len(names) != len(flat):
            raise errors.invalid(
                "output names must be either empty or equal in size to outputs. output names size = "
                f"{len(names)} outputs size = {len(flat)}"
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
            raise errors.invalid(
                f"Cannot add function '{name}' because a different function with the same name already exists."
            )
        return body

    def __call__(self, *args: TensorLike, **kwargs: Any) -> Any:
        """Adds a call of the function to the graph."""
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
            result = apply_op("PartitionedCall", given, f=body.name, Tout=types, name=name or body.name)
            result._gradient_function = self._gradient()
        else:
            result = _inlined(body, given, name or body.name, self._gradient())
        if not body.outputs:
            return result
        outputs = result.outputs[: len(body.outputs)]
        if self._options.get("shape_func") is not None:
            seen = SimpleNamespace(inputs=given, outputs=outputs, name=result.name, graph=result.graph)
            for tensor, shape in zip(outputs, self._options["shape_func"](seen), strict=True):
                tensor.set_shape(shape)
        return tuple(outputs) if len(outputs) > 1 else outputs[0]

    def _add_gradient(self, body: FunctionGraph) -> None:
        """Says in the graph's library which function `grad_func` is the gradient of this one."""
        backward = self._options.get("grad_func")
        if isinstance(backward, DefinedFunction) and not body.captures:
            types = [t.dtype.base_dtype for t in (*body.inputs, *body.outputs)]
            backward_body = backward._body(types)
            # A gradient in the library is called with the arguments alone.
            if not backward_body.captures:
                body.outer._function_gradients[body.name] = backward_body.name

    def _gradient(self) -> Callable[..., Any] | None:
        if self._options.get("python_grad_func") is not None:
            result: Callable[..., Any] | None = self._options["python_grad_func"]
            return result
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

    def __init__(self, *input_types: DTypeLike, **kwargs: Any) -> None:
        self._types = [dtypes.as_dtype(t) for t in input_types]
        self._options = kwargs

    def __call__(self, func: Callable[..., Any]) -> DefinedFunction:
        """Wraps a Python function; its body is traced when it is first needed."""
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
        return DefinedFunction(func, self._types or (None if taken else []), self._options)


@export("python.framework.function.get_extra_vars")
def get_extra_vars() -> list[Any]:
    """The variables that the function being made has asked for."""
    return list(get_default_graph().__dict__.get("_extra_vars", ()))


@export("python.framework.function.get_extra_inputs")
def get_extra_inputs() -> list[Tensor]:
    """The tensors from around that the function being made has used."""
    return list(getattr(get_default_graph(), "captures", ()))


@export("python.framework.function.get_extra_args")
def get_extra_args() -> list[Tensor]:
    """The tensors that stand for those from around, inside the function being made."""
    return list(getattr(get_default_graph(), "captures", {}).values())
