"""Waiting long for a queue, or for what works like one, is told of: for what, where, and who made it."""

import re

import pytest

import tensorfleet as tf
from tensorfleet.ops import long_waits
from tests.support.waiting import SECONDS, in_background, until


@pytest.fixture
def lines(monkeypatch, caplog):
    """The lines told of waits, which are told of soon."""
    monkeypatch.setattr(long_waits, "REPORT_SECONDS", 0.02)

    def found():
        return [r.getMessage() for r in caplog.records if "A step has waited" in r.getMessage()]

    with caplog.at_level("WARNING", logger="tensorflow"):
        yield found


def told(lines, session, waiting, wake):
    """The first line about a run that waits until another one wakes it."""
    ended = in_background(session.run, waiting)
    until(lines)
    session.run(wake)
    ended.result(SECONDS)
    return lines()[0]


def test_a_dequeue_tells_of_its_queue(session, lines):
    q = tf.FIFOQueue(3, tf.float32, name="examples")
    line = told(lines, session, q.dequeue(), q.enqueue(1.0))
    assert re.search(
        r"waited \d+ s for an element of queue '_\d+_examples' \(0 of 3 elements; made at ", line
    )
    assert "test_long_waits.py" in line


def test_an_enqueue_tells_of_a_full_queue(session, lines):
    q = tf.FIFOQueue(1, tf.float32, shared_name="full")
    take = q.dequeue()
    session.run(q.enqueue(1.0))
    line = told(lines, session, q.enqueue(2.0), take)
    assert "for room in queue 'full' (1 of 1 elements; made at" in line


def test_a_shuffling_queue_tells_how_many_stay(session, lines):
    q = tf.RandomShuffleQueue(8, 2, tf.float32, shapes=[[]])
    session.run(q.enqueue_many([[1.0, 2.0]]))
    assert "(2 of 8 elements, of which 2 stay; made" in told(lines, session, q.dequeue(), q.enqueue(3.0))


def test_an_accumulator_tells_how_many_gradients_it_has(session, lines):
    sum_ = tf.ConditionalAccumulator(tf.float32, shape=[])
    give = sum_.apply_grad(1.0)
    session.run(give)
    assert "(1 gradients for step 0; made at" in told(lines, session, sum_.take_grad(2), give)


def test_a_staging_area_tells_that_it_is_empty(session, lines):
    area = tf.contrib.staging.StagingArea([tf.float32], shapes=[[]])
    put = area.put([1.0])
    line = told(lines, session, area.get(), put)
    assert "for values in staging area" in line
    assert "(0 elements; made at" in line


def test_waiting_on_is_told_of_after_twice_as_long(session, lines):
    q = tf.FIFOQueue(3, tf.float32)
    ended = in_background(session.run, q.dequeue())
    until(lambda: len(lines()) == 3)
    session.run(q.enqueue(1.0))
    ended.result(SECONDS)
    # A later wait of the same length is nothing new.
    wait = long_waits.LongWait(next(iter(session._engine.private.of_kind("queue"))), "Dequeue", "")
    assert wait.due() >= 8 * 0.02


def test_a_timeout_tells_the_state_of_the_queue(session):
    q = tf.FIFOQueue(3, tf.float32, shared_name="slow")
    with pytest.raises(
        tf.errors.DeadlineExceededError, match=r"queue 'slow' \(0 of 3 elements; made at .*\)\. Raise"
    ):
        session.run(q.dequeue(), options=tf.RunOptions(timeout_in_ms=20))
