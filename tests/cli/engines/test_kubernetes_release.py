"""A worker that is not wanted any more gives its seat back: on an API server that only remembers what it was told."""

from __future__ import annotations

import json
import threading
import time
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

from tensorfleet.cli.engines import kubernetes
from tensorfleet.cli.engines.base import RunOptions, Wanted
from tensorfleet.cli.engines.kubernetes_api import Api
from tensorfleet.cli.engines.kubernetes_manifests import ATTEMPT_LABEL

SECONDS = 20.0


class _Answer(SimpleNamespace):
    __hash__ = object.__hash__


class RememberingServer:
    """Has the Jobs that it was told to create, without those that it was told to delete."""

    def __init__(self, stopped):
        self.jobs, self.created, self.stopped = set(), [], stopped
        self.api = Api("https://here", "ml", self.send, stopped)

    def send(self, method, url, content, headers, seconds):
        kind, _, name = urlsplit(url).path.partition("/namespaces/ml/")[2].partition("/")
        answer = {"metadata": {"resourceVersion": "1"}, "items": []}
        if method == "POST":
            answer = json.loads(content)
            answer["metadata"]["uid"] = f"uid of {answer['metadata']['name']}"
            if kind == "jobs":
                self.jobs.add(answer["metadata"]["name"])
                self.created.append(answer["metadata"]["name"])
        elif method == "DELETE" and kind == "jobs":
            self.jobs -= {name} if name else set(self.jobs)
        stream = self._nothing_happens() if "watch=true" in url else iter([])
        return _Answer(
            status=200,
            reason="",
            read=json.dumps(answer).encode,
            close=lambda: None,
            shutdown=lambda: None,
            stream=lambda *_, **__: stream,
        )

    def _nothing_happens(self):
        self.stopped.wait(SECONDS)
        yield b""


class Heard:
    def __init__(self):
        self.places, self.notes = [], []

    def on_place(self, label, place):
        self.places.append(label)

    def on_note(self, text):
        self.notes.append(text)


def until(condition, what):
    limit = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < limit, f"timed out waiting for {what}"
        threading.Event().wait(0.01)


@pytest.fixture
def opened(tmp_path, monkeypatch):
    """An engine with a seat for worker/0, its server, and what it tells."""
    pytest.importorskip("urllib3")
    servers = []

    def connect(context, namespace, stopped):
        servers.append(RememberingServer(stopped))
        return servers[0].api

    monkeypatch.setattr(kubernetes, "connect", connect)
    (tmp_path / "train.py").touch()
    engine = kubernetes.KubernetesEngine(RunOptions("digits", tmp_path / "train.py", image="me/project"))
    heard = Heard()
    engine._open(heard)
    engine.seek(_worker(0), heard)
    until(lambda: len(servers[0].jobs) == 1, "the first seat")
    yield engine, servers[0], heard
    engine.close()
    assert not servers[0].jobs


def _worker(index):
    return Wanted("worker", index, False)


def _is_placed(engine, attempt):
    """The scheduler has found a node for the pod of an attempt."""
    labels = {ATTEMPT_LABEL: attempt}
    status = {"phase": "Pending", "containerStatuses": [], "conditions": []}
    metadata = {"name": f"{attempt}-pod", "uid": attempt, "labels": labels}
    engine._fleet._on_pod({"metadata": metadata, "spec": {"nodeName": "n1"}, "status": status})


@pytest.mark.parametrize("placed", [False, True])
def test_a_seat_is_deleted_whether_it_waits_or_has_a_node(opened, placed):
    engine, server, heard = opened
    before = set(server.jobs)
    engine.seek(_worker(1), heard)
    until(lambda: len(server.jobs) == 2, "the second seat")
    (seat,) = server.jobs - before
    if placed:
        _is_placed(engine, seat)
    engine.release("worker/1")
    until(lambda: server.jobs == before, "the end of the seat")
    _is_placed(engine, seat)  # too late: nobody hears of it
    assert heard.places == ["worker/1"] * placed


def test_a_worker_that_is_wanted_again_gets_another_seat(opened):
    engine, server, heard = opened
    for number in range(2, 5):
        engine.seek(_worker(1), heard)
        until(lambda n=number: len(server.created) == n, "a seat")
        _is_placed(engine, server.created[-1])
        engine.release("worker/1")
        until(lambda: len(server.jobs) == 1, "the end of the seat")
    assert heard.places == ["worker/1"] * 3
    assert len(set(server.created)) == 4


def test_a_search_that_comes_too_late_takes_no_seat(opened):
    engine, server, heard = opened
    engine.seek(_worker(1), heard)
    engine.release("worker/1")  # before or after the seat has been made
    engine._seek(_worker(1))  # as after the loss of the seat
    until(lambda: len(server.jobs) == 1, "one seat")
    assert [one.label for one in engine._fleet.of("worker/1")] == []
