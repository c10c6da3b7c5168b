"""The numpy form of ragged tensors."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from tensorfleet.base.naming import export
from tensorfleet.base.properties import readonly
from tensorfleet.base.types import Array


@export("ragged.RaggedTensorValue")
class RaggedTensorValue:
    """The numpy form of a `RaggedTensor`, which you feed and fetch."""

    def __init__(self, values: Array | RaggedTensorValue, row_splits: Array) -> None:
        if not isinstance(row_splits, (np.ndarray, np.generic)) or row_splits.dtype not in (
            np.int64,
            np.int32,
        ):
            raise TypeError("row_splits must be a numpy array of type int32 or int64")
        if not isinstance(values, (np.ndarray, np.generic, RaggedTensorValue)):
            raise TypeError("values must be a numpy array or a RaggedTensorValue")
        self._values = values
        self._row_splits = row_splits

    row_splits = readonly("_row_splits", "Where rows begin, and the end.")
    values = readonly("_values", "The rows one behind the other.")
    dtype = readonly("_values.dtype", "The numpy type of the elements.")

    @property
    def flat_values(self) -> Array:
        """The values of the innermost rows."""
        rest = self._values
        return rest.flat_values if isinstance(rest, RaggedTensorValue) else rest

    @property
    def nested_row_splits(self) -> tuple[Array, ...]:
        """The splits of all ragged dimensions, the outermost first."""
        rest = self._values
        return (self._row_splits, *(rest.nested_row_splits if isinstance(rest, RaggedTensorValue) else ()))

    @property
    def ragged_rank(self) -> int:
        """How many dimensions are ragged."""
        return len(self.nested_row_splits)

    @property
    def shape(self) -> tuple[int | None, ...]:
        """The shape, None for ragged dimensions."""
        return (len(self._row_splits) - 1, None, *self._values.shape[1:])

    def to_list(self) -> list[Any]:
        """The rows as nested lists."""
        rest = self._values
        flat = rest.to_list() if isinstance(rest, RaggedTensorValue) else rest.tolist()
        ends = self._row_splits.tolist()
        return [flat[a:b] for a, b in itertools.pairwise(ends)]

    def __repr__(self) -> str:
        return f"tf.RaggedTensorValue(values={self._values!r}, row_splits={self._row_splits!r})"

    __str__ = __repr__
