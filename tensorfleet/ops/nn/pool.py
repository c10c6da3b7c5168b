"""Pooling: maxima and averages over windows, and their gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.shapes import TensorShape, unknown_shape
from tensorfleet.base.types import Array, ArrayModule
from tensorfleet.graph.apply import apply, apply_any
from tensorfleet.graph.kernel_types import Kernel
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, op
from tensorfleet.kernels import pool as pool_kernels
from tensorfleet.ops.array.constructors import zeros_like
from tensorfleet.ops.common import ints, same_as_input, shape_given_by, static_value
from tensorfleet.ops.nn.shapes import dims_of, of_rank, shape_of
from tensorfleet.ops.samples import case

_X = np.random.RandomState(0).permutation(48).reshape(1, 4, 6, 2).astype(np.float32)
_Y = _X[:, 1::2, 1::2].copy()
_MAX = _X.reshape(1, 2, 2, 3, 2, 2).max((2, 4))
_V = np.random.RandomState(1).permutation(48).reshape(1, 2, 4, 3, 2).astype(np.float32)
_W: dict[str, Any] = dict(ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
_OVERLAPPING: dict[str, Any] = dict(ksize=[1, 3, 2, 1], strides=[1, 1, 2, 1], padding="VALID")
_W3: dict[str, Any] = dict(ksize=[1, 2, 2, 2, 1], strides=[1, 2, 1, 1, 1], padding="SAME")
_SQUARE = "ksize: list(int) >= 4; strides: list(int) >= 4; padding: string(SAME|VALID); "
_EXPLICIT = "ksize: list(int) >= 4; strides: list(int) >= 4; padding: string(SAME|VALID|EXPLICIT); "
_EXPLICIT += "explicit_paddings: list(int) = []; "
_FLAT = "data_format: string(NHWC|NCHW) = NHWC"
_ANY_FLAT = "data_format: string(NHWC|NCHW|NCHW_VECT_C) = NHWC"
_SOLID = "data_format: string(NDHWC|NCDHW) = NDHWC"
_MAXED = "{half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16}"
_NARROW = "{half, bfloat16, float}"
_GRAD = "orig_input: T, orig_output: T, grad: T -> output: T"


def _pooled(op: Operation) -> TensorShape:
    names = ("ksize", "strides", "padding", "data_format", "explicit_paddings")
    attrs = {n: op._attrs[n] for n in names if n in op._attrs}
    return shape_of(pool_kernels.pool_shape(dims_of(op._inputs[0].shape), **attrs))


def _like_input(op: Operation) -> TensorShape:
    return of_rank(op._inputs[0].shape, 5 if "3D" in op.type else 4)


def _like_output(op: Operation) -> TensorShape:
    """What pooling gave: neither of the other inputs may be of another shape than the pool's."""
    _like_input(op).merge_with(op._inputs[2].shape)
    pooled = _pooled_by_inputs(op, 3) if "V2" in op.type else _pooled(op)
    return op._inputs[1].shape.merge_with(pooled)


def _options(op: Operation) -> dict[str, Any]:
    names = ("ksize", "strides", "padding", "data_format", "explicit_paddings")
    return {n: op._attrs[n] for n in names if n in op._attrs}


def _kernel(function: Kernel, sizes: int | None = None) -> Kernel:
    """A kernel with the attributes of most pools; argument `sizes`, if any, is a shape."""

    def call(
        xp: ArrayModule,
        *arrays: Array,
        ksize: list[int],
        strides: list[int],
        padding: bytes,
        data_format: bytes,
    ) -> Array:
        given = (ints(a) if i == sizes else a for i, a in enumerate(arrays))
        if len(ksize) == 5:
            _check_solid_window(ksize, data_format)
        result: Array = function(
            xp, *given, ksize=ksize, strides=strides, padding=padding, data_format=data_format
        )
        return result

    return call


def _check_solid_window(ksize: list[int], data_format: bytes) -> None:
    """Refuses windows over the batch or the depth of volumes."""
    for axis, what in ((0, "batch"), (4 if data_format == b"NDHWC" else 1, "depth")):
        if ksize[axis] != 1:
            text = f"Pooling is not yet supported on the {what} dimension."
            raise errors.UnimplementedError(None, None, text)


def _check_window(ksize: list[int], strides: list[int], data_format: bytes, shape: tuple[int, ...]) -> None:
    """Refuses windows over the batch, and those over the depth that TensorFlow refuses."""
    depth = 3 if data_format == b"NHWC" else 1
    wide, over = ksize[depth], any(k > 1 for i, k in enumerate(ksize) if i not in (0, depth))
    message = None
    if ksize[0] != 1 or strides[0] != 1:
        message = "Pooling is not yet supported on the batch dimension."
    elif wide > 1 and over:
        message = "MaxPooling supports exactly one of pooling across depth or pooling across width/height."
    elif wide > 1 and wide != strides[depth]:
        message = "Depthwise max pooling requires the depth window to equal the depth stride."
    elif wide > 1 and shape[depth] % wide:
        message = "Depthwise max pooling requires the depth window to evenly divide the input depth."
    if message is not None:
        raise errors.UnimplementedError(None, None, message)


def _explicit_kernel(function: Kernel) -> Kernel:
    """A kernel that also takes explicit paddings."""

    def call(
        xp: ArrayModule,
        *arrays: Array,
        ksize: list[int],
        strides: list[int],
        padding: bytes,
        explicit_paddings: list[int],
        data_format: bytes,
    ) -> Array:
        _check_window(ksize, strides, data_format, arrays[0].shape)
        result: Array = function(
            xp,
            *arrays,
            ksize=ksize,
            strides=strides,
            padding=padding,
            explicit_paddings=explicit_paddings,
            data_format=data_format,
        )
        return result

    return call


# -- maxima ------------------------------------------------------------------------------------------

op(
    "MaxPool",
    "input: T -> output: T",
    f"T: {_MAXED} = float; {_EXPLICIT}{_ANY_FLAT}",
    shape=_pooled,
    examples=[case(_X, **_W), case(_X, **_OVERLAPPING), case(_X.astype(np.int32), **_W)],
)(_explicit_kernel(pool_kernels.max_pool))


@gradient("MaxPool")
def _max_pool_gradient(op: Operation, dy: Tensor) -> Tensor:
    return apply("MaxPoolGrad", op.inputs[0], op.outputs[0], dy, **_options(op))


op(
    "MaxPoolGrad",
    _GRAD,
    f"{_EXPLICIT}{_FLAT}; T: real = float",
    shape=_like_input,
    examples=[case(_X, _MAX, _Y, grad=False, **_W)],
)(_explicit_kernel(pool_kernels.max_pool_grad))


def _first_order(op: Operation, dz: Tensor, again: str) -> tuple[Tensor, Tensor, Tensor]:
    """The gradient of a pool's gradient: nothing flows to the values that only chose the maxima."""
    x, y, _ = op.inputs
    attrs = {k: v for k, v in _options(op).items() if k != "explicit_paddings"}
    return zeros_like(x), zeros_like(y), apply_any(again, x, y, dz, **attrs)


gradient("MaxPoolGrad")(lambda op, dz: _first_order(op, dz, "MaxPoolGradGrad"))


op(
    "MaxPoolGradGrad",
    _GRAD,
    f"{_SQUARE}{_FLAT}; T: real",
    shape=_like_output,
    examples=[case(_X, _MAX, _X + 1, grad=False, **_W)],
)(_kernel(pool_kernels.max_pool_grad_grad))


@gradient("MaxPoolGradGrad")
def _max_pool_grad_grad_gradient(op: Operation, dz: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    x, y, _ = op.inputs
    return zeros_like(x), zeros_like(y), apply("MaxPoolGrad", x, y, dz, **_options(op))


def _pooled_by_inputs(op: Operation, first: int = 1) -> TensorShape:
    ksize, strides = static_value(op, first), static_value(op, first + 1)
    if ksize is None or strides is None:
        return unknown_shape(4)
    attrs = dict(padding=op._attrs["padding"], data_format=op._attrs["data_format"])
    x = dims_of(op._inputs[0].shape)
    return shape_of(pool_kernels.pool_shape(x, ksize=ints(ksize), strides=ints(strides), **attrs))


_WINDOW = [np.array([1, 2, 2, 1], np.int32), np.array([1, 2, 2, 1], np.int32)]


@op(
    "MaxPoolV2",
    "input: T, ksize: int32[4,], strides: int32[4,] -> output: T",
    f"T: {_MAXED} = float; padding: string(SAME|VALID); {_ANY_FLAT}",
    shape=_pooled_by_inputs,
    static=["ksize", "strides"],
    examples=[case(_X, *_WINDOW, padding="VALID")],
)
def _max_pool_v2(
    xp: ArrayModule, x: Array, ksize: Array, strides: Array, *, padding: bytes, data_format: bytes
) -> Array:
    return pool_kernels.max_pool(xp, x, ksize=ints(ksize), strides=ints(strides), padding=padding)


@gradient("MaxPoolV2")
def _max_pool_v2_gradient(op: Operation, dy: Tensor) -> tuple[Tensor, None, None]:
    x, ksize, strides = op.inputs
    attrs = dict(padding=op.get_attr("padding"), data_format=op.get_attr("data_format"))
    return apply("MaxPoolGradV2", x, op.outputs[0], dy, ksize, strides, **attrs), None, None


_GRAD_V2 = "orig_input: T[4], orig_output: T, grad: T, ksize: int32[4,], strides: int32[4,] -> output: T"


@op(
    "MaxPoolGradV2",
    _GRAD_V2,
    f"padding: string(SAME|VALID); {_FLAT}; T: real = float",
    shape=_like_input,
    static=["ksize", "strides"],
    examples=[case(_X, _MAX, _Y, *_WINDOW, grad=False, padding="SAME")],
)
def _max_pool_grad_v2(
    xp: ArrayModule,
    x: Array,
    y: Array,
    dy: Array,
    ksize: Array,
    strides: Array,
    *,
    padding: bytes,
    data_format: bytes,
) -> Array:
    return pool_kernels.max_pool_grad(xp, x, y, dy, ksize=ints(ksize), strides=ints(strides), padding=padding)


@gradient("MaxPoolGradV2")
def _max_pool_grad_v2_gradient(op: Operation, dz: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
    x, y, _, ksize, strides = op.inputs
    attrs = dict(padding=op.get_attr("padding"), data_format=op.get_attr("data_format"))
    again = apply("MaxPoolGradGradV2", x, y, dz, ksize, strides, **attrs)
    return zeros_like(x), zeros_like(y), again, None, None


@op(
    "MaxPoolGradGradV2",
    _GRAD_V2,
    f"padding: string(SAME|VALID); {_FLAT}; T: real",
    shape=_like_output,
    static=["ksize", "strides"],
    examples=[case(_X, _MAX, _X, *_WINDOW, grad=False, padding="SAME")],
)
def _max_pool_grad_grad_v2(
    xp: ArrayModule,
    x: Array,
    y: Array,
    dz: Array,
    ksize: Array,
    strides: Array,
    *,
    padding: bytes,
    data_format: bytes,
) -> Array:
    return pool_kernels.max_pool_grad_grad(
        xp, x, y, dz, ksize=ints(ksize), strides=ints(strides), padding=padding
    )


@gradient("MaxPoolGradGradV2")
def _max_pool_grad_grad_v2_gradient(op: Operation, dz: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
    x, y, _, ksize, strides = op.inputs
    attrs = dict(padding=op.get_attr("padding"), data_format=op.get_attr("data_format"))
    back = apply("MaxPoolGradV2", x, y, dz, ksize, strides, **attrs)
    return zeros_like(x), zeros_like(y), back, None, None


def _argmax_shapes(op: Operation) -> list[TensorShape]:
    attrs = {n: op._attrs[n] for n in ("ksize", "strides", "padding")}
    shape = shape_of(pool_kernels.pool_shape(dims_of(op._inputs[0].shape), **attrs))
    return [shape, shape]


@op(
    "MaxPoolWithArgmax",
    "input: T -> output: T, argmax: Targmax",
    "ksize: list(int) >= 4; strides: list(int) >= 4; Targmax: index = int64; padding: string(SAME|VALID); "
    "include_batch_in_index: bool = false; T: real",
    shape=_argmax_shapes,
    examples=[case(_X, **_W), case(_X, Targmax=dtypes.int32, include_batch_in_index=True, **_OVERLAPPING)],
)
def _max_pool_with_argmax(
    xp: ArrayModule,
    x: Array,
    *,
    ksize: list[int],
    strides: list[int],
    Targmax: dtypes.DType,
    padding: bytes,
    include_batch_in_index: bool,
) -> tuple[Array, Array]:
    return pool_kernels.max_pool_with_argmax(
        xp,
        x,
        ksize=ksize,
        strides=strides,
        padding=padding,
        index_dtype=Targmax.np_dtype,
        include_batch_in_index=include_batch_in_index,
    )


@gradient("MaxPoolWithArgmax")
def _max_pool_with_argmax_gradient(op: Operation, dy: Tensor, _: Tensor) -> Tensor:
    attrs = {n: op._attrs[n] for n in ("ksize", "strides", "padding", "include_batch_in_index")}
    return apply("MaxPoolGradWithArgmax", op.inputs[0], dy, op.outputs[1], **attrs)


@op(
    "MaxPoolGradWithArgmax",
    "input: T[4], grad: T, argmax: Targmax -> output: T",
    f"{_SQUARE}include_batch_in_index: bool = false; Targmax: index; T: real",
    shape=same_as_input,
    examples=[case(_X, _Y, np.arange(12).reshape(1, 2, 3, 2) * 4, grad=False, **_W)],
)
def _max_pool_grad_with_argmax(
    xp: ArrayModule, x: Array, dy: Array, argmax: Array, *, include_batch_in_index: bool
) -> Array:
    return pool_kernels.max_pool_grad_with_argmax(
        xp, x, dy, argmax, include_batch_in_index=include_batch_in_index
    )


op(
    "MaxPool3D",
    "input: T -> output: T",
    f"{_SQUARE}{_SOLID}; T: {_NARROW}",
    shape=_pooled,
    examples=[case(_V, **_W3)],
)(_kernel(pool_kernels.max_pool))


gradient("MaxPool3D")(lambda op, dy: apply("MaxPool3DGrad", op.inputs[0], op.outputs[0], dy, **_options(op)))


op(
    "MaxPool3DGrad",
    "orig_input: TInput, orig_output: TInput, grad: T -> output: T",
    f"{_SQUARE}{_SOLID}; T: {_NARROW} = float; TInput: {_NARROW} = float",
    shape=_like_input,
    examples=[case(_V, _V, _V, grad=False, ksize=[1] * 5, strides=[1] * 5, padding="SAME")],
)(_kernel(pool_kernels.max_pool3d_grad))


gradient("MaxPool3DGrad")(lambda op, dz: _first_order(op, dz, "MaxPool3DGradGrad"))


op(
    "MaxPool3DGradGrad",
    _GRAD,
    f"{_SQUARE}{_SOLID}; T: real",
    shape=_like_output,
    examples=[case(_V, _V, _V, grad=False, ksize=[1] * 5, strides=[1] * 5, padding="SAME")],
)(_kernel(pool_kernels.max_pool_grad_grad))


@gradient("MaxPool3DGradGrad")
def _max_pool_3d_grad_grad_gradient(op: Operation, dz: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    x, y, _ = op.inputs
    return zeros_like(x), zeros_like(y), apply("MaxPool3DGrad", x, y, dz, **_options(op))


# -- averages ----------------------------------------------------------------------------------------


def _given_shape(rank: int) -> Callable[[Operation], TensorShape]:
    return lambda op: of_rank(shape_given_by(op, 0), rank)


def _average(
    kind: str, argument: str, layout: str, shape: tuple[int, ...], examples: Sequence[case], back: Any
) -> None:
    """The ops of the average and of its gradient, each the gradient of the other."""
    attrs = f"{_SQUARE}{layout}; T: floating"
    op(kind, f"{argument}: T -> output: T", attrs, shape=_pooled, examples=examples)(
        _kernel(pool_kernels.avg_pool)
    )
    op(
        f"{kind}Grad",
        "orig_input_shape: int32[1], grad: T -> output: T",
        attrs,
        shape=_given_shape(len(shape)),
        static=["orig_input_shape"],
        examples=[back],
    )(_kernel(pool_kernels.avg_pool_grad, 0))

    @gradient(kind)
    def _gradient(op: Operation, dy: Tensor) -> Tensor:
        return apply(f"{kind}Grad", apply("Shape", op.inputs[0]), dy, **_options(op))

    @gradient(f"{kind}Grad")
    def _gradient_of_gradient(op: Operation, dz: Tensor) -> tuple[Tensor, Tensor]:
        return apply("StopGradient", op.inputs[0]), apply_any(kind, dz, **_options(op))


_average(
    "AvgPool",
    "value",
    _FLAT,
    _X.shape,
    [case(_X, **_W), case(_X.astype(np.float64), **_OVERLAPPING)],
    case(np.array(_X.shape, np.int32), _Y, **_W),
)
_average(
    "AvgPool3D",
    "input",
    _SOLID,
    _V.shape,
    [case(_V, **_W3)],
    case(np.array(_V.shape, np.int32), np.ones((1, 1, 4, 3, 2), np.float32), **_W3),
)
