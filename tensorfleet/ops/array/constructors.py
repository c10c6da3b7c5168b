"""Tensors made from nothing but a shape or a few numbers: zeros, fill, range, one_hot, masks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, ArrayModule, DTypeLike, TensorLike
from tensorfleet.graph.apply import apply, constant
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.kernels.arrays import is_numpy, zeros_of
from tensorfleet.ops.array.shape import invalid
from tensorfleet.ops.array.shape import rank as rank_of
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.common import UNKNOWN, ints, same_as_input, shape_given_by, static_value, vector_of
from tensorfleet.ops.samples import case
from tensorfleet.state.tensor_lists import TensorList

_MAX_CONSTANT_ELEMENTS = 1000  # elements; a larger constant would only fill the graph


# -- fill, zeros, ones -------------------------------------------------------------------------------


def _fill_shape(op: Operation) -> TensorShape:
    if op._inputs[0].shape.rank not in (None, 1):
        raise ValueError(f"Shape must be rank 1 but is rank {op._inputs[0].shape.rank}")
    dims = static_value(op, 0)
    if op._inputs[1].shape.rank not in (None, 0):
        raise ValueError(f"Shape must be rank 0 but is rank {op._inputs[1].shape.rank}")
    if dims is not None and any(d < 0 for d in dims):
        raise ValueError(f"Fill dimensions must be >= 0, got {ints(dims)}")
    return shape_given_by(op, 0)


@op(
    "Fill",
    "dims: index_type, value: T -> output: T",
    "T: type; index_type: index = int32",
    shape=_fill_shape,
    static=["dims"],
    examples=[
        case(np.array([2, 3], np.int32), np.float32(1.5)),
        case(np.array([], np.int64), np.int32(2)),
        case(np.array([0, 2], np.int32), np.float64(1.0), grad=False),
        case(np.array([2], np.int32), np.array(b"s", object)),
    ],
)
def _fill(xp: ArrayModule, dims: Array, value: Array) -> Array:
    size = ints(dims)
    if any(d < 0 for d in size):
        raise invalid(f"Dimensions must be >= 0, got {list(size)}")
    if value.shape != ():
        raise invalid(f"value must be a scalar, got shape {list(value.shape)}")
    if is_numpy(xp) and math.prod(size) <= _MAX_CONSTANT_ELEMENTS:
        return np.full(size, value, value.dtype)  # soon done; a large one is a view that takes no memory
    return xp.broadcast_to(value, size)


@gradient("Fill")
def _fill_grad(op: Operation, dy: Tensor) -> tuple[None, Tensor]:
    return None, apply("Sum", dy, apply("Range", 0, rank_of(dy), 1))


@export("fill")
def fill(dims: TensorLike, value: TensorLike, name: str | None = None) -> Tensor:
    """A tensor of shape `dims` with `value` everywhere."""
    return apply("Fill", dims, value, name=name)


def _filled(
    shape: TensorLike,
    dtype: DTypeLike,
    name: str | None,
    default: str,
    one: bool,
) -> Tensor:
    kind = dtypes.as_dtype(dtype).base_dtype
    if one and kind == dtypes.string:
        raise TypeError("Expected string, got 1 of type 'int' instead.")
    value = _element(kind, one)
    with name_scope(name, default, [shape] if isinstance(shape, (list, tuple, Tensor)) else None) as scope:
        known = _known_dims(shape)
        if known is not None and int(np.prod(known, dtype=np.int64)) < _MAX_CONSTANT_ELEMENTS:
            return constant(value, kind, shape=known, name=scope)
        dims = shape if isinstance(shape, Tensor) else _shape_tensor(known, shape)
        if dims.shape.rank != 1:
            dims = apply("Reshape", dims, [-1])
        return apply("Fill", dims, constant(value, kind), name=scope)


def _element(kind: DType, one: bool) -> Any:
    if kind == dtypes.string:
        return b""
    return bool(one) if kind.is_bool else kind.np_dtype.type(int(one))


def _shape_tensor(known: list[int] | None, shape: TensorLike) -> Tensor:
    if known is not None:
        large = any(d >= 2**31 for d in known)
        return constant(known, dtypes.int64 if large else dtypes.int32, name="shape_as_tensor")
    return to_tensor(shape, dtypes.int32)


def _known_dims(shape: TensorLike) -> list[int] | None:
    """The dimensions a Python shape lists; None when a tensor takes part."""
    if isinstance(shape, Tensor):
        return None
    if isinstance(shape, np.ndarray):
        return [int(d) for d in shape.ravel()]
    try:
        whole = TensorShape(shape)  # type: ignore[arg-type] # anything: what is no shape is refused
    except (TypeError, ValueError):
        if isinstance(shape, (list, tuple)) and all(isinstance(d, (int, np.integer)) for d in shape):
            raise
        return None
    if not whole.is_fully_defined():
        raise ValueError(f"Cannot convert a partially known TensorShape to a Tensor: {whole}")
    return [int(d) for d in whole.as_list() if d is not None]


@export("zeros")
def zeros(shape: TensorLike, dtype: DTypeLike = dtypes.float32, name: str | None = None) -> Tensor:
    """A tensor of zeros (False for bool, empty for string)."""
    return _filled(shape, dtype, name, "zeros", one=False)


@export("ones")
def ones(shape: TensorLike, dtype: DTypeLike = dtypes.float32, name: str | None = None) -> Tensor:
    """A tensor of ones."""
    return _filled(shape, dtype, name, "ones", one=True)


@op(
    "ZerosLike",
    "x: T -> y: T",
    "T: type",
    shape=same_as_input,
    examples=[case(np.ones((2, 3), np.float32)), case(np.int32(4)), case(np.array([b"a"], object))],
)
def _zeros_like(xp: ArrayModule, x: Array) -> Array:
    return x.zeros() if isinstance(x, TensorList) else zeros_of(x.shape, x.dtype)


@op(
    "OnesLike",
    "x: T -> y: T",
    "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64, complex64, "
    "complex128, bool}",
    shape=same_as_input,
    examples=[case(np.zeros((2, 3), np.float32)), case(np.array(False))],
)
def _ones_like(xp: ArrayModule, x: Array) -> Array:
    return np.ones(x.shape, x.dtype)


not_differentiable("ZerosLike", "OnesLike")


@export("zeros_like")
def zeros_like(
    tensor: TensorLike, dtype: DTypeLike | None = None, name: str | None = None, optimize: bool = True
) -> Tensor:
    """Zeros in the shape of `tensor`, of its type or of `dtype`."""
    with name_scope(name, "zeros_like", [tensor]) as scope:
        tensor = to_tensor(tensor, name="tensor")
        kind = tensor.dtype.base_dtype if dtype is None else dtypes.as_dtype(dtype)
        if optimize and tensor.shape.is_fully_defined() and kind.name not in ("variant", "resource"):
            return zeros(tensor.shape, kind, name=scope)
        if kind.base_dtype == tensor.dtype.base_dtype:
            return apply("ZerosLike", tensor, name=scope)
        return zeros(_inner_shape(tensor, optimize), kind, name=scope)


def _inner_shape(tensor: Tensor, optimize: bool) -> Tensor:
    return shape_of(tensor) if optimize else apply("Shape", tensor)


@export("ones_like")
def ones_like(
    tensor: TensorLike, dtype: DTypeLike | None = None, name: str | None = None, optimize: bool = True
) -> Tensor:
    """Ones in the shape of `tensor`, of its type or of `dtype`."""
    with name_scope(name, "ones_like", [tensor]) as scope:
        tensor = to_tensor(tensor, name="tensor")
        kind = tensor.dtype.base_dtype if dtype is None else dtypes.as_dtype(dtype)
        result = ones(_inner_shape(tensor, optimize), kind, name=scope)
        result.set_shape(tensor.shape)
        return result


# -- range -------------------------------------------------------------------------------------------


def _range_count(start: Array, limit: Array, delta: Array, error: Callable[[str], Exception]) -> int:
    a, b, d = (np.asarray(v).item() for v in (start, limit, delta))
    if d == 0:
        raise error("Requires delta != 0: 0")
    if d > 0 and a > b:
        raise error(f"Requires start <= limit when delta > 0: {a}/{b}")
    if d < 0 and a < b:
        raise error(f"Requires start >= limit when delta < 0: {a}/{b}")
    if isinstance(a, int):
        return int(-((a - b) // d) if d > 0 else -((b - a) // -d))
    return int(np.ceil(abs((b - a) / d)))


def _range_shape(op: Operation) -> TensorShape:
    start, limit, delta = (static_value(op, i) for i in range(3))
    for t in op._inputs:
        t.shape.assert_has_rank(0)
    if start is None or limit is None or delta is None:
        return vector_of(None)
    return vector_of(_range_count(start, limit, delta, ValueError))


@op(
    "Range",
    "start: Tidx[0], limit: Tidx[0], delta: Tidx[0] -> output: Tidx",
    "Tidx: {bfloat16, half, float, double, int8, int16, int32, int64, uint16, uint32, uint64} = int32",
    shape=_range_shape,
    static=["start", "limit", "delta"],
    examples=[
        case(np.int32(0), np.int32(5), np.int32(1)),
        case(np.float32(0), np.float32(1), np.float32(0.3)),
        case(np.int64(5), np.int64(-2), np.int64(-3)),
        case(np.int32(3), np.int32(3), np.int32(1)),
    ],
)
def _range(xp: ArrayModule, start: Array, limit: Array, delta: Array) -> Array:
    count = _range_count(start, limit, delta, invalid)
    return _steps(np.asarray(start), np.asarray(delta), count)


def _steps(start: Array, delta: Array, count: int) -> Array:
    """start, start + delta, ...: added up in the element type, as TensorFlow does."""
    if start.dtype.kind in "iu":
        result: Array = start + np.arange(count).astype(start.dtype) * delta
        return result
    out = np.empty(count, start.dtype)
    if count:
        out[0] = start
        out[1:] = delta
    return np.cumsum(out, dtype=start.dtype)


not_differentiable("Range")


@export("range")
def range_(
    start: TensorLike,
    limit: TensorLike = None,
    delta: TensorLike = 1,
    dtype: DTypeLike | None = None,
    name: str | None = "range",
) -> Tensor:
    """Numbers from `start` (0 when only one is given) up to but without `limit`, `delta` apart."""
    if limit is None:
        start, limit = 0, start
    with name_scope(name, "range", [start, limit, delta]) as scope:
        given = (("start", start), ("limit", limit), ("delta", delta))
        kind = None if dtype is None else dtypes.as_dtype(dtype)
        parts = [v if isinstance(v, Tensor) else to_tensor(v, kind, name=n) for n, v in given]
        if kind is None:
            kind = max((p.dtype.base_dtype for p in parts), key=_RANGE_ORDER.index)
        return apply(
            "Range", *(_cast(p, kind, n) for p, (n, _) in zip(parts, given, strict=True)), name=scope
        )


_RANGE_ORDER = [dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64]


def _cast(tensor: Tensor, kind: DType, name: str) -> Tensor:
    if tensor.dtype.base_dtype == kind.base_dtype:
        return tensor
    return apply("Cast", tensor, DstT=kind, name="Cast")


# -- one_hot -----------------------------------------------------------------------------------------


def _one_hot_shape(op: Operation) -> TensorShape:
    axis, depth, dims = op._attrs["axis"], static_value(op, 1), op._inputs[0].shape._d
    if axis < -1:
        raise ValueError(f"axis must be >= -1, not {axis}")
    if depth is not None and depth < 0:
        raise ValueError(f"depth must be non-negative, got: {int(depth)}")
    if dims is None:
        return UNKNOWN
    at = len(dims) if axis == -1 else axis
    if at > len(dims):
        raise ValueError(f"Expected axis to be -1 or between [0, {len(dims) + 1}). But received: {axis}")
    return TensorShape._of((*dims[:at], None if depth is None else int(depth), *dims[at:]))


@op(
    "OneHot",
    "indices: TI, depth: int32, on_value: T, off_value: T -> output: T",
    "axis: int = -1; T: type; TI: {uint8, int8, int32, int64} = int64",
    shape=_one_hot_shape,
    static=["depth"],
    examples=[
        case(np.array([0, 2, -1, 5], np.int32), np.int32(3), np.float32(1), np.float32(0)),
        case(np.array([[1], [0]]), np.int32(2), np.int32(5), np.int32(-1), axis=0),
        case(np.uint8(1), np.int32(3), np.array(True), np.array(False)),
    ],
)
def _one_hot(xp: ArrayModule, indices: Array, depth: Array, on: Array, off: Array, *, axis: int) -> Array:
    n = int(depth)
    if n < 0:
        raise invalid(f"depth must be non-negative, got: {n}")
    rank = len(indices.shape)
    at = rank if axis == -1 else axis
    if at > rank:
        raise invalid(f"Expected axis to be -1 or between [0, {rank + 1}). But received: {axis}")
    classes = np.arange(n).reshape((n,) + (1,) * (rank - at))
    hit = xp.expand_dims(indices, at) == classes.astype(np.int64)
    return xp.where(hit, on, off)


not_differentiable("OneHot")


@export("one_hot")
def one_hot(
    indices: TensorLike,
    depth: TensorLike,
    on_value: TensorLike = None,
    off_value: TensorLike = None,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Vectors of `depth` elements, `on_value` at the index and `off_value` elsewhere."""
    with name_scope(name, "one_hot", [indices, depth, on_value, off_value]) as scope:
        kind = None if dtype is None else dtypes.as_dtype(dtype).base_dtype
        on, off = (None if v is None else to_tensor(v, preferred=kind) for v in (on_value, off_value))
        kind = _one_hot_type(kind, on, off)
        on = constant(_element(kind, True), kind, name="on_value") if on is None else on
        off = constant(_element(kind, False), kind, name="off_value") if off is None else off
        return apply("OneHot", indices, depth, on, off, axis=axis, name=scope)


def _one_hot_type(kind: DType | None, on: Tensor | None, off: Tensor | None) -> DType:
    types = {
        label: t.dtype.base_dtype for label, t in (("on_value", on), ("off_value", off)) if t is not None
    }
    for label, got in types.items():
        if kind is not None and got != kind:
            raise TypeError(f"dtype {got} of {label} does not match dtype parameter {kind}")
    if len(set(types.values())) > 1:
        raise TypeError(
            f"dtype {types['on_value']} of on_value does not match dtype {types['off_value']} of off_value"
        )
    result = kind or next(iter(types.values()), dtypes.float32)
    if len(types) < 2 and result in (dtypes.string, dtypes.bool_):
        raise TypeError(f"Expected {result.name}, got 1 of type 'int' instead: give on_value and off_value.")
    return result


# -- masks and grids ---------------------------------------------------------------------------------


@export("sequence_mask")
def sequence_mask(
    lengths: TensorLike, maxlen: TensorLike = None, dtype: DTypeLike = dtypes.bool_, name: str | None = None
) -> Tensor:
    """For each length, a row of `maxlen` that is true in its first `length` places."""
    with name_scope(name, "SequenceMask", [lengths, maxlen]):
        lengths = to_tensor(lengths)
        if maxlen is None:
            axes = (
                constant(list(range(lengths.shape.rank)), dtypes.int32)
                if lengths.shape.rank is not None
                else (apply("Range", 0, apply("Rank", lengths), 1))
            )
            maxlen = apply("Max", lengths, axes)
            maxlen = apply("Maximum", constant(0, maxlen.dtype), maxlen)
        else:
            maxlen = to_tensor(maxlen)
        if maxlen.shape.rank not in (None, 0):
            raise ValueError("maxlen must be scalar for sequence_mask")
        row = apply("Range", constant(0, maxlen.dtype), maxlen, constant(1, maxlen.dtype))
        column = apply("Cast", apply("ExpandDims", lengths, -1), DstT=maxlen.dtype)
        mask = apply("Less", row, column)
        kind = dtypes.as_dtype(dtype)
        return mask if kind.base_dtype == dtypes.bool_ else apply("Cast", mask, DstT=kind)


@export("meshgrid")
def meshgrid(*args: Any, **kwargs: Any) -> list[Tensor]:
    """One grid of coordinates per 1-D argument; `indexing` is "xy" (the default) or "ij"."""
    indexing, name = kwargs.pop("indexing", "xy"), kwargs.pop("name", "meshgrid")
    if kwargs:
        raise TypeError(f"'{next(iter(kwargs))}' is an invalid keyword argument for this function")
    if indexing not in ("xy", "ij"):
        raise ValueError("indexing parameter must be either 'xy' or 'ij'")
    with name_scope(name, "meshgrid", list(args)):
        from tensorfleet.ops.array.shape import reshape, size
        from tensorfleet.ops.array.stack import stack

        n = len(args)
        grids: list[Any] = [
            reshape(stack(x), (1,) * i + (-1,) + (1,) * (n - i - 1)) for i, x in enumerate(args)
        ]
        sizes = [size(x) for x in args]
        kind = to_tensor(args[0]).dtype.base_dtype if args else dtypes.float32
        if indexing == "xy" and n > 1:
            grids[0] = reshape(grids[0], (1, -1) + (1,) * (n - 2))
            grids[1] = reshape(grids[1], (-1, 1) + (1,) * (n - 2))
            sizes[0], sizes[1] = sizes[1], sizes[0]
        whole = ones(sizes, kind)
        return [grid * whole for grid in grids]


@export("eye", "linalg.eye")
def eye(
    num_rows: Any,
    num_columns: Any = None,
    batch_shape: TensorLike = None,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """An identity matrix, or a batch of them."""
    with name_scope(name, "eye", [num_rows, num_columns, batch_shape]):
        square = num_columns is None
        batch = [] if batch_shape is None else batch_shape
        columns = num_rows if square else num_columns
        if any(isinstance(v, Tensor) for v in (num_rows, columns, batch)):
            ones_shape: Any
            ones_shape, zeros_shape = _dynamic_eye(num_rows, columns, batch, square)
        else:
            lead = [int(d) for d in _known_dims(batch) or []]
            ones_shape = [*lead, min(int(num_rows), int(columns))]
            zeros_shape = [*lead, int(num_rows), int(columns)]
        diagonal = ones(ones_shape, dtype)
        if square:
            return apply("MatrixDiag", diagonal, name="diag")
        return apply("MatrixSetDiag", zeros(zeros_shape, dtype), diagonal, name="set_diag")


def _dynamic_eye(rows: TensorLike, columns: TensorLike, batch: Any, square: bool) -> tuple[Tensor, Any]:
    smaller = apply("Minimum", rows, columns)
    lead = to_tensor(batch, dtypes.int32, name="shape")
    diagonal = apply("ConcatV2", [lead, [smaller]], 0, name="concat")
    whole = None if square else apply("ConcatV2", [lead, [rows, columns]], 0, name="concat")
    return diagonal, whole
