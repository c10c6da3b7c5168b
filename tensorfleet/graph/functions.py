"""Graphs that are the bodies of functions: made by tracing Python, run by operations that name them.

A body may use tensors of the graph around it. Each becomes one more input of the function (a capture); variables
and constants are made once more inside instead, which means the same and keeps what is known about them.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tensorfleet.base.dtypes import DType
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph import registry
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import get_default_graph

# A copied constant keeps its value known inside the body (a reshape's target, an axis); a large one is data.
_MAX_COPIED_ELEMENTS = 1 << 12  # elements of a constant that are copied rather than captured


class FunctionGraph(Graph):
    """The body of a function."""

    def __init__(
        self, name: str, outer: Graph, by_value: bool = False, copies_variables: bool = True
    ) -> None:
        super().__init__()
        self.name = name
        self.outer = outer
        self.seed = outer.seed
        self.inputs: list[Tensor] = []
        self.outputs: list[Tensor] = []
        #: tensors of the outer graph, and what stands for each inside
        self.captures: dict[Tensor, Tensor] = {}
        self._building_function = True
        self._by_value = by_value
        self._copies_variables = copies_variables
        #: operations with a state that are copied all the same
        self.copyable: frozenset[Operation] = frozenset()
        #: what its `FunctionDef` says besides the body: description, output_names, attrs
        self.told: dict[str, Any] = {}
        self.copied: dict[Operation, Operation] = {}
        # The tables are shared, not copied: a function that is called inside is the outer graph's, too.
        self._functions = outer._functions
        self._function_names = outer._function_names
        self._function_gradients = outer._function_gradients
        if "_py_funcs" in outer.__dict__:
            self.__dict__["_py_funcs"] = outer.__dict__["_py_funcs"]

    def add_input(self, dtype: DType, shape: TensorShape, name: str = "arg") -> Tensor:
        """A new argument."""
        result = self._placeholder(dtype, shape, name)
        self.inputs.append(result)
        return result

    def _placeholder(self, dtype: DType, shape: TensorShape, name: str) -> Tensor:
        spec = registry.get("Placeholder")
        attrs = {"dtype": dtype.base_dtype, "shape": shape}
        (result,) = self.add_op(spec, (), attrs, [dtype.base_dtype], name)._outputs
        result._shape = shape
        return result

    def capture(self, tensor: Tensor) -> Tensor:
        """The tensor in this body that stands for one of the graph around it."""
        result = self.captures.get(tensor)
        if result is not None:
            return result
        if tensor.graph is not self.outer and isinstance(self.outer, FunctionGraph):
            # Each body takes values only from the one around it: a tensor from further out passes through all between.
            tensor = self.outer.capture(tensor)
            if tensor in self.captures:
                return self.captures[tensor]
        op = tensor._op
        with self.as_default(), self.control_dependencies(None), self.name_scope(None):
            if (
                self._by_value
                or (op.spec.variable and self._copies_variables)
                or (op.type == "Const" and op._attrs["value"].size <= _MAX_COPIED_ELEMENTS)
            ):
                return self._copy(op)._outputs[tensor._value_index]
            result = self._placeholder(tensor.dtype, tensor.shape, op.name.rpartition("/")[2] or "capture")
        self.captures[tensor] = result
        return result

    def _copy(self, op: Operation) -> Operation:
        """An operation of the outer graph, made once more inside with all it needs."""
        stack = [op]
        while stack:
            current = stack[-1]
            if current in self.copied:
                stack.pop()
                continue
            self._check_copyable(current)
            needs = [*(t._op for t in current._inputs), *current._control_inputs]
            missing = [n for n in needs if n not in self.copied]
            if missing:
                stack.extend(missing)
                continue
            self.copied[current] = self._copy_one(current)
            stack.pop()
        return self.copied[op]

    def _check_copyable(self, op: Operation) -> None:
        if not self._by_value or op in self.copyable:
            return
        if op.type in ("Placeholder", "PlaceholderV2"):
            raise ValueError(f"Cannot capture a placeholder (name:{op.name}, type:{op.type}) by value.")
        if op.spec.variable or op.spec.updates or (op.spec.stateful and not _remakable(op)):
            raise ValueError(f"Cannot capture a stateful node (name:{op.name}, type:{op.type}) by value.")

    def _copy_one(self, op: Operation) -> Operation:
        inputs = [self.copied[t._op]._outputs[t._value_index] for t in op._inputs]
        attrs = dict(op._attrs)
        if op.spec.variable and not attrs.get("shared_name"):
            attrs["shared_name"] = op.name.encode()  # the same variable, whatever the copy is called
        # Groups name operations of the outer graph, which are not in this one.
        attrs.pop("_class", None)
        types = [t.dtype for t in op._outputs]
        result = self.add_op(op.spec, inputs, attrs, types, op.name.replace("/", "_"))
        for mine, theirs in zip(result._outputs, op._outputs, strict=True):
            mine._shape = theirs._shape
        # Errors in the copy show the user's line of the original.
        result._stack = op._stack
        if op._control_inputs:
            result._add_control_inputs([self.copied[c] for c in op._control_inputs])
        return result

    def cut(
        self, name: str, inputs: list[Tensor], outputs: list[Tensor], effects: Sequence[Operation] = ()
    ) -> FunctionGraph:
        """The part of this body from some of its tensors to others, as a body of its own."""
        result = copy.copy(self)
        result.name, result.inputs, result.outputs = name, list(inputs), list(outputs)
        # A memo of the whole body, which the part must not share.
        result.__dict__.pop("_kernels", None)
        needed = {t._op for t in inputs}
        stack = [op for op in (*(t._op for t in outputs), *effects) if op not in needed]
        while stack:
            op = stack.pop()
            if op not in needed:
                needed.add(op)
                stack += [*(t._op for t in op._inputs), *op._control_inputs]
        result._ops = [op for op in self._ops if op in needed]
        result.captures = {outer: inner for outer, inner in self.captures.items() if inner._op in needed}
        return result

    @contextmanager
    def control_dependencies(self, control_inputs: Iterable[object] | None) -> Iterator[None]:
        """Waits only for operations inside: the others are done before the function is called."""
        if control_inputs is not None:
            control_inputs = [c for c in control_inputs if getattr(c, "graph", self) is self]
        with super().control_dependencies(control_inputs):
            yield


def around(graph: Graph) -> Graph:
    """The graph that is no function's, around a function's graph; any other is itself that."""
    while isinstance(graph, FunctionGraph):
        graph = graph.outer
    return graph


def _remakable(op: Operation) -> bool:
    """Whether running a copy of a stateful operation is as good as running it."""
    return any(t.dtype.name == "variant" for t in op._outputs) or op.type in (
        "Assert",
        "MatchingFiles",
        "Merge",
        "PyFunc",
        "EagerPyFunc",
        "Switch",
    )


def trace(
    call: Callable[..., Any],
    name: str,
    arguments: Sequence[tuple[DType, TensorShape]],
    by_value: bool = False,
    copies_variables: bool = True,
) -> tuple[FunctionGraph, Any]:
    """Runs `call` with placeholders in a new body; gives the body and the result of `call`.

    The caller sets the body's `outputs` and names it in an attribute of an operation.
    """
    outer = get_default_graph()
    graph = FunctionGraph(function_name(outer, name), outer, by_value, copies_variables)
    with graph.as_default():
        placeholders = [graph.add_input(dtype, shape) for dtype, shape in arguments]
        result = call(*placeholders)
    return graph, result


def function_name(graph: Graph, name: str) -> str:
    """A name that no function of the graph has yet, reserved for a new one."""
    base = re.sub(r"[^A-Za-z0-9_.]", "_", name)
    count = len(graph._functions)
    while (name := f"{base}_{count}") in graph._functions or name in graph._function_names:
        count += 1
    graph._function_names.add(name)
    return name


def add_function(graph: FunctionGraph) -> str:
    """Makes a body known to the graph around it (and around that); its name."""
    graph.outer._functions[graph.name] = graph
    return graph.name


def find_function(graph: Graph, name: str | bytes) -> FunctionGraph:
    """The body of the function of that name."""
    key = name.decode() if isinstance(name, bytes) else str(name)
    result = graph._functions.get(key)
    if result is None:
        raise ValueError(f"Function '{key}' is not in the library of this graph.")
    if not isinstance(result, FunctionGraph):
        from tensorfleet.graph.library import body_of

        result = graph._functions[key] = body_of(graph, result)
    return result
