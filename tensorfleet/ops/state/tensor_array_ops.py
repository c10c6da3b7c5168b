"""The ops of TensorArrays and of the stacks that loops keep for their gradients."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.dtypes import DType
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.ops.array.basic import c_name
from tensorfleet.ops.common import SCALAR, UNKNOWN, scalar
from tensorfleet.state.tensor_arrays import ArrayStore, StackStore

_numbers = itertools.count()
# Flows order the operations on an array; nobody reads their value.
_FLOW = np.zeros((), np.float32)
_FLOW.flags.writeable = False
_HOST: dict[str, Any] = {"host": True, "stateful": True}


@op(
    "TensorArrayV3",
    "size: int32[0] -> handle: resource, flow: float",
    "dtype: type; element_shape: shape = unknown; dynamic_size: bool = false; clear_after_read: bool = true; "
    "identical_element_shapes: bool = false; tensor_array_name: string = ''",
    shape=lambda op: [TensorShape((2,)), SCALAR],
    **_HOST,
)
def _tensor_array(
    ctx: HostContext,
    size: Array,
    *,
    dtype: DType,
    element_shape: TensorShape,
    dynamic_size: bool,
    clear_after_read: bool,
    identical_element_shapes: bool,
    tensor_array_name: bytes,
) -> tuple[ArrayStore, Array]:
    name = f"{tensor_array_name.decode() or ctx.op.name}_{next(_numbers)}"
    store = ArrayStore(
        dtype, int(size), element_shape, dynamic_size, clear_after_read, identical_element_shapes, name
    )
    return store, _FLOW


@op(
    "TensorArrayGradV3",
    "handle: resource, flow_in: float -> grad_handle: resource, flow_out: float",
    "source: string",
    shape=lambda op: [TensorShape((2,)), SCALAR],
    **_HOST,
)
def _tensor_array_grad(
    ctx: HostContext, handle: ArrayStore, flow: Array, *, source: bytes
) -> tuple[ArrayStore, Array]:
    return handle.grad(source), _FLOW


@op(
    "TensorArrayGradWithShape",
    "handle: resource, flow_in: float, shape_to_prepend: int32 -> grad_handle: resource, flow_out: float",
    "source: string",
    shape=lambda op: [TensorShape((2,)), SCALAR],
    **_HOST,
)
def _tensor_array_grad_with_shape(
    ctx: HostContext, handle: ArrayStore, flow: Array, prepended: Array, *, source: bytes
) -> tuple[ArrayStore, Array]:
    return handle.grad(source, tuple(np.asarray(prepended).tolist())), _FLOW


@op(
    "TensorArrayWriteV3",
    "handle: resource, index: int32, value: T, flow_in: float -> flow_out: float",
    "T: type",
    shape=scalar,
    **_HOST,
)
def _write(
    ctx: HostContext, handle: ArrayStore, index: Array, value: Array, flow: Array, *, op: Operation
) -> Array:
    dtype = op._attrs["T"]
    if handle.dtype != dtype:
        raise errors.invalid(
            f"TensorArray dtype is {c_name(handle.dtype)} but Op is trying to write dtype {c_name(dtype)}."
        )
    handle.write(int(index), value)
    return _FLOW


def _element_shape(op: Operation) -> TensorShape:
    """The shape of the elements, if the op that made the array has it."""
    maker = op._inputs[0]._op
    if maker.type == "TensorArrayV3":
        shape: TensorShape = maker._attrs["element_shape"]
        return shape if maker._attrs["identical_element_shapes"] or shape.is_fully_defined() else UNKNOWN
    if maker.type == "TensorArrayGradV3":
        return _element_shape(maker)
    if maker.type == "TensorArrayGradWithShape":
        prepended = maker._inputs[2].shape.with_rank(1).as_list()[0]
        before = UNKNOWN if prepended is None else TensorShape([None] * prepended)
        return before.concatenate(_element_shape(maker))
    return UNKNOWN


@op(
    "TensorArrayReadV3",
    "handle: resource, index: int32, flow_in: float -> value: dtype",
    "dtype: type",
    shape=_element_shape,
    **_HOST,
)
def _read(ctx: HostContext, handle: ArrayStore, index: Array, flow: Array, *, dtype: DType) -> Array:
    _same_type(handle, dtype)
    return handle.read(int(index))


def _same_type(handle: ArrayStore, dtype: DType) -> None:
    if handle.dtype != dtype:
        raise errors.invalid(
            f"TensorArray dtype is {c_name(handle.dtype)} but Op requested dtype {c_name(dtype)}."
        )


@op(
    "TensorArrayGatherV3",
    "handle: resource, indices: int32, flow_in: float -> value: dtype",
    "dtype: type; element_shape: shape = unknown",
    shape=lambda op: TensorShape((None,)).concatenate(op._attrs["element_shape"]),
    **_HOST,
)
def _gather(
    ctx: HostContext,
    handle: ArrayStore,
    indices: Array,
    flow: Array,
    *,
    dtype: DType,
    element_shape: TensorShape,
) -> Array:
    _same_type(handle, dtype)
    whole: Array | None = handle.whole(indices)
    if whole is not None:
        return whole
    values = [handle.read(i) for i in np.asarray(indices).tolist()]
    if not values:
        shape = handle.shape if handle.shape.is_fully_defined() else element_shape
        if not shape.is_fully_defined():
            dims = "<unknown>" if shape.rank is None else str(shape.as_list())
            shown = dims.replace("None", "?").replace(" ", "")
            raise errors.UnimplementedError(
                None,
                None,
                f"TensorArray has size zero, but element shape {shown} is not fully defined. Currently only static "
                "shapes are supported when packing zero-size TensorArrays.",
            )
        return np.zeros((0, *shape.as_list()), dtype.np_dtype)
    first = values[0].shape
    for i, value in enumerate(values):
        if value.shape != first:
            raise errors.invalid(
                f"TensorArray has inconsistent shapes.  Index 0 has shape: {list(first)} but index {i} has shape: "
                f"{list(value.shape)}"
            )
    return np.stack(values)


@op(
    "TensorArrayScatterV3",
    "handle: resource, indices: int32, value: T, flow_in: float -> flow_out: float",
    "T: type",
    shape=scalar,
    **_HOST,
)
def _scatter(ctx: HostContext, handle: ArrayStore, indices: Array, value: Array, flow: Array) -> Array:
    places = np.asarray(indices).tolist()
    if np.ndim(value) < 1:
        raise errors.invalid("Input value for unpack must be at least a vector")
    if len(places) != len(value):
        raise errors.invalid(
            f"Expected len(indices) == values.shape[0], but saw: {len(places)} vs. {len(value)}"
        )
    # Slices of one array into a fresh store: the array is kept, so that a stack of all elements needs no copy.
    fresh = handle.dense is None and not any(handle.flags)
    for i, index in enumerate(places):
        handle.write(index, np.asarray(value[i]))
    if fresh and places == list(range(len(handle.elements))):
        handle.keep(value)
    return _FLOW


@op(
    "TensorArrayConcatV3",
    "handle: resource, flow_in: float -> value: dtype, lengths: int64",
    "dtype: type; element_shape_except0: shape = unknown",
    shape=lambda op: [
        TensorShape((None,)).concatenate(op._attrs["element_shape_except0"]),
        TensorShape((None,)),
    ],
    **_HOST,
)
def _concat(
    ctx: HostContext, handle: ArrayStore, flow: Array, *, dtype: DType, element_shape_except0: TensorShape
) -> tuple[Array, Array]:
    _same_type(handle, dtype)
    values = [handle.read(i) for i in range(len(handle.elements))]
    if not values:
        rest = element_shape_except0.as_list() if element_shape_except0.is_fully_defined() else []
        return np.zeros((0, *rest), dtype.np_dtype), np.zeros((0,), np.int64)
    for i, value in enumerate(values):
        if value.ndim < 1:
            raise errors.invalid(f"Concat saw a scalar shape at index {i} but requires at least vectors.")
        if value.shape[1:] != values[0].shape[1:]:
            raise errors.invalid(
                f"TensorArray has inconsistent shapes.  Index 0 has (excepting dimension 0) shape: "
                f"{list(values[0].shape[1:])} but index {i} has (excepting dimension 0) shape: {list(value.shape[1:])}"
            )
    return np.concatenate(values), np.array([len(v) for v in values], np.int64)


@op(
    "TensorArraySplitV3",
    "handle: resource, value: T, lengths: int64, flow_in: float -> flow_out: float",
    "T: type",
    shape=scalar,
    **_HOST,
)
def _split(ctx: HostContext, handle: ArrayStore, value: Array, lengths: Array, flow: Array) -> Array:
    sizes = np.asarray(lengths).tolist()
    if np.ndim(lengths) != 1:
        raise errors.invalid(f"Expected lengths to be a vector, received shape: {list(np.shape(lengths))}")
    if np.ndim(value) < 1:
        raise errors.invalid(
            f"Expected value to be at least a vector, but received shape: {list(np.shape(value))}"
        )
    if sum(sizes) != len(value):
        raise errors.invalid(
            f"Expected sum of lengths to be equal to values.shape[0], but sum of lengths is {sum(sizes)} and "
            f"value's shape is: {list(value.shape)} "
        )
    if len(sizes) != len(handle.elements) and not handle.dynamic:
        raise errors.invalid(
            f"TensorArray's size is not equal to the size of lengths ({len(handle.elements)} vs. {len(sizes)}), and "
            "the TensorArray is not marked as dynamically resizeable"
        )
    start = 0
    for i, size in enumerate(sizes):
        handle.write(i, value[start : start + size])
        start += size
    return _FLOW


@op("TensorArraySizeV3", "handle: resource, flow_in: float -> size: int32", shape=scalar, **_HOST)
def _size(ctx: HostContext, handle: ArrayStore, flow: Array) -> Array:
    return np.array(len(handle.elements), np.int32)


@op("TensorArrayCloseV3", "handle: resource ->", **_HOST)
def _close(ctx: HostContext, handle: ArrayStore) -> None:
    handle.closed = True
    handle.elements = []


@op(
    "StackV2",
    "max_size: int32 -> handle: resource",
    "elem_type: type; stack_name: string = ''",
    shape=lambda op: TensorShape((2,)),
    **_HOST,
)
def _stack(ctx: HostContext, max_size: Array, *, stack_name: bytes) -> StackStore:
    return StackStore(int(max_size), stack_name.decode() or ctx.op.name)


@op(
    "StackPushV2",
    "handle: resource, elem: T -> output: T",
    "T: type; swap_memory: bool = false",
    shape=lambda op: op._inputs[1].shape,
    **_HOST,
)
def _push(ctx: HostContext, handle: StackStore, value: Array) -> Array:
    handle.push(value)
    return value


@op("StackPopV2", "handle: resource -> elem: elem_type", "elem_type: type", shape=lambda op: UNKNOWN, **_HOST)
def _pop(ctx: HostContext, handle: StackStore) -> Array:
    value: Array = handle.pop()
    return value


@op("StackCloseV2", "handle: resource ->", **_HOST)
def _close_stack(ctx: HostContext, handle: StackStore) -> None:
    handle.closed = True


not_differentiable("TensorArrayV3", "TensorArrayGradV3", "TensorArrayGradWithShape", "TensorArraySizeV3")
not_differentiable("TensorArrayCloseV3", "StackV2", "StackPushV2", "StackCloseV2")


# The same stacks by references, as graphs from before resources have them.
@op(
    "Stack",
    "-> handle: Ref(string)",
    "elem_type: type; stack_name: string = ''",
    shape=lambda op: TensorShape((2,)),
    **_HOST,
)
def _old_stack(ctx: HostContext, *, stack_name: bytes) -> StackStore:
    return StackStore(-1, stack_name.decode() or ctx.op.name)


op(
    "StackPush",
    "handle: Ref(string), elem: T -> output: T",
    "T: type; swap_memory: bool = false",
    shape=lambda op: op._inputs[1].shape,
    **_HOST,
)(_push)
op(
    "StackPop",
    "handle: Ref(string) -> elem: elem_type",
    "elem_type: type",
    shape=lambda op: UNKNOWN,
    **_HOST,
)(_pop)
op("StackClose", "handle: Ref(string) ->", **_HOST)(_close_stack)
not_differentiable("Stack", "StackPush", "StackPop", "StackClose")
