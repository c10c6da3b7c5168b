"""Grayscale morphology: dilation and erosion of images by a structuring function."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, ArrayModule, Dims, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.kernels.windows import WindowGrid, make_window, output_size, pad, scatter, take
from tensorfleet.ops.nn.shapes import of_rank, same_dimension
from tensorfleet.ops.samples import case

_RANDOM = np.random.RandomState(0)
_X, _F = _RANDOM.rand(1, 5, 6, 2), _RANDOM.rand(2, 3, 2)
_ATTRS = "T: real; strides: list(int) >= 4; rates: list(int) >= 4; padding: string(SAME|VALID)"
_SAMPLE: dict[str, Any] = dict(strides=[1, 1, 1, 1], rates=[1, 1, 1, 1], padding="SAME")
_WIDE: dict[str, Any] = dict(strides=[1, 2, 1, 1], rates=[1, 2, 1, 1], padding="VALID")


def _dilated(op: Operation) -> TensorShape:
    batch, height, width, depth = of_rank(op._inputs[0].shape, 4).as_list()
    rows, columns, channels = of_rank(op._inputs[1].shape, 3).as_list()
    strides, rates, padding = (op._attrs[k] for k in ("strides", "rates", "padding"))
    high = output_size(height, rows, strides[1], padding, rates[1])
    wide = output_size(width, columns, strides[2], padding, rates[2])
    return TensorShape([batch, high, wide, same_dimension(depth, channels)])


def _window(x: Array, f: Array, strides: list[int], rates: list[int], padding: bytes) -> WindowGrid:
    return make_window(x.shape, (1, *f.shape[:2], 1), strides, padding, dilations=rates)


def _lowest(dtype: np.dtype[Any]) -> float:
    dtype = np.dtype(dtype)
    return -np.inf if dtype.kind not in "iu" else np.iinfo(dtype).min


def _candidates(xp: ArrayModule, x: Array, f: Array, win: WindowGrid) -> list[tuple[Dims, Array]]:
    """For each tap: its place, and input plus filter there."""
    padded = pad(xp, x, win, _lowest(x.dtype))
    return [(tap, take(xp, padded, win, tap) + f[tap[1], tap[2]]) for tap in win.taps()]


@op(
    "Dilation2D",
    "input: T, filter: T -> output: T",
    _ATTRS,
    shape=_dilated,
    examples=[
        case(_X, _F, **_SAMPLE),
        case(_X, _F, **_WIDE),
        case(_X.astype(np.float32), _F.astype(np.float32), **_WIDE),
    ],
)
def _dilation(
    xp: ArrayModule, x: Array, f: Array, *, strides: list[int], rates: list[int], padding: bytes
) -> Array:
    return _largest(xp, _candidates(xp, x, f, _window(x, f, strides, rates, padding)))


def _largest(xp: ArrayModule, candidates: list[tuple[Dims, Array]]) -> Array:
    return functools.reduce(xp.maximum, [value for _, value in candidates])


@gradient("Dilation2D")
def _dilation_gradient(op: Operation, dy: Tensor) -> tuple[Tensor, Tensor]:
    attrs = {k: op.get_attr(k) for k in ("strides", "rates", "padding")}
    return (
        apply("Dilation2DBackpropInput", op.inputs[0], op.inputs[1], dy, **attrs),
        apply("Dilation2DBackpropFilter", op.inputs[0], op.inputs[1], dy, **attrs),
    )


def _shares(xp: ArrayModule, x: Array, f: Array, dy: Array, win: WindowGrid) -> list[tuple[Dims, Array]]:
    """What of the gradient goes to each tap: all of it to the first that gave the maximum."""
    candidates = _candidates(xp, x, f, win)
    most = _largest(xp, candidates)
    free = xp.ones(most.shape, bool)
    shares = []
    for tap, v in candidates:
        wins = free & (v == most)
        free = free & ~wins
        shares.append((tap, xp.where(wins, dy, xp.zeros((), dy.dtype))))
    return shares


@op(
    "Dilation2DBackpropInput",
    "input: T, filter: T, out_backprop: T -> in_backprop: T",
    _ATTRS,
    shape=lambda op: op._inputs[0].shape,
    examples=[case(_X, _F, _X, grad=False, **_SAMPLE)],
)
def _dilation_input(
    xp: ArrayModule, x: Array, f: Array, dy: Array, *, strides: list[int], rates: list[int], padding: bytes
) -> Array:
    win = _window(x, f, strides, rates, padding)
    return scatter(xp, _shares(xp, x, f, dy, win), win)


@op(
    "Dilation2DBackpropFilter",
    "input: T, filter: T, out_backprop: T -> filter_backprop: T",
    _ATTRS,
    shape=lambda op: op._inputs[1].shape,
    examples=[case(_X, _F, _X, grad=False, **_SAMPLE)],
)
def _dilation_filter(
    xp: ArrayModule, x: Array, f: Array, dy: Array, *, strides: list[int], rates: list[int], padding: bytes
) -> Array:
    win = _window(x, f, strides, rates, padding)
    sums = [xp.sum(share, axis=(0, 1, 2)) for _, share in _shares(xp, x, f, dy, win)]
    return xp.stack(sums).reshape(f.shape).astype(f.dtype)


not_differentiable("Dilation2DBackpropInput", "Dilation2DBackpropFilter")


@export("nn.dilation2d")
def dilation2d(
    input: TensorLike,
    filter: TensorLike = None,
    strides: TensorLike = None,
    rates: TensorLike = None,
    padding: str | None = None,
    name: str | None = None,
    filters: TensorLike = None,
    dilations: TensorLike = None,
) -> Tensor:
    """Each pixel becomes the largest of the pixels around it plus the filter there."""
    kernel = filter if filters is None else filters
    spread = rates if dilations is None else dilations
    return apply("Dilation2D", input, kernel, strides=strides, rates=spread, padding=padding, name=name)


@export("nn.erosion2d")
def erosion2d(
    value: TensorLike,
    kernel: TensorLike,
    strides: TensorLike,
    rates: TensorLike,
    padding: str,
    name: str | None = None,
) -> Tensor:
    """Each pixel becomes the smallest of the pixels around it minus the kernel there."""
    with name_scope(name, "erosion2d", [value, kernel]) as scope:
        turned = apply("ReverseV2", kernel, [0, 1])
        grown = apply(
            "Dilation2D", apply("Neg", value), turned, strides=strides, rates=rates, padding=padding
        )
        return apply("Neg", grown, name=scope)
