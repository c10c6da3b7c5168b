"""`tf.IndexedSlices`: some rows of a tensor; and the base of composite tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tensorfleet.base.dtypes import DType
from tensorfleet.graph.operation import Operation, Tensor

if TYPE_CHECKING:
    from tensorfleet.base.types import Array
    from tensorfleet.graph.graph import Graph


class CompositeTensor:
    """Base of values that consist of several tensors: sparse tensors, rows of a larger tensor."""


class IndexedSlices(CompositeTensor):
    """Rows `values` at positions `indices` of a larger tensor, such as the gradient of a gather."""

    def __init__(self, values: Tensor, indices: Tensor, dense_shape: Tensor | None = None) -> None:
        self._values = values
        self._indices = indices
        self._dense_shape = dense_shape

    @property
    def values(self) -> Tensor:
        """The rows."""
        return self._values

    @property
    def indices(self) -> Tensor:
        """Which row each of `values` is."""
        return self._indices

    @property
    def dense_shape(self) -> Tensor | None:
        """The shape of the larger tensor, when known."""
        return self._dense_shape

    @property
    def name(self) -> str:
        """The name of `values`."""
        return self.values.name

    @property
    def device(self) -> str:
        """The device of `values`."""
        return self.values.device

    @property
    def op(self) -> Operation:
        """The operation of `values`."""
        return self.values.op

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self.values.dtype

    @property
    def graph(self) -> Graph:
        """The graph of `values`."""
        return self.values.graph

    def consumers(self) -> list[Operation]:
        """The operations that take `values` or `indices`."""
        return self.values.consumers() + self.indices.consumers()

    def __neg__(self) -> IndexedSlices:
        return IndexedSlices(-self.values, self.indices, self.dense_shape)

    def __str__(self) -> str:
        shape = f", dense_shape={self._dense_shape}" if self._dense_shape is not None else ""
        return f"IndexedSlices(indices={self._indices}, values={self._values}{shape})"


class IndexedSlicesValue(NamedTuple):
    """The numpy form of an `IndexedSlices`."""

    values: Array
    indices: Array
    dense_shape: Any  # an array, or None where it is not known
