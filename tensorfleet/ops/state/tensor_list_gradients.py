"""The gradients of the ops on lists of tensors."""

from __future__ import annotations

from tensorfleet.base import dtypes
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable


def _sizes(tensor: Tensor) -> Tensor:
    return apply("Shape", tensor)


def _inner_sizes(tensor: Tensor) -> Tensor:
    return apply("Shape", tensor)[1:]


def _shape_of(handle: Tensor) -> Tensor:
    return apply("TensorListElementShape", handle, shape_type=dtypes.int32)


@gradient("TensorListPushBack")
def _push_gradient(op: Operation, d_list: Tensor) -> list[Tensor]:
    value = op.inputs[1]
    return apply_list("TensorListPopBack", d_list, _sizes(value), element_dtype=value.dtype.base_dtype)


@gradient("TensorListPopBack")
def _pop_gradient(op: Operation, d_list: Tensor | None, d_value: Tensor | None) -> tuple[Tensor | None, ...]:
    if d_list is None:
        d_list = apply("EmptyTensorList", _shape_of(op.outputs[0]), -1, element_dtype=op.outputs[1].dtype)
    if d_value is None:
        d_value = apply("ZerosLike", op.outputs[1])
    return apply("TensorListPushBack", d_list, d_value), None


@gradient("TensorListStack")
def _stack_gradient(op: Operation, dy: Tensor) -> tuple[Tensor | None, ...]:
    return apply("TensorListFromTensor", dy, _inner_sizes(dy)), None


@gradient("TensorListFromTensor")
def _from_tensor_gradient(op: Operation, d_list: Tensor) -> tuple[Tensor | None, ...]:
    tensor = op.inputs[0]
    return apply("TensorListStack", d_list, _inner_sizes(tensor), element_dtype=tensor.dtype.base_dtype), None


@gradient("TensorListGetItem")
def _get_item_gradient(op: Operation, dy: Tensor) -> tuple[Tensor | None, ...]:
    handle, index = op.inputs[:2]
    count = apply("TensorListLength", handle)
    empty = apply("TensorListReserve", _shape_of(handle), count, element_dtype=dy.dtype.base_dtype)
    return apply("TensorListSetItem", empty, index, dy), None, None


@gradient("TensorListSetItem")
def _set_item_gradient(op: Operation, d_list: Tensor) -> tuple[Tensor | None, ...]:
    _, index, value = op.inputs
    rest = apply("TensorListSetItem", d_list, index, apply("ZerosLike", value))
    kind = value.dtype.base_dtype
    return rest, None, apply("TensorListGetItem", d_list, index, _sizes(value), element_dtype=kind)


@gradient("TensorListResize")
def _resize_gradient(op: Operation, d_list: Tensor) -> tuple[Tensor | None, ...]:
    return apply("TensorListResize", d_list, apply("TensorListLength", op.inputs[0])), None


@gradient("TensorListGather")
def _gather_gradient(op: Operation, dy: Tensor) -> tuple[Tensor | None, ...]:
    handle, indices = op.inputs[:2]
    count = apply("TensorListLength", handle)
    empty = apply("TensorListReserve", _shape_of(handle), count, element_dtype=dy.dtype.base_dtype)
    return apply("TensorListScatterIntoExistingList", empty, dy, indices), None, None


@gradient("TensorListScatter", "TensorListScatterV2")
def _scatter_gradient(op: Operation, d_list: Tensor) -> list[Tensor | None]:
    tensor, indices = op.inputs[:2]
    kind = tensor.dtype.base_dtype
    d_tensor = apply("TensorListGather", d_list, indices, _inner_sizes(tensor), element_dtype=kind)
    return [d_tensor, *[None] * (len(op.inputs) - 1)]


@gradient("TensorListScatterIntoExistingList")
def _scatter_into_gradient(op: Operation, d_list: Tensor) -> tuple[Tensor | None, ...]:
    _, tensor, indices = op.inputs
    rest = apply("TensorListScatterIntoExistingList", d_list, apply("ZerosLike", tensor), indices)
    kind = tensor.dtype.base_dtype
    return rest, apply("TensorListGather", d_list, indices, _inner_sizes(tensor), element_dtype=kind), None


@gradient("TensorListConcat", "TensorListConcatV2")
def _concat_gradient(op: Operation, dy: Tensor, _: Tensor) -> list[Tensor | None]:
    split = apply("TensorListSplit", dy, _shape_of(op.inputs[0]), op.outputs[1])
    return [split, *[None] * (len(op.inputs) - 1)]


@gradient("TensorListSplit")
def _split_gradient(op: Operation, d_list: Tensor) -> tuple[Tensor | None, ...]:
    tensor, _, lengths = op.inputs
    shape = apply("ConcatV2", [[-1], _inner_sizes(tensor)], 0)
    return (
        apply_list("TensorListConcatV2", d_list, shape, lengths, element_dtype=tensor.dtype.base_dtype)[0],
        None,
        None,
    )


not_differentiable("EmptyTensorList", "TensorListReserve", "TensorListLength", "TensorListElementShape")
