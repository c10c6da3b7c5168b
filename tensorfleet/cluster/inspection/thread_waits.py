"""What the frames of a thread say: the step it is in, and what it waits for.

Nothing is recorded for this while steps run. The functions in which steps run and wait are known by their code, and the
local variables of their frames have the rest.
"""

from __future__ import annotations

import functools
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any, TypeAlias

from tensorfleet.base.platform.thread_frames import is_users
from tensorfleet.cluster.master.slow_steps import awaited
from tensorfleet.cluster.master.step_driver import StepDriver
from tensorfleet.cluster.server import Server
from tensorfleet.cluster.transport.peers import Peer
from tensorfleet.cluster.worker.short_requests import ShortRequests
from tensorfleet.cluster.worker.worker import Worker
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.runtime.engine import LocalEngine
from tensorfleet.runtime.scheduling.host_ops import HostItem
from tensorfleet.runtime.scheduling.step import ExecutionContext
from tensorfleet.runtime.scheduling.threads import Pool
from tensorfleet.runtime.segments.compiled import Compiler
from tensorfleet.runtime.segments.segment_item import SegmentItem
from tensorfleet.runtime.variable_packs import WriterLocks

_LIBRARY = (threading.__file__, queue.__file__)
_MAX_FETCHES = 3  # named of a step

_Locals: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ThreadWait:
    """What a thread waits for, and since when by the steady clock; 0 where nobody knows."""

    what: str
    began: float = 0.0


@dataclass(frozen=True, slots=True)
class Doing:
    """What a thread does for a step."""

    step: str | None = None
    op: str | None = None
    wait: ThreadWait | None = None

    def described(self) -> str | None:
        """The step in words, None outside of one."""
        if self.step is None or self.op is None:
            return self.step or self.op
        return f"{self.step}, in {self.op}"


def doing(frames: Sequence[FrameType]) -> Doing:
    """What the frames of a thread say, outermost first. The innermost of a kind counts."""
    step = op = wait = None
    for frame in frames:
        code = frame.f_code
        step = _say(_steps(), code, frame) or step
        op = _say(_ops(), code, frame) or op
        here: ThreadWait | None = _say(_waits(), code, frame)
        # An event or a condition inside of a wait that is known says less than that.
        if here is not None and not (wait is not None and code.co_filename.startswith(_LIBRARY)):
            wait = here
    return Doing(step, op, wait)


def _say(table: Mapping[CodeType, Callable[[_Locals], Any]], code: CodeType, frame: FrameType) -> Any:
    say = table.get(code)
    if say is None:
        return None
    try:
        return say(frame.f_locals)
    except (AttributeError, KeyError, IndexError, RuntimeError, TypeError):  # the thread goes on meanwhile
        return None


def named(fetches: Sequence[Tensor], targets: Sequence[Operation]) -> str:
    """A step by what it fetches."""
    names = [t.name for t in fetches] + [op.name for op in targets]
    more = f" and {len(names) - _MAX_FETCHES} more" if len(names) > _MAX_FETCHES else ""
    return ", ".join(names[:_MAX_FETCHES]) + more if names else "nothing"


@functools.cache
def _steps() -> dict[CodeType, Callable[[_Locals], str]]:
    return {
        LocalEngine.run.__code__: _local_step,
        StepDriver.go.__code__: _cluster_step,
        Worker.run.__code__: lambda at: (
            f"step {at['number']} of session {at['handle'][:8]}, stage {at['stage_id']}"
        ),
    }


def _local_step(at: _Locals) -> str:
    plan = at["program"].plan
    return f"step that fetches {named(plan.fetches, plan.targets)}"


def _cluster_step(at: _Locals) -> str:
    driver = at["self"]
    plan = driver.program.plan
    return f"step {driver.number} of session {driver.engine.handle[:8]}, which fetches {named(plan.fetches, plan.targets)}"


@functools.cache
def _ops() -> dict[CodeType, Callable[[_Locals], str]]:
    return {
        HostItem.run.__code__: lambda at: _op(at["self"].op),
        SegmentItem.run.__code__: lambda at: (
            f"'{at['self'].name}' and {len(at['self'].segment.steps)} operations as one"
        ),
    }


def _op(op: Operation) -> str:
    file = op.source_line.rpartition(":")[0]
    # An operation that another task sent has the line of the thread that took it in.
    line = f", made at {op.source_line}" if file and is_users(file) else ""
    return f"'{op.name}' ({op.type}{line})"


@functools.cache
def _waits() -> dict[CodeType, Callable[[_Locals], ThreadWait]]:
    """Functions that wait; those of Python's library too, for the user's own threads."""
    return {
        ExecutionContext.wait.__code__: lambda at: ThreadWait(_after_for(at["what"])),
        # Inside of `wait`, with the time at which it began.
        ExecutionContext._comes.__code__: _resource,  # noqa: SLF001 - the code alone, to compare with
        StepDriver._wait.__code__: _answers,  # noqa: SLF001
        StepDriver._answer.__code__: _answer,  # noqa: SLF001
        Worker._await.__code__: lambda at: ThreadWait(  # noqa: SLF001
            f"values that other tasks send: {', '.join(n for n in at['names'] if n not in at['step'].values)}"
        ),
        Worker._push.__code__: lambda at: ThreadWait(f"{at['to'].name} to take values"),  # noqa: SLF001
        Peer.call_for.__code__: lambda at: ThreadWait(
            f"an answer of {at['self'].name} ({at['self'].address})"
        ),
        Peer._connect.__code__: lambda at: ThreadWait(  # noqa: SLF001
            f"a connection to {at['self'].name} ({at['self'].address})", at["began"]
        ),
        Peer._ping.__code__: lambda at: ThreadWait(  # noqa: SLF001
            f"the next time to ask {at['self'].name} whether it is alive"
        ),
        ShortRequests.receive.__code__: lambda at: ThreadWait("the next request of a client"),
        Server.join.__code__: lambda at: ThreadWait(
            f"the other tasks to end, in the join of {at['self'].task}"
        ),
        Pool.run.__code__: lambda at: ThreadWait(f"{at['running']} parts of the step in other threads"),
        Compiler.program.__code__: lambda at: ThreadWait("XLA, which compiles"),
        WriterLocks.acquire.__code__: lambda at: ThreadWait(
            "the locks of variables that another step updates"
        ),
        threading.Thread.join.__code__: lambda at: ThreadWait(f"thread {at['self'].name} to end"),
        threading.Event.wait.__code__: lambda at: ThreadWait("an event (threading.Event)"),
        threading.Barrier.wait.__code__: lambda at: ThreadWait("other threads at a threading.Barrier"),
        threading.Semaphore.acquire.__code__: lambda at: ThreadWait("a threading.Semaphore"),
        queue.Queue.get.__code__: lambda at: ThreadWait(
            "an element of a queue.Queue, which is empty" if not at["self"].queue else "a queue.Queue"
        ),
        queue.Queue.put.__code__: lambda at: ThreadWait(f"room in a queue.Queue of {at['self'].maxsize}"),
    }


def _after_for(what: str) -> str:
    return what.removeprefix("for ")


def _resource(at: _Locals) -> ThreadWait:
    long = at["long"]
    state = "" if long is None else long.state()
    what = "another part of the step" if long is None else _after_for(long.what)
    return ThreadWait(what + state, at["began"])


def _answers(at: _Locals) -> ThreadWait:
    driver = at["self"]
    told = [_of(driver, i, peer) for i, peer, _ in list(driver.asked.values())]
    if not told:
        told = ["stages of this task in other threads"]
    return ThreadWait(" and ".join(told), driver.began_at)


def _answer(at: _Locals) -> ThreadWait:
    driver = at["self"]
    i, peer, _ = driver.asked[at["fd"]]
    return ThreadWait(_of(driver, i, peer), driver.began_at)


def _of(driver: StepDriver, i: int, peer: Peer) -> str:
    ops = driver.program.work[i].stage.ops
    queues = ", ".join(awaited(ops))
    return f"{queues} of {peer.name}" if queues else f"{len(ops)} operations of {peer.name}"


def seconds_since(wait: ThreadWait | None) -> float | None:
    """How long a wait has lasted, None where nobody knows."""
    return None if wait is None or not wait.began else round(time.monotonic() - wait.began, 3)
