"""Asking a task about itself: one INSPECT message and its answer."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from tensorfleet.base import errors
from tensorfleet.cluster.inspection.topics import Report
from tensorfleet.cluster.messages import Inspect, Inspected, Welcome
from tensorfleet.cluster.transport import wire
from tensorfleet.cluster.transport.peers import Peer
from tensorfleet.cluster.transport.tensor_bytes import malformed

ASK_SECONDS = 10.0  # for an answer that needs no work


class Inspector:
    """A connection to one task, kept open from question to question. Close it with `close`."""

    def __init__(self, task: str, address: str) -> None:
        # Not watched: the task must not take an inspector for a client whose sessions end with it.
        self._peer = Peer(task, address, watched=False)

    def ask(
        self, topic: str, options: Mapping[str, Any] | None = None, seconds: float = ASK_SECONDS
    ) -> Report:
        """What the task tells on a topic. Raises an `OpError` that names the task when it does not answer in time."""
        message = Inspect(topic, json.dumps(dict(options or {})))
        return self._peer.call_for(message, _report, time.monotonic() + seconds)

    @property
    def welcome(self) -> Welcome | None:
        """Who the task says it is, once it has answered."""
        return self._peer.welcome

    def close(self) -> None:
        """Closes the connection."""
        self._peer.forget()


def ask(
    task: str,
    address: str,
    topic: str,
    options: Mapping[str, Any] | None = None,
    seconds: float = ASK_SECONDS,
) -> Report:
    """One question to the task at `address` (host:port), on a connection of its own."""
    inspector = Inspector(task, address)
    try:
        return inspector.ask(topic, options, seconds)
    finally:
        inspector.close()


def _report(channel: wire.Channel, frame: wire.Frame) -> Report:
    frame.read(Inspected)
    if not frame.tensors:
        raise malformed("Inspected comes without its report")
    try:
        content = json.loads(bytes(frame.tensors[0]))
    except ValueError:
        raise malformed("the report of Inspected is not JSON") from None
    if not isinstance(content, dict):
        raise errors.InternalError(None, None, "The report of Inspected is not a JSON object.")
    return Report(content, list(frame.tensors[1:]))
