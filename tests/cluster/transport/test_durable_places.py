"""Where a durable task may be, and which of its servers counts."""

import types

import pytest

from tensorfleet.base import errors
from tensorfleet.cluster.messages import GIVEN_UP, Welcome
from tensorfleet.cluster.transport import moved_addresses
from tensorfleet.cluster.transport.durable_places import (
    NotLeadingError,
    Overdue,
    Patience,
    Places,
    not_found,
    says_forgotten,
    says_given_up,
)


def welcome(places=("a:1", "b:1"), epoch=1, stands_by=False):
    return Welcome(7, "/job:ps/replica:0/task:0", "ps", 0, {}, list(places), epoch, stands_by)


@pytest.fixture
def places():
    result = Places("a:1")
    result.learn(welcome(), "a:1")
    return result


def test_a_task_has_no_places_until_a_server_tells_some():
    places = Places("a:1")
    places.learn(welcome(places=(), epoch=0), "a:1")
    assert not places.told and places.in_order() == ["a:1"]


def test_the_newest_list_counts_and_the_address_of_the_clusterspec_always(places):
    places.learn(welcome(places=("b:1", "c:1"), epoch=2), "b:1")
    assert places.told == ("b:1", "c:1")
    assert sorted(places.in_order()) == ["a:1", "b:1", "c:1"]


def test_a_server_without_a_list_does_not_take_the_places_away(places):
    places.learn(welcome(places=()), "a:1")
    assert places.told == ("a:1", "b:1")


def test_the_server_that_was_lost_is_asked_last(places):
    assert places.in_order() == ["b:1", "a:1"]
    assert places.others() == ["b:1"]


def test_a_standby_does_not_count_but_tells_the_places():
    places = Places("a:1")
    with pytest.raises(NotLeadingError, match="the server at a:1 is a standby"):
        places.learn(welcome(stands_by=True), "a:1")
    assert places.told == ("a:1", "b:1")


def test_nobody_goes_back_to_an_earlier_decision(places):
    places.learn(welcome(epoch=3), "b:1")
    for epoch in (0, 2):
        with pytest.raises(NotLeadingError, match=f"has missed decision 3: it knows {epoch}"):
            places.learn(welcome(epoch=epoch), "a:1")
    assert places.leading == "b:1"


def test_a_server_that_waits_for_the_first_decision_is_used():
    places = Places("a:1")
    places.learn(welcome(epoch=0), "a:1")
    assert places.leading == "a:1"


def test_only_a_later_decision_takes_over_while_a_server_answers(places):
    assert places.is_newer(welcome(epoch=2))
    assert not places.is_newer(welcome(epoch=1))
    assert not places.is_newer(welcome(epoch=2, stands_by=True))


def test_a_place_that_has_moved_is_asked_once(places):
    moved_addresses.learn({"a:1": "b:1"})
    try:
        assert len(places.in_order()) == 1
    finally:
        moved_addresses.forget()


def test_a_search_waits_longer_each_time_up_to_a_limit():
    patient = Patience()
    waits = []
    for _ in range(20):
        waits.append((patient.answer, patient.pause))
        patient.grow()
    assert waits == sorted(waits)
    assert waits[0] == (0.25, 0.01) and waits[-1] == (2.0, 0.05)


def test_a_request_is_overdue_when_it_is_unanswered_at_two_looks():
    overdue = Overdue()
    waiting, idle = (types.SimpleNamespace(sent=n, received=1) for n in (2, 1))
    assert not overdue.look([waiting, idle])
    assert overdue.look([waiting, idle])
    waiting.sent, waiting.received = 3, 2  # it was answered, and this is the next one
    assert not overdue.look([waiting])


def test_errors_that_mean_that_the_server_is_not_the_one_to_ask():
    assert says_given_up(errors.AbortedError(None, None, f"{GIVEN_UP}: another server leads it."))
    assert not says_given_up(errors.UnavailableError(None, None, GIVEN_UP))
    assert says_forgotten(errors.AbortedError(None, None, "Session handle is not found: 1."))
    assert says_forgotten(errors.InvalidArgumentError(None, None, "Stage 3 is not registered, or"))
    assert not says_forgotten(errors.InvalidArgumentError(None, None, "Stage fright"))


def test_a_search_in_vain_says_where_and_for_how_long():
    assert not_found("ps was lost.", ["a:1", "b:1"], 30, "Connection refused") == (
        "ps was lost. Looked for a server that leads it at a:1, b:1 for 30 s: Connection refused. Is its standby running? "
        "Start it, or raise TENSORFLEET_FAILOVER_SECONDS."
    )
