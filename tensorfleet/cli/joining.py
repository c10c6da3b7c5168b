"""Workers that somebody starts by hand: the launcher gives them a free number, and frees it when they leave.

`tensorfleet join` connects to the launcher and stays connected while its worker runs. Both sides authenticate with the
run's token, as all tasks do, and say what they have to say by messages of a name and a JSON object:

    worker     join      the address where its server will listen
    launcher   admitted  its number, and what its script is told; or refused, and why
    launcher   signal    as the launcher would send to a worker of its own
    worker     here      every few seconds
    worker     left      its exit code

A connection that ends without `left`, or is silent for long, was a worker's death.
"""

from __future__ import annotations

import contextlib
import json
import queue
import signal
import threading
from collections.abc import Callable
from typing import Any, Protocol

from tensorfleet.base import errors, settings
from tensorfleet.base.run_status import ALONE, STATUS
from tensorfleet.cli.plan import INSPECT, TOKEN, Task
from tensorfleet.cli.policy import ScaleError
from tensorfleet.cli.scaling import Decision
from tensorfleet.cluster import messages
from tensorfleet.cluster.transport import tls, wire
from tensorfleet.cluster.transport.connection import is_on_this_machine, joined, listen_at, split_address
from tensorfleet.cluster.transport.listener import Listener
from tensorfleet.cluster.transport.tensor_bytes import malformed
from tensorfleet.cluster.transport.token import token

JOIN, ADMITTED, REFUSED, SIGNAL, HERE, LEFT = "join", "admitted", "refused", "signal", "here", "left"
#: between two signs of life of a worker
HERE_SECONDS = 5.0
_SILENT_SECONDS = 6 * HERE_SECONDS
_LOOPBACK = "127.0.0.1:0"
_MAX_FRAME_BYTES = 1 << 20
_DECIDE_SECONDS = 30.0
# What belongs to the launcher's machine, or is known to the worker already.
_NOT_TOLD = (STATUS, ALONE, INSPECT, TOKEN)


class JoinedRun(Protocol):
    """The launcher, as those who join see it."""

    def admit(self, guest: Guest, now: float) -> Task:
        """Gives a guest its number. In the launcher's thread. Raises ScaleError."""

    def call(self, decide: Decision) -> None:
        """Has something decided in the launcher's thread."""

    def on_exit(self, label: str, code: int, lost: str | None = None) -> None:
        """A task has ended."""


def say(channel: wire.Channel, topic: str, **fields: Any) -> None:
    """Tells the other side something."""
    channel.say(messages.Inspect(topic, json.dumps(fields)))


def heard(channel: wire.Channel) -> tuple[str, dict[str, Any]]:
    """What the other side tells next. Raises OSError or an OpError when it has gone, or makes no sense."""
    message = channel.receive().read(messages.Inspect)
    try:
        fields = json.loads(message.options or "{}")
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise malformed(f"'{message.topic}' does not come with a JSON object")
    return message.topic, fields


class Guest:
    """A worker that somebody has started by hand, as a running task of the launcher."""

    pid = 0

    def __init__(self, channel: wire.Channel, address: str, host: str) -> None:
        self.address, self.host = address, host
        self.label = ""
        self.channel = channel

    @property
    def where(self) -> str:
        """Where it is, for people."""
        return f"by hand on {self.host}"

    def send(self, number: int) -> None:
        """Has the worker get a signal. After SIGKILL nobody waits for its answer."""
        with contextlib.suppress(OSError, errors.OpError):
            say(self.channel, SIGNAL, number=int(number))
        if number == signal.SIGKILL:
            self.hang_up()

    def hang_up(self) -> None:
        """Ends the connection, which ends the worker."""
        with contextlib.suppress(OSError):
            self.channel.sock.shutdown(2)


class JoinListener:
    """Takes in workers that are started by hand."""

    def __init__(self, run: JoinedRun, secret: str, script: str, only_here: bool) -> None:
        """`secret` is empty for a run with this machine's own. With `only_here` the tasks listen on this machine alone.

        Raises OSError or an OpError where it cannot listen.
        """
        self._run, self._script, self._only_here = run, script, only_here
        self._guests: set[Guest] = set()
        self._lock = threading.Lock()
        host, port = split_address(settings.JOIN_AT() or _LOOPBACK)
        sockets = listen_at(host, port)
        self.address = joined(host, sockets[0].getsockname()[1])
        self._listener = Listener(
            sockets,
            secret.encode() or token(),
            _welcome,
            self._serve,
            _MAX_FRAME_BYTES,
            tls.for_server(),
            "The launcher",
        )
        self._listener.start()

    def close(self) -> None:
        """The run is over: whoever is still there ends."""
        self._listener.close()
        with self._lock:
            guests = list(self._guests)
        for guest in guests:
            guest.hang_up()

    def _serve(self, channel: wire.Channel, _hello: messages.Hello) -> None:
        """Follows one worker from its beginning to its end."""
        with contextlib.closing(channel), contextlib.suppress(OSError, errors.OpError):
            topic, fields = heard(channel)
            guest = self._guest(channel, topic, fields)
            task = self._admitted(guest)
            if isinstance(task, str):
                say(channel, REFUSED, why=task)
                return
            self._follow(guest, task)

    def _guest(self, channel: wire.Channel, topic: str, fields: dict[str, Any]) -> Guest:
        address = fields.get("address")
        if topic != JOIN or not isinstance(address, str):
            raise malformed(f"'{topic}' is not from a worker that joins")
        host, _ = split_address(address)
        return Guest(channel, address, "this machine" if is_on_this_machine(channel.sock) else host)

    def _admitted(self, guest: Guest) -> Task | str:
        """The task that a worker becomes, or why it does not."""
        if self._only_here and guest.host != "this machine":
            return (
                "The tasks of this run listen on the launcher's machine only, so a worker elsewhere cannot reach them. Start "
                "the run with --on ssh, ray, slurm or kubernetes."
            )
        answers: queue.SimpleQueue[Task | str] = queue.SimpleQueue()
        too_late = threading.Event()

        def decide(now: float) -> list[Any]:
            if too_late.is_set():
                return []
            try:
                answers.put(self._run.admit(guest, now))
            except ScaleError as error:
                answers.put(str(error))
            return []

        self._run.call(decide)
        try:
            return answers.get(timeout=_DECIDE_SECONDS)
        except queue.Empty:
            too_late.set()
            return f"The launcher did not decide within {_DECIDE_SECONDS:.0f} s. Is it ending?"

    def _follow(self, guest: Guest, task: Task) -> None:
        with self._lock:
            self._guests.add(guest)
        code = -signal.SIGKILL
        try:
            environment = {k: v for k, v in task.environment.items() if k not in _NOT_TOLD}
            arguments = task.command[task.command.index(self._script) + 1 :]
            say(guest.channel, ADMITTED, label=guest.label, environment=environment, arguments=arguments)
            guest.channel.sock.settimeout(_SILENT_SECONDS)
            topic, fields = heard(guest.channel)
            while topic == HERE:
                topic, fields = heard(guest.channel)
            if topic == LEFT and isinstance(fields.get("code"), int):
                code = fields["code"]
        finally:
            with self._lock:
                self._guests.discard(guest)
            self._run.on_exit(guest.label, code)


def _welcome() -> messages.Welcome:
    return messages.Welcome(0, "the launcher", "launcher", 0, {})


def follow_signals(channel: wire.Channel, send: Callable[[int], None]) -> None:
    """In the worker's process: passes on the launcher's signals, until the connection ends; then the last, SIGKILL."""
    with contextlib.suppress(OSError, errors.OpError):
        while True:
            topic, fields = heard(channel)
            if topic == SIGNAL and fields.get("number") in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
                send(fields["number"])
    send(signal.SIGKILL)
