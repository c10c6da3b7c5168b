"""What brackets build: `tensor[1:, ..., None, i]`, and masks of booleans."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.naming import export, publish
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.apply import apply, constant
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.concat import concat
from tensorfleet.ops.array.shape import reshape
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.array.slicing import strided_slice
from tensorfleet.ops.array.stack import stack
from tensorfleet.ops.common import UNKNOWN

newaxis = None
publish(newaxis, "newaxis")

_INDICES = (
    "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar tf.int32/tf.int64 tensors are "
    "valid indices"
)
publish(_INDICES, "python.ops.array_ops._SLICE_TYPE_ERROR")


def _check_index(index: Any) -> None:
    """Refuses anything that is not a scalar integer, in Python, numpy or a tensor."""
    ok = isinstance(index, (int, np.integer)) and not isinstance(index, (bool, np.bool_))
    if isinstance(index, np.ndarray):
        ok = index.ndim == 0 and index.dtype.kind in "iu"
    elif isinstance(index, Tensor) or hasattr(index, "_as_graph_element"):
        ok = index.dtype.base_dtype in (dtypes.int16, dtypes.int32, dtypes.int64) and index.shape.rank in (
            None,
            0,
        )
    elif hasattr(index, "__index__"):
        ok = ok or type(index).__name__ == "Dimension"
    if not ok:
        raise TypeError(f"{_INDICES}, got {index!r}")


def _is_mask(spec: TensorLike) -> bool:
    if isinstance(spec, (bool, np.bool_)):
        return True
    return isinstance(spec, (Tensor, np.ndarray)) and spec.dtype == (
        dtypes.bool_ if isinstance(spec, Tensor) else np.bool_
    )


_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def slice_helper(
    tensor: Tensor,
    slice_spec: TensorLike,
    var: Any = None,
) -> Tensor:
    """What `tensor[slice_spec]` builds; with `var`, the result has an `assign` that writes there."""
    if _is_mask(slice_spec):
        return boolean_mask(tensor, slice_spec)
    spec = slice_spec if isinstance(slice_spec, (list, tuple)) else [slice_spec]
    begin: list[Any] = []
    end: list[Any] = []
    strides: list[Any] = []
    masks: dict[str, Any] = dict.fromkeys(_MASKS, 0)
    for i, item in enumerate(spec):
        first, last, step, marks = _entry(item)
        begin.append(first)
        end.append(last)
        strides.append(step)
        for mask in marks:
            masks[mask] |= 1 << i
    tensors = [v for v in (tensor, *begin, *end, *strides) if isinstance(v, Tensor)]
    with name_scope(None, "strided_slice", tensors) as scope:
        first, last, step = _packed(begin, end, strides)
        return strided_slice(tensor, first, last, step, var=var, name=scope, **masks)


def _entry(item: Any) -> tuple[Any, Any, Any, tuple[str, ...]]:
    """One part of a bracket as begin, end, stride and the masks it sets."""
    if item is Ellipsis:
        return 0, 0, 1, ("ellipsis_mask",)
    if item is newaxis:
        return 0, 0, 1, ("new_axis_mask",)
    if not isinstance(item, slice):
        _check_index(item)
        return item, item + 1, 1, ("shrink_axis_mask",)
    for bound in (item.start, item.stop, item.step):
        if bound is not None:
            _check_index(bound)
    masks = (("begin_mask",) if item.start is None else ()) + (("end_mask",) if item.stop is None else ())
    first = 0 if item.start is None else item.start
    last = 0 if item.stop is None else item.stop
    return first, last, 1 if item.step is None else item.step, masks


def _packed(*parts: list[Any]) -> list[Tensor]:
    """begin, end and strides as three vectors of one integer type."""
    if not parts[0]:
        empty = constant([], dtypes.int32)
        return [empty, empty, empty]
    packed = [stack(p) for p in parts]
    for wide in (dtypes.int64, dtypes.int32):
        if any(t.dtype.base_dtype == wide for t in packed):
            return [t if t.dtype.base_dtype == wide else apply("Cast", t, DstT=wide) for t in packed]
    return packed


def _getitem(self: Tensor, item: Any) -> Tensor:
    return slice_helper(self, item)


Tensor.__getitem__ = _getitem  # type: ignore


@export("boolean_mask")
def boolean_mask(
    tensor: TensorLike, mask: TensorLike, name: str | None = "boolean_mask", axis: Any = None
) -> Tensor:
    """The parts of `tensor` where `mask`, whose dimensions match its own from `axis` on, is true."""
    with name_scope(name, values=[tensor, mask]):
        tensor, mask = to_tensor(tensor, name="tensor"), to_tensor(mask, name="mask")
        count = mask.shape.rank
        if count == 0:
            raise ValueError("mask cannot be scalar.")
        if count is None:
            raise ValueError(
                "Number of mask dimensions must be specified, even if some dimensions are None.  E.g. "
                "shape=[None] is ok, but shape=None is not."
            )
        at = 0 if axis is None else axis
        known = constant_value(at) if isinstance(at, Tensor) else at
        if known is not None:
            at = int(known)
            tensor.shape[at : at + count].assert_is_compatible_with(mask.shape)
        together = apply("Prod", shape_of(tensor)[at : at + count], [0])
        before, after = shape_of(tensor)[:at], shape_of(tensor)[at + count :]
        flat = reshape(tensor, concat([before, [together], after], 0))
        if known is not None:
            flat.set_shape(_flat_shape(tensor.shape, at, count))
        where = apply("Squeeze", apply("Where", reshape(mask, [-1])), squeeze_dims=[1])
        return apply("GatherV2", flat, where, at)


def _flat_shape(shape: TensorShape, axis: int, count: int) -> TensorShape:
    if shape._d is None:
        return UNKNOWN
    size = shape[axis : axis + count].num_elements()
    return TensorShape._of((*shape._d[:axis], size, *shape._d[axis + count :]))
