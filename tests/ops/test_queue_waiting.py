"""Queues: who waits, who is served, and what closing does, with threads that really block."""

import numpy as np
import pytest

import tensorfleet as tf
from tests.support.waiting import in_background, until

SHORT = tf.RunOptions(timeout_in_ms=20)


def waiting(queue, line):
    """How many attempts wait in the line of a queue's object."""
    (result,) = [q for q in objects(queue) if q is not None]
    return len(getattr(result, f"_{line}"))


def objects(queue):
    session = tf.get_default_session()
    shelf = session._engine.private._containers.get("", {})
    return [shelf.get(("queue", queue.name))]


# -- waiting ------------------------------------------------------------------------------------------


def test_dequeue_waits_for_an_element(session):
    q = tf.FIFOQueue(3, tf.float32)
    enqueue = q.enqueue(7.0)
    taker = in_background(session.run, q.dequeue())
    session.run(enqueue)
    assert taker.result(60) == 7.0


def test_enqueue_waits_for_room(session):
    q = tf.FIFOQueue(1, tf.float32)
    one, two, dequeue = q.enqueue(1.0), q.enqueue(2.0), q.dequeue()
    session.run(one)
    putter = in_background(session.run, two)
    until(lambda: waiting(q, "putting") == 1)
    assert session.run(dequeue) == 1.0
    putter.result(60)
    assert session.run(dequeue) == 2.0


def test_capacity_zero_holds_nothing_and_negative_means_no_bound(session):
    nothing, endless = tf.FIFOQueue(0, tf.float32), tf.FIFOQueue(-1, tf.float32)
    with pytest.raises(tf.errors.DeadlineExceededError):
        session.run(nothing.enqueue(1.0), options=SHORT)
    assert session.run(nothing.size()) == 0
    session.run(endless.enqueue_many([np.zeros(5000)]))
    assert session.run(endless.size()) == 5000


def test_batches_larger_than_the_capacity_pass_through(session):
    q = tf.FIFOQueue(2, tf.int32, shapes=[[]])
    enqueue, dequeue = q.enqueue_many([list(range(7))]), q.dequeue_many(7)
    putter = in_background(session.run, enqueue)
    assert session.run(dequeue).tolist() == list(range(7))
    putter.result(60)


def test_who_waits_first_is_served_first(session):
    q = tf.FIFOQueue(100, tf.int32, shapes=[[]])
    many, single, enqueue = q.dequeue_many(3), q.dequeue(), q.enqueue_many([[0, 1, 2, 3]])
    first = in_background(session.run, many)
    until(lambda: objects(q)[0] is not None and waiting(q, "taking") == 1)
    second = in_background(session.run, single)
    until(lambda: waiting(q, "taking") == 2)
    session.run(enqueue)
    assert first.result(60).tolist() == [0, 1, 2]
    assert second.result(60) == 3


def test_one_step_may_serve_itself(session):
    """Operations of one run that do not depend on each other never wait for each other in vain."""
    q = tf.FIFOQueue(10, tf.float32)
    assert session.run([q.dequeue(), q.enqueue(3.0)])[0] == 3.0
    small = tf.FIFOQueue(1, tf.float32)
    got = session.run([small.enqueue_many([[1.0, 2.0, 3.0]]), small.dequeue(), small.dequeue()])
    assert sorted(got[1:]) == [1.0, 2.0]


def test_a_chain_of_queues(session):
    a, b = tf.FIFOQueue(10, tf.float32), tf.FIFOQueue(10, tf.float32)
    move, put, get = b.enqueue(a.dequeue() * 2), a.enqueue(5.0), b.dequeue()
    mover = in_background(session.run, move)
    session.run(put)
    assert session.run(get) == 10.0
    mover.result(60)


def test_a_deadline_withdraws_and_elements_keep_their_place(session):
    q = tf.FIFOQueue(10, tf.int32, shapes=[[]])
    session.run(q.enqueue_many([[0, 1, 2]]))
    with pytest.raises(
        tf.errors.DeadlineExceededError, match="Timed out waiting for notification: waited for 5 elements"
    ):
        session.run(q.dequeue_many(5), options=SHORT)
    assert session.run(q.size()) == 3
    assert session.run(q.dequeue_many(3)).tolist() == [0, 1, 2]


def test_closing_the_session_wakes_those_who_wait():
    q = tf.FIFOQueue(1, tf.float32, name="q")
    enqueue, dequeue = q.enqueue_many([[1.0, 2.0]]), q.dequeue_many(1)
    with tf.Session() as session:
        putter = in_background(session.run, enqueue)
        until(lambda: objects(q)[0] is not None and waiting(q, "putting") == 1)
        session.close()
    assert isinstance(putter.exception(60), tf.errors.CancelledError)
    assert "Enqueue operation was cancelled" in str(putter.exception())
    free = tf.FIFOQueue(1, tf.float32)
    dequeue = free.dequeue()
    with tf.Session() as session:
        taker = in_background(session.run, dequeue)
        until(lambda: objects(free)[0] is not None and waiting(free, "taking") == 1)
        session.close()
    assert "Dequeue operation was cancelled" in str(taker.exception(60))


def test_a_failure_elsewhere_in_the_step_gives_the_elements_back(session):
    q = tf.FIFOQueue(10, tf.int32, shapes=[[]])
    session.run(q.enqueue_many([[0, 1, 2]]))
    x = tf.placeholder(tf.int32)
    failing = tf.Print(tf.div(1, x), [])
    with pytest.raises(tf.errors.InvalidArgumentError, match="zero"):
        session.run([q.dequeue_many(5), failing], {x: 0})
    assert session.run(q.dequeue_many(3)).tolist() == [0, 1, 2]


# -- closing ------------------------------------------------------------------------------------------


def test_a_closed_queue_gives_what_is_left(session):
    q = tf.FIFOQueue(10, tf.float32, shapes=[[]], name="q")
    session.run(q.enqueue_many([[1.0, 2.0]]))
    assert not session.run(q.is_closed())
    session.run(q.close())
    assert session.run(q.is_closed())
    assert [session.run(q.dequeue()) for _ in range(2)] == [1, 2]
    closed = r"FIFOQueue '_\d+_q' is closed and has insufficient elements \(requested 1, current size 0\)"
    with pytest.raises(tf.errors.OutOfRangeError, match=closed):
        session.run(q.dequeue())
    with pytest.raises(tf.errors.CancelledError, match=r"FIFOQueue '_\d+_q' is closed."):
        session.run(q.enqueue(1.0))
    with pytest.raises(tf.errors.CancelledError, match=r"Queue '_\d+_q' is already closed."):
        session.run(q.close())
    session.run(q.close(cancel_pending_enqueues=True))


def test_a_batch_that_cannot_be_filled_leaves_the_elements(session):
    q = tf.FIFOQueue(10, tf.float32, shapes=[[]])
    session.run(q.enqueue_many([[1.0, 2.0]]))
    session.run(q.close())
    with pytest.raises(tf.errors.OutOfRangeError, match=r"\(requested 3, current size 2\)"):
        session.run(q.dequeue_many(3))
    assert session.run(q.dequeue_up_to(3)).tolist() == [1, 2]
    with pytest.raises(tf.errors.OutOfRangeError, match=r"\(requested 3, current size 0\)"):
        session.run(q.dequeue_up_to(3))
    assert session.run(q.dequeue_many(0)).tolist() == []


def test_closing_ends_a_waiting_batch_and_puts_its_elements_back(session):
    q = tf.FIFOQueue(10, tf.float32, shapes=[[]])
    close, many, two = q.close(), q.dequeue_many(4), q.dequeue_many(2)
    session.run(q.enqueue_many([[1.0, 2.0, 3.0]]))
    taker = in_background(session.run, many)
    until(lambda: waiting(q, "taking") == 1)
    session.run(close)
    assert isinstance(taker.exception(60), tf.errors.OutOfRangeError)
    assert "(requested 1, current size 0)" in str(taker.exception())
    assert session.run(two).tolist() == [1, 2]


def test_closing_gives_a_waiting_dequeue_up_to_what_there_is(session):
    q = tf.FIFOQueue(10, tf.float32, shapes=[[]])
    close, up_to = q.close(), q.dequeue_up_to(4)
    session.run(q.enqueue_many([[1.0, 2.0, 3.0]]))
    taker = in_background(session.run, up_to)
    until(lambda: waiting(q, "taking") == 1)
    session.run(close)
    assert taker.result(60).tolist() == [1, 2, 3]


def test_close_waits_for_pending_enqueues(session):
    q = tf.FIFOQueue(4, tf.float32, shapes=[[]])
    enqueue, close, closed = q.enqueue_many([np.arange(6.0)]), q.close(), q.is_closed()
    four, late = q.dequeue_many(4), q.enqueue(9.0)
    putter = in_background(session.run, enqueue)
    until(lambda: objects(q)[0] is not None and waiting(q, "putting") == 1)
    closer = in_background(session.run, close)
    until(lambda: waiting(q, "putting") == 2)
    after = in_background(session.run, late)
    until(lambda: waiting(q, "putting") == 3)
    assert not session.run(closed)
    assert session.run(four).tolist() == [0, 1, 2, 3]
    assert putter.exception(60) is None
    assert closer.exception(60) is None
    assert isinstance(after.exception(60), tf.errors.CancelledError)
    assert session.run(q.dequeue_many(2)).tolist() == [4, 5]


def test_close_can_cancel_pending_enqueues(session):
    q = tf.FIFOQueue(4, tf.float32, shapes=[[]])
    enqueue, one, close = (
        q.enqueue_many([np.arange(6.0)]),
        q.enqueue(7.0),
        q.close(cancel_pending_enqueues=True),
    )
    first = in_background(session.run, enqueue)
    until(lambda: objects(q)[0] is not None and waiting(q, "putting") == 1)
    second = in_background(session.run, one)
    until(lambda: waiting(q, "putting") == 2)
    session.run(close)
    for putter in (first, second):
        assert isinstance(putter.exception(60), tf.errors.CancelledError)
        assert "Enqueue operation was cancelled" in str(putter.exception())
    assert session.run(q.dequeue_up_to(10)).tolist() == [0, 1, 2, 3]


def test_random_shuffle_queue_keeps_some_until_it_is_closed(session):
    q = tf.RandomShuffleQueue(20, 2, tf.int32, [[]])
    close, many = q.close(), q.dequeue_many(4)
    session.run(q.enqueue_many([list(range(5))]))
    taker = in_background(session.run, many)
    until(lambda: waiting(q, "taking") == 1)
    assert session.run(q.size()) == 2
    session.run(close)
    got = taker.result(60).tolist()
    rest = session.run(q.dequeue_up_to(40)).tolist()
    assert sorted(got + rest) == [0, 1, 2, 3, 4]
    with pytest.raises(
        tf.errors.OutOfRangeError, match="RandomShuffleQueue '.*' is closed and has insufficient"
    ):
        session.run(q.dequeue())


@pytest.mark.parametrize("where", ["options", "config"])
def test_a_negative_timeout_means_none(where):
    q = tf.FIFOQueue(1, tf.float32)
    take, put = q.dequeue(), q.enqueue(1.0)
    config = tf.ConfigProto(operation_timeout_in_ms=-5 if where == "config" else 0)
    options = tf.RunOptions(timeout_in_ms=-5) if where == "options" else None
    with tf.Session(config=config) as session:
        taker = in_background(session.run, take, options=options)
        until(lambda: session._engine.running)
        session.run(put, options=options)
        assert taker.result(60) == 1.0
