"""Findings appear, stay and go; a healthy cluster has none."""

import pytest

import tensorfleet as tf
from tensorfleet.cli.dashboard.finding_rules import RunObservation
from tensorfleet.cli.dashboard.findings import FindingBoard, findings_in, stragglers
from tensorfleet.cli.dashboard.overview import FleetView, TaskView
from tests.cli.dashboard.views import view_of
from tests.support.simulated_fleet import SimulatedFleet


def kinds(view):
    return {(o.kind, o.task) for o in findings_in(view)}


@pytest.mark.parametrize(("ps", "workers"), [(1, 1), (2, 3), (40, 160)])
def test_a_healthy_cluster_has_no_findings(ps, workers):
    view = view_of(SimulatedFleet(ps, workers, started=0.0, hot=False, slow=False), 60)
    assert kinds(view) == set() and stragglers(view) == set()


@pytest.mark.parametrize(("ps", "workers"), [(2, 3), (40, 160)])
def test_a_hot_server_and_a_straggler_are_named(ps, workers):
    view = view_of(SimulatedFleet(ps, workers, started=0.0), 60)
    assert kinds(view) == {("hot_server", "ps/0"), ("straggler", "worker/1")}
    assert stragglers(view) == {"worker/1"}


def test_both_are_named_within_ten_seconds_of_the_start():
    fleet, board = SimulatedFleet(2, 3, started=0.0), FindingBoard()
    for now in range(1, 9):
        shown = board.update(view_of(fleet, now))
    assert {f.observation.task for f in shown} == {"ps/0", "worker/1"}


class Fleet:
    """One task, about which an observation may be true."""

    def __init__(self):
        self.board, self.time = FindingBoard(), 100.0

    def second(self, is_silent):
        self.time += 1.0
        state = "silent" if is_silent else "running"
        view = TaskView("ps/0", state, silent_seconds=4.0)
        return self.board.update(FleetView(self.time, {"ps/0": view}))


def test_a_fact_is_shown_at_once_and_goes_a_little_after_it_is_over():
    fleet = Fleet()
    assert [f.since for f in fleet.second(is_silent=True)] == [101.0]
    for _ in range(6):
        assert len(fleet.second(is_silent=False)) == 1
    assert fleet.second(is_silent=False) == []
    assert fleet.board.changes() == [
        "ps/0 has not answered for 4 s.",
        "No more: ps/0 has not answered for 4 s.",
    ]
    assert fleet.board.changes() == []


def test_a_fact_that_comes_and_goes_does_not_flicker():
    fleet = Fleet()
    seen = [len(fleet.second(is_silent=i % 4 == 0)) for i in range(40)]
    assert seen == [1] * 40


@pytest.fixture
def rule(monkeypatch):
    """A rule that says what the test wants."""
    said = []
    monkeypatch.setattr("tensorfleet.cli.dashboard.findings.RULES", (lambda fleet: iter(said),))
    return said


def test_a_mean_is_shown_when_it_is_true_twice_in_a_row(rule):
    board = FindingBoard()
    hot = RunObservation("hot_server", "warning", "ps/0", "hot", "cool it")
    shown = []
    for i, is_true in enumerate([True, False, True, False, True, True, True]):
        rule[:] = [hot] if is_true else []
        shown.append(len(board.update(FleetView(float(i)))))
    assert shown == [0, 0, 0, 0, 0, 1, 1]


def test_the_newest_text_and_the_first_time_are_shown(rule):
    board = FindingBoard()
    for i in range(5):
        rule[:] = [RunObservation("hot_server", "warning", "ps/0", f"{i} %", "cool it")]
        shown = board.update(FleetView(float(i)))
    assert [(f.json()["text"], f.json()["since"]) for f in shown] == [("4 %", 0.0)]


def test_the_most_serious_come_first_and_not_all_of_two_hundred(rule):
    board = FindingBoard()
    rule[:] = [
        RunObservation(
            "straggler", "warning" if i < 100 else "serious", f"worker/{i}", "slow", "", is_sudden=True
        )
        for i in range(200)
    ]
    shown = board.update(FleetView(1.0))
    assert len(shown) == 12 and {f.observation.severity for f in shown} == {"serious"}


def test_the_advice_names_only_what_exists():
    assert tf.fixed_size_partitioner and tf.train.replica_device_setter and tf.train.SyncReplicasOptimizer
    assert tf.contrib.training.GreedyLoadBalancingStrategy and tf.contrib.training.byte_size_load_fn
    assert tf.data.Dataset.prefetch and tf.nn.embedding_lookup and tf.gather and tf.train.QueueRunner
    assert tf.train.batch and tf.Graph.finalize


def test_a_task_that_died_comes_before_an_older_mean(rule):
    board = FindingBoard()
    hot = RunObservation("hot_server", "serious", "ps/0", "hot", "cool it")
    dead = RunObservation("dead", "serious", "worker/1", "dead", "look", is_sudden=True)
    for i in range(3):
        rule[:] = [hot, dead] if i else [hot]
        shown = board.update(FleetView(float(i)))
    assert [f.observation.task for f in shown] == ["worker/1", "ps/0"]
