"""Who waits for tokens, who has gone, and when nobody is left to go on."""

import pytest

import tensorfleet as tf
from tensorfleet.ops.queue_core import Queue, Take
from tensorfleet.ops.queue_roster import Member, Roster
from tensorfleet.runtime.resources import ResourceManager
from tensorfleet.shapes import TensorShape


@pytest.fixture
def roster(monkeypatch):
    monkeypatch.setenv("TENSORFLEET_REPLICA_SECONDS", "600")
    queue = Queue("tokens", -1, [tf.int64], [TensorShape([])])
    made = Roster(queue, 2)
    yield made
    queue.roster = made
    queue.clear()


def waits(roster: Roster, member: Member) -> Take:
    attempt = Take(1)
    roster._queue.submit(attempt)
    member.waiting.append(attempt)
    return attempt


def test_all_may_wait_while_nobody_has_gone(roster):
    a = roster._join("a")
    attempt = waits(roster, a)
    roster.give_up()
    assert not attempt.done


def test_who_is_left_and_waits_gets_an_error_that_names_the_others(roster):
    a, b = roster._join("a"), roster._join("b")
    attempt = waits(roster, a)
    b.clear()
    roster.give_up()
    assert attempt.done
    assert "cannot go on: b of 2 replicas" in attempt.error.message


def test_one_who_works_may_still_hand_in_a_gradient(roster):
    a, b, _c = roster._join("a"), roster._join("b"), roster._join("c")
    attempt = waits(roster, a)
    b.clear()
    roster.give_up()
    assert not attempt.done


def test_one_who_comes_back_is_not_missing(roster):
    a, b = roster._join("a"), roster._join("b")
    attempt = waits(roster, a)
    b.clear()
    waits(roster, roster._join("b"))
    roster.give_up()
    assert not attempt.done


def test_a_second_training_of_the_same_replicas_misses_nobody(roster):
    for owner in ("a", "b"):
        roster._join(owner).clear()
    attempt = waits(roster, roster._join("a"))
    roster._join("b")
    roster.give_up()
    assert not attempt.done


def test_one_who_comes_when_all_others_have_ended_gets_an_error(roster):
    roster._join("b").clear()
    attempt = waits(roster, roster._join("a"))
    roster.give_up()
    assert attempt.done
    assert "cannot go on: b of 2 replicas" in attempt.error.message


def test_when_the_chief_has_ended_in_good_order_the_others_do_too(roster):
    a, chief = roster._join("a"), roster._join("chief")
    attempt = waits(roster, a)
    session = ResourceManager()
    roster.begins_or_ends(session)
    assert not roster.over
    roster.begins_or_ends(session)
    chief.clear()
    roster.give_up()
    assert isinstance(attempt.error, tf.errors.OutOfRangeError)
    assert "is over: the chief has ended (chief of 2 replicas have), and a waits" in attempt.error.message
