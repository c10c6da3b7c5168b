"""Barriers that keep XLA from computing one value many times.

On the CPU, XLA fuses a cheap operation into each of its users, so that every user computes it again. Along
a chain of shared values (the gradient of a recurrent network's state is one) the copies multiply with
its length: programs that take a minute to compile and then mostly repeat themselves. A shared value that
takes more than a few operations is therefore computed once, behind a barrier.

Worse, the library that XLA hands sums to takes over the matrix products that are summed, too. It computes a product of a
product again for each block of the sum, which is up to thirty times slower. So a large product has a barrier as well.

A value computed twice may differ in its last bit, because XLA joins a product and a sum into one instruction here and not
there. That matters where it is compared with itself: the gradient of a maximum goes to the elements that equal it, and to
none if the maximum was taken of another copy. So a value that is compared and has another user has a barrier too, unless
it is only moved, added or cut off: those give the same bits every time.

It also keeps XLA from copying a variable that it could change in place. XLA copies it unless all readers of the old value
are sure to run before the update; a barrier around the two says so (decision 16).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tensorfleet.runtime.segments.segment import _CONCRETE, Segment, SegmentStep

if TYPE_CHECKING:
    from types import ModuleType

    from tensorfleet.base.types import Array, Dims
    from tensorfleet.runtime.values import Values

# A second user of a value may repeat so many operations. More of them, shared along a chain, multiply with its length.
_MAX_REPEATED_OPS = 8
# Repeating fewer elements costs less than storing them.
_MIN_BARRIER_ELEMENTS = 1024
# XLA always stores the results of these.
_STORED = {"MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum"}
# These are matrix products, or sums of many gathered lines, inside.
_MADE_OF_PRODUCTS = {"LRN", "ResizeArea", "ScaleAndTranslate", "ScaleAndTranslateGrad"}
_MADE_OF_PRODUCTS |= {
    f"Resize{kind}{gradient}" for kind in ("Bilinear", "Bicubic") for gradient in ("", "Grad")
}
# A sum over a product computes it again for each of its blocks: 16 to 30 times slower from 1,000 x 1,000 on.
_MIN_STORED_PRODUCT_ELEMENTS = 1 << 14
# These loop over all elements in a window. So many reads in a window take as long as one element of a plain loop.
_WINDOWS = {f"DepthwiseConv2dNative{gradient}" for gradient in ("", "BackpropInput", "BackpropFilter")}
_WINDOW_READS_PER_ELEMENT = 8
# Ops that look for a value among the elements that it was computed from, and which of their inputs those are.
_COMPARED_INPUTS = {
    "Equal": (0, 1),
    "NotEqual": (0, 1),
    "MaxPoolGrad": (0,),
    "MaxPoolGradV2": (0,),
    "MaxPoolGradGrad": (0,),
}
_COMPARED_INPUTS |= {"MaxPoolGradGradV2": (0,), "MaxPool3DGrad": (0,), "FractionalMaxPoolGrad": (0,)}
# Ops that give the same bits in every copy, as long as their inputs do.
_SAME_BITS = {
    "Abs",
    "Add",
    "AddV2",
    "BiasAdd",
    "BroadcastTo",
    "ExpandDims",
    "Identity",
    "Maximum",
    "Minimum",
    "Neg",
    "Pad",
}
_SAME_BITS |= {"Relu", "Relu6", "Reshape", "Slice", "Squeeze", "StridedSlice", "Sub", "Transpose"}
# An update can only wait for a stored result. Storing costs nothing if it is so many times smaller than the variable.
_MIN_READER_RATIO = 16


class Barriers:
    """Called with each traced step; puts barriers behind the results that need one.

    `tables` are the shapes of variables of which only some rows are touched.
    """

    def __init__(
        self,
        segment: Segment,
        jax: ModuleType,
        tables: Sequence[Dims] = (),
        users: Counter[int] | None = None,
    ) -> None:
        self._jax = jax
        self._segment = segment
        self._tables = tables
        self.largest = 0  # elements of the largest array that is gone through
        if users is None:
            users = Counter(code for step in segment.steps for code in set(step.args))
            users.update(set(segment.output_codes))
        self._users = users
        compared = {
            step.args[i] for step in segment.steps for i in _COMPARED_INPUTS.get(step.kernel.op.type, ())
        }
        self._compared = {code for code in compared if users[code] > 1}
        self._varying: set[int] = set()  # slots whose copies may differ in their last bits
        self._work: dict[int, int] = {}  # slot → operations to compute it from what is stored
        # Variables and values computed from them that are not stored, each with the stored results of its readers. By
        # identity: a tracer has no other.
        self._read: dict[int, tuple[Array, list[Array]]] = {}

    def inner(self) -> Barriers:
        """Barriers for the body of a loop among the steps."""
        return Barriers(self._segment, self._jax, self._tables, self._users)

    def watch(self, variable: Array) -> None:
        """Makes the update of a traced variable wait for the readers of its old value."""
        self._read[id(variable)] = (variable, [])

    def before_update(self, step: SegmentStep, args: Values) -> Values:
        """The arguments of an update, tied to come after everything that has read the variables so far."""
        ordered = list(args)
        for i in step.variables:
            variable, readers = self._read.get(id(args[i]), (None, []))
            if readers and ~step.args[i] in step.updates:
                ordered[i] = self._jax.lax.optimization_barrier((variable, *readers))[0]
        return ordered

    def __call__(self, step: SegmentStep, args: Values, results: tuple[Any, ...]) -> tuple[Any, ...]:
        """The results of a step, behind a barrier where that pays."""
        for value in (*args, *results):
            if getattr(value, "shape", None) not in self._tables:
                self.largest = max(self.largest, getattr(value, "size", 0))
        work = 1 + sum(self._work.get(a, 0) for a in step.args)
        computed = step.kernel.op
        if computed.type in _WINDOWS:
            filters = (results[0] if computed.type.endswith("Filter") else args[1]).shape
            self.largest = max(
                self.largest,
                max(args[0].size, args[-1].size) * filters[0] * filters[1] // _WINDOW_READS_PER_ELEMENT,
            )
        stored = computed.type in _STORED or computed.spec.heavy
        if stored:
            work = 0
        varying = not stored and (computed.type not in _SAME_BITS or not self._varying.isdisjoint(step.args))
        guarded = list(results)
        first = len(results) - len(step.outs)  # after the new values of updated variables
        for i, out in enumerate(step.outs, first):
            if out is None:
                continue
            repeated = work > _MAX_REPEATED_OPS and self._users[out] > 1 and _elementwise(guarded[i], args)
            compared = varying and out in self._compared and not isinstance(guarded[i], _CONCRETE)
            if repeated or compared or _is_large_product(step, guarded[i]):
                guarded[i] = self._jax.lax.optimization_barrier(guarded[i])
            else:
                self._work[out] = work
                if varying:
                    self._varying.add(out)
        if not step.updates:
            # XLA leaves out a result that nobody uses, but not one that several barriers name.
            used = [r for r, out in zip(guarded, step.outs, strict=True) if out is None or self._users[out]]
            self._note_readers(args, used, work == 0)
        return tuple(guarded)

    def _note_readers(self, args: Values, results: Values, stored: bool) -> None:
        for value, readers in [self._read[id(a)] for a in args if id(a) in self._read]:
            for result in results:
                if isinstance(result, _CONCRETE):
                    continue
                if stored or result.size * _MIN_READER_RATIO <= value.size:
                    readers.append(result)
                else:
                    self._read[id(result)] = (result, readers)


def _is_large_product(step: SegmentStep, result: Array) -> bool:
    """Whether a traced result is a matrix product that a sum over it must not compute again."""
    kind = step.kernel.op.type
    if isinstance(result, _CONCRETE) or result.size < _MIN_STORED_PRODUCT_ELEMENTS:
        return False
    return kind in _STORED or kind in _MADE_OF_PRODUCTS


def _elementwise(result: Array, args: Values) -> bool:
    """Whether a traced result has the shape of an argument, and is not just a few numbers."""
    if isinstance(result, _CONCRETE) or result.size < _MIN_BARRIER_ELEMENTS:
        return False
    return any(getattr(a, "shape", None) == result.shape for a in args)
