"""From Python values to tensors: dtype rules, numpy arrays, and conversions that users register."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import Dimension, TensorShape
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.operation import Operation, Tensor

if TYPE_CHECKING:
    from tensorfleet.base.types import DTypeLike, TensorLike

#: Called with a value and `dtype=`, `name=`, `as_ref=`; gives a Tensor, or NotImplemented to leave it to others.
ConversionFunction: TypeAlias = Callable[..., Any]
_REGISTERED: list[tuple[int, tuple[type, ...], ConversionFunction]] = []


@export("register_tensor_conversion_function")
def register_tensor_conversion_function(
    base_type: type | tuple[type, ...], conversion_func: ConversionFunction, priority: int = 100
) -> None:
    """Teaches `tf.convert_to_tensor` a type: `conversion_func(value, dtype, name, as_ref)`."""
    types = base_type if isinstance(base_type, tuple) else (base_type,)
    if not types or not all(isinstance(t, type) for t in types):
        raise TypeError("base_type must be a type or a tuple of types.")
    if not callable(conversion_func):
        raise TypeError("conversion_func must be callable.")
    _REGISTERED.append((priority, types, conversion_func))
    _REGISTERED.sort(key=lambda row: row[0])


@export("convert_to_tensor")
def convert_to_tensor(
    value: TensorLike,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    preferred_dtype: DTypeLike | None = None,
    dtype_hint: DTypeLike | None = None,
) -> Tensor:
    """Turns numbers, lists, numpy arrays, variables and tensors into a `tf.Tensor`."""
    hint = dtype_hint if dtype_hint is not None else preferred_dtype
    return to_tensor(value, dtype, name, hint)


def to_tensor(
    value: TensorLike,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    preferred: DTypeLike | None = None,
    as_ref: bool = False,
) -> Tensor:
    """`convert_to_tensor` with `as_ref`, for operations that take a variable itself."""
    wanted = None if dtype is None else dtypes.as_dtype(dtype)
    if isinstance(value, Tensor):
        if wanted is not None and not wanted.is_compatible_with(value.dtype):
            raise ValueError(
                f"Tensor conversion requested dtype {wanted.name} for Tensor with dtype "
                f"{value.dtype.name}: {str(value)!r}. Use tf.cast."
            )
        return value
    # By priority, and of equal ones in the order of registration, as TensorFlow documents it.
    for _, types, convert in _REGISTERED:
        if isinstance(value, types):
            result = _call(convert, value, wanted, name, preferred, as_ref)
            if result is NotImplemented:
                continue
            if not isinstance(result, Tensor):
                raise RuntimeError(f"Conversion function for {types} returned non-Tensor: {result!r}")
            if wanted is not None and not wanted.is_compatible_with(result.dtype):
                raise RuntimeError(
                    f"Conversion function for {types} returned incompatible dtype: "
                    f"requested = {wanted.name}, actual = {result.dtype.name}"
                )
            return result
    return _from_python(value, wanted, name, preferred)


def _call(
    convert: ConversionFunction,
    value: TensorLike,
    wanted: DType | None,
    name: str | None,
    preferred: DTypeLike | None,
    as_ref: bool,
) -> Any:
    if wanted is None and preferred is not None:
        try:
            result = convert(value, dtype=dtypes.as_dtype(preferred), name=name, as_ref=as_ref)
            if result is not NotImplemented:
                return result
        except (TypeError, ValueError):
            pass  # a preference only
    return convert(value, dtype=wanted, name=name, as_ref=as_ref)


def _from_python(
    value: TensorLike, wanted: DType | None, name: str | None, preferred: DTypeLike | None
) -> Tensor:
    from tensorfleet.graph.apply import add_const

    if isinstance(value, (list, tuple)) and contains_tensor(value):
        return _pack(value, wanted, name, preferred)
    if isinstance(value, (Operation, IndexedSlices)):
        raise TypeError(
            f"Can't convert {type(value).__name__} {value.name!r} to Tensor; pass one of its tensors."
        )
    if wanted is None and preferred is not None:
        try:
            return add_const(
                make_array(value, dtypes.as_dtype(preferred)), dtypes.as_dtype(preferred), name or "Const"
            )
        except (TypeError, ValueError):
            pass
    array = make_array(value, wanted)
    return add_const(array, wanted or dtypes.as_dtype(array.dtype), name or "Const")


def _pack(
    values: Sequence[TensorLike], wanted: DType | None, name: str | None, preferred: DTypeLike | None
) -> Tensor:
    """A list holding tensors becomes a Pack of its items; cast, where all are to have another type."""
    from tensorfleet.graph.apply import apply
    from tensorfleet.graph.scopes import name_scope

    dtype = wanted or _dtype_within(values)
    # TensorFlow casts the items if the caller names a type, and refuses mixed types if it does not.
    cast = dtype.base_dtype != _dtype_within(values).base_dtype
    with name_scope(name, "packed", None) as scope:
        items = []
        for i, item in enumerate(values):
            if isinstance(item, (list, tuple)) and contains_tensor(item):
                items.append(_pack(item, dtype, str(i), preferred))
            else:
                tensor = to_tensor(item, None if isinstance(item, Tensor) else dtype, name=str(i))
                if cast and tensor.dtype.base_dtype != dtype.base_dtype:
                    tensor = apply("Cast", tensor, DstT=dtype.base_dtype)
                if tensor.dtype.base_dtype != dtype.base_dtype:
                    raise TypeError(
                        f"Cannot convert a list containing a tensor of dtype {tensor.dtype} to {dtype} "
                        f"(Tensor is: {tensor!r})"
                    )
                items.append(tensor)
        return apply("Pack", items, name=scope)


def contains_tensor(value: Iterable[object]) -> bool:
    """Whether a nested list or tuple holds a tensor or a variable somewhere."""
    for item in value:
        if isinstance(item, Tensor) or hasattr(item, "_as_graph_element"):
            return True
        if isinstance(item, (list, tuple)) and contains_tensor(item):
            return True
    return False


def _dtype_within(values: Iterable[Any]) -> DType:
    for item in values:
        if isinstance(item, Tensor) or hasattr(item, "_as_graph_element"):
            dtype: DType = item.dtype.base_dtype
            return dtype
        if isinstance(item, (list, tuple)) and contains_tensor(item):
            return _dtype_within(item)
    raise AssertionError("no tensor inside")


def make_array(value: TensorLike, dtype: DType | None = None) -> np.ndarray:
    """A numpy array of `value` under TensorFlow's rules: float32 for floats, int32 for ints, bytes for text.

    With `dtype`, values that do not fit the type raise TypeError, as `tf.constant(1.5, tf.int32)` does.
    """
    if isinstance(value, (np.ndarray, np.generic)):
        return _from_numpy(np.asarray(value), dtype)
    if isinstance(value, (TensorShape, Dimension)):
        if dtype is None and isinstance(value, TensorShape) and value.rank == 0:
            dtype = dtypes.int32  # no dimension tells what a scalar's shape is made of
        if dtype is not None:
            _check_dimensions(value, dtype)
    value = _plain(value)
    if hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
        return _from_numpy(np.asarray(value), dtype)
    if dtype is not None and dtype.base_dtype == dtypes.string:
        return _strings(value)
    if dtype is None:
        return _guess(value)
    # NumPy would cut 1.5 to 1 without a word; TensorFlow refuses it.
    _check_fits(value, dtype)
    try:
        array = np.array(value, dtype=dtype.np_dtype)
    except OverflowError:
        return _wrapped(value).astype(dtype.np_dtype)
    except ValueError as e:
        raise _ragged(value, e) from e
    return array


def _wrapped(value: TensorLike) -> np.ndarray:
    """Integers of 64 bits, of which a narrower type keeps the lowest: so masks of bits are written as numbers."""
    wide = np.uint64 if np.min(np.array(value, object)) >= 0 else np.int64
    try:
        return np.array(value, wide)
    except OverflowError:
        raise OverflowError("Python int too large to convert to C long") from None


def _from_numpy(array: np.ndarray, dtype: DType | None) -> np.ndarray:
    # Strings are object arrays of bytes everywhere: NumPy's fixed-width ones drop trailing NULs.
    if array.dtype.kind in "USO":
        if dtype is not None and dtype.base_dtype != dtypes.string:
            if array.dtype.kind == "O":
                return make_array(array.tolist(), dtype)
            raise TypeError(f"Expected {dtype.name}, got {array.tolist()!r} of type 'str' instead.")
        return _strings(array)
    if dtype is None:
        if array.dtype.newbyteorder("=") not in dtypes.BY_NUMPY:
            raise TypeError(f"Unrecognized data type {array.dtype} of a numpy array; use one of tf's types.")
        return array.astype(array.dtype.newbyteorder("="), copy=False)
    target = dtype.np_dtype
    if array.dtype == target:
        return array
    if dtype.base_dtype == dtypes.string:
        raise TypeError(f"Cannot convert a numpy array of {array.dtype} to string.")
    return array.astype(target)


def _check_dimensions(sizes: TensorShape | Dimension, dtype: dtypes.DType) -> None:
    if dtype not in (dtypes.int32, dtypes.int64):
        raise TypeError(f"Cannot convert a TensorShape to dtype: {dtype.name}; use tf.int32 or tf.int64.")
    dims = (sizes.value,) if isinstance(sizes, Dimension) else sizes._d or ()
    large = [d for d in dims if d is not None and d >= 2**31 and dtype == dtypes.int32]
    if large:
        raise ValueError(
            f"Cannot convert a TensorShape to dtype int32; a dimension is too large ({large[0]}); use dtype=tf.int64."
        )


def _plain(value: TensorLike) -> Any:
    """Dimensions and TensorShapes inside `value` as ints."""
    if isinstance(value, TensorShape):
        if not value.is_fully_defined():
            raise ValueError(f"Cannot convert a partially known TensorShape to a Tensor: {value}")
        return list(value._d or ())
    if isinstance(value, Dimension):
        if value.value is None:
            raise ValueError(f"Cannot convert an unknown Dimension to a Tensor: {value}")
        return value.value
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, range):
        return list(value)
    return value


def _guess(value: TensorLike) -> np.ndarray:
    if isinstance(value, float):
        return np.array(value, np.float32)
    if isinstance(value, bool):
        return np.array(value)
    if isinstance(value, int):
        # As TensorFlow: int32 unless the number needs 64 bits.
        fits = -(2**31) <= value < 2**31
        return np.array(value, np.int32 if fits else np.int64)
    if value is None:
        raise ValueError("None values not supported.")
    if isinstance(value, DType):
        return np.array(value.as_datatype_enum, np.int32)
    try:
        array = np.array(value)
    except ValueError as e:
        raise _ragged(value, e) from e
    kind = array.dtype.kind
    # Python floats become float32, but a list of np.float64 values keeps its type.
    if kind == "f" and not _holds(value, np.float64):
        return array.astype(np.float32) if array.dtype == np.float64 else array
    if kind == "i" and array.dtype == np.int64 and not _holds(value, np.int64):
        fits = array.size == 0 or (array.min() >= -(2**31) and array.max() < 2**31)
        return array.astype(np.int32) if fits else array
    if kind in "SU":
        return _strings(value)
    if kind == "O":
        return _objects(value, array)
    if array.dtype not in dtypes.BY_NUMPY:
        raise TypeError(f"Failed to convert object of type {type(value)} to Tensor. Contents: {value}.")
    return array


def _holds(value: TensorLike, kind: type[np.generic]) -> bool:
    """Whether the first leaf of a nested list is a numpy value of that type."""
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return isinstance(value, (np.ndarray, np.generic)) and value.dtype == kind


def _objects(value: TensorLike, array: np.ndarray) -> np.ndarray:
    flat = array.ravel().tolist()
    if any(v is None for v in flat):
        raise ValueError("None values not supported.")
    if all(isinstance(v, (bytes, str)) for v in flat) and flat:
        return _strings(value)
    if any(isinstance(v, (list, tuple)) for v in flat):
        raise _ragged(value, None)
    raise TypeError(
        f"Failed to convert object of type {type(value)} to Tensor. Contents: {value}. Consider casting "
        "elements to a supported type."
    )


def _ragged(value: TensorLike, error: Exception | None) -> ValueError:
    return ValueError(
        f"Argument must be a dense tensor: {value!r} - its rows have different lengths, but a tensor is "
        f"rectangular.{f' ({error})' if error else ''}"
    )


def _strings(value: TensorLike) -> np.ndarray:
    """An object array of bytes."""
    if isinstance(value, np.ndarray):
        # numpy's fixed-width strings drop trailing NULs already; object arrays keep theirs
        flat = value.ravel().tolist()
        if _all_bytes(flat):
            return value.astype(object, "C")
        out, flat = np.empty(value.shape, object), [_as_bytes(v) for v in flat]
    elif isinstance(value, list) and _all_bytes(value):
        return np.fromiter(value, object, len(value))
    else:
        shape, flat = _nested_shape(value), [_as_bytes(v) for v in _leaves(value)]
        out = np.empty(shape, object)
        if out.size != len(flat):
            raise _ragged(value, None)
    if out.ndim == 0:
        out[()] = flat[0]
    elif flat:
        out.ravel()[:] = np.fromiter(flat, object, len(flat))
    return out


def _all_bytes(values: Iterable[object]) -> bool:
    """Whether nothing else is in a list: sooner than to ask for one after the other."""
    return set(map(type, values)) <= {bytes}


def _nested_shape(value: TensorLike) -> tuple[int, ...]:
    shape = []
    while isinstance(value, (list, tuple)):
        shape.append(len(value))
        if not value:
            break
        value = value[0]
    return tuple(shape)


def _leaves(value: TensorLike) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for v in value:
            yield from _leaves(v)
    elif isinstance(value, np.ndarray):
        yield from value.ravel().tolist()
    else:
        yield value


def _as_bytes(value: TensorLike) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, np.bytes_ | np.str_):
        return _as_bytes(value.item())
    raise TypeError(f"Expected string, got {value!r} of type '{type(value).__name__}' instead.")


_INTEGRAL = (int, np.integer)
_REAL = (int, float, np.integer, np.floating)


def _check_fits(value: TensorLike, dtype: DType) -> None:
    """Raises TypeError for a leaf that TensorFlow would refuse to turn into `dtype`."""
    # bool is tested first: it is a subclass of int, and TensorFlow takes it for a number.
    base = dtype.base_dtype
    for leaf in _leaves(value):
        if leaf is None:
            raise ValueError("None values not supported.")
        if isinstance(leaf, bool):
            ok = base.is_bool or base.is_integer or base.is_floating or base.is_complex  # it is a number, too
        elif isinstance(leaf, np.bool_):
            ok = base.is_bool
        elif base.is_integer or base.is_quantized:
            ok = isinstance(leaf, _INTEGRAL)
        elif base.is_floating:
            ok = isinstance(leaf, _REAL) or type(leaf).__module__ == "ml_dtypes"
        elif base.is_complex:
            ok = isinstance(leaf, (*_REAL, complex, np.complexfloating))
        elif base.is_bool:
            ok = False
        else:
            ok = True
        if not ok:
            raise TypeError(f"Expected {base.name}, got {leaf!r} of type '{type(leaf).__name__}' instead.")
