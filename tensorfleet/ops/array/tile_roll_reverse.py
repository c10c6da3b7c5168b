"""Ops that repeat, roll and reverse what is there."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape, shape_text, unknown_shape
from tensorfleet.base.types import Array, ArrayModule, TensorLike
from tensorfleet.graph.apply import apply, apply_any
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.kernel_types import Check
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, op
from tensorfleet.kernels.arrays import is_numpy
from tensorfleet.kernels.parallel_for import in_parts
from tensorfleet.ops.array.shape import dense_gradient, invalid, known_rank
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.array.shape import size as size_of
from tensorfleet.ops.common import UNKNOWN, ints, shape_given_by, static_value
from tensorfleet.ops.nn.shapes import of_rank
from tensorfleet.ops.samples import case

_X = np.arange(6, dtype=np.float32).reshape(2, 3)
_BYTES_PER_THREAD = 1 << 20  # bytes that one of several threads writes


# -- tile --------------------------------------------------------------------------------------------


def _tile_shape(op: Operation) -> TensorShape:
    dims, times = op._inputs[0].shape._d, static_value(op, 1)
    rank = known_rank(op, 1)
    if dims is not None and rank not in (None, len(dims)):
        raise ValueError(f"Shape must be rank {len(dims)} but is rank {rank}")
    if dims is None:
        if rank is None:
            return unknown_shape()
        dims = (None,) * rank
    if times is not None and any(t < 0 for t in times):
        raise ValueError(f"Expected multiples >= 0, but got {ints(times)}")
    known = shape_given_by(op, 1)._d or (None,) * len(dims)
    return TensorShape._of(tuple(map(_times, dims, known)))


def _times(a: int | None, b: int | None) -> int | None:
    """The product of two sizes, which may be unknown: nothing is nothing, however often."""
    if a is None or b is None:
        return 0 if 0 in (a, b) else None
    return a * b


@op(
    "Tile",
    "input: T, multiples: Tmultiples[1] -> output: T",
    "T: type; Tmultiples: index = int32",
    shape=_tile_shape,
    moves="input",
    static=["multiples"],
    examples=[
        case(_X, np.array([2, 3], np.int32)),
        case(np.array([1.0]), np.array([0]), grad=False),
        case(np.array([b"a", b"b"], object), np.array([2], np.int32)),
    ],
)
def _tile(xp: ArrayModule, x: Array, multiples: Array) -> Array:
    times = ints(multiples)
    if len(times) != len(x.shape):
        raise invalid(
            f"Expected multiples argument to be a vector of length {len(x.shape)} but got length {len(times)}"
        )
    if any(t < 0 for t in times):
        raise invalid(f"Expected multiples >= 0, but got {times}")
    many = math.prod(times) * x.nbytes >= 2 * _BYTES_PER_THREAD if is_numpy(xp) else False
    return _tiled(x, times) if many and x.ndim and not x.dtype.hasobject else xp.tile(x, times)


def _tiled(x: Array, times: tuple[int, ...]) -> Array:
    """What numpy's `tile` makes dimension by dimension, in one pass and in parts."""
    result = np.empty([n * d for n, d in zip(times, x.shape, strict=True)], x.dtype)
    split = result.reshape([n for pair in zip(times, x.shape, strict=True) for n in pair])
    source = x.reshape([n for d in x.shape for n in (1, d)])
    axis = 2 * x.shape.index(max(x.shape)) + 1
    target, source, count = np.moveaxis(split, axis, 0), np.moveaxis(source, axis, 0), max(x.shape)
    work = lambda a, b: np.copyto(target[a:b], source[a:b])  # noqa: E731
    in_parts(work, count, -(-_BYTES_PER_THREAD * count // result.nbytes))
    return result


@gradient("Tile")
def _tile_grad(op: Operation, dy: Tensor) -> tuple[Tensor, None]:
    """Sums over the copies: [m0, d0, m1, d1, ...] along the m's."""
    times = op._inputs[1]
    size = shape_of(op._inputs[0], out_type=times.dtype)
    split = apply("Reshape", apply("Transpose", apply("Pack", [times, size]), [1, 0]), [-1])
    axes = apply("Range", 0, size_of(split), 2)
    return apply("Sum", apply("Reshape", dense_gradient(dy), split), axes), None


@export("tile", "manip.tile")
def tile(input: TensorLike, multiples: TensorLike, name: str | None = None) -> Tensor:
    """Repeats the whole tensor `multiples[i]` times along dimension i."""
    return apply("Tile", input, multiples, name=name)


# -- reverse and roll --------------------------------------------------------------------------------

_REVERSIBLE = (
    "{uint8, int8, uint16, int16, int32, uint32, int64, uint64, bool, bfloat16, half, float, double, "
    "complex64, complex128, string}"
)


def _reverse_v2_shape(op: Operation) -> TensorShape:
    shape, axes = op._inputs[0].shape, static_value(op, 1)
    if shape.rank is not None and axes is not None:
        _axes(ints(axes), shape.rank, ValueError)
    return shape


def _axes(axes: tuple[int, ...], rank: int, error: Any) -> list[int]:
    result: list[int] = []
    for axis in axes:
        if not -rank <= axis < rank:
            raise error(f"'axis'[{axes.index(axis)}] = {axis} is out of valid range [0, {rank - 1}")
        if axis % rank in result:
            raise error(f"axis {axis % rank} specified more than once.")
        result.append(axis % rank)
    return result


@op(
    "ReverseV2",
    "tensor: T, axis: Tidx[1] -> output: T",
    f"Tidx: index = int32; T: {_REVERSIBLE}",
    shape=_reverse_v2_shape,
    moves="tensor",
    static=["axis"],
    examples=[
        case(_X, np.array([1], np.int32)),
        case(_X, np.array([0, -1])),
        case(_X, np.array([], np.int32)),
        case(np.array([b"a", b"b"], object), np.array([0], np.int32)),
    ],
)
def _reverse_v2(xp: ArrayModule, x: Array, axis: Array) -> Array:
    axes = _axes(ints(axis), len(x.shape), invalid)
    return xp.flip(x, tuple(axes)) if axes else x


def _of_rank(shape: TensorShape, flags: TensorShape) -> TensorShape:
    """The shape, which has as many dimensions as there are flags."""
    return shape if flags._d is None or flags._d[0] is None else of_rank(shape, flags._d[0])


@op(
    "Reverse",
    "tensor: T, dims: bool[1] -> output: T",
    f"T: {_REVERSIBLE}",
    shape=lambda op: _of_rank(op._inputs[0].shape, op._inputs[1].shape),
    static=["dims"],
    examples=[case(_X, np.array([True, False])), case(_X, np.array([False, False]))],
)
def _reverse(xp: ArrayModule, x: Array, dims: Array) -> Array:
    axes = tuple(i for i, flag in enumerate(dims) if flag)
    return xp.flip(x, axes) if axes else x


gradient("ReverseV2", "Reverse")(lambda op, dy: (apply_any(op.type, dense_gradient(dy), op._inputs[1]), None))


@export("reverse", "reverse_v2", "manip.reverse")
def reverse(tensor: TensorLike, axis: TensorLike, name: str | None = None) -> Tensor:
    """Reverses the order of elements along each of the dimensions listed in `axis`."""
    return apply("ReverseV2", tensor, axis, name=name)


def _reversed_shape(op: Operation) -> TensorShape:
    dims = op._inputs[0].shape._d
    if dims is None:
        return UNKNOWN
    for which in ("batch_dim", "seq_dim"):
        if op._attrs[which] >= len(dims):
            raise ValueError(f"{which} must be < input rank: {op._attrs[which]} vs. {len(dims)}")
    batch = op._attrs["batch_dim"]
    wanted = op._inputs[1].shape.with_rank(1).as_list()[0]
    if wanted is not None and dims[batch] not in (None, wanted):
        raise ValueError(f"Dimensions must be equal, but are {dims[batch]} and {wanted}")
    return TensorShape._of((*dims[:batch], dims[batch] if wanted is None else wanted, *dims[batch + 1 :]))


@op(
    "ReverseSequence",
    "input: T, seq_lengths: Tlen[1] -> output: T",
    "seq_dim: int; batch_dim: int = 0; T: type; Tlen: index = int64",
    shape=_reversed_shape,
    examples=[
        case(_X, np.array([2, 3]), seq_dim=1),
        case(_X.T.copy(), np.array([1, 3], np.int32), seq_dim=0, batch_dim=1),
    ],
)
def _reverse_sequence(
    xp: ArrayModule, x: Array, lengths: Array, *, seq_dim: int, batch_dim: int, check: Check
) -> Array:
    rank, steps = len(x.shape), x.shape[seq_dim]
    if batch_dim == seq_dim:
        raise invalid(f"batch_dim == seq_dim == {seq_dim}")
    if len(lengths.shape) != 1 or lengths.shape[0] != x.shape[batch_dim]:
        raise invalid(
            f"Length of seq_lengths != input.dims({batch_dim}), ({lengths.shape} vs. {x.shape[batch_dim]})"
        )
    check(lengths >= 0, lambda: f"seq_lens({int(np.argmax(lengths < 0))}) < 0")
    check(lengths <= steps, lambda: f"seq_lens({int(np.argmax(lengths > steps))}) > input.dims({seq_dim})")
    time = np.arange(steps).reshape([-1 if i == seq_dim else 1 for i in range(rank)])
    ends = lengths.reshape([-1 if i == batch_dim else 1 for i in range(rank)])
    order = xp.where(time < ends, ends - 1 - time, time)
    return xp.take_along_axis(x, xp.broadcast_to(order, x.shape), axis=seq_dim)


@gradient("ReverseSequence")
def _reverse_sequence_grad(op: Operation, dy: Tensor) -> tuple[Tensor, None]:
    attrs = {k: op._attrs[k] for k in ("seq_dim", "batch_dim")}
    return apply("ReverseSequence", dense_gradient(dy), op._inputs[1], **attrs), None


@export("reverse_sequence")
def reverse_sequence(
    input: TensorLike,
    seq_lengths: TensorLike,
    seq_axis: int | None = None,
    batch_axis: int | None = None,
    name: str | None = None,
    seq_dim: int | None = None,
    batch_dim: int | None = None,
) -> Tensor:
    """Reverses the first `seq_lengths[b]` steps of each batch entry and keeps the rest."""
    time = seq_axis if seq_axis is not None else seq_dim
    batch = batch_axis if batch_axis is not None else batch_dim
    return apply("ReverseSequence", input, seq_lengths, seq_dim=time, batch_dim=batch, name=name)


def _rolled_shape(op: Operation) -> TensorShape:
    op._inputs[1].shape.merge_with(op._inputs[2].shape)
    return op._inputs[0].shape


@op(
    "Roll",
    "input: T[1+], shift: Tshift[1-], axis: Taxis[1-] -> output: T",
    "T: type; Tshift: index; Taxis: index",
    shape=_rolled_shape,
    static=["axis"],
    examples=[
        case(_X, np.int32(1), np.int32(0)),
        case(_X, np.array([1, -2], np.int32), np.array([0, 1], np.int32)),
        case(np.array([b"a", b"b", b"c"], object), np.int32(4), np.int32(0)),
    ],
)
def _roll(xp: ArrayModule, x: Array, shift: Array, axis: Array) -> Array:
    if not x.shape:
        raise invalid("input must be 1-D or higher")
    for name, given in (("shift", shift), ("axis", axis)):
        if np.ndim(given) > 1:
            raise invalid(f"{name} must be a scalar or a 1-D vector. Found: {shape_text(given.shape)}")
    if np.shape(shift) != np.shape(axis):
        raise invalid("shift and axis must have the same size")
    for k, at in enumerate(ints(axis)):
        if not -len(x.shape) <= at < len(x.shape):
            raise invalid(f"axis {at} is out of range")
        x = xp.roll(x, shift.reshape(-1)[k], axis=at)
    return x


@gradient("Roll")
def _roll_grad(op: Operation, dy: Tensor) -> tuple[Tensor, None, None]:
    return apply("Roll", dense_gradient(dy), apply("Neg", op._inputs[1]), op._inputs[2]), None, None


@export("roll", "manip.roll")
def roll(input: TensorLike, shift: TensorLike, axis: TensorLike, name: str | None = None) -> Tensor:
    """Moves elements along `axis` by `shift`; those pushed off one end come back at the other."""
    return apply("Roll", input, shift, axis, name=name)


@export("repeat")
def repeat(
    input: TensorLike, repeats: TensorLike, axis: TensorLike = None, name: str | None = None
) -> Tensor:
    """Repeats each element along `axis`, as often as `repeats` says; without `axis`, of the flat tensor."""
    from tensorfleet.graph.scopes import name_scope

    if axis is None:
        input, axis = apply("Reshape", input, [-1]), 0
    with name_scope(name, "Repeat", [input, repeats]):
        x = to_tensor(input, name="input")
        times = apply("Cast", to_tensor(repeats, name="repeats"), DstT="int32")
        times.shape.with_rank_at_most(1)
        rows = apply("Range", 0, shape_of(x)[axis], 1)
        if times.shape.rank == 0 or times.shape._d == (1,):
            columns = apply("Tile", apply("ExpandDims", rows, 1), [1, apply("Reshape", times, [])])
            return apply("GatherV2", x, apply("Reshape", columns, [-1]), axis)
        from tensorfleet.ops.array.constructors import sequence_mask
        from tensorfleet.ops.array.indexing import boolean_mask

        mask = sequence_mask(apply("BroadcastTo", times, apply("Shape", rows)))
        grid = apply("BroadcastTo", apply("ExpandDims", rows, 1), apply("Shape", mask))
        return apply("GatherV2", x, boolean_mask(grid, mask), axis)
