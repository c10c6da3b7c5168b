"""The simulated run has the shape of a real one, so that what the page shows of it holds for real runs."""

import json

import pytest

from tensorfleet.cli.dashboard.overview import FleetView, TaskView, now_json
from tensorfleet.cli.dashboard.series import NAMES
from tensorfleet.cli.dashboard.simulated import SimulatedRun
from tensorfleet.cli.dashboard.sources import Unavailable
from tensorfleet.cluster.inspection import topics

NOON = 1_700_000_000.0


class Clock:
    def __init__(self, time=NOON):
        self.time = time

    def __call__(self):
        return self.time


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def run(clock):
    return SimulatedRun(2, 3, clock=clock)


def test_the_same_moment_looks_the_same(run, clock):
    again = SimulatedRun(2, 3, clock=clock)
    for tell in ("describe", "now", "series"):
        assert json.dumps(getattr(run, tell)()) == json.dumps(getattr(again, tell)())


def test_now_has_what_the_server_of_a_real_run_tells(run):
    real = now_json(FleetView(NOON, {"worker/0": TaskView("worker/0", "running")}), set(), [])
    told = run.now()
    assert told.keys() == real.keys()
    assert told["servers"].keys() == real["servers"].keys()
    assert told["tasks"]["worker/0"].keys() == real["tasks"]["worker/0"].keys()


def test_series_have_the_names_of_a_real_run_and_equal_lengths(run):
    told = run.series(60)
    assert set(told["series"]) == set(NAMES)
    assert len(told["times"]) == 61
    for values in told["series"].values():
        for one in [values] if isinstance(values, list) else values.values():
            assert len(one) == len(told["times"])


def test_since_gives_only_what_is_newer(run, clock):
    last = run.series(60)["times"][-1]
    assert run.series(60, since=last)["times"] == []
    clock.time += 2
    assert run.series(60, since=last)["times"] == [NOON + 1, NOON + 2]


def test_one_server_is_hot_and_one_worker_slow(run):
    now = run.now()
    assert now["servers"]["hottest"] == "ps/0"
    assert now["servers"]["hottest_to_mean"] > 1.3
    assert [label for label, task in now["tasks"].items() if task["is_straggler"]] == ["worker/2"]
    for worker in run.workers:
        assert sum(now["tasks"][worker]["parts"].values()) == pytest.approx(1, abs=1e-3)


def test_a_killed_task_is_dead_takes_no_more_steps_and_leaves_last_words(run, clock):
    clock.time += 10
    run.kill("worker/1")
    clock.time += 10
    task = next(task for task in run.describe()["tasks"] if task["label"] == "worker/1")
    assert task["state"] == "dead"
    assert "SIGKILL" in task["last_words"][-1]
    assert run.now()["tasks"]["worker/1"]["steps_per_second"] is None
    values = run.series(20)["series"]["steps_per_second"]["worker/1"]
    assert values[:10].count(None) == 0
    assert values[-10:].count(None) == 10


def test_losses_fall_and_steps_grow(run):
    series = run.series(600)["series"]
    assert series["loss"]["loss"][0] > 1.5 * series["loss"]["loss"][-1]
    assert series["global_step"] == sorted(series["global_step"])


def test_a_silent_task_and_an_unknown_topic_are_refused_with_a_sentence(run):
    with pytest.raises(Unavailable, match=r"no topic 'stack'. There are graph"):
        run.inspect("worker/0", "stack", {})
    run.silence("worker/0")
    with pytest.raises(Unavailable, match="worker/0 does not answer: it is silent"):
        run.inspect("worker/0", "stacks", {})
    with pytest.raises(KeyError):
        run.inspect("worker/9", "stacks", {})


def test_an_unknown_tensor_offers_near_names(run):
    with pytest.raises(Unavailable, match="Near: dense_1/Relu:0"):
        run.inspect("worker/0", "watch", {"tensors": ["dense_1/Relo:0"]})


def test_settings_are_those_that_a_real_task_tells(run):
    real = topics.answer(None, "somebody", "settings", "{}").content["settings"]
    told = run.inspect("worker/0", "settings", {})["settings"]
    assert [setting.keys() for setting in told] == [setting.keys() for setting in real]
    assert "simulated" not in json.dumps(told)  # the token
