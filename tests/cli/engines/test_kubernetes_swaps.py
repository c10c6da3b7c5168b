"""Seats wait until the tasks that have left theirs have a node."""

import pytest

from tensorfleet.cli.engines.base import Wanted
from tensorfleet.cli.engines.kubernetes_swaps import Swaps


def _worker(index):
    return Wanted("worker", index, False)


def _admitted(swaps, wanted):
    added = []
    assert swaps.admit(wanted, lambda: added.append(wanted)) == bool(added)
    return bool(added)


def test_a_seat_is_admitted_when_no_task_swaps():
    assert _admitted(Swaps(), _worker(1))


def test_a_seat_is_postponed_until_the_last_task_has_a_node():
    swaps = Swaps()
    swaps.begin("worker-0-r0", "worker/0")
    swaps.begin("worker-1-r0", "worker/1")
    assert not _admitted(swaps, _worker(2))
    assert swaps.end("worker-0-r0") == []
    assert swaps.end("worker-1-r0") == [_worker(2)]
    assert _admitted(swaps, _worker(2))


def test_a_seat_that_was_taken_back_is_sought_once():
    swaps = Swaps()
    swaps.begin("worker-0-r0", "worker/0")
    swaps.postpone(_worker(2))
    assert swaps.end("worker-0-r0") == [_worker(2)]
    assert swaps.end("worker-0-r0") == []


def test_a_seat_that_is_postponed_when_the_task_has_ended_already_is_found():
    swaps = Swaps()
    swaps.begin("worker-0-r0", "worker/0")
    assert swaps.end("worker-0-r0") == []
    swaps.postpone(_worker(2))
    assert swaps.end("worker-0-r0") == [_worker(2)]


def test_a_task_that_starts_needs_no_seat_any_more():
    swaps = Swaps()
    swaps.begin("worker-0-r0", "worker/0")
    swaps.postpone(_worker(1))
    swaps.begin("worker-1-r0", "worker/1")
    assert swaps.end("worker-0-r0") == swaps.end("worker-1-r0") == []


def test_a_task_that_is_released_gets_no_seat_until_it_is_wanted_again():
    swaps = Swaps()
    swaps.release("worker/1")
    assert not _admitted(swaps, _worker(1))
    assert _admitted(swaps, _worker(2))
    swaps.want("worker/1")
    assert _admitted(swaps, _worker(1))


@pytest.mark.parametrize("released_first", [True, False])
def test_a_seat_that_is_postponed_is_forgotten_when_its_task_is_released(released_first):
    swaps = Swaps()
    swaps.begin("worker-0-r0", "worker/0")
    steps = [lambda: swaps.release("worker/1"), lambda: swaps.postpone(_worker(1))]
    for step in steps if released_first else reversed(steps):
        step()
    assert swaps.end("worker-0-r0") == []
