"""Ragged tensors cut by masks."""

from __future__ import annotations

from typing import Any

from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.indexing import boolean_mask as dense_boolean_mask
from tensorfleet.ops.ragged.broadcasting import elementwise
from tensorfleet.ops.ragged.functions import convert_to_tensor_or_ragged_tensor
from tensorfleet.ops.ragged.ragged_tensor import RaggedOrDense, RaggedTensor
from tensorfleet.ops.ragged.rows import gather_rows


@export("ragged.boolean_mask")
def boolean_mask(data: TensorLike, mask: TensorLike, name: str | None = None) -> Any:
    """The values of `data` where `mask` is true: rows keep their order and may become shorter."""
    with name_scope(name, "RaggedMask"):
        keep = convert_to_tensor_or_ragged_tensor(mask, preferred_dtype=dtypes.bool_, name="mask")
        if keep.dtype.base_dtype != dtypes.bool_:
            raise TypeError(f"mask must be boolean, got {keep.dtype.name}.")
        values = convert_to_tensor_or_ragged_tensor(data, name="data")
        if keep.shape.rank is None:
            raise ValueError("mask.shape.ndims must be known statically.")
        if keep.shape.rank == 0:
            raise ValueError("mask cannot be scalar.")
        return _kept(values, keep)


def _kept(data: RaggedOrDense, mask: RaggedOrDense) -> RaggedOrDense:
    if not isinstance(mask, RaggedTensor) and len(mask.shape) > 1:
        kind = data.row_splits.dtype if isinstance(data, RaggedTensor) else dtypes.int64
        mask = RaggedTensor.from_tensor(mask, ragged_rank=len(mask.shape) - 1, row_splits_dtype=kind)
    if isinstance(mask, RaggedTensor):
        if not isinstance(data, RaggedTensor):
            kind = mask.row_splits.dtype
            data = RaggedTensor.from_tensor(data, ragged_rank=mask.ragged_rank, row_splits_dtype=kind)
        inner = _kept(data.values, mask.values)
        if isinstance(mask.values, RaggedTensor):
            return mask.with_values(inner)
        counts = apply("Cast", mask.values, DstT=mask.row_splits.dtype)
        lengths = apply("UnsortedSegmentSum", counts, mask.value_rowids(), mask.nrows())
        return RaggedTensor.from_row_lengths(inner, lengths, validate=False)
    if isinstance(data, RaggedTensor):
        places = apply("Reshape", apply("Where", mask), [-1])
        return gather_rows(data, places)
    return dense_boolean_mask(data, mask)


def where(
    condition: RaggedTensor, x: TensorLike = None, y: TensorLike = None, name: str | None = None
) -> RaggedOrDense:
    """`tf.where` with a ragged condition: the places where it is true, or elements of `x` and `y`."""
    if (x is None) != (y is None):
        raise ValueError("x and y must be either both None or both non-None")
    with name_scope(name, "RaggedWhere"):
        if x is None:
            places = condition.to_sparse()
            return dense_boolean_mask(places.indices, places.values)
        return elementwise(lambda c, a, b: apply("Select", c, a, b), condition, x, y)
