"""The attempts of a run: each a Job with its pod, followed from its creation to its end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tensorfleet.cli.engines.kubernetes_api import Api, ApiError, Unreachable
from tensorfleet.cli.engines.kubernetes_arguments import Json
from tensorfleet.cli.engines.kubernetes_logs import LogReader
from tensorfleet.cli.engines.kubernetes_manifests import ATTEMPT_LABEL
from tensorfleet.cli.engines.kubernetes_pod import Began, Decision, Ended, Note, PodFollower
from tensorfleet.cli.engines.kubernetes_watch import PodWatch

_TICK_SECONDS = 0.5
_NO_POD_SECONDS = 3.0  # then we ask why a Job has not created its pod
_STUCK_SECONDS = 20.0  # then we ask why a pod with a node does not run
_ASK_SECONDS = 10.0
_LOG_SECONDS = 10.0  # for the last lines of a task that has ended
# The room may come; what a policy forbids stays forbidden.
_PASSING_REFUSALS = ("exceeded quota", "timeout", "internal error", "connection refused")


@dataclass
class PodAttempt:
    """One Job of the run."""

    name: str
    label: str  # of the task
    is_seat: bool
    follower: PodFollower
    #: what happens to the attempt: called without the lock
    on_change: Callable[[PodAttempt, Decision], None]
    on_line: Callable[[str], None] | None = None
    began_at: float = field(default_factory=time.monotonic)
    asked_at: float = 0.0
    reader: LogReader | None = None
    #: why it has ended
    end: Ended | None = None


class Fleet:
    """All attempts, fed by one watch and a clock. `changed` is notified whenever one of them has changed."""

    def __init__(self, api: Api, selector: str, on_note: Callable[[str], None]) -> None:
        self._api = api
        self._on_note = on_note
        self._attempts: dict[str, PodAttempt] = {}
        self._pods: dict[str, str] = {}  # the attempt of each pod
        self.changed = threading.Condition()
        self._watch = PodWatch(api, selector, self._on_pod, self._on_gone, on_note)

    def start(self) -> None:
        """Begins to watch."""
        self._watch.start()
        threading.Thread(target=self._tick, name="clock of the run", daemon=True).start()

    def add(self, attempt: PodAttempt) -> None:
        """Follows an attempt. Call it before its Job is created."""
        with self.changed:
            self._attempts[attempt.name] = attempt

    def forget(self, name: str) -> None:
        """What becomes of this attempt is of no interest any more."""
        with self.changed:
            attempt = self._attempts.pop(name, None)
        if attempt is not None and attempt.reader is not None:
            attempt.reader.finish(0.0)

    def of(self, label: str) -> list[PodAttempt]:
        """The attempts at a task."""
        with self.changed:
            return [attempt for attempt in self._attempts.values() if attempt.label == label]

    def has(self, attempt: PodAttempt) -> bool:
        """Whether an attempt is followed."""
        with self.changed:
            return self._attempts.get(attempt.name) is attempt

    def take_waiting_seats(self) -> list[PodAttempt]:
        """The seats that have no node yet: they are not followed any more."""
        with self.changed:
            seats = [one for one in self._attempts.values() if one.is_seat and not one.follower.is_placed]
            for seat in seats:
                del self._attempts[seat.name]
            return seats

    def fail(self, attempt: PodAttempt, end: Ended) -> None:
        """An attempt that could not be started."""
        with self.changed:
            if attempt.follower.ended:
                return
            attempt.follower.ended = True
        self._carry_out(attempt, [end])

    def _on_pod(self, pod: Json) -> None:
        name = (pod["metadata"].get("labels") or {}).get(ATTEMPT_LABEL, "")
        with self.changed:
            self._pods[pod["metadata"]["name"]] = name
            attempt = self._attempts.get(name)
            decisions = attempt.follower.on_pod(pod, time.monotonic()) if attempt else []
        if attempt is not None:
            self._carry_out(attempt, decisions)

    def _on_gone(self, pod: str) -> None:
        with self.changed:
            attempt = self._attempts.get(self._pods.pop(pod, ""))
            is_it = attempt is not None and attempt.follower.pod == pod
            decisions = attempt.follower.on_gone(time.monotonic()) if attempt and is_it else []
        if attempt is not None:
            self._carry_out(attempt, decisions)

    def _tick(self) -> None:
        while not self._api.stopped.wait(_TICK_SECONDS):
            now = time.monotonic()
            with self.changed:
                attempts = list(self._attempts.values())
            for attempt in attempts:
                with self.changed:
                    decisions = attempt.follower.on_time(now)
                self._carry_out(attempt, decisions)
                self._ask_why(attempt, now)

    def _ask_why(self, attempt: PodAttempt, now: float) -> None:
        """Events tell what neither a Job nor a pod says: a quota, a volume that cannot be mounted."""
        follower = attempt.follower
        if follower.ended or follower.has_begun or now - attempt.asked_at < _ASK_SECONDS:
            return
        kind = "Pod" if follower.pod else "Job"
        patience = _STUCK_SECONDS if follower.pod else _NO_POD_SECONDS
        if now - attempt.began_at < patience or (follower.pod and not follower.is_placed):
            return
        attempt.asked_at = now
        message = self._last_warning(kind, follower.pod or attempt.name)
        if not message:
            return
        final = kind == "Job" and not any(sign in message.lower() for sign in _PASSING_REFUSALS)
        with self.changed:
            decide = follower.on_refused if kind == "Job" else follower.on_warning
            decisions = decide(message, final, now)
        self._carry_out(attempt, decisions)

    def _last_warning(self, kind: str, name: str) -> str:
        fields = f"involvedObject.kind={kind},involvedObject.name={name},type=Warning"
        try:
            answer = self._api.request("GET", self._api.path("events"), query={"fieldSelector": fields})
        except (ApiError, Unreachable):
            return ""  # it would only be nice to know
        events = sorted(
            answer.get("items") or [], key=lambda e: e.get("lastTimestamp") or e.get("eventTime") or ""
        )
        return str(events[-1].get("message") or "") if events else ""

    def _carry_out(self, attempt: PodAttempt, decisions: Iterable[Decision]) -> None:
        for decision in decisions:
            if isinstance(decision, Note):
                self._on_note(decision.text)
            elif isinstance(decision, Began) and attempt.on_line is not None:
                attempt.reader = LogReader(
                    self._api,
                    decision.pod,
                    attempt.on_line,
                    lambda why: self._on_note(f"The last lines of {attempt.label} could not be read: {why}"),
                )
            elif isinstance(decision, Ended):
                attempt.end = decision
                if attempt.reader is not None:  # its last lines come before its exit
                    ending = threading.Thread(
                        target=self._finish,
                        args=(attempt, decision),
                        name=f"end of {attempt.label}",
                        daemon=True,
                    )
                    ending.start()
                    continue
            attempt.on_change(attempt, decision)
        if decisions:
            with self.changed:
                self.changed.notify_all()

    def _finish(self, attempt: PodAttempt, end: Ended) -> None:
        assert attempt.reader is not None
        attempt.reader.finish(_LOG_SECONDS if end.pod else 1.0)
        attempt.on_change(attempt, end)
