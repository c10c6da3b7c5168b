"""Give every operation a device: where it ran before, else where it and its colocation group ask to be, else the default."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorfleet.base import errors
from tensorfleet.base.devices import DeviceSpec
from tensorfleet.graph.operation import Operation
from tensorfleet.passes.colocate import Colocation, ColocationGroup, holds_state, own_request, sources
from tensorfleet.passes.plan import Plan

# Numeric types a GPU has kernels for; integers and strings stay with the host, as in TensorFlow.
_GPU_TYPES = {"float16", "float32", "float64", "bfloat16", "complex64", "complex128", "bool"}
# So many members of a group are listed in an error.
_MAX_LISTED_DEVICES = 10


class Placer:
    """Knows the devices of a session and remembers where each operation went."""

    def __init__(self, devices: Sequence[str], soft: bool = False) -> None:
        self.names: list[str] = []
        self._specs: list[DeviceSpec] = []
        self.soft = soft
        self.placed: dict[Operation, str] = {}
        self._groups = Colocation(soft)
        self._unasking: list[Operation] = []  # operations before the first that asks for a device
        self._asking = False
        self._sound: set[DeviceSpec] = set()  # what operations ask for that can be had by all
        self.add(devices)

    def add(self, devices: Sequence[str]) -> None:
        """Makes more devices known."""
        self.names += devices
        self._specs += [DeviceSpec.from_string(d) for d in devices]

    def place(self, plan: Plan) -> Plan:
        """Fills `plan.devices`."""
        every = (*plan.folded, *plan.ops)
        # The usual case, one device and no tf.device: no groups need to be built.
        if len(self.names) == 1 and not self._asking and not any(map(self._asks, every)):
            only = self.names[0]
            plan.devices = dict.fromkeys(plan.ops, only)
            self.placed.update((op, only) for op in plan.ops if op not in plan.loops)
            self.placed.update(dict.fromkeys(plan.folded, only))
            return plan
        # A loop is where its first node is.
        nodes = [getattr(op, "start", op) for op in every]
        self._groups.include([op for op in nodes if op not in self.placed])
        for op in plan.folded:
            self.device_of(op)
        plan.devices = {op: self.device_of(op) for op in plan.ops}
        return plan

    def device_of(self, op: Operation) -> str:
        """Where an operation runs, decided when first asked."""
        op = getattr(op, "start", op)
        device = self.placed.get(op)
        if device is None:
            if op not in self._groups:
                self._groups.include([op])
            group = self._groups.of(op)
            if group.device is None:
                group.device = self._choose(op, group)
            device = self.placed[op] = group.device
        return device

    def check(self, ops: Sequence[Operation]) -> None:
        """Refuses operations that ask for a device there is not, whether they are to run or not.

        Once the graph was edited, or after a refusal, it is called with all of them again.
        """
        if not ops:
            return
        if not self._asking:
            # Called with all operations again, as after an edit.
            if self._unasking and self._unasking[0] is ops[0]:
                self._unasking.clear()
            self._unasking += ops
            if len(self.names) == 1 and not any(op._device for op in ops):
                return
            # From the first request on, groups matter: those of earlier operations are made up for.
            self._asking, ops, self._unasking = True, self._unasking, []
        if ops[0] in self._groups:
            self._groups.clear()
        self._groups.include(ops)
        asking = [op for op in ops if op._device]
        for op in sorted(asking, key=_is_source):  # of a constant and its user, the user is what was written
            asked = self._groups.of(op).asked
            if asked not in self._sound:
                self._check(op, asked)

    def _check(self, op: Operation, asked: DeviceSpec) -> None:
        if "/device:CPU" in self._match_among(op, self._groups.of(op), asked):
            self._sound.add(asked)

    def reason(self, op: Operation, device: str) -> str:
        """Why an operation is where it is, in a few words."""
        group = self._groups.of(op) if op in self._groups else ColocationGroup(op)
        leader = self._leader(op, group)
        if leader is not None:
            return f"stays with {leader.name}"
        if group.asked == DeviceSpec():
            return "default"
        if agrees(group.asked, DeviceSpec.from_string(device)):
            return f"tf.device({op._device!r})"
        return f"soft placement: {op._device!r} cannot run it"

    def _leader(self, op: Operation, group: ColocationGroup) -> Operation | None:
        """Of the operations that one shares its device with, the one that says most about where that is."""
        holders = sources(op)
        if holders:
            return next((m for m in group.members if holds_state(m) and m is not op), holders[0])
        names = [g[5:].decode() for g in op._attrs.get("_class", ()) if g.startswith(b"loc:@")]
        others = [op.graph._by_name[n] for n in names if n in op.graph._by_name and n != op.name]
        if others:
            return others[0]
        if op._device:
            return None
        return next((m for m in group.members if m is not op and own_request(m) != DeviceSpec()), None)

    def _asks(self, op: Operation) -> bool:
        """Whether it can matter to an operation which device it gets."""
        return bool(op._device)

    def _choose(self, op: Operation, group: ColocationGroup) -> str:
        # State cannot move once it exists. A group that grew since then stays with it.
        held = next((m for m in group.members if holds_state(m) and m in self.placed), None)
        if held is None:
            return self._match(op, group)
        device = self.placed[held]
        if not self.soft and not agrees(group.asked, DeviceSpec.from_string(device)):
            raise errors.InvalidArgumentError(
                None,
                op,
                f"Cannot colocate nodes {op.name} and {held.name}: {held.name} is on {device} already, but its group "
                f"asks for '{group.asked}' now. Build the whole graph before the first run, or change the tf.device.",
            )
        return device

    def _match(self, op: Operation, group: ColocationGroup) -> str:
        return self._match_among(op, group, group.asked)

    def _match_among(self, op: Operation, group: ColocationGroup, wanted: DeviceSpec) -> str:
        fits = self._fitting(wanted)
        able = [n for n in fits if self._can_run(group, n)]
        if able:
            return self._prefer(wanted, able)
        if self.soft:
            # Soft placement gives up the number of the device first, then its type; never the job or the task.
            for kind in (wanted.device_type, "CPU"):
                relaxed = DeviceSpec(wanted.job, wanted.replica, wanted.task, kind)
                near = [n for n in self._fitting(relaxed) if self._can_run(group, n)]
                if near:
                    return self._prefer(relaxed, near)
        raise self._refusal(op, group, fits)

    def _fitting(self, wanted: DeviceSpec) -> list[str]:
        return [n for n, s in zip(self.names, self._specs, strict=True) if agrees(wanted, s)]

    def _prefer(self, wanted: DeviceSpec, able: list[str]) -> str:
        if wanted.device_type is None:
            return next((n for n in able if "/device:GPU" in n), able[0])
        return able[0]

    def _can_run(self, group: ColocationGroup, device: str) -> bool:
        """Whether a device can run the members that decide for a group: state, and explicit requests; else all of it."""
        if "/device:CPU" in device:
            return True
        deciding = [m for m in group.members if holds_state(m) or m._device]
        return all(_has_gpu_kernel(m) for m in deciding or group.members)

    def _available(self) -> list[str]:
        """The devices that an error lists."""
        return self.names

    def _refusal(self, op: Operation, group: ColocationGroup, fits: list[str]) -> errors.OpError:
        begun = f"Cannot assign a device for operation {op.name}: "
        available = ", ".join(self._available())
        if fits:
            unable = next((m for m in group.members if not _has_gpu_kernel(m)), op)
            text = (
                f"Could not satisfy explicit device specification '{group.asked}' because no supported kernel for "
                f"{group.asked} devices is available: op {unable.type} has kernels for CPU only with these types. "
                f"Available devices: [ {available} ]. Place it on /cpu:0"
            )
        elif len(group.members) > 1 and own_request(op) != group.asked:
            text = (
                f"Could not satisfy explicit device specification '{op._device}' because the node {op.name} was colocated "
                f"with a group of nodes that required incompatible device '{group.asked}'. All available devices "
                f"[{available}]. The group: {_listed(group)}. Change the tf.device around one of them"
            )
        else:
            text = (
                f"{op.name} was explicitly assigned to {op._device} but available devices are [ {available} ]. Make sure "
                "the device specification refers to a valid device. Change the tf.device around this op"
            )
        return errors.InvalidArgumentError(None, op, begun + text + self._advice(group.asked))

    def _advice(self, asked: DeviceSpec) -> str:
        """Advice besides another device. Soft placement does not change the job or the task."""
        if self.soft or not self._fitting(DeviceSpec(asked.job, asked.replica, asked.task)):
            return "."
        return ", or pass tf.ConfigProto(allow_soft_placement=True) to let it run on the CPU."


def place(plan: Plan, placer: Placer) -> Plan:
    """Fills `plan.devices`."""
    return placer.place(plan)


def _has_gpu_kernel(op: Operation) -> bool:
    if op.spec.host:
        return False
    if op.spec.variable:
        return op._attrs["dtype"].name in _GPU_TYPES or op._attrs["dtype"].name == "int64"
    return not any(t.dtype.base_dtype.name == "string" for t in (*op._inputs, *op._outputs))


def _listed(group: ColocationGroup) -> str:
    members = sorted(group.members, key=lambda m: m._id)
    shown = [f"{m.name} ({m.type}) {m._device}".rstrip() for m in members[:_MAX_LISTED_DEVICES]]
    more = len(group.members) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _is_source(op: Operation) -> bool:
    return not op._inputs and len(op._outputs) == 1 and not op._outputs[0].dtype._is_ref_dtype


def agrees(wanted: DeviceSpec, have: DeviceSpec) -> bool:
    """Whether a device matches a partly specified name."""
    pairs: list[tuple[Any, Any]] = list(zip(wanted.parts(), have.parts(), strict=True))
    return all(w is None or w == h for w, h in pairs)
