"""A function that is traced: its graph, and calls of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from tensorfleet.api.functions.ordering import ordered
from tensorfleet.api.variables.base import Variable
from tensorfleet.api.variables.creation import variable_creator_scope
from tensorfleet.base import nest
from tensorfleet.base.properties import readonly
from tensorfleet.graph.apply import constant
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.functions import FunctionGraph, around, trace
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.indexed_slices import CompositeTensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import get_default_graph
from tensorfleet.ops.array.basic import identity
from tensorfleet.ops.control.function_calls import call_traced
from tensorfleet.ops.type_specs import TensorSpec

if TYPE_CHECKING:
    from tensorfleet.base.protos import FunctionDef

#: The positional and the keyword arguments of a function, with specs in the place of tensors.
_Signature: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]


def lifting(created: list[Variable]) -> Callable[..., Variable]:
    """A creator of variables that makes them in the graph around a function."""

    def creator(next_creator: Callable[..., Variable], **options: Any) -> Variable:
        scope, outer = get_default_graph().get_name_scope(), around(get_default_graph())
        value = options.get("initial_value")
        if isinstance(value, Tensor) and isinstance(value.graph, FunctionGraph):
            options["initial_value"] = _lifted(value, outer)
        with (
            outer.as_default(),
            outer.control_dependencies(None),
            outer.name_scope(f"{scope}/" if scope else None),
        ):
            result = next_creator(**{**options, "use_resource": True})
        created.append(result)
        return result

    return creator


def _lifted(value: Tensor, outer: Graph) -> Tensor:
    """A first value computed inside a function, computed outside."""
    body = value.graph
    assert isinstance(body, FunctionGraph)
    copies: dict[Operation, Operation] = {}

    def copied(op: Operation) -> Operation:
        if op in copies:
            return copies[op]
        for outside, inside in body.captures.items():
            if inside._op is op:
                return outside._op
        if op.type.startswith("Placeholder"):
            raise ValueError(
                f"The first value of a variable depends on an argument of the function ('{op.name}'). Give it as a "
                "function, or make it of constants."
            )
        inputs = [copied(t._op)._outputs[t._value_index] for t in op._inputs]
        types = [t.dtype for t in op._outputs]
        result = outer.add_op(op.spec, inputs, dict(op._attrs), types, op.name)
        for mine, theirs in zip(result._outputs, op._outputs, strict=True):
            mine._shape = theirs._shape
        copies[op] = result
        return result

    with outer.as_default(), outer.control_dependencies(None):
        return copied(value._op)._outputs[value._value_index]


class ConcreteFunction:
    """A function for arguments of given kinds; its tensors are those of `graph`."""

    def __init__(
        self,
        body: FunctionGraph,
        structured: object,
        signature: _Signature,
        effects: Sequence[Operation],
        variables: list[Variable],
    ) -> None:
        self._body, self._effects, self._variables = body, list(effects), variables
        self._structured = structured
        self._signature = signature

    graph = readonly("_body", "The graph of the function.")
    structured_outputs = readonly("_structured", "What the function returns, as tensors of its graph.")
    structured_input_signature = readonly("_signature", "(positional arguments, keyword arguments).")

    @property
    def name(self) -> str:
        """The name of the function in the library of the graph around."""
        return self._body.name

    @property
    def inputs(self) -> list[Tensor]:
        """The tensors that stand for the arguments, and those for what the function takes from around."""
        return [*self._body.inputs, *self._body.captures.values()]

    @property
    def outputs(self) -> list[Tensor]:
        """The tensors that the function returns."""
        return list(self._body.outputs)

    @property
    def captured_inputs(self) -> list[Tensor]:
        """The tensors around the function that it uses."""
        return list(self._body.captures)

    @property
    def variables(self) -> list[Variable]:
        """The variables that the function uses."""
        # A variable is used by capturing its handle.
        handles = set(self._body.captures)
        known = around(self._body).get_collection("variables")
        captured = [v for v in known if getattr(v, "handle", None) in handles]
        return [*captured, *(v for v in self._variables if v not in captured)]

    @property
    def trainable_variables(self) -> list[Variable]:
        """Those of the variables that are trained."""
        return [v for v in self.variables if v.trainable]

    @property
    def output_dtypes(self) -> Any:
        """The types of what the function returns."""
        return nest.map_structure(lambda t: t.dtype if t is not None else None, self._structured)

    @property
    def output_shapes(self) -> Any:
        """The shapes of what the function returns."""
        return nest.map_structure(lambda t: t.shape if t is not None else None, self._structured)

    @property
    def function_def(self) -> FunctionDef:
        """The function as a `FunctionDef`."""
        from tensorfleet.graph.library import function_def

        return function_def(self._body)

    def add_to_graph(self, g: Graph | None = None) -> None:
        """Puts the function into the library of a graph."""
        (g or get_default_graph())._functions[self._body.name] = self._body

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function with tensors, in the order of its inputs."""
        flat = [a for a in nest.flatten([args, kwargs]) if isinstance(a, (Tensor, Variable)) or a is not None]
        names = [t.op.name for t in self._body.inputs]
        if len(flat) != len(self._body.inputs):
            raise TypeError(
                f"Expected at most {len(names)} positional arguments (and the rest keywords, of {names}), got {args}."
            )
        tensors = []
        for value, wanted in zip(flat, self._body.inputs, strict=True):
            tensor = to_tensor(value, wanted.dtype)
            if not wanted.shape.is_compatible_with(tensor.shape):
                raise ValueError(
                    f"The argument '{wanted.op.name}' (value {value}) is not compatible with the shape this function was "
                    f"traced with. Expected shape {wanted.shape}, but got shape {tensor.shape}.\n\nIf you called "
                    "get_concrete_function, you may need to pass a tf.TensorSpec(..., shape=...) with a less specific "
                    "shape, having None on axes which can vary."
                )
            tensors.append(tensor)
        return self.call_flat(tensors)

    def call_flat(self, tensors: Sequence[Tensor]) -> Any:
        """A call in the default graph."""
        captured = [*self._body.captures]
        call = call_traced(self._body, [*tensors, *captured], self._effects)
        results = iter(call.outputs)
        if not self._body.outputs:
            return call if self._structured is None else self._structured
        packed = [None if t is None else next(results) for t in nest.flatten(self._structured, True)]
        return nest.pack_sequence_as(self._structured, packed, True)


_Concrete = TypeVar("_Concrete", bound=ConcreteFunction)


def traced(
    kind: type[_Concrete],
    call: Callable[..., Any],
    name: str,
    specs: Sequence[TensorSpec],
    creator: Callable[..., Variable],
    signature: _Signature,
    variables: list[Variable],
) -> _Concrete:
    """Runs a function of tensors once, in a graph of its own; makes a concrete function of this kind."""
    result: list[Any] = []

    def run(*tensors: Tensor) -> None:
        inner: Any = get_default_graph()
        with variable_creator_scope(creator):
            returned = call(*tensors)
        result.append(nest.map_structure(lambda v: _output(v, inner), returned, expand_composites=True))

    body, _ = trace(run, f"__inference_{name}", [(s.dtype, s.shape) for s in specs], copies_variables=False)
    effects = ordered(body)
    flat = [t for t in nest.flatten(result[0], True) if t is not None]
    with body.as_default(), body.control_dependencies(effects):
        # Outputs wait for the effects, so that a caller that fetches them runs the effects.
        held = [identity(t) for t in flat]
    body.outputs = held
    fresh = iter(held)
    flat_all = [None if t is None else next(fresh) for t in nest.flatten(result[0], True)]
    structured = nest.pack_sequence_as(result[0], flat_all, True)
    return kind(body, structured, signature, effects, variables)


def _output(value: object, graph: FunctionGraph) -> Tensor | None:
    """A returned value of a function, as a tensor of its graph."""
    if value is None or isinstance(value, CompositeTensor):
        return value  # type: ignore[return-value]
    if isinstance(value, Operation):
        with graph.control_dependencies([value]):
            return constant(True)
    try:
        tensor = to_tensor(value)
    except (TypeError, ValueError) as e:
        raise TypeError(
            "To be compatible with tf.contrib.eager.defun, Python functions must return zero or more Tensors; in "
            f"compilation of the function, found return value of type {type(value).__name__}, which is not a Tensor."
        ) from e
    return tensor if tensor.graph is graph else graph.capture(tensor)
