"""`tensorflow.python.framework.type_spec`: specs of values."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from tensorfleet.base.naming import export
from tensorfleet.graph.convert import to_tensor
from tensorfleet.ops.type_specs import TypeSpec, spec_of

_HERE = "python.framework.type_spec."
# How values of a type become specs: (type, function, whether for types under it too); the last one counts.
_converters: list[tuple[type, Callable, bool]] = []


@export(_HERE + "type_spec_from_value")
def type_spec_from_value(value: Any) -> TypeSpec:
    """The spec of a value; of what has none, that of the tensor it becomes."""
    for kind, convert, below in reversed(_converters):
        if type(value) is kind or (below and isinstance(value, kind)):
            return convert(value)
    result = spec_of(value)
    if result is None:
        with contextlib.suppress(TypeError, ValueError):
            result = spec_of(to_tensor(value))
    if result is None:
        raise TypeError(f"Could not build a TypeSpec for {value!r} with type {type(value).__name__}")
    return result


@export(_HERE + "register_type_spec_from_value_converter")
def register_type_spec_from_value_converter(
    type_object: type, converter_fn: Callable, allow_subclass: bool = False
) -> None:
    """Has `converter_fn` give the specs of values of a type."""
    _converters.append((type_object, converter_fn, allow_subclass))
