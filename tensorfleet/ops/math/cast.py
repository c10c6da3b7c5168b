"""Changing the element type."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.naming import export
from tensorfleet.base.types import Array, ArrayModule, DTypeLike, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.kernels import lane_kernels
from tensorfleet.kernels.arrays import is_numpy
from tensorfleet.ops.common import same_as_input
from tensorfleet.ops.elementwise import COMPLEX, INTS, POSITIVE, REAL, is_float, on_values, wide
from tensorfleet.ops.samples import case


@op(
    "Cast",
    "x: SrcT -> y: DstT",
    "SrcT: type; DstT: type; Truncate: bool = false",
    shape=same_as_input,
    joined=lane_kernels.cast,
    examples=[
        case(REAL, DstT=dtypes.int32, grad=False),
        case(INTS, DstT=dtypes.float64),
        case(POSITIVE, DstT=dtypes.float32),
        case(REAL, DstT=dtypes.bool_, grad=False),
        case(INTS, DstT=dtypes.uint8),
        case(COMPLEX, DstT=dtypes.float32),
        case(REAL, DstT=dtypes.complex64),
        case(np.array([True, False]), DstT=dtypes.int64),
    ],
)
def _cast(xp: ArrayModule, x: Array, *, DstT: dtypes.DType) -> Array:
    target = DstT.np_dtype
    if x.dtype == target:
        return x
    if x.dtype.kind == "O" or target.kind == "O":
        raise errors.UnimplementedError(
            None,
            None,
            f"Cast {_c_name(x.dtype)} to {_c_name(target)} is not supported. Use tf.string_to_number or "
            "tf.as_string.",
        )
    if x.dtype.kind == "c" and target.kind not in "cb":
        x = xp.real(x)
    if target.kind in "iu" and is_float(x):
        return _to_whole(xp, x, target)
    return x.astype(target)


def _to_whole(xp: ArrayModule, x: Array, target: np.dtype[Any]) -> Array:
    """Drops fractions, and takes numbers out of range to where an x86 processor takes them."""
    if target == np.uint64:
        return x.astype(target)
    if target not in (np.int32, np.int64):
        return _to_whole(xp, x, np.dtype(np.int64)).astype(target)
    if is_numpy(xp):
        return x.astype(target)
    lowest = np.iinfo(target).min
    wide_x = wide(x)
    return xp.where((wide_x >= lowest) & (wide_x < -float(lowest)), wide_x.astype(target), lowest)


def _c_name(dtype: np.dtype[Any]) -> str:
    name = "string" if dtype.kind == "O" else str(dtype)
    return {"float32": "float", "float64": "double", "float16": "half"}.get(name, name)


_SMOOTH = {
    dtypes.float16,
    dtypes.float32,
    dtypes.float64,
    dtypes.bfloat16,
    dtypes.complex64,
    dtypes.complex128,
}


@gradient("Cast")
def _cast_grad(op: Operation, dy: Tensor) -> Tensor | None:
    source = op.inputs[0].dtype.base_dtype
    if source in _SMOOTH and dy.dtype.base_dtype in _SMOOTH:
        back: Tensor = cast(dy, source)
        return back
    return None


@export("dtypes.cast", "cast")
def cast(x: TensorLike, dtype: DTypeLike, name: str | None = None) -> Any:
    """`x` with elements of another type; the same tensor when it has that type already."""
    base = dtypes.as_dtype(dtype).base_dtype
    if isinstance(x, Tensor) and x.dtype == base:
        return x
    with name_scope(name, "Cast", [x] if not isinstance(x, IndexedSlices) else [x.values]) as scope:
        if isinstance(x, IndexedSlices):
            return IndexedSlices(cast(x.values, base, name=scope), x.indices, x.dense_shape)
        sparse = on_values(x, lambda values: cast(values, base, name=scope))
        if sparse is not None:
            return sparse
        tensor = to_tensor(x, name="x")
        if tensor.dtype.base_dtype == base:
            return tensor
        return apply("Cast", tensor, DstT=base, name=scope)


def _converter(dtype: dtypes.DType, default: str) -> Any:
    def convert(x: Any, name: str = default) -> Any:
        return cast(x, dtype, name=name)

    convert.__name__ = convert.__qualname__ = f"to_{dtype.name}"
    convert.__doc__ = f"`x` with elements of type {dtype.name}."
    return convert


to_float = export("to_float")(_converter(dtypes.float32, "ToFloat"))
to_double = export("to_double")(_converter(dtypes.float64, "ToDouble"))
to_int32 = export("to_int32")(_converter(dtypes.int32, "ToInt32"))
to_int64 = export("to_int64")(_converter(dtypes.int64, "ToInt64"))
to_bfloat16 = export("to_bfloat16")(_converter(dtypes.bfloat16, "ToBFloat16"))
to_complex64 = export("to_complex64")(_converter(dtypes.complex64, "ToComplex64"))
to_complex128 = export("to_complex128")(_converter(dtypes.complex128, "ToComplex128"))


@export("dtypes.saturate_cast", "saturate_cast")
def saturate_cast(value: TensorLike, dtype: DTypeLike, name: str | None = None) -> Tensor:
    """Casts after clipping to what the new type can hold, so that nothing wraps around."""
    with name_scope(name, "saturate_cast", [value]) as scope:
        value = to_tensor(value, name="value")
        target = dtypes.as_dtype(dtype).base_dtype
        if value.dtype.min < target.min:
            value = apply("Maximum", value, _inside(target.min, value, "min"))
        if value.dtype.max > target.max:
            value = apply("Minimum", value, _inside(target.max, value, "max"))
        inside: Tensor = cast(value, target, name=scope)
        return inside


def _inside(limit: int, like: Tensor, name: str) -> Tensor:
    """`limit` in the type of `like`, rounded toward zero where it has to be rounded."""
    kind = like.dtype.as_numpy_dtype
    bound = kind(limit)
    if (
        isinstance(limit, int)
        and like.dtype.is_floating
        and np.isfinite(bound)
        and abs(int(bound)) > abs(limit)
    ):
        bound = np.nextafter(bound, kind(0))
    return to_tensor(np.asarray(bound), like.dtype.base_dtype, name=name)
