"""Bits of integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, ArrayModule
from tensorfleet.graph.kernel_types import Kernel
from tensorfleet.graph.operation import Operation
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.kernels.arrays import is_numpy
from tensorfleet.ops.common import same_as_input
from tensorfleet.ops.elementwise import INT_ROW, INTS, binary, unary
from tensorfleet.ops.public_functions import function
from tensorfleet.ops.samples import case

_PAIRS = [
    case(INTS, INT_ROW),
    case(np.array([1, 200, 255], np.uint8), np.uint8(7)),
    case(INTS.astype(np.int64), np.int64(5)),
]
_SHIFTS = [case(INTS, np.array([1, 3, 0], np.int32)), case(np.array([1, 200, 255], np.uint8), np.uint8(2))]


def _bits(name: str, examples: Sequence[case] = _PAIRS) -> Callable[[Kernel], Kernel]:
    return binary(name, "integer", examples=examples)


_bits("BitwiseAnd")(lambda xp, x, y: xp.bitwise_and(x, y))
_bits("BitwiseOr")(lambda xp, x, y: xp.bitwise_or(x, y))
_bits("BitwiseXor")(lambda xp, x, y: xp.bitwise_xor(x, y))


@unary("Invert", "integer", examples=[case(INTS), case(np.array([1, 200], np.uint8))])
def _invert(xp: ArrayModule, x: Array) -> Array:
    return xp.invert(x)


def _possible(xp: ArrayModule, x: Array, y: Array) -> Array:
    """Shift distances that C defines: from 0 to one less than the width."""
    return xp.clip(y, 0, x.dtype.itemsize * 8 - 1).astype(x.dtype)


_bits("LeftShift", _SHIFTS)(lambda xp, x, y: xp.left_shift(x, _possible(xp, x, y)))
_bits("RightShift", _SHIFTS)(lambda xp, x, y: xp.right_shift(x, _possible(xp, x, y)))


@op(
    "PopulationCount",
    "x: T -> y: uint8",
    "T: integer",
    shape=same_as_input,
    examples=[case(INTS), case(np.array([3], np.uint8))],
)
def _population_count(xp: ArrayModule, x: Array) -> Array:
    unsigned = x.view(f"u{x.dtype.itemsize}")
    if is_numpy(xp):
        result: Array = np.bitwise_count(unsigned)
        return result
    from tensorfleet.kernels.xla import lax

    return lax.population_count(unsigned).astype(np.uint8)


not_differentiable(
    *("BitwiseAnd", "BitwiseOr", "BitwiseXor", "Invert", "LeftShift", "RightShift", "PopulationCount")
)


# -- public functions of one op ------------------------------------------------------------------

bitwise_and = function("BitwiseAnd", "x y", "bitwise.bitwise_and", "The bits set in both.")
bitwise_or = function("BitwiseOr", "x y", "bitwise.bitwise_or", "The bits set in either.")
bitwise_xor = function("BitwiseXor", "x y", "bitwise.bitwise_xor", "The bits set in exactly one.")
invert = function("Invert", "x", "bitwise.invert", "Every bit flipped.")
left_shift = function("LeftShift", "x y", "bitwise.left_shift", "`x << y`.")
right_shift = function("RightShift", "x y", "bitwise.right_shift", "`x >> y`, keeping the sign.")


def _eighth(op: Operation) -> TensorShape:
    shape = op._inputs[0].shape.with_rank_at_least(1)
    if shape.rank is None:
        return shape
    *outer, last = shape.as_list()
    if last is not None and last % 8:
        raise ValueError(f"Dimension size must be evenly divisible by 8 but is {last}")
    return TensorShape([*outer, None if last is None else last // 8])


@op(
    "CompareAndBitpack",
    "input: T, threshold: T[0] -> output: uint8",
    "T: {bool, half, float, double, int8, int16, int32, int64}",
    shape=_eighth,
    examples=[
        case(np.array([[3, 9, 1, 7, 5, 6, 4, 8]], np.int32), np.int32(5)),
        case(np.array([True, False] * 8), np.bool_(False)),
    ],
)
def _compare_and_bitpack(xp: ArrayModule, x: Array, threshold: Array) -> Array:
    if x.ndim < 1 or x.shape[-1] % 8:
        raise errors.invalid(
            f"Inner dimension of input should be divisible by 8, but saw shape {list(x.shape)}"
        )
    # What is compared already is only packed.
    return xp.packbits(x if x.dtype == np.bool_ else x > threshold, axis=-1)


not_differentiable("CompareAndBitpack")
