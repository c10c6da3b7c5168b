"""Functions from outside of a program: described by a `FunctionDef`, from a library of them, or declared by name alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tensorfleet.api.functions.defun import DefinedFunction
from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.apply import apply_op
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.functions import FunctionGraph, add_function
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import get_default_graph

if TYPE_CHECKING:
    from tensorfleet.base.protos import FunctionDef, FunctionDefLibrary

_FUNCTION = "python.framework.function"


class _Described(DefinedFunction):
    """A function whose body is that of a `FunctionDef`."""

    def __init__(self, fdef: FunctionDef, grad_func: DefinedFunction | None) -> None:
        self._proto = type(fdef)()
        self._proto.CopyFrom(fdef)
        types = [dtypes.as_dtype(arg.type) for arg in fdef.signature.input_arg]
        super().__init__(lambda *_: None, types, {"grad_func": grad_func})

    @property
    def name(self) -> str:
        """The name that the definition gives."""
        return self._proto.signature.name

    @property
    def definition(self) -> FunctionDef:
        """The definition that it was made from."""
        return self._proto

    @property
    def captured_inputs(self) -> list[Tensor]:
        """None: what a definition takes from around is among its arguments."""
        return []

    def _body(self, types: Sequence[DType]) -> FunctionGraph:
        from tensorfleet.graph.library import body_of

        graph = get_default_graph()
        result = graph._functions.get(self.name)
        if result is None:
            result = body_of(graph, self._proto)
            add_function(result)
            self._add_gradient(result)
        return result


@export(f"{_FUNCTION}._from_definition")
def from_definition(fdef: FunctionDef, grad_func: DefinedFunction | None = None) -> DefinedFunction:
    """The function that a `FunctionDef` describes; `grad_func` is its gradient, if it has one of its own."""
    return _Described(fdef, grad_func)


@export(f"{_FUNCTION}.from_library")
def from_library(lib: FunctionDefLibrary) -> list[DefinedFunction]:
    """The functions of a `FunctionDefLibrary`, those that are gradients of others with them."""
    if not lib.function and not lib.gradient:
        return []
    definitions = {f.signature.name: f for f in lib.function}
    gradients = {g.function_name: g.gradient_func for g in lib.gradient}
    # The first that is missing is enough for the message.
    for name in {*gradients, *gradients.values()} - definitions.keys():
        raise ValueError(
            f"FunctionDefLibrary missing '{name}' FunctionDef. Add it, or leave out its gradient."
        )
    functions: dict[str, DefinedFunction] = {}

    def make(name: str, within: tuple[str, ...]) -> DefinedFunction:
        if name in within:
            raise ValueError(
                f"FunctionDefLibrary contains cyclic gradient functions! {' -> '.join((*within, name))}"
            )
        if name not in functions:
            backward = gradients.get(name)
            grad_func = None if backward is None else make(backward, (*within, name))
            functions[name] = from_definition(definitions[name], grad_func)
        return functions[name]

    return [make(name, ()) for name in definitions]


@export(f"{_FUNCTION}.Declare")
class Declare:
    """A function known by its name, the arguments and the results: what it does is in the library when it is run.

    `inputs` and `outputs` are pairs of a name and a type.
    """

    def __init__(self, func_name: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        self._name = func_name
        self._inputs = [(name, dtypes.as_dtype(kind)) for name, kind in inputs]
        self._outputs = [(name, dtypes.as_dtype(kind)) for name, kind in outputs]

    def __call__(self, *args: TensorLike, **kwargs: Any) -> Any:
        """Adds a call of the function to the graph."""
        name = kwargs.pop("name", None)
        if kwargs:
            raise ValueError(f"Unknown keyword arguments: {', '.join(kwargs)}")
        if len(args) != len(self._inputs):
            raise ValueError(f"Expected number of arguments: {len(self._inputs)}, received: {len(args)}")
        given = [to_tensor(a) for a in args]
        types = [kind for _, kind in self._outputs]
        call = apply_op("PartitionedCall", given, f=self._name, Tout=types, name=name or self._name)
        if not types:
            return call
        return tuple(call.outputs) if len(types) > 1 else call.outputs[0]
