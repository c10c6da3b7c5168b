"""Give every operation a device: where it ran before, else where it asks to be, else the default."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tensorfleet import errors
from tensorfleet.devices import DeviceSpec
from tensorfleet.graph.operation import Operation
from tensorfleet.passes.plan import Plan, variable_of

# Numeric types a GPU has kernels for; integers and strings stay with the host, as in TensorFlow.
_GPU_TYPES = {"float16", "float32", "float64", "bfloat16", "complex64", "complex128", "bool"}

# What asks for no device in TensorFlow, whatever is around it: it is built where its handle is.
_AT_THEIR_HANDLE = ("Iterator", "LookupTable")


class Placer:
    """Knows the devices of a session and remembers where each operation went."""

    def __init__(self, devices: Sequence[str], soft: bool = False) -> None:
        self.names: list[str] = []
        self._specs: list[DeviceSpec] = []
        self.soft = soft
        self.placed: dict[Operation, str] = {}
        self._sound: set[str] = set()  # what operations ask for that can be had by all
        self.add(devices)

    def add(self, devices: Sequence[str]) -> None:
        """Makes more devices known."""
        self.names += devices
        self._specs += [DeviceSpec.from_string(d) for d in devices]

    def place(self, plan: Plan) -> Plan:
        """Fills `plan.devices`."""
        if len(self.names) == 1 and not any(map(self._asks, (*plan.ops, *plan.folded))):
            only = self.names[0]
            plan.devices = dict.fromkeys(plan.ops, only)
            self.placed.update((op, only) for op in plan.ops if op not in plan.loops)
            self.placed.update(dict.fromkeys(plan.folded, only))
            return plan
        for op in plan.folded:
            self.device_of(op)
        plan.devices = {op: self.device_of(op) for op in plan.ops}
        return plan

    def device_of(self, op: Operation) -> str:
        """Where an operation runs, decided when first asked."""
        op = getattr(op, "start", op)  # a loop is where its first node is
        device = self.placed.get(op)
        if device is None:
            device = self.placed[op] = self._choose(op)
        return device

    def check(self, ops: Iterable[Operation]) -> None:
        """Refuses operations that ask for a device there is not, whether they are to run or not."""
        sound = self._sound
        asking = [op for op in ops if op._device and op._device not in sound and self._leader(op) is None]
        for op in sorted(asking, key=_is_source):  # of a constant and its user, the user is what was written
            if op._device not in sound:
                self._check(op, DeviceSpec.from_string(op._device))

    def _check(self, op: Operation, wanted: DeviceSpec) -> None:
        if "/device:CPU" in self._match_among(op, wanted):
            self._sound.add(op._device)

    def reason(self, op: Operation, device: str) -> str:
        """Why an operation is where it is, in a few words."""
        leader = self._leader(op)
        if leader is not None and leader is not op:
            return f"stays with {leader.name}"
        if not asked_by(op):
            return "default"
        wanted = DeviceSpec.from_string(asked_by(op))
        if agrees(wanted, DeviceSpec.from_string(device)):
            return f"tf.device({op._device!r})" if op._device else "where it is used first"
        return f"soft placement: {op._device!r} cannot run it"

    def _asks(self, op: Operation) -> bool:
        """Whether it can matter to an operation which device it gets."""
        return bool(asked_by(op))

    def _choose(self, op: Operation) -> str:
        # A reference edge and a colocation group keep operations with the one they follow.
        leader = self._leader(op)
        if leader is not None and leader is not op:
            return self.device_of(leader)
        return self._match(op)

    def _leader(self, op: Operation) -> Operation | None:
        for t in op._inputs:
            if t.dtype._is_ref_dtype and op.spec.inputs and any(a.is_ref for a in op.spec.inputs):
                return variable_of(t) or t._op
            if t.dtype.name == "resource":
                return variable_of(t) or t._op
        for group in op._attrs.get("_class", ()):
            if group.startswith(b"loc:@"):
                leader = op.graph._by_name.get(group[5:].decode())
                if leader is not None and leader is not op:
                    return leader
        return None

    def _match(self, op: Operation) -> str:
        return self._match_among(op, DeviceSpec.from_string(asked_by(op)))

    def _match_among(self, op: Operation, wanted: DeviceSpec) -> str:
        fits = [n for n, s in zip(self.names, self._specs, strict=True) if agrees(wanted, s)]
        able = [n for n in fits if self._has_kernel(op, n)]
        if able:
            return self._prefer(op, wanted, able)
        if self.soft:
            relaxed = DeviceSpec(wanted.job, wanted.replica, wanted.task, "CPU")
            near = [n for n, s in zip(self.names, self._specs, strict=True) if agrees(relaxed, s)]
            if near:
                return near[0]
        raise self._refusal(op, fits)

    def _prefer(self, op: Operation, wanted: DeviceSpec, able: list[str]) -> str:
        if wanted.device_type is None:
            return next((n for n in able if "/device:GPU" in n), able[0])
        return able[0]

    def _has_kernel(self, op: Operation, device: str) -> bool:
        if "/device:CPU" in device:
            return True
        if op.spec.host:
            return False
        types = [t.dtype.base_dtype for t in (*op._inputs, *op._outputs)]
        if op.spec.variable:
            types = [op._attrs["dtype"]]
            return types[0].name in _GPU_TYPES or types[0].name == "int64"
        return not any(t.name == "string" for t in types)

    def _refusal(self, op: Operation, fits: list[str]) -> errors.OpError:
        available = ", ".join(self.names)
        if fits:
            text = (
                f"Cannot assign a device for operation {op.name}: Could not satisfy explicit device specification "
                f"'{op._device}' because no supported kernel for {op._device} devices is available: op {op.type} "
                f"has kernels for CPU only with these types. Available devices: [ {available} ]. Place it on "
                "/cpu:0, or pass tf.ConfigProto(allow_soft_placement=True)."
            )
        else:
            text = (
                f"Cannot assign a device for operation {op.name}: {op.name} was explicitly assigned to "
                f"{op._device} but available devices are [ {available} ]. Make sure the device specification "
                "refers to a valid device. Change the tf.device around this op, or pass "
                "tf.ConfigProto(allow_soft_placement=True) to let it run on the CPU."
            )
        return errors.InvalidArgumentError(None, op, text)


def asked_by(op: Operation) -> str:
    """The device that an operation asks for. What makes a queue and asks for none goes where its first user asks to be."""
    if op._device or not op._outputs or op._outputs[0].dtype.name != "resource":
        return op._device
    users = (user for t in op._outputs for user in t._consumers if not user.type.startswith(_AT_THEIR_HANDLE))
    return next((user._device for user in users if user._device), "")


def _is_source(op: Operation) -> bool:
    return not op._inputs and len(op._outputs) == 1 and not op._outputs[0].dtype._is_ref_dtype


def agrees(wanted: DeviceSpec, have: DeviceSpec) -> bool:
    """Whether a device is one of those that a partly specified name allows."""
    pairs: list[tuple[Any, Any]] = list(zip(wanted.parts(), have.parts(), strict=True))
    return all(w is None or w == h for w, h in pairs)
