"""Decides what the events of a pod mean: events in, decisions out. No network, threads or clocks."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from tensorfleet.cli.engines.kubernetes_arguments import Json
from tensorfleet.cli.engines.kubernetes_manifests import CONTAINER

_IMAGE_SECONDS = 120.0  # a registry may be away for a moment
_CONFIG_SECONDS = 60.0  # a Secret that was just created may be unknown to the node
_TERMINATING_SECONDS = 15.0  # beyond the grace period, for the node to say that a pod has ended
_NOTE_SECONDS = 3.0  # reasons of a pod to wait that pass sooner are no news
_FOREVER_WRONG = (
    "not found",
    "does not exist",
    "denied",
    "unauthorized",
    "invalid reference",
    "manifest unknown",
    "no such host",
)
_PULLING = ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError")
_MISCONFIGURED = (
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "CrashLoopBackOff",
)
# Reasons of a failed pod, and of the condition DisruptionTarget, that have nothing to do with the task.
_TAKEN = {
    "PreemptionByScheduler": "preempted by a pod of higher priority",
    "Preempting": "preempted by a pod of higher priority",
    "DeletionByTaintManager": "its node is drained or does not answer",
    "EvictionByEvictionAPI": "evicted, because its node is drained",
    "DeletionByPodGC": "its node is gone",
    "TerminationByKubelet": "its node shuts down or lacks memory",
    "NodeLost": "its node does not answer",
    "NodeShutdown": "its node shuts down",
    "Terminated": "its node shuts down",
    "Shutdown": "its node shuts down",
    "Evicted": "evicted",
    "NodeAffinity": "its node does not fit any more",
    "UnexpectedAdmissionError": "its node refused it",
}
TIMED_OUT = 124


class Note(NamedTuple):
    """Something to tell the user."""

    text: str


class Placed(NamedTuple):
    """The pod has a node."""

    node: str


class Began(NamedTuple):
    """The container runs, so that there is a log to read."""

    pod: str


class Ended(NamedTuple):
    """The attempt is over. `why` is for the report of a failure."""

    code: int
    lost: str | None = None
    why: str = ""
    #: the pod whose log may still be read
    pod: str = ""


Decision: TypeAlias = Note | Placed | Began | Ended


@dataclass
class PodFollower:
    """One attempt at a task: the pod of a Job, from its creation to its end. Nothing is decided after `Ended`."""

    label: str
    image: str
    #: the limit of its memory, for the report
    memory: str = ""
    ended: bool = False
    _uid: str = ""
    _pod: str = ""
    _node: str = ""
    _began: bool = False
    _asked: int | None = None  # the last signal that the launcher has sent
    _status: Json = field(default_factory=dict)
    _waits: str = ""
    _waits_since: float = 0.0
    _terminating_until: float | None = None
    _noted: set[str] = field(default_factory=set)

    def ask_to_end(self, number: int) -> None:
        """The launcher sends a signal: the pod's deletion is no loss."""
        self._asked = number

    def on_pod(self, pod: Json, now: float) -> list[Decision]:
        """The pod was created or has changed."""
        metadata, status = pod["metadata"], pod.get("status") or {}
        if self.ended or (self._uid and metadata["uid"] != self._uid):
            return []  # a Job replaces a pod that was deleted: the launcher decides on that
        self._uid, self._pod, self._status = metadata["uid"], metadata["name"], status
        decisions: list[Decision] = []
        node = (pod.get("spec") or {}).get("nodeName") or ""
        if node and not self._node:
            self._node = node
            decisions.append(Placed(node))
        state = self._state(status)
        if not self._began and ("running" in state or "terminated" in state):
            self._began = True
            decisions.append(Began(self._pod))
        end = self._end(status, state)
        if end is None and metadata.get("deletionTimestamp") and self._terminating_until is None:
            # Nobody on a silent node lets the task save.
            grace = 0.0 if _node_is_silent(status) else float(metadata.get("deletionGracePeriodSeconds") or 0)
            self._terminating_until = now + grace + _TERMINATING_SECONDS
        if end is not None:
            return [*decisions, self._over(end, bool(metadata.get("deletionTimestamp")))]
        return decisions + self._waiting(_reason_to_wait(status, state), now)

    def on_gone(self, now: float) -> list[Decision]:
        """The pod is no more, and has not said how it ended."""
        if self.ended or not self._uid:
            return []
        if self._asked is not None:
            return [self._over(Ended(-self._asked))]
        why = _disruption(self._status) or "its pod was deleted"
        return [self._over(Ended(-signal.SIGKILL, why))]

    def on_refused(self, message: str, is_final: bool, now: float) -> list[Decision]:
        """The Job cannot create its pod: a quota, or a policy."""
        if self.ended or self._uid:
            return []
        if is_final:
            return [self._over(Ended(1, why=f"Kubernetes refused its pod: {message}"))]
        return self._waiting(message, now)

    def on_warning(self, message: str, _is_final: bool, _now: float) -> list[Decision]:
        """An event about a pod that has a node and does not run: a volume that cannot be mounted, perhaps."""
        if self.ended or self._began or message in self._noted:
            return []
        self._noted.add(message)
        return [Note(f"{self.label} waits: {message}")]

    def on_time(self, now: float) -> list[Decision]:
        """Time has passed."""
        if self.ended:
            return []
        if self._terminating_until is not None and now >= self._terminating_until:
            if self._asked is not None:
                return [self._over(Ended(-signal.SIGKILL))]
            return [self._over(Ended(-signal.SIGKILL, f"node {self._node} does not answer"))]
        return self._waiting(self._waits, now) if self._waits else []

    @property
    def waits(self) -> str:
        """What the pod waits for."""
        return self._waits

    @property
    def pod(self) -> str:
        """The pod's name, once there is one."""
        return self._pod

    @property
    def is_placed(self) -> bool:
        """Whether it has a node."""
        return bool(self._node)

    @property
    def has_begun(self) -> bool:
        """Whether its container has started."""
        return self._began

    def _state(self, status: Json) -> Json:
        """The state of the task's container: others may be injected beside it."""
        for container in status.get("containerStatuses") or []:
            if container.get("name") == CONTAINER:
                return dict(container.get("state") or {})
        return {}

    def _end(self, status: Json, state: Json) -> Ended | None:
        """The end of the pod, if its status says so."""
        terminated = state.get("terminated")
        reason, message = status.get("reason") or "", status.get("message") or ""
        if status.get("phase") in ("Failed", "Succeeded") and not terminated:
            lost = _taken(reason, message) or _disruption(status)
            if lost:
                return Ended(-signal.SIGKILL, lost)
            if status["phase"] == "Succeeded":
                return Ended(0)
            if reason == "DeadlineExceeded":
                return Ended(TIMED_OUT, why="It reached the limit of time (--time).")
            return Ended(1, why=f"Its pod failed: {message or reason or 'Kubernetes gives no reason'}")
        if not terminated:
            return None
        return self._of_container(terminated, status, reason, message)

    def _of_container(self, terminated: Json, status: Json, reason: str, message: str) -> Ended:
        code = _exit_code(terminated)
        what = terminated.get("reason") or ""
        if reason == "DeadlineExceeded":
            return Ended(TIMED_OUT, why="It reached the limit of time (--time).")
        lost = _taken(reason, message) or (None if code == 0 else _disruption(status))
        if what == "ContainerStatusUnknown":
            lost = lost or f"node {self._node} has lost its container"
        if lost:
            return Ended(code or -signal.SIGKILL, lost)
        if what == "OOMKilled":
            limit = f" of {self.memory}" if self.memory else ""
            return Ended(code, why=f"It used more memory than its limit{limit}. Give it more with --memory.")
        if what in ("StartError", "ContainerCannotRun"):
            detail = terminated.get("message") or "Kubernetes gives no reason"
            return Ended(
                code, why=f"The container cannot run: {detail}. Does {self.image} have this command?"
            )
        return Ended(code)

    def _over(self, end: Ended, is_deleted: bool = False) -> Ended:
        """The last decision. A pod that somebody else deletes is lost, however its task ends."""
        self.ended = True
        if is_deleted and self._asked is None and end.lost is None:
            end = end._replace(lost=_disruption(self._status) or "its pod was deleted")
        return end._replace(pod=self._pod if self._began else "")

    def _waiting(self, why: str, now: float) -> list[Decision]:
        """The pod waits for something: tells it once, and gives up what cannot come."""
        kind = _kind_of(why)
        if kind != _kind_of(self._waits):
            self._waits_since = now
        # While it waits for the next attempt, the message of the last one says more.
        if not (kind == "image" and self._waits and why.startswith("ImagePullBackOff")):
            self._waits = why
        if not kind:
            return []
        waited, (_, _, text) = now - self._waits_since, self._waits.partition(": ")
        if kind == "image" and (_is_hopeless(self._waits) or waited >= _IMAGE_SECONDS):
            return [self._over(Ended(1, why=self._no_image(text)))]
        if kind == "container" and waited >= _CONFIG_SECONDS:
            return [self._over(Ended(1, why=f"Its container cannot be created: {self._waits}"))]
        if waited >= _NOTE_SECONDS and self._waits not in self._noted:
            self._noted.add(self._waits)
            return [Note(f"{self.label} waits: {self._waits}")]
        return []

    def _no_image(self, text: str) -> str:
        detail = f": {text}" if text else ""
        return (
            f"Cannot pull the image {self.image}{detail}. Check --image, and that the cluster may pull it "
            "(--engine-arg image_pull_secret=NAME)."
        )


def _kind_of(why: str) -> str:
    """What a pod waits for: room, its image, or a container that can be created."""
    reason = why.partition(": ")[0]
    return (
        "image" if reason in _PULLING else "container" if reason in _MISCONFIGURED else "room" if why else ""
    )


def _is_hopeless(why: str) -> bool:
    """Whether an image will not be there the next time either."""
    reason, _, text = why.partition(": ")
    return reason in ("InvalidImageName", "ErrImageNeverPull") or any(
        sign in text.lower() for sign in _FOREVER_WRONG
    )


def _reason_to_wait(status: Json, state: Json) -> str:
    """Why a pod does not run yet, as `REASON: message`; empty if all goes well."""
    for condition in status.get("conditions") or []:
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return f"{condition.get('reason') or 'Unschedulable'}: {condition.get('message') or ''}"
    waiting: dict[str, Any] = state.get("waiting") or {}
    reason = waiting.get("reason") or ""
    if reason in (*_PULLING, *_MISCONFIGURED):
        return f"{reason}: {waiting.get('message') or ''}"
    return ""


def _node_is_silent(status: Json) -> bool:
    """Whether a pod is not ready although its containers are: so the controllers mark the pods of a lost node."""
    conditions = {c.get("type"): c.get("status") for c in status.get("conditions") or []}
    return conditions.get("Ready") == "False" and conditions.get("ContainersReady") == "True"


def _exit_code(terminated: Json) -> int:
    """An exit code, or -N for signal N: container runtimes add 128 as shells do."""
    code = int(terminated.get("exitCode") or 0)
    number = int(terminated.get("signal") or 0) or code - 128
    return -number if 0 < number < signal.NSIG and (terminated.get("signal") or code > 128) else code


def _taken(reason: str, message: str) -> str | None:
    """Why a pod was taken away, if that is what its status says."""
    if reason in _TAKEN:
        return f"{_TAKEN[reason]}: {message}" if message else _TAKEN[reason]
    if reason.startswith("OutOf"):  # the room was given away between the scheduler and the node
        return f"its node has no room for it: {message or reason}"
    return None


def _disruption(status: Json) -> str | None:
    """The condition by which newer versions of Kubernetes say that a pod is taken away."""
    for condition in status.get("conditions") or []:
        if condition.get("type") == "DisruptionTarget" and condition.get("status") == "True":
            reason = condition.get("reason") or ""
            return _TAKEN.get(reason) or condition.get("message") or reason
    return None
