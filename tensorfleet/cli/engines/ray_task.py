"""A task that an actor runs, as the launcher sees it: its lines, and how it ended."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from dataclasses import dataclass
from typing import Any

from tensorfleet.cli.engines.base import RunListener
from tensorfleet.fleet import ray_placement
from tensorfleet.fleet.ray_tasks import LineBatch, TaskCommand

_POLL_SECONDS = 10.0  # an actor answers after so long, also without lines
_SLICE_SECONDS = 1.0  # how long this side waits at once: it may be closed in between
_SILENT_SECONDS = 30.0  # how long a node may be unreachable until its task is lost
_KILL_SECONDS = 2.0  # from SIGKILL until the actor is ended too
_COULD_NOT_START = 127


@dataclass(frozen=True)
class RayNode:
    """A node of the cluster, as one task has it."""

    name: str
    python: str = "python3"
    node_id: str = ""
    #: the actor there that has the task
    actor_id: str = ""

    @property
    def shown(self) -> str:
        """Its address: all that people know a node of Ray by."""
        return self.name


class Closed(Exception):
    """The run is over: nobody waits for this any more."""


class Reply:
    """Waits for what actors answer, until the engine is closed."""

    def __init__(self) -> None:
        self.closed = threading.Event()

    def get(self, reference: Any, seconds: float | None = None) -> Any:
        """The answer. Raises what the actor raises, `TimeoutError`, or `Closed`."""
        import ray

        limit = None if seconds is None else time.monotonic() + seconds
        while not self.closed.is_set():
            try:
                return ray.get(reference, timeout=_SLICE_SECONDS)
            except ray.exceptions.GetTimeoutError:
                if limit is not None and time.monotonic() > limit:
                    raise TimeoutError from None
        raise Closed


class RayTask:
    """Follows one start of a task, in a thread of its own."""

    def __init__(
        self,
        label: str,
        actor: Any,
        node: RayNode,
        command: TaskCommand,
        listener: RunListener,
        reply: Reply,
    ) -> None:
        self._label = label
        self._actor = actor
        self._node = node
        self._listener = listener
        self._reply = reply
        self._killed = False
        #: its node is being drained: its successor cannot be there
        self.leaves = False
        self.ended = threading.Event()
        self._telling = threading.Lock()
        self._started = actor.start.remote(command)
        self.thread = threading.Thread(target=self._follow, name=f"output of {label}", daemon=True)
        self.thread.start()

    @property
    def pid(self) -> int:
        """0: its process is another machine's."""
        return 0

    @property
    def where(self) -> str:
        """The actor as `ray list actors` calls it, and its node."""
        return f"actor {self._node.actor_id} on {self._node.shown}"

    def send(self, number: int) -> None:
        """A signal to the task and all that it started. SIGKILL ends the actor too if the task does not end."""
        if self.ended.is_set():
            return
        with contextlib.suppress(Exception):  # the actor is gone, and the task with it
            self._actor.send.remote(number)
        if number == signal.SIGKILL and not self._killed:
            self._killed = True
            timer = threading.Timer(_KILL_SECONDS, self._kill)
            timer.daemon = True
            timer.start()

    def lose(self, reason: str) -> None:
        """Its place is gone, whatever Ray says or does not say."""
        self.send(signal.SIGKILL)
        self._tell(-signal.SIGKILL, reason)

    def _tell(self, code: int, lost: str | None) -> None:
        """Its end, which is told once."""
        with self._telling:
            if self.ended.is_set():
                return
            self.ended.set()
        self._listener.on_exit(self._label, code, lost)

    def _kill(self) -> None:
        if not self.ended.is_set() and not self._reply.closed.is_set():
            kill(self._actor)

    def _follow(self) -> None:
        try:
            code, lost = self._to_its_end()
        except Closed:
            self.ended.set()
            return
        self._tell(code, lost)

    def _to_its_end(self) -> tuple[int, str | None]:
        """Passes the lines on; gives the exit code, and why the place is lost if it is."""
        import ray

        try:
            self._reply.get(self._started)
            code = self._pass_lines_on()
            return code, f"node {self._node.name} is being drained" if self.leaves and code else None
        except ray.exceptions.RayActorError as error:
            return -signal.SIGKILL, None if self._killed else ray_placement.death_of(
                error, self._node.name, self._node.node_id
            )
        except ray.exceptions.RayTaskError as error:  # it could not be started
            self._listener.on_line(self._label, f"Cannot start {self._label}: {error.cause}")
            return _COULD_NOT_START, None
        except Closed:
            raise
        except Exception as error:
            return (
                -signal.SIGKILL,
                f"Ray has lost it ({type(error).__name__}: {ray_placement.first_line(error)})",
            )

    def _pass_lines_on(self) -> int:
        import ray

        number, silent_since = 1, None
        while True:
            try:
                batch: LineBatch = self._reply.get(self._actor.next_lines.remote(number, _POLL_SECONDS))
            except ray.exceptions.ActorUnavailableError:
                # Its node cannot be reached, for a moment perhaps: the same batch can be asked for again.
                silent_since = silent_since or time.monotonic()
                if time.monotonic() - silent_since > _SILENT_SECONDS:
                    raise
                self._reply.closed.wait(_SLICE_SECONDS)
                continue
            number, silent_since = number + 1, None
            self.leaves = batch.leaves
            for line in batch.lines:
                self._listener.on_line(self._label, line)
            if batch.code is not None:
                return batch.code


def kill(actor: Any) -> None:
    """Ends an actor, and with it its task. Never raises."""
    import ray

    with contextlib.suppress(Exception):
        ray.kill(actor)
