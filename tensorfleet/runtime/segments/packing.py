"""How a compiled program takes the small variables of its segment: in packs (runtime/variable_packs.py)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.runtime.segments.batches import Batch, Row, Unit, stack
from tensorfleet.runtime.variable_packs import VariablePack

if TYPE_CHECKING:
    from types import ModuleType

    from tensorfleet.base.types import Array, ArrayModule
    from tensorfleet.runtime.resources import VariableStore
    from tensorfleet.runtime.segments.segment import Segment
    from tensorfleet.runtime.values import Values

# An argument and a result of a program take 1 us together. That a copy into a pack and out of it costs as much from this
# size on is an estimate: no sweep of sizes was measured. Nor was one for the two numbers below it.
_MAX_MEMBER_BYTES = 1 << 14
_MIN_MEMBERS = 4
# A pack stays in the processor's cache, and is below what XLA divides among threads.
_MAX_PACK_BYTES = 1 << 19
# A program takes a whole pack if it uses this share of it, and single variables out of it otherwise.
_MIN_USED_SHARE = 0.5


class Packing:
    """The packs of one program, and the variables that it takes alone."""

    __slots__ = ("_indices", "_written", "packs", "reads", "writes")

    def __init__(
        self,
        segment: Segment,
        packs: Iterable[VariablePack] = (),
        stores: Sequence[VariableStore] = (),
    ) -> None:
        self.packs = list(packs)
        used = (*segment.reads, *segment.writes) if self.packs else ()
        index_of = {id(stores[i]): i for i in used}
        #: for each pack the variables of the segment, in their places; None for one that it does not use
        self._indices = [[index_of.get(id(store)) for store in pack.stores] for pack in self.packs]
        packed = {i for indices in self._indices for i in indices}
        written = set(segment.writes)
        self.reads = [i for i in segment.reads if i not in packed]
        self.writes = [w for w in segment.writes if w not in packed]
        self._written = [not written.isdisjoint(indices) for indices in self._indices]

    def take(self, held: list[Any]) -> list[Any] | None:
        """The arrays of the packs; None if these are not as they were when the program was compiled.

        Begins new packs. The caller holds the locks of all variables that the program writes, and gives back those that
        are added to `held`.
        """
        buffers = []
        for pack, written in zip(self.packs, self._written, strict=True):
            if not pack.active and not (written and pack.begin(held)):
                return None
            buffer = pack.take() if written else pack.look()
            if buffer is None:
                if written:
                    pack.dissolve(held)
                return None
            buffers.append(buffer)
        return buffers

    def samples(self) -> list[Any]:
        """Arrays of the types and sizes of the packs."""
        return [np.zeros(pack.size, pack.dtype) for pack in self.packs]

    def replace(self, buffers: Sequence[Any]) -> None:
        """Makes the results of the program current. The caller holds the locks."""
        written = [pack for pack, is_written in zip(self.packs, self._written, strict=True) if is_written]
        for pack, buffer in zip(written, buffers, strict=True):
            pack.replace(buffer)

    def unpack(self, jax: ModuleType, buffers: Sequence[Array], state: Values) -> None:
        """While tracing: gives the variables their values, as rows of the packs."""
        for pack, indices, buffer in zip(self.packs, self._indices, buffers, strict=True):
            for first, count in _equal_shapes(pack):
                rows = _cut_out(jax, pack, buffer, first, count)
                for n in range(count):
                    if (i := indices[first + n]) is not None:
                        state[i] = Row(rows, n)

    def repack(self, jax: ModuleType, jnp: ArrayModule, buffers: Sequence[Array], state: Values) -> list[Any]:
        """While tracing: the new values of variables that are taken alone, and then the new arrays of packs."""
        result = [value.alone(jax) if isinstance(value := state[w], Row) else value for w in self.writes]
        for pack, indices, buffer, written in zip(
            self.packs, self._indices, buffers, self._written, strict=True
        ):
            if not written:
                continue
            pieces = []
            for first, count in _equal_shapes(pack):
                before = _cut_out(jax, pack, buffer, first, count)
                rows = [
                    Row(before, n) if (i := indices[first + n]) is None else state[i] for n in range(count)
                ]
                pieces.append(stack(jax, jnp, rows).reshape(-1))
            result.append(pieces[0] if len(pieces) == 1 else jnp.concatenate(pieces))
        return result


def _cut_out(jax: ModuleType, pack: VariablePack, buffer: Array, first: int, count: int) -> Array:
    """Neighbours of one shape as rows of one array."""
    start, shape = pack.starts[first], pack.shapes[first]
    rows = jax.lax.slice_in_dim(buffer, start, start + count * math.prod(shape))
    result: Array = rows.reshape(count, *shape)
    return result


def _equal_shapes(pack: VariablePack) -> list[tuple[int, int]]:
    """The neighbours of one shape in a pack: the first place and how many there are."""
    runs = [list(run) for _, run in itertools.groupby(range(len(pack.shapes)), key=pack.shapes.__getitem__)]
    return [(run[0], len(run)) for run in runs]


def plan_packing(
    segment: Segment,
    stores: Sequence[VariableStore],
    state: Sequence[Any],
    units: Iterable[Unit] | None,
    alone: set[int],
) -> Packing:
    """The packs for a program: those that its variables are in, and new ones for others that it updates.

    It needs the variables in `alone` by themselves.

    A program holds the locks of all variables that it updates together, so these may share one. Two other steps that
    update different variables of the pack do wait for each other then.
    """
    written = set(segment.changed())
    usable = [i for i in segment.reads if i not in alone]
    packs: dict[int, tuple[VariablePack, int]] = {}
    groups: dict[np.dtype[Any], list[int]] = {}
    for i in _in_order_of_use(segment, units, usable):
        store, value = stores[i], state[i]
        pack = store.pack
        if pack is not None and pack.look() is not None:
            known, count = packs.get(id(pack), (pack, 0))
            packs[id(pack)] = known, count + 1
        elif pack is None and i in written and store.packable and _is_small(value):
            groups.setdefault(np.dtype(value.dtype), []).append(i)
    # A pack is taken as a whole, or not at all. A variable that is assigned to may get another shape.
    assigned = set(segment.writes) - written
    refused = {id(stores[i].pack) for i in (*assigned, *alone, *segment.owned)}
    used = [
        pack
        for key, (pack, count) in packs.items()
        if key not in refused and count >= _MIN_USED_SHARE * len(pack.stores)
    ]
    new = [
        VariablePack([stores[i] for i in part], [tuple(state[i].shape) for i in part], dtype)
        for dtype, group in groups.items()
        for part in _in_size(group, state)
        if len(part) >= _MIN_MEMBERS
    ]
    return Packing(segment, [*used, *new], stores)


def _is_small(value: Any) -> bool:
    return value is not None and 0 < _bytes_of(value) <= _MAX_MEMBER_BYTES


def _bytes_of(value: Any) -> int:
    """How much memory a value takes, of which perhaps only the shape and the type are known."""
    return int(value.size * np.dtype(value.dtype).itemsize)


def _in_size(group: list[int], state: Sequence[Any]) -> list[list[int]]:
    """Variables in as many packs as keep each of them in the cache."""
    parts: list[list[int]] = []
    room = 0
    for i in group:
        room -= _bytes_of(state[i])
        if room < 0:
            parts.append([])
            room = _MAX_PACK_BYTES - _bytes_of(state[i])
        parts[-1].append(i)
    return parts


def _in_order_of_use(segment: Segment, units: Iterable[Unit] | None, usable: list[int]) -> list[int]:
    """Variables in an order in which those that a batch updates together are neighbours."""
    ordered: dict[int, None] = {}
    for unit in units or ():
        if isinstance(unit, Batch):
            for codes in zip(*[step.updates for step in unit.steps], strict=True):
                ordered.update(dict.fromkeys(codes))
    wanted = set(usable)
    return [i for i in (*ordered, *[i for i in usable if i not in ordered]) if i in wanted]
