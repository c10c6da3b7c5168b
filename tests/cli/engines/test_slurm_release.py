"""A worker that is not wanted any more gives its place and its job back, whenever it is told so: without a Slurm."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tensorfleet.cli.engines import slurm
from tensorfleet.cli.engines.base import EngineError, RunOptions, Wanted
from tensorfleet.cli.engines.slurm_commands import NodeShare

SECONDS = 20.0
FIRST = NodeShare("1", "1", "n1", 2, 100, 0)


class Request:
    """A job that is granted when the test says so."""

    made: list[Request]

    def __init__(self, wanted, options):
        self.job = str(len(self.made) + 2)
        self.granted, self.closed = threading.Event(), threading.Event()
        self.made.append(self)

    def wait(self, seconds):
        if self.closed.is_set():
            raise EngineError("Slurm has refused the request")
        return self.granted.wait(0.02)

    def shares(self):
        return [NodeShare(self.job, self.job, "n2", 1, 100, 0)]

    def hang_up(self):
        self.closed.set()

    close = hang_up


class FakeNodes:
    """Nodes that all work. With `slow`, a node is there when the test says so."""

    def __init__(self):
        self.slow = False
        self.opening, self.may_open = threading.Event(), threading.Event()
        self.opened, self.dropped = set(), []

    def usable(self, shares):
        return list(shares)

    def open(self, shares, listener):
        self.opening.set()
        assert not self.slow or self.may_open.wait(SECONDS)
        self.opened |= shares
        return True

    def probe(self, share):
        return SimpleNamespace(share=share, address="10.0.0.1", python="python3")

    def port(self, probe):
        return 2222

    def keep_if_new(self, job):
        pass

    def drop(self, job):
        self.dropped.append(job)

    def close(self):
        pass


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


def _worker(index):
    return Wanted("worker", index, False)


@pytest.fixture
def engine(monkeypatch):
    """An engine whose own first job is full."""
    Request.made = []
    monkeypatch.setattr(slurm, "Allocation", Request)
    monkeypatch.setattr(slurm, "job_state", lambda job: "RUNNING")
    engine = slurm.SlurmEngine(RunOptions("test", Path("train.py")))
    engine._nodes = FakeNodes()
    engine._allocations = [SimpleNamespace(job="1", hang_up=lambda: None, close=lambda: None)]
    engine._seating.shares = [FIRST]
    engine._seating.held = {"ps/0": (Wanted("ps", 0, True), FIRST), "worker/0": (_worker(0), FIRST)}
    yield engine
    engine.close()
    until(lambda: not _threads(), "the end of the engine's threads")


def _threads():
    return [t for t in threading.enumerate() if t.name.startswith(("place of", "release of"))]


def _is_as_before(engine):
    jobs = [one.job for one in engine._allocations]
    return jobs == ["1"] and engine._seating.shares == [FIRST] and not engine._searches


def test_a_request_that_waits_is_withdrawn_and_nothing_is_said(engine):
    heard = Heard()
    engine.seek(_worker(1), heard)
    until(lambda: Request.made, "a request")
    engine.release("worker/1")
    until(lambda: not _threads(), "the end of the search")
    assert Request.made[0].closed.is_set()
    assert _is_as_before(engine)
    assert (heard.places, heard.notes) == ([], [])


def test_a_place_that_was_found_is_given_back_with_its_job(engine):
    heard = Heard()
    for number in range(2):  # once more, with a job of its own again
        engine.seek(_worker(1), heard)
        until(lambda n=number: len(Request.made) > n, "a request")
        Request.made[number].granted.set()
        until(lambda n=number: len(heard.places) > n, "a place")
        until(lambda: not _threads(), "the end of the search")
        assert not Request.made[number].closed.is_set()
        engine.release("worker/1")
        until(lambda: not _threads(), "the release")
        assert Request.made[number].closed.is_set()
        assert _is_as_before(engine)
    assert engine._nodes.dropped == ["2", "3"]


def test_a_worker_that_is_released_while_its_node_is_opened_hears_of_no_place(engine):
    heard = Heard()
    engine._nodes.slow = True
    engine.seek(_worker(1), heard)
    until(lambda: Request.made, "a request")
    Request.made[0].granted.set()
    assert engine._nodes.opening.wait(SECONDS)
    engine.release("worker/1")
    engine._nodes.may_open.set()
    until(lambda: not _threads(), "the end of the search")
    assert "worker/1" not in engine._seating.held
    assert Request.made[0].closed.is_set()
    assert _is_as_before(engine)
    assert heard.places == []


def test_a_job_stays_while_another_worker_has_its_place_there(engine):
    heard = Heard()
    engine.seek(_worker(1), heard)
    until(lambda: Request.made, "a request")
    Request.made[0].granted.set()
    until(lambda: heard.places == ["worker/1"], "a place")
    (_, share) = engine._seating.held["worker/1"]
    engine._seating.held["worker/2"] = _worker(2), share
    engine.release("worker/1")
    until(lambda: not _threads(), "the release")
    assert not Request.made[0].closed.is_set()
    engine.release("worker/2")
    until(lambda: not _threads(), "the release")
    assert Request.made[0].closed.is_set()


def test_a_request_is_withdrawn_when_a_place_is_found_elsewhere(engine):
    heard = Heard()
    engine.seek(_worker(1), heard)
    until(lambda: Request.made, "a request")
    engine.release("worker/0")  # whose processor the other one takes
    until(lambda: heard.places == ["worker/1"], "a place")
    until(lambda: not _threads(), "the end of the search")
    assert engine._seating.held["worker/1"][1] == FIRST
    assert Request.made[0].closed.is_set()


def test_others_go_on_looking_when_one_is_released(engine):
    heard = Heard()
    engine.seek(_worker(1), heard)
    engine.seek(_worker(2), heard)
    until(lambda: len(Request.made) == 2, "both requests")
    engine.release("worker/2")
    until(lambda: len(_threads()) == 1, "the end of one search")
    for request in Request.made:
        request.granted.set()
    until(lambda: heard.places, "a place")
    assert heard.places == ["worker/1"]
    assert [request.closed.is_set() for request in Request.made].count(True) == 1
