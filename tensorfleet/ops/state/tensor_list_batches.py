"""Several lists of tensors at once: tensors whose elements are lists."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.types import Array, Dims, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.ops.common import same_as_input
from tensorfleet.ops.state.tensor_lists import known_shape
from tensorfleet.state.tensor_lists import TensorList

_HERE = "python.ops.list_ops."


def _maker(handle: Tensor) -> Operation | None:
    """The operation that made the first of some lists, if the graph has it."""
    source = handle._op
    while source._inputs and source.type in ("Pack", "Identity"):
        source = source._inputs[0]._op
    return source if source.type.startswith("TensorList") or source.type == "EmptyTensorList" else None


def _lists(handles: Array) -> Array:
    """Lists as an array of objects, each of them a list."""
    lists = np.asarray(handles)
    if lists.dtype == object:
        return lists
    raise errors.invalid("Expected a tensor of lists.")


def _each(shape: Dims, lists: list[TensorList]) -> Array:
    result = np.empty(len(lists), object)
    result[:] = lists
    return result.reshape(shape)


@op(
    "TensorListConcatLists",
    "input_a: variant, input_b: variant -> output: variant",
    "element_dtype: type",
    shape=same_as_input,
    host=True,
    stateful=True,
)
def _concat_lists(ctx: HostContext, first: Array, second: Array, *, element_dtype: DType) -> Array:
    a, b = _lists(first), _lists(second)
    if a.shape != b.shape:
        raise errors.invalid(f"input_a and input_b must have the same shape: {a.shape} vs. {b.shape}")
    joined = []
    for i, (one, other) in enumerate(zip(a.flat, b.flat, strict=True)):
        one.check_type(element_dtype)
        other.check_type(element_dtype)
        if not one.of_shape.is_compatible_with(other.of_shape):
            raise errors.invalid(
                f"input_a and input_b TensorList element shapes are not identical at index {i}"
            )
        joined.append(one.having([*one.elements, *other.elements]))
    return _each(a.shape, joined)


@op(
    "TensorListPushBackBatch",
    "input_handles: variant, tensor: element_dtype -> output_handles: variant",
    "element_dtype: type",
    shape=same_as_input,
    host=True,
    stateful=True,
)
def _push_batch(ctx: HostContext, handles: Array, tensor: Array, *, element_dtype: DType) -> Array:
    lists, values = _lists(handles), np.asarray(tensor)
    if values.shape[: lists.ndim] != lists.shape:
        raise errors.invalid(
            f"tensor must be at least as large as input_handles: {values.shape} vs. {lists.shape}"
        )
    longer = []
    for i, place in enumerate(np.ndindex(lists.shape)):
        one: Any = lists[place]
        one.check_type(element_dtype)
        if not one.of_shape.is_compatible_with(values[place].shape):
            raise errors.invalid(f"Tried to append a tensor with incompatible shape to a list at index {i}")
        longer.append(one.having([*one.elements, np.asarray(values[place])]))
    return _each(lists.shape, longer)


not_differentiable("TensorListConcatLists", "TensorListPushBackBatch")


@export(_HERE + "tensor_list_concat_lists")
def tensor_list_concat_lists(
    input_a: Tensor, input_b: Tensor, element_dtype: DType, name: str | None = None
) -> Tensor:
    """Lists, each with the elements of another list behind its own."""
    shapes: list[Any] = []
    for word, handle in (("input_a", input_a), ("input_b", input_b)):
        maker = _maker(handle)
        kind = None if maker is None else maker._attrs.get("element_dtype")
        if kind is not None and kind != element_dtype:
            raise ValueError(f"{word}.type != element_dtype: {kind.name} vs. {element_dtype.name}")
        shapes.append(None if maker is None else known_shape(maker._outputs[0]))
    if None not in shapes and not shapes[0].is_compatible_with(shapes[1]):
        raise ValueError(f"Shapes must be equal rank, or compatible: {shapes[0]} and {shapes[1]}")
    return apply("TensorListConcatLists", input_a, input_b, element_dtype=element_dtype, name=name)


@export(_HERE + "tensor_list_push_back_batch")
def tensor_list_push_back_batch(input_handles: Tensor, tensor: TensorLike, name: str | None = None) -> Tensor:
    """Lists, each with one more element: a row of a tensor."""
    rows, maker = to_tensor(tensor), _maker(input_handles)
    kind = None if maker is None else maker._attrs.get("element_dtype")
    if kind is not None and kind != rows.dtype.base_dtype:
        raise ValueError(f"wrong element dtype: {rows.dtype.name}, the lists are of {kind.name}")
    return apply("TensorListPushBackBatch", input_handles, rows, name=name)
