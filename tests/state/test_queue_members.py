"""Who waits for tokens, who has gone, and when nobody is left to go on."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.base.shapes import TensorShape
from tensorfleet.runtime.resources import ResourceManager
from tensorfleet.state.queue_members import Roster, RosterMember
from tensorfleet.state.queues import Queue, TakeAttempt


@pytest.fixture
def roster(monkeypatch):
    monkeypatch.setenv("TENSORFLEET_REPLICA_SECONDS", "600")
    queue = Queue("tokens", -1, [tf.int64], [TensorShape([])])
    roster = Roster(queue)
    roster.replicas = roster.aggregate = 2
    yield roster
    queue.roster = roster
    queue.clear()


def joined(roster: Roster, owner: str) -> RosterMember:
    return roster._join(ResourceManager(owner))


def finish(member: RosterMember) -> None:
    """Ends a session in good order."""
    member._session.finished = True
    member.clear()


def waits(roster: Roster, member: RosterMember) -> TakeAttempt:
    attempt = TakeAttempt(1)
    roster._queue.submit(attempt)
    member.waiting.append(attempt)
    return attempt


def test_all_may_wait_while_nobody_has_gone(roster):
    a = joined(roster, "a")
    attempt = waits(roster, a)
    roster.give_up()
    assert not attempt.done


def test_who_is_left_and_waits_gets_an_error_that_names_the_others(roster):
    a, b = joined(roster, "a"), joined(roster, "b")
    attempt = waits(roster, a)
    b.clear()
    roster.give_up()
    assert attempt.done
    assert "cannot go on: b of 2 replicas" in attempt.error.message


def test_one_who_works_may_still_hand_in_a_gradient(roster):
    a, b, _c = joined(roster, "a"), joined(roster, "b"), joined(roster, "c")
    attempt = waits(roster, a)
    b.clear()
    roster.give_up()
    assert not attempt.done


def test_one_who_comes_back_is_not_missing(roster):
    a, b = joined(roster, "a"), joined(roster, "b")
    attempt = waits(roster, a)
    b.clear()
    waits(roster, joined(roster, "b"))
    roster.give_up()
    assert not attempt.done


def test_a_second_training_of_the_same_replicas_misses_nobody(roster):
    for owner in ("a", "b"):
        joined(roster, owner).clear()
    attempt = waits(roster, joined(roster, "a"))
    joined(roster, "b")
    roster.give_up()
    assert not attempt.done


def test_one_who_comes_when_all_others_have_ended_gets_an_error(roster):
    joined(roster, "b").clear()
    attempt = waits(roster, joined(roster, "a"))
    roster.give_up()
    assert attempt.done
    assert "cannot go on: b of 2 replicas" in attempt.error.message


def test_when_the_chief_has_ended_in_good_order_the_others_do_too(roster):
    a, chief = joined(roster, "a"), joined(roster, "chief")
    attempt = waits(roster, a)
    session = ResourceManager()
    roster.begins_or_ends(session)
    assert not roster.over
    roster.begins_or_ends(session)
    chief.clear()
    roster.give_up()
    assert isinstance(attempt.error, tf.errors.OutOfRangeError)
    assert "is over: the chief ended in good order (chief of 2 replicas have gone), and a waits" in str(
        attempt.error
    )


def test_after_one_has_finished_those_who_wait_get_a_token_and_then_the_end(roster):
    a, b = joined(roster, "a"), joined(roster, "b")
    (token,) = roster._queue.rows([np.array([7])])
    roster.put([token], of_update=True)
    first = waits(roster, a)
    finish(b)
    roster.give_up()
    assert roster._queue.single(first.taken) == (7,)
    a.waiting.remove(first)
    second = waits(roster, a)
    roster.give_up()
    assert isinstance(second.error, tf.errors.OutOfRangeError)
    assert "is over: b ended in good order" in second.error.message


def test_an_update_after_a_release_shows_that_the_training_goes_on(roster):
    a, b = joined(roster, "a"), joined(roster, "b")
    (token,) = roster._queue.rows([np.array([7])])
    roster.put([token], of_update=True)
    first = waits(roster, a)
    finish(b)
    roster.give_up()
    a.waiting.remove(first)
    roster.put([token], of_update=True)
    second = waits(roster, a)
    roster.give_up()
    assert second.error is None
    assert second.done


def test_a_chief_that_begins_anew_waits_for_replicas_that_finished_before(roster):
    finish(joined(roster, "b"))
    roster.begins_or_ends(ResourceManager())
    attempt = waits(roster, joined(roster, "a"))
    roster.give_up()
    assert "cannot go on: b of 2 replicas" in attempt.error.message
