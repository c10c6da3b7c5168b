"""Who may begin a step: each scheme keeps to its definition, in any order of events and whoever dies."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorfleet.fleet.consistency.machine import Machine
from tensorfleet.fleet.consistency.text import parse_schedule
from tests.fleet.consistency.simulation import COMPUTING, HANDING, LEADING, READING, WAITING, Training

SCHEMES = (
    "bsp",
    "backup:1",
    "backup:2",
    "ssp:0",
    "ssp:2",
    "ssp:2 scale",
    "asp",
    "asp drop:1",
    "auto",
    "asp after 6 bsp",
    "bsp after 6 asp",
    "backup:1 after 4 ssp:1",
)
COUNT = 4


def run(text, draws, kills=0):
    """A training of `COUNT` workers in the order that `draws` says; the first `kills` negative ones kill somebody."""
    training = Training(text, COUNT)
    for draw in draws:
        if draw < 0 and kills and len(training.workers) > 1:
            kills -= 1
            training.kill(list(training.workers)[draw % len(training.workers)])
            continue
        if not training.movable():
            assert training.has_killed_a_stranger, f"all wait: {training.machine.in_words()}"
            training.lose_patience()
        movable = training.movable()
        assert movable, f"all wait: {training.machine.in_words()}"
        training.move(movable[draw % len(movable)])
    return training


orders = st.lists(st.integers(-3, 20), min_size=20, max_size=150)


@pytest.mark.parametrize("text", SCHEMES)
@given(draws=orders, kills=st.integers(0, COUNT - 1))
def test_somebody_can_always_go_on(text, draws, kills):
    run(text, draws, kills)


@given(draws=orders)
def test_bsp_makes_each_update_of_one_fresh_gradient_of_every_worker(draws):
    training = run("bsp", draws)
    for number, gradients in enumerate(training.made):
        assert sorted(gradients) == [(f"w{i}", number) for i in range(COUNT)]
    assert all(weight == 1 for _, weight in training.judged)


@given(draws=orders, kills=st.integers(0, COUNT - 1))
def test_bsp_without_the_dead_makes_updates_of_fresh_gradients_alone(draws, kills):
    training = run("bsp", draws, kills)
    for gradients in training.made:
        names = [name for name, _ in gradients]
        assert len(set(names)) == len(names), "a worker counts once"
        assert len({seen for _, seen in gradients}) == 1, "all have read the same variables"


@pytest.mark.parametrize("spare", [1, 2])
@given(draws=orders)
def test_backup_makes_each_update_of_the_first_gradients(spare, draws):
    training = run(f"backup:{spare}", draws)
    for number, gradients in enumerate(training.made):
        assert len(gradients) == COUNT - spare
        assert {seen for _, seen in gradients} == {number}


@pytest.mark.parametrize("bound", [0, 1, 3])
@given(draws=orders, kills=st.integers(0, COUNT - 1))
def test_ssp_lets_nobody_be_further_ahead_than_its_bound(bound, draws, kills):
    assert max(run(f"ssp:{bound}", draws, kills).ahead, default=0) <= bound


@given(draws=orders, kills=st.integers(0, COUNT - 1))
def test_asp_makes_nobody_wait_and_drops_nothing(draws, kills):
    training = run("asp", draws, kills)
    assert all(worker.state != WAITING for worker in training.workers.values())
    assert all(weight == 1 for _, weight in training.judged)


@given(draws=orders)
def test_drop_drops_what_is_older_than_its_bound_and_nothing_else(draws):
    assert all((age <= 1) == (weight == 1) for age, weight in run("asp drop:1", draws).judged)


@given(draws=orders)
def test_scale_divides_by_one_more_than_the_age(draws):
    assert all(weight == 1 / (1 + age) for age, weight in run("ssp:2 scale", draws).judged)


@pytest.mark.parametrize("text", SCHEMES)
@given(draws=orders, kills=st.integers(0, COUNT - 1))
def test_every_gradient_is_counted(text, draws, kills):
    training = run(text, draws, kills)
    tallies = training.machine.tallies.values()
    assert sum(t.dropped for t in tallies) == sum(weight == 0 for _, weight in training.judged)
    assert sum(t.scaled for t in tallies) == sum(0 < weight < 1 for _, weight in training.judged)
    assert sum(sum(t.ages.values()) for t in tallies) == sum(weight > 0 for _, weight in training.judged)


def test_asp_after_bsp_waits_no_more_once_the_steps_are_made():
    training = Training("asp after 2 bsp", 2)
    while training.updates < 2:
        training.move(training.movable()[0])
    assert len(training.made) == 2
    training.move("w1")
    for _ in range(9):
        training.move("w0")
    assert training.workers["w0"].state != WAITING
    assert training.updates == 5


def step(training, name, until):
    while training.workers[name].state != until:
        training.move(name)


def test_a_leader_that_dies_in_its_update_does_not_stop_the_others():
    training = Training("bsp", 3)
    for name in ("w0", "w1", "w2"):
        step(training, name, COMPUTING)
    for name in ("w1", "w2"):
        step(training, name, WAITING)
    training.move("w0")
    training.move("w0")
    leader = next(name for name, worker in training.workers.items() if worker.state == LEADING)
    training.kill(leader)
    assert {worker.state for worker in training.workers.values()} == {READING}


def test_a_leader_whose_update_fails_does_not_stop_the_others():
    training = Training("bsp", 2)
    for name in ("w0", "w1"):
        step(training, name, HANDING)
    training.move("w0")
    training.move("w1")
    leader = next(name for name, worker in training.workers.items() if worker.state == LEADING)
    other = "w1" if leader == "w0" else "w0"
    training.workers[leader].state = READING  # its step raised an error, and it makes the next one
    training.gathered = []
    step(training, leader, HANDING)
    assert training.workers[other].state == READING


def test_a_worker_that_does_nothing_is_given_up_and_counts_again_when_it_comes_back():
    machine = Machine(parse_schedule("bsp"), 2)
    machine.judge("a", "worker/0", 0, 0, 0.0)
    machine.judge("b", "worker/1", 0, 0, 1.0)
    assert machine.arrive("a", "worker/0", 2.0) == []
    assert machine.due(3.0, 60.0) == 59.0
    assert machine.overdue(61.0, 60.0) == ([], [])
    names, released = machine.overdue(62.0, 60.0)
    assert names == ["worker/1"]
    assert released == [("a", 1)]
    assert machine.updated("a", 63.0) == []
    assert machine.workers == 1
    verdict, _ = machine.judge("b", "worker/1", 1, 1, 64.0)
    assert verdict == (0.0, True, 2)


def test_a_worker_that_never_comes_is_given_up():
    machine = Machine(parse_schedule("ssp:1"), 2)
    for now in range(2):
        machine.judge("a", "worker/0", 0, now, float(now))
        released = machine.arrive("a", "worker/0", float(now))
    assert released == []
    assert "1 of 2 workers have not come" in machine.in_words()
    assert machine.overdue(70.0, 60.0) == (["a worker that has not come"], [("a", 0)])


def test_a_cancelled_wait_leaves_the_gradient_in_the_update():
    machine = Machine(parse_schedule("bsp"), 2)
    machine.judge("a", "worker/0", 0, 0, 0.0)
    machine.arrive("a", "worker/0", 1.0)
    assert machine.withdraw("a", 2.0) == []
    machine.judge("b", "worker/1", 0, 0, 3.0)
    assert machine.arrive("b", "worker/1", 4.0) == [("b", 2)]


def test_a_worker_that_comes_later_begins_where_the_slowest_is():
    machine = Machine(parse_schedule("ssp:1"), 2)
    for name in ("a", "b", "a", "b"):
        machine.judge(name, name, 0, 0, 0.0)
        machine.arrive(name, name, 0.0)
    machine.join("c", "c", 1.0)
    assert machine.steps() == {"a": 2, "b": 2, "c": 2}


def test_a_training_that_all_have_left_waits_for_all_again():
    machine = Machine(parse_schedule("bsp"), 2)
    for name in ("a", "b"):
        machine.join(name, name, 0.0)
    for name in ("a", "b"):
        machine.leave(name, 1.0)
    machine.judge("c", "worker/0", 0, 0, 2.0)
    assert machine.arrive("c", "worker/0", 3.0) == []
    assert machine.workers == 2
