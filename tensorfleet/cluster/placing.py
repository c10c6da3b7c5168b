"""Devices of a whole cluster: which task an operation belongs to, asked of tasks only when a graph names them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tensorfleet import errors
from tensorfleet.cluster.spec import ClusterSpec
from tensorfleet.devices import DeviceSpec
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.passes.partition import task_of
from tensorfleet.passes.place import Placer
from tensorfleet.passes.plan import Plan


def task_name(job: str, index: int) -> str:
    """The full name of a task."""
    return f"/job:{job}/replica:0/task:{index}"


class ClusterPlacer(Placer):
    """Places operations over tasks. `devices_of(job, index)` asks a task for its devices."""

    def __init__(
        self,
        cluster: ClusterSpec,
        default: tuple[str, int],
        devices_of: Callable[[str, int], list[str]],
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
        found = [(job, i) for job in sorted(self._cluster.jobs) for i in self._cluster.task_indices(job)]
        return [t for t in found if self.visible(*t)]

    def ask(self, job: str, index: int) -> None:
        """Learns the devices of a task."""
        if (job, index) not in self._asked:
            self.add(self._devices_of(job, index))
            self._asked.add((job, index))

    def gather(self, plan: Plan, groups: list[list[Operation]]) -> list[list[Operation]]:
        """Brings the operations of every group (a branch, a loop) to one task: that of the state they change.

        Returns the groups that are on one task now. Branches that change state on several stay where they are.
        """
        apart: set[Operation] = set()
        for group in _sharing(plan, groups):
            tasks = [task_of(plan.devices[op]) for op in group]
            held = {
                t for op, t in zip(group, tasks, strict=True) if op.spec.updates or _uses_lasting_resource(op)
            }
            held |= {self._gathered[op] for op in group if op in self._gathered}
            if len(held) > 1:
                entered = next((op for op in group if op.type in ("Enter", "RefEnter")), None)
                if entered is not None:
                    raise errors.UnimplementedError(
                        None,
                        entered,
                        f"The loop around '{entered.name}' changes state on several tasks ({', '.join(sorted(held))}). "
                        "Change each outside of it, or place all of it on one task.",
                    )
                self._gathered.update(zip(group, tasks, strict=True))
                apart.update(group)
                continue
            task = held.pop() if held else max(sorted(set(tasks)), key=tasks.count)
            for op in group:
                self._gathered[op] = task
                if task_of(plan.devices[op]) != task:
                    plan.devices[op] = self.placed[op] = next(n for n in self.names if task_of(n) == task)
        return [group for group in groups if apart.isdisjoint(group)]

    def _match(self, op: Operation) -> str:
        wanted = DeviceSpec.from_string(op._device)
        job, index = self._home(wanted)
        if (job, index) not in self._asked and (job, index) in self.tasks():
            self.ask(job, index)
        return self._match_among(op, wanted.replace(job=job, task=index))

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
_PASSING = ("Enter", "Switch", "Identity", "Merge", "Exit")


def _maker(tensor: Tensor) -> Operation:
    """The operation that a handle comes from."""
    op = tensor._op
    while op.type in _PASSING and op._inputs:
        op = op._inputs[0]._op
    return op


def _handles(op: Operation) -> list[Tensor]:
    return [t for t in (*op._inputs, *op._outputs) if t.dtype.name == "resource"]


def _uses_lasting_resource(op: Operation) -> bool:
    return any(_maker(t).type not in _OF_A_STEP for t in _handles(op))


def _sharing(plan: Plan, groups: list[list[Operation]]) -> list[list[Operation]]:
    """The groups, joined where they use the same stack or array, with all else that uses it."""
    users: dict[Operation, list[Operation]] = {}
    for op in plan.ops:
        for maker in {_maker(t) for t in _handles(op)}:
            if maker.type in _OF_A_STEP:
                # The gradient's array belongs with the array it is the gradient of.
                root = _maker(maker._inputs[0]) if maker.type == "TensorArrayGradV3" else maker
                users.setdefault(root, []).append(op)
    whole: list[set[Operation]] = []
    for more in (*map(set, groups), *map(set, users.values())):
        apart = [w for w in whole if w.isdisjoint(more)]
        whole = [*apart, more.union(*(w for w in whole if not w.isdisjoint(more)))]
    return [sorted(w, key=lambda op: op._id) for w in whole]
