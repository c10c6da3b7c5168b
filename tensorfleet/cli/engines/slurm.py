"""Tasks as steps of a Slurm job: of the allocation that the command is in, or of one that it asks for.

Nodes and states come from Slurm's commands (`slurm_commands`), the choice of nodes is `slurm_rooms`, a task is a
`slurm_step`, and `slurm_nodes` keeps a small program on each node (`probe`).
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tensorfleet.cli.engines.base import (
    EngineError,
    EngineNode,
    RunEngine,
    RunListener,
    RunningTask,
    RunOptions,
    Wanted,
)
from tensorfleet.cli.engines.slurm_allocation import (
    Allocation,
    is_inside,
    launched_by_a_step,
    options_of_another_job,
    shares_in,
)
from tensorfleet.cli.engines.slurm_batch import submit
from tensorfleet.cli.engines.slurm_check import check
from tensorfleet.cli.engines.slurm_commands import (
    NodeShare,
    answer,
    job_state,
    node_states,
    why_ended,
    why_over,
)
from tensorfleet.cli.engines.slurm_nodes import Nodes
from tensorfleet.cli.engines.slurm_rooms import Seating, cpus_of_step, memory_mb, spoken_need, spoken_room
from tensorfleet.cli.engines.slurm_step import SlurmStep, start_at
from tensorfleet.cli.plan import Place, Task
from tensorfleet.cli.registry import Entry

__all__ = ["SlurmEngine", "check"]

_QUEUE_SECONDS = 5.0  # for a request that need not wait: the scheduler runs every few seconds
_HET_QUEUE_SECONDS = 60.0  # only the backfill scheduler starts heterogeneous jobs
_LOOK_SECONDS = 2.0
_END_SECONDS = 6.0
_SAVE_SECONDS = 35.0  # from SIGTERM to SIGKILL Slurm gives 30 s by default
_GRACE_SECONDS = 30.0  # of a batch job, whose own command line may say another time
# Reasons of a job to wait that do not pass, where a cluster takes requests that it cannot serve.
_NEVER = ("PartitionConfig", "PartitionTimeLimit", "BadConstraints")
_SRUN_FAILED = 1  # its exit code if there is no step


class SlurmEngine(RunEngine):
    """Places tasks on the nodes of jobs, and starts them by `srun`."""

    name = "slurm"

    def __init__(self, options: RunOptions) -> None:
        super().__init__(options)
        self._nodes = Nodes(options, self._take_loss)
        self._seating = Seating()
        self._seats = threading.RLock()
        self._allocations: list[Allocation] = []
        #: those of them that were asked for later, each with the task that it was for
        self._more: list[tuple[str, Allocation]] = []
        #: the tasks that a place is sought for, each with what ends its search
        self._searches: dict[str, threading.Event] = {}
        self._steps: dict[str, SlurmStep] = {}
        self._listener: RunListener | None = None
        self._closing = threading.Event()
        self._ends: dict[str, str] = {}  # why jobs are over
        self._placed: set[str] = set()  # all that ever had a place
        self._folders_checked = False

    # -- places --------------------------------------------------------------------------------------

    def relaunch(self, wanted: Sequence[Wanted], command: Sequence[str]) -> int | None:
        """With `--submit`, submits the command as a batch job."""
        if not self.options.submit:
            return None
        if is_inside(os.environ):
            raise EngineError(f"This is Slurm job {os.environ['SLURM_JOB_ID']} already. Leave out --submit.")
        submitted = submit(command, wanted, self.options, Path.cwd())
        listed = Entry(
            self.options.name,
            str(self.options.script),
            self.options.log_dir,
            engine=self.name,
            grace=_GRACE_SECONDS,
        )
        listed.submitted(submitted.job, [one.label for one in wanted])
        print(submitted.spoken(self.options.name), file=sys.stderr)
        return 0

    def reserve(self, wanted: Sequence[Wanted], listener: RunListener) -> dict[str, Place]:
        """Places in this allocation, or in one that is asked for now."""
        self._listener = listener
        if is_inside(os.environ):
            job = os.environ["SLURM_JOB_ID"]
            self._seating.shares = self._shares_here(job)
            if unheeded := options_of_another_job(self.options, job):
                listener.on_note(unheeded)
        else:
            self._seating.shares = self._allocated(wanted, listener).shares()
        places = self._settled(wanted, listener)
        for allocation in self._allocations:
            self._nodes.keep(str(allocation.job))
        self._nodes.watch()
        listener.on_note(self._spoken_places())
        return places

    def seek(self, wanted: Wanted, listener: RunListener) -> None:
        """Another node of the allocation; if that is the run's own, also one more node by a request of its own."""
        self._listener = listener
        self._give_back(wanted.label)
        if over := self._jobs_over():
            self._let_others_save()
            remedy = " Ask for more by --time." if "time limit" in over else ""
            raise EngineError(f"{over}, so there is no place for {wanted.label}.{remedy}")
        stop = threading.Event()
        with self._seats:
            self._searches.pop(wanted.label, threading.Event()).set()
            self._searches[wanted.label] = stop
        threading.Thread(
            target=self._seek, args=(wanted, listener, stop), name=f"place of {wanted.label}", daemon=True
        ).start()

    def release(self, label: str) -> None:
        """Ends the search for a place, or gives it back; with it the job that the run has asked for on its behalf."""
        with self._seats:
            self._searches.pop(label, threading.Event()).set()
            self._seating.held.pop(label, None)
            self._placed.discard(label)
        threading.Thread(target=self._return_idle_jobs, name=f"release of {label}", daemon=True).start()

    def _shares_here(self, job: str) -> list[NodeShare]:
        """What the allocation that this process is in has."""
        over = why_over(job, job_state(job))
        shares = [] if over else shares_in(os.environ)
        if not shares:
            raise EngineError(
                f"{over or f'Slurm job {job} has no nodes'}. Leave its shell, or unset SLURM_JOB_ID to get a new allocation."
            )
        return shares

    def _allocated(self, wanted: Sequence[Wanted], listener: RunListener) -> Allocation:
        """A job of our own, for all of these tasks."""
        allocation = Allocation(wanted, self.options)
        self._allocations.append(allocation)
        patience = self.options.wait_seconds
        kinds = {one.resources for one in wanted}
        least = _QUEUE_SECONDS if len(kinds) == 1 else _HET_QUEUE_SECONDS
        limit = None if patience is None else time.monotonic() + max(patience, least)
        noted = False
        while not allocation.wait(_LOOK_SECONDS):
            why = allocation.reason()
            if why in _NEVER:
                raise EngineError(f"Slurm can never give {_refusal(wanted, allocation, why)} Ask for less.")
            if limit is not None and time.monotonic() > limit:
                raise EngineError(
                    f"Slurm has not given {_refusal(wanted, allocation, why, max(patience or 0, least))} "
                    "Ask for less, wait longer (--wait), or submit the run (--submit)."
                )
            if not noted:
                listener.on_note(
                    f"Waiting for Slurm to give {spoken_need(wanted)} ({_queued(allocation, why)})."
                )
                noted = True
        return allocation

    def _settled(self, wanted: Sequence[Wanted], listener: RunListener) -> dict[str, Place]:
        """A place for each task. Nodes where no step starts are left out."""
        patience = self.options.wait_seconds
        limit = None if patience is None else time.monotonic() + patience
        noted = False
        while True:
            shares = self._nodes.usable(self._seating.shares)
            with self._seats:
                chosen = self._seating.choose_all(wanted, shares)
            if chosen is not None and self._nodes.open(set(chosen.values()), listener):
                with self._seats:
                    self._seating.held |= {one.label: (one, chosen[one.label]) for one in wanted}
                return {one.label: self._place(one.label, chosen[one.label]) for one in wanted}
            if chosen is not None:
                continue
            self._check_room(wanted, shares, limit)
            if not noted:
                listener.on_note(f"Waiting for nodes of the allocation: {spoken_room(shares)} now.")
                noted = True
            self._closing.wait(_LOOK_SECONDS)

    def _check_room(self, wanted: Sequence[Wanted], shares: Sequence[NodeShare], limit: float | None) -> None:
        """Raises `EngineError` if it is of no use to wait longer for nodes that are down."""
        everywhere = self._seating.choose_all(wanted, self._seating.shares)
        if everywhere is None:
            raise EngineError(
                f"The allocation has no room for {spoken_need(wanted)}: {spoken_room(self._seating.shares)}. Get a larger "
                "one, or ask for less."
            )
        if limit is not None and time.monotonic() >= limit:
            reasons = "; ".join(self._nodes.reasons()) or "other nodes of it are down"
            raise EngineError(
                f"The allocation has no room for {spoken_need(wanted)} at the moment: {spoken_room(shares)}; {reasons}."
            )
        if over := self._jobs_over():
            raise EngineError(f"{over}.")

    def _place(self, label: str, share: NodeShare) -> Place:
        """Where a task that holds a share runs and listens."""
        probe = self._nodes.probe(share)
        self._placed.add(label)
        host = f"[{probe.address}]" if ":" in probe.address else probe.address
        return Place(f"{host}:{self._nodes.port(probe)}", EngineNode(probe.share.node, probe.python))

    def _seek(self, wanted: Wanted, listener: RunListener, stop: threading.Event) -> None:
        extra: Allocation | None = None
        while not (self._closing.is_set() or stop.is_set()):
            try:
                if (place := self._place_now(wanted, listener, stop)) is not None:
                    self._tell_place(wanted.label, place, listener, stop)
                    break
                # In an allocation of the user's, that is all there is.
                if self._allocations and extra is None:
                    extra = self._asked_for_more(wanted)
                if extra is not None and extra.wait(_LOOK_SECONDS):
                    with self._seats:
                        self._seating.shares += extra.shares()
                    extra = None
                    continue
            except EngineError as error:
                if stop.is_set():  # its request has been withdrawn
                    break
                listener.on_note(f"No place for {wanted.label} yet: {error}")
                extra = None
            self._closing.wait(_LOOK_SECONDS if extra is None else 0)
        self._return_idle_jobs()

    def _tell_place(self, label: str, place: Place, listener: RunListener, stop: threading.Event) -> None:
        for allocation in list(self._allocations):
            self._nodes.keep_if_new(allocation.job)
        with self._seats:  # `release` comes before this, or finds what is held
            if not stop.is_set():
                del self._searches[label]
                listener.on_place(label, place)

    def _place_now(self, wanted: Wanted, listener: RunListener, stop: threading.Event) -> Place | None:
        grows = wanted.label not in self._placed
        with self._seats:  # many workers may look, and most of the time there is no need to ask Slurm
            there = [one for one in self._seating.shares if one.job not in self._ends]
            shares = [one for one in there if self._seating.choose(wanted, [one], grows)]
        shares = self._nodes.usable(shares) if shares else []
        with self._seats:
            share = None if stop.is_set() else self._seating.take(wanted, shares, grows)
        if share is None:
            return None
        is_open = self._nodes.open({share}, listener)
        with self._seats:
            if stop.is_set():  # what it held has been given back
                return None
            if not is_open:
                self._give_back(wanted.label)
                return None
        return self._place(wanted.label, share)

    def _asked_for_more(self, wanted: Wanted) -> Allocation:
        allocation = Allocation([wanted], self.options)
        with self._seats:
            self._allocations.append(allocation)
            self._more.append((wanted.label, allocation))
        if self._closing.is_set():
            allocation.close()
        return allocation

    def _return_idle_jobs(self) -> None:
        """Gives back the jobs that were asked for later, where no task has a place and none is sought any more."""
        with self._seats:
            needs, sought = self._seating.needs, self._searches
            idle = [one for label, one in self._more if not needs(one.job, label, sought)]
            gone = {one.job for one in idle}
            self._more = [(label, one) for label, one in self._more if one not in idle]
            self._allocations = [one for one in self._allocations if one not in idle]
            self._seating.shares = [one for one in self._seating.shares if one.leader not in gone]
        for one in idle:
            self._nodes.drop(one.job)
            with contextlib.suppress(Exception):
                one.close()

    def _give_back(self, label: str) -> None:
        with self._seats:
            self._seating.held.pop(label, None)

    def _let_others_save(self) -> None:
        """Waits for the other tasks of a job that is over: they save until Slurm kills them."""
        limit = time.monotonic() + _SAVE_SECONDS
        first = self._seating.shares[0].job
        for step in list(self._steps.values()):
            if step.share.job == first and step.number is not None:
                step.end(max(limit - time.monotonic(), 0))

    def _jobs_over(self) -> str | None:
        """Why the first job is over, if no new one may take its place: its time is up, or somebody wanted it so."""
        first = self._seating.shares[0]
        state = job_state(first.job)
        replaceable = self._allocations and state in ("PREEMPTED", "NODE_FAIL")
        return None if replaceable else self._ends.get(first.job) or why_over(first.job, state)

    def _spoken_places(self) -> str:
        nodes: dict[str, list[str]] = {}
        for label, (_, share) in self._seating.held.items():
            nodes.setdefault(share.node, []).append(label)
        parts = [f"{', '.join(labels)} on {node}" for node, labels in sorted(nodes.items())]
        return f"Slurm job {self._seating.shares[0].leader}: {'; '.join(parts)}."

    # -- tasks ---------------------------------------------------------------------------------------

    def start(self, task: Task, listener: RunListener) -> RunningTask:
        """A step of its own for the task."""
        self._listener = listener
        wanted, share = self._seating.held[task.label]
        probe = self._nodes.probe(share)
        folder, command = self._nodes.project_on(probe, task.command)
        self._check_folders(task, listener)
        keeps_devices = not wanted.resources.gpus or "CUDA_VISIBLE_DEVICES" in self.options.environment
        start = start_at(task, share, self._options_of_step(wanted, share), folder, command, keeps_devices)
        step = SlurmStep(task.label, share, start, listener, self._nodes.follow, self._finish(listener))
        self._steps[task.label] = step
        return step

    def close(self) -> None:
        """Ends the steps, then what is kept on the nodes, then the jobs that the run has asked for."""
        self._closing.set()
        steps = list(self._steps.values())
        for step in steps:
            step.hang_up()
        limit = time.monotonic() + _END_SECONDS
        for step in steps:
            step.end(max(limit - time.monotonic(), 0))
            step.send(signal.SIGKILL)
        self._nodes.close()
        allocations, self._allocations = self._allocations, []
        for allocation in allocations:
            allocation.hang_up()
        for allocation in allocations:
            with contextlib.suppress(Exception):
                allocation.close()

    def advice(self, task: Task, code: int) -> list[str]:
        """That Slurm has ended it for its memory, or what Slurm has said if it never began."""
        step = self._steps.get(task.label)
        if step is None:
            return []
        if step.ran_out_of_memory:
            return ["Slurm ended it because it used more memory than it has. Ask for more with --memory."]
        return [] if step.name else [f"Slurm: {step.slurm_said}"]

    def _options_of_step(self, wanted: Wanted, share: NodeShare) -> list[str]:
        """What a step takes of its node, as srun has it."""
        memory = f"--mem={memory_mb(wanted.resources)}M"  # 0 is what the job has
        with self._seats:
            others = [one for one, where in self._seating.held.values() if where == share]
        cpus = cpus_of_step(wanted, share, others)
        gpus = [f"--gpus={wanted.resources.gpus}"] if wanted.resources.gpus else []
        # All tasks use all processors of the job there, unless they have asked for some. A step in a step has no choice.
        if cpus is None:
            return ["--overlap", memory]
        beside = ["--overlap"] if launched_by_a_step(os.environ) else []
        return [*beside, "--exact", f"--cpus-per-task={cpus}", memory, *gpus]

    def _finish(self, listener: RunListener) -> Callable[[SlurmStep, int], None]:
        def ended(step: SlurmStep, code: int) -> None:
            self._nodes.forget(step)
            if code == 0:
                self._give_back(step.label)
            lost = None if self._closing.is_set() else step.lost or self._why_lost(step, code)
            listener.on_exit(step.label, code, lost)

        return ended

    def _why_lost(self, step: SlurmStep, code: int) -> str | None:
        """Why a task's place is gone, if that is what ended it."""
        is_own = code >= 0 and step.name is not None and not step.was_taken and not step.vanished
        if is_own or step.ran_out_of_memory:
            return None
        share = step.share
        with contextlib.suppress(EngineError):
            if over := why_ended(share.job):
                self._ends[share.job] = over
                return over
            state = node_states([share.node]).get(share.node)
            if step.vanished or (state is not None and not state.is_up):
                reason = f"node {share.node} has failed"
                self._nodes.avoid(share, reason)
                return reason
        if step.name is None and code == _SRUN_FAILED:
            return f"Slurm could not start it on node {share.node}: {step.slurm_said}"
        return step.slurm_said if step.was_taken or step.vanished else None

    def _take_loss(self, share: NodeShare, reason: str) -> None:
        """A node does not answer any more, so its tasks are gone."""
        for step in list(self._steps.values()):
            if step.share == share:
                step.lost = reason
                step.send(signal.SIGKILL)

    def _check_folders(self, task: Task, listener: RunListener) -> None:
        if not self._folders_checked:
            self._folders_checked = True
            threading.Thread(
                target=self._nodes.check_folders, args=(task.command, listener), name="folders", daemon=True
            ).start()


def _queued(allocation: Allocation, why: str | None) -> str:
    return f"job {allocation.job or '?'}" + (f": {why}" if why else "")


def _refusal(
    wanted: Sequence[Wanted], allocation: Allocation, why: str | None, seconds: float | None = None
) -> str:
    """What was asked, and what there is."""
    free = "unknown"
    with contextlib.suppress(EngineError):
        lines = answer(["sinfo", "--noheader", "--format=%R: %F nodes, %C CPUs (allocated/idle/other/total)"])
        free = "; ".join(lines.split("\n")).strip("; ")
    within = "" if seconds is None else f" within {seconds:g} s"
    return f"{spoken_need(wanted)}{within} ({_queued(allocation, why)}). There is {free}."
