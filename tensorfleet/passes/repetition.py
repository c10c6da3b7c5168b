"""Finds where a block of operations repeats, with nothing but other constants.

A chain of a thousand operations is mostly a short block, made again and again by a Python loop. As a loop in the program it
takes XLA as long to compile as the block; unrolled, longer with every operation, and from some thousands on with their
square. Such a block needs its own results of the round before, and hands on only the results of its last round.

Whether two operations are alike is told by a token: what the kernel is called with, and how far back each argument was
made. Equal tokens at a fixed distance are a repetition, found in one pass. `fuse` counts with it how much a segment gives
XLA to compile; runtime/segments/repetition.py makes the loops.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

if TYPE_CHECKING:
    from tensorfleet.graph.operation import Operation, Tensor
    from tensorfleet.graph.registry import OpSpec
    from tensorfleet.passes.plan import Plan

# A longer block is not looked for: XLA compiles few rounds of it well, and looking takes time for each length.
_MAX_PERIOD = 64
# A shorter stretch compiles in less than 20 ms as it is, and XLA can fuse all of it.
MIN_REPEATED_STEPS = 64
_MIN_ROUNDS = 4
# A larger constant is a value of its own. Those that differ between rounds are put into the program, as one array.
_MAX_CONSTANT_BYTES = 1 << 10
_Key = TypeVar("_Key", bound=Hashable)


class Stretch(NamedTuple):
    """Where a block repeats: its first operation, how many operations it has, and how many rounds there are."""

    first: int
    period: int
    rounds: int

    @property
    def end(self) -> int:
        """The first operation behind it."""
        return self.first + self.period * self.rounds


def may_repeat(spec: OpSpec) -> bool:
    """Whether an op only computes values, with nothing that depends on which operation it is."""
    only_computes = not (spec.updates or spec.rng is not None or spec.stateful or spec.heavy or spec.host)
    return only_computes and "op" not in spec.kernel_attrs


def exact(attribute: Any) -> Hashable:
    """An attribute as a part of a token; tells 0.0 from -0.0."""
    return repr(attribute) if type(attribute) is float else attribute


def constant_token(constant: Any, static: bool) -> Hashable:
    """What constants have in common that may differ between rounds, with their value if it may not; None for a large one."""
    if not isinstance(constant, (np.ndarray, np.generic)) or constant.nbytes > _MAX_CONSTANT_BYTES:
        return None
    if constant.dtype.kind not in "biufc":
        return None
    return constant.dtype.str, constant.shape, constant.tobytes() if static else None


def made_token(taken: int, maker: tuple[int, int], last_use: int) -> Hashable:
    """The token of an argument: how many operations before it was made, and as which result of which operation.

    None for a value that is still used when the rounds it could go between are over: it is the same in all rounds.
    """
    made, output = maker
    return None if last_use - made > 2 * _MAX_PERIOD else (taken - made, output)


def numbered(tokens: Iterable[Hashable]) -> list[int]:
    """A number for each token, the same for equal ones; a number of its own for None and for what cannot be hashed."""
    numbers: dict[Hashable, int] = {}
    result = []
    for i, token in enumerate(tokens):
        try:
            result.append(numbers.setdefault(i if token is None else token, len(numbers)))
        except TypeError:
            result.append(numbers.setdefault(i, len(numbers)))
    return result


def find_repetitions(
    tokens: Sequence[int], outs: Sequence[Sequence[_Key]], last_use: Mapping[_Key, int]
) -> list[Stretch]:
    """The stretches that can be loops, given the numbers of all tokens, what is made and where that is last used."""
    return [
        stretch
        for begin, end, period in _stretches(tokens)
        for stretch in _divided(begin, end, period, outs, last_use)
    ]


def _stretches(tokens: Sequence[int]) -> list[tuple[int, int, int]]:
    """Where tokens repeat: begin, end, period."""
    stretches = []
    before: dict[int, int] = {}
    tried: dict[int, int] = {}  # period → how far it has been followed already
    i, free = 0, 0
    while i < len(tokens):
        period = i - before.get(tokens[i], -_MAX_PERIOD - 1)
        before[tokens[i]] = i
        if period > _MAX_PERIOD or i - period < free or i < tried.get(period, 0):
            i += 1
            continue
        end = i
        while end < len(tokens) and tokens[end] == tokens[end - period]:
            end += 1
        tried[period] = end
        if not _is_enough((end - i + period) // period, period):
            i += 1
            continue
        stretches.append((i - period, end, period))
        i = free = end
    return stretches


def _divided(
    begin: int, end: int, period: int, outs: Sequence[Sequence[_Key]], last_use: Mapping[_Key, int]
) -> list[Stretch]:
    """The loops of a stretch: each ends where something behind it needs more than the last round's results."""
    loops = []
    first = begin
    for last in range(begin, end - period + 1, period):
        rounds = (last - first) // period + 1
        behind = last + 2 * period  # the next round may use this one's results
        results = (out for i in range(last, last + period) for out in outs[i])
        if behind <= end and not any(last_use.get(out, -1) >= behind for out in results):
            continue
        if _is_enough(rounds, period):
            loops.append(Stretch(first, period, rounds))
        first = last + period
    return loops


def _is_enough(rounds: int, period: int) -> bool:
    return rounds >= _MIN_ROUNDS and rounds * period >= MIN_REPEATED_STEPS


def compiled_ops(plan: Plan, ops: Sequence[Operation]) -> list[int]:
    """For each operation 1 if XLA has to compile it, 0 if it is one more round of what comes before."""
    compiled = [1] * len(ops)
    last_use = _last_uses(plan, ops)
    outs = [op._outputs for op in ops]
    for stretch in find_repetitions(numbered(_tokens(plan, ops, last_use)), outs, last_use):
        rest = range(stretch.first + stretch.period, stretch.end)
        compiled[rest.start : rest.stop] = [0] * len(rest)
    return compiled


def _last_uses(plan: Plan, ops: Sequence[Operation]) -> dict[Tensor, int]:
    own = set(ops)
    last_use = {t: i for i, op in enumerate(ops) for t in op._inputs}
    last_use.update({t: len(ops) for op in plan.ops if op not in own for t in op._inputs})
    last_use.update(dict.fromkeys(plan.fetches, len(ops)))
    return last_use


def _tokens(plan: Plan, ops: Sequence[Operation], last_use: Mapping[Tensor, int]) -> Iterable[Hashable]:
    made: dict[Tensor, tuple[int, int]] = {}
    for i, op in enumerate(ops):
        if not may_repeat(op.spec) or op in plan.guards:
            yield None
        else:
            arguments: list[Hashable] = []
            for position, t in enumerate(op._inputs):
                maker = made.get(t)
                if maker is not None:
                    arguments.append(made_token(i, maker, last_use[t]) or t)
                else:
                    static = position in op.spec.static
                    arguments.append(constant_token(plan.constants.get(t), static) or t)
            yield (op.type, *map(exact, op._attrs.values()), *arguments)
        made.update({t: (i, position) for position, t in enumerate(op._outputs)})
