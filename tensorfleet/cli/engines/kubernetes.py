"""Tasks as Jobs of a Kubernetes cluster.

A run is a headless Service, a Secret and a Job for each task. A place is held by a *seat*: the task's pod, asleep. So all
tasks have room, and their image is there, before the first of them starts.
"""

from __future__ import annotations

import datetime
import functools
import getpass
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from tensorfleet.cli.engines import kubernetes_manifests as manifests
from tensorfleet.cli.engines.base import (
    EngineError,
    EngineNode,
    RunEngine,
    RunListener,
    RunningTask,
    RunOptions,
    TaskResources,
    Wanted,
)
from tensorfleet.cli.engines.kubernetes_api import Api, ApiError, Unreachable, connect, explained
from tensorfleet.cli.engines.kubernetes_arguments import Json
from tensorfleet.cli.engines.kubernetes_doctor import check
from tensorfleet.cli.engines.kubernetes_fleet import Fleet, PodAttempt
from tensorfleet.cli.engines.kubernetes_names import address_of, attempt_name, task_name
from tensorfleet.cli.engines.kubernetes_objects import ClusterObjects, deletion
from tensorfleet.cli.engines.kubernetes_pod import Decision, Ended, Placed, PodFollower
from tensorfleet.cli.engines.kubernetes_run import Preparation
from tensorfleet.cli.engines.kubernetes_swaps import Swaps
from tensorfleet.cli.plan import SERVER_JOBS, TOKEN, Place, Task

__all__ = ["KubernetesEngine", "check"]

_CANNOT_START = 127
_REQUESTS_AT_ONCE = 8
_NO_VERDICT_SECONDS = 30.0  # a scheduler that says nothing at all
_SLEPT = 0  # a seat's exit code when nobody came to take it


@dataclass
class _PodTask:
    """A task of the run."""

    engine: KubernetesEngine
    attempt: PodAttempt
    pid: int = 0

    @property
    def where(self) -> str:
        """Its pod, once there is one."""
        return f"pod {self.attempt.follower.pod or self.attempt.name}"

    def send(self, number: int) -> None:
        """A pod gets SIGTERM when it is deleted, whatever the signal; without grace, it is killed."""
        self.engine.end(self.attempt, number)


class KubernetesEngine(RunEngine):
    """Runs tasks as Jobs in a namespace, from here or from a pod."""

    name = "kubernetes"

    def __init__(self, options: RunOptions) -> None:
        super().__init__(options)
        self._prepared = Preparation(options)
        self._run = self._prepared.run
        self._resources: dict[str, TaskResources] = {}
        self._numbers: dict[str, int] = {}
        self._reasons: dict[str, str] = {}  # why tasks have failed, by label
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._listener: RunListener | None = None
        self._api: Api | None = None
        self._objects: ClusterObjects | None = None
        self._fleet: Fleet | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._has_token = False
        self._has_warned = False
        self._swaps = Swaps()

    # -- what the launcher asks for ------------------------------------------------------------------

    def preview(self, wanted: Sequence[Wanted]) -> dict[str, Place]:
        """The places that `reserve` gives: their names are known before."""
        self._prepared.check(wanted)
        self._resources |= {one.label: one.resources for one in wanted}
        return {one.label: self._place(one.job, one.index) for one in wanted}

    def fixed_places(self, wanted: Sequence[Wanted]) -> dict[str, Place]:
        """All of them: a task keeps its name wherever its pod is."""
        return {one.label: self._place(one.job, one.index) for one in wanted}

    def manifests(self, tasks: Sequence[Task]) -> str:
        """All objects, for `kubectl apply -f -`. The Jobs start failed tasks again by themselves."""
        return self._prepared.printed(tasks, self._resources)

    def reserve(self, wanted: Sequence[Wanted], listener: RunListener) -> dict[str, Place]:
        """Claims the name of the run, and takes a seat for each task."""
        self._prepared.check(wanted)
        self._listener = listener
        self._open(listener)
        assert self._fleet is not None
        began = time.monotonic()
        for one in wanted:
            self._resources[one.label] = one.resources
        seats = list(self._workers().map(self._sit, wanted))
        self._wait_for(wanted, seats, began)
        return {one.label: self._place(one.job, one.index) for one in wanted}

    def start(self, task: Task, listener: RunListener) -> RunningTask:
        """Creates the task's Job, where its seat was. A Job that cannot be created is an exit."""
        self._listener = listener
        label = task.label
        attempt = self._attempt(task.job, task.index, "r", self._after_task)
        attempt.on_line = lambda text: listener.on_line(label, text)
        self._reasons.pop(label, None)
        self._warn(task)
        before = self._fleet_of_run().of(label)
        self._swaps.begin(attempt.name, label)
        self._fleet_of_run().add(attempt)
        self._workers().submit(self._launch_safely, attempt, task, before)
        return _PodTask(self, attempt)

    def seek(self, wanted: Wanted, listener: RunListener) -> None:
        """Takes a seat; there is a place when the scheduler has found a node for it."""
        self._listener = listener
        self._resources[wanted.label] = wanted.resources
        self._swaps.want(wanted.label)
        self._workers().submit(self._seek, wanted)

    def release(self, label: str) -> None:
        """Deletes the task's seat, whether it has a node or waits for one."""
        self._swaps.release(label)
        for attempt in self._fleet_of_run().of(label):
            if not attempt.follower.ended:
                self._submit_quietly(functools.partial(self._give_back, attempt))

    def close(self) -> None:
        """Deletes all objects of the run, and waits until they are gone."""
        with self._lock:
            objects, self._objects = self._objects, None
        if objects is None:
            self._stopped.set()
            return
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        left = objects.remove_all()
        self._stopped.set()
        if self._api is not None:
            self._api.close()
            if left:
                self._note(
                    f"Not everything could be deleted ({left}). Try `{deletion(self._api, self._run)}`."
                )

    def advice(self, task: Task, code: int) -> list[str]:
        """What Kubernetes says about the end of a task."""
        why = self._reasons.get(task.label)
        return [why] if why else []

    def end(self, attempt: PodAttempt, number: int) -> None:
        """Ends a task's pod, in the background: by its deletion."""
        grace = 0 if number == signal.SIGKILL else self._run.options.grace
        with self._fleet_of_run().changed:
            if attempt.follower.ended:
                return
            attempt.follower.ask_to_end(number)
        try:
            self._workers().submit(self._end, attempt, grace)
        except RuntimeError:  # the run is being closed, which ends everything
            return

    # -- seats ---------------------------------------------------------------------------------------

    def _sit(self, wanted: Wanted) -> PodAttempt:
        """A Job that holds room for a task of `reserve`."""
        seat = self._seat(wanted, self._nobody)
        self._fleet_of_run().add(seat)
        self._create_seat(seat, wanted)
        return seat

    def _seat(self, wanted: Wanted, then: Callable[[Wanted, PodAttempt, Decision], None]) -> PodAttempt:
        return self._attempt(wanted.job, wanted.index, "s", lambda seat, change: then(wanted, seat, change))

    def _create_seat(self, seat: PodAttempt, wanted: Wanted) -> None:
        resources = self._resources.get(wanted.label, TaskResources())
        self._create(seat, manifests.seat_job(self._run, seat.name, wanted.job, wanted.index, resources))

    def _nobody(self, wanted: Wanted, seat: PodAttempt, decision: Decision) -> None:
        """`reserve` looks by itself."""

    def _wait_for(self, wanted: Sequence[Wanted], seats: list[PodAttempt], began: float) -> None:
        """Waits until every seat is taken and its image is there. Raises EngineError when that cannot be."""
        changed = self._fleet_of_run().changed
        wait = self.options.wait_seconds
        while True:
            for number, (one, seat) in enumerate(zip(wanted, seats, strict=True)):
                end = seat.end
                if end is not None and (end.lost or end.code == _SLEPT):
                    seats[number] = self._sit(one)
                elif end is not None:
                    raise EngineError(f"{one.label}: {end.why or f'its pod ended with code {end.code}.'}")
            with changed:
                if all(seat.follower.has_begun for seat in seats):
                    return
                homeless = [
                    (one, seat.follower.waits)
                    for one, seat in zip(wanted, seats, strict=True)
                    if not seat.follower.is_placed
                ]
                spoken = any(why for _, why in homeless)
                limit = (wait if spoken else max(wait, _NO_VERDICT_SECONDS)) if wait is not None else None
                if homeless and limit is not None and time.monotonic() - began >= limit:
                    raise EngineError(self._no_room(homeless, len(wanted)))
                changed.wait(0.5)

    def _no_room(self, homeless: list[tuple[Wanted, str]], count: int) -> str:
        labels = ", ".join(one.label for one, _ in homeless[:8]) + (", ..." if len(homeless) > 8 else "")
        why = next((why for _, why in homeless if why), "its scheduler does not answer")
        asked = _spoken(homeless[0][0].resources)
        return (
            f"No room on Kubernetes for {len(homeless)} of {count} tasks within {self.options.wait_seconds or 0:g} s: {labels}"
            f"{asked}. {why.rstrip('.')}. Ask for less, or wait longer (--wait)."
        )

    def _seek(self, wanted: Wanted) -> None:
        """Gives back what the task held, and takes a seat for it."""
        for attempt in self._fleet_of_run().of(wanted.label):
            self._give_back(attempt)
        fleet, seat = self._fleet_of_run(), self._seat(wanted, self._after_seat)
        if self._swaps.admit(wanted, lambda: fleet.add(seat)):
            self._create_seat(seat, wanted)

    def _postpone_seats(self) -> None:
        """Takes back the seats that wait for room, until the tasks that were started have theirs."""
        for seat in self._fleet_of_run().take_waiting_seats():
            job, _, index = seat.label.partition("/")
            self._swaps.postpone(Wanted(job, int(index), job in SERVER_JOBS, self._resources[seat.label]))
            self._give_back(seat)

    def _end_swap(self, attempt: PodAttempt) -> None:
        """A task has a node, or needs none any more."""
        for wanted in self._swaps.end(attempt.name):
            self._submit_quietly(functools.partial(self._seek, wanted))

    def _after_seat(self, wanted: Wanted, seat: PodAttempt, decision: Decision) -> None:
        assert self._listener is not None
        if isinstance(decision, Placed):
            self._listener.on_place(wanted.label, self._place(wanted.job, wanted.index))
        elif isinstance(decision, Ended) and seat in self._fleet_of_run().of(wanted.label):
            if decision.lost or decision.code == _SLEPT:
                self._workers().submit(self._seek, wanted)
            else:
                self._note(f"There is no place for {wanted.label}: {decision.why}")

    # -- tasks ---------------------------------------------------------------------------------------

    def _launch_safely(self, attempt: PodAttempt, task: Task, before: list[PodAttempt]) -> None:
        try:
            self._launch(attempt, task, before)
        except Exception as error:  # a task that is never heard of again would hold up the run
            why = f"{type(error).__name__}: {error}"
            self._fleet_of_run().fail(attempt, Ended(_CANNOT_START, why=why))
            raise

    def _launch(self, attempt: PodAttempt, task: Task, before: list[PodAttempt]) -> None:
        """Puts the task's Job where its seat was."""
        resources = self._resources.get(task.label, TaskResources())
        try:
            self._share_token(task)
        except (ApiError, Unreachable) as error:
            self._cannot_start(attempt, error, "create secrets")
            return
        self._postpone_seats()
        # First this makes room for the task. Then it owns the rest of the run until the task's Job does.
        for one in before:
            self._give_back(one)
        if not attempt.follower.ended:
            named = self._prepared.in_pod(task)
            self._create(attempt, manifests.task_job(self._run, attempt.name, named, resources))
        if attempt.follower.ended or not self._fleet_of_run().has(attempt):
            self._end_swap(attempt)  # again: seats have been postponed since

    def _share_token(self, task: Task) -> None:
        """The Secret that every task reads its token from: made before the first of them."""
        token, objects = task.environment.get(TOKEN), self._objects
        with self._lock:
            if token and objects is not None and not self._has_token:
                objects.add(self._prepared.token_secret(token))
                self._has_token = True

    def _create(self, attempt: PodAttempt, job: Json) -> None:
        objects = self._objects
        if objects is None:
            return
        try:
            objects.add_job(job)
            if not self._fleet_of_run().has(attempt):  # it was given back while it was being created
                objects.retire_job(attempt.name, "")
        except (ApiError, Unreachable) as error:
            self._cannot_start(attempt, error, "create jobs")

    def _cannot_start(self, attempt: PodAttempt, error: ApiError | Unreachable, doing: str) -> None:
        assert self._api is not None
        why = str(explained(error, self._api, doing))
        self._fleet_of_run().fail(attempt, Ended(_CANNOT_START, why=why))

    def _after_task(self, attempt: PodAttempt, decision: Decision) -> None:
        assert self._listener is not None
        if isinstance(decision, Placed | Ended):
            self._end_swap(attempt)
        if not isinstance(decision, Ended):
            return
        if decision.why:
            self._reasons[attempt.label] = decision.why
        if decision.lost:
            self._submit_quietly(lambda: self._give_back(attempt))
        self._listener.on_exit(attempt.label, decision.code, decision.lost)

    def _end(self, attempt: PodAttempt, grace: int) -> None:
        objects = self._objects
        if objects is not None:
            objects.end_pod(attempt.name, attempt.follower.pod, grace)
            if not attempt.follower.pod:  # it was still waiting for one
                self._fleet_of_run().fail(attempt, Ended(-signal.SIGTERM))

    def _give_back(self, attempt: PodAttempt) -> None:
        """Deletes an attempt at once."""
        self._fleet_of_run().forget(attempt.name)
        self._end_swap(attempt)
        objects = self._objects
        if objects is not None:
            objects.retire_job(attempt.name, attempt.follower.pod)

    # -- the connection ------------------------------------------------------------------------------

    def _open(self, listener: RunListener) -> None:
        """Connects, claims the run's name and begins to listen."""
        if self._objects is not None:
            return
        api = connect(self.options.address, self.options.namespace, self._stopped)
        objects = ClusterObjects(api, self._run, self._note)
        for line in self._prepared.notes():
            listener.on_note(line)
        objects.claim(manifests.service(replace(self._run, launcher=_launcher())))
        self._api, self._objects = api, objects
        try:
            for thing in self._prepared.files():
                objects.add(thing)
        except (ApiError, Unreachable) as error:
            raise explained(error, api, "create secrets and config maps") from None
        self._fleet = Fleet(api, self._run.selector, self._note)
        self._fleet.start()

    def _attempt(
        self, job: str, index: int, kind: str, then: Callable[[PodAttempt, Decision], None]
    ) -> PodAttempt:
        task = task_name(self._run.label, job, index)
        with self._lock:
            number = self._numbers.get(f"{task} {kind}", 0)
            self._numbers[f"{task} {kind}"] = number + 1
        label = f"{job}/{index}"
        resources = self._resources.get(label, TaskResources())
        follower = PodFollower(label, self._run.image, _memory(resources))
        return PodAttempt(attempt_name(task, number, kind), label, kind == "s", follower, then)

    def _place(self, job: str, index: int) -> Place:
        name = task_name(self._run.label, job, index)
        return Place(
            address_of(self._run.label, job, index), EngineNode(f"pod {name}", self._run.options.python)
        )

    def _fleet_of_run(self) -> Fleet:
        assert self._fleet is not None, "reserve comes first"
        return self._fleet

    def _workers(self) -> ThreadPoolExecutor:
        """Requests that the launcher does not wait for."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(_REQUESTS_AT_ONCE, thread_name_prefix="kubernetes")
            return self._pool

    def _submit_quietly(self, work: Callable[[], None]) -> None:
        try:
            self._workers().submit(work)
        except RuntimeError:  # the run is being closed
            return

    def _warn(self, task: Task) -> None:
        """Once, by the arguments of the first task: all have the same."""
        if not self._has_warned:
            self._has_warned = True
            for line in self._prepared.warnings(task):
                self._note(line)

    def _note(self, text: str) -> None:
        if self._listener is not None:
            self._listener.on_note(text)


def _launcher() -> str:
    """Who we are, for somebody who wants to start another run of this name."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container's user may have no name
        user = str(os.getuid())
    now = datetime.datetime.now().astimezone()
    return f"{user}@{socket.gethostname()} (pid {os.getpid()}) at {now:%Y-%m-%d %H:%M %Z}"


def _memory(resources: TaskResources) -> str:
    return f"{resources.memory_bytes / 2**30:.3g} GiB" if resources.memory_bytes else ""


def _spoken(resources: TaskResources) -> str:
    """What a task asks for."""
    parts = [f"{resources.cpus:g} processors"] if resources.cpus else []
    parts += [f"{_memory(resources)} of memory"] if resources.memory_bytes else []
    parts += [f"{resources.gpus} GPUs"] if resources.gpus else []
    return f" (each {', '.join(parts)})" if parts else ""
