"""Reports of tasks as snapshots: what is there is taken, and nonsense hides no task."""

import math

import pytest

from tensorfleet.cli.dashboard.snapshots import snapshot_of
from tests.support.simulated_fleet import SimulatedFleet


def test_a_report_becomes_numbers():
    snapshot = snapshot_of("worker/0", SimulatedFleet(started=100.0).stats("worker/0", 110.0), 0.0)
    assert (snapshot.task, snapshot.time, snapshot.started) == ("worker/0", 110.0, 100.0)
    assert snapshot.steps == 100 and snapshot.parts["pull"] == pytest.approx(2.0)
    assert set(snapshot.peers) == {"ps/0", "ps/1"} and set(snapshot.scalars) == {"loss", "accuracy"}


def test_an_empty_report_is_a_task_that_has_done_nothing():
    snapshot = snapshot_of("ps/0", {}, 5.0)
    assert (snapshot.time, snapshot.steps, snapshot.variables, snapshot.global_step) == (5.0, 0.0, {}, None)


@pytest.mark.parametrize("nonsense", [None, 3, "x", [], [3], {"a": 1}, [{"name": 3}], math.nan, [[]]])
@pytest.mark.parametrize("field", sorted(SimulatedFleet(started=0.0).stats("ps/0", 1.0)))
def test_a_field_of_another_type_counts_as_nothing(field, nonsense):
    report = SimulatedFleet(started=0.0).stats("ps/0", 9.0) | {field: nonsense}
    assert snapshot_of("ps/0", report, 1.0).task == "ps/0"


def test_the_step_that_waits_longest_is_told():
    under_way = [
        {"session": "a", "step": 1, "seconds": 0.1, "waits_for": "ps/0"},
        {"session": "a", "step": 2, "seconds": 4.0, "waits_for": "ps/1"},
        {"session": "a", "step": 3, "seconds": 9.0, "waits_for": None},
    ]
    assert snapshot_of("worker/0", {"under_way": under_way}, 1.0).waits_for == ("ps/1", 4.0)


def test_names_without_end_are_cut():
    report = {"variables": [{"name": "x" * 10_000, "bytes": 1}]}
    assert len(next(iter(snapshot_of("ps/0", report, 1.0).variables))) == 400


def test_an_integer_that_no_float_can_hold_counts_as_zero():
    snapshot = snapshot_of("worker/0", {"incarnation": 10**400, "steps": {"count": -(10**400)}}, 1.0)
    assert (snapshot.incarnation, snapshot.steps) == (0, 0.0)
