"""Moving blocks of space into the batch or into the channels, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape, unknown_shape
from tensorfleet.base.types import Array, ArrayModule, TensorLike
from tensorfleet.graph.apply import apply, constant
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.shape import bracketed, invalid
from tensorfleet.ops.common import UNKNOWN, ints, static_value
from tensorfleet.ops.samples import case

_IMAGE = np.arange(32, dtype=np.float32).reshape(1, 4, 4, 2)
_NONE = np.zeros((2, 2), np.int32)


def _divided(size: int | None, by: int, error: Any) -> int | None:
    if size is not None and size % by:
        raise error(f"Dimension size must be evenly divisible by {by} but is {size}")
    return None if size is None else size // by


# -- space to batch ----------------------------------------------------------------------------------


def _to_batch_dims(
    dims: tuple[int | None, ...], blocks: tuple[int, ...], pads: Array, error: Any
) -> tuple[int | None, ...]:
    if len(dims) < len(blocks) + 1:
        raise error(f"Shape must be at least rank {len(blocks) + 1} but is rank {len(dims)}")
    if any(b < 1 for b in blocks):
        raise error("block_shape must be positive")
    if (pads < 0).any():
        raise error("paddings cannot be negative")
    batch = None if dims[0] is None else dims[0] * int(np.prod(blocks))
    sizes = zip(dims[1:], blocks, pads.sum(axis=1).tolist(), strict=False)
    space = (_divided(None if d is None else d + int(p), b, error) for d, b, p in sizes)
    return (batch, *space, *dims[len(blocks) + 1 :])


def _to_space_dims(
    dims: tuple[int | None, ...], blocks: tuple[int, ...], crops: Array, error: Any
) -> tuple[int | None, ...]:
    if len(dims) < len(blocks) + 1:
        raise error(f"Shape must be at least rank {len(blocks) + 1} but is rank {len(dims)}")
    if (crops < 0).any():
        raise error("crops cannot be negative")
    batch = _divided(dims[0], int(np.prod(blocks)), error)
    sizes = zip(dims[1:], blocks, crops.sum(axis=1).tolist(), strict=False)
    space = [None if d is None else d * b - int(c) for d, b, c in sizes]
    if any(d is not None and d < 0 for d in space):
        raise error(f"Negative dimension size caused by cropping to {bracketed(space)}")
    return (batch, *space, *dims[len(blocks) + 1 :])


def _to_batch(xp: ArrayModule, x: Array, blocks: tuple[int, ...], pads: Array) -> Array:
    n = len(blocks)
    _to_batch_dims(tuple(x.shape), blocks, pads, invalid)
    rest = len(x.shape) - n - 1
    x = xp.pad(x, [(0, 0), *((int(a), int(b)) for a, b in pads), *[(0, 0)] * rest])
    batch, space, tail = x.shape[0], x.shape[1 : n + 1], x.shape[n + 1 :]
    cells = [v for d, b in zip(space, blocks, strict=True) for v in (d // b, b)]
    x = x.reshape((batch, *cells, *tail))
    inner, outer = [2 * i + 2 for i in range(n)], [2 * i + 1 for i in range(n)]
    x = xp.transpose(x, (*inner, 0, *outer, *range(2 * n + 1, 2 * n + 1 + rest)))
    return x.reshape((batch * int(np.prod(blocks)), *cells[::2], *tail))


def _to_space(xp: ArrayModule, x: Array, blocks: tuple[int, ...], crops: Array) -> Array:
    n = len(blocks)
    _to_space_dims(tuple(x.shape), blocks, crops, invalid)
    batch, space, tail = x.shape[0] // int(np.prod(blocks)), x.shape[1 : n + 1], x.shape[n + 1 :]
    x = x.reshape((*blocks, batch, *space, *tail))
    mixed = [v for i in range(n) for v in (n + 1 + i, i)]
    x = xp.transpose(x, (n, *mixed, *range(2 * n + 1, 2 * n + 1 + len(tail))))
    x = x.reshape((batch, *(d * b for d, b in zip(space, blocks, strict=True)), *tail))
    ends = zip(crops, x.shape[1 : n + 1], strict=True)
    return x[(slice(None), *(slice(int(a), d - int(b)) for (a, b), d in ends))]


def _nd_shape(op: Operation, resize: Any) -> TensorShape:
    dims, blocks, edges = op._inputs[0].shape._d, static_value(op, 1), static_value(op, 2)
    if op._inputs[1].shape.rank not in (None, 1):
        raise ValueError("block_shape must have rank 1.")
    count = op._inputs[1].shape[0].value
    if dims is not None and count is not None and len(dims) <= count:
        raise ValueError(f"Shape must be at least rank {count + 1} but is rank {len(dims)}")
    op._inputs[2].shape.merge_with([count, 2])
    if dims is None:
        return UNKNOWN
    if blocks is None:
        # What lies behind the blocks stays as it is; how much that is may be known without their sizes.
        return (
            unknown_shape(len(dims))
            if count is None
            else TensorShape._of((*(None,) * (count + 1), *dims[count + 1 :]))
        )
    sizes = ints(blocks)
    if any(size < 1 for size in sizes):
        raise ValueError(f"block_shape must be positive, got {bracketed(sizes)}")
    if edges is None:
        free = tuple(None if 1 <= i <= len(sizes) else d for i, d in enumerate(dims))
        return TensorShape._of(resize(free, sizes, np.zeros((len(sizes), 2), np.int64), ValueError))
    return TensorShape._of(resize(dims, sizes, edges, ValueError))


@op(
    "SpaceToBatchND",
    "input: T, block_shape: Tblock_shape, paddings: Tpaddings -> output: T",
    "T: type; Tblock_shape: index = int32; Tpaddings: index = int32",
    shape=lambda op: _nd_shape(op, _to_batch_dims),
    static=["block_shape", "paddings"],
    examples=[
        case(_IMAGE, np.array([2, 2], np.int32), _NONE),
        case(_IMAGE[:, :, 0], np.array([3], np.int32), np.array([[1, 1]], np.int32)),
    ],
)
def _space_to_batch_nd(xp: ArrayModule, x: Array, blocks: Array, pads: Array) -> Array:
    return _to_batch(xp, x, ints(blocks), np.asarray(pads))


@op(
    "BatchToSpaceND",
    "input: T, block_shape: Tblock_shape, crops: Tcrops -> output: T",
    "T: type; Tblock_shape: index = int32; Tcrops: index = int32",
    shape=lambda op: _nd_shape(op, _to_space_dims),
    static=["block_shape", "crops"],
    examples=[
        case(_IMAGE.reshape(4, 2, 2, 2), np.array([2, 2], np.int32), _NONE),
        case(_IMAGE.reshape(4, 4, 2), np.array([2], np.int32), np.array([[1, 2]], np.int32)),
    ],
)
def _batch_to_space_nd(xp: ArrayModule, x: Array, blocks: Array, crops: Array) -> Array:
    return _to_space(xp, x, ints(blocks), np.asarray(crops))


@gradient("SpaceToBatchND")
def _space_to_batch_nd_grad(op: Operation, dy: Tensor) -> tuple[Tensor, None, None]:
    return apply("BatchToSpaceND", dy, op._inputs[1], op._inputs[2]), None, None


@gradient("BatchToSpaceND")
def _batch_to_space_nd_grad(op: Operation, dy: Tensor) -> tuple[Tensor, None, None]:
    return apply("SpaceToBatchND", dy, op._inputs[1], op._inputs[2]), None, None


def _square_shape(op: Operation, resize: Any) -> TensorShape:
    dims, edges, block = op._inputs[0].shape._d, static_value(op, 1), op._attrs["block_size"]
    op._inputs[1].shape.merge_with([2, 2])
    if dims is None:
        return unknown_shape(4)
    if len(dims) != 4:
        raise ValueError(f"Shape must be rank 4 but is rank {len(dims)}")
    if edges is None:
        dims = (dims[0], None, None, dims[3])
    known = np.zeros((2, 2), np.int64) if edges is None else edges
    return TensorShape._of(resize(dims, (block, block), known, ValueError))


@op(
    "SpaceToBatch",
    "input: T, paddings: Tpaddings -> output: T",
    "T: type; Tpaddings: index = int32; block_size: int >= 2",
    shape=lambda op: _square_shape(op, _to_batch_dims),
    static=["paddings"],
    examples=[case(_IMAGE, _NONE, block_size=2)],
)
def _space_to_batch(xp: ArrayModule, x: Array, pads: Array, *, block_size: int) -> Array:
    return _to_batch(xp, x, (block_size, block_size), np.asarray(pads))


@op(
    "BatchToSpace",
    "input: T, crops: Tidx -> output: T",
    "T: type; block_size: int >= 2; Tidx: index = int32",
    shape=lambda op: _square_shape(op, _to_space_dims),
    static=["crops"],
    examples=[case(_IMAGE.reshape(4, 2, 2, 2), np.array([[1, 0], [0, 1]], np.int32), block_size=2)],
)
def _batch_to_space(xp: ArrayModule, x: Array, crops: Array, *, block_size: int) -> Array:
    return _to_space(xp, x, (block_size, block_size), np.asarray(crops))


@gradient("SpaceToBatch")
def _space_to_batch_grad(op: Operation, dy: Tensor) -> tuple[Tensor, None]:
    return apply("BatchToSpace", dy, op._inputs[1], block_size=op._attrs["block_size"]), None


@gradient("BatchToSpace")
def _batch_to_space_grad(op: Operation, dy: Tensor) -> tuple[Tensor, None]:
    return apply("SpaceToBatch", dy, op._inputs[1], block_size=op._attrs["block_size"]), None


@export("space_to_batch_nd", "manip.space_to_batch_nd")
def space_to_batch_nd(
    input: TensorLike, block_shape: TensorLike, paddings: TensorLike, name: str | None = None
) -> Tensor:
    """Pads, then moves blocks of the dimensions after the first into the batch."""
    return apply("SpaceToBatchND", input, block_shape, paddings, name=name)


@export("batch_to_space_nd", "manip.batch_to_space_nd")
def batch_to_space_nd(
    input: TensorLike, block_shape: TensorLike, crops: TensorLike, name: str | None = None
) -> Tensor:
    """Undoes `tf.space_to_batch_nd`: blocks move from the batch back into space, then are cropped."""
    return apply("BatchToSpaceND", input, block_shape, crops, name=name)


@export("space_to_batch", "nn.space_to_batch")
def space_to_batch(
    input: TensorLike,
    paddings: TensorLike,
    block_size: TensorLike = None,
    name: str | None = None,
    block_shape: TensorLike = None,
) -> Tensor:
    """Moves blocks of height and width into the batch."""
    result = space_to_batch_nd(input, _block(block_size, block_shape), paddings, name=name)
    result.set_shape(result.shape.with_rank(4) if block_shape is None else result.shape)
    return result


@export("batch_to_space")
def batch_to_space(
    input: TensorLike,
    crops: TensorLike,
    block_size: TensorLike,
    name: str | None = None,
    block_shape: TensorLike = None,
) -> Tensor:
    """Moves blocks from the batch back into height and width."""
    result = batch_to_space_nd(input, _block(block_size, block_shape), crops, name=name)
    result.set_shape(result.shape.with_rank(4) if block_shape is None else result.shape)
    return result


def _block(size: TensorLike, shape: TensorLike) -> TensorLike:
    if shape is not None:
        return shape
    return np.array([size, size], np.int64)


@export("required_space_to_batch_paddings")
def required_space_to_batch_paddings(
    input_shape: TensorLike,
    block_shape: TensorLike,
    base_paddings: TensorLike = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The paddings that make `input_shape` divisible by `block_shape`, and the crops that undo them."""
    with name_scope(name, "required_space_to_batch_paddings", [input_shape, block_shape]):
        size = to_tensor(input_shape, "int32", name="input_shape")
        block = to_tensor(block_shape, "int32", name="block_shape")
        count = block.shape.with_rank(1)._d
        n = None if count is None else count[0]
        if n is None:
            raise ValueError("block_shape must have a known length")
        base = np.zeros((n, 2), np.int32) if base_paddings is None else base_paddings
        base = to_tensor(base, "int32", name="base_paddings" if base_paddings is not None else "zeros")
        known = [constant_value(t) for t in (size, block, base)]
        if all(k is not None for k in known):
            pads, crops = _static_paddings(*(np.asarray(k) for k in known))
            return constant(pads, name="paddings"), constant(crops, name="crops")
        before, least = base[:, 0], base[:, 1]
        extra = (block - (size + before + least) % block) % block
        after = least + extra
        zero = np.zeros(n, np.int32)
        return (
            apply("Pack", [before, after], axis=1, name="paddings"),
            apply("Pack", [zero, extra], axis=1, name="crops"),
        )


def _static_paddings(size: Array, block: Array, base: Array) -> tuple[Array, Array]:
    extra = (block - (size + base.sum(axis=1)) % block) % block
    pads = np.stack([base[:, 0], base[:, 1] + extra], axis=1).astype(np.int32)
    return pads, np.stack([np.zeros_like(extra), extra], axis=1).astype(np.int32)


# -- space to depth ----------------------------------------------------------------------------------


def _split_dims(dims: tuple[int | None, ...], layout: bytes) -> tuple[int | None, ...]:
    if len(dims) != 4:
        raise ValueError(f"Shape must be rank 4 but is rank {len(dims)}")
    return dims if layout == b"NHWC" else (dims[0], dims[2], dims[3], dims[1])


def _join_dims(n: int | None, h: int | None, w: int | None, c: int | None, layout: bytes) -> TensorShape:
    return TensorShape._of((n, h, w, c) if layout == b"NHWC" else (n, c, h, w))


def _to_depth_shape(op: Operation) -> TensorShape:
    block, layout, dims = op._attrs["block_size"], op._attrs["data_format"], op._inputs[0].shape._d
    if dims is None:
        return unknown_shape(4)
    n, h, w, c = _split_dims(dims, layout)
    depth = None if c is None else c * block * block
    return _join_dims(n, _divided(h, block, ValueError), _divided(w, block, ValueError), depth, layout)


def _from_depth_shape(op: Operation) -> TensorShape:
    block, layout, dims = op._attrs["block_size"], op._attrs["data_format"], op._inputs[0].shape._d
    if dims is None:
        return unknown_shape(4)
    n, h, w, c = _split_dims(dims, layout)
    tall, wide = (None if d is None else d * block for d in (h, w))
    return _join_dims(n, tall, wide, _divided(c, block * block, ValueError), layout)


_DEPTH_ATTRS = "T: type; block_size: int >= 2; data_format: string(NHWC|NCHW|NCHW_VECT_C) = 'NHWC'"


@op(
    "SpaceToDepth",
    "input: T[4] -> output: T",
    _DEPTH_ATTRS,
    shape=_to_depth_shape,
    words={"input": "Input rank should be: 4 instead of shape {}"},
    examples=[case(_IMAGE, block_size=2), case(_IMAGE.reshape(1, 2, 4, 4), block_size=2, data_format="NCHW")],
)
def _space_to_depth(xp: ArrayModule, x: Array, *, block_size: int, data_format: bytes) -> Array:
    b = block_size
    if data_format == b"NCHW":
        n, c, h, w = x.shape
        x = x.reshape((n, c, h // b, b, w // b, b))
        return xp.transpose(x, (0, 3, 5, 1, 2, 4)).reshape((n, c * b * b, h // b, w // b))
    n, h, w, c = x.shape
    x = x.reshape((n, h // b, b, w // b, b, c))
    return xp.transpose(x, (0, 1, 3, 2, 4, 5)).reshape((n, h // b, w // b, c * b * b))


@op(
    "DepthToSpace",
    "input: T[4] -> output: T",
    _DEPTH_ATTRS,
    shape=_from_depth_shape,
    words={"input": "Input rank should be: 4 instead of shape {}"},
    examples=[
        case(_IMAGE.reshape(1, 2, 2, 8), block_size=2),
        case(_IMAGE.reshape(1, 8, 2, 2), block_size=2, data_format="NCHW"),
    ],
)
def _depth_to_space(xp: ArrayModule, x: Array, *, block_size: int, data_format: bytes) -> Array:
    b = block_size
    if data_format == b"NCHW":
        n, c, h, w = x.shape
        x = x.reshape((n, b, b, c // (b * b), h, w))
        return xp.transpose(x, (0, 3, 4, 1, 5, 2)).reshape((n, c // (b * b), h * b, w * b))
    n, h, w, c = x.shape
    x = x.reshape((n, h, w, b, b, c // (b * b)))
    return xp.transpose(x, (0, 1, 3, 2, 4, 5)).reshape((n, h * b, w * b, c // (b * b)))


def _depth_attrs(op: Operation) -> dict[str, Any]:
    return {k: op._attrs[k] for k in ("block_size", "data_format")}


gradient("SpaceToDepth")(lambda op, dy: apply("DepthToSpace", dy, **_depth_attrs(op)))
gradient("DepthToSpace")(lambda op, dy: apply("SpaceToDepth", dy, **_depth_attrs(op)))


@export("space_to_depth", "nn.space_to_depth")
def space_to_depth(
    input: TensorLike, block_size: int, name: str | None = None, data_format: str = "NHWC"
) -> Tensor:
    """Moves blocks of height and width into the channels."""
    return apply("SpaceToDepth", input, block_size=block_size, data_format=data_format, name=name)


@export("depth_to_space", "nn.depth_to_space")
def depth_to_space(
    input: TensorLike, block_size: int, name: str | None = None, data_format: str = "NHWC"
) -> Tensor:
    """Moves channels into blocks of height and width."""
    return apply("DepthToSpace", input, block_size=block_size, data_format=data_format, name=name)
