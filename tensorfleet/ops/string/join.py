"""Strings joined element by element, as the names of files are."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.ops.common import SCALAR
from tensorfleet.ops.samples import case

_AB = np.array([b"a", b"b"], object)
_X = np.array(b"x", object)


def _joined_shape(op: Operation) -> TensorShape:
    """The shape that all inputs other than scalars have."""
    shapes = [t.shape for t in op._inputs]
    if any(s.rank is None for s in shapes):
        return TensorShape(None)
    merged = SCALAR
    for shape in shapes:
        if shape.rank:
            merged = _merged(merged, shape) if merged.rank else shape
    return merged


def _merged(a: TensorShape, b: TensorShape) -> TensorShape:
    if a.rank == b.rank:
        for d, (m, n) in enumerate(zip(a.as_list(), b.as_list(), strict=True)):
            if None not in (m, n) and m != n:
                raise ValueError(f"Dimension {d} in both shapes must be equal, but are {m} and {n}")
    return a.merge_with(b)


@op(
    "StringJoin",
    "inputs: N * string -> output: string",
    "N: int; separator: string = ''",
    shape=_joined_shape,
    host=True,
    examples=[case([_AB, _X, _AB], separator=b"-"), case([_X, _X])],
)
def _string_join(ctx: HostContext, inputs: list[Array], *, separator: bytes) -> Array:
    arrays = [np.asarray(a, object) for a in inputs]
    shapes = list(dict.fromkeys(a.shape for a in arrays if a.ndim))
    if len(shapes) > 1:
        first, second = (str(list(s)).replace(" ", "") for s in shapes[:2])
        raise errors.invalid(f"Input shapes do not match: {first} vs. {second}")
    shape = next(iter(shapes), ())
    flat = [np.broadcast_to(a, shape).ravel().tolist() for a in arrays]
    rows = zip(*flat, strict=True) if flat else [()]
    return np.fromiter(map(separator.join, rows), object, math.prod(shape)).reshape(shape)


@export("strings.join", "string_join")
def string_join(inputs: Iterable[TensorLike], separator: str = "", name: str | None = None) -> Tensor:
    """Joins string tensors element by element; scalars are joined to every element."""
    return apply("StringJoin", list(inputs), separator=separator, name=name)


not_differentiable("StringJoin")
