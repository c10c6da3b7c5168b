"""Data types of tensors: `tf.float32`, `tf.string`, ... and their reference twins."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

if TYPE_CHECKING:
    from tensorfleet.base.protos import DataType
    from tensorfleet.base.types import DTypeLike


# ml_dtypes has no types.
_finfo: Callable[[np.dtype], Any] = ml_dtypes.finfo
_iinfo: Callable[[np.dtype], Any] = ml_dtypes.iinfo


class DType:
    """The type of a tensor's elements. Compares equal to anything `as_dtype` turns into it."""

    __slots__ = ("_base", "_enum", "_name", "_np", "_ref")

    _enum: int
    _name: str
    _np: np.dtype
    _base: DType
    _ref: DType

    def __init__(self, type_enum: int) -> None:
        known = _BY_ENUM.get(int(type_enum))
        if known is None:
            raise TypeError(f"type_enum is not a valid types_pb2.DataType: {type_enum}")
        for slot in DType.__slots__:
            setattr(self, slot, getattr(known, slot))

    @classmethod
    def _define(cls, enum: int, name: str, np_type: type) -> DType:
        self = object.__new__(cls)
        self._enum, self._name, self._np = enum, name, np.dtype(np_type)
        self._base = self
        # References have the number of their type plus 100, as in types.proto.
        ref = object.__new__(cls)
        ref._enum, ref._name, ref._np = enum + 100, name + "_ref", self._np
        ref._base, ref._ref, self._ref = self, ref, ref
        _BY_ENUM[enum], _BY_ENUM[enum + 100] = self, ref
        return self

    @property
    def name(self) -> str:
        """The name as a string, such as `'float32'` or `'float32_ref'`."""
        return self._name

    @property
    def base_dtype(self) -> DType:
        """The type without its reference."""
        return self._base

    @property
    def real_dtype(self) -> DType:
        """The type of the real part: complex64 gives float32; others give their base."""
        return {complex64: float32, complex128: float64}.get(self._base, self._base)

    @property
    def _is_ref_dtype(self) -> bool:
        return self._enum > 100

    @property
    def _as_ref(self) -> DType:
        return self._ref

    @property
    def as_numpy_dtype(self) -> type[Any]:
        """The numpy scalar type that holds one element."""
        return self._np.type

    @property
    def np_dtype(self) -> np.dtype:
        """The numpy dtype object of arrays of this type."""
        return self._np

    @property
    def as_datatype_enum(self) -> DataType:
        """The number of this type in a `DataType` field."""
        return self._enum  # type: ignore[return-value]  # messages take and give plain numbers

    @property
    def is_bool(self) -> bool:
        """Whether this is bool."""
        return self._base is bool_

    @property
    def is_integer(self) -> bool:
        """Whether this is a non-quantized integer."""
        return not self.is_quantized and (self._np.kind in "iu" or self._name.startswith(("int", "uint")))

    @property
    def is_floating(self) -> bool:
        """Whether this is a real floating-point type."""
        return self._base in _FLOATING

    @property
    def is_complex(self) -> bool:
        """Whether this is a complex type."""
        return self._np.kind == "c"

    @property
    def is_quantized(self) -> bool:
        """Whether this is one of the quantized types."""
        return self._base in _QUANTIZED

    @property
    def is_unsigned(self) -> bool:
        """Whether this is an unsigned integer."""
        return self.is_integer and self._np.kind == "u"

    @property
    def is_numpy_compatible(self) -> bool:
        """Whether numpy has arrays of this type."""
        return self._base not in (resource, variant)

    @property
    def min(self) -> Any:
        """The lowest finite value."""
        return self._limits()[0]

    @property
    def max(self) -> Any:
        """The highest finite value."""
        return self._limits()[1]

    @property
    def limits(self) -> tuple[int, int]:
        """Lowest and highest value used for images of this type: (0, 1) for floating point."""
        ranges = {uint8: (0, 255), uint16: (0, 65535), int8: (0, 127), int16: (0, 32767)}
        ranges |= {int32: (0, 2**31 - 1), int64: (0, 2**63 - 1), bool_: (False, True)}
        if self._base in ranges:
            return ranges[self._base]
        if self.is_floating:
            return (0, 1)
        raise ValueError(f"{self._name} does not have defined limits.")

    def _limits(self) -> tuple[Any, Any]:
        if self.is_quantized or self._base in (bool_, string, complex64, complex128, resource, variant):
            if self.is_quantized:
                info = np.iinfo(self._np)
                return info.min, info.max
            raise TypeError(f"Cannot find minimum value of {self}.")
        if self.is_floating:
            finfo = _finfo(self._np)
            return self._np.type(finfo.min), self._np.type(finfo.max)
        iinfo = _iinfo(self._np)
        return iinfo.min, iinfo.max

    @property
    def size(self) -> int:
        """Bytes of one element; 1 where that has no meaning."""
        return 1 if self._np.kind == "O" else self._np.itemsize

    def is_compatible_with(self, other: DTypeLike) -> bool:
        """Whether a tensor of type `other` can be used where this is asked for."""
        kind: DType = as_dtype(other)
        return self._enum in (kind._enum, int(kind.base_dtype))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if other is None:
            return False
        if isinstance(other, DType):
            return self._enum == other._enum
        try:
            return self._enum == as_dtype(other)._enum  # type: ignore[arg-type]  # anything may be compared
        except TypeError:
            return False

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return self._enum

    def __int__(self) -> int:
        return self._enum

    def __str__(self) -> str:
        return f"<dtype: {self._name!r}>"

    def __repr__(self) -> str:
        return "tf." + self._name

    def __reduce__(self) -> tuple[Callable[[str], DType], tuple[str]]:
        return as_dtype, (self._name,)


_BY_ENUM: dict[int, DType] = {}
_define = DType._define

float32 = _define(1, "float32", np.float32)
float64 = double = _define(2, "float64", np.float64)
int32 = _define(3, "int32", np.int32)
uint8 = _define(4, "uint8", np.uint8)
int16 = _define(5, "int16", np.int16)
int8 = _define(6, "int8", np.int8)
string = _define(7, "string", object)
complex64 = _define(8, "complex64", np.complex64)
int64 = _define(9, "int64", np.int64)
bool_ = _define(10, "bool", np.bool_)
qint8 = _define(11, "qint8", np.int8)
quint8 = _define(12, "quint8", np.uint8)
qint32 = _define(13, "qint32", np.int32)
bfloat16 = _define(14, "bfloat16", ml_dtypes.bfloat16)
qint16 = _define(15, "qint16", np.int16)
quint16 = _define(16, "quint16", np.uint16)
uint16 = _define(17, "uint16", np.uint16)
complex128 = _define(18, "complex128", np.complex128)
float16 = half = _define(19, "float16", np.float16)
resource = _define(20, "resource", object)
variant = _define(21, "variant", object)
uint32 = _define(22, "uint32", np.uint32)
uint64 = _define(23, "uint64", np.uint64)
# TensorFlow 2's, which have a number in messages and no name in 1.15.
_LATER = "float8_e5m2 float8_e4m3fn float8_e4m3fnuz float8_e4m3b11fnuz float8_e5m2fnuz int4 uint4 int2 uint2 float4_e2m1fn"
for _number, _later in enumerate(_LATER.split(), 24):
    _define(_number, _later, getattr(ml_dtypes, _later))

_FLOATING = {float16, float32, float64, bfloat16}
_FLOATING |= {d for d in _BY_ENUM.values() if int(d) < 100 and d._name.startswith(("float8", "float4"))}
_QUANTIZED = {qint8, quint8, qint16, quint16, qint32}
QUANTIZED_DTYPES = frozenset(_QUANTIZED)

#: the repeated field of a TensorProto that holds elements of a type when they are not raw bytes
PROTO_FIELDS = dict.fromkeys(("int8", "uint8", "int16", "uint16", "int32"), "int_val")
PROTO_FIELDS |= dict.fromkeys((d._name for d in _QUANTIZED), "int_val")
PROTO_FIELDS |= {n: f"{n}_val" for n in ("int64", "bool", "uint32", "uint64", "string")}
PROTO_FIELDS |= {
    "float32": "float_val",
    "float64": "double_val",
    "float16": "half_val",
    "bfloat16": "half_val",
}
PROTO_FIELDS |= {"complex64": "scomplex_val", "complex128": "dcomplex_val"}

_BY_NAME = {d._name: d for d in _BY_ENUM.values()} | {"half": float16, "double": float64, "float": float32}
_BY_NAME |= {"half_ref": float16._as_ref, "double_ref": float64._as_ref, "float_ref": float32._as_ref}
BY_NUMPY = {d.np_dtype: d for d in _BY_ENUM.values() if not d._is_ref_dtype and d not in _QUANTIZED}
BY_NUMPY[np.dtype(object)] = string
# Python's types, names and numbers in one table: no key of one kind equals a key of another.
_KNOWN: dict[object, DType] = {float: float32, bool: bool_, object: string, int: int64, complex: complex128}
_KNOWN.update(_BY_NAME.items())
_KNOWN.update(_BY_ENUM.items())


def as_dtype(type_value: DTypeLike) -> DType:
    """Converts a `DType`, its number or name, or a numpy or Python type to a `DType`."""
    if isinstance(type_value, DType):
        return type_value
    try:
        known = _KNOWN.get(type_value)
    except TypeError:  # it cannot be hashed
        known = None
    if known is not None:
        return known
    try:
        np_type: np.dtype = np.dtype(type_value)  # type: ignore[arg-type]  # TypeError is expected
    except (TypeError, ValueError) as e:
        name = getattr(type_value, "dtype", None)
        if isinstance(name, str):
            return as_dtype(name)
        raise TypeError(f"Cannot convert value {type_value!r} to a TensorFlow DType.") from e
    if np_type.kind in "SU":
        return string
    result = BY_NUMPY.get(np_type) or BY_NUMPY.get(np_type.newbyteorder("="))
    if result is None:
        raise TypeError(f"Cannot convert value {type_value!r} to a TensorFlow DType.")
    return result
