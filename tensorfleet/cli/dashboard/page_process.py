"""The process of the page beside a run.

The launcher tells it what happens on its standard input, one JSON object to a line:

    {"name": ..., "fd": ..., "key": ..., ...}     first: the run, and the socket to serve
    {"token": ...}                                 the tasks that follow belong to a cluster with this token
    {"task": "worker/1", "pid": ..., ...}          what became of a task
    {"decision": "ps/0 leads ...", "about": "ps/0"}  which process leads a durable task
    {"change": "joined", "of": "worker/1", ...}    a worker has joined or left, or the run was scaled
    {"ended": 0}                                   the run is over

The end of the input without `ended` means that the launcher was killed: then this process ends as well.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from tensorfleet.cli.dashboard.collector import StatsCollector
from tensorfleet.cli.dashboard.overview import Json
from tensorfleet.cli.dashboard.server import PageServer, PageSocket, access_at
from tensorfleet.cli.dashboard.sources import LiveRun, RunFacts
from tensorfleet.cli.dashboard.store import FILE, StatsStore
from tensorfleet.cluster.transport.token import secure

_NICE = 5  # the training goes first
_SEEN_SECONDS = 2.5  # a browser asks every two
_WATCHED_SECONDS = 3.0


def main() -> None:
    """Serves the page until the run is over."""
    os.nice(_NICE)
    messages = _messages(sys.stdin)
    first = next(messages, None)
    if first is not None:
        _serve(first, messages)


def _serve(first: Json, messages: Iterator[Json]) -> None:
    logs = Path(first["logs"]) if first["logs"] else None
    collector = StatsCollector()
    store = StatsStore(logs / FILE if logs else None, _say)
    run = LiveRun(RunFacts(first["name"], first["script"], logs, first["started"]), collector, store)
    opened = socket.socket(fileno=first["fd"])
    access = access_at(first["host"], first["port"], first["key"], first["is_secure"])
    server = PageServer(run, PageSocket(opened, access, first["host"]))
    run.start()
    server.start()
    try:
        follow(run, collector, messages)
    finally:
        server.stop()
        run.stop()


def follow(run: LiveRun, collector: StatsCollector, messages: Iterator[Json]) -> None:
    """Takes what the launcher tells until the run is over, and a browser has seen it."""
    for message in messages:
        if "task" in message:
            collector.update(
                message["task"],
                message["address"],
                message["pid"],
                message["state"],
                message["code"],
                message["host"],
            )
        elif "decision" in message:
            run.decided(message["about"], message["decision"])
        elif "change" in message:
            run.changed(message["change"], message["of"], message["text"])
        elif "token" in message:
            if message["token"]:
                secure(token=message["token"])
            collector.clear()
        elif "ended" in message:
            is_watched = run.is_watched(_WATCHED_SECONDS)
            run.end(message["ended"])
            if is_watched:
                run.wait_until_seen(_SEEN_SECONDS)
            return
    run.end(None)


def _messages(stream: TextIO) -> Iterator[Json]:
    for line in stream:
        try:
            message = json.loads(line)
        except ValueError:
            continue  # a line that the pipe had no room for
        if isinstance(message, dict):
            yield message


def _say(text: str) -> None:
    print(text, flush=True)  # the launcher prints it
