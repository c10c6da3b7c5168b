"""The ops on lists of tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.dtypes import DType
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array
from tensorfleet.graph.constant import constant_value_as_shape
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import op
from tensorfleet.ops.common import SCALAR
from tensorfleet.state.tensor_lists import TensorList, merged, shape_from, text_of

_HOST: dict[str, Any] = {"host": True, "stateful": True}
_LIST: dict[str, Any] = {**_HOST, "shape": lambda op: SCALAR}
_KIND = "element_dtype: type; shape_type: index"
# Where the ops that make lists are told the shape of the elements.
_SHAPE_AT = {
    "EmptyTensorList": 0,
    "TensorListReserve": 0,
    "TensorListFromTensor": 1,
    "TensorListSplit": 1,
    "TensorListScatter": 2,
    "TensorListScatterV2": 2,
}


def known_shape(handle: Tensor) -> TensorShape:
    """The static shape of the elements of a list."""
    source = handle._op
    while source.type not in _SHAPE_AT:
        if not source.type.startswith("TensorList") and source.type != "Identity":
            return TensorShape(None)
        source = source._inputs[0]._op
    return _shape_input(source, _SHAPE_AT[source.type])


def _shape_input(op: Operation, at: int) -> TensorShape:
    try:
        return constant_value_as_shape(op._inputs[at])
    except ValueError:
        return TensorShape(None)


def _element(op: Operation, at: int) -> TensorShape:
    try:
        return _shape_input(op, at).merge_with(known_shape(op._inputs[0]))
    except ValueError:
        return TensorShape(None)  # told when the list is there


# -- made ------------------------------------------------------------------------------------------------


@op(
    "EmptyTensorList",
    "element_shape: shape_type[1-], max_num_elements: int32 -> handle: variant",
    _KIND,
    **_LIST,
)
def _empty(ctx: HostContext, shape: Array, most: Array, *, element_dtype: DType) -> TensorList:
    return TensorList(element_dtype, shape_from(shape), [], int(most))


@op(
    "TensorListReserve",
    "element_shape: shape_type[1-], num_elements: int32 -> handle: variant",
    _KIND,
    **_LIST,
)
def _reserve(ctx: HostContext, shape: Array, count: Array, *, element_dtype: DType) -> TensorList:
    if count < 0:
        raise errors.invalid(f"The num_elements to reserve must be a non negative number, but got {count}")
    return TensorList(element_dtype, shape_from(shape), [None] * int(count))


@op(
    "TensorListFromTensor",
    "tensor: element_dtype, element_shape: shape_type[1-] -> output_handle: variant",
    _KIND,
    **_LIST,
)
def _from_tensor(ctx: HostContext, tensor: Array, shape: Array, *, element_dtype: DType) -> TensorList:
    wanted = shape_from(shape)
    if np.ndim(tensor) == 0:
        raise errors.invalid("Tensor must be at least a vector, but saw shape: []")
    if not wanted.is_compatible_with(tensor.shape[1:]):
        raise errors.invalid(
            f"Specified a list with shape {text_of(wanted)} from a tensor with shape {text_of(tensor.shape[1:])}"
        )
    return TensorList(element_dtype, wanted, list(np.asarray(tensor)))


def _as_element(value: Array | TensorList) -> Array | TensorList:
    """An array, or a list inside a list."""
    return value if isinstance(value, TensorList) else np.asarray(value)


# -- one element -----------------------------------------------------------------------------------------


@op(
    "TensorListPushBack",
    "input_handle: variant, tensor: element_dtype -> output_handle: variant",
    "element_dtype: type",
    **_LIST,
)
def _push(
    ctx: HostContext, handle: TensorList, value: Array | TensorList, *, element_dtype: DType
) -> TensorList:
    value = _as_element(value)
    handle.check_type(element_dtype)
    handle.check_shape(value, "Tried to append a tensor with incompatible shape to a list. Op")
    if 0 <= handle.most <= len(handle.elements):
        raise errors.invalid(
            f"Tried to push item into a full list list size: {len(handle.elements)} max_num_elements: {handle.most}"
        )
    return handle.having([*handle.elements, value])


@op(
    "TensorListPopBack",
    "input_handle: variant, element_shape: int32 -> output_handle: variant, tensor: element_dtype",
    "element_dtype: type",
    shape=lambda op: [SCALAR, _element(op, 1)],
    **_HOST,
)
def _pop(
    ctx: HostContext, handle: TensorList, shape: Array, *, element_dtype: DType
) -> tuple[TensorList, Array]:
    handle.check_type(element_dtype)
    if not handle.elements:
        raise errors.invalid("Trying to pop from an empty list.")
    return handle.having(handle.elements[:-1]), handle.at(-1, shape_from(shape))


@op(
    "TensorListGetItem",
    "input_handle: variant, index: int32, element_shape: Tshape -> item: element_dtype",
    "element_dtype: type; Tshape: index = int32",
    shape=lambda op: _shape_input(op, 2).merge_with(known_shape(op._inputs[0])),
    **_HOST,
)
def _get_item(
    ctx: HostContext, handle: TensorList, index: Array, shape: Array, *, element_dtype: DType
) -> Array:
    handle.check_type(element_dtype)
    _check_index(handle, index, "access")
    return handle.at(int(index), shape_from(shape))


@op(
    "TensorListSetItem",
    "input_handle: variant, index: int32, item: element_dtype -> output_handle: variant",
    "element_dtype: type; resize_if_index_out_of_bounds: bool = false",
    **_LIST,
)
def _set_item(
    ctx: HostContext,
    handle: TensorList,
    index: Array,
    value: Array | TensorList,
    *,
    element_dtype: DType,
    resize_if_index_out_of_bounds: bool,
) -> TensorList:
    value = _as_element(value)
    if resize_if_index_out_of_bounds and index >= len(handle.elements):
        handle = _resize(ctx, handle, index + 1)
    _check_index(handle, index, "modify")
    handle.check_type(element_dtype)
    handle.check_shape(value, "Tried to set a tensor with incompatible shape at a list index. Item")
    elements = list(handle.elements)
    elements[int(index)] = value
    return handle.having(elements)


def _check_index(handle: TensorList, index: int | Array, verb: str) -> None:
    if not 0 <= index < len(handle.elements):
        raise errors.invalid(
            f"Trying to {verb} element {index} in a list with {len(handle.elements)} elements."
        )


# -- all elements ----------------------------------------------------------------------------------------


@op("TensorListLength", "input_handle: variant -> length: int32", **_LIST)
def _length(ctx: HostContext, handle: TensorList) -> np.int32:
    return np.int32(len(handle.elements))


@op(
    "TensorListElementShape",
    "input_handle: variant -> element_shape: shape_type",
    "shape_type: index",
    shape=lambda op: TensorShape(None),
    **_HOST,
)
def _element_shape(ctx: HostContext, handle: TensorList, *, shape_type: DType) -> Array:
    if handle.of_shape.rank is None:
        return np.array(-1, shape_type.np_dtype)
    return np.array([-1 if d is None else d for d in handle.of_shape.as_list()], shape_type.np_dtype)


@op("TensorListResize", "input_handle: variant, size: int32 -> output_handle: variant", **_LIST)
def _resize(ctx: HostContext, handle: TensorList, size: Array) -> TensorList:
    if size < 0:
        raise errors.invalid(f"TensorListSlice expects size to be non-negative. Got: {size}")
    missing = int(size) - len(handle.elements)
    return handle.having(handle.elements[: int(size)] + [None] * max(missing, 0))


def _stacked_shape(op: Operation) -> TensorShape:
    count = op._attrs["num_elements"]
    return TensorShape([None if count < 0 else count]).concatenate(_element(op, 1))


@op(
    "TensorListStack",
    "input_handle: variant, element_shape: int32 -> tensor: element_dtype",
    "element_dtype: type; num_elements: int = -1",
    shape=_stacked_shape,
    **_HOST,
)
def _stack(
    ctx: HostContext, handle: TensorList, shape: Array, *, element_dtype: DType, num_elements: int
) -> Array:
    handle.check_type(element_dtype)
    count = len(handle.elements)
    if num_elements not in (-1, count):
        raise errors.invalid(
            f"Operation expected a list with {num_elements} elements but got a list with {count} elements."
        )
    return handle.together(handle.elements, shape_from(shape), "stack")


@op(
    "TensorListGather",
    "input_handle: variant, indices: int32, element_shape: int32 -> values: element_dtype",
    "element_dtype: type",
    shape=lambda op: op._inputs[1].shape.concatenate(_element(op, 2)),
    **_HOST,
)
def _gather(
    ctx: HostContext, handle: TensorList, indices: Array, shape: Array, *, element_dtype: DType
) -> Array:
    handle.check_type(element_dtype)
    for index in np.asarray(indices).tolist():
        _check_index(handle, index, "gather")
    chosen = [handle.elements[i] for i in np.asarray(indices).tolist()]
    return handle.together(chosen, shape_from(shape), "gather")


def _scattered(elements: list[Array | None], tensor: Array, indices: Array) -> list[Array | None]:
    places: list[int] = np.asarray(indices).tolist()
    if any(i < 0 for i in places):
        raise errors.invalid("Indices in TensorListScatter must all be non-negative.")
    if len(places) != len(tensor):
        raise errors.invalid(
            f"Invalid number of rows in input tensor. Expected: {len(places)} Actual: {len(tensor)}"
        )
    elements = elements + [None] * (max(places, default=-1) + 1 - len(elements))
    for i, value in zip(places, np.asarray(tensor), strict=True):
        elements[i] = value
    return elements


@op(
    "TensorListScatter",
    "tensor: element_dtype, indices: int32, element_shape: shape_type[1-] -> output_handle: variant",
    _KIND,
    **_LIST,
)
def _scatter(
    ctx: HostContext, tensor: Array, indices: Array, shape: Array, *, element_dtype: DType
) -> TensorList:
    return _scatter_sized(ctx, tensor, indices, shape, -1, element_dtype=element_dtype)


@op(
    "TensorListScatterV2",
    "tensor: element_dtype, indices: int32, element_shape: shape_type[1-], num_elements: int32 -> output_handle: variant",
    _KIND,
    **_LIST,
)
def _scatter_sized(
    ctx: HostContext, tensor: Array, indices: Array, shape: Array, count: Array | int, *, element_dtype: DType
) -> TensorList:
    wanted, size = shape_from(shape), int(count)
    if size < -1:
        raise errors.invalid(f"TensorListScatter expects num_elements >= -1, found: {size}")
    if not wanted.is_compatible_with(np.shape(tensor)[1:]):
        raise errors.invalid(
            f"Specified a list with shape {text_of(wanted)} from a tensor with shape {text_of(np.shape(tensor)[1:])}"
        )
    for index in np.asarray(indices).tolist() if size >= 0 else []:
        if index >= size:
            raise errors.invalid(
                f"TensorListScatter: Trying to scatter at index {index} in list with size {size}"
            )
    return TensorList(element_dtype, wanted, _scattered([None] * max(size, 0), tensor, indices))


@op(
    "TensorListScatterIntoExistingList",
    "input_handle: variant, tensor: element_dtype, indices: int32 -> output_handle: variant",
    "element_dtype: type",
    **_LIST,
)
def _scatter_into(ctx: HostContext, handle: TensorList, tensor: Array, indices: Array) -> TensorList:
    return handle.having(_scattered(list(handle.elements), tensor, indices))


# -- along the first dimension of the elements -----------------------------------------------------------


def _joined_shapes(op: Operation) -> list[TensorShape]:
    shape = _element(op, 1)
    rest = TensorShape(None) if shape.rank is None else TensorShape([None, *shape.as_list()[1:]])
    return [rest, TensorShape([None])]


@op(
    "TensorListConcatV2",
    "input_handle: variant, element_shape: shape_type, leading_dims: int64 -> tensor: element_dtype, lengths: int64",
    _KIND,
    shape=_joined_shapes,
    **_HOST,
)
def _concat(
    ctx: HostContext, handle: TensorList, shape: Array, leading: Array, *, element_dtype: DType
) -> tuple[Array, Array]:
    handle.check_type(element_dtype)
    whole = merged(shape_from(shape), handle.of_shape)
    if whole.rank == 0:
        raise errors.invalid("Concat requires elements to be at least vectors, found scalars instead.")
    rest = TensorShape(None) if whole.rank is None else whole[1:]
    for i, value in enumerate(handle.elements):
        if value is not None and not value.ndim:
            raise errors.invalid(f"Concat saw a scalar shape at index {i} but requires at least vectors.")
        rest = rest if value is None else merged(rest, TensorShape(value.shape[1:]))
    if not rest.is_fully_defined():
        what = "list with only uninitialized tensors" if handle.elements else "an empty tensor list"
        raise errors.invalid(
            f"All except the first dimension must be fully defined when concating {what}: {text_of(rest)}"
        )
    return _end_to_end(handle, whole, rest, np.asarray(leading))


def _end_to_end(
    handle: TensorList, whole: TensorShape, rest: TensorShape, leading: Array
) -> tuple[Array, Array]:
    dims, values = tuple(rest.as_list()), []
    first = whole.as_list()[0] if whole.rank else None
    for i, value in enumerate(handle.elements):
        if value is None:
            length = first if first is not None else int(leading[i]) if i < len(leading) else None
            if length is None:
                raise errors.invalid(
                    f"List contains uninitialized tensor at index {i} but leading_dims has only {i} elements."
                )
            value = np.zeros((length, *dims), handle.dtype.np_dtype)
        values.append(value)
    joined = np.concatenate(values) if values else np.zeros((0, *dims), handle.dtype.np_dtype)
    return joined, np.array([len(v) for v in values], np.int64)


@op(
    "TensorListConcat",
    "input_handle: variant -> tensor: element_dtype, lengths: int64",
    "element_dtype: type; element_shape: shape = unknown",
    shape=lambda op: [TensorShape(None), TensorShape([None])],
    **_HOST,
)
def _old_concat(
    ctx: HostContext, handle: TensorList, *, element_dtype: DType, element_shape: TensorShape
) -> tuple[Array, Array]:
    sizes: Any = -1
    if element_shape.rank is not None:
        sizes = [-1 if d is None else d for d in element_shape.as_list()]
    return _concat(ctx, handle, sizes, np.zeros(0, np.int64), element_dtype=element_dtype)


@op(
    "TensorListSplit",
    "tensor: element_dtype, element_shape: shape_type[1-], lengths: int64 -> output_handle: variant",
    _KIND,
    **_LIST,
)
def _split(
    ctx: HostContext, tensor: Array, shape: Array, lengths: Array, *, element_dtype: DType
) -> TensorList:
    tensor, lengths = np.asarray(tensor), np.asarray(lengths)
    if lengths.ndim != 1:
        raise errors.invalid(f"Expected lengths to be a vector, received shape: {text_of(lengths.shape)}")
    if not tensor.ndim:
        raise errors.invalid("Expected tensor to be at least a vector, but received shape: []")
    if (lengths < 0).any():
        raise errors.invalid(f"Invalid value in lengths: {lengths[lengths < 0][0]}")
    wanted = shape_from(shape)
    if wanted.rank and not TensorShape(wanted.as_list()[1:]).is_compatible_with(tensor.shape[1:]):
        raise errors.invalid(
            f"tensor shape {text_of(tensor.shape)} is not compatible with element_shape {text_of(wanted)}"
        )
    if lengths.sum() != len(tensor):
        raise errors.invalid(
            f"Expected sum of lengths to be equal to values.shape[0], but sum of lengths is {lengths.sum()} and "
            f"value's shape is: {text_of(tensor.shape)}"
        )
    return TensorList(
        element_dtype, wanted, np.split(tensor, np.cumsum(lengths)[:-1]) if len(lengths) else []
    )
