"""Slices of tensors: `tf.slice`, `tf.strided_slice`, their gradients, writing into slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape, unknown_shape
from tensorfleet.base.types import Array, ArrayModule, TensorLike
from tensorfleet.graph.apply import apply, apply_any
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable, op
from tensorfleet.kernels import lane_kernels
from tensorfleet.kernels.arrays import is_numpy
from tensorfleet.ops.array.constructors import ones_like
from tensorfleet.ops.array.shape import bracketed, dense_gradient, invalid, known_rank
from tensorfleet.ops.array.shape import rank as rank_of
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.array.stack import stack
from tensorfleet.ops.common import UNKNOWN, ints, shape_given_by, static_value
from tensorfleet.ops.samples import case

_X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def _i32(*values: int) -> Array:
    return np.array(values, np.int32)


# -- Slice -------------------------------------------------------------------------------------------


def _slice_shape(op: Operation) -> TensorShape:
    source, begin, size = op._inputs[0].shape, static_value(op, 1), static_value(op, 2)
    rank = next((r for r in (source.rank, known_rank(op, 1), known_rank(op, 2)) if r is not None), None)
    for position in (1, 2):
        length = known_rank(op, position)
        if rank is not None and length not in (None, rank):
            raise ValueError(f"Shape must be rank {length} but is rank {rank}")
    if size is None:
        given = shape_given_by(op, 2) if rank is not None else UNKNOWN
        # An unknown entry may be -1 as well, which says nothing of the size.
        return given if given._d is not None else unknown_shape(rank)
    dims = source._d if source._d is not None else (None,) * len(size)
    out: list[int | None] = []
    for i, wanted in enumerate(ints(size)):
        if wanted < -1:
            raise ValueError(f"Invalid value in tensor used for shape: {wanted}")
        known = dims[i]
        if wanted != -1:
            out.append(wanted)
        elif known is None or begin is None:
            out.append(None)
        elif known < begin[i]:
            raise ValueError(f"Negative dimension size caused by subtracting {int(begin[i])} from {known}")
        else:
            out.append(known - int(begin[i]))
    return TensorShape._of(tuple(out))


@op(
    "Slice",
    "input: T, begin: Index[1], size: Index[1] -> output: T",
    "T: type; Index: index",
    shape=_slice_shape,
    moves="input",
    static=["begin", "size"],
    examples=[
        case(_X, _i32(0, 1, 2), _i32(1, 2, 2)),
        case(_X, np.array([1, 0, 1]), np.array([-1, 2, -1])),
        case(_X[0, 0], _i32(2), _i32(0), grad=False),
        case(np.array([b"a", b"b"], object), _i32(1), _i32(1)),
    ],
)
def _slice(xp: ArrayModule, x: Array, begin: Array, size: Array) -> Array:
    starts, sizes, rank = ints(begin), list(ints(size)), len(x.shape)
    if len(starts) != rank or len(sizes) != rank:
        raise invalid(
            "Expected begin and size arguments to be 1-D tensors of size "
            f"{rank}, but got shapes [{len(starts)}] and [{len(sizes)}] instead."
        )
    for i, (start, dim) in enumerate(zip(starts, x.shape, strict=True)):
        if not 0 <= start <= dim:
            raise invalid(f"Expected begin[{i}] in [0, {dim}], but got {start}")
        if sizes[i] == -1:
            sizes[i] = dim - start
        if not 0 <= sizes[i] <= dim - start:
            raise invalid(f"Expected size[{i}] in [0, {dim - start}], but got {sizes[i]}")
    return _take(xp, x, [range(b, b + s) for b, s in zip(starts, sizes, strict=True)])


@gradient("Slice")
def _slice_grad(op: Operation, dy: Tensor) -> tuple[Tensor, None, None]:
    x, begin = op._inputs[0], op._inputs[1]
    column = stack([rank_of(x), 1])
    kind = begin.dtype
    whole, part = shape_of(x, out_type=kind), shape_of(op._outputs[0], out_type=kind)
    after = apply("Sub", apply("Sub", whole, part), begin)
    paddings = apply("ConcatV2", [apply("Reshape", begin, column), apply("Reshape", after, column)], 1)
    return apply("Pad", dense_gradient(dy), paddings), None, None


@export("slice")
def slice_(input_: TensorLike, begin: TensorLike, size: TensorLike, name: str | None = None) -> Tensor:
    """The block of `size` elements per dimension that starts at `begin`; a size of -1 means the rest."""
    return apply("Slice", input_, begin, size, name=name)


def _take(xp: ArrayModule, x: Array, ranges: Sequence[range]) -> Array:
    """The elements of `x` at these positions, dimension by dimension."""
    if is_numpy(xp):
        taken: Array = x[(*map(_as_slice, ranges), ...)]  # type: ignore[arg-type] # NumPy declares no tuples of unknown length
        return taken
    from tensorfleet.kernels.xla import lax

    up = [r if r.step > 0 else r[::-1] for r in ranges]
    starts, stops = [r.start if r else 0 for r in up], [r[-1] + 1 if r else 0 for r in up]
    out = lax.slice(x, starts, stops, [r.step if r else 1 for r in up])
    backward = tuple(i for i, r in enumerate(ranges) if r.step < 0)
    return lax.rev(out, backward) if backward else out


def _as_slice(r: range) -> slice:
    if not r:
        return slice(0, 0)
    return slice(r.start, r.stop if r.stop >= 0 else None, r.step)


# -- StridedSlice ------------------------------------------------------------------------------------


class SlicePlan(NamedTuple):
    """What a strided slice picks: positions along each input dimension, then the shape it ends in."""

    ranges: list[range]
    shape: tuple[int, ...]


class Masks(NamedTuple):
    """The five bit masks of a strided slice."""

    begin: int
    end: int
    ellipsis: int
    new_axis: int
    shrink: int

    @classmethod
    def of(cls, op: Operation) -> Masks:
        """The masks among an operation's attributes."""
        return cls(*(op._attrs[f"{m}_mask"] for m in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")))


def _entries(count: int, rank: int, masks: Masks, error: Any) -> list[int | None]:
    """For each dimension of the result before shrinking: which entry of the spec rules it.

    None stands for a dimension inside the ellipsis; new axes are left as entries of their own.
    """
    if bin(masks.ellipsis & ((1 << count) - 1)).count("1") > 1:
        raise error("Multiple ellipses in slice spec not allowed")
    used = sum(1 for i in range(count) if not (masks.ellipsis | masks.new_axis) >> i & 1)
    if used > rank:
        raise error(f"Index out of range using input dim {rank}; input has only {rank} dims")
    entries: list[int | None] = []
    seen = False
    for i in range(count):
        if masks.ellipsis >> i & 1:
            seen = True
            entries += [None] * (rank - used)
        else:
            entries.append(i)
    return entries if seen else entries + [None] * (rank - used)


def make_plan(
    dims: Sequence[int],
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int],
    masks: Masks,
    error: Any,
) -> SlicePlan:
    """Resolves a slice spec against a shape; raises `error(message)` when it does not fit."""
    ranges: list[range] = []
    shape: list[int] = []
    for i in _entries(len(begin), len(dims), masks, error):
        if i is not None and masks.new_axis >> i & 1:
            shape.append(1)
            continue
        axis, dim = len(ranges), dims[len(ranges)]
        if i is None:
            picked = range(dim)
        elif masks.shrink >> i & 1:
            at = begin[i] if begin[i] >= 0 else begin[i] + dim
            _check_shrink(at, dim, strides[i], i, axis, error)
            ranges.append(range(at, at + 1))
            continue
        else:
            picked = _positions(i, dim, begin, end, strides, masks, error)
        ranges.append(picked)
        shape.append(len(picked))
    return SlicePlan(ranges, tuple(shape))


def _check_shrink(at: int, dim: int, stride: int, i: int, axis: int, error: Any) -> None:
    if stride == 0:
        raise error(f"strides[{i}] must be non-zero")
    if stride < 0:
        raise error("only stride 1 allowed on non-range indexing.")
    if not 0 <= at < dim:
        raise error(f"slice index {at} of dimension {axis} out of bounds.")


def _positions(
    i: int,
    dim: int,
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int],
    masks: Masks,
    error: Any,
) -> range:
    if strides[i] == 0:
        raise error(f"strides[{i}] must be non-zero")
    first = None if masks.begin >> i & 1 else begin[i]
    last = None if masks.end >> i & 1 else end[i]
    return range(*slice(first, last, strides[i]).indices(dim))


def _strided_shape(op: Operation) -> TensorShape:
    values = [static_value(op, i) for i in (1, 2, 3)]
    lengths = {known_rank(op, i) for i in (1, 2, 3)} - {None}
    dims, masks = op._inputs[0].shape._d, Masks.of(op)
    if not lengths:
        return UNKNOWN
    count = lengths.pop()
    if lengths:
        raise ValueError("Expected begin, end, and strides to be 1D equal size tensors")
    assert count is not None
    if dims is None:
        return UNKNOWN
    out: list[int | None] = []
    axis = 0
    for i in _entries(count, len(dims), masks, ValueError):
        if i is not None and masks.new_axis >> i & 1:
            out.append(1)
            continue
        dim, axis = dims[axis], axis + 1
        if i is None:
            out.append(dim)
        elif masks.shrink >> i & 1:
            _shrink_if_known(values, i, dim, axis - 1)
        else:
            out.append(_size_if_known(values, i, dim, masks))
    return TensorShape._of(tuple(out))


def _shrink_if_known(values: list[Array | None], i: int, dim: int | None, axis: int) -> None:
    if values[0] is not None and dim is not None:
        at = int(values[0][i])
        stride = 1 if values[2] is None else int(values[2][i])
        _check_shrink(at if at >= 0 else at + dim, dim, stride, i, axis, ValueError)


def _size_if_known(values: list[Array | None], i: int, dim: int | None, masks: Masks) -> int | None:
    begin, end, strides = values
    if strides is not None and strides[i] == 0:
        raise ValueError(f"strides[{i}] must be non-zero")
    whole = masks.begin & masks.end & 1 << i
    if dim is None or strides is None or ((begin is None or end is None) and not whole):
        return None
    blank = np.zeros(i + 1, np.int64)
    begin, end = (blank if v is None else v for v in (begin, end))
    return len(_positions(i, dim, ints(begin), ints(end), ints(strides), masks, ValueError))


_STRIDED_ATTRS = (
    "T: type; Index: {types}; begin_mask: int = 0; end_mask: int = 0; ellipsis_mask: int = 0; "
    "new_axis_mask: int = 0; shrink_axis_mask: int = 0"
)
_ATTRS16, _ATTRS = (_STRIDED_ATTRS.replace("{types}", t) for t in ("{int16, int32, int64}", "index"))


def _plan(op: Operation, dims: Sequence[int], begin: Array, end: Array, strides: Array) -> SlicePlan:
    return make_plan(dims, ints(begin), ints(end), ints(strides), Masks.of(op), invalid)


@op(
    "StridedSlice",
    "input: T, begin: Index[1], end: Index[1], strides: Index[1] -> output: T",
    _ATTRS16,
    shape=_strided_shape,
    moves="input",
    static=["begin", "end", "strides"],
    joined=lane_kernels.strided_slice,
    examples=[
        case(_X, _i32(0, 1), _i32(0, 3), _i32(1, 1), begin_mask=1, end_mask=1),
        case(_X, _i32(1, 0, 3), _i32(2, 0, 0), _i32(1, 1, -2), shrink_axis_mask=1, ellipsis_mask=2),
        case(_X, _i32(0, 0, 0), _i32(0, 0, 0), _i32(1, 1, -1), new_axis_mask=1, begin_mask=6, end_mask=6),
        case(np.array([b"a", b"b"], object), _i32(-1), _i32(0), _i32(1), shrink_axis_mask=1),
    ],
)
def _strided_slice(
    xp: ArrayModule, x: Array, begin: Array, end: Array, strides: Array, *, op: Operation
) -> Array:
    plan = _plan(op, x.shape, begin, end, strides)
    return _take(xp, x, plan.ranges).reshape(plan.shape)


def slice_each(op: Operation, rows: Array, begin: Any, end: Any, strides: Any) -> Array:
    """What a StridedSlice picks of each of some values that lie in one array."""
    plan = _plan(op, rows.shape[1:], begin, end, strides)
    where: Any = (slice(None), *map(_as_slice, plan.ranges), ...)
    result: Array = rows[where].reshape(len(rows), *plan.shape)
    return result


def _mask_attrs(op: Operation) -> dict[str, Any]:
    return {k: v for k, v in op._attrs.items() if k.endswith("_mask")}


@gradient("StridedSlice")
def _strided_slice_grad(op: Operation, dy: Tensor) -> tuple[Tensor, None, None, None]:
    x, begin, end, strides = op._inputs
    if begin.dtype.name == "int16":
        begin, end, strides = (apply("Cast", t, DstT="int32") for t in (begin, end, strides))
    size = shape_of(x, out_type=begin.dtype)
    dx = apply("StridedSliceGrad", size, begin, end, strides, dense_gradient(dy), **_mask_attrs(op))
    return dx, None, None, None


@op(
    "StridedSliceGrad",
    "shape: Index[1], begin: Index, end: Index, strides: Index, dy: T -> output: T",
    _ATTRS,
    shape=lambda op: shape_given_by(op, 0),
    static=["shape", "begin", "end", "strides"],
    examples=[
        case(_i32(3, 4), _i32(1, 3), _i32(2, 0), _i32(1, -2), _X[0, 0, :2], shrink_axis_mask=1),
        case(_i32(4), _i32(0), _i32(0), _i32(2), np.array([1.0, 2.0]), begin_mask=1, end_mask=1),
    ],
)
def _strided_slice_grad_kernel(
    xp: ArrayModule, size: Array, begin: Array, end: Array, strides: Array, dy: Array, *, op: Operation
) -> Array:
    dims = ints(size)
    plan = _plan(op, dims, begin, end, strides)
    if tuple(dy.shape) != plan.shape:
        raise invalid(f"shape of dy was {bracketed(dy.shape)} instead of {bracketed(plan.shape)}")
    rows = dy.reshape(tuple(map(len, plan.ranges)))
    if is_numpy(xp):
        out = np.zeros(dims, dy.dtype)
        out[tuple(map(_as_slice, plan.ranges))] = rows
        return out
    return _spread(rows, dims, plan.ranges)


def _spread(rows: Array, dims: Sequence[int], ranges: Sequence[range]) -> Array:
    """Puts `rows` at these positions of a tensor of zeros: one pad with gaps inside."""
    from tensorfleet.kernels.xla import lax

    backward = tuple(i for i, r in enumerate(ranges) if r.step < 0)
    if backward:
        rows = lax.rev(rows, backward)
    pads = []
    for dim, r in zip(dims, (r if r.step > 0 else r[::-1] for r in ranges), strict=True):
        pads.append((r.start, dim - r[-1] - 1, r.step - 1) if r else (0, dim, 0))
    return lax.pad(rows, np.zeros((), rows.dtype), pads)


@gradient("StridedSliceGrad")
def _strided_slice_grad_grad(op: Operation, dy: Tensor) -> tuple[Tensor | None, ...]:
    begin, end, strides = op._inputs[1:4]
    return None, None, None, None, apply("StridedSlice", dy, begin, end, strides, **_mask_attrs(op))


def _assigned(
    xp: ArrayModule, current: Array, begin: Array, end: Array, strides: Array, value: Array, op: Operation
) -> Array:
    plan = _plan(op, current.shape, begin, end, strides)
    try:
        rows = xp.broadcast_to(value, plan.shape)
    except ValueError:
        message = (
            f"Cannot broadcast input shape {bracketed(value.shape)} into final shape {bracketed(plan.shape)}"
        )
        raise invalid(message) from None
    rows = rows.reshape(tuple(map(len, plan.ranges)))
    index = tuple(map(_as_slice, plan.ranges))
    if is_numpy(xp):
        out = np.array(current)
        out[index] = rows
        return out
    from tensorfleet.kernels.xla import at

    return at(xp.asarray(current), index).set(rows)


@op(
    "StridedSliceAssign",
    "ref: Ref(T), begin: Index, end: Index, strides: Index, value: T -> output_ref: Ref(T)",
    _ATTRS,
    shape=lambda op: op._inputs[0].shape,
    static=["begin", "end", "strides"],
    updates=["ref"],
)
def _strided_assign(
    xp: ArrayModule, ref: Array, begin: Array, end: Array, strides: Array, value: Array, *, op: Operation
) -> Array:
    return _assigned(xp, ref, begin, end, strides, value, op)


@op(
    "ResourceStridedSliceAssign",
    "ref: resource, begin: Index, end: Index, strides: Index, value: T ->",
    _ATTRS,
    static=["begin", "end", "strides"],
    updates=["ref"],
    stateful=True,
)
def _resource_strided_assign(
    xp: ArrayModule, current: Array, begin: Array, end: Array, strides: Array, value: Array, *, op: Operation
) -> Array:
    return _assigned(xp, current, begin, end, strides, value, op)


not_differentiable("StridedSliceAssign", "ResourceStridedSliceAssign")


@export("strided_slice")
def strided_slice(
    input_: TensorLike,
    begin: TensorLike,
    end: TensorLike,
    strides: TensorLike = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: TensorLike = None,
    name: str | None = None,
) -> Tensor:
    """Elements from `begin` to `end` in steps of `strides`, dimension by dimension; see `tensor[...]`."""
    if strides is None:
        strides = ones_like(begin)
    masks: dict[str, Any] = {
        "begin_mask": begin_mask,
        "end_mask": end_mask,
        "ellipsis_mask": ellipsis_mask,
        "new_axis_mask": new_axis_mask,
        "shrink_axis_mask": shrink_axis_mask,
    }
    sliced = apply("StridedSlice", input_, begin, end, strides, name=name, **masks)
    parent = name or "StridedSlice"
    # As in TensorFlow, the slice of a variable can be assigned to.
    assign = _assigner(var, begin, end, strides, masks, parent) if var is not None else _only_variables
    sliced.assign = assign  # type: ignore[attr-defined]
    return sliced


def _only_variables(value: list[int], name: str | None = None) -> NoReturn:
    """What a slice of anything but a variable has for `assign`."""
    raise ValueError("Sliced assignment is only supported for variables")


def _assigner(
    var: Any, begin: TensorLike, end: TensorLike, strides: TensorLike, masks: dict[str, Any], parent: str
) -> Any:
    def assign(value: TensorLike, name: str | None = None) -> Any:
        """Writes `value` into this part of the variable."""
        name = name or parent + "_assign"
        if not hasattr(var, "handle"):
            ref = var._ref()
            return apply("StridedSliceAssign", ref, begin, end, strides, value, name=name, **masks)
        tensor = to_tensor(value, var.dtype.base_dtype)
        kind = "ResourceStridedSliceAssign"
        written = apply_any(kind, var.handle, begin, end, strides, tensor, name=name, **masks)
        return var._written(written, True)

    return assign
