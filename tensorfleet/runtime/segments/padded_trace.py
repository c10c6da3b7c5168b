"""A segment as a program for several lengths: what goes in is padded, what comes out is cut to size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.runtime.segments.masking import Masking, Tags, Unpaddable, Value
from tensorfleet.runtime.segments.padded_sizes import Bucket, PaddedSizes
from tensorfleet.runtime.segments.segment import _CONCRETE, Segment

if TYPE_CHECKING:
    from types import ModuleType

    from jax.extend.core import ClosedJaxpr
    from jax.tree_util import PyTreeDef

    from tensorfleet.base.types import Array, ArrayModule
    from tensorfleet.runtime.values import Values

# Numbers that are computed from shapes while tracing are known for two lengths only, the shortest and the longest of the
# bucket. If these operations give numbers in proportion to both, they do for all lengths between. A remainder, say, might
# be the same for two lengths and another one for a third.
_PROPORTIONAL = {
    "Add", "AddV2", "All", "Any", "Assert", "BroadcastArgs", "BroadcastGradientArgs", "BroadcastTo", "Cast", "ConcatV2",
    "Const", "DivNoNan", "ExpandDims", "Fill", "Identity", "Max", "Maximum", "Min", "Minimum", "Mul", "Neg", "NoOp",
    "OnesLike", "Pack", "Prod", "Range", "Rank", "RealDiv", "Reciprocal", "Reshape", "Shape", "ShapeN", "Size", "Squeeze",
    "Sub", "Sum", "Tile", "Transpose", "Unpack", "ZerosLike",
}  # fmt: skip
# These do too, if only their first input depends on the length, not the places that they take of it.
_PROPORTIONAL_IN_FIRST = {"Gather", "GatherV2", "Slice", "StridedSlice"}
# These do too, if what depends on the length is equal for both lengths.
_COMPARISONS = {"Equal", "NotEqual"}


class PaddedTrace:
    """One bucket of lengths of a segment."""

    def __init__(self, segment: Segment, lengths: PaddedSizes, bucket: Bucket) -> None:
        self._segment = segment
        self._lengths = lengths
        self._bucket = bucket
        self._noted: list[Values] = []
        self._outputs: list[Tags] = []

    def pad(self, inputs: Sequence[Any]) -> list[Any]:
        """The inputs in the sizes of the program."""
        return self._lengths.padded(inputs, self._bucket.sizes)

    def arguments(self, inputs: Sequence[Any]) -> list[Any]:
        """What is passed to the program as its inputs: they themselves, and their lengths."""
        lengths = self._lengths.lengths([None if x is None else x.shape for x in inputs])
        assert lengths is not None
        return [*self.pad(inputs), _measured(lengths)]

    def cut(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
        """The outputs without padding."""
        lengths = self._lengths.lengths([None if x is None else x.shape for x in inputs])
        assert lengths is not None
        if lengths == self._bucket.sizes:
            return list(outputs)
        return [
            np.asarray(x)[
                tuple(slice(None) if t is None else slice(lengths[t.length] * t.factor) for t in tags)
            ]
            if any(tags)
            else x
            for x, tags in zip(outputs, self._outputs, strict=True)
        ]

    def note(self, values: Values) -> None:
        """Remembers the values that were known while tracing."""
        self._noted.append([v if isinstance(v, _CONCRETE) else None for v in values])

    def masked(
        self,
        jax: ModuleType,
        jnp: ArrayModule,
        trace: Callable[..., Any],
        args: tuple[Any, ...],
        skips: list[int],
    ) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """The traced function for any lengths of the bucket, and its arguments: the lengths come after its inputs.

        The last of the given arguments are its constants, which are not among the returned ones.
        """
        full, probe, tree = self._traced(jax, trace, args, skips)

        def whole(inputs: tuple[Any, ...], *rest: Any) -> Any:
            masking = Masking(jax, jnp, self._bucket, inputs[-1])
            flat = jax.tree.leaves((inputs[:-1], *rest))
            pairs = zip(flat, full.jaxpr.invars, probe.jaxpr.invars, strict=True)
            given = []
            for x, v, w in pairs:
                tags = masking.tags_of(v, w)
                given.append(Value(x, tags, zeroed=any(tags)))
            results = masking.run(full, probe, given)
            result = jax.tree.unflatten(tree, [r.array for r in results])
            boxes = jax.tree.unflatten(tree, [_Boxed(r.tags) for r in results])
            if any(box.tags and any(box.tags) for box in jax.tree.leaves(boxes[1:])):
                raise Unpaddable  # a variable whose shape depends on the length
            self._outputs = [() if box is None else box.tags for box in boxes[0]]
            return result

        return whole, ((*args[0], _measured(self._bucket.sizes)), *args[1:-1])

    def _traced(
        self, jax: ModuleType, trace: Callable[..., Any], args: tuple[Any, ...], skips: list[int]
    ) -> tuple[ClosedJaxpr, ClosedJaxpr, PyTreeDef]:
        """The traces of a function for both lengths of the bucket, and the structure of its results."""
        full, results = jax.make_jaxpr(trace, return_shape=True)(*args)
        drawn = list(skips)
        shapes = [None if x is None else x.shape for x in args[0]]
        probed = tuple(
            None if x is None else jax.ShapeDtypeStruct(s, x.dtype)
            for x, s in zip(args[0], self._lengths.shapes(shapes, self._bucket.probes), strict=True)
        )
        try:
            probe, other = jax.make_jaxpr(trace, return_shape=True)(probed, *args[1:])
        except Exception as e:  # it fails for other lengths, perhaps because they do not fit something else
            raise Unpaddable from e
        tree = jax.tree.structure(results)
        if drawn != skips or tree != jax.tree.structure(other):
            raise Unpaddable  # how many random numbers it draws depends on the length
        self._need_proportions()
        return full, probe, tree

    def _need_proportions(self) -> None:
        """Raises if numbers that depend on the length are computed in a way that two lengths do not tell."""
        full, probe = self._noted[0], self._noted[-1]
        for step in self._segment.steps:
            args = [(full[a], probe[a]) for a in step.args if a >= 0]
            changing = [_differ(*pair) for pair in args]
            if not any(changing) or all(full[o] is None for o in step.outs if o is not None):
                continue
            kind = step.op.type
            if not (
                kind in _PROPORTIONAL
                or (kind in _PROPORTIONAL_IN_FIRST and not any(changing[1:]))
                or (kind in _COMPARISONS and all(_equal_where_changing(*zip(*args, strict=True))))
            ):
                raise Unpaddable


def _measured(lengths: Sequence[int]) -> Array:
    """Lengths as an argument of a program."""
    return np.array(lengths, np.int32)


class _Boxed:
    """Tags as one leaf of a tree."""

    def __init__(self, tags: Tags) -> None:
        self.tags = tags


def _differ(value: Any, probed: Any) -> bool:
    """Whether a known value is another one for another length, beyond having more elements."""
    if value is None or probed is None or np.ndim(value) != np.ndim(probed):
        return value is not probed
    common = tuple(slice(0, min(a, b)) for a, b in zip(np.shape(value), np.shape(probed), strict=True))
    return not np.array_equal(np.asarray(value)[common], np.asarray(probed)[common])


def _equal_where_changing(full: Sequence[Any], probe: Sequence[Any]) -> tuple[bool, bool]:
    """Whether two compared values are equal, in each of the traces, where they are not the same in both."""
    if any(np.shape(v) != np.shape(full[0]) for v in (*full, *probe)):
        return False, False
    changing = (np.asarray(full[0]) != probe[0]) | (np.asarray(full[1]) != probe[1])
    return bool((full[0] == full[1])[changing].all()), bool((probe[0] == probe[1])[changing].all())
