"""Lists of tensors as functions: `tensorflow.python.ops.list_ops`."""

from __future__ import annotations

from typing import Any

from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape, as_shape
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor

_HERE = "python.ops.list_ops."


@export(_HERE + "_build_element_shape")
def _shape_tensor(shape: Any) -> Any:
    """A shape, as far as it is known, as the ops take it."""
    if isinstance(shape, Tensor):
        return shape
    if shape is None:
        return -1
    if isinstance(shape, TensorShape):
        shape = None if shape.rank is None else shape.as_list()
        return _shape_tensor(shape)
    if not isinstance(shape, (list, tuple)):
        return to_tensor([shape] if isinstance(shape, int) and shape >= 0 else shape)
    if not shape:
        return to_tensor([], dtypes.int32)
    return [-1 if d is None else d for d in shape]


@export(_HERE + "empty_tensor_list")
def empty_tensor_list(
    element_shape: Any, element_dtype: Any, max_num_elements: Any = None, name: str | None = None
) -> Tensor:
    """A list without elements."""
    most = -1 if max_num_elements is None else max_num_elements
    return apply(
        "EmptyTensorList", _shape_tensor(element_shape), most, element_dtype=element_dtype, name=name
    )


@export(_HERE + "tensor_list_reserve")
def tensor_list_reserve(
    element_shape: Any, num_elements: Any, element_dtype: Any, name: str | None = None
) -> Tensor:
    """A list of elements that are not set yet."""
    shape = _shape_tensor(element_shape)
    return apply("TensorListReserve", shape, num_elements, element_dtype=element_dtype, name=name)


@export(_HERE + "tensor_list_from_tensor")
def tensor_list_from_tensor(tensor: Any, element_shape: Any, name: str | None = None) -> Tensor:
    """The rows of a tensor as a list."""
    return apply("TensorListFromTensor", tensor, _shape_tensor(element_shape), name=name)


@export(_HERE + "tensor_list_push_back")
def tensor_list_push_back(input_handle: Any, tensor: Any, name: str | None = None) -> Tensor:
    """The list with an element more."""
    return apply("TensorListPushBack", input_handle, tensor, name=name)


@export(_HERE + "tensor_list_pop_back")
def tensor_list_pop_back(
    input_handle: Any, element_dtype: Any, element_shape: Any = None, name: str | None = None
) -> Any:
    """The list without its last element, and that element."""
    shape = _shape_tensor(element_shape)
    return apply_list("TensorListPopBack", input_handle, shape, element_dtype=element_dtype, name=name)


@export(_HERE + "tensor_list_get_item")
def tensor_list_get_item(
    input_handle: Any, index: Any, element_dtype: Any, element_shape: Any = None, name: str | None = None
) -> Tensor:
    """One element."""
    shape = _shape_tensor(element_shape)
    return apply("TensorListGetItem", input_handle, index, shape, element_dtype=element_dtype, name=name)


@export(_HERE + "tensor_list_set_item")
def tensor_list_set_item(
    input_handle: Any,
    index: Any,
    item: Any,
    resize_if_index_out_of_bounds: bool = False,
    name: str | None = None,
) -> Tensor:
    """The list with another element at a place; it may grow to have that place."""
    if resize_if_index_out_of_bounds:
        have = apply("TensorListLength", input_handle)
        input_handle = apply("TensorListResize", input_handle, apply("Maximum", have, to_tensor(index) + 1))
    return apply("TensorListSetItem", input_handle, index, item, name=name)


@export(_HERE + "tensor_list_length")
def tensor_list_length(input_handle: Any, name: str | None = None) -> Tensor:
    """How many elements there are."""
    return apply("TensorListLength", input_handle, name=name)


@export(_HERE + "tensor_list_element_shape")
def tensor_list_element_shape(
    input_handle: Any, shape_type: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """The shape of the elements: -1 for what is not known."""
    return apply("TensorListElementShape", input_handle, shape_type=shape_type, name=name)


@export(_HERE + "tensor_list_resize")
def tensor_list_resize(input_handle: Any, size: Any, name: str | None = None) -> Tensor:
    """The list with fewer elements, or with more that are not set."""
    return apply("TensorListResize", input_handle, size, name=name)


@export(_HERE + "tensor_list_stack")
def tensor_list_stack(
    input_handle: Any,
    element_dtype: Any,
    num_elements: int = -1,
    element_shape: Any = None,
    name: str | None = None,
) -> Tensor:
    """All elements as one tensor."""
    kind = {"element_dtype": element_dtype, "num_elements": num_elements}
    return apply("TensorListStack", input_handle, _shape_tensor(element_shape), name=name, **kind)


@export(_HERE + "tensor_list_gather")
def tensor_list_gather(
    input_handle: Any, indices: Any, element_dtype: Any, element_shape: Any = None, name: str | None = None
) -> Tensor:
    """Some elements as one tensor."""
    places, shape = to_tensor(indices, dtypes.int32), _shape_tensor(element_shape)
    return apply("TensorListGather", input_handle, places, shape, element_dtype=element_dtype, name=name)


@export(_HERE + "tensor_list_scatter")
def tensor_list_scatter(
    tensor: Any,
    indices: Any,
    element_shape: Any = None,
    input_handle: Any = None,
    num_elements: Any = None,
    name: str | None = None,
) -> Tensor:
    """A list, new or given, with the rows of a tensor at places."""
    places = to_tensor(indices, dtypes.int32)
    if input_handle is not None:
        return apply("TensorListScatterIntoExistingList", input_handle, tensor, places, name=name)
    count = -1 if num_elements is None else num_elements
    return apply("TensorListScatterV2", tensor, places, _shape_tensor(element_shape), count, name=name)


@export(_HERE + "tensor_list_concat")
def tensor_list_concat(
    input_handle: Any,
    element_dtype: Any,
    element_shape: Any = None,
    ensure_shape: Any = None,
    name: str | None = None,
) -> Tensor:
    """All elements one behind the other."""
    shape = as_shape(element_shape) if not isinstance(element_shape, Tensor) else element_shape
    empty = to_tensor([], dtypes.int64)
    kind = {"element_dtype": element_dtype}
    return apply_list("TensorListConcatV2", input_handle, _shape_tensor(shape), empty, name=name, **kind)[0]


@export(_HERE + "tensor_list_split")
def tensor_list_split(tensor: Any, element_shape: Any, lengths: Any, name: str | None = None) -> Tensor:
    """Pieces of a tensor, of these lengths, as a list."""
    sizes = to_tensor(lengths, dtypes.int64) if not isinstance(lengths, Tensor) else lengths
    return apply("TensorListSplit", tensor, _shape_tensor(element_shape), sizes, name=name)
