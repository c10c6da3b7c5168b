"""Whatever happens in whatever order, a queue loses nothing, doubles nothing and keeps its order."""

import threading
from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorfleet.base import dtypes, errors
from tensorfleet.base.shapes import TensorShape
from tensorfleet.state.queue_orders import HeapQueue, PaddingQueue, ShuffleQueue
from tensorfleet.state.queues import CloseAttempt, PutAttempt, Queue, Signal, TakeAttempt

SCALAR = TensorShape(())


def fifo(capacity):
    return Queue("q", capacity, [dtypes.int64], [SCALAR])


def padding(capacity):
    return PaddingQueue("q", capacity, [dtypes.int64], [SCALAR])


def shuffle(capacity):
    keep = min(2, capacity - 1) if capacity > 0 else 0
    return ShuffleQueue("q", capacity, [dtypes.int64], [SCALAR], keep, (1, 2))


def priority(capacity):
    return HeapQueue("q", capacity, [dtypes.int64], [SCALAR])


KINDS = {"fifo": fifo, "padding": padding, "shuffle": shuffle, "priority": priority}

EVENTS = st.one_of(
    st.tuples(st.just("put"), st.integers(1, 5)),
    st.tuples(st.just("take"), st.integers(1, 5)),
    st.tuples(st.just("up_to"), st.integers(1, 5)),
    st.tuples(st.just("withdraw"), st.integers(0, 9)),
    st.tuples(st.just("close"), st.just(0)),
    st.tuples(st.just("cancel"), st.just(0)),
)


class World:
    """A queue, everything that was tried on it, and what came out of it."""

    def __init__(self, queue):
        self.queue = queue
        self.next = 0
        self.open: list = []
        self.puts: list = []
        self.takes: list = []

    def submit(self, attempt):
        if not self.queue.submit(attempt):
            self.open.append(attempt)

    def do(self, what, n):
        if what == "put":
            values = np.arange(self.next, self.next + n)
            self.next += n
            attempt = PutAttempt(self.queue.rows([values]))
            self.puts.append((attempt, values.tolist()))
            self.submit(attempt)
        elif what in ("take", "up_to"):
            attempt = TakeAttempt(n, what == "up_to")
            self.takes.append(attempt)
            self.submit(attempt)
        elif what == "withdraw" and self.open:
            attempt = self.open.pop(n % len(self.open))
            self.queue.withdraw(attempt)
        elif what == "close":
            self.submit(CloseAttempt())
        elif what == "cancel":
            self.queue.close_now()
        self.open = [a for a in self.open if not a.done]

    def entered(self):
        """The values that went in, in order."""
        return [v for attempt, values in self.puts for v in values[: attempt.next]]

    def values_of(self, taken):
        return [int(arrays[0][row]) for arrays, row in self.queue.elements_of(taken)]

    def held(self):
        """The values handed out, or in the hands of a batch that is not complete yet."""
        return [v for t in self.takes for v in self.values_of(t.taken)]

    def inside(self):
        elements = self.queue.elements
        return self.values_of(sorted(elements) if isinstance(self.queue, HeapQueue) else elements)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=300, deadline=None)
@given(st.integers(-1, 6), st.lists(EVENTS, max_size=40))
def test_nothing_is_lost_and_nothing_doubled(kind, capacity, events):
    world = World(KINDS[kind](capacity))
    for what, n in events:
        world.do(what, n)
        assert sorted(world.held() + world.inside()) == sorted(world.entered())
        assert capacity < 0 or len(world.inside()) <= capacity + 5  # what is put back may exceed it


@settings(max_examples=300, deadline=None)
@given(st.integers(-1, 6), st.lists(EVENTS.filter(lambda e: e[0] != "withdraw"), max_size=40))
def test_order_is_kept(capacity, events):
    """Without withdrawals, elements leave in the order in which they entered, to takers in their order."""
    world = World(fifo(capacity))
    for what, n in events:
        world.do(what, n)
    assert world.held() + world.inside() == world.entered()


@settings(max_examples=300, deadline=None)
@given(st.integers(-1, 6), st.lists(EVENTS, max_size=40))
def test_those_inside_stay_in_order(capacity, events):
    """Also when batches are withdrawn: their elements return to where they were."""
    world = World(fifo(capacity))
    for what, n in events:
        world.do(what, n)
        inside = world.inside()
        assert inside == sorted(inside)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=200, deadline=None)
@given(st.integers(1, 6), st.lists(EVENTS, max_size=30))
def test_after_closing_nobody_waits_in_vain(kind, capacity, events):
    world = World(KINDS[kind](capacity))
    for what, n in events:
        world.do(what, n)
    world.do("cancel", 0)
    assert world.open == []
    late = PutAttempt(world.queue.rows([np.arange(1)]))
    assert world.queue.submit(late)
    assert isinstance(late.error, errors.CancelledError)
    left = TakeAttempt(100, up_to=True)
    assert world.queue.submit(left)
    assert world.queue.size() == 0
    assert bool(left.taken) == (left.error is None)
    empty = TakeAttempt(1)
    assert world.queue.submit(empty)
    assert isinstance(empty.error, errors.OutOfRangeError)


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 4), st.lists(EVENTS.filter(lambda e: e[0] in ("put", "take")), max_size=30))
def test_who_waits_first_is_served_first(capacity, events):
    world = World(fifo(capacity))
    for what, n in events:
        world.do(what, n)
        done = [t.done for t in world.takes]
        assert done == sorted(done, reverse=True)
        done = [p.done for p, _ in world.puts]
        assert done == sorted(done, reverse=True)


@pytest.mark.parametrize("kind", KINDS)
def test_threads_that_really_block(kind):
    """Four putters and four takers through a narrow queue, some of whom give up now and then."""
    queue = KINDS[kind](3)
    taken: list[list[int]] = [[] for _ in range(4)]
    patience = deque([0.0001] * 40)

    def put(first):
        for v in range(first, first + 50):
            run(PutAttempt(queue.rows([np.array([v])])))

    def take(out):
        while True:
            attempt = TakeAttempt(2, up_to=True)
            if not run(attempt):
                continue
            if attempt.error is not None:
                return
            out += [int(a[0][row]) for a, row in queue.elements_of(attempt.taken)]

    def run(attempt):
        """Whether the attempt came to its end; takers may lose their patience and start again."""
        if queue.submit(attempt):
            return True
        timeout = patience.popleft() if isinstance(attempt, TakeAttempt) and patience else None
        assert attempt.event.wait(timeout or 60) or timeout
        return attempt.done or not queue.withdraw(attempt)

    putters = [threading.Thread(target=put, args=(i * 50,)) for i in range(4)]
    takers = [threading.Thread(target=take, args=(out,)) for out in taken]
    for t in putters + takers:
        t.start()
    for t in putters:
        t.join(60)
    queue.submit(CloseAttempt())
    for t in takers:
        t.join(60)
    assert sorted(v for out in taken for v in out) == list(range(200))
    if kind == "fifo":
        for out in taken:  # of one putter, each taker sees the values in order
            for i in range(4):
                mine = [v for v in out if v // 50 == i]
                assert mine == sorted(mine)


def test_the_most_urgent_goes_first_even_if_it_comes_while_others_are_waited_for():
    queue, several = priority(5), TakeAttempt(3)
    assert not queue.submit(several)
    queue.submit(PutAttempt(queue.rows([np.array([5, 7])])))
    assert not several.done and queue.size() == 2  # they stay in until all are there
    behind = TakeAttempt(1)
    assert not queue.submit(behind)
    queue.submit(PutAttempt(queue.rows([np.array([1, 9])])))
    assert several.done and [int(a[0][row]) for _, _, (a, row) in several.taken] == [1, 5, 7]
    assert behind.done and queue.size() == 0


def test_more_than_a_priority_queue_can_hold_pass_through_it():
    queue, several = priority(2), TakeAttempt(3)
    queue.submit(several)
    putting = PutAttempt(queue.rows([np.array([3, 2, 1])]))
    queue.submit(putting)
    assert putting.done and several.done and len(several.taken) == 3


def test_a_signal_stays_set_however_often_it_is_set():
    signal = Signal()
    assert not signal.wait(0)
    assert not signal.wait(-1.0)
    waiting = threading.Thread(target=signal.wait, args=(60,))
    waiting.start()
    signal.set()
    signal.set()
    waiting.join(60)
    assert not waiting.is_alive()
    assert signal.wait(0) and signal.wait()
