"""The pods of a run as they change: a list, then a watch from there, and a new list when the server has forgotten."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable

from tensorfleet.cli.engines.kubernetes_api import Api, ApiError, Unreachable
from tensorfleet.cli.engines.kubernetes_arguments import Json

_WATCH_SECONDS = 50  # the server ends a watch then; one that is silent longer is dead
_READ_SECONDS = 65.0
_RETRY_SECONDS = 1.0
_TELL_AFTER_SECONDS = 10.0  # without an answer, the user hears of it
_GONE = 410


class PodWatch:
    """Calls `on_pod` for each pod that appears or changes, and `on_gone` with the name of one that is no more."""

    def __init__(
        self,
        api: Api,
        selector: str,
        on_pod: Callable[[Json], None],
        on_gone: Callable[[str], None],
        on_note: Callable[[str], None],
    ) -> None:
        self._api = api
        self._selector = selector
        self._on_pod = on_pod
        self._on_gone = on_gone
        self._on_note = on_note
        self._known: set[str] = set()
        self._version = ""
        self._silent_since: float | None = None
        self._told = False

    def start(self) -> None:
        """Begins to watch, in a thread of its own. It ends with the connection's `stopped`."""
        threading.Thread(target=self._go, name="pods of the run", daemon=True).start()

    def _go(self) -> None:
        while not self._api.stopped.is_set():
            try:
                if not self._version:
                    self._list()
                self._watch()
            except ApiError as error:
                if error.status == _GONE:
                    self._version = ""
                    continue
                self._failed(error.message)
            except Unreachable as error:
                self._failed(str(error))

    def _list(self) -> None:
        answer = self._api.request("GET", self._api.path("pods"), query={"labelSelector": self._selector})
        self._heard()
        pods = answer.get("items") or []
        # What ended while nobody was listening.
        for name in self._known - {pod["metadata"]["name"] for pod in pods}:
            self._gone(name)
        for pod in pods:
            self._changed(pod)
        self._version = answer["metadata"]["resourceVersion"]

    def _watch(self) -> None:
        query = {
            "labelSelector": self._selector,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(_WATCH_SECONDS),
        }
        with self._api.lines(self._api.path("pods"), query, _READ_SECONDS) as lines:
            self._heard()
            for line in lines:
                if self._api.stopped.is_set():
                    return
                if line.strip():
                    self._event(json.loads(line))

    def _event(self, event: Json) -> None:
        kind, pod = event["type"], event["object"]
        if kind == "ERROR":
            raise ApiError(int(pod.get("code") or 0), pod.get("reason") or "", pod.get("message") or "")
        self._version = pod["metadata"]["resourceVersion"]
        if kind == "DELETED":
            self._changed(pod)  # its last status may say how it ended
            self._gone(pod["metadata"]["name"])
        elif kind in ("ADDED", "MODIFIED"):
            self._changed(pod)

    def _changed(self, pod: Json) -> None:
        self._known.add(pod["metadata"]["name"])
        self._on_pod(pod)

    def _gone(self, name: str) -> None:
        self._known.discard(name)
        self._on_gone(name)

    def _heard(self) -> None:
        if self._told:
            self._on_note("The Kubernetes API server answers again.")
        self._silent_since, self._told = None, False

    def _failed(self, why: str) -> None:
        """The tasks go on without us; we try until we hear of them again."""
        now = time.monotonic()
        self._silent_since = self._silent_since or now
        if now - self._silent_since >= _TELL_AFTER_SECONDS and not self._told:
            self._told = True
            self._on_note(f"The Kubernetes API server does not answer: {why}. The tasks go on; trying again.")
        self._version = ""
        self._api.stopped.wait(_RETRY_SECONDS)
