"""Counts of what a process has done: counting never fails, and never grows without end."""

import pytest

from tensorfleet.base import counters
from tensorfleet.base.counters import ErrorLog, StepCounts, StepTimer


class _Unspeakable(Exception):
    def __str__(self):
        raise ValueError("no words")


def test_an_error_that_cannot_be_printed_is_noted_all_the_same():
    log = ErrorLog()
    log.note(_Unspeakable())
    assert log.text == "_Unspeakable: (it cannot be printed)" and log.time > 0


def test_a_note_of_an_error_keeps_neither_its_traceback_nor_all_of_its_text():
    log = ErrorLog()
    log.note(ValueError("x" * 1_000_000))
    assert len(log.text) == 2000


def test_a_step_that_took_no_time_is_counted():
    steps, timer = StepCounts(), StepTimer()
    timer.add_waits(["ps/0"], 0.0)
    steps.measured(timer, 0.0)
    assert steps.count == 1


@pytest.fixture
def staleness(monkeypatch):
    monkeypatch.setattr(counters, "staleness", {})
    monkeypatch.setattr(counters, "_tells_staleness", False)  # an optimizer of another test may have set it
    return lambda: counters.staleness


def test_the_ages_of_gradients_do_not_grow_without_end(staleness):
    for age in range(0, 100_000, 10):
        counters.note_measured_staleness(age)
    assert len(staleness()) <= 101 and sum(staleness().values()) == 10_000
