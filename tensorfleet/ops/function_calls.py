"""Calling functions: `function.Defun` of TensorFlow 1, and the operation behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorfleet import dtypes
from tensorfleet.api import export
from tensorfleet.dtypes import DType
from tensorfleet.graph.apply import apply_op
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.functions import FunctionGraph, add_function, find_function, trace
from tensorfleet.graph.gradients import vjp
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.kernels import Kernel
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, op
from tensorfleet.graph.scopes import get_default_graph
from tensorfleet.ops.common import UNKNOWN
from tensorfleet.properties import readonly
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
    return call_body(xp, find_function(op.graph, f), args, check)


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
    for kernel in _kernels(body):
        inner = kernel.op
        given = [values[t] for t in inner._inputs]
        known = all(isinstance(v, (np.ndarray, np.generic)) for v in given)
        values.update(zip(inner._outputs, kernel.call(np if known else xp, given, check), strict=True))
    return tuple(values[t] for t in body.outputs)


def _kernels(body: FunctionGraph) -> list[Kernel]:
    """The kernels of a body in order, which is that of making; arguments have none."""
    found = body.__dict__.get("_kernels")
    if found is None:
        given = {t._op for t in (*body.inputs, *body.captures.values())}
        ops = [op for op in body._ops if op not in given and op._outputs]
        for inner in ops:
            if not inner.spec.pure:
                raise ValueError(
                    f"Function '{body.name}' calls {inner.type} ('{inner.name}'), which has an effect or a state. Make "
                    "the call outside, or use tf.py_func."
                )
        found = body.__dict__["_kernels"] = [Kernel(inner) for inner in ops]
    return found


class _Function:
    """A function whose body is traced for each graph and each set of argument types it is called in."""

    def __init__(self, call: Callable, types: Sequence[DType], options: dict[str, Any]) -> None:
        self._call = call
        self._types = types
        self._options = options
        self._bodies: dict[Any, tuple[FunctionGraph, Any]] = {}

    @property
    def name(self) -> str:
        """The name that the function has in the library of the default graph."""
        return self._body(self._types)[0].name

    declared_input_types = readonly("_types", "The types of the arguments, as declared.")

    @property
    def captured_inputs(self) -> list[Tensor]:
        """The tensors around the function that it uses."""
        return list(self._body(self._types)[0].captures)

    @property
    def definition(self) -> Any:
        """The function as a `FunctionDef`."""
        from tensorfleet.graph.library import function_def

        return function_def(self._body(self._types)[0])

    def add_to_graph(self, g: Graph) -> None:
        """Puts the function into the library of a graph."""
        with g.as_default():
            self._body(self._types)

    def _body(self, types: Sequence[DType]) -> tuple[FunctionGraph, Any]:
        graph = get_default_graph()
        key = id(graph), tuple(types)
        found = self._bodies.get(key)
        if found is None or found[0].outer is not graph:
            result: list = []

            def run(*arguments: Tensor) -> None:
                result.append(self._call(*arguments))

            chosen = self._options.get("func_name")
            name = str(chosen or getattr(self._call, "__name__", "function"))
            body, _ = trace(run, name, [(t, UNKNOWN) for t in types])
            if chosen and name not in graph._functions:
                body.name = name  # what the program chose is kept
            with body.as_default():
                flat = result[0] if isinstance(result[0], (list, tuple)) else [result[0]]
                outputs = [to_tensor(t) for t in flat if t is not None]
                body.outputs = [t if t.graph is body else body.capture(t) for t in outputs]
            _kernels(body)  # refuses what cannot be called
            add_function(body)
            self._add_gradient(body)
            found = self._bodies[key] = (body, result[0])
        return found

    def __call__(self, *args: Any, name: str | None = None) -> Any:
        if self._types and len(args) != len(self._types):
            raise ValueError(f"Expected {len(self._types)} arguments, got {len(args)}.")
        wanted: Sequence[Any] = self._types or [None] * len(args)
        tensors = [to_tensor(a, t) for a, t in zip(args, wanted, strict=True)]
        body, result = self._body([t.dtype.base_dtype for t in tensors])
        made = apply_op(
            "PartitionedCall",
            [*tensors, *body.captures],
            f=body.name,
            Tout=[t.dtype.base_dtype for t in body.outputs],
            name=name or body.name,
        )
        made._gradient_function = self._gradient()
        if not made._outputs:
            return made
        return list(made._outputs) if isinstance(result, (list, tuple)) else made._outputs[0]

    def _add_gradient(self, body: FunctionGraph) -> None:
        """Says in the graph's library which function `grad_func` is the gradient of this one."""
        backward = self._options.get("grad_func")
        if isinstance(backward, _Function) and not body.captures:
            types = [t.dtype.base_dtype for t in (*body.inputs, *body.outputs)]
            made = backward._body(types)[0]
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
    operation and the gradients).
    """

    def __init__(self, *input_types: Any, **kwargs: Any) -> None:
        self._types = [dtypes.as_dtype(t) for t in input_types]
        self._options = kwargs

    def __call__(self, func: Callable) -> _Function:
        if not callable(func):
            raise ValueError(f"function {func} must be callable")
        return _Function(func, self._types, self._options)
