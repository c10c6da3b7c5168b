"""Decides what a run does when a task ends, a user interrupts, or time is up: events in, actions out.

No processes, clocks or threads here: the times come with the events.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

_TERMINATE_SECONDS = 2.0  # from asking a task to end until it is killed
_INTERRUPT_SECONDS = 1.5  # the same after Ctrl-C: somebody is waiting for the prompt
_MAX_MOVES = 3  # of a task whose machine is lost: machines that die again and again need a person
_QUICK_SECONDS, _MAX_QUICK_DEATHS = 10.0, 3  # a worker that is killed so soon, so often, is not unlucky
#: how long a worker may take to save when the run is scaled to fewer, if the user has set no grace
LEAVE_SECONDS = 10.0
_KILL_MARGIN_SECONDS = 1.0  # a task that is given notice ends itself at the end of that time
_MAX_PAUSE_SECONDS = 60.0  # before a standby that dies again and again is started once more
# How a task ends that was taken away: killed or told to leave by its machine, or gone after notice (base/platform/notice.py).
_TAKEN_AWAY = (-signal.SIGKILL, -signal.SIGTERM, 128 + signal.SIGKILL, 128 + signal.SIGTERM)


class Start(NamedTuple):
    """Start a task again."""

    label: str


class Seek(NamedTuple):
    """Look for a place for a task."""

    label: str


class Send(NamedTuple):
    """Send a signal to a task and all that it started."""

    label: str
    number: int


class GiveBack(NamedTuple):
    """Give the place of a task back: it is not wanted any more."""

    label: str


#: what is to be done
Action: TypeAlias = Start | Seek | Send | GiveBack


class ScaleError(Exception):
    """A run cannot have that number of workers. The text is for the user."""


class ScaleResult(NamedTuple):
    """What a run does to get another number of workers."""

    actions: list[Action]
    #: the workers that are to come, and those that are told to leave
    joining: list[str]
    leaving: list[str]


@dataclass
class Failure:
    """A task that ended as it should not have."""

    label: str
    code: int  # negative: the signal that ended it
    at: float

    @property
    def exit_code(self) -> int:
        """As shells give it."""
        return self.code if self.code >= 0 else 128 - self.code


@dataclass
class _TaskState:
    serves: bool
    restarts_left: int
    #: more of its job may come and go
    elastic: bool = False
    moves_left: int = _MAX_MOVES
    running: bool = True
    #: it has no place at the moment, and one is looked for
    seeking: bool = False
    code: int | None = None
    started: float = 0.0
    #: how often in a row it died soon after its start
    quick_deaths: int = 0
    #: one of the two servers of a durable task: the guard decides what its end means
    durable: bool = False
    #: its place is gone
    placeless: bool = False
    #: it was killed to be started again
    replaced: bool = False
    #: when it is started again
    starts_at: float | None = None
    #: the run has been scaled to fewer workers: nobody looks for a place for it
    parked: bool = False
    #: when it is killed, once it has been told to leave for that
    leaves_by: float | None = None
    #: somebody has started it by hand: nobody starts another in its place when it leaves
    is_guest: bool = False


@dataclass
class Policy:
    """The state of a run. Each `on_...` returns what is to be done."""

    tasks: dict[str, _TaskState] = field(default_factory=dict)
    keep_going: bool = False
    #: from asking a task to end until it is killed, when nothing has failed
    grace_seconds: float | None = None
    failure: Failure | None = None
    exit_code: int | None = None  # set once everything has ended
    _stopping: int | None = None  # the exit code to come, once the end has begun
    _kill_at: float | None = None
    _interrupted: bool = False
    #: workers are saving, and the servers stay for that
    _saving: bool = False

    def add(
        self,
        label: str,
        serves: bool,
        restarts: int = 0,
        *,
        elastic: bool = False,
        placed: bool = True,
        durable: bool = False,
        parked: bool = False,
    ) -> None:
        """A task that has been started, or, if it is not `placed`, one that a place is looked for unless it is `parked`.

        The end of a `durable` one is no failure: `on_restart` or `on_lost` follows.
        """
        self.tasks[label] = _TaskState(
            serves,
            restarts,
            elastic,
            running=placed,
            seeking=not placed and not parked,
            durable=durable,
            parked=parked,
        )

    @property
    def deadline(self) -> float | None:
        """When `on_time` has something to do."""
        times = [t for task in self.tasks.values() for t in (task.starts_at, task.leaves_by) if t is not None]
        return min([*times, *([self._kill_at] if self._kill_at is not None else [])], default=None)

    @property
    def running(self) -> list[str]:
        """The tasks that have not ended."""
        return [label for label, task in self.tasks.items() if task.running]

    @property
    def seeking(self) -> list[str]:
        """The tasks that wait for a place."""
        return [label for label, task in self.tasks.items() if task.seeking]

    @property
    def one_is_left(self) -> bool:
        """Whether exactly one of the tasks that do not serve others is left."""
        workers = [task.running for task in self.tasks.values() if not task.serves and not task.parked]
        return len(workers) > 1 and sum(workers) == 1

    @property
    def stopping(self) -> bool:
        """Whether tasks have been told to end."""
        return self._stopping is not None

    @property
    def serving(self) -> bool:
        """Whether the servers have not been told to end."""
        return self._stopping is None or self._saving

    def on_exit(self, label: str, code: int, now: float, lost: bool = False) -> list[Action]:
        """A task has ended. It is `lost` if its place is gone: its machine has died, or was taken away."""
        task = self.tasks[label]
        task.running, task.code = False, code
        if task.durable and self.serving:
            task.placeless |= lost
            return self._again(label, now) if task.replaced else []
        actions: list[Action] = []
        if self.is_leaving(label) and not self.stopping:
            actions = self._left(label, task)
        elif (code != 0 or lost) and not self.stopping:
            comeback = self._comeback(label, task, now, lost)
            if comeback:
                return comeback
            if comeback is None:
                self.failure = self.failure or Failure(label, code, now)
                if not self.keep_going:
                    actions = self._stop(self.failure.exit_code, now + _TERMINATE_SECONDS)
        if self._saving and not self.running_workers():
            self._saving, self._kill_at = False, now + _TERMINATE_SECONDS
            return [Send(n, signal.SIGTERM) for n in self.running] or self._ended()
        if not self.stopping and self._work_is_done():
            code = self.failure.exit_code if self.failure else 0
            actions = self._stop(code, now + _TERMINATE_SECONDS)
        if not self.running and (self.stopping or not self.seeking):
            self._ended()
        return actions

    def on_place(self, label: str, now: float) -> list[Action]:
        """A place has been found for a task."""
        task = self.tasks[label]
        if not task.seeking or self.stopping:
            return []
        task.seeking, task.running, task.code, task.started = False, True, None, now
        return [Start(label)]

    def on_scale(self, count: int, now: float) -> ScaleResult:
        """The user wants so many of the workers that may come and go. Raises ScaleError."""
        workers = [label for label, task in self.tasks.items() if task.elastic]
        self._check_scale(count, workers)
        joining = [label for label in workers[:count] if self._unpark(self.tasks[label])]
        sought = [label for label in workers[count:] if self.tasks[label].seeking]
        leaving = [label for label in workers[count:] if self._park(self.tasks[label], now)]
        actions: list[Action] = [Send(label, signal.SIGTERM) for label in leaving]
        actions += [GiveBack(label) for label in sought]
        # One that still leaves comes back when it has left.
        actions += [Seek(label) for label in joining if self.tasks[label].seeking]
        return ScaleResult(actions, joining, leaving)

    def is_leaving(self, label: str) -> bool:
        """Whether the end of a worker is no failure: it was told to leave, or somebody has started it by hand."""
        return self.tasks[label].leaves_by is not None or self.tasks[label].is_guest

    def on_join(self, now: float) -> str:
        """Somebody has started a worker by hand. Gives its label, the first free one; raises ScaleError."""
        if self.stopping or self._has_finished(""):
            raise ScaleError("The run is ending: its workers finish the training, or were told to stop.")
        free = (n for n, task in self.tasks.items() if task.elastic and task.parked and not task.running)
        label = next(free, None)
        if label is None:
            count = sum(task.elastic for task in self.tasks.values())
            raise ScaleError(
                f"All {count} numbers of workers are taken. Start the run with a larger --max-workers, or scale it to fewer."
            )
        task = self.tasks[label]
        task.running, task.code, task.started, task.is_guest = True, None, now, True
        return label

    def _check_scale(self, count: int, workers: list[str]) -> None:
        if not workers:
            raise ScaleError(
                "It was started with a fixed number of workers. Start it with --max-workers, such as --workers 2 "
                "--max-workers 8, to scale it."
            )
        if count < 1:
            raise ScaleError(f"It needs at least one worker, not {count}. `tensorfleet stop` ends a run.")
        if count > len(workers):
            raise ScaleError(
                f"It has room for {len(workers)} workers, not {count}: its tasks were told of a cluster of that size. "
                f"Start it with --max-workers {count} to have more."
            )
        if self.stopping or self._has_finished(""):
            raise ScaleError("It is ending: its workers finish the training, or were told to stop.")

    def _unpark(self, task: _TaskState) -> bool:
        """Wants a worker again; True if it was not wanted."""
        was_parked, task.parked = task.parked and not task.is_guest, False
        if was_parked and not task.running:
            task.seeking, task.quick_deaths = True, 0
        return was_parked

    def _park(self, task: _TaskState, now: float) -> bool:
        """Wants a worker no more; True if it has to be told."""
        task.parked, task.seeking = True, False
        if not task.running or task.leaves_by is not None or task.is_guest:
            return False
        task.leaves_by = now + (self.grace_seconds or LEAVE_SECONDS) + _KILL_MARGIN_SECONDS
        return True

    def _left(self, label: str, task: _TaskState) -> list[Action]:
        """A worker that was told to leave has ended. It may be wanted again meanwhile."""
        was_guest, task.is_guest = task.is_guest, False
        task.leaves_by = task.code = None
        task.seeking, task.quick_deaths = not task.parked and not self._has_finished(""), 0
        if task.seeking:
            return [Seek(label)]
        return [] if was_guest else [GiveBack(label)]

    def on_restart(self, label: str, now: float) -> list[Action]:
        """The guard wants a standby in the place of one of the two servers of a durable task."""
        task = self.tasks[label]
        if not self.serving or task.replaced or task.seeking or task.starts_at is not None:
            return []
        if task.running:
            task.replaced = True
            return [Send(label, signal.SIGKILL)]
        return self._again(label, now)

    def on_lost(self, label: str, cause: str, now: float) -> list[Action]:
        """Both servers of the durable task `label` are gone; `cause` is the one that led it last.

        Goes on as for a parameter server that has no standby.
        """
        if self.stopping:
            return []
        task, ended = self.tasks[label], self.tasks[cause]
        code = ended.code if ended.code is not None else -signal.SIGKILL
        is_lost = not task.running and task.placeless
        if code == 0 and not is_lost:
            return []
        was_running, was_seeking, task.starts_at = task.running, task.seeking, None
        comeback = self._comeback(label, task, now, is_lost)
        if comeback is None:
            self.failure = self.failure or Failure(cause, code, now)
            return [] if self.keep_going else self._stop(self.failure.exit_code, now + _TERMINATE_SECONDS)
        task.placeless = False
        if was_seeking:  # it starts at the place that is found
            task.running = False
            return []
        task.replaced = was_running
        return [Send(label, signal.SIGKILL)] if was_running else comeback

    def on_signal(self, number: int, now: float) -> list[Action]:
        """The user wants the run to end: at once if they say so twice."""
        # The second Ctrl-C: whoever presses it does not want to wait for tasks that save.
        if self._interrupted:
            self._kill_at = None
            return [Send(label, signal.SIGKILL) for label in self.running]
        self._interrupted = True
        # SIGTERM comes from a cluster manager, too: it is the notice on which tasks save.
        if number == signal.SIGTERM and self.grace_seconds is not None:
            return self._let_save(128 + number, now + self.grace_seconds)
        return self._stop(128 + number, now + _INTERRUPT_SECONDS, signal.SIGINT)

    def on_timeout(self, now: float) -> list[Action]:
        """The run has taken as long as it may."""
        if self.stopping:
            return []
        if self.grace_seconds is not None:
            return self._let_save(124, now + self.grace_seconds)
        return self._stop(124, now + _TERMINATE_SECONDS)

    def on_time(self, now: float) -> list[Action]:
        """Time has passed."""
        due = [n for n, task in self.tasks.items() if task.starts_at is not None and task.starts_at <= now]
        actions = [action for label in due for action in self._started_again(label, now)]
        late = [n for n, task in self.tasks.items() if task.leaves_by is not None and task.leaves_by <= now]
        for label in late:
            self.tasks[label].leaves_by = float("inf")  # told once
            actions.append(Send(label, signal.SIGKILL))
        if self._kill_at is None or now < self._kill_at:
            return actions
        self._kill_at = None
        return [Send(label, signal.SIGKILL) for label in self.running]

    def _again(self, label: str, now: float) -> list[Action]:
        """Starts one of the two servers of a durable task again: later, if it died too soon too often."""
        task = self.tasks[label]
        task.replaced = False
        task.quick_deaths = task.quick_deaths + 1 if now - task.started < _QUICK_SECONDS else 0
        if task.quick_deaths < _MAX_QUICK_DEATHS:
            return self._started_again(label, now)
        pause = _QUICK_SECONDS * 2.0 ** (task.quick_deaths - _MAX_QUICK_DEATHS)
        task.starts_at = now + min(pause, _MAX_PAUSE_SECONDS)
        return []

    def _started_again(self, label: str, now: float) -> list[Action]:
        task = self.tasks[label]
        task.starts_at = None
        if not self.serving:
            return []
        if task.placeless:
            task.placeless, task.seeking = False, True
            return [Seek(label)]
        task.running, task.code, task.started = True, None, now
        return [Start(label)]

    def _comeback(self, label: str, task: _TaskState, now: float, lost: bool) -> list[Action] | None:
        """What follows for a task that may come back: nothing if it need not. None if it may not, which is a failure."""
        went = lost or task.code in _TAKEN_AWAY
        if task.elastic and went:
            if self._has_finished(label):
                return []
            task.quick_deaths = task.quick_deaths + 1 if now - task.started < _QUICK_SECONDS else 0
            if task.quick_deaths < _MAX_QUICK_DEATHS:
                task.seeking = True
                return [Seek(label)]
        elif lost and task.moves_left > 0:
            task.moves_left -= 1
            task.seeking = True
            return [Seek(label)]
        elif not lost and task.restarts_left > 0:
            # Reported as running again at once: with no task running, the run would be over.
            task.restarts_left -= 1
            task.running, task.code, task.started = True, None, now
            return [Start(label)]
        return None

    def running_workers(self) -> list[str]:
        """The tasks at work that do not serve others."""
        return [label for label in self.running if not self.tasks[label].serves]

    def _has_finished(self, label: str) -> bool:
        """Whether another worker has come to the end of the training: then nobody has to come back."""
        return any(
            task.code == 0 and not task.running
            for other, task in self.tasks.items()
            if other != label and not task.serves
        )

    def _work_is_done(self) -> bool:
        workers = [task for task in self.tasks.values() if not task.serves]
        workers = [task for task in workers if task.running or not task.parked]
        at_work = any(task.running or (task.seeking and not task.elastic) for task in workers)
        if at_work or not workers:
            return False
        # Elastic workers that wait for a place are not waited for once one has finished.
        return not any(task.seeking for task in workers) or any(
            task.code == 0 for task in workers if not task.seeking
        )

    def _ended(self) -> list[Action]:
        self.exit_code = self._stopping if self._stopping is not None else 0
        return []

    def _let_save(self, code: int, kill_at: float) -> list[Action]:
        """Tells the workers to end; the servers are told when these have, because what is saved is on them."""
        if not self.running_workers():
            return self._stop(code, kill_at)
        self._stopping, self._kill_at, self._saving = code, kill_at, True
        return [Send(n, signal.SIGTERM) for n in self.running_workers()]

    def _stop(self, code: int, kill_at: float, to_workers: int = signal.SIGTERM) -> list[Action]:
        self._stopping = code
        self._kill_at = kill_at
        if not self.running:  # every task waits for a place
            self.exit_code = code
        return [Send(n, signal.SIGTERM if self.tasks[n].serves else to_workers) for n in self.running]
