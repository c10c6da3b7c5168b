"""Running sums and products along an axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.naming import export
from tensorfleet.base.types import Array, ArrayModule, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.kernel_types import Kernel
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, op
from tensorfleet.kernels.arrays import is_numpy
from tensorfleet.ops.common import same_as_input
from tensorfleet.ops.elementwise import COMPLEX, INTS, POSITIVE, REAL, conj, wide
from tensorfleet.ops.samples import case

_CASES = [
    case(REAL, np.array(0, np.int32)),
    case(POSITIVE, np.array(-1, np.int64), exclusive=True),
    case(INTS, np.array(1, np.int32), reverse=True),
    case(POSITIVE, np.array(0, np.int32), exclusive=True, reverse=True),
]


def _scan(name: str, types: str, examples: Sequence[case]) -> Callable[[Kernel], Kernel]:
    return op(
        name,
        "x: T, axis: Tidx -> out: T",
        f"exclusive: bool = false; reverse: bool = false; T: {types}; Tidx: index = int32",
        shape=same_as_input,
        static=["axis"],
        examples=examples,
    )


def _scanned(
    xp: ArrayModule, x: Array, axis: Array, f: Any, start: float, exclusive: bool, reverse: bool
) -> Array:
    """Runs `f(array, axis)` forward or backward, shifted by one behind `start` when exclusive."""
    if np.ndim(axis):
        raise errors.invalid(f"ScanOp: axis must be a scalar, not [{','.join(map(str, np.shape(axis)))}]")
    at = int(axis)
    if not -x.ndim <= at < x.ndim:
        raise errors.invalid(f"ScanOp: Expected scan axis in the range [{-x.ndim}, {x.ndim}), but got {at}")
    w = xp.flip(wide(x), at) if reverse else wide(x)
    if exclusive and x.shape[at]:
        cut = [slice(None)] * x.ndim
        cut[at] = slice(0, 1)
        first = xp.full_like(w[tuple(cut)], start)
        cut[at] = slice(0, -1)
        w = xp.concatenate([first, w[tuple(cut)]], axis=at)
    out = f(w, at)
    return (xp.flip(out, at) if reverse else out).astype(x.dtype)


_MIN_ELEMENTS_PER_CALL = 64  # elements


def _accumulated(xp: ArrayModule, f: np.ufunc, a: Array, axis: int) -> Array:
    """`f` of all elements up to each. Numpy is slow along other axes than the last: a call for each place is faster."""
    if not is_numpy(xp):
        return (xp.cumsum if f is np.add else xp.cumprod)(a, axis=axis, dtype=a.dtype)
    if axis % a.ndim == a.ndim - 1 or a.size <= _MIN_ELEMENTS_PER_CALL * a.shape[axis]:
        return f.accumulate(a, axis, a.dtype)
    out = np.empty_like(a)
    before, *rest = zip(np.moveaxis(a, axis, 0), np.moveaxis(out, axis, 0), strict=True)
    before[1][...] = total = before[0]
    for element, place in rest:
        total = f(total, element, place)
    return out


@_scan("Cumsum", "number", [*_CASES, case(COMPLEX, np.array(0, np.int32))])
def _cumsum(xp: ArrayModule, x: Array, axis: Array, *, exclusive: bool, reverse: bool) -> Array:
    return _scanned(xp, x, axis, lambda a, i: _accumulated(xp, np.add, a, i), 0, exclusive, reverse)


@gradient("Cumsum")
def _cumsum_grad(op: Operation, dy: Tensor) -> tuple[Tensor, None]:
    flags = {"exclusive": op.get_attr("exclusive"), "reverse": not op.get_attr("reverse")}
    return apply("Cumsum", dy, op.inputs[1], **flags), None


@export("math.cumsum", "cumsum")
def cumsum(
    x: TensorLike,
    axis: TensorLike = 0,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> Tensor:
    """The running sum along `axis`; `exclusive` leaves the element out, `reverse` starts at the end."""
    return apply("Cumsum", x, axis, exclusive=exclusive, reverse=reverse, name=name)


@_scan("Cumprod", "number", _CASES)
def _cumprod(xp: ArrayModule, x: Array, axis: Array, *, exclusive: bool, reverse: bool) -> Array:
    return _scanned(xp, x, axis, lambda a, i: _accumulated(xp, np.multiply, a, i), 1, exclusive, reverse)


@gradient("Cumprod")
def _cumprod_grad(op: Operation, dy: Tensor) -> tuple[Tensor, None]:
    x, axis = op.inputs
    exclusive, reverse = op.get_attr("exclusive"), op.get_attr("reverse")
    product = apply("Cumprod", x, axis, exclusive=exclusive, reverse=reverse)
    later = apply("Cumsum", conj(product) * dy, axis, exclusive=exclusive, reverse=not reverse)
    return apply("DivNoNan", later, conj(x)), None


@export("math.cumprod", "cumprod")
def cumprod(
    x: TensorLike,
    axis: TensorLike = 0,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> Tensor:
    """The running product along `axis`; `exclusive` leaves the element out, `reverse` starts at the end."""
    return apply("Cumprod", x, axis, exclusive=exclusive, reverse=reverse, name=name)


@_scan("CumulativeLogsumexp", "floating", [_CASES[0], case(POSITIVE, np.array(0, np.int32), reverse=True)])
def _cumulative_logsumexp(xp: ArrayModule, x: Array, axis: Array, *, exclusive: bool, reverse: bool) -> Array:
    def run(a: Array, i: int) -> Array:
        if is_numpy(xp):
            return np.logaddexp.accumulate(a, axis=i)
        from tensorfleet.kernels.xla import lax

        return lax.cumlogsumexp(a, axis=i % a.ndim)

    return _scanned(xp, x, axis, run, -np.inf, exclusive, reverse)


@gradient("CumulativeLogsumexp")
def _cumulative_logsumexp_grad(op: Operation, dy: Tensor) -> tuple[Tensor, None]:
    x, axis = op.inputs
    y = op.outputs[0]
    flags = {"exclusive": op.get_attr("exclusive"), "reverse": not op.get_attr("reverse")}
    lowest = dy.dtype.min
    log_up = apply("SelectV2", apply("Greater", dy, 0), apply("Log", dy), lowest)
    log_down = apply("SelectV2", apply("Less", dy, 0), apply("Log", apply("Neg", dy)), lowest)
    up = apply("Exp", apply("CumulativeLogsumexp", log_up - y, axis, **flags) + x)
    down = apply("Exp", apply("CumulativeLogsumexp", log_down - y, axis, **flags) + x)
    return up - down, None


@export("math.cumulative_logsumexp")
def cumulative_logsumexp(
    x: TensorLike,
    axis: TensorLike = 0,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> Tensor:
    """The running `log(sum(exp(x)))` along `axis`."""
    return apply(
        "CumulativeLogsumexp",
        x,
        axis,
        exclusive=exclusive,
        reverse=reverse,
        name=name or "CumulativeLogsumexp",
    )
