import os
import sys

import pytest


@pytest.fixture
def measuring(script, tmp_path, monkeypatch):
    module = script("measuring")
    monkeypatch.setattr(module, "RESULTS", tmp_path / "bench")
    return module


def job_of(measuring, report, measure, libraries=("tensorflow", "tensorfleet", "jax")):
    return measuring.Job("work", libraries, {"seconds": report.Row("work", "a step")}, measure)


def test_order_of_the_libraries_turns_with_each_round(measuring, script):
    order = []
    job = job_of(measuring, script("report"), lambda library: order.append(library) or {"seconds": 1.0})
    measuring.take_turns("run", [job], 2)
    assert order == ["tensorflow", "tensorfleet", "jax", "jax", "tensorfleet", "tensorflow"]


def test_library_that_fails_once_has_no_values_and_is_not_tried_again(measuring, script, capsys):
    calls = []

    def measure(library):
        calls.append(library)
        if library == "jax" and calls.count("jax") == 2:
            raise RuntimeError("out of memory")
        return {"seconds": 1.0, "processors": 2.0}

    job = job_of(measuring, script("report"), measure)
    measuring.take_turns("run", [job], 3)
    row = job.rows["seconds"]
    assert calls.count("jax") == 2
    assert not row.has("jax") and not row.busy["jax"]
    assert len(row.seen["tensorflow"]) == len(row.busy["tensorfleet"]) == 3
    assert "work failed on jax:\nout of memory" in capsys.readouterr().err


def test_memory_and_time_of_one_process_go_to_their_rows(measuring, script):
    report = script("report")
    rows = {"seconds": report.Row("transformer", "a step"), "bytes": report.Row("memory", "", unit="bytes")}
    job = measuring.Job("transformer", ["tensorfleet"], rows, lambda _: {"seconds": 1.0, "bytes": 5e6})
    measuring.take_turns("run", [job], 1)
    assert rows["seconds"].seen["tensorfleet"] == [1.0]
    assert rows["bytes"].shown("tensorfleet") == "5 MB"


def test_estimate_comes_from_the_last_run(measuring, script, capsys):
    progress = measuring.Progress("run", [("work", "jax"), ("other", "jax")])
    progress.end("work", "jax", 50.0)
    assert progress.remaining() == 50.0  # as long as the one that was made
    progress.save()
    again = measuring.Progress("run", [("work", "jax")] * 3)
    assert again.remaining() == 150.0
    assert "3 measurements, about 2 min." in capsys.readouterr().err


def test_a_script_that_fails_says_why(measuring):
    with pytest.raises(RuntimeError, match="NameError: name 'nothing'"):
        measuring.told_by(["-c", "nothing"])


def test_a_script_that_takes_too_long_is_stopped(measuring):
    with pytest.raises(RuntimeError, match="not done after 1 s"):
        measuring.told_by(["-c", "import threading; threading.Event().wait(60)"], 1.0)


@pytest.mark.skipif(sys.platform != "linux", reason="reads the clock of another process")
def test_processor_clock_of_a_process_does_not_go_back(measuring):
    before = measuring.processor_seconds(os.getpid())
    sum(range(100_000))
    assert measuring.processor_seconds(os.getpid()) > before > 0


def test_processors_in_use_are_told_of_a_past_stretch(measuring):
    clock = measuring.ProcessorClock([])
    assert clock.used(0.0, 1.0) is None
    clock._seen += [(0.0, 0.0), (1.0, 2.0), (2.0, 2.5)]
    assert clock.used(0.0, 1.0) == 2.0
    assert clock.used(0.5, 1.5) == 1.25
    assert clock.used(1.0, 9.0) == 0.5  # to the last sample
    assert clock.used(-1.0, 1.0) is None
