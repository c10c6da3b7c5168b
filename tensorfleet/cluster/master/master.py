"""The master of a session on a cluster: it plans each step over all tasks and drives its stages.

It lives where the session is. Stages of its own task (when the session was made beside that task's server) are
function calls; all others are one message there and one back, on a connection of their own. The thread that called
`run` does all of it: it sends what can start, runs its own share, and waits for the answers.
"""

from __future__ import annotations

import collections
import itertools
import os
import secrets
import threading
import time
import weakref
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.counters import StepTimer
from tensorfleet.cluster.master.cluster_program import ClusterProgram, StageProgram
from tensorfleet.cluster.master.distributed_while import (
    DividedLoop,
    carries_handle,
    handles_inside,
    is_handle,
    worth_keeping,
)
from tensorfleet.cluster.master.durable_session import DurableSession
from tensorfleet.cluster.master.graph_registration import Shipment, Sources, named
from tensorfleet.cluster.master.placer import ClusterPlacer, is_isolated, renamed, task_name
from tensorfleet.cluster.master.shared_memory_reads import SharedMemoryRead, is_plain, variable_names
from tensorfleet.cluster.master.slow_steps import SlowSteps
from tensorfleet.cluster.master.stage_contents import branches_in, changes_something, given_to, with_standing
from tensorfleet.cluster.master.step_driver import SETTLING_SECONDS, StepDriver
from tensorfleet.cluster.master.step_timing import MeasuredStep
from tensorfleet.cluster.membership.spec import ClusterSpec
from tensorfleet.cluster.messages import Close, Describe, Register
from tensorfleet.cluster.stage_spec import Route, StageSpec
from tensorfleet.cluster.transport.peers import Peer, on_ping, peer
from tensorfleet.cluster.transport.wire_dtype import is_full, wire_type
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.passes.partition import MASTER, Stage, elsewhere, ends, task_of
from tensorfleet.passes.pipeline import cut_into_stages, place_on_tasks
from tensorfleet.passes.plan import Plan
from tensorfleet.runtime.engine import CLOSED, LocalEngine, invalid_pool
from tensorfleet.runtime.engine_protocol import Engine
from tensorfleet.runtime.placement_log import PlacementLog
from tensorfleet.runtime.trace import Collector, StepObserver
from tensorfleet.state.accumulators import maximums

# How long an error that lists the devices of a cluster waits for a task that was not needed so far.
_DESCRIBE_SECONDS = 2.0
#: a stage for a task that has not heard of it: its names, its operations and those they look at, itself, its constants
_Registered = tuple[StageSpec, list[Operation], Stage, dict[Tensor, Any]]
_engines: weakref.WeakSet[ClusterEngine] = weakref.WeakSet()
on_ping.append(SlowSteps(_engines).look)


def cluster_engines() -> list[ClusterEngine]:
    """The engines of this process's sessions on clusters."""
    return list(_engines)


def steps_under_way() -> int:
    """How many steps on clusters the sessions of this process are in the middle of."""
    return sum(len(engine.running) for engine in list(_engines))


def _forked() -> None:
    for engine in _engines:
        engine.abandon_after_fork()


os.register_at_fork(after_in_child=_forked)


class ClusterEngine(Engine[ClusterProgram]):
    """Plans and runs a session's steps on a cluster. `own` is the engine's local task, if it has one."""

    def __init__(
        self,
        graph: Graph,
        config: Any,
        cluster: ClusterSpec,
        default: tuple[str, int],
        local: Any = None,
        dialled: str | None = None,
    ) -> None:
        """`dialled` is the address by which the default task was reached, which may not be the one it knows itself."""
        from tensorfleet.base.protos import ConfigProto

        self.graph = graph
        self.config = config if config is not None else ConfigProto()
        self.cluster = cluster
        self.handle = secrets.token_hex(8)
        self._timeout = max(self.config.operation_timeout_in_ms, 0)
        self.wire = wire_type(self.config)
        self.local = local
        self.own = task_name(*default) if local is not None else None
        self._home = task_name(*default)
        self._owner = self._home.replace("/replica:0", "")
        self._dialled = dialled
        self.local_engine: LocalEngine | None = None
        if local is not None:
            self.local_engine = LocalEngine(
                graph, local.session_config(config), self._resources(), self.own, self._owner
            )
        self._placements = PlacementLog(self.config)
        self._peers: dict[str, Peer] = {}
        self.shipments: dict[str, Shipment] = {}
        self._planning = threading.RLock()
        self.lock = threading.Lock()
        self.running: dict[int, StepDriver] = {}
        self.durable = DurableSession()
        self._steps = itertools.count(1)
        self._stages = itertools.count(1)
        self._closed: errors.OpError | None = None
        self.used = False  # a server knows of a session from its first step on
        self._edits = graph._edits
        _engines.add(self)
        filters = list(self.config.device_filters)
        soft = bool(self.config.allow_soft_placement)
        self._ask_until = self._deadline(0)
        self.placer = ClusterPlacer(cluster, default, self._devices_of, filters, soft)
        self._ask_until = None

    def abandon_after_fork(self) -> None:
        """Closes the session in a forked process; in the one that forked it, it goes on."""
        self.lock, self._planning = threading.Lock(), threading.RLock()
        self.running, self.shipments, self.durable = {}, {}, DurableSession()
        self._closed = errors.FailedPreconditionError(
            None,
            None,
            "This session was made in the process that forked this one, and is used there. Make a session of your own after "
            "the fork, or start processes with multiprocessing's 'spawn'.",
        )

    def _resources(self) -> Any:
        from tensorfleet.runtime.resources import ResourceManager

        return ResourceManager() if is_isolated(self.config) else self.local.resources

    def _deadline(self, timeout_ms: int) -> float | None:
        timeout = timeout_ms if timeout_ms > 0 else self._timeout
        return time.monotonic() + timeout / 1000 if timeout else None

    # -- planning -------------------------------------------------------------------------------------

    def peer_of(self, job: str, index: int) -> Peer:
        """The connections to a task."""
        task = task_name(job, index)
        connected = self._peers.get(task)
        if connected is None:
            dialled = self._dialled if task == self._home else None
            connected = self._peers[task] = peer(task, dialled or self.cluster.task_address(job, index))
        return connected

    def _devices_of(self, job: str, index: int, waits: bool) -> list[str]:
        if task_name(job, index) == self.own:
            assert self.local_engine is not None
            return self.local_engine.device_names()
        until = self._ask_until if waits else time.monotonic() + _DESCRIBE_SECONDS
        described = self.peer_of(job, index).call(Describe(), until, waits)
        return [renamed(d, task_name(job, index)) for d in described.devices]

    def program(
        self, fetches: Sequence[Tensor], targets: Sequence[Operation], feeds: Sequence[Tensor]
    ) -> ClusterProgram:
        """Plans one run, and tells every task its part of it."""
        if self._closed is not None:
            raise self._closed
        with self._planning:
            self.used = True
            self._ask_until = self._deadline(0)
            if self._edits != self.graph._edits:
                self._start_over()
            plan = Plan(self.graph, tuple(fetches), tuple(targets), tuple(feeds))
            return self._divided(plan, {})

    def _divided(
        self, plan: Plan, handles: dict[Tensor, Tensor], fixed: Collection[Tensor] = ()
    ) -> ClusterProgram:
        """The program of a plan, or of a part of a loop, which takes `handles` and `fixed` values from outside."""
        plan = place_on_tasks(plan, self.placer)
        self._placements.tell(plan, self.placer.placed)
        plan = cut_into_stages(plan)
        return self._build(plan, plan.stages, handles, fixed)

    def _loop_of(
        self, plan: Plan, loop: Any, slots: dict[Tensor, int], handles: dict[Tensor, Tensor]
    ) -> DividedLoop:
        carried = carries_handle(loop)
        if carried is not None:
            raise errors.UnimplementedError(
                None,
                loop.start,
                f"The loop '{loop.name}' works on several tasks and hands on '{carried.name}', which one of them keeps, from "
                "iteration to iteration. Use it in the loop without making it a loop variable.",
            )
        inside = handles_inside(loop, handles)
        fixed = {t for _, t in loop.fixed if worth_keeping(t)}
        cond, body = self._divided(loop.cond, inside, fixed), self._divided(loop.body, inside, fixed)
        return DividedLoop(loop, cond, body, slots, plan.guards.get(loop, frozenset()))

    def _start_over(self) -> None:
        """Operations that other tasks know of have been changed: tells them everything anew."""
        self._edits = self.graph._edits
        if self.shipments:
            self._forget_session()
            self.shipments.clear()
            self.durable.clear()
            self.handle = secrets.token_hex(8)

    def _build(
        self, plan: Plan, stages: list[Stage], handles: dict[Tensor, Tensor], fixed: Collection[Tensor]
    ) -> ClusterProgram:
        home = {t: stage for stage in stages for t in stage.outputs}
        slots: dict[Tensor, int] = {}
        for t in (*plan.feeds, *plan.fetches):
            slots.setdefault(t, len(slots))
        steps = [StageProgram(stage) for stage in stages]
        registrations: dict[str, list[_Registered]] = {}
        for i, step in enumerate(steps):
            stage = step.stage
            if stage.task == MASTER:
                step.program = self._loop_of(plan, stage.ops[0], slots, handles)
                step.outs = [slots.setdefault(t, len(slots)) for t in stage.ops[0]._outputs]
                after = stage.after
            elif stage.task == self.own:
                self._build_local(plan, step, slots)
                after = stage.after
            else:
                after = self._build_remote(plan, step, stages, home, slots, registrations, handles, fixed)
            step.waits = len(after)
            step.is_empty = bool(after) and not step.outs and all(op.type == "NoOp" for op in stage.ops)
            for j in after:
                steps[j].followers.append(i)
        totals = collections.Counter(step.stage.task for step in steps if not (step.posted or step.is_empty))
        for step in steps:
            step.total = totals[step.stage.task]
        for task, registered in registrations.items():
            self._register(task, registered)
        return ClusterProgram(plan, steps, slots)

    def _build_local(self, plan: Plan, step: StageProgram, slots: dict[Tensor, int]) -> None:
        assert self.local_engine is not None
        stage = step.stage
        default = self.local_engine.placer.names[0]
        placed = self.local_engine.placer.placed
        for op in plan.folded:
            placed[op] = default
        for op in stage.ops:
            placed[op] = plan.devices[op]
        known = {t: plan.constants[t] for t in given_to(plan, stage) if t in plan.constants}
        branches = branches_in(plan, stage) if plan.guards else None
        step.program = self.local_engine.program(
            stage.outputs,
            ends(stage),
            stage.inputs,
            elsewhere(stage.ops, {*stage.inputs, *known}),
            known,
            branches,
            (with_standing(plan, stage), self._seen_live(plan, stage)) if plan.nested else None,
        )
        step.ins = [slots.setdefault(t, len(slots)) for t in stage.inputs]
        step.outs = [slots.setdefault(t, len(slots)) for t in stage.outputs]

    def _build_remote(
        self,
        plan: Plan,
        step: StageProgram,
        stages: list[Stage],
        home: dict[Tensor, Stage],
        slots: dict[Tensor, int],
        registrations: dict[str, list[_Registered]],
        handles: dict[Tensor, Tensor],
        fixed: Collection[Tensor],
    ) -> list[int]:
        stage = step.stage
        step.number = next(self._stages)
        step.peer = self.peer_of(*task_parts(stage.task))
        sources = Sources(stage, home, self.own, handles)
        step.ins = [slots.setdefault(t, len(slots)) for t in sources.given]
        reply, keep, hold, push = self._routes(plan, stage, stages, home)
        step.pushes_to = [self.peer_of(*task_parts(task)) for task in push]
        step.repeatable = bool(step.peer.places) or not changes_something(stage)
        step.outs = [slots.setdefault(t, len(slots)) for t in reply]
        thin: list[str] = []
        if self.wire:
            own = set(plan.feeds) | set(plan.fetches)
            step.thin = {i: t.name for i, t in enumerate(sources.given) if is_full(t) and t not in own}
            step.full = [i for i, t in enumerate(reply) if is_full(t)]
            thin = [t.name for t in stage.outputs if is_full(t) and t not in own]
        known = [t for t in given_to(plan, stage) if t in plan.constants]
        if not plan.nested:
            known = [t for t in known if not self._has(stage, t)]
        ops = with_standing(plan, stage) if plan.nested else stage.ops
        step.fixed = frozenset(i for i, t in enumerate(sources.given) if t in fixed)
        step.holds = bool(hold or step.fixed)
        plain = is_plain(stage) and not (keep or hold or push or self.wire)
        step.posted = SharedMemoryRead(step.peer, step.number, variable_names(reply)) if plain else None
        live = self._seen_live(plan, stage)
        seen_live = [(op.name, i, variable.name) for (op, i), variable in live.items()]
        registered = StageSpec(
            id=step.number,
            plain=plain,
            ops=[op.name for op in ops],
            targets=[op.name for op in ends(stage)],
            given=[t.name for t in sources.given],
            fixed=sorted(step.fixed),
            kept=[t.name for t in sources.kept],
            awaited=[t.name for t in sources.awaited],
            reply=[t.name for t in reply],
            keep=keep,
            hold=hold,
            held=[(t.name, handles[t].name) for t in sources.held],
            push=[Route(task, self._address(task), names) for task, names in push.items()],
            known=[t.name for t in known],
            wire=self.wire,
            thin=thin,
            branches=named(branches_in(plan, stage)) if plan.guards else None,
            live=seen_live if plan.nested else None,
        )
        step.given, step.replied = registered.given, registered.reply
        values = {t: plan.constants[t] for t in known}
        registrations.setdefault(stage.task, []).append((registered, [*ops, *live.values()], stage, values))
        # What another task pushes here need not be over before this stage is asked for; all else must be.
        pushed = {j for j in stage.after for t in sources.awaited if home[t] is stages[j]}
        step.needs = sorted(pushed | {j for j in stage.after for t in sources.kept if home[t] is stages[j]})
        elsewhere_done = elsewhere(stage.ops, {*stage.inputs, *plan.constants})
        waited = {i for i, s in enumerate(stages) if not elsewhere_done.isdisjoint(s.ops)}
        return [j for j in stage.after if j not in pushed or j in waited]

    def _routes(
        self, plan: Plan, stage: Stage, stages: list[Stage], home: dict[Tensor, Stage]
    ) -> tuple[list[Tensor], list[str], list[str], dict[str, list[str]]]:
        """Where the results of a stage go: into the reply, kept there, held there for loops, pushed to other tasks."""
        users: dict[Tensor, set[str]] = {}
        for other in stages:
            if other is not stage:
                for t in other.inputs:
                    if home.get(t) is stage:
                        users.setdefault(t, set()).add(other.task)
        reply, keep, hold = [], [], []
        push: dict[str, list[str]] = {}
        for t in stage.outputs:
            tasks = users.get(t, set())
            if MASTER in tasks and is_handle(t):
                hold.append(t.name)
                tasks = tasks - {MASTER}
            if t in plan.fetches or not tasks.isdisjoint((self.own, MASTER)):
                reply.append(t)
            if stage.task in tasks:
                keep.append(t.name)
            for task in tasks - {stage.task, self.own, MASTER}:
                push.setdefault(task, []).append(t.name)
        return reply, keep, hold, push

    def _seen_live(self, plan: Plan, stage: Stage) -> dict[tuple[Operation, int], Operation]:
        """The inputs of a stage in a loop that share the memory of a variable of its task."""
        used_here = {key: variable for key, variable in plan.live.items() if key[0] in set(stage.ops)}
        return {
            (op, i): variable
            for (op, i), variable in used_here.items()
            if all(self._is_of(o, stage.task) for o in (variable, op._inputs[i]._op))
        }

    def _has(self, stage: Stage, tensor: Tensor) -> bool:
        """Whether a stage's task knows a constant by itself."""
        return tensor._op.type == "Const" and self._is_of(tensor._op, stage.task)

    def _is_of(self, op: Operation, task: str) -> bool:
        return task_of(self.placer.device_of(op)) == task

    def _address(self, task: str) -> str:
        job, index = task_parts(task)
        return self.cluster.task_address(job, index)

    def _register(self, task: str, registered: list[_Registered]) -> None:
        shipment = self.shipments.get(task)
        create = shipment is None
        if shipment is None:
            shipment = self.shipments[task] = Shipment(self.graph, task, self.placer)
        known: dict[Tensor, Any] = {}
        ops: list[Operation] = []
        for _, used, stage, values in registered:
            known.update(values)
            ops += used
            ops += [t._op for t in (*stage.inputs, *values)]
        nodes = shipment.nodes(ops)
        job, index = task_parts(task)
        config = self.config.SerializeToString() if create else b""
        protos = [np.frombuffer(nodes.SerializeToString(), np.uint8), np.frombuffer(config, np.uint8)]
        message = Register(
            self.handle, [t.name for t in known], [spec for spec, *_ in registered], create, task, self._owner
        )
        at, tensors = self.peer_of(job, index), [*protos, *known.values()]
        if at.places:
            self.durable.of(at).add(message, tensors, self._ask_until, create)
        else:
            at.call(message, self._ask_until, create, tensors)

    # -- running --------------------------------------------------------------------------------------

    def run(
        self,
        program: ClusterProgram,
        feeds: Sequence[Any],
        timeout_ms: int = 0,
        collector: StepObserver | None = None,
        pool: int = 0,
    ) -> list[Any]:
        """Runs one step. Its tasks have thread pools of their own; a session cannot choose among them."""
        if pool not in (-1, 0):
            raise invalid_pool(pool, 1)
        number = next(self._steps) if program.durable is None else self.durable.begin(self._steps)
        return self._go(StepDriver(self, program, number, self._deadline(timeout_ms), collector), feeds)

    def run_measured(
        self,
        program: ClusterProgram,
        feeds: Sequence[Any],
        timer: StepTimer,
        timeout_ms: int = 0,
        collector: StepObserver | None = None,
        pool: int = 0,
    ) -> list[Any]:
        """The same for a step whose parts are measured."""
        if pool not in (-1, 0):
            raise invalid_pool(pool, 1)
        deadline = self._deadline(timeout_ms)
        number = next(self._steps) if program.durable is None else self.durable.begin(self._steps)
        return self._go(MeasuredStep(self, program, number, deadline, collector, timer), feeds)

    def repeat(self, program: ClusterProgram) -> None:
        """Runs a step. One that waits, all in another task, goes on there for a while: it need not be asked each time."""
        deadline = self._deadline(0)
        # A durable task remembers what came of each step, so there each time has to be a step.
        again = program.elsewhere and deadline is None and program.durable is None
        number = next(self._steps) if program.durable is None else self.durable.begin(self._steps)
        self._go(StepDriver(self, program, number, deadline, None, again=again), ())

    def _go(self, run: StepDriver, feeds: Sequence[Any]) -> list[Any]:
        try:
            with self.lock:
                if self._closed is not None:
                    raise self._closed
                self.running[run.number] = run
            return run.go(feeds)
        finally:
            self.running.pop(run.number, None)  # at once, for every thread: `close` copies the table
            if run.recovery is not None:
                self.durable.end(run.number)

    def close(
        self, reason: errors.OpError, finished: bool = False, later: errors.OpError | None = None
    ) -> None:
        """Ends the steps that are running and forgets the session everywhere; `later` is what a new step gets.

        `finished` tells the tasks that the session has done its work.
        """
        with self.lock:
            if self._closed is not None:
                return
            self._closed = reason if later is None else later
            running = list(self.running.values())
        for run in running:
            run.cancel(reason)
        limit = time.monotonic() + SETTLING_SECONDS
        for run in running:
            run.end(limit)
        if self.local_engine is not None:
            self.local_engine.close(reason, finished)
        self._forget_session(finished)

    def lose(self) -> None:
        """The server behind the target forgets this session: what runs ends, what comes later is refused."""
        if not self.used:
            return
        text = f"Session {self.handle} is not found. Its server was reset: make a new session."
        self.close(errors.CancelledError(None, None, CLOSED), later=errors.AbortedError(None, None, text))

    def _forget_session(self, finished: bool = False) -> None:
        for task in self.shipments:
            job, index = task_parts(task)
            try:
                self.peer_of(job, index).call(Close(self.handle, finished), time.monotonic() + 1.0)
            except errors.OpError:
                continue  # it is gone, and the session with it

    def device_names(self) -> list[str]:
        """The devices of every task that the session may use."""
        for job, index in self.placer.tasks():
            self.placer.ask(job, index)
        return self.placer.names

    def dropped(self) -> dict[str, int]:
        """How many steps' gradients were dropped as stale in the tasks of this session, by who computed them."""
        counts = [self.local_engine.dropped()] if self.local_engine is not None else []
        for task in list(self.shipments):
            counts.append(self.peer_of(*task_parts(task)).call(Describe(), self._deadline(0)).dropped)
        return maximums(counts)

    def collector(self) -> Collector:
        """Something that records what a step does and when."""
        return Collector(f"{self._home}/device:CPU:0", self.placer.device_of, tasks=True)


def task_parts(task: str) -> tuple[str, int]:
    """Job and number of "/job:ps/replica:0/task:1"."""
    parts = dict(p.split(":") for p in task.split("/")[1:])
    return parts["job"], int(parts["task"])
