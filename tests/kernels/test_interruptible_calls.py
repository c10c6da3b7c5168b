"""Python functions of steps that were given up: they end, and nothing else does."""

import contextlib
import threading
import time

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.kernels.interruptible_calls import Background, Call, Interrupted

SECONDS = 60


class Loop:
    """A function that goes round and round until it is stopped from outside."""

    def __init__(self, pause=None):
        self.began, self.ended = threading.Event(), threading.Event()
        self._pause = pause

    def __call__(self, *args):
        self.began.set()
        try:
            while True:
                try:
                    if self._pause is not None:
                        time.sleep(self._pause)
                except Exception:
                    continue
        finally:
            self.ended.set()


def in_background(function, *args):
    """Calls a function in a thread; a list gets what it raises."""
    raised = []

    def attempt():
        try:
            function(*args)
        except BaseException as e:
            raised.append(e)

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    return thread, raised


@pytest.mark.parametrize("pause", [None, 0.01])
def test_a_python_function_ends_at_the_deadline_of_its_step(pause, session):
    loop = Loop(pause)
    y = tf.py_func(loop, [tf.constant(1.0)], tf.float32)
    with pytest.raises(tf.errors.DeadlineExceededError, match="has not returned in time"):
        session.run(y, options=tf.RunOptions(timeout_in_ms=100))
    assert loop.ended.wait(SECONDS)
    assert session.run(tf.py_func(lambda: np.float32(2.0), [], tf.float32)) == 2.0


@pytest.mark.parametrize("timeout", [0, 600_000])
@pytest.mark.parametrize("beside", [False, True])
def test_a_python_function_ends_when_its_session_is_closed(timeout, beside):
    loop = Loop(0.01)
    fetches = [tf.py_func(loop, [tf.constant(1.0)], tf.float32)]
    if beside:
        fetches.append(tf.FIFOQueue(1, tf.float32).dequeue())
    sess = tf.Session(config=tf.ConfigProto(operation_timeout_in_ms=timeout))
    thread, raised = in_background(sess.run, fetches)
    assert loop.began.wait(SECONDS)
    sess.close()
    thread.join(SECONDS)
    assert loop.ended.wait(SECONDS)
    assert [type(e) for e in raised] == [tf.errors.CancelledError]


@pytest.mark.parametrize("first", ["loops", "fails"])
def test_a_python_function_ends_when_another_part_of_its_step_fails(first):
    loop = Loop(0.01)

    def fails():
        assert loop.began.wait(SECONDS)
        raise ValueError("no good")

    both = {"loops": loop, "fails": fails}
    order = [first, *(both.keys() - {first})]
    fetches = [tf.py_func(both[name], [], tf.float32, name=name) for name in order]
    fetches.append(
        tf.FIFOQueue(1, tf.float32).dequeue()
    )  # what waits has a thread, so the others have theirs
    config = tf.ConfigProto(inter_op_parallelism_threads=4, use_per_session_threads=True)
    with tf.Session(config=config) as sess:
        thread, raised = in_background(sess.run, fetches)
        thread.join(SECONDS)
        assert loop.ended.wait(SECONDS)
    assert [type(e) for e in raised] == [tf.errors.InvalidArgumentError]


@pytest.mark.parametrize("end", ["deadline", "close", "failure elsewhere"])
def test_a_python_function_ends_with_its_step_on_a_cluster(end, server):
    loop = Loop(0.01)
    fetches = [tf.py_func(loop, [], tf.float32), tf.FIFOQueue(1, tf.float32, shared_name="q").dequeue()]
    close = tf.FIFOQueue(1, tf.float32, shared_name="q").close()
    config = tf.ConfigProto(operation_timeout_in_ms=300 if end == "deadline" else 0)
    sess = tf.Session(server.target, config=config)
    thread, raised = in_background(sess.run, fetches)
    assert loop.began.wait(SECONDS)
    if end == "close":
        sess.close()
    elif end == "failure elsewhere":
        with tf.Session(server.target) as other:
            other.run(close)
    assert loop.ended.wait(SECONDS)
    thread.join(SECONDS)
    sess.close()
    expected = {"deadline": tf.errors.DeadlineExceededError, "close": tf.errors.CancelledError}
    assert [type(e) for e in raised] == [expected.get(end, tf.errors.OutOfRangeError)]


def test_a_loop_of_a_graph_ends_when_its_session_is_closed():
    turns = []
    seen = threading.Event()

    def count(i):
        turns.append(i)
        seen.set()
        return i + 1

    def body(i):
        after = tf.py_func(count, [i], tf.int64)
        after.set_shape([])
        return after

    sess = tf.Session()
    thread, raised = in_background(
        sess.run, tf.while_loop(lambda i: i >= 0, body, [tf.constant(0, tf.int64)])
    )
    assert seen.wait(SECONDS)
    sess.close()
    thread.join(SECONDS)
    assert not thread.is_alive()
    assert [type(e) for e in raised] == [tf.errors.CancelledError]


def test_a_function_of_a_dataset_ends_with_the_session_whose_thread_prefetched():
    loop = Loop(0.01)
    following = (
        tf.data.Dataset.range(3)
        .map(lambda x: tf.py_func(loop, [x], tf.int64))
        .prefetch(1)
        .make_one_shot_iterator()
        .get_next()
    )
    with tf.Session() as sess:
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(following, options=tf.RunOptions(timeout_in_ms=100))
        assert loop.began.wait(SECONDS)
        assert not loop.ended.is_set()  # it works for the iterator, not for the step
    assert loop.ended.wait(SECONDS)


def test_what_a_generator_was_making_at_the_deadline_is_given_to_the_next_step(session):
    gate = threading.Event()

    def numbers():
        yield 0
        gate.wait(SECONDS)
        yield from (1, 2)

    following = tf.data.Dataset.from_generator(numbers, tf.int64).make_one_shot_iterator().get_next()
    short = tf.RunOptions(timeout_in_ms=100)
    assert session.run(following) == 0
    for _ in range(2):
        with pytest.raises(tf.errors.DeadlineExceededError, match="generator"):
            session.run(following, options=short)
    gate.set()
    assert [session.run(following), session.run(following)] == [1, 2]
    with pytest.raises(tf.errors.OutOfRangeError):
        session.run(following)


@pytest.mark.parametrize("timeout", [0, 100])
def test_a_generator_ends_with_its_session(timeout):
    loop = Loop(0.01)

    def numbers():
        yield loop()

    following = tf.data.Dataset.from_generator(numbers, tf.int64).make_one_shot_iterator().get_next()
    sess = tf.Session(config=tf.ConfigProto(operation_timeout_in_ms=timeout))
    thread, raised = in_background(sess.run, following)
    if timeout:
        thread.join(SECONDS)
    assert loop.began.wait(SECONDS)
    sess.close()
    assert loop.ended.wait(SECONDS)
    thread.join(SECONDS)
    expected = tf.errors.DeadlineExceededError if timeout else tf.errors.CancelledError
    assert [type(e) for e in raised] == [expected]


def test_a_call_that_is_over_is_not_interrupted_and_neither_is_what_its_thread_does_next():
    for _ in range(300):
        call = Call(lambda: sum(range(50)), [])
        stopper = threading.Thread(target=call.set)
        stopper.start()
        with contextlib.suppress(Interrupted):
            assert call.run() == 1225
        for _ in range(20):  # a late one would come up here
            sum(range(20))
        stopper.join(SECONDS)


def test_a_call_is_interrupted_once():
    loop = Loop()
    call = Background(loop, [], "test")
    assert loop.began.wait(SECONDS)
    for _ in range(3):
        call.stop()
    assert call.done.wait(SECONDS) and loop.ended.is_set()
    with pytest.raises(Interrupted):
        call.outcome()
