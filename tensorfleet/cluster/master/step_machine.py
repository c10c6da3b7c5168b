"""The decisions of one step over several tasks: which stage starts, what a failure means, when the step is over.

A state machine without sockets, threads or clocks. The driver (step_driver.py) tells it the events and carries out the
actions that it decides:

    events   sent(stage)      a task was asked to run a stage
             done(stage)      a stage has ended and its results are here
             failed()         a stage, a task or the deadline failed
             cancel(reason)   somebody ends the step from another thread
             late_answer()    a task answered after the step had failed
    actions  Ask, RunHere, RunBeside, Wait, Finish, Fail
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from tensorfleet.base import errors


@dataclass(frozen=True, slots=True)
class Ask:
    """Have the task of a stage run it. `sent` or `done` says which of the two it came to."""

    stage: int


@dataclass(frozen=True, slots=True)
class RunHere:
    """Run a stage of this process in this thread."""

    stage: int


@dataclass(frozen=True, slots=True)
class RunBeside:
    """Run a stage of this process in a thread of its own: it may wait, and there is more to do meanwhile."""

    stage: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait for an answer, or for a stage that runs beside."""


@dataclass(frozen=True, slots=True)
class Finish:
    """The step is over, with all its results."""


@dataclass(frozen=True, slots=True)
class Fail:
    """The step was cancelled: raise the reason."""

    reason: errors.OpError


Action = Ask | RunHere | RunBeside | Wait | Finish | Fail
_WAIT, _FINISH = Wait(), Finish()


@dataclass(frozen=True, slots=True)
class StageRule:
    """What the machine knows of a stage."""

    #: the task that runs it; None for this process
    task: Hashable | None
    #: how many stages must be done before it starts, and which wait for it
    waits: int
    followers: Sequence[int]
    #: whether it may wait for something while it runs in this process
    blocks: bool = False
    #: whether its task keeps something for it until the whole step is over
    holds: bool = False
    #: whether it takes elements from queues, which nobody else gets unless they are given back
    takes: bool = False


class StepRules:
    """The stages of a program. They and the actions about them are the same in every step, so they are made once."""

    __slots__ = (
        "asks",
        "beside",
        "blocks",
        "first",
        "first_here",
        "followers",
        "here",
        "is_remote",
        "stages",
        "waits",
    )

    def __init__(self, stages: Sequence[StageRule]) -> None:
        self.stages = tuple(stages)
        # As lists: a step looks at these for each of its stages.
        self.waits = [stage.waits for stage in stages]
        self.is_remote = [stage.task is not None for stage in stages]
        self.blocks = [stage.blocks for stage in stages]
        self.followers = [tuple(stage.followers) for stage in stages]
        self.first = [i for i, stage in enumerate(stages) if not stage.waits and self.is_remote[i]]
        self.first_here = [i for i, stage in enumerate(stages) if not stage.waits and not self.is_remote[i]]
        count = range(len(stages))
        self.asks = [Ask(i) for i in count]
        self.here = [RunHere(i) for i in count]
        self.beside = [RunBeside(i) for i in count]


class StepMachine:
    """One step under way. All events but `cancel` come from one thread."""

    __slots__ = (
        "_ready",
        "_ready_here",
        "_rules",
        "_started",
        "_under_way",
        "_waits",
        "_whole",
        "holding",
        "reason",
    )

    def __init__(self, rules: StepRules, whole: StepMachine | None = None) -> None:
        """`whole` is the step that this one is an iteration in, if it is one."""
        self._rules = rules
        self._waits = rules.waits.copy()
        self._ready = rules.first.copy()  # stages of other tasks
        self._ready_here = rules.first_here.copy()
        self._under_way: set[int] = set()  # asked for, or running beside
        self._started: set[Hashable] = set()
        #: the tasks that keep something until the step is over; None while there are none
        self.holding: set[Hashable] | None = None
        self._whole = whole
        self.reason: errors.OpError | None = None

    def decide(self) -> Action:
        """The next action. It is to be carried out, and its event told, before the next call."""
        ready, local = self._ready, self._ready_here
        if self.reason is not None and (ready or local or self._under_way):
            return Fail(self.reason)  # a step with nothing left to do is done, cancelled or not
        # Other tasks first: they work while this process does its own share.
        if ready:
            return self._rules.asks[ready.pop(0)]
        if not local:
            return _WAIT if self._under_way else _FINISH
        stage = local.pop(0)
        if self._rules.blocks[stage] and (local or self._under_way):
            self._under_way.add(stage)
            return self._rules.beside[stage]
        return self._rules.here[stage]

    def sent(self, stage: int) -> None:
        """A task was asked to run a stage, or may have been: whatever happens now, it must hear of the end."""
        rule = self._rules.stages[stage]
        self._under_way.add(stage)
        self._started.add(rule.task)
        if rule.holds:
            whole = self._whole or self
            whole.holding = (whole.holding or set()) | {rule.task}

    def done(self, stage: int) -> None:
        """A stage has ended, wherever it ran: those that waited only for it are ready."""
        self._under_way.discard(stage)
        rules, waits = self._rules, self._waits
        for follower in rules.followers[stage]:
            waits[follower] -= 1
            if not waits[follower]:
                (self._ready if rules.is_remote[follower] else self._ready_here).append(follower)

    def cancel(self, reason: errors.OpError) -> list[Hashable]:
        """Ends the step, from any thread, and gives the tasks to tell. The first reason counts."""
        if self.reason is None:
            self.reason = reason
        return list(self._started)

    def failed(self) -> tuple[errors.OpError, list[Hashable]]:
        """The step has failed: gives the reason and the tasks that must hear of it. Nothing starts any more."""
        self._ready.clear()
        self._ready_here.clear()
        reason = self.reason or errors.CancelledError(
            None, None, "The step was cancelled by an earlier failure."
        )
        return reason, list(self._started)

    def late_answer(self, stage: int, succeeded: bool) -> bool:
        """A task answered after the failure. Gives whether it must put back what the stage took from queues."""
        self._under_way.discard(stage)
        return succeeded and self._rules.stages[stage].takes

    def error_to_raise(self, error: BaseException, forced: bool) -> BaseException:
        """The error for the caller of a step that failed with `error`; `forced` if its connections were cut to end it.

        Whoever cancelled the step gets the reason given, not the error that the cancelling caused.
        """
        if self.reason is not None and (forced or isinstance(error, errors.CancelledError)):
            return self.reason
        return error

    def over(self) -> set[Hashable]:
        """The step has ended, one way or the other: gives the tasks that keep something for it."""
        holding, self.holding = self.holding, None
        return holding or set()
