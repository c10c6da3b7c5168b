"""The decisions of one step over several tasks: which stage starts, what a failure means, when the step is over.

A state machine without sockets, threads or clocks. The driver (step_driver.py) tells it the events and carries out the
actions that it decides:

    events   sent(stage)      a task was asked to run a stage
             done(stage)      a stage has ended and its results are here
             failed()         a stage, a task or the deadline failed
             cancel(reason)   somebody ends the step from another thread
             late_answer()    a task answered after the step had failed
             lost(task)       a server of a durable task was lost, and another one goes on in its place
             undelivered(stage)    a stage could not send its results to a task that was lost
    actions  Ask, RunHere, RunBeside, Wait, Finish, Fail
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
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
    #: the stages whose results must be at its task: kept there, or sent there by other tasks
    needs: Sequence[int] = ()
    #: whether it may run twice in a step: it changes nothing, or its task remembers what came of it
    repeatable: bool = True


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
        "has_recovered",
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
        self.has_recovered = False
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
        # Stages that were repeated may have left values at any task.
        return (holding or set()) | (self._started if self.has_recovered else set())

    # -- durable tasks --------------------------------------------------------------------------------

    def lost(self, task: Hashable, is_forgotten: bool = True) -> set[int]:
        """A durable task was lost, and another server goes on; `is_forgotten` if that has none of the step's values.

        Gives the stages that run again, whose requests are of no use any more. Raises AbortedError when the step cannot go
        on, because one of them would change something a second time.
        """
        whole = self._whole or self
        if is_forgotten and whole.holding and task in whole.holding:
            raise errors.AbortedError(
                None,
                None,
                f"{_name(task)} was lost in the middle of a loop that keeps values there. Run the step again.",
            )
        stages = self._rules.stages
        again = {i for i in self._under_way if stages[i].task == task}
        if not is_forgotten:
            return self._repeat(again, task)
        over = self._over()
        due = [i for i, stage in enumerate(stages) if stage.task == task and i not in over]
        return self._repeat(self._with_sources(again, due), task)

    def undelivered(self, stage: int) -> set[int]:
        """A stage has failed because a durable task was lost that it sends results to. Otherwise like `lost`."""
        return self._repeat(self._with_sources({stage}, [stage]), None)

    def _over(self) -> set[int]:
        """The stages that are done."""
        unfinished = {*self._ready, *self._ready_here, *self._under_way}
        return {i for i, waits in enumerate(self._waits) if waits <= 0 and i not in unfinished}

    def _with_sources(self, again: set[int], due: Iterable[int]) -> set[int]:
        """`again`, with the stages that have run and whose results must be made once more for those that are `due`.

        A task lets its values of a step go after its last stage, so a stage that is repeated needs all of its own anew.
        """
        stages, begun = self._rules.stages, self._over() | self._under_way
        result, stack = set(again), [*due]
        while stack:
            for source in stages[stack.pop()].needs:
                if source in begun and source not in result:
                    result.add(source)
                    stack.append(source)
        return result

    def _repeat(self, again: set[int], lost: Hashable | None) -> set[int]:
        """Has some stages run again, after those that they wait for and that run again too."""
        rules, stages = self._rules, self._rules.stages
        for i in sorted(again):
            if not stages[i].repeatable:
                raise errors.AbortedError(None, None, _not_repeatable(lost, stages[i].task))
        over = self._over() - again
        self._under_way -= again
        self.has_recovered = True
        self.holding = self.holding or set()
        unfinished = [i for i in range(len(stages)) if i not in over and i not in self._under_way]
        for i in unfinished:
            self._waits[i] = 0
        for i, followers in enumerate(rules.followers):
            if i not in over:
                for follower in followers:
                    if follower not in over and follower not in self._under_way:
                        self._waits[follower] += 1
        ready = [i for i in unfinished if not self._waits[i]]
        self._ready = [i for i in ready if rules.is_remote[i]]
        self._ready_here = [i for i in ready if not rules.is_remote[i]]
        return again


def _name(task: Hashable) -> str:
    return str(getattr(task, "name", task))


def _not_repeatable(lost: Hashable | None, changed: Hashable | None) -> str:
    what = "A task" if lost is None else _name(lost)
    where = "this process" if changed is None else _name(changed)
    return (
        f"{what} was lost in the middle of a step that changed something in {where}, which cannot be done again. Run the "
        "step again."
    )
