"""What is noted of a step over several tasks while it is traced: requests, answers, waits, and the values that came.

The driver (step_driver.py) has one of these for a step that is observed, and none for any other.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tensorfleet.cluster import messages
from tensorfleet.cluster.messages import FAILED, RUN
from tensorfleet.cluster.transfers import label_of, payload_bytes, reply_flow, request_flow, transfer

if TYPE_CHECKING:
    from tensorfleet.base.types import Array
    from tensorfleet.cluster.master.cluster_program import ClusterProgram, StageProgram
    from tensorfleet.cluster.transport import wire
    from tensorfleet.cluster.transport.peers import Peer
    from tensorfleet.runtime.recording import Recording
    from tensorfleet.runtime.trace import StepObserver


class StepTracing:
    """The trace of one step, or of one iteration of a loop."""

    def __init__(self, session: str, number: int, program: ClusterProgram, observer: StepObserver) -> None:
        self._session, self._number = session, number
        self._program = program
        self._observer = observer
        self._recording: Recording | None = observer.recording
        self._asked: dict[int, int] = {}  # when each stage was asked for, by its position
        #: the bits of a request
        self.how = 0
        if observer.asks_others:
            self.how = messages.TRACED | (messages.BY_OP if observer.by_op else 0)
        step = getattr(observer, "step", None)
        if step is not None and number <= messages.WHOLE_STEP:
            step.args = {**step.args, "session": session, "step": number}

    def iteration(self, number: int) -> contextlib.AbstractContextManager[Any]:
        """While an iteration of a loop runs, which is a step of its own."""
        if self._recording is None:
            return contextlib.nullcontext()
        whole, turn = number & messages.WHOLE_STEP, number >> messages.WHOLE_STEP.bit_length()
        args = {"session": self._session, "step": whole, "iteration": turn}
        return self._recording.open("loop", f"iteration {turn}", args)

    def waiting_for(self, peers: Iterable[Peer]) -> contextlib.AbstractContextManager[Any]:
        """While the step waits for the first of several tasks, or for a stage that runs beside."""
        names = ", ".join(sorted({label_of(at.name) for at in peers}))
        return self._observer.waiting(f"for {names or 'a stage beside'}")

    def shared_read(self, work: StageProgram, session: str, deadline: float | None) -> list[Array] | None:
        """Reads variables of another task from shared memory, if the other task need not tell of it too."""
        assert work.posted is not None and work.peer is not None
        if self._recording is None or self._observer.asks_others:
            return None
        span = self._recording.open("shared read", f"read from {label_of(work.peer.name)}")
        values = work.posted.read(session, deadline)
        if values is None:
            span.kind, span.name = "wait", f"wait for shared memory of {label_of(work.peer.name)}"
            span.end()
            return None
        sizes = [value.nbytes for value in values]
        names = [t.name for t in work.stage.outputs]
        edges = [f"{name} ({size} B)" for name, size in zip(names, sizes, strict=True)]
        span.end(
            **self._about(),
            edges=edges,
            bytes=sum(sizes),
            peer=label_of(work.peer.name),
            via="shared memory",
        )
        return values

    def send(
        self,
        i: int,
        work: StageProgram,
        channel: wire.Channel,
        fields: bytes,
        inputs: Sequence[Any],
        left_out: Collection[int],
    ) -> None:
        """Sends the request for a stage; `left_out` are the positions of the values that the task has already."""
        assert work.peer is not None
        self._asked[i] = time.time_ns()
        if self._recording is None:
            channel.send(RUN, fields, inputs)
            return
        names = [name for n, name in enumerate(work.given) if n not in left_out]
        flow = request_flow(self._session, self._number, work.number)
        args = transfer(flow, "out", names, inputs, fields, channel)
        args |= {**self._about(), "stage": work.number, "peer": label_of(work.peer.name)}
        with self._recording.open("send", f"send to {label_of(work.peer.name)}", args):
            channel.send(RUN, fields, inputs)

    def answer(self, i: int, at: Peer, channel: wire.Channel) -> wire.Frame:
        """The answer to a request."""
        with self._observer.waiting(f"for {label_of(at.name)}"):
            return at.answer(channel)

    def answered(self, i: int, work: StageProgram, channel: wire.Channel, frame: wire.Frame) -> None:
        """Notes an answer that has come, and what it tells of the stage."""
        assert work.peer is not None and frame.kind != FAILED
        if self._recording is not None:
            flow = reply_flow(self._session, self._number, work.number)
            args = transfer(flow, "in", work.replied, frame.tensors, frame.fields, channel)
            args |= {**self._about(), "stage": work.number, "peer": label_of(work.peer.name)}
            self._recording.open("receive", f"receive from {label_of(work.peer.name)}", args).end()
        if not self._observer.asks_others:
            return
        now, asked = time.time_ns(), self._asked.get(i, 0)
        events = (frame.read(messages.Ran).events or []) if frame.fields else []
        self._observer.add(events, asked)
        ended = max((event[4] for event in events), default=asked)
        for name, size in zip(work.replied, payload_bytes(frame.tensors), strict=True):
            self._observer.came(name, size, min(max(ended, asked), now), now)

    def _about(self) -> dict[str, Any]:
        return {"session": self._session, "step": self._number & messages.WHOLE_STEP}
