"""How each operation of XLA treats padded dimensions: the rules of `masking.py`, by the name of JAX's primitive.

An operation without a rule is refused where a padded value meets it. A rule that is not sure raises `Unpaddable`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tensorfleet.runtime.segments.masking import CALLS, Masking, Rule, Tags, Unpaddable, Value

if TYPE_CHECKING:
    from jax.core import ShapedArray
    from jax.extend.core import JaxprEqn, Literal, Var

    from tensorfleet.base.types import Dims

# An element of the result depends on the elements in the same place: padding stays padding.
_ELEMENTWISE = [
    "abs",
    "acos",
    "acosh",
    "add",
    "add_any",
    "and",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bessel_i0e",
    "bessel_i1e",
    "cbrt",
    "ceil",
    "clamp",
    "convert_element_type",
    "copy",
    "copy_p",
    "cos",
    "cosh",
    "digamma",
    "div",
    "eq",
    "eq_to",
    "erf",
    "erf_inv",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "ge",
    "gt",
    "integer_pow",
    "is_finite",
    "le",
    "lgamma",
    "log",
    "log1p",
    "logistic",
    "lt",
    "max",
    "min",
    "mul",
    "ne",
    "neg",
    "nextafter",
    "not",
    "or",
    "optimization_barrier",
    "population_count",
    "pow",
    "real",
    "reduce_precision",
    "regularized_incomplete_beta",
    "rem",
    "round",
    "rsqrt",
    "select_n",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "stop_gradient",
    "sub",
    "tan",
    "tanh",
    "xor",
]
# The elements keep their places in each dimension, or each dimension as a whole gets another place.
_MOVES = ["broadcast_in_dim", "squeeze", "expand_dims", "transpose"]


def _as_it_is(m: Masking, e: JaxprEqn, other: JaxprEqn, given: list[Value], tags: list[Tags]) -> list[Value]:
    """Padding goes where it is in the result."""
    zeroed = len(given) == 1 and given[0].zeroed and e.primitive.name in _KEEP_ZEROS
    return m.bind(e, given, tags, zeroed)


_KEEP_ZEROS = {
    "squeeze",
    "transpose",
    "convert_element_type",
    "copy",
    "copy_p",
    "neg",
    "optimization_barrier",
}


def _array(value: Var | Literal) -> ShapedArray:
    return cast("ShapedArray", value.aval)


def _reshape(m: Masking, e: JaxprEqn, other: JaxprEqn, given: list[Value], tags: list[Tags]) -> list[Value]:
    """Where dimensions are joined or divided, padding stays behind everything else only in the outermost of them."""
    if e.params["dimensions"] is not None:
        raise Unpaddable
    (value,) = given
    before = (_array(e.invars[0]).shape, _array(other.invars[0]).shape)
    after = (_array(e.outvars[0]).shape, _array(other.outvars[0]).shape)
    for i, j in _groups(before, after):
        if not (_only_first(value.tags[i], before[0][i]) and _only_first(tags[0][j], after[0][j])):
            raise Unpaddable
    return m.bind(e, given, tags, value.zeroed)


def _groups(before: tuple[Dims, Dims], after: tuple[Dims, Dims]) -> list[tuple[slice, slice]]:
    """The dimensions before and after a reshape that belong together: as many elements, in both traces."""
    result = []
    i = j = start = begin = 0
    while i < len(before[0]) or j < len(after[0]):
        sizes = (
            [math.prod(shape[start:i]) for shape in before],
            [math.prod(shape[begin:j]) for shape in after],
        )
        if sizes[0] == sizes[1] and (i > start or j > begin):
            result.append((slice(start, i), slice(begin, j)))
            start, begin = i, j
            sizes = [1, 1], [1, 1]
        if j == len(after[0]) or (i < len(before[0]) and sizes[0][0] <= sizes[1][0]):
            i += 1
        else:
            j += 1
    result.append((slice(start, i), slice(begin, j)))
    return result


def _only_first(tags: Tags, shape: Dims) -> bool:
    """Whether no dimension is padded, or only the first one that has more than one element."""
    padded = [d for d, tag in enumerate(tags) if tag is not None]
    return not padded or (len(padded) == 1 and all(size == 1 for size in shape[: padded[0]]))


def _lowest(dtype: np.dtype[Any]) -> Any:
    if dtype.kind == "b":
        return False
    return -np.inf if dtype.kind not in "iu" else np.iinfo(dtype).min


def _highest(dtype: np.dtype[Any]) -> Any:
    if dtype.kind == "b":
        return True
    return np.inf if dtype.kind not in "iu" else np.iinfo(dtype).max


# What does not change a result, whatever it is combined with.
_NEUTRAL = {
    "reduce_sum": lambda dtype: 0,
    "reduce_prod": lambda dtype: 1,
    "reduce_max": _lowest,
    "reduce_min": _highest,
    "reduce_and": _highest,
    "reduce_or": _lowest,
    "argmax": _lowest,
    "argmin": _highest,
}


def _reduction(m: Masking, e: JaxprEqn, other: JaxprEqn, given: list[Value], tags: list[Tags]) -> list[Value]:
    (value,) = given
    dtype = np.dtype(_array(e.invars[0]).dtype)
    bits = e.primitive.name in ("reduce_and", "reduce_or")
    if (bits and dtype.kind != "b") or (dtype.kind not in "biuf" and dtype.name != "bfloat16"):
        raise Unpaddable
    array = m.filled(value, e.params["axes"], _NEUTRAL[e.primitive.name](dtype))
    return m.bind(e, [Value(array, value.tags)], tags)


def _product(m: Masking, e: JaxprEqn, other: JaxprEqn, given: list[Value], tags: list[Tags]) -> list[Value]:
    """Both factors get zeros: there may be infinities in the padding of either."""
    contracted, _ = e.params["dimension_numbers"]
    arrays = [
        Value(m.filled(value, dims, 0), value.tags) for value, dims in zip(given, contracted, strict=True)
    ]
    return m.bind(e, arrays, tags)


def _concatenate(
    m: Masking, e: JaxprEqn, other: JaxprEqn, given: list[Value], tags: list[Tags]
) -> list[Value]:
    """Dimensions other than the joined one may be padded."""
    if any(value.tags[e.params["dimension"]] for value in given):
        raise Unpaddable
    return m.bind(e, given, tags, all(v.zeroed for v in given))


def _stack(m: Masking, e: JaxprEqn, other: JaxprEqn, given: list[Value], tags: list[Tags]) -> list[Value]:
    return m.bind(e, given, tags, all(v.zeroed for v in given))


def _slice(m: Masking, e: JaxprEqn, other: JaxprEqn, given: list[Value], tags: list[Tags]) -> list[Value]:
    """Padded dimensions are taken as a whole."""
    (value,) = given
    strides = e.params["strides"] or [1] * len(value.tags)
    parts = zip(e.params["start_indices"], e.params["limit_indices"], strides, strict=True)
    ends = zip(e.params["limit_indices"], other.params["limit_indices"], strict=True)
    for tag, size, part, (end, probed) in zip(
        value.tags, _array(e.invars[0]).shape, parts, ends, strict=True
    ):
        if part != (0, size, 1) if tag is not None else end != probed:
            raise Unpaddable
    return m.bind(e, given, tags, value.zeroed)


def _split(m: Masking, e: JaxprEqn, other: JaxprEqn, given: list[Value], tags: list[Tags]) -> list[Value]:
    if given[0].tags[e.params["axis"]] is not None:
        raise Unpaddable
    return m.bind(e, given, tags, given[0].zeroed)


def _cumulative(
    m: Masking, e: JaxprEqn, other: JaxprEqn, given: list[Value], tags: list[Tags]
) -> list[Value]:
    """From the first element on, padding comes after everything else."""
    if given[0].tags[e.params["axis"]] is not None and e.params["reverse"]:
        raise Unpaddable
    return m.bind(e, given, tags)


def _iota(m: Masking, e: JaxprEqn, other: JaxprEqn, given: list[Value], tags: list[Tags]) -> list[Value]:
    return m.bind(e, given, tags)


def _call(m: Masking, e: JaxprEqn, other: JaxprEqn, given: list[Value], tags: list[Tags]) -> list[Value]:
    """A function within the program."""
    name = "jaxpr" if "jaxpr" in e.params else "call_jaxpr"
    return m.run(e.params[name], other.params[name], given)


RULES: dict[str, Rule] = {
    **dict.fromkeys((*_ELEMENTWISE, *_MOVES), _as_it_is),
    **dict.fromkeys(_NEUTRAL, _reduction),
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin"), _cumulative),
    **dict.fromkeys(CALLS, _call),
    "reshape": _reshape,
    "dot_general": _product,
    "concatenate": _concatenate,
    "stack": _stack,
    "slice": _slice,
    "split": _split,
    "iota": _iota,
}
