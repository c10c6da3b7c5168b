"""Ops that programs no longer make, but that old graphs in files still hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.shapes import TensorShape, shape_text
from tensorfleet.base.types import Array, ArrayModule, Dims
from tensorfleet.graph.apply import apply
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable, op
from tensorfleet.ops.common import same_as_input, static_scalar
from tensorfleet.ops.nn.shapes import of_rank_at_least
from tensorfleet.ops.samples import case

_X = np.array([[3.0, 1.0, 2.0], [9.0, 8.0, 7.5]])


@op(
    "Bucketize",
    "input: T -> output: int32",
    "T: {int32, int64, float, double}; boundaries: list(float)",
    shape=same_as_input,
    examples=[case(_X, boundaries=[1.0, 2.5, 8.0]), case(np.array([0, 5], np.int32), boundaries=[])],
)
def _bucketize(xp: ArrayModule, x: Array, *, boundaries: list[float]) -> Array:
    if sorted(boundaries) != list(boundaries):
        raise errors.invalid("Expected sorted boundaries")
    limits = xp.asarray(np.array(boundaries, np.float32))
    return xp.searchsorted(limits, x.astype(np.float64), side="right").astype(np.int32)


not_differentiable("Bucketize")


def _nth_shape(op: Operation) -> TensorShape:
    n = static_scalar(op, 1)
    if n is not None and n < 0:
        raise ValueError(f"Dimension size, given by scalar input 1, must be non-negative but is {n}")
    if op._inputs[0].shape.rank is None:
        return TensorShape(None)
    *batch, size = of_rank_at_least(op._inputs[0].shape, 1).as_list()
    if None not in (n, size) and size <= n:
        raise ValueError(f"Input must have last dimension > n = {n} but is {size}")
    return TensorShape(batch)


@op(
    "NthElement",
    "input: T[1+], n: int32 -> values: T",
    "reverse: bool = false; T: real",
    shape=_nth_shape,
    host=True,  # numpy finds a place without sorting the rest, which XLA cannot
    examples=[case(_X, np.int32(1)), case(_X.astype(np.float32), np.int32(0), reverse=True, grad=False)],
)
def _nth_element(ctx: HostContext, x: Array, n: Array, *, reverse: bool) -> Array:
    place = int(n)
    if place < 0:
        raise errors.invalid(f"n must be non-negative, got {place}")
    if not 0 <= place < x.shape[-1]:
        raise errors.invalid(f"Input must have at least n+1 = {place + 1} columns")
    place = x.shape[-1] - 1 - place if reverse else place
    return np.partition(x, place, axis=-1)[..., place]


@gradient("NthElement")
def _nth_element_gradient(op: Operation, dy: Tensor) -> tuple[Tensor | None, ...]:
    same = apply("Equal", apply("ExpandDims", op.outputs[0], -1), op.inputs[0])
    chosen = apply("Cast", same, DstT=dy.dtype.base_dtype)
    count = apply("ExpandDims", apply("Sum", chosen, [-1]), -1)
    return chosen / count * apply("ExpandDims", dy, -1), None


for _name in ("DeepCopy", "DebugGradientIdentity"):
    op(
        _name,
        "x: T -> y: T" if _name == "DeepCopy" else "input: T -> output: T",
        "T: type",
        shape=same_as_input,
        examples=[case(_X, grad=False)],
    )(lambda xp, x: x)
    not_differentiable(_name)


def _check_rows(x: Dims, i: Dims, v: Dims) -> None:
    """Raises unless `v` has a row of `x` for each of the indices."""
    shapes = f"{shape_text(x)} vs. {shape_text(v)}"
    if len(i) != 1:
        raise errors.invalid(f"i must be a vector. {shape_text(i)}")
    if len(x) != len(v):
        raise errors.invalid(f"x and v shape doesn't match (ranks differ): {shapes}")
    for axis in range(1, len(x)):
        if x[axis] != v[axis]:
            raise errors.invalid(f"x and v shape doesn't match at index {axis} : {shapes}")
    if i[0] != v[0]:
        raise errors.invalid(f"i and x shape doesn't match at index 0: {shape_text(i)} vs. {shape_text(v)}")


def _inplace(name: str, act: Callable[[Array, Array, Array], None]) -> None:
    def kernel(xp: ArrayModule, x: Array, i: Array, v: Array) -> Array:
        _check_rows(x.shape, i.shape, v.shape)
        if xp is np:
            result = np.array(x)
            act(result, np.asarray(i), v)
            return result
        array: Any = xp.asarray(x)  # of JAX, which has `at`
        at = array.at[i]
        changed: Array = {"InplaceAdd": at.add, "InplaceSub": at.subtract, "InplaceUpdate": at.set}[name](v)
        return changed

    op(
        name,
        "x: T, i: int32, v: T -> y: T",
        "T: type",
        shape=same_as_input,
        examples=[case(_X, np.array([1], np.int32), _X[:1], grad=False)],
    )(kernel)
    not_differentiable(name)


_inplace("InplaceAdd", lambda x, i, v: np.add.at(x, i, v))
_inplace("InplaceSub", lambda x, i, v: np.subtract.at(x, i, v))
_inplace("InplaceUpdate", lambda x, i, v: x.__setitem__(i, v))


def _layouts(source: bytes, target: bytes) -> list[int]:
    """Where each axis of the target layout lies in the source layout."""
    return [source.decode().index(c) for c in target.decode()]


@op(
    "DataFormatDimMap",
    "x: T -> y: T",
    "T: index = int32; src_format: string = 'NHWC'; dst_format: string = 'NCHW'",
    shape=same_as_input,
    examples=[case(np.array([0, 1, -1], np.int32))],
)
def _format_axes(
    xp: ArrayModule, x: Array, *, src_format: bytes, dst_format: bytes, T: dtypes.DType
) -> Array:
    table = np.array([dst_format.decode().index(c) for c in src_format.decode()], T.np_dtype)
    axes: Array = xp.asarray(table)[x % len(table)]
    return axes


@op(
    "DataFormatVecPermute",
    "x: T -> y: T",
    "T: index = int32; src_format: string = 'NHWC'; dst_format: string = 'NCHW'",
    shape=same_as_input,
    examples=[case(np.array([7, 4, 9, 3], np.int32)), case(np.arange(8, dtype=np.int64).reshape(4, 2))],
)
def _format_sizes(xp: ArrayModule, x: Array, *, src_format: bytes, dst_format: bytes) -> Array:
    order = _layouts(src_format, dst_format)
    if x.shape[0] == 2:  # height and width only
        spatial = [i for i in order if src_format.decode()[i] in "HW"]
        order = [i - min(spatial) for i in spatial]
    permuted: Array = x[np.array(order)]
    return permuted


not_differentiable("DataFormatDimMap", "DataFormatVecPermute")
