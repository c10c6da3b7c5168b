"""Workers that push together or within a bound: who is last, who waits for whom, and who has gone."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tensorfleet.state.agreement import Agreement
from tensorfleet.state.worker_rounds import Clocks, WorkerRounds

EVENTS = st.lists(st.tuples(st.sampled_from(["arrive", "leave", "join"]), st.integers(0, 3)), max_size=60)


@given(EVENTS)
def test_a_round_closes_once_and_only_when_all_members_have_pushed(events):
    clocks, closing = Clocks(4), False
    for what, worker in events:
        if what == "join":
            clocks.join(worker)
            continue
        last = clocks.arrive(worker) if what == "arrive" else clocks.leave(worker)
        assert not (last and closing), "only one applies the gradients of a round"
        if last:
            assert clocks.arrived == clocks.members and clocks.arrived
            closing = True
        elif not closing:
            assert not clocks.arrived or clocks.missing()
        if closing and worker % 2:  # it takes a while to apply them
            before = clocks.round
            clocks.open()
            closing = False
            assert clocks.round == before + 1 and not clocks.arrived


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3)), max_size=80), st.integers(0, 4))
def test_nobody_who_waits_as_told_gets_further_ahead_than_the_bound(events, bound):
    clocks = Clocks(4)
    for leaves, worker in events:
        if leaves and len(clocks.members) > 1:
            clocks.leave(worker)
        elif worker in clocks.members and not clocks.behind(worker, bound):
            clocks.tick(worker)
        ticks = [clocks.ticks[m] for m in clocks.members]
        assert max(ticks) - min(ticks) <= bound + 1


def test_the_slowest_worker_never_waits():
    clocks = Clocks(3)
    for _ in range(5):
        clocks.tick(1)
    assert clocks.behind(1, 4) == [0, 2]
    assert clocks.behind(0, 0) == clocks.behind(2, 0) == []


def test_a_worker_that_comes_back_begins_where_the_slowest_is():
    clocks = Clocks(2)
    clocks.leave(1)
    for _ in range(9):
        clocks.tick(0)
    clocks.join(1)
    assert clocks.behind(0, 0) == []


def test_means_do_not_depend_on_who_was_first():
    values = np.random.default_rng(0).standard_normal((3, 1000)).astype(np.float32)
    means = []
    for order in ((0, 1, 2), (2, 0, 1)):
        rounds = WorkerRounds("m", 3)
        for worker in order:
            rounds.put(worker, [values[worker]])
        means.append(rounds.take()[0])
    assert np.array_equal(*means)
    assert np.allclose(means[0], values.mean(axis=0))


def test_a_worker_that_pushes_twice_in_a_round_counts_once():
    rounds = WorkerRounds("m", 2)
    for worker, value in ((0, 5.0), (0, 1.0), (1, 3.0)):
        rounds.put(worker, [np.float32([value])])
    assert rounds.take()[0].tolist() == [2.0]


def test_whoever_waits_is_woken_by_the_next_change():
    rounds = WorkerRounds("m", 2)
    missing, event = rounds.look(lambda clocks: clocks.missing())
    assert missing == [0, 1] and not event.is_set()
    rounds.change(lambda clocks: clocks.arrive(0))
    assert event.is_set()
    assert rounds.look(lambda clocks: clocks.missing())[0] == [1]


def test_a_copy_goes_on_in_the_middle_of_a_round():
    rounds = WorkerRounds("m", 3)
    rounds.change(lambda clocks: clocks.tick(2))
    rounds.put(1, [np.float32([4.0]), np.float32([2.0])])
    rounds.change(lambda clocks: clocks.arrive(1))
    copy = WorkerRounds("m", 3)
    copy.restore(*rounds.content())
    assert copy.look(lambda clocks: clocks.missing())[0] == [0, 2]
    assert copy.look(lambda clocks: clocks.behind(2, 0))[0] == [0, 1]
    assert [g.tolist() for g in copy.take()] == [[4.0], [2.0]]


def test_the_first_text_holds():
    agreement = Agreement()
    assert agreement.settle(b"one") == agreement.settle(b"two") == b"one"
    copy = Agreement()
    copy.restore(*agreement.content())
    assert copy.settle(b"three") == b"one"
