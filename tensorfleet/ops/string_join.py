"""Strings joined, and matched against a pattern: what names of files are made with."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from tensorfleet.api import export
from tensorfleet.errors import InvalidArgumentError
from tensorfleet.graph.apply import apply
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.ops.common import SCALAR, same_as_input
from tensorfleet.ops.examples import case
from tensorfleet.shapes import TensorShape

_AB = np.array([b"a", b"b"], object)
_X = np.array(b"x", object)


def _joined_shape(op: Operation) -> TensorShape:
    """The shape that all inputs other than scalars have."""
    shapes = [t.shape for t in op._inputs]
    if any(s.rank is None for s in shapes):
        return TensorShape(None)
    found = SCALAR
    for shape in shapes:
        if shape.rank:
            found = found.merge_with(shape) if found.rank else shape
    return found


@op(
    "StringJoin",
    "inputs: N * string -> output: string",
    "N: int; separator: string = ''",
    shape=_joined_shape,
    host=True,
    examples=[case([_AB, _X, _AB], separator=b"-"), case([_X, _X])],
)
def _string_join(ctx: Any, inputs: list, *, separator: bytes) -> Any:
    arrays = [np.asarray(a, object) for a in inputs]
    shapes = {a.shape for a in arrays if a.ndim}
    if len(shapes) > 1:
        raise InvalidArgumentError(
            None, None, f"Input shapes do not match: {' vs '.join(str(list(s)) for s in sorted(shapes))}"
        )
    shape = next(iter(shapes), ())
    flat = [np.broadcast_to(a, shape).ravel() for a in arrays]
    result = np.empty(flat[0].size if flat else 1, object)
    for i in range(result.size):
        result[i] = separator.join(a[i] for a in flat)
    return result.reshape(shape)


@export("strings.join", "string_join")
def string_join(inputs: Any, separator: str = "", name: str | None = None) -> Tensor:
    """Joins string tensors element by element; scalars are joined to every element."""
    return apply("StringJoin", list(inputs), separator=separator, name=name)


@op(
    "StaticRegexFullMatch",
    "input: string -> output: bool",
    "pattern: string",
    shape=same_as_input,
    host=True,
    examples=[case(_AB, pattern=b"a.*")],
)
def _static_regex_full_match(ctx: Any, values: Any, *, pattern: bytes) -> Any:
    match = re.compile(pattern, re.DOTALL).fullmatch
    flat = [match(v) is not None for v in np.asarray(values, object).ravel()]
    return np.array(flat, np.bool_).reshape(np.shape(values))


not_differentiable("StringJoin", "StaticRegexFullMatch")
