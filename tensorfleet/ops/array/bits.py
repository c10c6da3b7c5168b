"""Looking at a tensor's bits: other types over the same bytes, and numbers and shapes that must not be."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape, as_shape
from tensorfleet.base.types import Array, ArrayModule, ShapeLike, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.kernel_types import Check
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable, op
from tensorfleet.kernels.arrays import is_numpy
from tensorfleet.ops.array.shape import bracketed
from tensorfleet.ops.common import UNKNOWN, same_as_input
from tensorfleet.ops.samples import case

_BITS = (
    "{bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, uint64, int8, int16, complex64, "
    "complex128, qint8, quint8, qint16, quint16, qint32}"
)


def _bitcast_shape(op: Operation) -> TensorShape:
    dims, old, new = op._inputs[0].shape._d, op._attrs["T"].size, op._attrs["type"].size
    if dims is None:
        return UNKNOWN
    if old == new:
        return op._inputs[0].shape
    if old > new:
        return TensorShape._of((*dims, old // new))
    if not dims or dims[-1] not in (None, new // old):
        raise ValueError(
            f"Cannot bitcast due to shape. {dims[-1] if dims else '[]'} does not match {new // old}"
        )
    return TensorShape._of(dims[:-1])


@op(
    "Bitcast",
    "input: T -> output: type",
    f"T: {_BITS}; type: {_BITS}",
    shape=_bitcast_shape,
    examples=[
        case(np.array([1.0, -2.0], np.float32), type="int32"),
        case(np.array([1.0], np.float64), type="uint8"),
        case(np.arange(8, dtype=np.uint8).reshape(2, 4), type="float"),
        case(np.array([1 + 2j, 3j], np.complex64), type="int32"),
        case(np.array([1 + 2j, 3j], np.complex64), type="int8"),
        case(np.arange(4, dtype=np.int32).reshape(2, 2), type="complex64"),
    ],
)
def _bitcast(xp: ArrayModule, x: Array, *, type: DType) -> Array:
    new = np.dtype(type.np_dtype)
    old = np.dtype(x.dtype)
    if old.itemsize < new.itemsize and (not x.shape or x.shape[-1] != new.itemsize // old.itemsize):
        raise errors.invalid(f"Cannot bitcast from {old} to {new}: shape {list(x.shape)}")
    if not is_numpy(xp):
        from tensorfleet.kernels.xla import lax

        if "c" in (old.kind, new.kind) and old != new:
            result: Array = _bitcast_complex(xp, x, old, new)
            return result
        return lax.bitcast_convert_type(x, new)
    if old.itemsize > new.itemsize:
        shape: tuple[int, ...] = (*x.shape, old.itemsize // new.itemsize)
    else:
        shape = x.shape if old.itemsize == new.itemsize else x.shape[:-1]
    return np.ascontiguousarray(x).reshape(-1).view(new).reshape(shape)


def _bitcast_complex(xp: ArrayModule, x: Array, old: np.dtype[Any], new: np.dtype[Any]) -> Any:
    """From or to complex numbers, by way of bytes: XLA casts only the bits of real ones."""
    from tensorfleet.kernels.xla import lax

    if old.kind == "c":
        x = xp.stack([x.real, x.imag], -1)
    raw = lax.bitcast_convert_type(x, np.uint8)
    dims = x.shape[:-1] if old.kind == "c" else x.shape
    if old.itemsize > new.itemsize:
        dims = (*dims, old.itemsize // new.itemsize)
    elif old.itemsize < new.itemsize:
        dims = dims[:-1]
    if new.itemsize == 1:
        return raw.reshape(dims).astype(np.uint8).view(new)
    if new.kind != "c":
        return lax.bitcast_convert_type(raw.reshape((*dims, new.itemsize)), new)
    half = np.dtype(f"f{new.itemsize // 2}")
    pair = lax.bitcast_convert_type(raw.reshape((*dims, 2, half.itemsize)), half)
    return lax.complex(pair[..., 0], pair[..., 1])


not_differentiable("Bitcast")


@export("bitcast")
def bitcast(input: TensorLike, type: TensorLike, name: str | None = None) -> Tensor:
    """The same bytes read as another type; a size difference adds or takes the last dimension."""
    return apply("Bitcast", input, type=type, name=name)


def _what_is_wrong(x: Array) -> str:
    nan, inf = bool(np.isnan(x).any()), bool(np.isinf(x).any())
    return "Inf and NaN" if nan and inf else "NaN" if nan else "Inf"


@op(
    "CheckNumerics",
    "tensor: T -> output: T",
    "T: floating; message: string",
    shape=same_as_input,
    examples=[case(np.array([1.0, -2.0], np.float32), message="m"), case(np.float64(3.0), message="")],
)
def _check_numerics(xp: ArrayModule, x: Array, *, message: bytes, check: Check) -> Array:
    check(xp.isfinite(x), lambda: f"{message.decode()} : Tensor had {_what_is_wrong(x)} values")
    return x


@gradient("CheckNumerics")
def _check_numerics_grad(op: Operation, dy: Tensor) -> Tensor:
    text = op._attrs["message"].decode()
    return apply(
        "CheckNumerics",
        dy,
        message=f"Not a number (NaN) or infinity (Inf) values detected in gradient. {text}",
    )


@export("check_numerics", "debugging.check_numerics")
def check_numerics(tensor: TensorLike, message: str, name: str | None = None) -> Tensor:
    """The same tensor; running it fails with `message` when it holds a NaN or an infinity."""
    return apply("CheckNumerics", tensor, message=message, name=name)


def _ensured(op: Operation) -> TensorShape:
    shape, wanted = op._inputs[0].shape, op._attrs["shape"]
    if not shape.is_compatible_with(wanted):
        raise ValueError(f"Shapes {shape} and {wanted} are incompatible")
    return shape.merge_with(wanted)


@op(
    "EnsureShape",
    "input: T -> output: T",
    "shape: shape; T: type",
    shape=_ensured,
    examples=[
        case(np.ones((2, 3), np.float32), shape=TensorShape([None, 3])),
        case(np.float32(1.0), shape=TensorShape([])),
    ],
)
def _ensure_shape(xp: ArrayModule, x: Array, *, shape: TensorShape, op: Operation) -> Array:
    if not shape.is_compatible_with(x.shape):
        raise errors.InvalidArgumentError(
            None,
            op,
            f"Shape of tensor {op._inputs[0].op.name} {bracketed(x.shape)} is not compatible with expected "
            f"shape {bracketed(shape.as_list())}.",
        )
    return x


gradient("EnsureShape")(lambda op, dy: dy)


@export("ensure_shape")
def ensure_shape(x: TensorLike, shape: ShapeLike, name: str | None = None) -> Tensor:
    """The same value; running it fails unless its shape fits `shape`, which becomes known."""
    return apply("EnsureShape", x, shape=as_shape(shape), name=name)
