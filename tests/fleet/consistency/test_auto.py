"""A bound that follows what waiting and staleness cost."""

from tensorfleet.fleet.consistency.auto import FIRST_BOUND, MAX_BOUND, STEPS_PER_WINDOW, Adaptive
from tensorfleet.fleet.consistency.scheme import Scaled, StepObservation

WORKERS = 4


def observed(scheme, windows, age, worked, waited):
    for _ in range(windows * STEPS_PER_WINDOW * WORKERS):
        scheme.observe(StepObservation(age, worked, waited, WORKERS))


def test_the_bound_grows_while_waiting_costs_more():
    scheme = Adaptive()
    observed(scheme, 3, age=WORKERS - 1, worked=1.0, waited=1.0)
    assert scheme.bound == FIRST_BOUND + 3
    assert scheme.costs == (0.5, 0.0)
    observed(scheme, 100, age=0, worked=1.0, waited=1.0)
    assert scheme.bound == MAX_BOUND


def test_the_bound_shrinks_while_staleness_costs_more():
    scheme = Adaptive()
    observed(scheme, 1, age=WORKERS - 1 + WORKERS, worked=1.0, waited=0.0)
    assert scheme.bound == FIRST_BOUND - 1
    assert scheme.costs == (0.0, 0.5)
    observed(scheme, 9, age=50, worked=1.0, waited=0.0)
    assert scheme.bound == 0


def test_the_bound_stays_while_both_cost_the_same():
    scheme = Adaptive()
    observed(scheme, 5, age=WORKERS - 1, worked=1.0, waited=0.01)
    assert scheme.bound == FIRST_BOUND


def test_the_bound_stays_within_a_window():
    scheme = Adaptive()
    for _ in range(STEPS_PER_WINDOW * WORKERS - 1):
        scheme.observe(StepObservation(0, 1.0, 1.0, WORKERS))
    assert scheme.bound == FIRST_BOUND


def test_the_bound_is_the_limit_of_a_worker_that_is_ahead():
    scheme = Adaptive(Scaled())
    assert scheme.may_begin(FIRST_BOUND, 0)
    assert not scheme.may_begin(FIRST_BOUND + 1, 0)
    assert scheme.weight(3) == 0.25
    assert scheme.text == "auto scale"


def test_no_time_costs_nothing():
    scheme = Adaptive()
    observed(scheme, 1, age=0, worked=0.0, waited=0.0)
    assert scheme.costs == (0.0, 0.0)
