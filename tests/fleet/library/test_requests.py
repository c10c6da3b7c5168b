"""Requests in the background: their order, their timestamps and their errors."""

import threading

import pytest

from tensorfleet.base import errors
from tensorfleet.fleet.library.requests import Requests


@pytest.fixture
def requests():
    made = Requests("weights")
    yield made
    made.close()


def test_requests_are_made_in_order_and_each_result_is_waited_for_by_its_timestamp(requests):
    order = []
    stamps = [requests.begin("push", lambda i=i: order.append(i) or i * 10) for i in range(20)]
    assert stamps == list(range(1, 21))
    assert requests.wait(7, 60) == 60
    requests.wait_for_all(60)
    assert order == list(range(20))


def test_the_error_of_a_request_is_raised_where_it_is_waited_for(requests):
    stamp = requests.begin("push", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        requests.wait(stamp, 60)
    assert requests.wait(stamp, 60) is None  # told once


def test_the_error_of_a_request_that_nobody_waited_for_is_raised_at_the_next_one(requests):
    done = threading.Event()
    requests.begin("push", lambda: 1 / 0)
    requests.begin("push", done.set)
    assert done.wait(60)
    with pytest.raises(ZeroDivisionError):
        while requests.is_busy():
            pass


def test_a_wait_has_a_limit_and_says_what_it_was_for(requests):
    go_on = threading.Event()
    stamp = requests.begin("push", lambda: go_on.wait(60))
    try:
        with pytest.raises(
            errors.DeadlineExceededError, match=r"0.05 s waiting for push of 'weights' \(timestamp 1\)"
        ):
            requests.wait(stamp, 0.05)
    finally:
        go_on.set()
    assert requests.wait(stamp, 60) is True


@pytest.mark.parametrize("stamp", [0, 5, "1", True, None])
def test_a_timestamp_that_no_request_has_is_refused(requests, stamp):
    requests.done()
    with pytest.raises(
        ValueError, match="timestamp must be a number that a request of 'weights' has returned"
    ):
        requests.wait(stamp, 1)
