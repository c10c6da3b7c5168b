"""One step over several tasks: start the stages that can start, run one's own share, wait for the others' answers."""

from __future__ import annotations

import contextlib
import itertools
import queue
import select
import socket
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from tensorfleet.base import errors
from tensorfleet.base.platform.exit_threads import beside
from tensorfleet.cluster import messages
from tensorfleet.cluster.master.shared_memory_reads import Posted
from tensorfleet.cluster.master.slow_steps import awaited
from tensorfleet.cluster.messages import FAILED, RUN
from tensorfleet.cluster.transport import wire
from tensorfleet.cluster.transport.peers import Peer, failure
from tensorfleet.cluster.transport.wire_dtype import full, thin
from tensorfleet.graph.operation import Tensor
from tensorfleet.passes.partition import MASTER, Stage
from tensorfleet.passes.plan import Plan
from tensorfleet.runtime.devices import collect_jax_garbage

SETTLING_SECONDS = 2.0  # how long the rest of a failed step may take to stop


class Work:
    """One stage as the master runs it: a local program, or a number that a peer knows."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.peer: Peer | None = None
        self.number = 0
        self.program: Any = None
        self.ins: list[int] = []
        self.outs: list[int] = []
        self.total = 1
        #: positions of the values to send in 16 bits, with their names, and of those that come so
        self.thin: dict[int, str] = {}
        self.full: list[int] = []
        self.followers: list[int] = []
        self.waits = 0
        #: positions of the values that are the same in every iteration of the loop it is in: the peer keeps them
        self.fixed: frozenset[int] = frozenset()
        #: whether the peer keeps handles or values of this stage until the whole step is over
        self.holds = False
        #: whether it only follows others, with nothing to do then
        self.is_empty = False
        #: where it is read without asking the peer, if it only reads
        self.posted: Posted | None = None
        self.takes = any(op.type.startswith("QueueDequeue") for op in stage.ops)


class ClusterProgram:
    """What one combination of fetches and feeds runs, over all tasks."""

    def __init__(self, plan: Plan, work: list[Work], slots: dict[Tensor, int]) -> None:
        self.plan = plan
        self.work = work
        self.template: list[Any] = [None] * len(slots)
        for tensor, slot in slots.items():
            if tensor in plan.constants:
                self.template[slot] = plan.constants[tensor]
        self.feeds = [slots[t] for t in plan.feeds]
        self.fetches = [slots[t] for t in plan.fetches]
        self.waits = [w.waits for w in work]
        self.first = [i for i, n in enumerate(self.waits) if not n]
        self.last = _last_uses(work, self.fetches)
        #: whether all of it is the work of one other task, which is given nothing and gives nothing back
        self.elsewhere = len(work) == 1 and work[0].peer is not None and not (work[0].ins or work[0].outs)


def _last_uses(work: list[Work], fetches: list[int]) -> list[list[int]]:
    """For each stage the slots whose values nobody else needs, so that they can be let go when it is done."""
    users = Counter(slot for w in work for slot in w.ins)
    if any(w.stage.task == MASTER for w in work):  # a loop looks for what it needs itself
        return [[] for _ in work]
    return [[slot for slot in w.ins if users[slot] == 1 and slot not in fetches] for w in work]


class Run:
    """One step under way."""

    def __init__(
        self,
        engine: Any,
        program: ClusterProgram,
        number: int,
        deadline: float | None,
        collector: Any,
        whole: Run | None = None,
        sent: set[Work] | None = None,
        again: bool = False,
    ) -> None:
        self.engine = engine
        #: whose fixed values have been sent since the loop began that this is an iteration of
        self._sent = sent
        self._how = (messages.TRACED if collector is not None else 0) | (messages.AGAIN if again else 0)
        #: the step that this one is an iteration in, None for a whole step: with itself in it, it would outlive its use,
        #: and its arrays with it
        self._whole = whole
        self._iterations = itertools.count(1)
        self._holding: set[Peer] = set()
        self.program = program
        self.number = number
        self.deadline = deadline
        self.collector = collector
        self.reason: errors.OpError | None = None
        self.values: list = []
        self._waits: list[int] = []
        self._ready: list[int] = []
        self._asked: dict[int, tuple[int, Peer, wire.Channel]] = {}  # by file descriptor
        self._started: set[Peer] = set()
        self._contexts: list[Any] = []
        self._threads = 0
        self._finished: queue.SimpleQueue = queue.SimpleQueue()
        self._bell: tuple[socket.socket, socket.socket] | None = None
        self._over = self._forced = False
        self._thread_of = threading.get_ident()

    def go(self, feeds: Sequence[Any]) -> list:
        """Runs the step and returns the fetched values."""
        program = self.program
        values = self.values = program.template.copy()
        for slot, value in zip(program.feeds, feeds, strict=True):
            values[slot] = value
        self._waits = program.waits.copy()
        self._ready = program.first.copy()
        try:
            while True:
                self._start()
                if self._ready:
                    continue  # what others have been asked for may wait for it
                if not self._asked and not self._threads:
                    break
                self._wait()
        except BaseException as e:
            raise self._failed(e) from None
        finally:
            self._over = True
            self._let_go()
            if self._bell is not None:
                for end in self._bell:
                    end.close()
        return [values[s] for s in program.fetches]

    def inner(self, program: ClusterProgram, feeds: Sequence[Any], sent: set[Work]) -> list:
        """Runs an iteration of a loop, which ends with this step; `sent` is the same for all of them."""
        whole = self._whole or self
        number = next(whole._iterations) * (messages.WHOLE_STEP + 1) + whole.number
        run = Run(self.engine, program, number, self.deadline, self.collector, whole, sent)
        self._began(run)
        try:
            return run.go(feeds)
        finally:
            self._contexts.remove(run)

    def cancel(self, reason: errors.OpError) -> None:
        """Ends the step from another thread."""
        if self.reason is None:
            self.reason = reason
        for ctx in list(self._contexts):
            ctx.cancel(reason)
        self._cancel_remote(str(reason.message))

    def end(self, limit: float) -> None:
        """Waits until the step, which was cancelled, has ended; then ends the connections that hold it up."""
        if self._thread_of == threading.get_ident():
            return
        while not self._over and time.monotonic() < limit:
            time.sleep(0.005)
        self._force()

    def _force(self) -> None:
        self._forced = True
        for ctx in list(self._contexts):
            if isinstance(ctx, Run):
                ctx._force()
        for _, _, channel in list(self._asked.values()):
            channel.shut()

    # -- starting -------------------------------------------------------------------------------------

    def _start(self) -> None:
        """Sends what others are to do, then does one's own. What is done stays done, cancelled or not."""
        if self.reason is not None and (self._ready or self._asked or self._threads):
            raise self.reason
        work = self.program.work
        ready, self._ready = self._ready, []
        own = []
        for i in ready:
            if work[i].peer is None:
                own.append(i)
            elif (seen := self._seen(work[i])) is not None:
                self._done(i, seen)
            else:
                self._ask(i, work[i])
        for n, i in enumerate(own):
            alone = not self._asked and not self._threads and n == len(own) - 1
            if work[i].program.inline or alone:
                self._done(i, self._local(i))
            else:
                self._thread(i)

    def _seen(self, work: Work) -> list | None:
        """What a stage gives that need not be asked for."""
        if work.is_empty:
            return []
        if work.posted is None or self.collector is not None:
            return None
        return work.posted.read(self.engine.handle, self.deadline)

    def _left(self) -> int:
        """Milliseconds until the deadline, 0 when there is none."""
        if self.deadline is None:
            return 0
        left = int((self.deadline - time.monotonic()) * 1000)
        if left <= 0:
            raise self._late()
        return left

    def _ask(self, i: int, work: Work) -> None:
        at = work.peer
        assert at is not None
        values = self.values
        asked = messages.Run(
            self.engine.handle, self.number, work.number, work.total, self._left(), self._how
        )
        self._started.add(at)
        if work.holds:
            (self._whole or self)._holding.add(at)
        channel = at.acquire(self.deadline)
        fd = channel.fileno()
        self._asked[fd] = i, at, channel
        try:
            given = [values[s] for s in work.ins]
            there = self._sent_before(work) if work.fixed else ()
            for n, name in work.thin.items():
                if n not in there:
                    given[n] = thin(given[n], self.engine.wire, f"'{name}' to {at.name}")
            if there:
                given = [value for n, value in enumerate(given) if n not in there]
            if self.deadline is not None:
                channel.sock.settimeout(self._left() / 1000)
            channel.send(RUN, asked.encode(), given)
            channel.after = work.number
        except TimeoutError:
            late = self._late()
            self._drop(fd)
            raise late from None
        except OSError as e:
            self._drop(fd)
            raise at.lost(e) from None
        except BaseException:
            self._drop(fd)
            raise

    def _sent_before(self, work: Work) -> Collection[int]:
        """Positions of the values that an earlier iteration has sent, and that cannot have changed since."""
        assert self._sent is not None
        if work in self._sent:
            return work.fixed
        self._sent.add(work)
        return ()

    def _drop(self, fd: int) -> None:
        _, at, channel = self._asked.pop(fd)
        at.drop(channel)

    def _local(self, i: int) -> list:
        work = self.program.work[i]
        values = self.values
        if work.stage.task == MASTER:
            return work.program.run(self)
        return self.engine._engine.run(
            work.program,
            [values[s] for s in work.ins],
            self._left(),
            self.collector,
            self._began,
        )

    def _began(self, ctx: Any) -> None:
        self._contexts.append(ctx)
        if self.reason is not None:
            ctx.cancel(self.reason)

    def _thread(self, i: int) -> None:
        """Runs a local stage that may wait beside the others."""
        if self._bell is None:
            self._bell = socket.socketpair()
        bell = self._bell[1]

        def attempt() -> None:
            try:
                result: Any = self._local(i)
            except BaseException as e:
                result = e
            self._finished.put((i, result))
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
        waits = self._waits
        for follower in work.followers:
            waits[follower] -= 1
            if not waits[follower]:
                self._ready.append(follower)

    # -- waiting --------------------------------------------------------------------------------------

    def _wait(self) -> None:
        """Waits for at least one answer and takes in those that have come."""
        if len(self._asked) == 1 and not self._threads:
            (only,) = self._asked
            self._answer(only)
            return
        poll = select.poll()
        for fd, (_, _, channel) in self._asked.items():
            if channel.buffered:
                self._answer(fd)
                return
            poll.register(fd, select.POLLIN)
        if self._bell is not None:
            poll.register(self._bell[0].fileno(), select.POLLIN)
        for fd, _ in self._poll(poll):
            if fd in self._asked:
                self._answer(fd)
            else:
                self._collect()

    def _poll(self, poll: select.poll) -> list:
        found = wire.watchfully(lambda: poll.poll(0) or None)
        while not found:
            found = poll.poll(self._left() if self.deadline is not None else 1000)
        return found

    def _answer(self, fd: int) -> None:
        i, at, channel = self._asked[fd]
        left = self._left()
        try:
            if self.deadline is not None:
                channel.sock.settimeout(left / 1000)
            frame = at.answer(channel)
            if self.deadline is not None:
                channel.sock.settimeout(None)
        except TimeoutError:
            raise self._late() from None
        except OSError as e:
            self._drop(fd)
            raise at.lost(e) from None
        except errors.OpError:
            self._drop(fd)
            raise
        del self._asked[fd]
        at.release(channel)
        if frame.kind == FAILED:
            raise self._told(failure(frame))
        if frame.fields and self.collector is not None:
            self.collector.add(frame.read(messages.Ran).events or ())
        for n in self.program.work[i].full:
            frame.tensors[n] = full(frame.tensors[n])
        self._done(i, frame.tensors)

    def _collect(self) -> None:
        assert self._bell is not None
        self._bell[0].recv(1)
        i, result = self._finished.get_nowait()
        self._threads -= 1
        if isinstance(result, BaseException):
            raise result
        self._done(i, result)

    # -- failing --------------------------------------------------------------------------------------

    def _late(self) -> errors.OpError:
        waiting = [self._awaited(i, at) for i, at, _ in self._asked.values()]
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
        found = ", ".join(awaited(self.program.work[i].stage.ops))
        return f"{found} of {at.name}" if found else at.name

    def _told(self, error: errors.OpError) -> errors.OpError:
        """An error of another task, with the operation of this graph it is about."""
        name = getattr(error, "remote_op", None)
        op = self.engine.graph._by_name.get(name) if name else None
        if op is not None:
            error._op = op
        return error

    def _failed(self, error: BaseException) -> BaseException:
        """Stops what is still running for this step everywhere, and gives the error to raise."""
        reason = self.reason or errors.CancelledError(
            None, None, "The step was cancelled by an earlier failure."
        )
        for ctx in self._contexts:
            ctx.cancel(reason)
        self._cancel_remote(reason.message)
        self._settle()
        if self.reason is not None and (self._forced or isinstance(error, errors.CancelledError)):
            return self.reason
        return error

    def _let_go(self) -> None:
        """Tells those who keep handles for this step that it is over."""
        holding, self._holding = self._holding, set()
        self._tell(holding, "The step is over.")

    def _cancel_remote(self, why: str) -> None:
        self._tell(list(self._started), why)

    def _tell(self, peers: Iterable[Peer], why: str) -> None:
        for at in peers:
            if at.gone:  # and the step with it: to ask would only take time
                continue
            try:
                at.call(messages.Cancel(self.engine.handle, self.number, why), time.monotonic() + 1.0)
            except errors.OpError:
                continue  # it is gone, and the step with it

    def _settle(self) -> None:
        limit = time.monotonic() + SETTLING_SECONDS
        for i, at, channel in self._asked.values():
            try:
                channel.sock.settimeout(max(limit - time.monotonic(), 0.01))
                if channel.receive().kind == messages.OK and self.program.work[i].takes:
                    channel.say(messages.Return())  # it came too late to be of use
                    channel.receive()
                channel.sock.settimeout(None)
                at.release(channel)
            except (OSError, errors.OpError):
                at.drop(channel)
        self._asked.clear()
        while self._threads and time.monotonic() < limit:
            try:
                self._finished.get(timeout=max(limit - time.monotonic(), 0.01))
            except queue.Empty:
                break
            self._threads -= 1
