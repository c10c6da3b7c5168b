"""Arrays as `TensorProto` and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet import dtypes
from tensorfleet.api import export
from tensorfleet.dtypes import DType
from tensorfleet.graph.checking import LARGEST_CONSTANT, check_tensor
from tensorfleet.graph.convert import make_array
from tensorfleet.shapes import TensorShape, as_shape

# Which repeated field holds the values of a type when they are not raw bytes.
_FIELDS = {
    "float32": "float_val",
    "float64": "double_val",
    "int32": "int_val",
    "int16": "int_val",
    "int8": "int_val",
    "uint8": "int_val",
    "uint16": "int_val",
    "qint8": "int_val",
    "quint8": "int_val",
    "qint16": "int_val",
    "quint16": "int_val",
    "qint32": "int_val",
    "int64": "int64_val",
    "bool": "bool_val",
    "uint32": "uint32_val",
    "uint64": "uint64_val",
    "string": "string_val",
    "float16": "half_val",
    "bfloat16": "half_val",
    "complex64": "scomplex_val",
    "complex128": "dcomplex_val",
}


def proto_of(value: Any) -> Any:
    """A `TensorProto` of an array, or of an (array, dtype) pair for types numpy cannot tell apart."""
    from tensorfleet.protos import TensorProto

    array, dtype = value if isinstance(value, tuple) else (value, None)
    array = np.asarray(array)
    kind: DType = dtype or dtypes.as_dtype(array.dtype)
    proto: Any = TensorProto(tensor_shape=TensorShape(array.shape).as_proto())
    proto.dtype = kind.as_datatype_enum
    if kind == dtypes.string:
        proto.string_val.extend(array.ravel().tolist())
        return proto
    field = _FIELDS[kind.name]
    if array.size == 1 and not kind.is_complex:
        item: Any = array.view(np.uint16).item() if field == "half_val" else array.item()
        getattr(proto, field).append(item)
        return proto
    proto.tensor_content = np.ascontiguousarray(array).tobytes()
    return proto


@export("make_ndarray")
def array_of(tensor: Any) -> np.ndarray:
    """The numpy array that a `TensorProto` holds."""
    kind = dtypes.as_dtype(tensor.dtype).base_dtype
    if kind.name not in _FIELDS:
        raise ValueError(f"A TensorProto cannot hold values of type {kind.name}.")
    count = check_tensor(tensor)
    shape = tuple(d.size for d in tensor.tensor_shape.dim)
    if tensor.tensor_content and kind != dtypes.string:
        if count * kind.np_dtype.itemsize != len(tensor.tensor_content):
            raise ValueError(
                f"{len(tensor.tensor_content)} bytes for a constant of {kind.name} with shape {shape}."
            )
        return np.frombuffer(tensor.tensor_content, kind.np_dtype).reshape(shape).copy()
    held = np.dtype(np.uint16) if kind in (dtypes.float16, dtypes.bfloat16) else kind.np_dtype
    if count * held.itemsize > LARGEST_CONSTANT:
        raise ValueError(f"A constant of {kind.name} with shape {shape} is too large.")
    values = list(getattr(tensor, _FIELDS[kind.name]))
    if kind.is_complex:
        pairs = np.array(values[: len(values) // 2 * 2], kind.real_dtype.np_dtype).reshape(-1, 2)
        values = list(pairs[:, 0] + 1j * pairs[:, 1])
    # A short list repeats its last value; an empty one is all zeros.
    last = values[-1] if values else b"" if kind == dtypes.string else 0
    flat = np.full(count, last, held)
    few = values[:count]
    flat[: len(few)] = few
    return flat.view(kind.np_dtype).reshape(shape)


def _filled(values: list, count: int) -> list:
    """Short lists repeat their last value; an empty one is all zeros."""
    if len(values) >= count:
        return values[:count]
    return values + [values[-1] if values else 0] * (count - len(values))


@export("make_tensor_proto")
def make_tensor_proto(
    values: Any,
    dtype: Any = None,
    shape: Any = None,
    verify_shape: bool = False,
    allow_broadcast: bool = False,
) -> Any:
    """A `TensorProto` of Python or numpy values."""
    kind = None if dtype is None else dtypes.as_dtype(dtype)
    array = make_array(values, kind)
    if shape is not None:
        dims = tuple(int(d) for d in as_shape(shape).as_list() if d is not None)
        if verify_shape and array.shape != dims:
            raise TypeError(f"Expected Tensor's shape: {dims}, got {array.shape}.")
        if array.size > int(np.prod(dims, dtype=np.int64)):
            raise ValueError(
                f"Too many elements provided. Needed at most {int(np.prod(dims))}, but received {array.size}"
            )
        array = np.array(_filled(array.ravel().tolist(), int(np.prod(dims))), array.dtype).reshape(dims)
    return proto_of((array, kind) if kind is not None else array)
