"""What elementwise ops share: their declarations, sample values, and gradients under broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, ArrayModule, TensorLike
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.kernel_types import Check, Kernel
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.graph.sparse_tensor import is_sparse
from tensorfleet.kernels.lane_kernels import LaneKernel
from tensorfleet.ops.common import broadcast, same_as_input
from tensorfleet.ops.samples import case

# Sample values, away from the points where something is not smooth.
REAL = np.array([[0.5, -1.5, 2.25], [1.25, -0.75, 3.0]], np.float32)
POSITIVE = np.array([[0.5, 1.5, 2.25], [1.25, 0.75, 3.0]], np.float64)
UNIT = np.array([[0.5, -0.25, 0.75], [0.1, -0.6, 0.3]], np.float64)
ROW = np.array([1.5, -2.0, 0.5], np.float32)
INTS = np.array([[7, -7, 8], [-8, 5, 0]], np.int32)
INT_ROW = np.array([2, -3, 3], np.int32)
COMPLEX = np.array([0.5 + 1j, -1.5 - 0.5j, 0.25 + 0.5j], np.complex64)


def unary(name: str, types: str = "inexact", examples: Sequence[case] = ()) -> Callable[[Kernel], Kernel]:
    """Declares an op that maps each element of `x` to one of the same type."""
    return op(name, "x: T -> y: T", f"T: {types}", shape=same_as_input, examples=examples)


def binary(
    name: str,
    types: str = "number",
    signature: str = "x: T, y: T -> z: T",
    attrs: str = "",
    shape: Callable[[Operation], TensorShape] = broadcast,
    examples: Sequence[case] = (),
    joined: LaneKernel | None = None,
) -> Callable[[Kernel], Kernel]:
    """Declares an op on pairs of elements that broadcasts, with TensorFlow's error when shapes do not fit."""

    # Shapes are compared only after a kernel has failed: where they fit it costs nothing. Two wrappers, because the
    # registry reads the keyword-only parameters of a kernel from its code.
    def register(kernel: Kernel) -> Kernel:
        def plain(xp: ArrayModule, x: Array, y: Array) -> Array:
            try:
                result: Array = kernel(xp, x, y)
                return result
            except (ValueError, TypeError):
                must_broadcast(x, y)
                raise

        def checked(xp: ArrayModule, x: Array, y: Array, *, check: Check) -> Array:
            try:
                result: Array = kernel(xp, x, y, check=check)
                return result
            except (ValueError, TypeError):
                must_broadcast(x, y)
                raise

        wrapped = checked if kernel.__code__.co_kwonlyargcount else plain
        type_attr = f"T: {types}" if types else ""
        declared = "; ".join(part for part in (type_attr, attrs) if part)
        op(name, signature, declared, shape=shape, examples=examples, joined=joined)(wrapped)
        return kernel

    return register


def must_broadcast(x: Array, y: Array) -> None:
    """Raises InvalidArgumentError when the arrays do not broadcast."""
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        raise errors.invalid(f"Incompatible shapes: {bracketed(x.shape)} vs. {bracketed(y.shape)}") from None


def bracketed(shape: Iterable[int | None]) -> str:
    """A shape of known rank the way TensorFlow prints it in errors: [2,3]."""
    return "[" + ",".join("?" if d is None else str(d) for d in shape) + "]"


def wide(x: Array) -> Array:
    """Half-precision values as float32, in which formulas of several steps are computed."""
    return x.astype(np.float32) if x.dtype.itemsize == 2 and is_float(x) else x


def is_float(x: Array) -> bool:
    """Whether an array holds real floating-point numbers; numpy files bfloat16 under void types."""
    return x.dtype.kind in "fV"


def is_whole(x: Array) -> bool:
    """Whether an array holds integers."""
    return x.dtype.kind in "iu"


def conjugate(xp: ArrayModule, x: Array) -> Array:
    """The complex conjugate of an array; a real one as it is."""
    return xp.conj(x) if x.dtype.kind == "c" else x


# -- parts of gradients ------------------------------------------------------------------------------


def conj(x: Tensor) -> Tensor:
    """The complex conjugate; real tensors as they are."""
    return apply("Conj", x) if x.dtype.is_complex else x


def constant_like(value: TensorLike, tensor: Tensor) -> Tensor:
    """A scalar constant of the same type as `tensor`."""
    return to_tensor(value, tensor.dtype.base_dtype)


def where(condition: Tensor, a: Tensor | float, b: Tensor | float) -> Tensor:
    """Elements of `a` where the condition holds, else of `b`; either may be a Python number."""
    if not isinstance(a, Tensor) and isinstance(b, Tensor):
        a = constant_like(a, b)
    return apply("SelectV2", condition, a, b)


def shape_of(x: Tensor) -> Array | Tensor:
    """The shape of `x`: its value when it is known now, else a tensor."""
    if x.shape.is_fully_defined():
        return np.array(x.shape.as_list(), np.int32)
    return apply("Shape", x)


def unbroadcast(
    x: Tensor, y: Tensor, gx: Tensor | None, gy: Tensor | None
) -> tuple[Tensor | None, Tensor | None]:
    """Gradients of both operands, summed over what broadcasting repeated; a None stays None.

    Where the static shapes decide which axes those are, only the needed sums are made.
    """
    x_axes, y_axes = _repeated(x, y), _repeated(y, x)
    if (gx is None or x_axes is not None) and (gy is None or y_axes is not None):
        return _summed(gx, x, x_axes), _summed(gy, y, y_axes)
    sx, sy = apply("Shape", x), apply("Shape", y)
    rx, ry = apply_list("BroadcastGradientArgs", sx, sy)
    if gx is not None:
        gx = _summed(gx, x, x_axes) if x_axes is not None else apply("Reshape", apply("Sum", gx, rx), sx)
    if gy is not None:
        gy = _summed(gy, y, y_axes) if y_axes is not None else apply("Reshape", apply("Sum", gy, ry), sy)
    return gx, gy


def _repeated(x: Tensor, y: Tensor) -> list[int] | None:
    """The axes of the result along which `x` was repeated, or None when only a run can tell."""
    if x is y:
        return []
    a, b = x.shape._d, y.shape._d
    if a is None or b is None:
        return None
    rank = max(len(a), len(b))
    missing = rank - len(a)
    other = (1,) * (rank - len(b)) + b
    axes = list(range(missing))
    for i, size in enumerate(a, missing):
        if size == 1 and other[i] != 1:
            axes.append(i)
        elif size is None and other[i] != 1:
            return None
    return axes


def _summed(g: Tensor | None, x: Tensor, axes: list[int] | None) -> Tensor | None:
    if g is None:
        return g
    if axes:
        g = apply("Sum", g, np.array(axes, np.int32))
    elif not isinstance(g, Tensor) or g.shape.rank is None or x.shape.rank is None:
        return g
    if g.shape.rank is not None and g.shape.rank == x.shape.rank:
        return g
    return apply("Reshape", g, shape_of(x))


def _two_unknown_vectors(op: Operation) -> list[TensorShape]:
    return [TensorShape._of((None,)), TensorShape._of((None,))]


@op(
    "BroadcastGradientArgs",
    "s0: T[1], s1: T[1] -> r0: T, r1: T",
    "T: index = int32",
    shape=_two_unknown_vectors,
    static=["s0", "s1"],
    words={"s0": "In[0] must be a vector.{}", "s1": "In[1] must be a vector.{}"},
    examples=[
        case(np.array([2, 3], np.int32), np.array([3], np.int32)),
        case(np.array([2, 1, 4], np.int64), np.array([1, 3, 1], np.int64)),
        case(np.array([], np.int32), np.array([2], np.int32)),
    ],
)
def _broadcast_gradient_args(xp: ArrayModule, s0: Array, s1: Array) -> tuple[Array, Array]:
    dtype = np.asarray(s0).dtype
    a, b = [int(d) for d in s0], [int(d) for d in s1]
    rank = max(len(a), len(b))
    a, b = [1] * (rank - len(a)) + a, [1] * (rank - len(b)) + b
    for p, q in zip(a, b, strict=True):
        if p != q and 1 not in (p, q):
            raise errors.invalid(f"Incompatible shapes: {bracketed(s0)} vs. {bracketed(s1)}")
    # An axis of 1 on both sides counts for both: summing over it changes nothing.
    r0 = [i for i in range(rank) if a[i] == 1]
    r1 = [i for i in range(rank) if b[i] == 1]
    if tuple(s0) == tuple(s1):
        r0, r1 = [], []
    return np.array(r0, dtype), np.array(r1, dtype)


not_differentiable("BroadcastGradientArgs")


def on_values(x: Any, f: Callable[[Tensor], Tensor]) -> Any:
    """`f` on the values of a SparseTensor, giving one of the same shape; None when `x` is something else."""
    if is_sparse(x):
        return type(x)(indices=x.indices, values=f(x.values), dense_shape=x.dense_shape)
    return None
