"""Runs a traced program on padded arrays, such that the padding has no influence on the results.

The program was traced twice, for two lengths. Where the traces differ tells which dimensions and numbers depend on a
length. The trace of the larger one is then run with the real lengths as arguments: numbers that depend on a length are
computed from it, and where elements of such a dimension are combined (sums, products), the padding is set to what does
not change the result. Any operation for which that is not certain makes the program `Unpaddable`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from types import ModuleType

    from jax.extend.core import ClosedJaxpr, JaxprEqn

    from tensorfleet.base.types import Array, ArrayModule, Dims
    from tensorfleet.runtime.segments.padded_sizes import Bucket

# Two numbers are in proportion if they are up to the rounding of the types they were computed in.
_MAX_RELATIVE_ERROR = 2.0**-21


class Unpaddable(Exception):
    """A program whose results might depend on padding."""


@dataclass(frozen=True)
class Padded:
    """A dimension with `factor` times the elements of a length."""

    length: int
    factor: int


#: Of each dimension of a value whether, and how, it is padded.
Tags: TypeAlias = tuple["Padded | None", ...]


class Value:
    """A value of the program, with the tags of its dimensions."""

    __slots__ = ("array", "tags", "zeroed")

    def __init__(self, array: Any, tags: Tags, zeroed: bool = False) -> None:
        self.array = array
        self.tags = tags
        self.zeroed = zeroed  # whether its padding is known to be zero

    @property
    def is_padded(self) -> bool:
        """Whether any dimension is padded."""
        return any(self.tags)


class Masking:
    """Runs two traces of a program, of the sizes and of the probes of a bucket, as one."""

    def __init__(self, jax: ModuleType, jnp: ArrayModule, bucket: Bucket, lengths: Array) -> None:
        self.jax = jax
        self.jnp = jnp
        self._bucket = bucket
        self._lengths = lengths

    def tags(self, shape: Dims, probed: Dims) -> Tags:
        """How the dimensions of a value are padded, by its shapes in the two traces."""
        if len(shape) != len(probed):
            raise Unpaddable
        return tuple(None if a == b else self._padded(a, b) for a, b in zip(shape, probed, strict=True))

    def tags_of(self, var: Any, probed: Any) -> Tags:
        """How the dimensions of a variable of the trace are padded. JAX's types do not say that it has a shape."""
        return self.tags(var.aval.shape, probed.aval.shape)

    def _padded(self, size: int, probed: int) -> Padded:
        matches = [
            Padded(i, size // large)
            for i, (large, small) in enumerate(zip(self._bucket.sizes, self._bucket.probes, strict=True))
            if large != small and size % large == 0 and size // large * small == probed
        ]
        if len(matches) != 1:
            raise Unpaddable
        return matches[0]

    def run(self, full: ClosedJaxpr, probe: ClosedJaxpr, inputs: Sequence[Value]) -> list[Value]:
        """The results of a program."""
        from tensorfleet.runtime.segments.masking_rules import RULES

        large, small = full.jaxpr, probe.jaxpr
        if len(large.eqns) != len(small.eqns) or len(large.constvars) != len(small.constvars):
            raise Unpaddable
        known: dict[Any, Value] = {}
        var: Any
        probed: Any
        for var, probed, c, d in zip(
            large.constvars, small.constvars, full.consts, probe.consts, strict=True
        ):
            if var.aval.dtype != probed.aval.dtype:
                raise Unpaddable
            known[var] = self.constant(c, d, self.tags_of(var, probed))
        known.update(zip(large.invars, inputs, strict=True))

        def value(var: Any, other: Any) -> Value:
            if hasattr(var, "val") != hasattr(other, "val"):
                raise Unpaddable
            if hasattr(var, "val"):
                dtype = var.aval.dtype
                a, b = np.asarray(var.val, dtype), np.asarray(other.val, dtype)
                return self.constant(a, b, self.tags_of(var, other))
            return known[var]

        # Both traces bind their values in the same places: the position of each is compared with the other's.
        places: dict[Any, Any] = dict(zip(large.constvars, small.constvars, strict=True))
        places.update(zip(large.invars, small.invars, strict=True))
        for equation, other in zip(large.eqns, small.eqns, strict=True):
            if not _same(equation, other) or any(
                not hasattr(v, "val") and places.get(v) is not w
                for v, w in zip(equation.invars, other.invars, strict=True)
            ):
                raise Unpaddable
            given = [value(v, w) for v, w in zip(equation.invars, other.invars, strict=True)]
            tags = [self.tags_of(v, w) for v, w in zip(equation.outvars, other.outvars, strict=True)]
            rule = RULES.get(equation.primitive.name)
            if rule is not None:
                results = rule(self, equation, other, given, tags)
            elif any(v.is_padded for v in given) or any(map(any, tags)):
                raise Unpaddable
            else:
                results = self.bind(equation, given, tags)
            known.update(zip(equation.outvars, results, strict=True))
            places.update(zip(equation.outvars, other.outvars, strict=True))
        return [value(v, w) for v, w in zip(large.outvars, small.outvars, strict=True)]

    def bind(
        self, equation: JaxprEqn, given: Sequence[Value], tags: Sequence[Tags], zeroed: bool = False
    ) -> list[Value]:
        """The results of an operation as it is."""
        primitive: Any = equation.primitive
        results = primitive.bind(*[v.array for v in given], **equation.params)
        arrays = results if primitive.multiple_results else [results]
        return [Value(a, t, zeroed) for a, t in zip(arrays, tags, strict=True)]

    def filled(self, value: Value, dims: Sequence[int], fill: Any) -> Array:
        """The array of a value with `fill` for the padding of these dimensions."""
        array: Array = value.array
        if value.zeroed and np.ndim(fill) == 0 and fill == 0:
            return array
        for d in dims:
            padded = value.tags[d]
            if padded is not None:
                index = self.jax.lax.broadcasted_iota(np.int32, array.shape, d)
                inside = index < self._length(padded)
                array = self.jnp.where(inside, array, self.jnp.asarray(fill, array.dtype))
        return array

    def _length(self, padded: Padded) -> Array:
        real: Array = self._lengths[padded.length] * np.int32(padded.factor)
        return real

    def constant(self, value: Any, probed: Any, tags: Tags) -> Value:
        """A constant of the program: of values that do not depend on a length, or in one of two ways (n or 1 / n)."""
        value, probed = np.asarray(value), np.asarray(probed)
        common = tuple(slice(0, min(a, b)) for a, b in zip(value.shape, probed.shape, strict=True))
        inner, other = value[common], probed[common]
        if value.dtype.kind not in "biuf" or np.array_equal(inner, other, equal_nan=value.dtype.kind == "f"):
            if value.dtype.kind not in "biuf" and (any(tags) or not np.array_equal(inner, other)):
                raise Unpaddable
            return Value(value, tags)
        if any(tags):
            if not value.size or (value != value.flat[0]).any() or (probed != probed.flat[0]).any():
                raise Unpaddable
            one = self._computed(value.flat[0], probed.flat[0])
            return Value(self.jnp.broadcast_to(one, value.shape), tags)
        numbers = [self._computed(a, b) for a, b in zip(value.flat, probed.flat, strict=True)]
        return Value(self.jnp.stack(numbers).reshape(value.shape), tags)

    def _computed(self, value: Any, probed: Any) -> Any:
        """A number from the lengths, given what it is in the two traces."""
        if value == probed:
            return self.jnp.asarray(value)
        for i, (large, small) in enumerate(zip(self._bucket.sizes, self._bucket.probes, strict=True)):
            if large == small:
                continue
            if value.dtype.kind in "iu":
                if value % large == 0 and value // large * small == probed:
                    return (self._lengths[i].astype(value.dtype) * (value // large)).astype(value.dtype)
            elif value.dtype.kind == "f" and np.isfinite([value, probed]).all():
                length = self._lengths[i].astype(value.dtype)
                if _close(float(value) / large, float(probed) / small):
                    return length * value.dtype.type(float(value) / large)
                if _close(float(value) * large, float(probed) * small):
                    return value.dtype.type(float(value) * large) / length
        raise Unpaddable


def _close(a: float, b: float) -> bool:
    return abs(a - b) <= _MAX_RELATIVE_ERROR * abs(a)


def _same(equation: JaxprEqn, other: JaxprEqn) -> bool:
    """Whether an operation is the same in both traces, but for the sizes of what it makes."""
    if equation.primitive is not other.primitive or len(equation.invars) != len(other.invars):
        return False
    if equation.primitive.name in CALLS:  # what they call is compared operation by operation
        return True
    left, right = ({k: v for k, v in e.params.items() if k not in _SIZES} for e in (equation, other))
    return str(left) == str(right)


_SIZES = {"new_sizes", "shape", "limit_indices"}
CALLS = ("jit", "pjit", "closed_call", "custom_jvp_call", "custom_vjp_call")
Rule: TypeAlias = Callable[["Masking", "JaxprEqn", "JaxprEqn", list[Value], list[Tags]], list[Value]]
