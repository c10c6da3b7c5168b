"""The history of a run."""

import itertools
import os
import random
import subprocess

import pytest

from tensorfleet.cli.dashboard.store import FILE, StatsStore, mean_of, recorded


@pytest.fixture
def store(tmp_path):
    result = StatsStore(tmp_path / FILE)
    yield result
    result.close()


def fill(store, seconds, start=1000.0):
    for i in range(seconds):
        store.add_point(start + i, {"global_step": i, "cpu_percent": {"ps/0": float(i)}})


def test_points_come_back(store):
    fill(store, 5)
    assert [time for time, _ in store.points(0.0)] == [1000.0, 1001.0, 1002.0, 1003.0, 1004.0]
    assert store.points(1003.0) == [(1004.0, {"global_step": 4, "cpu_percent": {"ps/0": 4.0}})]
    assert store.last_time() == 1004.0


def test_seconds_are_kept_for_ten_minutes_and_means_for_the_time_before(store):
    fill(store, 1200)
    times = [time for time, _ in store.points(0.0)]
    seconds = [t for t, after in itertools.pairwise(times) if after - t == 1.0]
    assert 590 <= len(seconds) <= 640
    assert times == sorted(times) and times[0] < 1015.0 and times[-1] == 2199.0
    gaps = {after - t for t, after in itertools.pairwise(times)}
    assert max(gaps) <= 16.0


def test_means_are_kept_for_a_day(store):
    for hour in range(40):
        fill(store, 60, start=hour * 3600.0)
    times = [time for time, _ in store.points(-1.0)]
    assert 14 * 3600.0 <= times[0] <= 16 * 3600.0


def test_a_mean_is_of_each_number():
    points = [
        {"a": 1.0, "b": {"x": 2.0}, "global_step": 4},
        {"a": 3.0, "b": {"y": 5.0}, "global_step": 9},
        {"a": None},
    ]
    assert mean_of(points) == {"a": 2.0, "b": {"x": 2.0, "y": 5.0}, "global_step": 9}


def test_events_and_the_last_state_come_back(store):
    store.add_event(1.0, "task", "ps/0", "running")
    store.add_event(2.0, "run", None, "ended")
    store.set_state("run", {"name": "a"})
    store.set_state("run", {"name": "b"})
    assert [e["text"] for e in store.events()] == ["running", "ended"]
    assert [e["text"] for e in store.events(last=1)] == ["ended"]
    assert store.state("run") == {"name": "b"} and store.state("other") == {}


def test_the_last_report_of_a_task_comes_back(store, tmp_path):
    store.set_report("ps/0", "graph", {"sessions": [1]})
    store.set_report("ps/0", "graph", {"sessions": [2]})
    store.set_report("ps/1", "graph", {"sessions": [3]})
    history = recorded(tmp_path / FILE)
    assert history.report("ps/0", "graph") == {"sessions": [2]}
    assert history.report("ps/1", "graph") == {"sessions": [3]}
    assert history.report("ps/0", "settings") == {}
    history.close()


def test_a_report_that_is_too_large_leaves_the_one_before(store):
    store.set_report("ps/0", "graph", {"sessions": [1]})
    store.set_report("ps/0", "graph", {"sessions": [random.Random(1).randbytes(5 << 20).hex()]})
    assert store.report("ps/0", "graph") == {"sessions": [1]}


def test_a_finished_run_is_read_only(tmp_path):
    store = StatsStore(tmp_path / FILE)
    fill(store, 3)
    store.close()
    history = recorded(tmp_path / FILE)
    assert len(history.points(0.0)) == 3
    assert not hasattr(history, "add_point")
    history.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [FILE]


def test_a_history_is_read_while_it_is_written(store, tmp_path):
    fill(store, 3)
    history = recorded(tmp_path / FILE)
    fill(store, 3, start=2000.0)
    assert len(history.points(0.0)) == 6
    history.close()


def test_a_file_that_is_no_history_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="No file"):
        recorded(tmp_path / FILE)
    (tmp_path / FILE).write_text("something else" * 100)
    with pytest.raises(OSError, match="Cannot read the statistics"):
        recorded(tmp_path / FILE)


def test_a_file_that_cannot_be_written_costs_one_line(tmp_path):
    (tmp_path / "runs").write_text("a file")
    said = []
    store = StatsStore(tmp_path / "runs" / FILE, said.append)
    fill(store, 50)
    assert len(store.points(0.0)) == 50 and not store.is_on_disk
    assert len(said) == 1 and "cannot write the statistics" in said[0] and "The run continues" in said[0]
    store.close()


def test_a_file_that_somebody_replaced_by_nonsense_costs_one_line(tmp_path):
    (tmp_path / FILE).write_text("something else" * 100)
    said = []
    store = StatsStore(tmp_path / FILE, said.append)
    fill(store, 5)
    assert len(store.points(0.0)) == 5 and len(said) == 1
    store.close()


@pytest.mark.skipif(os.getuid() != 0, reason="only root may mount a small file system")
def test_a_full_disk_costs_one_line_and_keeps_what_was_there(tmp_path):
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(folder)], capture_output=True, timeout=30
    )
    if mounted.returncode:
        pytest.skip("a small file system cannot be mounted")
    try:
        said = []
        store = StatsStore(folder / FILE, said.append)
        fill(store, 10)
        (folder / "ballast").write_bytes(b"")
        with open(folder / "ballast", "wb", buffering=0) as ballast, pytest.raises(OSError):
            while True:
                ballast.write(bytes(1024))
        for i in range(400):
            store.add_point(1010.0 + i, {"cpu_percent": {f"worker/{k}": random.random() for k in range(20)}})
        assert len(said) == 1 and "full" in said[0], said
        times = [time for time, _ in store.points(0.0)]
        assert times[:10] == [1000.0 + i for i in range(10)] and times[-1] == 1409.0
        store.close()
    finally:
        subprocess.run(["umount", str(folder)], check=True, timeout=30)


def test_a_store_that_is_closed_takes_nothing_and_does_not_fail(store):
    store.close()
    fill(store, 3)
    assert store.points(0.0) == [] and store.last_time() is None


def test_two_writers_of_one_file_do_not_fail(tmp_path):
    said = []
    first, second = (StatsStore(tmp_path / FILE, said.append) for _ in range(2))
    fill(first, 20)
    fill(second, 20, start=5000.0)
    assert len(first.points(0.0)) >= 40 and not said
    first.close()
    second.close()
