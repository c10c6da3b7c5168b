"""Complex numbers and their parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.types import Array, ArrayModule, TensorLike
from tensorfleet.graph.apply import apply, apply_any
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.kernel_types import Kernel
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.kernels import trigonometry as angles
from tensorfleet.kernels.arrays import is_numpy
from tensorfleet.ops.common import broadcast, same_as_input
from tensorfleet.ops.elementwise import COMPLEX, REAL, ROW, constant_like, unbroadcast, where
from tensorfleet.ops.samples import case

_WIDE = COMPLEX.astype(np.complex128)
_PART = "T: {complex64, complex128} = complex64; Tout: {float, double} = float"


def _part(name: str) -> Callable[[Kernel], Kernel]:
    examples = [case(COMPLEX), case(_WIDE, T=dtypes.complex128, Tout=dtypes.float64)]
    return op(name, "input: T -> output: Tout", _PART, shape=same_as_input, examples=examples)


@op(
    "Complex",
    "real: T, imag: T -> out: Tout",
    "T: {float, double} = float; Tout: {complex64, complex128} = complex64",
    shape=broadcast,
    examples=[case(REAL, ROW), case(REAL.astype(np.float64), np.float64(2), Tout=dtypes.complex128)],
)
def _complex(xp: ArrayModule, real: Array, imag: Array, *, Tout: dtypes.DType) -> Array:
    # Not real + 1j * imag: that would turn an infinite part into NaN.
    if xp is np:
        out = np.empty(np.broadcast_shapes(real.shape, imag.shape), Tout.np_dtype)
        out.real, out.imag = real, imag
        return out
    from tensorfleet.kernels.xla import lax

    return lax.complex(*xp.broadcast_arrays(real, imag))


@gradient("Complex")
def _complex_grad(op: Operation, dz: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, y = op.inputs
    kind = x.dtype.base_dtype
    return unbroadcast(x, y, apply("Real", dz, Tout=kind), apply("Imag", dz, Tout=kind))


@export("dtypes.complex", "complex")
def complex(real: TensorLike, imag: TensorLike, name: str | None = None) -> Tensor:
    """The complex numbers with these real and imaginary parts."""
    real = to_tensor(real, name="real")
    imag = to_tensor(imag, name="imag")
    with name_scope(name, "Complex", [real, imag]) as scope:
        kinds = (real.dtype.base_dtype, imag.dtype.base_dtype)
        if kinds == (dtypes.float64, dtypes.float64):
            return apply("Complex", real, imag, Tout=dtypes.complex128, name=scope)
        if kinds == (dtypes.float32, dtypes.float32):
            return apply("Complex", real, imag, Tout=dtypes.complex64, name=scope)
        raise TypeError(
            f"The `real` and `imag` components have incorrect types: {kinds[0].name} {kinds[1].name}. "
            "They must be consistent, and one of [tf.float32, tf.float64]"
        )


@_part("Real")
def _real(xp: ArrayModule, x: Array, *, Tout: dtypes.DType) -> Array:
    return xp.real(x).astype(Tout.np_dtype)


@gradient("Real")
def _real_grad(op: Operation, dy: Tensor) -> Tensor:
    return apply("Complex", dy, constant_like(0, dy), Tout=op.inputs[0].dtype.base_dtype)


@export("math.real", "real")
def real(input: TensorLike, name: str | None = None) -> Tensor:
    """The real part; real tensors come back as they are."""
    return _part_of("Real", input, name)


@_part("Imag")
def _imag(xp: ArrayModule, x: Array, *, Tout: dtypes.DType) -> Array:
    return xp.imag(x).astype(Tout.np_dtype)


@gradient("Imag")
def _imag_grad(op: Operation, dy: Tensor) -> Tensor:
    return apply("Complex", constant_like(0, dy), dy, Tout=op.inputs[0].dtype.base_dtype)


@export("math.imag", "imag")
def imag(input: TensorLike, name: str | None = None) -> Tensor:
    """The imaginary part; zeros for real tensors."""
    tensor = to_tensor(input, name="input")
    if tensor.dtype.is_complex:
        return _part_of("Imag", tensor, name)
    return apply("ZerosLike", tensor, name=name)


def _part_of(kind: str, value: Any, name: str | None) -> Tensor:
    with name_scope(name, kind, [value]) as scope:
        tensor = to_tensor(value, name="input")
        if not tensor.dtype.is_complex:
            return tensor
        return apply(kind, tensor, Tout=tensor.dtype.real_dtype, name=scope)


@_part("Angle")
def _angle(xp: ArrayModule, x: Array, *, Tout: dtypes.DType) -> Array:
    if is_numpy(xp) or x.dtype != np.complex64:
        return xp.angle(x).astype(Tout.np_dtype)
    return angles.arctan2(xp, xp.imag(x), xp.real(x)).astype(Tout.np_dtype)


@gradient("Angle")
def _angle_grad(op: Operation, dy: Tensor) -> Tensor:
    x = op.inputs[0]
    kind = x.dtype.base_dtype
    re, im = (apply_any(part, x, Tout=dy.dtype.base_dtype) for part in ("Real", "Imag"))
    rotated = apply("Reciprocal", apply("Complex", im, re, Tout=kind))
    return apply("Neg", apply("Complex", dy, constant_like(0, dy), Tout=kind)) * rotated


@export("math.angle", "angle")
def angle(input: TensorLike, name: str | None = None) -> Tensor:
    """The angle of a complex number; of a real one, pi when it is negative and else 0."""
    with name_scope(name, "Angle", [input]) as scope:
        tensor = to_tensor(input, name="input")
        if tensor.dtype.is_complex:
            return apply("Angle", tensor, Tout=tensor.dtype.real_dtype, name=scope)
        zeros = apply("ZerosLike", tensor)
        return where(apply("Less", tensor, constant_like(0, tensor)), constant_like(np.pi, tensor), zeros)


@op(
    "Conj",
    "input: T -> output: T",
    "T: {complex64, complex128, variant} = complex64",
    shape=same_as_input,
    examples=[case(COMPLEX), case(_WIDE)],
)
def _conj(xp: ArrayModule, x: Array) -> Array:
    return xp.conj(x)


gradient("Conj")(lambda op, dy: apply("Conj", dy))


@export("math.conj", "conj")
def conj(x: TensorLike, name: str | None = None) -> Tensor:
    """The complex conjugate; real tensors come back as they are."""
    if isinstance(x, Tensor) and not x.dtype.is_complex:
        return _numeric(x)
    with name_scope(name, "Conj", [x]) as scope:
        tensor = to_tensor(x, name="x")
        return apply("Conj", tensor, name=scope) if tensor.dtype.is_complex else _numeric(tensor)


def _numeric(x: Tensor) -> Tensor:
    if not (x.dtype.is_floating or x.dtype.is_integer):
        raise TypeError(f"Expected numeric or variant tensor, got dtype {x.dtype!r}")
    return x
