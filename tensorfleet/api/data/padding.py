"""The shapes and values that `Dataset.padded_batch` fills elements up to."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.api.data import structure as structures
from tensorfleet.api.data.structure import Leaf, Nested, Structure, flatten
from tensorfleet.base import dtypes
from tensorfleet.base.shapes import TensorShape, as_shape
from tensorfleet.graph.apply import apply
from tensorfleet.graph.constant import constant_value_as_shape
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor


def padded_shape(asked: Any, leaf: Leaf) -> Tensor:
    """The shape that a component is filled up to, as int64 numbers: -1 for the longest of a batch."""
    if isinstance(asked, (list, tuple, np.ndarray)):  # -1 is another word for None
        asked = [None if isinstance(d, (int, np.integer)) and d < 0 else d for d in asked]
    try:
        dims = as_shape(asked)
    except (TypeError, ValueError):
        result = to_tensor(asked, preferred=dtypes.int64)
        what = f"Padded shape {asked} must be a 1-D tensor of tf.int64 values, but its"
        if result.shape.rank not in (None, 1):
            raise ValueError(f"{what} shape was {result.shape}.") from None
        if result.dtype == dtypes.int32:
            result = apply("Cast", result, DstT=dtypes.int64)
        elif result.dtype != dtypes.int64:
            raise TypeError(f"{what} element type was {result.dtype.name}.") from None
    else:
        # None as a whole shape means that of the component.
        dims = leaf.shape if dims.rank is None else dims
        if dims.rank is None:
            raise ValueError(f"Padded shape for a component of unknown rank must be given, not {asked}.")
        result = to_tensor(
            [-1 if d is None else d for d in dims.as_list()], dtypes.int64, name="padded_shape"
        )
    static = static_shape(result)
    if not _has_room(static, leaf.shape):
        raise ValueError(
            f"The padded shape {static} is not compatible with the corresponding input component shape {leaf.shape}."
        )
    return result


def _has_room(padded: TensorShape, shape: TensorShape) -> bool:
    """Whether a component of one shape can be filled up to another."""
    if padded.rank is None or shape.rank is None:
        return True
    pairs = zip(padded.as_list(), shape.as_list(), strict=False)
    return padded.rank == shape.rank and all(p is None or d is None or p >= d for p, d in pairs)


def static_shape(shape: Tensor) -> TensorShape:
    """The known dimensions of a shape that is a tensor."""
    return constant_value_as_shape(shape)


def padding(structure: Structure, values: Nested) -> list[Tensor]:
    """The value that fills each component up: zero, unless the user gives another."""
    leaves = flatten(structure)
    if values is None:
        given: list[Any] = [
            b"" if leaf.dtype == dtypes.string else np.zeros((), leaf.dtype.np_dtype)[()] for leaf in leaves
        ]
    elif structures.is_structure(structure):
        given = structures.match(
            structure, values, lambda v: not structures.is_structure(v), "padding_values"
        )
    else:
        given = [values]
    result = []
    for value, leaf in zip(given, leaves, strict=True):
        tensor = to_tensor(value, name="padding_value")
        if tensor.shape.rank not in (None, 0):
            raise ValueError("Padding value should be a scalar, but is not.")
        if tensor.dtype.base_dtype != leaf.dtype:
            raise TypeError(f"Padding value tensor ({tensor}) does not match output type: {leaf.dtype!r}")
        result.append(tensor)
    return result
