"""Sampling a task, with py-spy and without."""

import sys
import threading

import pytest

import tensorfleet as tf
from tensorfleet.cluster.inspection import profile
from tensorfleet.cluster.inspection.ask import ask


@pytest.fixture
def busy():
    """A thread that computes until the end of the test."""
    end = threading.Event()

    def computes_a_lot():
        while not end.is_set():
            sum(range(1000))

    thread = threading.Thread(target=computes_a_lot)
    thread.start()
    yield
    end.set()
    thread.join()


def test_without_py_spy_a_thread_samples_and_says_so(server, busy, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    monkeypatch.setenv("PATH", "/nowhere")
    content = ask(server.task, server.target.removeprefix("grpc://"), "profile", {"seconds": 0.3}, 60).content
    assert content["tool"] == "sampler" and "pip install 'tensorfleet[debug]'" in content["note"]
    assert "computes_a_lot" in content["collapsed"] and "computes_a_lot" in content["flamegraph_svg"]
    assert content["samples"] > 0


def test_py_spy_that_may_not_look_is_named_with_its_reason(busy, monkeypatch, tmp_path):
    refuses = tmp_path / "py-spy"
    refuses.write_text("#!/bin/sh\necho 'Error: Permission Denied' >&2\nexit 1\n")
    refuses.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    content = profile.report(None, {"seconds": 0.2}).content
    assert content["tool"] == "sampler" and "Permission Denied" in content["note"]


def test_a_second_profile_at_the_same_time_is_refused():
    with profile._one_at_a_time:
        with pytest.raises(tf.errors.ResourceExhaustedError, match="being profiled already"):
            profile.report(None, {"seconds": 0.1})
