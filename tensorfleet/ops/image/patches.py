"""Patches of images and volumes under a sliding window."""

from __future__ import annotations

import numpy as np

from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, ArrayModule, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import op
from tensorfleet.kernels.windows import output_size, pad_amounts
from tensorfleet.ops.nn.shapes import of_rank
from tensorfleet.ops.samples import case

_ANY = (
    "{float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, complex64, "
    "complex128, bool}"
)
_IMAGE = np.random.RandomState(0).rand(2, 5, 6, 2)
_VOLUME = np.random.RandomState(0).rand(1, 3, 4, 3, 2)


def _patched(op: Operation) -> TensorShape:
    dims = of_rank(op._inputs[0].shape, len(op._attrs["ksizes"])).as_list()
    sizes, strides = op._attrs["ksizes"], op._attrs["strides"]
    rates = op._attrs.get("rates") or [1] * len(sizes)
    padding = op._attrs["padding"]
    middle = [
        output_size(n, k, s, padding, r)
        for n, k, s, r in zip(dims[1:-1], sizes[1:-1], strides[1:-1], rates[1:-1], strict=True)
    ]
    depth = None if dims[-1] is None else dims[-1] * int(np.prod(sizes[1:-1]))
    return TensorShape([dims[0], *middle, depth])


def _patches(
    xp: ArrayModule, x: Array, sizes: list[int], strides: list[int], rates: list[int], padding: bytes
) -> Array:
    """Each place of the window becomes one pixel holding all it covers, row by row."""
    inner = range(1, x.ndim - 1)
    pads = [(0, 0)] * x.ndim
    outs = list(x.shape)
    for a in inner:
        pads[a] = pad_amounts(x.shape[a], sizes[a], strides[a], padding, rates[a])
        outs[a] = output_size(x.shape[a], sizes[a], strides[a], padding, rates[a])
    if any(p != (0, 0) for p in pads):
        wide = [(max(a, 0), max(b, 0)) for a, b in pads]
        x = xp.pad(x, wide)
    taps = []
    for tap in np.ndindex(*[sizes[a] for a in inner]):
        index: list[slice] = [slice(None)] * x.ndim
        for a, t in zip(inner, tap, strict=True):
            start = t * rates[a]
            index[a] = slice(start, start + (outs[a] - 1) * strides[a] + 1, strides[a])
        taps.append(x[tuple(index)])
    return xp.concatenate(taps, axis=-1)


@op(
    "ExtractImagePatches",
    "images: T[4] -> patches: T",
    f"ksizes: list(int) >= 4; strides: list(int) >= 4; rates: list(int) >= 4; T: {_ANY}; padding: string(SAME|VALID)",
    shape=_patched,
    words={"images": "input must be 4-dimensional{}"},
    examples=[
        case(_IMAGE, ksizes=[1, 2, 3, 1], strides=[1, 2, 1, 1], rates=[1, 1, 1, 1], padding="VALID"),
        case(_IMAGE, ksizes=[1, 3, 3, 1], strides=[1, 2, 2, 1], rates=[1, 2, 1, 1], padding="SAME"),
        case(
            (_IMAGE * 9).astype(np.int32),
            ksizes=[1, 2, 2, 1],
            strides=[1, 1, 1, 1],
            rates=[1, 1, 1, 1],
            padding="SAME",
        ),
    ],
)
def _extract_image_patches(
    xp: ArrayModule, x: Array, *, ksizes: list[int], strides: list[int], rates: list[int], padding: bytes
) -> Array:
    return _patches(xp, x, ksizes, strides, rates, padding)


@op(
    "ExtractVolumePatches",
    "input: T -> patches: T",
    "ksizes: list(int) >= 5; strides: list(int) >= 5; T: real; padding: string(SAME|VALID)",
    shape=_patched,
    examples=[
        case(_VOLUME, ksizes=[1, 2, 2, 2, 1], strides=[1, 1, 1, 1, 1], padding="VALID"),
        case(_VOLUME, ksizes=[1, 2, 3, 2, 1], strides=[1, 2, 2, 1, 1], padding="SAME"),
    ],
)
def _extract_volume_patches(
    xp: ArrayModule, x: Array, *, ksizes: list[int], strides: list[int], padding: bytes
) -> Array:
    return _patches(xp, x, ksizes, strides, [1] * len(ksizes), padding)


@export("image.extract_image_patches", "extract_image_patches")
def extract_image_patches(
    images: TensorLike,
    ksizes: TensorLike = None,
    strides: TensorLike = None,
    rates: TensorLike = None,
    padding: str | None = None,
    name: str | None = None,
    sizes: TensorLike = None,
) -> Tensor:
    """The patches under a window sliding over [batch, height, width, depth] images, each in the depth axis."""
    window = ksizes if sizes is None else sizes
    attrs = dict(ksizes=window, strides=strides, rates=rates, padding=padding)
    return apply("ExtractImagePatches", images, name=name, **attrs)


@export("image.extract_patches")
def extract_patches(
    images: TensorLike,
    sizes: TensorLike,
    strides: TensorLike,
    rates: TensorLike,
    padding: str,
    name: str | None = None,
) -> Tensor:
    """The patches under a window sliding over [batch, height, width, depth] images, each in the depth axis."""
    attrs = dict(ksizes=sizes, strides=strides, rates=rates, padding=padding)
    return apply("ExtractImagePatches", images, name=name, **attrs)


@export("extract_volume_patches")
def extract_volume_patches(
    input: TensorLike, ksizes: TensorLike, strides: TensorLike, padding: str, name: str | None = None
) -> Tensor:
    """The patches under a window sliding over [batch, planes, rows, cols, depth], each in the depth axis."""
    attrs = dict(ksizes=ksizes, strides=strides, padding=padding)
    return apply("ExtractVolumePatches", input, name=name, **attrs)
