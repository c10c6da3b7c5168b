"""Python functions of one step: in turn, and beside each other when they wait for one another."""

import queue
import threading

import numpy as np
import pytest

import tensorfleet as tf

LONG = 60  # seconds: nobody waits so long unless something is wrong


def called(function, *args):
    return tf.py_func(function, list(args), tf.int64)


@pytest.fixture(params=[True, False], ids=["giver first", "taker first"])
def pair(request):
    """Two functions, one of which waits for what the other gives."""
    box = queue.Queue()

    def give():
        box.put(5)
        return 1

    functions = [give, lambda: box.get(timeout=LONG)]
    found = [called(f) for f in (functions if request.param else reversed(functions))]
    return found if request.param else found[::-1]


def test_functions_that_wait_for_each_other(pair, session):
    for _ in range(3):
        assert session.run(pair) == [1, 5]
        assert session.run(tf.add_n(pair)) == 6


def test_three_functions_that_meet(session):
    meeting = threading.Barrier(3)
    places = [called(lambda n=n: meeting.wait(LONG) * 0 + n) for n in (1, 2, 3)]
    assert session.run(places) == [1, 2, 3]
    assert session.run(tf.add_n(places)) == 6


def test_functions_that_do_not_wait_run_in_the_order_of_the_graph(session):
    seen = []
    calls = [called(lambda n: seen.append(int(n)) or n, np.int64(n)) for n in range(6)]
    assert session.run(calls) == [0, 1, 2, 3, 4, 5]
    assert seen == [0, 1, 2, 3, 4, 5]


def test_a_failure_ends_those_that_wait():
    ended = threading.Event()

    def wait():
        try:
            while not ended.wait(0.01):
                pass
        finally:
            ended.set()
        return 1

    def fail():
        raise ValueError("no more")

    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="no more"):
        session.run([called(wait), called(fail)])
    assert ended.wait(LONG)


def test_a_deadline_ends_them_all():
    box = queue.Queue()

    def wait():
        while True:
            try:
                return box.get(timeout=0.01)
            except queue.Empty:
                continue

    options = tf.RunOptions(timeout_in_ms=300)
    with tf.Session() as session, pytest.raises(tf.errors.DeadlineExceededError):
        session.run([called(wait), called(wait)], options=options)


def test_what_follows_a_function_runs_while_another_waits(session):
    box = queue.Queue()
    slow = called(lambda: box.get(timeout=LONG))
    first = called(lambda: 20)
    second = called(lambda n: box.put(int(n)) or n, first + 1)
    assert session.run([slow, second]) == [21, 21]


def test_no_thread_is_left(session):
    before = set(threading.enumerate())
    session.run([called(lambda: 1), called(lambda: 2)])
    left = [t for t in set(threading.enumerate()) - before if t.name == "tensorfleet-turns"]
    for t in left:
        t.join(LONG)
    assert not any(t.is_alive() for t in left)
