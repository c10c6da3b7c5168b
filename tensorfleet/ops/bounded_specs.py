"""`tf.TensorSpec` with the least and the largest value that elements may have: what environments say of actions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape, broadcast_shape
from tensorfleet.base.types import Array, ShapeLike
from tensorfleet.ops.type_specs import TensorSpec


@export("python.framework.tensor_spec.BoundedTensorSpec", "contrib.framework.BoundedTensorSpec")
class BoundedTensorSpec(TensorSpec):
    """The shape and type of a tensor, and bounds of its elements, which belong to what is allowed."""

    def __init__(
        self,
        shape: ShapeLike,
        dtype: DType,
        minimum: Array | float | Sequence[float] | None,
        maximum: Array | float | Sequence[float] | None,
        name: str | None = None,
    ) -> None:
        super().__init__(shape, dtype, name)
        if minimum is None or maximum is None:
            raise ValueError(
                f"minimum and maximum must be provided; but saw '{minimum}' and '{maximum}'. "
                "Use tf.TensorSpec for a tensor without bounds."
            )
        self._minimum, self._maximum = self._bound("minimum", minimum), self._bound("maximum", maximum)

    def _bound(self, which: str, value: Array | float | Sequence[float]) -> Array:
        try:
            broadcast_shape(TensorShape(np.shape(value)), self._shape)
        except ValueError as error:
            raise ValueError(f"{which} is not compatible with shape. Message: {error!r}.") from error
        bound = np.array(value, dtype=self._dtype.as_numpy_dtype)
        bound.setflags(write=False)
        return bound

    minimum = readonly("_minimum", "The least value of each element, or of all.")
    maximum = readonly("_maximum", "The largest value of each element, or of all.")

    @classmethod
    def from_spec(cls, spec: Any, name: str | None = None) -> BoundedTensorSpec:
        """Another spec's shape and type, with its bounds or else those of the type."""
        dtype = dtypes.as_dtype(spec.dtype)
        low, high = getattr(spec, "minimum", dtype.min), getattr(spec, "maximum", dtype.max)
        return cls(spec.shape, dtype, low, high, name or spec.name)

    def _serialize(self) -> tuple[Any, ...]:
        return self._shape, self._dtype, self._minimum, self._maximum, self._name

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, BoundedTensorSpec)
            and super().__eq__(other)
            and np.allclose(self._minimum, other._minimum)
            and np.allclose(self._maximum, other._maximum)
        )

    __hash__ = TensorSpec.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._serialize()

    def __repr__(self) -> str:
        return (
            f"BoundedTensorSpec(shape={self._shape}, dtype={self._dtype!r}, name={self._name!r}, "
            f"minimum={self._minimum!r}, maximum={self._maximum!r})"
        )
