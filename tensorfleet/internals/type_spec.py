"""`tensorflow.python.framework.type_spec` and `tensor_spec`: specs of values, and tensors between two bounds."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet import dtypes
from tensorfleet.api import export, publish
from tensorfleet.graph.convert import to_tensor
from tensorfleet.ops.type_specs import TensorSpec, TypeSpec, spec_of
from tensorfleet.properties import readonly
from tensorfleet.shapes import TensorShape, broadcast_shape

_HERE = "python.framework.type_spec."
# How values of a type become specs: (type, function, whether for types under it too); the last one counts.
_converters: list[tuple[type, Callable, bool]] = []
publish(TypeSpec, _HERE + "BatchableTypeSpec")


@export(_HERE + "type_spec_from_value")
def type_spec_from_value(value: Any) -> TypeSpec:
    """The spec of a value; of what has none, that of the tensor it becomes."""
    for kind, convert, below in reversed(_converters):
        if type(value) is kind or (below and isinstance(value, kind)):
            return convert(value)
    found = spec_of(value)
    if found is None:
        with contextlib.suppress(TypeError, ValueError):
            found = spec_of(to_tensor(value))
    if found is None:
        raise TypeError(f"Could not build a TypeSpec for {value!r} with type {type(value).__name__}")
    return found


@export(_HERE + "register_type_spec_from_value_converter")
def register_type_spec_from_value_converter(
    type_object: type, converter_fn: Callable, allow_subclass: bool = False
) -> None:
    """Has `converter_fn` give the specs of values of a type."""
    _converters.append((type_object, converter_fn, allow_subclass))


@export("python.framework.tensor_spec.BoundedTensorSpec")
class BoundedTensorSpec(TensorSpec):
    """The shape and type of a tensor, and between which values its elements are, both included."""

    def __init__(self, shape: Any, dtype: Any, minimum: Any, maximum: Any, name: str | None = None) -> None:
        super().__init__(shape, dtype, name)
        if minimum is None or maximum is None:
            raise ValueError(f"minimum and maximum must be provided; but saw '{minimum}' and '{maximum}'")
        self._minimum = self._bound("minimum", minimum)
        self._maximum = self._bound("maximum", maximum)

    minimum = readonly("_minimum", "The least value, or one for each element.")
    maximum = readonly("_maximum", "The greatest value, or one for each element.")

    def _bound(self, which: str, value: Any) -> np.ndarray:
        try:
            broadcast_shape(TensorShape(np.shape(value)), self.shape)
        except ValueError as e:
            raise ValueError(f"{which} is not compatible with shape. Message: {e!r}.") from None
        bound = np.array(value, self.dtype.as_numpy_dtype)
        bound.setflags(write=False)
        return bound

    @classmethod
    def from_spec(cls, spec: Any, name: str | None = None) -> BoundedTensorSpec:
        """Another spec, with its bounds or those of its type."""
        kind = dtypes.as_dtype(spec.dtype)
        low, high = getattr(spec, "minimum", kind.min), getattr(spec, "maximum", kind.max)
        return cls(spec.shape, kind, low, high, name or spec.name)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, BoundedTensorSpec)
            and super().__eq__(other)
            and np.allclose(self.minimum, other.minimum)
            and np.allclose(self.maximum, other.maximum)
        )

    __hash__ = TensorSpec.__hash__

    def __reduce__(self) -> Any:
        return type(self), (self.shape, self.dtype, self.minimum, self.maximum, self.name)

    def _serialize(self) -> tuple:
        return self.shape, self.dtype, self.minimum, self.maximum, self.name

    def __repr__(self) -> str:
        return (
            f"BoundedTensorSpec(shape={self.shape}, dtype={self.dtype!r}, name={self.name!r}, "
            f"minimum={self.minimum!r}, maximum={self.maximum!r})"
        )
