"""What is noted of a stage while it is traced: the request, its parts, what it waits for, what it sends.

A stage is traced because its client collects the events of its step, because this process records (runtime/recording.py),
or both.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tensorfleet.cluster.messages import BY_OP, OK, TRACED, WHOLE_STEP, Push, Ran, Run
from tensorfleet.cluster.transfers import (
    label_of,
    payload_bytes,
    push_flow,
    reply_flow,
    request_flow,
    transfer,
)
from tensorfleet.cluster.worker.pending_replies import told_versions
from tensorfleet.runtime import recording
from tensorfleet.runtime.trace import Collector, Recorder, StepObserver

if TYPE_CHECKING:
    from tensorfleet.cluster.transport import wire
    from tensorfleet.cluster.worker.stages import RegisteredStage
    from tensorfleet.cluster.worker.worker import Worker
    from tensorfleet.runtime.variable_versions import VariableVersions


class StageTracing:
    """The trace of one stage that is run for a client."""

    def __init__(self, worker: Worker, channel: wire.Channel, frame: wire.Frame) -> None:
        self._session, self._step, self._stage, *_, how, _oldest = Run.unpack(frame.fields)
        stage = worker.session(self._session).stages.get(self._stage)
        self._channel = channel
        self._collector: Collector | None = None
        self._names: tuple[Sequence[str], Sequence[str]] = ((), ()) if stage is None else stage.names
        if how & TRACED:
            self._collector = Collector(f"{worker.task}/device:CPU:0")
            self._collector.by_op = bool(how & BY_OP)
            self._note_given(stage, frame)
        self._current = recording.current
        #: what sees the parts of the stage run
        self.observer: StepObserver | None = self._collector
        self._open: recording.Span | None = None
        if self._current is not None:
            self.observer = Recorder(self._current, self._collector)
            self._begin(self._current, stage, frame)

    def __enter__(self) -> StageTracing:
        return self

    def __exit__(self, *_: object) -> None:
        if self._open is not None:
            self._open.end()

    def _about(self) -> dict[str, Any]:
        step, turn = self._step & WHOLE_STEP, self._step >> WHOLE_STEP.bit_length()
        iteration = {"iteration": turn} if turn else {}
        return {"session": self._session, "step": step, "stage": self._stage} | iteration

    def _begin(self, current: recording.Recording, stage: RegisteredStage | None, frame: wire.Frame) -> None:
        current.note_served(self._session, self._step & WHOLE_STEP)
        self._open = current.open(
            "stage", f"stage {self._stage} of step {self._step & WHOLE_STEP}", self._about()
        )
        flow = request_flow(self._session, self._step, self._stage)
        args = transfer(flow, "in", self._given(stage, frame), frame.tensors, frame.fields, self._channel)
        current.open(
            "receive", "receive the request", {**args, **self._about(), "peer": self._channel.owner}
        ).end()

    def _given(self, stage: RegisteredStage | None, frame: wire.Frame) -> Sequence[str]:
        """The names of the values that came with the request."""
        names = self._names[0]
        if stage is None or len(frame.tensors) == len(names):
            return names
        # An earlier iteration of the loop brought the others.
        return [name for i, name in enumerate(names) if i not in stage.fixed]

    def _note_given(self, stage: RegisteredStage | None, frame: wire.Frame) -> None:
        """Notes for the client which values have come. It knows when it sent them."""
        assert self._collector is not None
        now = time.time_ns()
        for name, size in zip(self._given(stage, frame), payload_bytes(frame.tensors), strict=False):
            self._collector.came(name, size, now, now)

    def reply(self, results: Sequence[Any], versions: VariableVersions | None = None) -> None:
        """Sends the results to the client, and the events if it collects them; or else the versions."""
        fields = told_versions(versions) if self._collector is None else Ran(self._collector.events).encode()
        if self._current is None:
            self._channel.send(OK, fields, results)
            return
        flow = reply_flow(self._session, self._step, self._stage)
        args = transfer(flow, "out", self._names[1], results, fields, self._channel)
        args = {**args, **self._about(), "peer": self._channel.owner}
        with self._current.open("send", "send the reply", args):
            self._channel.send(OK, fields, results)


@contextlib.contextmanager
def awaiting(
    observer: StepObserver | None, stage: RegisteredStage, arrived: Mapping[str, Any]
) -> Iterator[None]:
    """While a stage waits for values that other tasks push."""
    if observer is None:
        yield
        return
    began = time.time_ns()
    with observer.waiting(f"for {', '.join(stage.awaited[:4])} from another task"):
        yield
    ended = time.time_ns()
    sizes = payload_bytes([arrived[name] for name in stage.awaited])
    for name, size in zip(stage.awaited, sizes, strict=True):
        observer.came(name, size, began, ended)


def pushing(
    observer: StepObserver | None, message: Push, values: Sequence[Any], to: str
) -> contextlib.AbstractContextManager[Any]:
    """While a stage sends values to another task, until that has them."""
    current = None if observer is None else observer.recording
    if current is None:
        return contextlib.nullcontext()
    flow = push_flow(message.session, message.step, message.names, to)
    args = transfer(flow, "out", message.names, values, message.encode(), None)
    args |= {"session": message.session, "step": message.step & WHOLE_STEP, "peer": label_of(to)}
    return current.open("send", f"send to {label_of(to)}", args)


def note_pushed(current: recording.Recording, message: Push, values: Sequence[Any], task: str) -> None:
    """Records that another task has pushed values to this one."""
    flow = push_flow(message.session, message.step, message.names, task)
    args = transfer(flow, "in", message.names, values, message.encode(), None)
    args |= {"session": message.session, "step": message.step & WHOLE_STEP}
    current.open("receive", "receive pushed values", args).end()
