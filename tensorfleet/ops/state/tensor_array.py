"""`tf.TensorArray`: tensors of one type, written and read by position, as loops do."""

from __future__ import annotations

from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape, as_shape
from tensorfleet.base.types import Array, DTypeLike, ShapeLike, TensorLike
from tensorfleet.graph.apply import apply, apply_list, apply_op
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient
from tensorfleet.graph.scopes import colocate_with, control_dependencies, name_scope
from tensorfleet.ops.array.shape import shape
from tensorfleet.ops.state import tensor_array_ops  # noqa: F401, its ops are used below


@export("TensorArray")
class TensorArray:
    """An array of tensors. Methods that change it return the array to use from then on.

    Each element may be written once, and read once unless `clear_after_read` is False. With `dynamic_size`,
    writing beyond the end makes it longer.
    """

    def __init__(
        self,
        dtype: DTypeLike,
        size: TensorLike = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Tensor | None = None,
        flow: Tensor | None = None,
        infer_shape: bool = True,
        element_shape: ShapeLike = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        if handle is not None and tensor_array_name:
            raise ValueError("Cannot construct with both handle and tensor_array_name")
        if handle is not None and not isinstance(handle, Tensor):
            raise TypeError("Handle must be a Tensor")
        if handle is None and size is None:
            raise ValueError("Size must be provided if handle is not provided")
        for value, what in (
            (size, "size"),
            (dynamic_size, "dynamic_size"),
            (clear_after_read, "clear_after_read"),
        ):
            if handle is not None and value is not None:
                raise ValueError(f"Cannot provide both a handle and {what} at the same time")
        if handle is not None and element_shape is not None:
            raise ValueError("Cannot provide both a handle and element_shape at the same time")
        self._dtype = dtypes.as_dtype(dtype).base_dtype
        self._dynamic_size = bool(dynamic_size)
        self._size = size
        self._infer_shape = infer_shape or element_shape is not None
        # Shared by all arrays that come from this one: a shape that one of them learns, the others know.
        self._shapes: list[TensorShape] = [] if element_shape is None else [as_shape(element_shape)]
        self._colocate_with_first_write_call = colocate_with_first_write_call
        with name_scope(name, "TensorArray", [handle, size, flow]) as scope:
            if handle is not None:
                self._handle = handle
                if flow is None:
                    raise ValueError("flow must be given with a handle")
                self._flow: Tensor = flow
                return
            known = self._shapes[0] if self._shapes else TensorShape(None)
            self._handle, self._flow = apply_list(
                "TensorArrayV3",
                size,
                dtype=self._dtype,
                element_shape=known,
                dynamic_size=self._dynamic_size,
                clear_after_read=clear_after_read is None or bool(clear_after_read),
                identical_element_shapes=self._infer_shape,
                tensor_array_name=tensor_array_name or "",
                name=scope,
            )

    flow = readonly("_flow", "A scalar that orders the operations on the array.")
    dtype = readonly("_dtype", "The type of the elements.")
    handle = readonly("_handle", "The reference to the array.")

    @property
    def element_shape(self) -> TensorShape:
        """The static shape of an element."""
        return self._shapes[0] if self._shapes else TensorShape(None)

    dynamic_size = readonly("_dynamic_size", "Whether writing beyond the end makes it longer.")

    def _learn(self, shape: TensorShape) -> None:
        if not self._infer_shape:
            return
        if self._shapes:
            if not shape.is_compatible_with(self._shapes[0]):
                raise ValueError(
                    f"Inconsistent shapes: saw {shape} but expected {self._shapes[0]} (and infer_shape=True)"
                )
            self._shapes[0] = self._shapes[0].merge_with(shape)
        elif shape.rank is not None:
            self._shapes.append(shape)

    def mark_used(self) -> None:
        """Does nothing: TensorFleet does not warn about arrays that are not used."""

    def identity(self) -> TensorArray:
        """The same array, with the control dependencies of where this is called."""
        return with_flow(self, apply("Identity", self._flow))

    def grad(self, source: str, flow: Tensor | None = None, name: str | None = None) -> TensorArray:
        """The array that collects the gradients of this one for the gradient computation `source`."""
        flow = self._flow if flow is None else flow
        with name_scope(name, "TensorArrayGrad", [self._handle]), colocate_with(self._handle):
            handle, _ = apply_list("TensorArrayGradV3", self._handle, flow, source=source)
            with control_dependencies([handle]):
                flow = apply("Identity", flow, name="gradient_flow")
            gradients = TensorArray(self._dtype, handle=handle, flow=flow, infer_shape=self._infer_shape)
            gradients._shapes = list(self._shapes)
            return gradients

    def read(self, index: TensorLike, name: str | None = None) -> Tensor:
        """The element at `index`."""
        with colocate_with(self._handle):
            value = apply("TensorArrayReadV3", self._handle, index, self._flow, dtype=self._dtype, name=name)
        if self._shapes:
            value.set_shape(self._shapes[0])
        return value

    def write(self, index: TensorLike, value: TensorLike, name: str | None = None) -> TensorArray:
        """Sets the element at `index`."""
        with name_scope(name, "TensorArrayWrite", [self._handle, index, value]):
            value = to_tensor(value, None if isinstance(value, Tensor) else self._dtype, name="value")
            _check_type(self, value)
            self._learn(value.shape)
            with colocate_with(self._handle):
                return with_flow(self, apply("TensorArrayWriteV3", self._handle, index, value, self._flow))

    def stack(self, name: str | None = None) -> Tensor:
        """All elements as one tensor, along a new first dimension."""
        with name_scope(name, "TensorArrayStack", [self._handle]), colocate_with(self._handle):
            return self.gather(apply("Range", 0, self.size(), 1, name="range"), name=name)

    def gather(self, indices: TensorLike, name: str | None = None) -> Tensor:
        """The elements at `indices` as one tensor, along a new first dimension."""
        known = self.element_shape
        with colocate_with(self._handle):
            value = apply(
                "TensorArrayGatherV3",
                self._handle,
                indices,
                self._flow,
                dtype=self._dtype,
                element_shape=known,
                name=name,
            )
        if known.rank is not None:
            count = value._op._inputs[1].shape
            first = count.as_list()[0] if count.rank == 1 else None
            value.set_shape(TensorShape([first]).concatenate(known))
        return value

    def concat(self, name: str | None = None) -> Tensor:
        """All elements as one tensor, one after another along their first dimension."""
        known = self.element_shape
        rest = known[1:] if known.rank else TensorShape(None)
        with colocate_with(self._handle):
            value, _ = apply_list(
                "TensorArrayConcatV3",
                self._handle,
                self._flow,
                dtype=self._dtype,
                element_shape_except0=rest,
                name=name,
            )
        if known.rank:
            value.set_shape(TensorShape([None]).concatenate(rest))
        return value

    def unstack(self, value: TensorLike, name: str | None = None) -> TensorArray:
        """Sets the elements to the slices of `value` along its first dimension."""
        with name_scope(name, "TensorArrayUnstack", [self._handle, value]):
            value = to_tensor(value, None if isinstance(value, Tensor) else self._dtype, name="value")
            count = shape(value)[0]
            return self.scatter(apply("Range", 0, count, 1, name="range"), value, name=name)

    def scatter(self, indices: TensorLike, value: TensorLike, name: str | None = None) -> TensorArray:
        """Sets the elements at `indices` to the slices of `value` along its first dimension."""
        with name_scope(name, "TensorArrayScatter", [self._handle, value, indices]):
            value = to_tensor(value, None if isinstance(value, Tensor) else self._dtype, name="value")
            _check_type(self, value)
            self._learn(value.shape[1:] if value.shape.rank else TensorShape(None))
            with colocate_with(self._handle):
                return with_flow(
                    self, apply("TensorArrayScatterV3", self._handle, indices, value, self._flow)
                )

    def split(self, value: TensorLike, lengths: TensorLike, name: str | None = None) -> TensorArray:
        """Sets the elements to consecutive pieces of `value`, of the given lengths."""
        with name_scope(name, "TensorArraySplit", [self._handle, value, lengths]):
            value = to_tensor(value, None if isinstance(value, Tensor) else self._dtype, name="value")
            if isinstance(lengths, Tensor) and lengths.dtype != dtypes.int64:
                lengths = apply("Cast", lengths, DstT="int64")
            lengths = to_tensor(lengths, None if isinstance(lengths, Tensor) else dtypes.int64)
            _check_type(self, value)
            if self._infer_shape:
                self._learn(_piece(value.shape, constant_value(lengths)))
            with colocate_with(self._handle):
                return with_flow(self, apply("TensorArraySplitV3", self._handle, value, lengths, self._flow))

    def size(self, name: str | None = None) -> Tensor:
        """How many elements there are."""
        if not self._dynamic_size and self._size is not None:
            return to_tensor(self._size, dtype=dtypes.int32)
        with colocate_with(self._handle):
            return apply("TensorArraySizeV3", self._handle, self._flow, name=name)

    def close(self, name: str | None = None) -> Operation:
        """Frees the elements."""
        with colocate_with(self._handle):
            return apply_op("TensorArrayCloseV3", self._handle, name=name)


def _check_type(array: TensorArray, value: Tensor) -> None:
    if value.dtype.base_dtype != array.dtype:
        raise ValueError(
            f"TensorArray dtype is {array.dtype.name} but the value given has dtype {value.dtype.base_dtype.name}; "
            "use tf.cast."
        )


def _piece(shape: TensorShape, lengths: Array | None) -> TensorShape:
    if not shape.rank or lengths is None or not lengths.size or lengths.min() != lengths.max():
        return TensorShape(None)
    return TensorShape([int(lengths.min())]).concatenate(shape[1:])


def with_flow(array: TensorArray, flow: Tensor) -> TensorArray:
    """The same array, after the operations that `flow` stands for."""
    after = TensorArray(
        array._dtype,
        handle=array.handle,
        flow=flow,
        infer_shape=array._infer_shape,
        colocate_with_first_write_call=array._colocate_with_first_write_call,
    )
    after._shapes = array._shapes
    after._dynamic_size = array._dynamic_size
    after._size = array._size
    return after


# -- gradients ----------------------------------------------------------------------------------------


@export("python.ops.tensor_array_grad._GetGradSource")
def _source(tensor: Tensor) -> str:
    """The name of the gradient computation that a gradient belongs to: its innermost `gradients` scope."""
    parts = tensor.name.split("/")
    places = [i for i, part in enumerate(parts) if part.startswith("gradients")]
    if not places:
        raise ValueError(
            "Expected op/tensor name to start with gradients (excluding scope), got: "
            f"{tensor.name}. This means that a tf.gradients op with this op in its dependency path has a custom name "
            "that does not start with 'gradients'."
        )
    return "/".join(parts[: places[-1] + 1])


def _gradient_array(op: Operation, grad: Tensor, flow: Tensor, dtype: DTypeLike) -> TensorArray:
    array = TensorArray(dtype, handle=op._inputs[0], flow=flow)
    return array.grad(source=_source(grad), flow=flow)


@gradient("TensorArrayReadV3")
def _read_grad(op: Operation, grad: Tensor) -> list[Tensor | None]:
    array = _gradient_array(op, grad, op._inputs[2], op._attrs["dtype"])
    return [None, None, array.write(op._inputs[1], grad).flow]


@gradient("TensorArrayWriteV3")
def _write_grad(op: Operation, flow: Tensor) -> list[Tensor | None]:
    array = _gradient_array(op, flow, flow, op._attrs["T"])
    grad = array.read(op._inputs[1])
    grad.set_shape(op._inputs[2].shape)
    return [None, None, grad, flow]


@gradient("TensorArrayGatherV3")
def _gather_grad(op: Operation, grad: Tensor) -> list[Tensor | None]:
    array = _gradient_array(op, grad, op._inputs[2], op._attrs["dtype"])
    return [None, None, array.scatter(op._inputs[1], grad).flow]


@gradient("TensorArrayScatterV3")
def _scatter_grad(op: Operation, flow: Tensor) -> list[Tensor | None]:
    array = _gradient_array(op, flow, flow, op._attrs["T"])
    return [None, None, array.gather(op._inputs[1]), flow]


@gradient("TensorArrayConcatV3")
def _concat_grad(op: Operation, grad: Tensor, _: Tensor) -> list[Tensor | None]:
    array = _gradient_array(op, grad, op._inputs[1], op._attrs["dtype"])
    return [None, array.split(grad, op._outputs[1]).flow]


@gradient("TensorArraySplitV3")
def _split_grad(op: Operation, flow: Tensor) -> list[Tensor | None]:
    array = _gradient_array(op, flow, flow, op._attrs["T"])
    whole = array.concat()
    maker = op._inputs[0]._op
    if maker.type == "TensorArrayV3" and maker._attrs["dynamic_size"]:
        whole = whole[: apply("Shape", op._inputs[1])[0]]  # elements may have been added since
    return [None, whole, None, flow]
