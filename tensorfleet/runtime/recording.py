"""Recording what all sessions and stages of this process do, for a trace of several tasks (fleet/tracing.py).

`current` is the recording that is under way; it is None most of the time. A step looks at it once when it begins, and
does nothing more if there is none. A recording ends when it is told to, or when its time is over. Its events are kept
until they are taken; if nobody takes them, they are dropped after `KEPT_SECONDS`.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Callable
from typing import Any, TypeAlias

#: kind, name, began, ended, thread, details; times in nanoseconds of the steady clock
Event: TypeAlias = tuple[str, str, int, int, int, dict[str, Any]]

#: Events of one recording. With their details they take about 50 MB; what comes later is counted, and not kept.
MAX_EVENTS = 100_000
#: Of these at most so many of input pipelines: an element can take less time than its event.
MAX_INPUT_EVENTS = 40_000
#: How long events are kept for whoever asked for them, since they were last asked for.
KEPT_SECONDS = 10.0
#: tells one process from another, also from one with the same number on another machine
PROCESS = secrets.token_hex(8)
_MAX_NAME = 200

#: the recording under way
current: Recording | None = None
#: called with each recording when it begins, and then with None when it has ended
observers: list[Callable[[Recording | None], None]] = []

_lock = threading.Lock()
#: the recording under way, or one that has ended and was not taken yet
_last: Recording | None = None


class Busy(Exception):
    """Another recording is under way, or has ended and was not taken yet."""


class Span:
    """Something that has begun and not ended yet."""

    __slots__ = ("args", "began", "kind", "name", "recording", "thread")

    def __init__(self, recording: Recording, kind: str, name: str, args: dict[str, Any]) -> None:
        self.recording = recording
        self.kind = kind
        self.name = name
        self.args = args
        self.thread = threading.get_ident()
        self.began = time.monotonic_ns()

    def end(self, **details: Any) -> None:
        """Notes that it has ended, with more details."""
        if details:
            self.args = {**self.args, **details}
        self.recording.close(self)

    def __enter__(self) -> Span:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


class Recording:
    """The events of this process during some steps."""

    def __init__(self, steps: int, seconds: float, by_op: bool = False, identity: str | None = None) -> None:
        self.id = identity or secrets.token_hex(8)
        self.steps, self.by_op = steps, by_op
        self.began, self.ended = time.monotonic_ns(), 0
        self.until = time.monotonic() + seconds
        self.dropped = 0
        #: no step of this process's sessions begins yet: other tasks are still to begin to record
        self.holds_back = False
        #: of this process's own sessions: the steps that have begun, and those of them that have ended
        self.begun = self.finished = 0
        #: (session, step) whose stages were run here for others
        self.served: set[tuple[str, int]] = set()
        self.threads: dict[int, str] = {}
        self._events: list[Event] = []
        self._inputs = 0
        self._open: set[Span] = set()
        self._lock = threading.Lock()
        self._over = threading.Event()
        #: set when nobody wants the events any more
        self.taken = threading.Event()
        self._last_asked = time.monotonic()
        self._described: dict[int, tuple[Any, Any]] = {}

    # -- recording ------------------------------------------------------------------------------------

    def open(self, kind: str, name: str, args: dict[str, Any] | None = None) -> Span:
        """Begins an event of this thread."""
        span = Span(self, kind, name, {} if args is None else args)
        with self._lock:
            if span.thread not in self.threads:
                self.threads[span.thread] = threading.current_thread().name
            if not self._over.is_set():
                self._open.add(span)
        return span

    def close(self, span: Span) -> None:
        """Ends an event. Nothing is noted once the recording is over."""
        ended = time.monotonic_ns()
        with self._lock:
            if span in self._open:
                self._open.discard(span)
                self._note(span, ended, span.args)

    def _note(self, span: Span, ended: int, args: dict[str, Any]) -> None:
        is_input = span.kind == "input"
        if len(self._events) >= MAX_EVENTS or (is_input and self._inputs >= MAX_INPUT_EVENTS):
            self.dropped += 1
            return
        self._inputs += is_input
        name = span.name if len(span.name) <= _MAX_NAME else span.name[: _MAX_NAME - 3] + "..."
        self._events.append((span.kind, name, span.began, ended, span.thread, args))

    def begin_step(self, name: str, args: dict[str, Any], counts: bool = True) -> Span | None:
        """Begins a step of a session of this process; None when enough of those that count have begun."""
        with self._lock:
            if self._over.is_set() or self.holds_back or self.begun >= self.steps:
                return None
            self.begun += counts
        return self.open("step", name, args)

    def note_served(self, session: str, step: int) -> None:
        """Notes that a stage of another task's step runs here."""
        if len(self.served) < MAX_EVENTS:  # a server may serve as many steps as it likes in an hour
            self.served.add((session, step))

    def end_step(self, span: Span, counts: bool = True) -> None:
        """Ends a step that `begin_step` began."""
        with self._lock:
            self.finished += counts and span in self._open
        span.end()

    def described(self, key: object, describe: Callable[[], Any]) -> Any:
        """What `describe` says of an object, which is asked once."""
        known = self._described.get(id(key))
        if known is None:
            known = self._described[id(key)] = key, describe()  # with the object: its id must stay its own
        return known[1]

    # -- ending ---------------------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """Whether nothing is recorded any more."""
        return self._over.is_set()

    def end(self) -> None:
        """Ends the recording. What has not ended yet gets an event that says so."""
        global current
        with _lock:
            if current is self:
                current = None
                for tell in observers:
                    tell(None)
        with self._lock:
            if self._over.is_set():
                return
            self._over.set()
            self.ended = time.monotonic_ns()
            for span in self._open:
                self._note(span, self.ended, {**span.args, "unfinished": True})
            self._open.clear()
            self._described.clear()
            self._last_asked = time.monotonic()

    def piece(self, start: int, count: int) -> tuple[list[Event], int]:
        """Some events of a recording that is over, and how many come after them."""
        self._last_asked = time.monotonic()
        events = self._events[start : start + count]
        return events, max(len(self._events) - start - count, 0)

    def watch(self) -> None:
        """Ends the recording in time, and drops its events when nobody takes them."""
        while not self._over.wait(max(self.until - time.monotonic(), 0.0)):
            if time.monotonic() >= self.until:
                self.end()
        while (left := self._last_asked + KEPT_SECONDS - time.monotonic()) > 0 and not self.taken.wait(left):
            pass
        drop(self)


def start(
    steps: int, seconds: float, by_op: bool = False, identity: str | None = None, holds_back: bool = False
) -> Recording:
    """Begins to record. Raises `Busy` if there is a recording already, other than one of the same identity.

    Several tasks may live in one process: whoever traces them asks each of them, and there is one recording.
    """
    global current, _last
    with _lock:
        if _last is not None:
            if identity is not None and _last.id == identity:
                return _last
            left = max(_last.until - time.monotonic(), 0.0)
            state = "has not been taken yet" if _last.is_over else f"goes on for at most {left:.0f} s"
            raise Busy(state)
        recording = Recording(steps, seconds, by_op, identity)
        recording.holds_back = holds_back
        watcher = threading.Thread(target=recording.watch, name="tensorfleet-trace-watch", daemon=True)
        watcher.start()
        _last = current = recording
        for tell in observers:
            tell(recording)
    return recording


def last(identity: str) -> Recording | None:
    """The recording of that identity, under way or not taken yet."""
    return _last if _last is not None and _last.id == identity else None


def drop(recording: Recording) -> None:
    """Forgets a recording: it was taken, or nobody wants it."""
    global _last
    recording.end()
    recording.taken.set()
    with _lock:
        if _last is recording:
            _last = None


def _forked() -> None:
    """A forked process records nothing: the recording is its parent's."""
    global current, _last, _lock, PROCESS
    _lock = threading.Lock()
    if current is not None:
        for tell in observers:
            tell(None)
    current = _last = None
    PROCESS = secrets.token_hex(8)


os.register_at_fork(after_in_child=_forked)
