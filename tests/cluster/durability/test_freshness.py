"""When a standby may answer reads: never when the guard may have given it up."""

from tensorfleet.cli.guard import SILENT_SECONDS
from tensorfleet.cluster.durability import freshness
from tensorfleet.cluster.durability.freshness import Freshness


def known(now=10.0):
    result = Freshness()
    result.asked(now)
    result.heard(now)
    return result


def test_a_standby_that_is_asked_all_the_time_answers():
    fresh = known()
    for n in range(100):
        fresh.asked(10.0 + n * 0.2)
        assert fresh.may_answer(10.1 + n * 0.2)


def test_a_standby_that_was_not_asked_for_long_does_not_answer():
    fresh = known()
    assert fresh.may_answer(10.7)
    assert not fresh.may_answer(10.9)


def test_after_a_gap_it_answers_only_when_it_has_heard_from_the_leader():
    fresh = known()
    fresh.asked(11.1)
    assert not fresh.may_answer(11.1)
    fresh.asked(11.3)
    assert not fresh.may_answer(11.3)
    fresh.heard(11.4)
    assert fresh.may_answer(11.4)


def test_what_came_before_the_guard_asks_does_not_count():
    fresh = Freshness()
    fresh.heard(10.0)
    fresh.asked(10.0)
    assert not fresh.may_answer(10.0)


def test_it_ends_before_the_guard_gives_a_standby_up():
    assert freshness._ASKED_SECONDS < SILENT_SECONDS
