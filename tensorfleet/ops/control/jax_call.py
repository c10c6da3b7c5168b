"""`FleetJaxCall`: a function of JAX as an operation. It travels as StableHLO, never as Python."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from tensorfleet.base import dtypes, errors
from tensorfleet.base.dtypes import DType
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, ArrayModule
from tensorfleet.graph import registry
from tensorfleet.graph.apply import apply_list, apply_op
from tensorfleet.graph.attributes import clean_attr
from tensorfleet.graph.graphdef import attr_from_proto, attr_to_proto
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import Gradient, gradient, not_differentiable, op
from tensorfleet.kernels.exported_functions import (
    ArrayType,
    ExportedFunction,
    TracedFunction,
    find_traced,
    keep_traced,
)
from tensorfleet.kernels.stablehlo import Sizes
from tensorfleet.ops.state.optimizer_steps import state_shape

#: the attributes that describe a function, of each op that calls one
ATTRS = (
    "function: string; labels: list(string); Tin: list(type); in_sizes: list(string); Tout: list(type); "
    "out_sizes: list(string); module: string; kept: list(int); refined: bool; version: int; identity: string"
)
_exported: weakref.WeakKeyDictionary[Operation, ExportedFunction] = weakref.WeakKeyDictionary()


def function_attrs(function: ExportedFunction) -> dict[str, Any]:
    """A function as attributes of an operation."""
    return {
        "function": function.name,
        "labels": list(function.labels),
        "Tin": [dtypes.as_dtype(a.dtype) for a in function.arguments],
        "in_sizes": [a.sizes for a in function.arguments],
        "Tout": [dtypes.as_dtype(a.dtype) for a in function.results],
        "out_sizes": [a.sizes for a in function.results],
        "module": function.module,
        "kept": list(function.kept),
        "refined": function.refined,
        "version": function.version,
        "identity": function.identity,
    }


def exported_of(operation: Operation) -> ExportedFunction:
    """The function that an operation calls; its program was checked when the operation was made."""
    found = _exported.get(operation)
    if found is None:
        attrs = operation._attrs
        found = _exported[operation] = ExportedFunction(
            _text(attrs["function"]),
            tuple(map(_text, attrs["labels"])),
            _types([*(attrs["Tout"] if operation.spec.updates else ()), *attrs["Tin"]], attrs["in_sizes"]),
            _types(attrs["Tout"], attrs["out_sizes"]),
            bytes(attrs["module"]),
            tuple(attrs["kept"]),
            attrs["refined"],
            attrs["version"],
            _text(attrs["identity"]),
        )
    return found


def _text(value: bytes | str) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _types(kinds: Sequence[DType], sizes: Sequence[bytes | str]) -> tuple[ArrayType, ...]:
    if len(kinds) != len(sizes):
        raise errors.invalid(
            f"An exported function has {len(kinds)} types and {len(sizes)} shapes. Export it again."
        )
    return tuple(ArrayType(d.base_dtype.name, _text(s)) for d, s in zip(kinds, sizes, strict=True))


def _shape(operation: Operation) -> list[TensorShape]:
    function = exported_of(operation)
    assert function.program  # a malformed or hostile one is refused before anything runs
    shapes = function.result_shapes([_known(t.shape) for t in operation._inputs])
    return [TensorShape(list(sizes)) for sizes in shapes]


def _known(shape: TensorShape) -> Sizes | None:
    return None if shape._d is None else tuple(shape._d)


# Without gradients of its own: those are calls of another function.
@op(
    "FleetJaxCall",
    "arguments: list(Tin) -> results: list(Tout)",
    f"{ATTRS}; gradient: string = ''",
    shape=_shape,
    heavy=True,
)
def _jax_call(xp: ArrayModule, arguments: list[Array], *, op: Operation) -> tuple[Array, ...]:
    function = exported_of(op)
    return function.call_now(*arguments) if xp is np else function.call(*arguments)


def _update_shape(operation: Operation) -> list[TensorShape]:
    function = exported_of(operation)
    count = len(function.results)
    if function.arguments[:count] != function.results:
        raise errors.invalid(f"The new values of '{function.name}' have other types than its variables.")
    assert function.program
    function.check_shapes(
        [_known(state_shape(operation, i)) for i in range(count)]
        + [_known(t.shape) for t in operation._inputs[count:]]
    )
    return []


# The function takes the values of the variables, and then the other arguments. It gives the new values.
for _name, _variables, _types_of in (
    ("FleetJaxUpdate", "Ref(list(Tout))", ""),
    ("FleetResourceJaxUpdate", "N * resource", "; N: int >= 1"),
):

    @op(
        _name,
        f"variables: {_variables}, arguments: list(Tin) ->",
        ATTRS + _types_of,
        shape=_update_shape,
        updates=["variables"],
        heavy=True,
        stateful=True,
    )
    def _jax_update(
        xp: ArrayModule, variables: list[Array], arguments: list[Array], *, op: Operation
    ) -> tuple[Array, ...]:
        function = exported_of(op)
        return (function.call_now if xp is np else function.call)(*variables, *arguments)

    not_differentiable(_name)


def update_variables(traced: TracedFunction, handles: Sequence[Tensor], given: Sequence[Tensor]) -> Operation:
    """An operation that gives variables the values that a function makes of them and of other arguments."""
    attrs = function_attrs(traced.exported)
    attrs["Tin"] = attrs["Tin"][len(handles) :]
    resource = handles[0].dtype.base_dtype == dtypes.resource
    name = traced.exported.name
    return apply_op(
        "FleetResourceJaxUpdate" if resource else "FleetJaxUpdate",
        list(handles),
        list(given),
        name=name,
        **attrs,
    )


@gradient("FleetJaxCall")
def _jax_call_gradient(operation: Operation, *grads: Tensor) -> list[Gradient]:
    function = exported_of(operation)
    moving = [a.moves for a in function.arguments]
    given = [g for g, kind in zip(grads, function.results, strict=True) if kind.moves]
    if not any(moving) or not given:
        return [None] * len(moving)
    results = iter(call_gradient(operation, [*operation._inputs, *given]))
    return [next(results) if moves else None for moves in moving]


def call_gradient(operation: Operation, inputs: Sequence[Tensor]) -> list[Tensor]:
    """Calls the gradient of an operation's function, which is known here or has travelled with it."""
    traced = find_traced(exported_of(operation))
    if traced is not None:
        return call_traced(traced.gradient(), inputs, operation.graph)
    attrs = _travelled(operation)
    return apply_list("FleetJaxCall", list(inputs), name=_text(attrs["function"]), **attrs)


def call_traced(
    traced: TracedFunction, inputs: Sequence[Tensor], owner: Any, orders: int = 0, name: str | None = None
) -> list[Tensor]:
    """An operation that calls a function, with its gradients of so many orders in its attributes."""
    keep_traced(traced, owner)
    attrs = _with_gradients(traced, orders)
    return apply_list("FleetJaxCall", list(inputs), name=name or traced.exported.name, **attrs)


def _with_gradients(traced: TracedFunction, orders: int) -> dict[str, Any]:
    attrs = function_attrs(traced.exported)
    kinds = traced.exported.arguments, traced.exported.results
    if orders > 0 and all(any(a.moves for a in side) for side in kinds):
        attrs["gradient"] = _packed(_with_gradients(traced.gradient(), orders - 1))
    return attrs


def _packed(attrs: dict[str, Any]) -> bytes:
    """Attributes as the bytes of a message: a gradient inside the operation that it belongs to."""
    from tensorfleet.base.protos import NodeDef

    node = NodeDef(name="gradient", op="FleetJaxCall")
    spec = registry.get("FleetJaxCall")
    for name, attr in spec.attrs.items():
        attr_to_proto(attr.kind, clean_attr(spec, attr, attrs.get(name, attr.default)), node.attr[name])
    return node.SerializeToString(deterministic=True)


def _travelled(operation: Operation) -> dict[str, Any]:
    from tensorfleet.base.protos import NodeDef

    packed = operation._attrs["gradient"]
    if not packed:
        raise LookupError(
            f"'{operation.name}' came without the gradient of its JAX function "
            f"'{exported_of(operation).name}'. Build it with tf.fleet.jax_op(..., vjp_order=1), or take the gradients "
            "in the process that has the function."
        )
    spec = registry.get("FleetJaxCall")
    try:
        node = NodeDef.FromString(packed)
        missing = spec.attrs.keys() - node.attr.keys()
        if missing:
            raise ValueError(f"it has no {min(missing)!r}")
        return {n: clean_attr(spec, spec.attrs[n], attr_from_proto(node.attr[n])) for n in spec.attrs}
    except (DecodeError, TypeError, ValueError) as e:
        raise errors.invalid(
            f"The gradient that travelled with '{operation.name}' is malformed ({e}). Export the graph again."
        ) from None
