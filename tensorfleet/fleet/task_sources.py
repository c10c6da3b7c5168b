"""Where recordings come from: tasks that are asked over the network, and this process itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from tensorfleet.cluster.inspection import clock, traces
from tensorfleet.cluster.inspection.ask import ASK_SECONDS, Inspector

_TOPICS = {"clock": clock.report, "trace_start": traces.start, "trace_take": traces.take}


class Source(Protocol):
    """A process that can be told to record."""

    label: str

    def ask(
        self, topic: str, options: Mapping[str, Any] | None = None, seconds: float = ASK_SECONDS
    ) -> dict[str, Any]:
        """What it tells on a topic. Raises an `OpError` when it does not."""

    def close(self) -> None:
        """Ends the connection to it."""


class RemoteTask:
    """A task that is asked at its address."""

    def __init__(self, label: str, address: str) -> None:
        self.label = label
        self._inspector = Inspector(label, address)

    def ask(
        self, topic: str, options: Mapping[str, Any] | None = None, seconds: float = ASK_SECONDS
    ) -> dict[str, Any]:
        """What it tells on a topic."""
        return self._inspector.ask(topic, options, seconds).content

    def close(self) -> None:
        """Ends the connection."""
        self._inspector.close()


class ThisProcess:
    """The process of the caller, whose sessions may use a cluster that it is no task of."""

    def __init__(self, label: str) -> None:
        self.label = label

    def ask(
        self, topic: str, options: Mapping[str, Any] | None = None, seconds: float = ASK_SECONDS
    ) -> dict[str, Any]:
        """What it tells on a topic."""
        return _TOPICS[topic](None, options or {}).content

    def close(self) -> None:
        """Does nothing."""
