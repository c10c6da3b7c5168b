"""Ops that put something around what is there: zeros, a value, or its own edges mirrored."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape, unknown_shape
from tensorfleet.base.types import Array, ArrayModule, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, op
from tensorfleet.kernels.arrays import is_numpy, zeros_of
from tensorfleet.ops.array.shape import dense_gradient, invalid
from tensorfleet.ops.array.shape import rank as rank_of
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.array.stack import stack
from tensorfleet.ops.common import UNKNOWN, static_value
from tensorfleet.ops.samples import case

_X = np.arange(6, dtype=np.float32).reshape(2, 3)
_PADS = np.array([[1, 0], [2, 1]], np.int32)


# -- pad ---------------------------------------------------------------------------------------------


def _pairs(paddings: Array, rank: int, error: Any) -> list[tuple[int, int]]:
    if np.shape(paddings) != (rank, 2) and np.size(paddings) + rank:
        raise error(f"paddings must be a matrix with 2 columns and {rank} rows: {list(np.shape(paddings))}")
    return [(int(a), int(b)) for a, b in np.asarray(paddings).reshape(-1, 2)]


def _padded_rank(op: Operation) -> int | None:
    rows = op._inputs[1].shape._d
    if rows is not None and len(rows) != 2:
        raise ValueError(f"Shape must be rank 2 but is rank {len(rows)}")
    rank = op._inputs[0].shape.rank
    known = None if rows is None else rows[0]
    if rank is not None and known not in (None, rank):
        raise ValueError(f"Shape must be rank {known} but is rank {rank}")
    return rank if rank is not None else known


def _pad_shape(op: Operation) -> TensorShape:
    rank, paddings = _padded_rank(op), static_value(op, 1)
    if paddings is not None and np.any(paddings < 0):
        raise ValueError(f"Paddings must be non-negative: {paddings.tolist()}")
    if rank is None:
        return UNKNOWN
    dims = op._inputs[0].shape._d
    if dims is None or paddings is None:
        return unknown_shape(rank)
    sizes = zip(dims, _pairs(paddings, rank, ValueError), strict=True)
    return TensorShape._of(tuple(None if d is None else d + a + b for d, (a, b) in sizes))


def _pad(xp: ArrayModule, x: Array, paddings: Array, value: Array) -> Array:
    pairs = _pairs(paddings, len(x.shape), invalid)
    if any(a < 0 or b < 0 for a, b in pairs):
        raise invalid(f"Paddings must be non-negative: {pairs}")
    if not is_numpy(xp):
        from tensorfleet.kernels.xla import lax

        return lax.pad(x, xp.asarray(value, x.dtype), [(a, b, 0) for a, b in pairs])
    out = np.empty([d + a + b for d, (a, b) in zip(x.shape, pairs, strict=True)], x.dtype)
    out[...] = value
    out[tuple(slice(a, a + d) for d, (a, _) in zip(x.shape, pairs, strict=True))] = x
    return out


@op(
    "Pad",
    "input: T, paddings: Tpaddings[_,2] -> output: T",
    "T: type; Tpaddings: index = int32",
    shape=_pad_shape,
    static=["paddings"],
    examples=[
        case(_X, _PADS),
        case(np.array([1.0, 2.0]), np.array([[0, 2]])),
        case(np.float32(1.0), np.zeros((0, 2), np.int32)),
    ],
)
def _pad_zeros(xp: ArrayModule, x: Array, paddings: Array) -> Array:
    return _pad(xp, x, paddings, zeros_of((), np.dtype(x.dtype)))


@op(
    "PadV2",
    "input: T, paddings: Tpaddings[_,2], constant_values: T -> output: T",
    "T: type; Tpaddings: index = int32",
    shape=_pad_shape,
    static=["paddings"],
    examples=[
        case(_X, _PADS, np.float32(7), grad=False),
        case(np.array([b"a"], object), np.array([[1, 1]]), np.array(b"-", object)),
    ],
)
def _pad_v2(xp: ArrayModule, x: Array, paddings: Array, value: Array) -> Array:
    return _pad(xp, x, paddings, value)


@gradient("Pad", "PadV2")
def _pad_grad(op: Operation, dy: Tensor) -> tuple[Tensor | None, ...]:
    x, paddings = op._inputs[0], op._inputs[1]
    size = stack([rank_of(x), 1])
    before = apply("Slice", paddings, [0, 0], size)
    begin = apply("Reshape", before, [-1])
    dx = apply("Slice", dense_gradient(dy), begin, shape_of(x, out_type=begin.dtype))
    return (dx, None) if len(op._inputs) == 2 else (dx, None, None)


# -- mirror pad --------------------------------------------------------------------------------------


def _mirrored(dim: int, before: int, after: int, reflect: bool) -> Array:
    """Which source position each padded position shows."""
    limit = dim - 1 if reflect else dim
    if not (0 <= before <= limit and 0 <= after <= limit):
        raise invalid(
            f"paddings must be {'less than' if reflect else 'no greater than'} the dimension size: "
            f"{before}, {after} not {'less than' if reflect else 'no greater than'} {dim}"
        )
    mode = "reflect" if reflect else "symmetric"
    result: Array = np.pad(np.arange(dim), (before, after), mode=mode)  # type: ignore[call-overload]
    return result


@op(
    "MirrorPad",
    "input: T, paddings: Tpaddings[_,2] -> output: T",
    "T: type; Tpaddings: index = int32; mode: string(REFLECT|SYMMETRIC)",
    shape=_pad_shape,
    static=["paddings"],
    examples=[
        case(_X, np.array([[1, 0], [2, 1]], np.int32), mode="REFLECT"),
        case(_X, np.array([[2, 1], [0, 3]]), mode="SYMMETRIC"),
    ],
)
def _mirror_pad(xp: ArrayModule, x: Array, paddings: Array, *, mode: bytes) -> Array:
    for axis, (a, b) in enumerate(_pairs(paddings, len(x.shape), invalid)):
        if a or b:
            x = xp.take(x, _mirrored(x.shape[axis], a, b, mode == b"REFLECT"), axis=axis)
    return x


@gradient("MirrorPad")
def _mirror_pad_grad(op: Operation, dy: Tensor) -> tuple[Tensor, None]:
    return apply("MirrorPadGrad", dense_gradient(dy), op._inputs[1], mode=op._attrs["mode"]), None


def _unpad_shape(op: Operation) -> TensorShape:
    rank, paddings, dims = _padded_rank(op), static_value(op, 1), op._inputs[0].shape._d
    if rank is None:
        return UNKNOWN
    if dims is None or paddings is None:
        return unknown_shape(rank)
    sizes = zip(dims, _pairs(paddings, rank, ValueError), strict=True)
    return TensorShape._of(tuple(None if d is None else d - a - b for d, (a, b) in sizes))


@op(
    "MirrorPadGrad",
    "input: T, paddings: Tpaddings[_,2] -> output: T",
    "T: type; Tpaddings: index = int32; mode: string(REFLECT|SYMMETRIC)",
    shape=_unpad_shape,
    static=["paddings"],
    examples=[
        case(
            np.arange(18, dtype=np.float32).reshape(3, 6),
            np.array([[1, 0], [2, 1]], np.int32),
            mode="REFLECT",
        ),
        case(np.arange(8.0).reshape(2, 4), np.array([[0, 0], [2, 0]], np.int32), mode="SYMMETRIC"),
    ],
)
def _mirror_pad_grad_kernel(xp: ArrayModule, dy: Array, paddings: Array, *, mode: bytes) -> Array:
    for axis, (a, b) in enumerate(_pairs(paddings, len(dy.shape), invalid)):
        if a or b:
            dy = _fold(xp, dy, axis, a, b, mode == b"REFLECT")
    return dy


def _fold(xp: ArrayModule, dy: Array, axis: int, before: int, after: int, reflect: bool) -> Array:
    """Adds the padded borders back onto the positions they were copied from."""
    dim = dy.shape[axis] - before - after
    _mirrored(dim, before, after, reflect)
    skip = int(reflect)
    lead = (slice(None),) * axis
    middle = dy[(*lead, slice(before, before + dim))]
    rest = [(0, 0)] * dy.ndim

    def placed(part: Array, start: int) -> Array:
        pads = list(rest)
        pads[axis] = (start, dim - start - part.shape[axis])
        return xp.pad(part, pads)

    left = xp.flip(dy[(*lead, slice(0, before))], axis)
    right = xp.flip(dy[(*lead, slice(before + dim, None))], axis)
    return middle + placed(left, skip) + placed(right, dim - skip - after)


@gradient("MirrorPadGrad")
def _mirror_pad_grad_grad(op: Operation, dy: Tensor) -> tuple[Tensor, None]:
    return apply("MirrorPad", dense_gradient(dy), op._inputs[1], mode=op._attrs["mode"]), None


@export("pad")
def pad(
    tensor: TensorLike,
    paddings: TensorLike,
    mode: str = "CONSTANT",
    name: str | None = None,
    constant_values: Any = 0,
) -> Tensor:
    """Adds `paddings[i]` = (before, after) elements to each dimension: constant, reflected or symmetric."""
    kind = mode.upper()
    if kind == "CONSTANT":
        if not isinstance(constant_values, Tensor) and np.ndim(constant_values) == 0 and constant_values == 0:
            result = apply("Pad", tensor, paddings, name=name)
        else:
            result = apply("PadV2", tensor, paddings, constant_values, name=name)
    elif kind in ("REFLECT", "SYMMETRIC"):
        result = apply("MirrorPad", tensor, paddings, mode=kind, name=name)
    else:
        raise ValueError(f"Unknown padding mode: {mode}")
    _keep_known_sizes(result)
    return result


def _keep_known_sizes(padded: Tensor) -> None:
    """Where only some paddings are known, the others' dimensions alone stay open."""
    source, paddings = padded.op._inputs[0].shape, padded.op._inputs[1]
    if source._d is not None and paddings.op.type == "Pack" and paddings.op._attrs["axis"] == 0:
        rows = [constant_value(t) for t in paddings.op._inputs]
        dims = [
            None if row is None or d is None else d + int(row.sum())
            for row, d in zip(rows, source._d, strict=False)
        ]
        padded.set_shape(dims)
