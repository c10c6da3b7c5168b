"""Random numbers for a block of elements: those that the elements would have drawn one after the other."""

from __future__ import annotations

import numpy as np

from tensorfleet.api.data.blocks import Column, Values, column_of, row
from tensorfleet.base.types import Array
from tensorfleet.graph.kernels import Kernel
from tensorfleet.graph.operation import Operation
from tensorfleet.kernels import philox
from tensorfleet.ops.random.ops import draw_each, shuffle_each
from tensorfleet.runtime.resources import RandomStreams

# These draw one number per element of the shape they are given.
_SHAPED = {"RandomUniform", "RandomUniformInt", "RandomStandardNormal", "TruncatedNormal"}
# These draw as much as their values ask for, and move their streams themselves unless they have a rule for it.
_OTHERS = {"Multinomial", "RandomGamma", "RandomPoissonV2", "RandomShuffle"}
# Of more numbers than these, XLA makes those of one element faster than numpy.
_MAX_NUMBERS = 1 << 12


def draws(op: Operation) -> bool:
    """Whether it is a random op that many elements may go through together: its only effect is on its stream."""
    if op.type not in _SHAPED and op.type not in _OTHERS:
        return False
    size = op._outputs[0].shape.num_elements()
    return size is not None and size <= _MAX_NUMBERS


class Draft:
    """Random streams as a block moves them; nothing has moved until the whole block has gone through."""

    def __init__(self, streams: RandomStreams) -> None:
        self._streams = streams
        self._moved: dict[Operation, int] = {}

    def take(self, op: Operation, blocks: int) -> Array:
        """The op's current state; the next taker starts `blocks` later."""
        state, moved = self._streams.take(op, 0), self._moved.get(op, 0)
        self._moved[op] = moved + blocks
        return philox.skip(state, moved) if moved else state

    def keep(self) -> None:
        """Moves the streams."""
        for op, blocks in self._moved.items():
            self._streams.take(op, blocks)


def drawn(
    op: Operation, kernel: Kernel, many: Values, once: Values, n: int, streams: RandomStreams | Draft
) -> list[Column] | None:
    """The results of a random op for each of `n` elements; None for an op that moves its stream itself."""
    spec = op.spec
    if (
        op.type == "RandomShuffle"
        and isinstance(column := many.get(op._inputs[0]), np.ndarray)
        and column.ndim > 1
    ):
        # Each element gets the numbers that it would have drawn alone, and those that it would have left unused.
        blocks = n * philox.reserved(op.type, column.shape[1])
        return [shuffle_each(streams.take(op, blocks), column)]
    if spec.rng is None:
        return None
    if op.type in _SHAPED and all(t in once for t in op._inputs):
        values = draw_each(op, kernel, streams.take(op, 0), n, [once[t] for t in op._inputs])
        streams.take(op, n * spec.rng(op, [values[0]]))
        return [values]
    results = []
    for i in range(n):
        arguments = [row(many[t], i) if t in many else once[t] for t in op._inputs]
        outputs = kernel.call(np, [streams.take(op, 0), *arguments])
        streams.take(op, spec.rng(op, list(outputs)))
        results.append(outputs)
    return [column_of(column) for column in zip(*results, strict=True)]
