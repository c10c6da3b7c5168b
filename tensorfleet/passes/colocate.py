"""Which operations must share a device: colocation groups, and operations on one reference or resource handle.

A group asks for what its members ask for together, as in TensorFlow: `/job:ps` and `/cpu:1` make `/job:ps/cpu:1`, and
two members that ask for different devices are an error. With soft placement, only the part that differs is dropped
(`/cpu:1` and `/cpu:2` make `/cpu:*`), and a colocation that is impossible even so is ignored.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from tensorfleet.base import errors
from tensorfleet.base.devices import DeviceSpec
from tensorfleet.graph.operation import Operation, Tensor

_PREFIX = b"loc:@"
# TensorFlow builds these where their handle is, whatever `tf.device` is around them.
_AT_THEIR_HANDLE = ("Iterator", "LookupTable")
_ANYWHERE = DeviceSpec()
# Parts of a device name that soft placement cannot change, and what an error calls them.
_HARD_PARTS = (("job", "jobs"), ("replica", "replicas"), ("task", "tasks"))


class Incompatible(Exception):
    """Two device names that no device can have both."""


class ColocationGroup:
    """Operations that share a device.

    `asked` is what they ask for together. `state` is what those of them ask for that hold state: nothing overrides that.
    """

    __slots__ = ("asked", "device", "members", "rank", "state")

    def __init__(self, op: Operation) -> None:
        self.members = [op]
        self.asked = own_request(op)
        self.state = self.asked if holds_state(op) else _ANYWHERE
        self.rank = 0  # of two groups, an error names the higher one first, as TensorFlow's does
        self.device: str | None = None  # once it was chosen


class Colocation:
    """The groups of a graph, built as its operations become known."""

    def __init__(self, soft: bool) -> None:
        self._soft = soft
        self._groups: dict[Operation, ColocationGroup] = {}
        self._named: dict[bytes, Operation] = {}  # the first member of each group that has a name

    def __contains__(self, op: Operation) -> bool:
        return op in self._groups

    def clear(self) -> None:
        """Forgets all groups, after the graph was edited."""
        self._groups.clear()
        self._named.clear()

    def of(self, op: Operation) -> ColocationGroup:
        """The group of an operation, which may be its only member."""
        result = self._groups.get(op)
        if result is None:
            result = self._groups[op] = ColocationGroup(op)
        return result

    def include(self, ops: Iterable[Operation]) -> None:
        """Makes operations known; raises InvalidArgumentError if two that must share a device ask for different ones."""
        new = [op for op in ops if op not in self._groups]
        for op in new:
            self.of(op)
        for op in new:
            for source in sources(op):
                self._follow(source, op)
        for op in new:
            for name in (*_group_names(op), op.name.encode()):
                first = self._named.setdefault(name, op)
                if first is not op:
                    self._colocate(op, first)

    def _follow(self, source: Operation, op: Operation) -> None:
        """Puts an operation where the state is that it is given. If it asks for another device, that is ignored."""
        above, below = self.of(source), self.of(op)
        if above is below:
            return
        try:
            # Only two pieces of state can contradict each other. Any other request gives way to the state's device.
            merged(above.state, below.state)
            if not compatible(above.asked, below.asked):
                below.asked = above.asked
            self._merge(above, below)
        except Incompatible as e:
            if any(attr.kind == "func" for attr in op.spec.attrs.values()):
                return  # a function may use state of several devices
            raise errors.InvalidArgumentError(
                None,
                op,
                "Nodes were connected by a reference or resource connection (requiring them to be on the same device), "
                f"but the two nodes were assigned two different devices: {source.name} and {op.name}: {e}. Put the "
                "variables (or other resources) that one operation uses on one device.",
            ) from None

    def _colocate(self, op: Operation, other: Operation) -> None:
        one, two = self.of(op), self.of(other)
        if one is two:
            return
        try:
            self._merge(one, two)
        except Incompatible as e:
            if not self._soft:
                raise errors.InvalidArgumentError(
                    None,
                    op,
                    f"Cannot colocate nodes {op.name} and {other.name}: {e}. Change the tf.device around one of them, "
                    "or do not colocate them (tf.colocate_with), or pass "
                    "tf.ConfigProto(allow_soft_placement=True) to let TensorFleet choose.",
                ) from None

    def _merge(self, one: ColocationGroup, two: ColocationGroup) -> None:
        """Makes one group of two; Incompatible if that is impossible, with both unchanged."""
        kept, gone = (two, one) if one.rank < two.rank else (one, two)
        state = merged(kept.state, gone.state)
        asked = merged(merged(kept.asked, gone.asked, self._soft), state)
        # Two groups that were placed apart are chosen for again; `_choose` keeps the device of their state.
        devices = {d for d in (kept.device, gone.device) if d is not None}
        kept.rank += one.rank == two.rank
        kept.state, kept.asked = state, asked
        kept.device = devices.pop() if len(devices) == 1 else None
        if len(kept.members) < len(gone.members):  # fewer to tell of their new group
            kept.members, gone.members = gone.members, kept.members
            self._groups.update(dict.fromkeys(kept.members, kept))
        else:
            self._groups.update(dict.fromkeys(gone.members, kept))
        kept.members += gone.members


def own_request(op: Operation) -> DeviceSpec:
    """The device that an operation itself asks for."""
    if not op._device or (op.type.startswith(_AT_THEIR_HANDLE) and sources(op)):
        return _ANYWHERE
    return _spec(op._device)


@lru_cache(maxsize=4096)
def _spec(device: str) -> DeviceSpec:
    return DeviceSpec.from_string(device)


def sources(op: Operation) -> list[Operation]:
    """The operations that give an operation a reference or a handle, of state that it then has to be with."""
    if not op._inputs:
        return []
    takes_references = any(arg.is_ref for arg in op.spec.inputs)
    return [t._op for t in op._inputs if _is_handle(t) or (takes_references and t.dtype._is_ref_dtype)]


def holds_state(op: Operation) -> bool:
    """Whether an operation makes a variable, a queue or another resource."""
    return (
        not op._inputs
        and len(op._outputs) == 1
        and (op._outputs[0].dtype._is_ref_dtype or _is_handle(op._outputs[0]))
    )


def _is_handle(tensor: Tensor) -> bool:
    return tensor.dtype.name == "resource"


def _group_names(op: Operation) -> list[bytes]:
    return [name[len(_PREFIX) :] for name in op._attrs.get("_class", ()) if name.startswith(_PREFIX)]


def compatible(one: DeviceSpec, two: DeviceSpec) -> bool:
    """Whether a device can have both names."""
    return all(a is None or b is None or a == b for a, b in zip(one.parts(), two.parts(), strict=True))


def merged(one: DeviceSpec, two: DeviceSpec, soft: bool = False) -> DeviceSpec:
    """The name of devices that have both names. Where there is none, `soft` leaves open the device type and its number."""
    if not any(part is not None for part in two.parts()):
        return one
    both: dict[str, Any] = {name: _either(one, two, name, words) for name, words in _HARD_PARTS}
    kinds = one.device_type, two.device_type
    if None not in kinds and kinds[0] != kinds[1]:
        if not soft:
            raise _incompatible("types", one, two)
        return DeviceSpec(**both)
    kind = kinds[0] or kinds[1]
    try:
        return DeviceSpec(**both, device_type=kind, device_index=_either(one, two, "device_index", "ids"))
    except Incompatible:
        if not soft:
            raise
        return DeviceSpec(**both, device_type=kind)


def _either(one: DeviceSpec, two: DeviceSpec, part: str, words: str) -> Any:
    a, b = getattr(one, part), getattr(two, part)
    if a is not None and b is not None and a != b:
        raise _incompatible(words, one, two)
    return b if a is None else a


def _incompatible(what: str, one: DeviceSpec, two: DeviceSpec) -> Incompatible:
    return Incompatible(f"Cannot merge devices with incompatible {what}: '{one}' and '{two}'")
