"""The states of tasks."""

import pytest

from tensorfleet.cli.dashboard.states import TaskFacts, state_of

NOW = 100.0


def facts(**values):
    return TaskFacts("worker/1", **{"address": "h:1"} | values)


@pytest.mark.parametrize(
    ("state", "values"),
    [
        ("starting", {}),
        ("starting", {"launched": "running"}),
        ("starting", {"is_refused": True}),
        ("running", {"last_answer": 99.5}),
        ("running", {"last_answer": 98.0, "is_refused": True}),  # one lost answer is not the end
        ("silent", {"last_answer": 96.0}),
        (
            "silent",
            {"last_answer": 96.0, "launched": "running", "is_refused": True},
        ),  # being restarted, perhaps
        ("dead", {"last_answer": 96.0, "is_refused": True}),  # started by hand, and nobody listens any more
        ("ended", {"launched": "ended", "last_answer": 99.9}),
        ("failed", {"launched": "failed", "exit_code": 1}),
        ("dead", {"launched": "failed", "exit_code": -9}),
        ("running", {"launched": "running", "address": None}),  # it has nothing to ask
        ("starting", {"address": None}),
    ],
)
def test_state(state, values):
    assert state_of(facts(**values), NOW) == state


def test_a_label_is_a_job_and_a_number():
    assert (facts().job, facts().index) == ("worker", 1)
