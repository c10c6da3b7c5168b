"""Comparisons, logic, and choosing elements by a condition."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape, broadcast_shape
from tensorfleet.base.types import Array, ArrayModule, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.kernel_types import HostContext, Kernel
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.kernels import lane_kernels
from tensorfleet.ops import elementwise
from tensorfleet.ops.array.constructors import zeros_like
from tensorfleet.ops.common import broadcast
from tensorfleet.ops.elementwise import (
    COMPLEX,
    INT_ROW,
    INTS,
    POSITIVE,
    REAL,
    ROW,
    binary,
    bracketed,
    must_broadcast,
    unbroadcast,
)
from tensorfleet.ops.public_functions import function
from tensorfleet.ops.samples import case

_NUMBERS = [case(REAL, ROW), case(INTS, INT_ROW), case(REAL, REAL), case(REAL[:0], np.float32(1))]
_ANY = [*_NUMBERS, case(COMPLEX, COMPLEX[:1]), case(np.array([True, False]), np.array(True))]
_NAMES = np.array([b"a", b"bc"], object)


def _compared(name: str, examples: Sequence[case] = _NUMBERS) -> Callable[[Kernel], Kernel]:
    return binary(
        name, "real", signature="x: T, y: T -> z: bool", examples=examples, joined=lane_kernels.by_element
    )


def _equality_shape(op: Operation) -> TensorShape:
    if op._attrs["incompatible_shape_error"]:
        return broadcast(op)
    if not all(t.shape.is_fully_defined() for t in op._inputs):
        return TensorShape(None)
    try:
        return broadcast(op)
    except ValueError:
        return TensorShape(())


def _equality(name: str) -> Callable[[Kernel], Kernel]:
    return op(
        name,
        "x: T, y: T -> z: bool",
        "T: type; incompatible_shape_error: bool = true",
        shape=_equality_shape,
        joined=lane_kernels.by_element,
        examples=[*_ANY, case(_NAMES, _NAMES[:1]), case(ROW, REAL[:, :2], incompatible_shape_error=False)],
    )


def _fit(x: Array, y: Array, insist: bool) -> bool:
    try:
        must_broadcast(x, y)
    except errors.InvalidArgumentError:
        if insist:
            raise
        return False
    return True


@_equality("Equal")
def _equal(xp: ArrayModule, x: Array, y: Array, *, incompatible_shape_error: bool) -> Array:
    return xp.equal(x, y) if _fit(x, y, incompatible_shape_error) else np.array(False)


@_equality("NotEqual")
def _not_equal(xp: ArrayModule, x: Array, y: Array, *, incompatible_shape_error: bool) -> Array:
    return xp.not_equal(x, y) if _fit(x, y, incompatible_shape_error) else np.array(True)


@_compared("Less")
def _less(xp: ArrayModule, x: Array, y: Array) -> Array:
    return xp.less(x, y)


_compared("LessEqual")(lambda xp, x, y: xp.less_equal(x, y))
_compared("Greater")(lambda xp, x, y: xp.greater(x, y))
_compared("GreaterEqual")(lambda xp, x, y: xp.greater_equal(x, y))


@op(
    "ApproximateEqual",
    "x: T, y: T -> z: bool",
    "T: number; tolerance: float = 1e-05",
    shape=lambda op: op._inputs[0].shape.merge_with(op._inputs[1].shape),
    examples=[case(REAL, REAL + np.float32(1e-6)), case(POSITIVE, POSITIVE + 0.01, tolerance=0.1)],
)
def _approximate_equal(xp: ArrayModule, x: Array, y: Array, *, tolerance: float) -> Array:
    if x.shape != y.shape:
        text = (
            f"x and y must be of the same shape. x shape: {bracketed(x.shape)}. y shape: {bracketed(y.shape)}"
        )
        raise errors.invalid(text)
    return xp.abs(x - y) < tolerance


_TRUTH = np.array([[True, False, True], [False, False, True]])
_LOGIC = [case(_TRUTH, ~_TRUTH), case(_TRUTH, np.array(True)), case(_TRUTH, _TRUTH[1])]


def _logical(name: str) -> Callable[[Kernel], Kernel]:
    return binary(name, "", signature="x: bool, y: bool -> z: bool", examples=_LOGIC)


_logical("LogicalAnd")(lambda xp, x, y: xp.logical_and(x, y))
_logical("LogicalOr")(lambda xp, x, y: xp.logical_or(x, y))


@op("LogicalNot", "x: bool -> y: bool", shape=lambda op: op._inputs[0].shape, examples=[case(_TRUTH)])
def _logical_not(xp: ArrayModule, x: Array) -> Array:
    return xp.logical_not(x)


@export("math.logical_xor", "logical_xor")
def logical_xor(x: TensorLike, y: TensorLike, name: str = "LogicalXor") -> Tensor:
    """Where exactly one of `x` and `y` is true."""
    either = apply("LogicalOr", x, y)
    return apply("LogicalAnd", either, apply("LogicalNot", apply("LogicalAnd", x, y)), name=name)


not_differentiable(
    *("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual", "ApproximateEqual"),
    *("LogicalAnd", "LogicalOr", "LogicalNot"),
)


# -- choosing ----------------------------------------------------------------------------------------


def _select_shape(op: Operation) -> TensorShape:
    condition, t, e = (x.shape for x in op._inputs)
    result = t.merge_with(e)
    if condition.rank is None or condition.rank == 0 or result.rank is None:
        return result
    if condition.rank == 1 and result.rank != 0:
        condition.assert_is_compatible_with(TensorShape(result.as_list()[:1]))
        return result
    return result.merge_with(condition)


@op(
    "Select",
    "condition: bool, t: T, e: T -> output: T",
    "T: type",
    shape=_select_shape,
    examples=[
        case(_TRUTH, REAL, -REAL),
        case(np.array([True, False]), REAL, -REAL),
        case(np.array(False), INTS, INTS + 1),
        case(np.array([True, False]), _NAMES, _NAMES[::-1]),
    ],
)
def _select(xp: ArrayModule, condition: Array, t: Array, e: Array) -> Array:
    if t.shape != e.shape:
        sizes = f"{bracketed(t.shape)} vs. {bracketed(e.shape)}"
        raise errors.invalid(f"'then' and 'else' must have the same size. but received: {sizes}")
    if condition.ndim == 1 and t.ndim > 1:
        _same_batches(condition, t)
        condition = condition.reshape((-1,) + (1,) * (t.ndim - 1))
    elif condition.ndim and condition.shape != t.shape:
        if condition.ndim == 1 and t.ndim == 1:
            _same_batches(condition, t)
        sizes = f"{bracketed(condition.shape)} vs. {bracketed(t.shape)}"
        raise errors.invalid(f"Inputs to Select must have the same size and shape: {sizes}")
    return xp.where(condition, t, e)


def _same_batches(condition: Array, t: Array) -> None:
    if condition.shape[0] != t.shape[0]:
        text = (
            "Number of batches of 'then' must match size of 'cond', but saw: "
            f"{t.shape[0]} vs. {condition.shape[0]}"
        )
        raise errors.invalid(text)


@gradient("Select")
def _select_grad(op: Operation, dy: Tensor) -> tuple[None, Tensor, Tensor]:
    condition = op.inputs[0]
    zeros = zeros_like(op.inputs[1])
    return None, apply("Select", condition, dy, zeros), apply("Select", condition, zeros, dy)


def _select_v2_shape(op: Operation) -> TensorShape:
    condition, t, e = (x.shape for x in op._inputs)
    return broadcast_shape(condition, broadcast_shape(t, e))


@op(
    "SelectV2",
    "condition: bool, t: T, e: T -> output: T",
    "T: type",
    shape=_select_v2_shape,
    examples=[
        case(_TRUTH, REAL, ROW),
        case(np.array([True, False, True]), REAL, np.float32(2)),
        case(np.array(True), INTS, INT_ROW),
    ],
)
def _select_v2(xp: ArrayModule, condition: Array, t: Array, e: Array) -> Array:
    try:
        return xp.where(condition, t, e)
    except (ValueError, TypeError):
        text = f"{bracketed(condition.shape)}, {bracketed(t.shape)} and {bracketed(e.shape)}"
        raise errors.invalid(f"Incompatible shapes: {text} do not broadcast.") from None


@gradient("SelectV2")
def _select_v2_grad(op: Operation, dy: Tensor) -> tuple[None, Tensor | None, Tensor | None]:
    condition, t, e = op.inputs
    result = op.outputs[0]
    gt, _ = unbroadcast(t, result, elementwise.where(condition, dy, 0), None)
    ge, _ = unbroadcast(e, result, elementwise.where(condition, 0, dy), None)
    return None, gt, ge


def _where_shape(op: Operation) -> TensorShape:
    return TensorShape._of((None, op._inputs[0].shape.rank))


@op(
    "Where",
    "input: T -> index: int64",
    "T: {float, double, int32, uint8, int16, int8, complex64, int64, bfloat16, uint16, complex128, half, "
    "uint32, uint64, bool} = bool",
    shape=_where_shape,
    host=True,
    joined=lane_kernels.where,
    examples=[case(_TRUTH), case(REAL), case(np.zeros((0, 2), np.int32))],
)
def _where(ctx: HostContext, x: Array) -> Array:
    x = np.asarray(x)
    if x.ndim == 0:
        raise errors.invalid("WhereOp : Unhandled input dimensions: 0")
    (places,) = (x if x.dtype.kind == "b" else x != 0).ravel().nonzero()
    if x.shape[1:] == (1,) * (x.ndim - 1) and x.ndim > 1:
        result = np.zeros((len(places), x.ndim), np.int64)
        result[:, 0] = places
        return result
    result = np.empty((len(places), x.ndim), np.int64)
    for axis in range(x.ndim - 1, 0, -1):
        outer = places // max(x.shape[axis], 1)
        np.subtract(places, outer * x.shape[axis], out=result[:, axis])
        places = outer
    result[:, 0] = places
    return result


not_differentiable("Where")


@export("where")
def where(
    condition: TensorLike, x: TensorLike = None, y: TensorLike = None, name: str | None = None
) -> Tensor:
    """Elements of `x` where the condition holds and of `y` elsewhere; alone, the places where it holds."""
    if x is None and y is None:
        with name_scope(name, "Where", [condition]) as scope:
            return apply("Where", to_tensor(condition, preferred=bool, name="condition"), name=scope)
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    return apply("Select", condition, x, y, name=name)


@export("where_v2")
def where_v2(
    condition: TensorLike, x: TensorLike = None, y: TensorLike = None, name: str | None = None
) -> Tensor:
    """Like `tf.where`, with the condition, `x` and `y` broadcast against each other."""
    if x is None and y is None:
        return where(condition, name=name)
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    return apply("SelectV2", condition, x, y, name=name)


# -- public functions of one op ------------------------------------------------------------------

equal = function("Equal", "x y", "math.equal equal", "`x == y`, element by element.")
not_equal = function("NotEqual", "x y", "math.not_equal not_equal", "`x != y`, element by element.")
less = function("Less", "x y", "math.less less", "`x < y`, element by element.")
less_equal = function("LessEqual", "x y", "math.less_equal less_equal", "`x <= y`, element by element.")
greater = function("Greater", "x y", "math.greater greater", "`x > y`, element by element.")
greater_equal = function(
    "GreaterEqual", "x y", "math.greater_equal greater_equal", "`x >= y`, element by element."
)
logical_and = function("LogicalAnd", "x y", "math.logical_and logical_and", "`x and y`, element by element.")
logical_or = function("LogicalOr", "x y", "math.logical_or logical_or", "`x or y`, element by element.")
logical_not = function("LogicalNot", "x", "math.logical_not logical_not", "`not x`, element by element.")
