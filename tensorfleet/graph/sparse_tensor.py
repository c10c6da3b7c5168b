"""`tf.SparseTensor`: the places and values of the few elements that count, and the dense shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.constant import constant_value_as_shape
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.indexed_slices import CompositeTensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import name_scope, session_for

if TYPE_CHECKING:
    from tensorfleet.base.types import DTypeLike, FeedDict, TensorLike
    from tensorfleet.graph.scopes import SessionLike


@export("SparseTensorValue")
class SparseTensorValue(NamedTuple):
    """The numpy form of a `SparseTensor`, for feeds and fetches."""

    indices: Any
    values: Any
    dense_shape: Any


@export("SparseTensor", "sparse.SparseTensor")
class SparseTensor(CompositeTensor):
    """A tensor given by the places `indices` (int64, one row each) and `values` of some of its elements.

    The others are zero, or missing, as the operation that takes it sees fit. `dense_shape` is the shape of
    the whole. Most operations want the places in the order of a dense tensor: see `tf.sparse.reorder`.
    """

    def __init__(
        self,
        indices: TensorLike,
        values: TensorLike,
        dense_shape: TensorLike = None,
        shape: TensorLike = None,
    ) -> None:
        dense_shape = shape if dense_shape is None else dense_shape  # its name before 1.0
        if dense_shape is None:
            raise TypeError("SparseTensor() missing 1 required argument: 'dense_shape'")
        with name_scope(None, "SparseTensor", [indices, values, dense_shape]):
            self._indices = to_tensor(indices, dtypes.int64, name="indices")
            self._values = to_tensor(values, name="values")
            self._dense_shape = to_tensor(dense_shape, dtypes.int64, name="dense_shape")
        count, rank = self._indices.shape.with_rank(2)
        count.merge_with(self._values.shape.with_rank(1)[0])
        rank.merge_with(self._dense_shape.shape.with_rank(1)[0])
        self._known = TensorShape(None)

    @classmethod
    def from_value(cls, sparse_tensor_value: SparseTensor | SparseTensorValue) -> SparseTensor:
        """A SparseTensor of a `SparseTensorValue`, as constants."""
        if not isinstance(sparse_tensor_value, (SparseTensor, SparseTensorValue)):
            raise TypeError(f"Neither a SparseTensor nor SparseTensorValue: {sparse_tensor_value}.")
        value = sparse_tensor_value
        return cls(indices=value.indices, values=value.values, dense_shape=value.dense_shape)

    @property
    def indices(self) -> Tensor:
        """Where the values are: one row of coordinates per value."""
        return self._indices

    @property
    def values(self) -> Tensor:
        """The elements that are there."""
        return self._values

    @property
    def dense_shape(self) -> Tensor:
        """The shape of the whole, as a tensor."""
        return self._dense_shape

    @property
    def op(self) -> Operation:
        """The operation of `values`."""
        return self._values.op

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self._values.dtype

    @property
    def graph(self) -> Graph:
        """The graph of its tensors."""
        return self._values.graph

    @property
    def shape(self) -> TensorShape:
        """The static dense shape: as much as is known while the graph is built."""
        return constant_value_as_shape(self._dense_shape).merge_with(self._known)

    def get_shape(self) -> TensorShape:
        """The static dense shape: as much as is known while the graph is built."""
        return self.shape

    def consumers(self) -> list[Operation]:
        """The operations that take one of its tensors."""
        parts = (self._indices, self._values, self._dense_shape)
        return list(dict.fromkeys(c for t in parts for c in t.consumers()))

    def eval(
        self, feed_dict: FeedDict | None = None, session: SessionLike | None = None
    ) -> SparseTensorValue:
        """The value of this sparse tensor, run in `session` or in the default session."""
        value: SparseTensorValue = session_for(session, self.graph, "evaluate tensor").run(self, feed_dict)
        return value

    def __str__(self) -> str:
        return (
            f"SparseTensor(indices={self._indices}, values={self._values}, dense_shape={self._dense_shape})"
        )

    __repr__ = __str__


def is_sparse(value: object) -> bool:
    """Whether something is a sparse tensor, as tensors or as a numpy value."""
    return isinstance(value, (SparseTensor, SparseTensorValue))


@export("convert_to_tensor_or_sparse_tensor")
def convert_to_tensor_or_sparse_tensor(
    value: TensorLike, dtype: DTypeLike | None = None, name: str | None = None
) -> Tensor | SparseTensor:
    """A SparseTensor of a sparse value; anything else as a tensor."""
    wanted = None if dtype is None else dtypes.as_dtype(dtype)
    if isinstance(value, SparseTensorValue):
        value = SparseTensor.from_value(value)
    if isinstance(value, SparseTensor):
        if wanted is not None and not wanted.is_compatible_with(value.dtype):
            raise RuntimeError(
                f"Sparse dtype mismatch. Requested: {wanted.name},  Actual: {value.dtype.name}"
            )
        return value
    return to_tensor(value, wanted, name=name)


def with_static_shape(
    indices: TensorLike, values: TensorLike, dense_shape: TensorLike, known: TensorShape
) -> SparseTensor:
    """A SparseTensor whose shape is known to some extent; a constant where all of it is."""
    result = SparseTensor(indices, values, known.as_list() if known.is_fully_defined() else dense_shape)
    result._known = known
    return result


def to_sparse(value: object) -> SparseTensor:
    """A SparseTensor of a sparse value; TypeError for anything else."""
    if isinstance(value, SparseTensorValue):
        return SparseTensor.from_value(value)
    if not isinstance(value, SparseTensor):
        raise TypeError("Input must be a SparseTensor.")
    return value
