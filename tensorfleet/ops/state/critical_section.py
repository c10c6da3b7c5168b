"""`tf.CriticalSection`: parts of steps of which only one runs at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tensorfleet.base import nest
from tensorfleet.base.naming import export
from tensorfleet.base.properties import readonly
from tensorfleet.graph.apply import apply, apply_op
from tensorfleet.graph.kernel_types import HostContext, Step
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.graph.scopes import (
    add_to_collection,
    control_dependencies,
    get_collection,
    get_default_graph,
    name_scope,
)
from tensorfleet.ops.array.basic import group, identity
from tensorfleet.ops.common import SCALAR
from tensorfleet.ops.state.queue_ops import complete, shared
from tensorfleet.ops.state.tensor_array import TensorArray
from tensorfleet.state.queues import PutAttempt, Queue, TakeAttempt


class Mutex(Queue):
    """A lock: a queue of one element. To hold the lock is to have taken the element."""

    kind = "Mutex"

    def __init__(self, name: str) -> None:
        super().__init__(name, 1, [], [])
        self.push(self.element([]))

    def fullness(self) -> str:
        """Whether it is held, in words."""
        return "free" if self.size() else "another step holds it"


class HeldMutex:
    """A lock that a step holds until it releases it, fails, or drops this object."""

    def __init__(self, mutex: Mutex, step: Step) -> None:
        self._mutex, self._step = mutex, step
        self._released = False
        step.hold(self)

    def set(self) -> None:
        """Releases the lock; a second call does nothing."""
        if not self._released:
            self._released = True
            self._mutex.submit(PutAttempt([self._mutex.element([])]))

    def release(self) -> None:
        """Releases the lock before the step ends."""
        self._step.release(self)
        self.set()

    # A lock that nobody holds on to any more is released, or other steps would wait for ever.
    __del__ = set


_WAITS: dict[str, Any] = {"host": True, "stateful": True}


@op(
    "MutexV2",
    "-> resource: resource",
    "container: string = ''; shared_name: string = ''",
    shape=lambda op: SCALAR,
    **_WAITS,
)
def _mutex(ctx: HostContext, *, container: bytes, shared_name: bytes) -> Mutex:
    return shared(ctx, "mutex", container, shared_name, Mutex)


@op("MutexLock", "mutex: resource -> mutex_lock: variant", shape=lambda op: SCALAR, blocks=True, **_WAITS)
def _lock(ctx: HostContext, mutex: Mutex) -> HeldMutex:
    complete(ctx, mutex, TakeAttempt(1), f"for critical section '{mutex.name}'")
    return HeldMutex(mutex, ctx.step)


@op("ConsumeMutexLock", "mutex_lock: variant ->", **_WAITS)
def _unlock(ctx: HostContext, held: HeldMutex) -> None:
    held.release()


not_differentiable("MutexV2", "MutexLock", "ConsumeMutexLock")

_SECTIONS, _EXECUTIONS = "critical_sections", "critical_section_executions"


@dataclass(frozen=True)
class _Execution:
    """One function that runs in a critical section: its lock, and the resources it uses."""

    op: Operation
    handle: Tensor
    resources: frozenset[Tensor]
    exclusive_resource_access: bool


@export("CriticalSection")
class CriticalSection:
    """Runs functions one at a time, also those of other steps and of sections with the same `shared_name`."""

    def __init__(
        self,
        name: str | None = None,
        shared_name: str | None = None,
        critical_section_def: object = None,
        import_scope: str | None = None,
    ) -> None:
        if critical_section_def is not None:
            if name is not None or shared_name is not None:
                raise ValueError(
                    "Arguments critical_section_def and name or shared_name are mutually exclusive"
                )
            raise ValueError("Argument critical_section_def is not supported")
        with name_scope(name, "CriticalSection", []) as scope:
            self._name = scope.rstrip("/").rpartition("/")[2]
            self._shared_name = shared_name or scope.rstrip("/")
            self._handle = apply("MutexV2", shared_name=self._shared_name, name=scope)
        add_to_collection(_SECTIONS, self)

    name = readonly("_name", "The name.")

    def execute(
        self, fn: Callable[[], Any], exclusive_resource_access: bool = True, name: str | None = None
    ) -> Any:
        """The result of `fn()`, whose operations run while no others of this section do.

        With `exclusive_resource_access` no other section may use the resources that these operations use.
        """
        graph = get_default_graph()
        with name_scope(name, "critical_section_execute", []):
            lock = apply("MutexLock", self._handle, name="MutexLock")
            first = len(graph.get_operations())
            with control_dependencies([lock]):
                result = fn()
            ops = graph.get_operations()[first:]
            self._check_nothing_recursive(ops)
            self._wait_for_captured(lock._op, ops)
            resources = frozenset(
                t for o in ops for t in o._inputs if t.dtype.name == "resource" and t._op not in ops
            )
            self._check_resources(resources, exclusive_resource_access)
            flat = [_passed(x) for x in nest.flatten(result)] if result is not None else []
            with control_dependencies(flat):
                over = apply_op("ConsumeMutexLock", lock, name="ConsumeMutexLock")
            with control_dependencies([over]):
                flat = [_passed(x) for x in flat]
        execution = _Execution(lock._op, self._handle, resources, exclusive_resource_access)
        add_to_collection(_EXECUTIONS, execution)
        return nest.pack_sequence_as(result, flat) if result is not None else over

    def _check_nothing_recursive(self, ops: list[Operation]) -> None:
        for o in ops:
            if o.type == "MutexLock" and _shared_name(o._inputs[0]) == self._shared_name.encode():
                raise ValueError(
                    f"Operation {o.name} attempts to directly access the CriticalSection in which it would be running: "
                    f"{self._name}. This is illegal and would cause deadlocks."
                )

    def _wait_for_captured(self, lock: Operation, inner_ops: list[Operation]) -> None:
        """Takes the lock after the function's inputs are computed: these may have to take the same lock."""
        inside = {lock, *inner_ops}
        context = lock._get_control_flow_context()
        needed = {t._op for o in inner_ops for t in o._inputs} | {
            c for o in inner_ops for c in o._control_inputs
        }
        lock._add_control_inputs(
            [o for o in needed if o not in inside and o._get_control_flow_context() is context]
        )

    def _check_resources(self, resources: frozenset[Tensor], exclusive: bool) -> None:
        for other in get_collection(_EXECUTIONS):
            if other.handle is self._handle or resources.isdisjoint(other.resources):
                continue
            if exclusive or other.exclusive_resource_access:
                names = ", ".join(t.name for t in resources & other.resources)
                raise ValueError(
                    f"This execution of critical section {self._name} uses resources ({names}) that another section, "
                    f"{other.handle.name}, uses as well, and one of the two requested exclusive resource access."
                )


def _shared_name(handle: Tensor) -> bytes | None:
    return handle._op._attrs.get("shared_name")


def _passed(value: Any) -> Any:
    if isinstance(value, Operation):
        return group(value)
    return value.identity() if isinstance(value, TensorArray) else identity(value)
