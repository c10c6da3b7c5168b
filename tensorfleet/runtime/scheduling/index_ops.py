"""Operations that prepare indices: a few calls of numpy, with as little overhead as possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.graph.kernels import Kernel
from tensorfleet.graph.operation import Operation
from tensorfleet.ops.array.slicing import Masks
from tensorfleet.passes.plan import Part, Plan

if TYPE_CHECKING:
    from tensorfleet.base.types import Array
    from tensorfleet.runtime.resources import ResourceManager
    from tensorfleet.runtime.scheduling.program import Slots
    from tensorfleet.runtime.scheduling.step import ExecutionContext
    from tensorfleet.runtime.values import Values


class IndexItem:
    """Pure operations with one result each, run one after the other on the values of the step."""

    blocks = False

    def __init__(self, part: Part, plan: Plan, slots: Slots, resources: ResourceManager) -> None:
        self.device = part.device
        self.op = part.ops[-1]
        self.name = self.op.name
        computed = {t for op in part.ops for t in op._outputs} | plan.constants.keys()
        inputs = dict.fromkeys(t for op in part.ops for t in op._inputs if t not in computed)
        self.given = [slots.of(t) for t in inputs]
        self.steps = [
            (op, _call(op, plan), [slots.of(t) for t in op._inputs], slots.made_by(op._outputs[0]))
            for op in part.ops
        ]

    def run(self, ctx: ExecutionContext, values: Values) -> None:
        """Runs the operations."""
        for slot in self.given:
            values[slot] = np.asarray(values[slot])
        op: Any = None
        try:
            with np.errstate(all="ignore"):
                for op, call, args, out in self.steps:  # noqa: B007
                    values[out] = call(*[values[a] for a in args])
        except Exception as e:
            raise errors.about(op, e) from e


def _call(op: Operation, plan: Plan) -> Callable[..., Array]:
    """A function for an operation's result: one call of numpy if its constant arguments allow that."""
    kernel = Kernel(op)
    direct = _direct(op, plan)
    if direct is None:
        return lambda *values: kernel.call(np, values)[0]

    def call(*values: Array) -> Array:
        try:
            return direct(*values)
        except (ValueError, IndexError):
            result: Array = kernel.call(np, values)[0]  # raises, and says what is wrong
            return result

    return call


def _direct(op: Operation, plan: Plan) -> Callable[..., Array] | None:
    if op.type in ("Identity", "StopGradient"):
        return lambda x: x
    if op.type == "Shape":
        wanted = op._outputs[0].dtype.np_dtype
        return lambda x: np.array(x.shape, wanted)
    if op.type == "Cast" and op._inputs[0].dtype.is_integer:
        kind = op._outputs[0].dtype.np_dtype
        return lambda x: x.astype(kind)
    if op.type == "StridedSlice":
        return _slicing(op, plan)
    if op.type not in ("ConcatV2", "Reshape"):
        return None
    given = plan.constants.get(op._inputs[-1])
    if given is None or not given.size:
        return None
    if op.type == "ConcatV2":
        axis = int(given.ravel()[0])
        return lambda *values: np.concatenate(values[:-1], axis)
    dims = tuple(given.tolist()) if given.ndim == 1 else (0,)
    # With a 0 in the shape, -1 means something else in the kernel than in numpy.
    return (lambda x, _: x.reshape(dims)) if min(dims) >= -1 and 0 not in dims else None


def _slicing(op: Operation, plan: Plan) -> Callable[..., Array] | None:
    """A slice whose bounds are known, if it is no more than numpy's."""
    masks = Masks.of(op)
    bounds = [plan.constants.get(t) for t in op._inputs[1:]]
    if masks.ellipsis or masks.new_axis or any(b is None for b in bounds):
        return None
    begin, end, strides = (b.tolist() for b in bounds if b is not None)
    where: list[Any] = []
    for i, (first, last, stride) in enumerate(zip(begin, end, strides, strict=True)):
        if masks.shrink >> i & 1:
            if stride <= 0:
                return None
            where.append(first)
        else:
            open_ = masks.begin >> i & 1, masks.end >> i & 1
            where.append(slice(None if open_[0] else first, None if open_[1] else last, stride))
    picked = (*where, ...)
    return lambda x, *_: x[picked]
