"""One stage on a server that leads a durable task: what it changes is committed with what it has come to.

A stage that waits is committed before it waits, and lets others run meanwhile. What its finished items have come to is
committed along, so that another server goes on behind them.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from tensorfleet.base import errors
from tensorfleet.cluster.durability.journal import Journal
from tensorfleet.cluster.durability.results import STAGE, RequestName, Result
from tensorfleet.runtime.scheduling.cooperative import CooperativeRun
from tensorfleet.state.queues import PutAttempt, TakeAttempt

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorfleet.runtime.engine import LocalEngine
    from tensorfleet.runtime.scheduling.items import Item
    from tensorfleet.runtime.scheduling.program import Program
    from tensorfleet.runtime.scheduling.step import ExecutionContext
    from tensorfleet.runtime.scheduling.threads import Pool
    from tensorfleet.runtime.values import Values
    from tensorfleet.state.queues import Attempt


class _ItemRun:
    """An item under way: what it has begun, and what was noted before it began."""

    def __init__(self, number: int, name: str, journal: Journal, progress: list[int]) -> None:
        self.number, self.name = number, name
        self.attempts: list[tuple[Any, Attempt]] = []
        self.progress = progress  # of the same attempts on a server that was lost
        self.changed = False  # whether a part of it was committed
        self.rebase(journal)

    def rebase(self, journal: Journal) -> None:
        """Counts from here: what was noted until now is committed, or is another stage's."""
        self.noted, self.resumable = journal.noted, journal.resumable

    def only_resumable(self, journal: Journal) -> bool:
        """Whether another server can go on in the middle of it."""
        return journal.noted - self.noted == journal.resumable - self.resumable


class StageRun:
    """One stage under way. Its thread holds the journal's lock, but while it waits."""

    def __init__(
        self,
        journal: Journal,
        request: RequestName,
        oldest: int,
        engine: LocalEngine,
        need: Callable[[], None],
    ) -> None:
        """`need` raises when this server does not lead any more."""
        self._journal = journal
        self._request = request
        self._oldest = oldest
        self._engine = engine
        self._need = need
        self._item: _ItemRun | None = None
        self._finished: list[tuple[RequestName, int, Result]] = []
        self._paused: dict[int, _ItemRun | None] = {}  # by thread
        self.changed = False

    # -- the lock -------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Takes the lock, which its holder keeps until its commit is over: as long as the guard takes to decide."""
        self._journal.lock.acquire()
        self._journal.current = self

    def end(self) -> None:
        """Gives the lock back."""
        self._journal.current = None
        self._journal.lock.release()

    def pause(self) -> None:
        """The stage waits: commits what has changed so far, and lets others run."""
        item = self._item
        try:
            if self._journal.has_changes():
                self._commit_part(item)
        finally:
            self._paused[threading.get_ident()], self._item = item, None
            self.end()

    def resume(self) -> None:
        """The stage goes on."""
        self.begin()
        self._item = self._paused.pop(threading.get_ident(), None)
        if self._item is not None:
            self._item.rebase(self._journal)
        self._need()

    def _commit_part(self, item: _ItemRun | None) -> None:
        finished, self._finished = self._finished, []
        if item is not None and self._journal.noted > item.noted:
            finished.append((self._request, item.number, self._unfinished(item)))
            item.changed = True
        self._commit(finished)

    def _unfinished(self, item: _ItemRun) -> Result:
        if not item.only_resumable(self._journal):
            return Result(item.name, unrepeatable=f"'{item.name}'")
        puts = [attempt.next for _, attempt in item.attempts if isinstance(attempt, PutAttempt)]
        return Result(item.name, progress=puts)

    def _commit(self, results: list[tuple[RequestName, int, Result]]) -> None:
        self.changed = True
        self._journal.commit(results, self._engine, self._request.session, self._oldest)

    def finish(self, outcome: Result | None) -> None:
        """The stage has ended: commits the rest. No outcome is kept of one that was cancelled: it may be asked again."""
        if self._item is not None:
            self._count_taken(self._item)
            self._item = None
        if outcome is None:
            if self._journal.has_changes():
                self._commit(self._finished)
        elif self.changed or self._journal.has_changes() or outcome.error is None:
            self._commit([(self._request, STAGE, outcome)])

    # -- the items ------------------------------------------------------------------------------------

    def run(self, program: Program, ctx: ExecutionContext, values: Values, pool: Pool) -> None:
        """Runs the items of a program."""
        if program.turn:
            CooperativeRun(program, ctx, values, pool.limit).run()
        elif not program.sequential:
            self.end()  # each item takes the lock for itself
            try:
                pool.run(program, ctx, values)
            finally:
                self.begin()
        elif ctx.trace is not None:
            for item in program.in_order:
                ctx.trace.run(item, ctx, values)
        elif program.inline:
            for item in program.work:
                item.run(ctx, values)
        else:
            for i, item in enumerate(program.work):
                self._run_item(item, i, ctx, values)

    def attempt(self, item: Item, i: int, ctx: ExecutionContext, values: Values) -> None:
        """Runs one of several items that run side by side."""
        self.begin()
        try:
            self._need()
            self._run_item(item, i, ctx, values)
            if self._journal.has_changes():
                finished, self._finished = self._finished, []
                self._commit(finished)
        finally:
            self._item = None
            self.end()

    def _run_item(self, item: Item, i: int, ctx: ExecutionContext, values: Values) -> None:
        known = self._journal.results.of_items(self._request).get(i)
        if known is not None:
            if known.name != item.name:
                raise errors.AbortedError(
                    None, None, f"The program of a step has changed at '{item.name}': run the step again."
                )
            known.raise_if_failed()
            if not known.progress:
                for slot, value in zip(known.slots, known.values, strict=True):
                    values[slot] = value
                return
        progress = [] if known is None else known.progress
        self._item = run = _ItemRun(i, item.name, self._journal, progress)
        before = values.copy()
        item.run(ctx, values)
        self._count_taken(run)
        self._item = None
        if run.changed or self._journal.noted > run.noted:
            slots = [n for n, value in enumerate(values) if value is not before[n]]
            result = Result(item.name, slots, [values[n] for n in slots]).sendable()
            self._finished.append((self._request, i, result))

    def attempted(self, queue: Any, attempt: Attempt) -> None:
        """An item begins an attempt. One that a lost server had begun goes on where it was."""
        if self._item is None:
            return
        if isinstance(attempt, PutAttempt):
            before = sum(isinstance(known, PutAttempt) for _, known in self._item.attempts)
            if before < len(self._item.progress):
                attempt.next = self._item.progress[before]
        self._item.attempts.append((queue, attempt))

    def _count_taken(self, item: _ItemRun) -> None:
        for queue, attempt in item.attempts:
            if isinstance(attempt, TakeAttempt) and attempt.done and attempt.error is None:
                self._journal.took(queue, attempt.taken)
