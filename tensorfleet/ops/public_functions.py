"""Public functions that add one op to the graph, and have the op's inputs and attributes as their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.base import arguments
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import publish
from tensorfleet.base.types import TensorLike
from tensorfleet.graph import registry
from tensorfleet.graph.apply import apply, apply_any
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.raw_ops import named
from tensorfleet.ops.elementwise import on_values


def function(op_type: str, inputs: str, names: str, does: str, *, sparse: bool = False) -> Callable[..., Any]:
    """Publishes a function that adds one op to the graph.

    `inputs` are its arguments as users name them, `names` what it is called after `tf.`, `does` its docstring. With
    `sparse`, a SparseTensor goes in and out by its values.
    """
    published = names.split()
    result = _FORMS[len(inputs.split())](op_type) if not sparse else _on_sparse(op_type)
    # The arguments of the general form, under the names they have here.
    result.__code__ = result.__code__.replace(co_varnames=(*inputs.split(), "name"))
    result.__name__ = result.__qualname__ = published[0].rpartition(".")[2]
    result.__doc__ = does
    publish(result, *published)
    return result


def _of_one(op_type: str) -> Callable[..., Any]:
    def function(x: Tensor, name: str | None = None) -> Tensor:
        return apply(op_type, x, name=name)

    return function


def _of_two(op_type: str) -> Callable[..., Any]:
    def function(x: Tensor, y: TensorLike, name: str | None = None) -> Tensor:
        return apply(op_type, x, y, name=name)

    return function


def _of_three(op_type: str) -> Callable[..., Any]:
    def function(x: TensorLike, y: TensorLike, z: TensorLike, name: str | None = None) -> Any:
        return apply_any(op_type, x, y, z, name=name)

    return function


def _on_sparse(op_type: str) -> Callable[..., Any]:
    def function(x: TensorLike, name: str | None = None) -> Any:
        return on_values(x, function) or apply_any(op_type, x, name=name)

    return function


_FORMS = {1: _of_one, 2: _of_two, 3: _of_three}


def op_function(op_type: str, signature: str, names: str, does: str, **defaults: DType) -> Callable[..., Any]:
    """Publishes a function whose arguments are inputs and attributes of an op, by the op's own names, and `name`.

    `signature` is its argument list, in which a default may be a name whose value is given.
    """
    spec = registry.get(op_type)
    inputs = [arg.name for arg in spec.inputs]

    def body(given: dict[str, Any]) -> Any:
        return named(spec, apply_any(op_type, *[given.pop(name) for name in inputs], **given))

    published = names.split()
    name = published[0].rpartition(".")[2]
    result = arguments.function(arguments.signature_of(signature, **defaults), name, body, does)
    publish(result, *published)
    return result
