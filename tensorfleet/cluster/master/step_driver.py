"""One step over several tasks: sends the stages that the machine (step_machine.py) starts, and waits for the answers.

The sockets, threads and clocks of a step are here; what is decided about it is there.
"""

from __future__ import annotations

import contextlib
import itertools
import queue
import select
import socket
import threading
import time
from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

from tensorfleet.base import errors
from tensorfleet.base.platform.exit_threads import beside
from tensorfleet.cluster import messages
from tensorfleet.cluster.master.cluster_program import ClusterProgram, StageProgram
from tensorfleet.cluster.master.distributed_while import DividedLoop
from tensorfleet.cluster.master.slow_steps import awaited
from tensorfleet.cluster.master.step_machine import (
    Ask,
    Finish,
    RunBeside,
    RunHere,
    StepMachine,
    Wait,
)
from tensorfleet.cluster.master.step_recovery import StepRecovery
from tensorfleet.cluster.master.step_tracing import StepTracing
from tensorfleet.cluster.messages import FAILED, RUN
from tensorfleet.cluster.transport import wire
from tensorfleet.cluster.transport.peers import Peer, failure
from tensorfleet.cluster.transport.wire_dtype import full, thin
from tensorfleet.runtime.devices import collect_jax_garbage

if TYPE_CHECKING:
    from tensorfleet.cluster.master.master import ClusterEngine
    from tensorfleet.runtime.trace import StepObserver

SETTLING_SECONDS = 2.0  # how long the rest of a failed step may take to stop


class StepDriver:
    """One step under way."""

    __slots__ = (
        "__weakref__",
        "_bell",
        "_contexts",
        "_finished",
        "_forced",
        "_how",
        "_over",
        "_thread_of",
        "_threads",
        "_tracing",
        "asked",
        "began_at",
        "collector",
        "deadline",
        "engine",
        "iterations",
        "machine",
        "number",
        "program",
        "recovery",
        "sent_fixed",
        "values",
        "whole",
    )

    def __init__(
        self,
        engine: ClusterEngine,
        program: ClusterProgram,
        number: int,
        deadline: float | None,
        collector: StepObserver | None,
        whole: StepDriver | None = None,
        sent: set[StageProgram] | None = None,
        again: bool = False,
    ) -> None:
        self.engine = engine
        #: the stages whose fixed values have been sent since the loop began that this is an iteration of
        self.sent_fixed = sent
        self._how = messages.AGAIN if again else 0
        self._tracing = None
        if collector is not None:
            self._tracing = StepTracing(engine.handle, number, program, collector)
            self._how |= self._tracing.how
        #: the step that this one is an iteration in, None for a whole step: with itself in it, it would outlive its use,
        #: and its arrays with it
        self.whole = whole
        self.machine: StepMachine = StepMachine(program.rules, None if whole is None else whole.machine)
        self.iterations: itertools.count[int] | None = None
        self.program = program
        self.number = number
        self.deadline = deadline
        #: of a step of durable tasks; few others need to look at it
        self.recovery = None if program.durable is None else StepRecovery(self, program.durable, whole)
        self.began_at = time.monotonic()
        self.collector = collector
        self.values: list[Any] = []
        self.asked: dict[int, tuple[int, Peer, wire.Channel]] = {}  # by file descriptor
        self._contexts: list[Any] = []
        self._threads = 0
        # Most steps need no thread: these are made for the first one.
        self._finished: queue.SimpleQueue[tuple[int, Any]] | None = None
        self._bell: tuple[socket.socket, socket.socket] | None = None
        self._over = self._forced = False
        self._thread_of = threading.get_ident()

    def go(self, feeds: Sequence[Any]) -> list[Any]:
        """Runs the step and returns the fetched values."""
        program = self.program
        values = self.values = program.template.copy()
        for slot, value in zip(program.feeds, feeds, strict=True):
            values[slot] = value
        machine = self.machine
        decide = machine.decide
        try:
            while True:
                action = decide()
                if isinstance(action, RunHere):
                    self._done(action.stage, self.local(action.stage))
                elif isinstance(action, Ask):
                    self._start(action.stage)
                elif isinstance(action, Finish):
                    return [values[s] for s in program.fetches]
                elif isinstance(action, Wait):
                    self._wait()
                elif isinstance(action, RunBeside):
                    self._run_beside(action.stage)
                else:
                    raise action.reason
        except BaseException as e:
            raise self._failed(e) from None
        finally:
            self._over = True
            if machine.holding is not None or self._bell is not None:
                self._release()

    def _release(self) -> None:
        """Tells the tasks that keep something for the step that it is over, and closes what threads wake it by."""
        self._tell(self.machine.over(), "The step is over.")
        if self._bell is not None:
            for end in self._bell:
                end.close()

    def inner(self, program: ClusterProgram, feeds: Sequence[Any], sent: set[StageProgram]) -> list[Any]:
        """Runs an iteration of a loop, which ends with this step; `sent` is the same for all of them."""
        whole = self.whole or self
        if whole.iterations is None:
            whole.iterations = itertools.count(1)
        number = next(whole.iterations) * (messages.WHOLE_STEP + 1) + whole.number
        step = StepDriver(self.engine, program, number, self.deadline, self.collector, whole, sent)
        self.began(step)
        try:
            with contextlib.nullcontext() if step._tracing is None else step._tracing.iteration(number):
                return step.go(feeds)
        finally:
            self._contexts.remove(step)

    def cancel(self, reason: errors.OpError) -> None:
        """Ends the step from another thread."""
        tasks = self.machine.cancel(reason)
        for ctx in list(self._contexts):
            ctx.cancel(reason)
        self._tell(tasks, str(reason.message))

    def end(self, limit: float) -> None:
        """Waits until the step, which was cancelled, has ended; then ends the connections that hold it up."""
        if self._thread_of == threading.get_ident():
            return
        while not self._over and time.monotonic() < limit:
            time.sleep(0.005)
        self.force()

    def force(self) -> None:
        """Ends the connections that the step waits on."""
        self._forced = True
        for ctx in list(self._contexts):
            if isinstance(ctx, StepDriver):
                ctx.force()
        for _, _, channel in list(self.asked.values()):
            channel.shut()

    # -- starting -------------------------------------------------------------------------------------

    def _start(self, i: int) -> None:
        """Has a task run a stage, unless what the stage gives need not be asked for."""
        work = self.program.work[i]
        if work.is_empty:
            self._done(i, ())
            return
        if work.posted is not None:
            if self._tracing is None:
                values = work.posted.read(self.engine.handle, self.deadline)
            else:
                values = self._tracing.shared_read(work, self.engine.handle, self.deadline)
            if values is not None:
                self._done(i, values)
                return
        self._ask(i, work)

    def left(self) -> int:
        """Milliseconds until the deadline, 0 when there is none."""
        if self.deadline is None:
            return 0
        remaining = int((self.deadline - time.monotonic()) * 1000)
        if remaining <= 0:
            raise self._late()
        return remaining

    def _ask(self, i: int, work: StageProgram) -> None:
        at = work.peer
        assert at is not None
        values = self.values
        remaining = 0 if self.deadline is None else self.left()
        self.machine.sent(i)
        total, oldest = work.total, 0
        if self.recovery is None:
            channel = at.acquire(self.deadline)
        else:
            channel = self.recovery.acquire(self, at)
            if self.recovery.is_behind(self, at):
                at.release(channel)
                self.recovery.catch_up(self, at)
                return
            total, oldest = self.recovery.about(work)
        fields = messages.Run.pack(
            self.engine.handle, self.number, work.number, total, remaining, self._how, oldest
        )
        fd = channel.fileno()
        self.asked[fd] = i, at, channel
        try:
            inputs = [values[s] for s in work.ins]
            cached = self._sent_before(work) if work.fixed else ()
            for n, name in work.thin.items():
                if n not in cached:
                    inputs[n] = thin(inputs[n], self.engine.wire, f"'{name}' to {at.name}")
            if cached:
                inputs = [value for n, value in enumerate(inputs) if n not in cached]
            if self.deadline is not None:
                channel.sock.settimeout(self.left() / 1000)
            if self._tracing is None:
                channel.send(RUN, fields, inputs)
            else:
                self._tracing.send(i, work, channel, fields, inputs, cached)
            channel.after = work.number
        except TimeoutError:
            late = self._late()
            self.drop(fd)
            raise late from None
        except OSError as e:
            self.drop(fd)
            self._lost(at, at.lost(e))
        except BaseException:
            self.drop(fd)
            raise

    def _sent_before(self, work: StageProgram) -> Collection[int]:
        """Positions of the values that an earlier iteration has sent, and that cannot have changed since."""
        assert self.sent_fixed is not None
        if work in self.sent_fixed:
            return work.fixed
        self.sent_fixed.add(work)
        return ()

    def _lost(self, at: Peer, error: errors.OpError) -> None:
        """A task was lost under a request: a durable one has another server, any other ends the step."""
        if self.recovery is None:
            raise error from None
        self.recovery.lost(self, at, error)

    def drop(self, fd: int) -> None:
        """Ends a request whose answer is of no use any more."""
        _, at, channel = self.asked.pop(fd)
        at.drop(channel)

    def local(self, i: int) -> Sequence[Any]:
        """Runs a stage of this process."""
        work = self.program.work[i]
        values = self.values
        if isinstance(work.program, DividedLoop):
            return work.program.run(self)
        engine = self.engine.local_engine
        assert engine is not None  # or the stage would be another task's
        return engine.run(
            work.program,
            [values[s] for s in work.ins],
            0 if self.deadline is None else self.left(),
            self.collector,
            self.began,
        )

    def began(self, ctx: Any) -> None:
        """Notes a part of the step that can be cancelled."""
        self._contexts.append(ctx)
        reason = self.machine.reason
        if reason is not None:
            ctx.cancel(reason)

    def _run_beside(self, i: int) -> None:
        """Runs a stage of this process in a thread of its own."""
        if self._bell is None or self._finished is None:
            self._bell, self._finished = socket.socketpair(), queue.SimpleQueue()
        bell, finished = self._bell[1], self._finished

        def attempt() -> None:
            try:
                result: Any = self.local(i)
            except BaseException as e:
                result = e
            finished.put((i, result))
            with contextlib.suppress(OSError):  # nobody waits for a step that has failed meanwhile
                bell.send(b"\0")

        self._threads += 1
        beside(attempt, (), f"tensorfleet-stage-{i}")

    def _done(self, i: int, results: Sequence[Any]) -> None:
        work = self.program.work[i]
        values = self.values
        last = self.program.last[i]
        for slot in last:
            values[slot] = None
        if last:
            collect_jax_garbage()
        for slot, value in zip(work.outs, results, strict=True):
            values[slot] = value
        self.machine.done(i)

    # -- waiting --------------------------------------------------------------------------------------

    def _wait(self) -> None:
        """Waits for at least one answer and takes in those that have come."""
        if len(self.asked) == 1 and not self._threads:
            (only,) = self.asked
            self._answer(only)
            return
        poll = select.poll()
        for fd, (_, _, channel) in self.asked.items():
            if channel.buffered:
                self._answer(fd)
                return
            poll.register(fd, select.POLLIN)
        if self._bell is not None:
            poll.register(self._bell[0].fileno(), select.POLLIN)
        for fd, _ in self._poll(poll) if self._tracing is None else self._seen_poll(poll):
            if fd in self.asked:
                self._answer(fd)
            elif self._bell is not None and fd == self._bell[0].fileno():  # else it was dropped meanwhile
                self._collect()

    def _poll(self, poll: select.poll) -> list[tuple[int, int]]:
        events = wire.busy_wait(lambda: poll.poll(0) or None)
        while not events:
            events = poll.poll(self.left() if self.deadline is not None else 1000)
        return events

    def _seen_poll(self, poll: select.poll) -> list[tuple[int, int]]:
        assert self._tracing is not None
        with self._tracing.waiting_for(at for _, at, _ in self.asked.values()):
            return self._poll(poll)

    def _answer(self, fd: int) -> None:
        i, at, channel = self.asked[fd]
        remaining = self.left()
        try:
            if self.deadline is not None:
                channel.sock.settimeout(remaining / 1000)
            frame = at.answer(channel) if self._tracing is None else self._tracing.answer(i, at, channel)
            if self.deadline is not None:
                channel.sock.settimeout(None)
        except TimeoutError:
            raise self._late() from None
        except OSError as e:
            self.drop(fd)
            self._lost(at, at.lost(e))
            return
        except errors.OpError as e:
            self.drop(fd)
            self._lost(at, e)
            return
        del self.asked[fd]
        if frame.kind == FAILED:
            error = failure(frame)
            if self.recovery is not None and self.recovery.refused(self, i, at, channel, error):
                return  # by a server that is not the one to ask: the stage will be asked for again
            at.release(channel)
            raise self._located(error)
        at.release(channel)
        if self.recovery is not None:
            self.recovery.answered(at)
        if self._tracing is not None:
            self._tracing.answered(i, self.program.work[i], channel, frame)
        elif frame.fields:
            self._told(at, frame)
        for n in self.program.work[i].full:
            frame.tensors[n] = full(frame.tensors[n])
        self._done(i, frame.tensors)

    def _told(self, at: Peer, frame: wire.Frame) -> None:
        """Takes in what an answer tells besides results: a step that is not measured has not asked for it."""

    def _collect(self) -> None:
        assert self._bell is not None and self._finished is not None
        self._bell[0].recv(1)
        i, result = self._finished.get_nowait()
        self._threads -= 1
        if isinstance(result, BaseException):
            raise result
        self._done(i, result)

    # -- failing --------------------------------------------------------------------------------------

    def _late(self) -> errors.OpError:
        waiting = [self._awaited(i, at) for i, at, _ in self.asked.values()]
        text = (
            f"Timed out waiting for {' and '.join(waiting)}."
            if waiting
            else "Timed out: the step took too long."
        )
        return errors.DeadlineExceededError(
            None,
            None,
            f"{text} Raise timeout_in_ms of tf.RunOptions (or operation_timeout_in_ms of tf.ConfigProto), or see what it "
            "waits for.",
        )

    def _awaited(self, i: int, at: Peer) -> str:
        """A task that has not answered, with the queues that it may wait for."""
        queues = ", ".join(awaited(self.program.work[i].stage.ops))
        return f"{queues} of {at.name}" if queues else at.name

    def _located(self, error: errors.OpError) -> errors.OpError:
        """An error of another task, with the operation of this graph it is about."""
        name = error.remote_op
        op = self.engine.graph._by_name.get(name) if name else None
        if op is not None:
            error._op = op
        return error

    def _failed(self, error: BaseException) -> BaseException:
        """Stops what is still running for this step everywhere, and gives the error to raise."""
        reason, tasks = self.machine.failed()
        for ctx in self._contexts:
            ctx.cancel(reason)
        self._tell(tasks, reason.message)
        self._settle()
        return self.machine.error_to_raise(error, self._forced)

    def _tell(self, tasks: Iterable[Hashable], why: str) -> None:
        """Tells tasks that the step is over, or was given up."""
        for at in cast("Iterable[Peer]", tasks):
            if at.gone:  # and the step with it: to ask would only take time
                continue
            try:
                at.call(messages.Cancel(self.engine.handle, self.number, why), time.monotonic() + 1.0)
            except errors.OpError:
                continue  # it is gone, and the step with it

    def _settle(self) -> None:
        """Waits a little for the answers that are still due, so that their connections can be used again."""
        limit = time.monotonic() + SETTLING_SECONDS
        for i, at, channel in self.asked.values():
            try:
                channel.sock.settimeout(max(limit - time.monotonic(), 0.01))
                if self.machine.late_answer(i, channel.receive().kind == messages.OK):
                    channel.say(messages.Return())  # it came too late to be of use
                    channel.receive()
                channel.sock.settimeout(None)
                at.release(channel)
            except (OSError, errors.OpError):
                at.drop(channel)
        self.asked.clear()
        while self._threads and self._finished is not None and time.monotonic() < limit:
            try:
                self._finished.get(timeout=max(limit - time.monotonic(), 0.01))
            except queue.Empty:
                break
            self._threads -= 1
