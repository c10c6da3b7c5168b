"""A tensor's shape as a value, and the ops that change the shape but not the elements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, ArrayModule, DTypeLike, TensorLike
from tensorfleet.graph.apply import apply, apply_list, constant
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.kernels import lane_kernels
from tensorfleet.ops.common import SCALAR, UNKNOWN, ints, shape_given_by, static_value, vector_of
from tensorfleet.ops.samples import case


def bracketed(dims: Any) -> str:
    """A shape as error messages write it: "[2,?]"."""
    return "[" + ",".join("?" if d is None else str(d) for d in dims) + "]"


def invalid(message: str) -> Exception:
    """What a kernel raises when its inputs' shapes, or values it knows while tracing, do not fit."""
    return errors.invalid(message)


def known_rank(op: Operation, position: int) -> int | None:
    """The length of a vector input, when known: the rank of the shape it stands for."""
    shape = op._inputs[position].shape
    return None if shape.rank is None else shape.num_elements()


def _sparse_shape(value: TensorLike) -> Any:
    """The dense shape of a sparse tensor, None for anything else."""
    if isinstance(value, (Tensor, IndexedSlices)):
        return None
    return getattr(value, "dense_shape", None)


_SOME = np.arange(6, dtype=np.float32).reshape(2, 3)


@op(
    "Shape",
    "input: T -> output: out_type",
    "T: type; out_type: index = int32",
    shape=lambda op: vector_of(op._inputs[0].shape.rank),
    joined=lane_kernels.shape,
    examples=[case(_SOME), case(np.float64(3.0), out_type="int64"), case(np.zeros((0, 2), np.int32))],
)
def _shape(xp: ArrayModule, x: Array, *, out_type: DType) -> Array:
    return np.array(x.shape, out_type.np_dtype)


@export("shape")
def shape(input: TensorLike, name: str | None = None, out_type: DTypeLike = dtypes.int32) -> Tensor:
    """The shape of a tensor as a 1-D integer tensor; a constant when it is known already."""
    return shape_internal(input, name, True, out_type)


@export("python.ops.array_ops.shape_internal")
def shape_internal(
    input: TensorLike, name: str | None = None, optimize: bool = True, out_type: DTypeLike = dtypes.int32
) -> Tensor:
    """The shape of a tensor; with `optimize`, a constant when it is known already."""
    with name_scope(name, "Shape", [input]) as scope:
        dense = _sparse_shape(input)
        if dense is not None:
            return apply("Cast", dense, DstT=out_type, name=scope)
        tensor = to_tensor(input)
        if optimize and tensor.shape.is_fully_defined():
            return constant(tensor.shape.as_list(), out_type, name=scope)
        return apply("Shape", tensor, out_type=out_type, name=scope)


@op(
    "ShapeN",
    "input: N * T -> output: N * out_type",
    "N: int; T: type; out_type: index = int32",
    shape=lambda op: [vector_of(t.shape.rank) for t in op._inputs],
    examples=[case([_SOME, np.float32(1.0)]), case([_SOME], out_type="int64")],
)
def _shape_n(xp: ArrayModule, values: list[Array], *, out_type: DType) -> tuple[Array, ...]:
    return tuple(np.array(x.shape, out_type.np_dtype) for x in values)


@export("shape_n")
def shape_n(input: TensorLike, out_type: DTypeLike = dtypes.int32, name: str | None = None) -> list[Tensor]:
    """The shapes of several tensors, each as a 1-D integer tensor."""
    return apply_list("ShapeN", input, out_type=out_type, name=name)


@op(
    "Size",
    "input: T -> output: out_type",
    "T: type; out_type: index = int32",
    shape=lambda op: SCALAR,
    joined=lane_kernels.size,
    examples=[case(_SOME), case(np.float64(3.0), out_type="int64")],
)
def _size(xp: ArrayModule, x: Array, *, out_type: DType) -> Array:
    return np.array(int(np.prod(x.shape, dtype=np.int64)), out_type.np_dtype)


@export("size")
def size(input: TensorLike, name: str | None = None, out_type: DTypeLike = dtypes.int32) -> Tensor:
    """How many elements a tensor has; a constant when that is known already."""
    return size_internal(input, name, True, out_type)


@export("python.ops.array_ops.size_internal")
def size_internal(
    input: TensorLike, name: str | None = None, optimize: bool = True, out_type: DTypeLike = dtypes.int32
) -> Tensor:
    """How many elements a tensor has; with `optimize`, a constant when that is known already."""
    with name_scope(name, "Size", [input]) as scope:
        dense = _sparse_shape(input)
        if dense is not None:
            return apply("Prod", apply("Cast", dense, DstT=out_type), 0, name=scope)
        tensor = to_tensor(input)
        count = tensor.shape.num_elements()
        if optimize and count is not None:
            return constant(count, out_type, name=scope)
        return apply("Size", tensor, out_type=out_type, name=scope)


@op(
    "Rank",
    "input: T -> output: int32",
    "T: type",
    shape=lambda op: SCALAR,
    examples=[case(_SOME), case(np.int64(3))],
)
def _rank(xp: ArrayModule, x: Array) -> Array:
    return np.array(len(x.shape), np.int32)


@export("rank")
def rank(input: TensorLike, name: str | None = None) -> Tensor:
    """How many dimensions a tensor has; a constant when that is known already."""
    return rank_internal(input, name, True)


@export("python.ops.array_ops.rank_internal")
def rank_internal(input: TensorLike, name: str | None = None, optimize: bool = True) -> Tensor:
    """How many dimensions a tensor has; with `optimize`, a constant when that is known already."""
    with name_scope(name, "Rank", [input]) as scope:
        dense = _sparse_shape(input)
        if dense is not None:
            return apply("Size", dense, name=scope)
        tensor = to_tensor(input)
        if optimize and tensor.shape.rank is not None:
            return constant(tensor.shape.rank, dtypes.int32, name=scope)
        return apply("Rank", tensor, name=scope)


not_differentiable("Shape", "ShapeN", "Size", "Rank")


def _requested(op: Operation) -> TensorShape:
    if op._inputs[1].shape.rank not in (None, 1):
        raise ValueError(f"Shape must be rank 1 but is rank {op._inputs[1].shape.rank}")
    value = static_value(op, 1)
    if value is not None and any(d < -1 for d in value):
        raise ValueError(f"Invalid value in tensor used for shape: {min(ints(value))}")
    return shape_given_by(op, 1)


def _check_divides(source: TensorShape, target: TensorShape) -> None:
    """With one dimension of the source unknown, the others must still fit into the target."""
    total = target.num_elements()
    if source._d is None or total is None or source._d.count(None) != 1:
        return
    known = int(np.prod([d for d in source._d if d is not None], dtype=np.int64))
    if known and total % known:
        raise ValueError(f"Dimension size must be evenly divisible by {known} but is {total}")


def _reshape_shape(op: Operation) -> TensorShape:
    source, target = op._inputs[0].shape, _requested(op)
    count = source.num_elements()
    if target._d is None:
        return target
    if count is None:
        _check_divides(source, target)
        return target
    known = 1
    for d in target._d:
        known *= 1 if d is None else d
    missing = target._d.count(None)
    if missing == 0 and known != count:
        raise ValueError(
            f"Cannot reshape a tensor with {count} elements to shape {bracketed(target._d)} "
            f"({known} elements)"
        )
    if missing != 1 or known == 0:
        return target
    if count % known:
        raise ValueError(f"Dimension size must be evenly divisible by {known} but is {count}")
    return TensorShape._of(tuple(count // known if d is None else d for d in target._d))


@op(
    "Reshape",
    "tensor: T, shape: Tshape -> output: T",
    "T: type; Tshape: index = int32",
    shape=_reshape_shape,
    moves="tensor",
    static=["shape"],
    joined=lane_kernels.reshape,
    examples=[
        case(_SOME, np.array([3, 2], np.int32)),
        case(_SOME, np.array([-1], np.int64)),
        case(np.ones((1, 1)), np.array([], np.int32)),
        case(np.array([b"a", b"b"], object), np.array([2, -1], np.int32)),
    ],
)
def _reshape(xp: ArrayModule, x: Array, target: Array) -> Array:
    dims = ints(target)
    count = math.prod(x.shape)
    if dims.count(-1) > 1:
        raise invalid(f"Only one input size may be -1, not both {dims.index(-1)} and {_last(dims)}")
    known = math.prod([d for d in dims if d != -1])
    if dims and min(dims) < -1:
        bad = next(i for i, d in enumerate(dims) if d < -1)
        raise invalid(f"Size {bad} must be non-negative, not {dims[bad]}")
    if -1 not in dims:
        if known != count:
            raise invalid(
                f"Input to reshape is a tensor with {count} values, but the requested shape has {known}"
            )
        return x.reshape(dims)
    if known == 0:
        if count:
            raise invalid(
                "reshape cannot infer the missing input size for an empty tensor unless all specified input "
                "sizes are non-zero"
            )
        # Of what holds nothing, the dimensions that are not 0 say how large the missing one is.
        missing = math.prod([d for d in x.shape if d]) // math.prod([d for d in dims if d > 0])
        return x.reshape(tuple(missing if d == -1 else d for d in dims))
    if count % known:
        raise invalid(
            f"Input to reshape is a tensor with {count} values, but the requested shape requires a multiple "
            f"of {known}"
        )
    return x.reshape(tuple(count // known if d == -1 else d for d in dims))


def _last(dims: tuple[int, ...]) -> int:
    return len(dims) - 1 - dims[::-1].index(-1)


gradient("Reshape")(lambda op, dy: (back_to_input(op, dy), None))


def back_to_input(op: Operation, dy: Tensor) -> Tensor:
    """A gradient in the shape of the first input."""
    return apply("Reshape", dense_gradient(dy), shape(op._inputs[0]))


def dense_gradient(dy: Tensor) -> Tensor:
    """A gradient that may have come as rows, as one tensor."""
    if not isinstance(dy, IndexedSlices):
        return dy
    from tensorfleet.ops.array.gather import indexed_slices_to_tensor

    return indexed_slices_to_tensor(dy, warn=False)


@export("reshape", "manip.reshape")
def reshape(tensor: TensorLike, shape: TensorLike, name: str | None = None) -> Tensor:
    """The same elements in another shape; one dimension may be -1, and is then worked out."""
    return apply("Reshape", tensor, shape, name=name)


def _squeeze_shape(op: Operation) -> TensorShape:
    dims, axes = op._inputs[0].shape._d, op._attrs["squeeze_dims"]
    if dims is None:
        return UNKNOWN
    if not axes:
        return UNKNOWN if None in dims else TensorShape._of(tuple(d for d in dims if d != 1))
    wanted = set()
    for axis in axes:
        if not -len(dims) <= axis < len(dims):
            raise ValueError(f"squeeze_dims[{axes.index(axis)}] not in [{-len(dims)},{len(dims)}).")
        if dims[axis] not in (1, None):
            raise ValueError(
                f"Can not squeeze dim[{axis % len(dims)}], expected a dimension of 1, got {dims[axis]}"
            )
        wanted.add(axis % len(dims))
    return TensorShape._of(tuple(d for i, d in enumerate(dims) if i not in wanted))


@op(
    "Squeeze",
    "input: T -> output: T",
    "T: type; squeeze_dims: list(int) = []",
    shape=_squeeze_shape,
    moves="input",
    examples=[
        case(_SOME[None]),
        case(np.ones((1, 2, 1)), squeeze_dims=[-1]),
        case(np.ones((1, 1), np.int32)),
    ],
)
def _squeeze(xp: ArrayModule, x: Array, *, squeeze_dims: list[int]) -> Array:
    rank = len(x.shape)
    wanted = {a % rank if rank else a for a in squeeze_dims}
    for axis in sorted(wanted):
        if not axis < rank:
            raise invalid(f"Tried to squeeze dim index {axis} for tensor with {rank} dimensions.")
        if x.shape[axis] != 1:
            raise invalid(f"Can not squeeze dim[{axis}], expected a dimension of 1, got {x.shape[axis]}")
    keep = (d for i, d in enumerate(x.shape) if (i not in wanted if wanted else d != 1))
    return x.reshape(tuple(keep))


gradient("Squeeze")(lambda op, dy: back_to_input(op, dy))


@export("squeeze")
def squeeze(input: TensorLike, axis: Any = None, name: str | None = None, squeeze_dims: Any = None) -> Tensor:
    """Drops the dimensions of size 1: all of them, or those listed in `axis`."""
    axis = _either("axis", axis, "squeeze_dims", squeeze_dims)
    if axis is not None and np.ndim(axis) == 0:
        axis = [axis]
    return apply("Squeeze", input, squeeze_dims=None if axis is None else list(axis), name=name)


def _either(new: str, value: TensorLike, old: str, deprecated: TensorLike) -> Any:
    if deprecated is None:
        return value
    if value is not None:
        raise ValueError(f"Cannot specify both '{old}' and '{new}'")
    return deprecated


def _expand_shape(op: Operation) -> TensorShape:
    dims, value = op._inputs[0].shape._d, static_value(op, 1)
    if dims is None or value is None:
        return UNKNOWN
    if value.size != 1:
        raise ValueError("'dim' input must be a tensor with a single value")
    at = _insert_axis(int(value.ravel()[0]), len(dims), ValueError)
    return TensorShape._of((*dims[:at], 1, *dims[at:]))


def _insert_axis(axis: int, rank: int, error: Any) -> int:
    if not -rank - 1 <= axis <= rank:
        if error is not ValueError:
            raise error(f"Tried to expand dim index {axis} for tensor with {rank} dimensions.")
        raise error(f"dim {axis} not in the interval [{-rank - 1}, {rank}].")
    return axis if axis >= 0 else axis + rank + 1


@op(
    "ExpandDims",
    "input: T, dim: Tdim -> output: T",
    "T: type; Tdim: index = int32",
    shape=_expand_shape,
    moves="input",
    static=["dim"],
    joined=lane_kernels.expand_dims,
    examples=[case(_SOME, np.int32(0)), case(_SOME, np.int64(-1)), case(np.array(b"s", object), np.int32(0))],
)
def _expand_dims(xp: ArrayModule, x: Array, dim: Array) -> Array:
    if np.size(dim) != 1:
        raise invalid("'dim' input must be a tensor with a single value")
    at = _insert_axis(ints(dim)[0], len(x.shape), invalid)
    return x.reshape((*x.shape[:at], 1, *x.shape[at:]))


gradient("ExpandDims")(lambda op, dy: (back_to_input(op, dy), None))


@export("expand_dims")
def expand_dims(
    input: TensorLike, axis: TensorLike = None, name: str | None = None, dim: TensorLike = None
) -> Tensor:
    """Inserts a dimension of size 1 at position `axis`."""
    axis = _either("axis", axis, "dim", dim)
    if axis is None:
        raise ValueError("Must specify an axis argument to tf.expand_dims()")
    return apply("ExpandDims", input, axis, name=name)
