"""Devices of a whole cluster: which task an operation belongs to, asked of tasks only when a graph names them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tensorfleet.base import errors
from tensorfleet.base.devices import DeviceSpec
from tensorfleet.cluster.membership.spec import ClusterSpec
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import GraphKeys
from tensorfleet.passes.colocate import ColocationGroup
from tensorfleet.passes.control_flow import frames_of, is_variable, loop_name
from tensorfleet.passes.partition import task_of
from tensorfleet.passes.place import Placer
from tensorfleet.passes.plan import Plan, maker_of, variable_of

if TYPE_CHECKING:
    from tensorfleet.base.protos import ConfigProto


def task_name(job: str, index: int) -> str:
    """The full name of a task."""
    return f"/job:{job}/replica:0/task:{index}"


def renamed(device: str, task: str) -> str:
    """A task's device as a session calls it, in whose cluster the task may have a name of its own."""
    return f"{task}/device:{device.rpartition('/device:')[2]}"


def is_isolated(config: ConfigProto) -> bool:
    """Whether a session has state of its own: it says so, or it brought its own cluster and does not ask to share."""
    brought = bool(config.cluster_def.job)
    shares = config.experimental.share_session_state_in_clusterspec_propagation
    return bool(config.isolate_session_state) or (brought and not shares)


class ClusterPlacer(Placer):
    """Places operations over tasks. `devices_of(job, index, waits)` asks a task for its devices, and may wait for it."""

    def __init__(
        self,
        cluster: ClusterSpec,
        default: tuple[str, int],
        devices_of: Callable[[str, int, bool], list[str]],
        filters: Sequence[str],
        soft: bool,
    ) -> None:
        super().__init__([], soft)
        self._cluster = cluster
        self._default = default
        self._devices_of = devices_of
        self._filters = [DeviceSpec.from_string(f) for f in filters]
        self._asked: set[tuple[str, int]] = set()
        self._gathered: dict[Operation, str] = {}
        self.ask(*default)

    def visible(self, job: str, index: int) -> bool:
        """Whether the session's device filters let it use a task. Its own it always can."""
        if not self._filters or (job, index) == self._default:
            return True
        return any(f.job in (None, job) and f.task in (None, index) for f in self._filters)

    def tasks(self) -> list[tuple[str, int]]:
        """Every task the session may use."""
        every = [(job, i) for job in sorted(self._cluster.jobs) for i in self._cluster.task_indices(job)]
        return [t for t in every if self.visible(*t)]

    def ask(self, job: str, index: int) -> None:
        """Learns the devices of a task."""
        if (job, index) not in self._asked:
            self.add(self._devices_of(job, index, True))
            self._asked.add((job, index))

    def _available(self) -> list[str]:
        """All the cluster's devices. Of a task that does not answer at once, the CPU, which every task has."""
        devices = list(self.names)
        for job, index in self.tasks():
            if (job, index) in self._asked:
                continue
            try:
                devices += self._devices_of(job, index, False)
            except errors.OpError:
                devices.append(f"{task_name(job, index)}/device:CPU:0")
        return sorted(devices)

    def gather(self, plan: Plan, groups: list[list[Operation]]) -> list[list[Operation]]:
        """Brings the operations of every group (a branch, a loop) to one task: that of the state they change.

        Returns the groups that are on one task now. Those that change or read state of several stay where they are.
        """
        apart: set[Operation] = set()
        planned = set(plan.ops)
        for group in _sharing(plan, groups):
            tasks = [task_of(plan.devices[op]) for op in group]
            held = {task for op, task in zip(group, tasks, strict=True) if _is_bound(op, planned)}
            if any(op.type in _ENTERS for op in group):
                held |= {task_of(self.device_of(v)) for op in group for v in _variables(op)}
            # State does not move: a group stays on the task where an earlier plan has put it.
            held |= {self._gathered[op] for op in group if op in self._gathered}
            if len(held) > 1:
                apart.update(group)
                continue
            task = held.pop() if held else max(sorted(set(tasks)), key=tasks.count)
            for op in group:
                self._gathered[op] = task
                self._move(plan, op, task)
        if apart:
            self._leave(plan, apart)
        return [group for group in groups if apart.isdisjoint(group) or self._is_one_loop(plan, group)]

    def _leave(self, plan: Plan, apart: set[Operation]) -> None:
        """Remembers where operations of groups on several tasks are. Those that read a variable go to it."""
        depths = {op: len(frame) for op, frame in frames_of(plan.ops).items()}
        for op in plan.ops:
            if op not in apart:
                continue
            if depths[op]:
                variables = _variables(op)
                tasks = {task_of(self.device_of(v)) for v in variables}
                if len(tasks) > 1:
                    names = " and ".join(sorted(v.name for v in variables))
                    raise errors.UnimplementedError(
                        None,
                        op,
                        f"'{op.name}' in a loop takes the variables {names} themselves, which are on different tasks. "
                        "Read them with read_value() in the loop.",
                    )
                if tasks:
                    self._move(plan, op, tasks.pop())
            if depths[op] < 2:  # a loop in a loop may still come together
                self._gathered[op] = task_of(plan.devices[op])

    def _move(self, plan: Plan, op: Operation, task: str) -> None:
        if task_of(plan.devices[op]) != task:
            plan.devices[op] = self.placed[op] = next(n for n in self.names if task_of(n) == task)

    def _is_one_loop(self, plan: Plan, group: list[Operation]) -> bool:
        """Whether a group is a loop on one task, though what it shares an array with is not."""
        return loop_name(group) is not None and len({task_of(plan.devices[op]) for op in group}) == 1

    def _asks(self, op: Operation) -> bool:
        return super()._asks(op) or (_is_common(op) and len(self.tasks()) > 1)

    def _match(self, op: Operation, group: ColocationGroup) -> str:
        wanted = group.asked
        job, index = (self._first if any(map(_is_common, group.members)) else self._home)(wanted)
        if (job, index) not in self._asked and (job, index) in self.tasks():
            self.ask(job, index)
        return self._match_among(op, group, wanted.replace(job=job, task=index))

    def _check(self, op: Operation, requested: DeviceSpec) -> None:
        job, index = self._home(requested)
        if (job, index) in self._asked or (job, index) not in self.tasks():
            if "/device:CPU" in self._match_among(
                op, self._groups.of(op), requested.replace(job=job, task=index)
            ):
                self._sound.add(requested)
        elif requested.device_type in (None, "CPU"):
            self._sound.add(requested)  # every task has one

    def _first(self, wanted: DeviceSpec) -> tuple[str, int]:
        """The first task, by its name, that fits: the same one whichever task's session asks."""
        kind = wanted.device_type
        if kind not in (None, "CPU") and (not self.soft or any(s.device_type == kind for s in self._specs)):
            return self._home(wanted)
        fits = (t for t in self.tasks() if wanted.job in (None, t[0]) and wanted.task in (None, t[1]))
        return next(fits, self._home(wanted))

    def _home(self, wanted: DeviceSpec) -> tuple[str, int]:
        """The task an operation goes to: what it names, and for the rest this session's own."""
        own_job, own_index = self._default
        job = own_job if wanted.job is None else wanted.job
        if wanted.task is not None:
            return job, wanted.task
        if job == own_job:
            return job, own_index
        indices = self._cluster.task_indices(job) if job in self._cluster.jobs else []
        return job, next((i for i in indices if self.visible(job, i)), 0)


# What lives for one step only, and goes where the loop that fills it goes.
_OF_A_STEP = ("StackV2", "TensorArrayV3", "TensorArrayGradV3")
_SEEN = ("PyFunc", "EagerPyFunc", "Print", "Stage", "Unstage", "MapStage", "MapUnstage", "OrderedMap")
_ENTERS = ("Enter", "RefEnter")
_VARIABLES = ("VariableV2", "Variable", "VarHandleOp")
_SHARED = ("Queue", "QueueV2", "Barrier", "Accumulator")


def _is_common(op: Operation) -> bool:
    """Whether an operation holds what the sessions of several tasks mean by the same name.

    That is a variable, but for local ones, and what has a name to be shared by. TensorFlow has all that asks for no
    task on the first; what only computes is quicker beside the session, and its Python functions are only there.
    """
    if op.type in _VARIABLES:
        return all(
            getattr(v, "op", None) is not op for v in op.graph.get_collection(GraphKeys.LOCAL_VARIABLES)
        )
    return bool(op._attrs.get("shared_name")) and op.type.endswith(_SHARED)


def _handles(op: Operation) -> list[Tensor]:
    return [t for t in (*op._inputs, *op._outputs) if t.dtype.name == "resource"]


def _is_bound(op: Operation, planned: set[Operation]) -> bool:
    """Whether an operation can run on its own task only: it has state there, or does something that is seen there."""
    if op.spec.updates or op.type.startswith(_SEEN) or any(t.dtype._is_ref_dtype for t in op._outputs):
        return True
    makers = [maker_of(t) for t in _handles(op)]
    return any(m.type not in _OF_A_STEP or m not in planned for m in makers)


def _variables(op: Operation) -> set[Operation]:
    """The variables from outside that an operation in a loop is given as such."""
    entered = [t for t in op._inputs if t._op.type in _ENTERS and is_variable(t)]
    return {v for t in entered for v in (variable_of(t),) if v is not None}


def _sharing(plan: Plan, groups: list[list[Operation]]) -> list[list[Operation]]:
    """The groups, joined where they use the same stack or array, with all else that uses it."""
    users: dict[Operation, list[Operation]] = {}
    for op in plan.ops:
        for maker in {maker_of(t) for t in _handles(op)}:
            if maker.type in _OF_A_STEP:
                # The gradient's array belongs with the array it is the gradient of.
                root = maker_of(maker._inputs[0]) if maker.type == "TensorArrayGradV3" else maker
                users.setdefault(root, []).append(op)
    whole: list[set[Operation]] = []
    for more in (*map(set, groups), *map(set, users.values())):
        apart = [w for w in whole if w.isdisjoint(more)]
        whole = [*apart, more.union(*(w for w in whole if not w.isdisjoint(more)))]
    return [sorted(w, key=lambda op: op._id) for w in whole]
