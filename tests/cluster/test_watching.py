"""Looking for a moment before going to sleep."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tensorfleet.cluster import messages
from tensorfleet.cluster.transport import wire


@pytest.fixture(autouse=True)
def nobody_else_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread of a process watches at a time, and those of earlier tests' clusters are still about."""
    monkeypatch.setattr(wire, "_watching", threading.Lock())
    monkeypatch.setattr(wire, "_crowded_until", 0.0)


def test_what_is_there_already_is_found_at_the_first_look() -> None:
    assert wire.busy_wait(lambda: "here") == "here"


def test_what_comes_within_the_moment_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "_SEVERAL_CORES", True)
    looks = iter([None, None, "late"])
    assert wire.busy_wait(lambda: next(looks), 60.0) == "late"


def test_what_does_not_come_is_given_up() -> None:
    assert wire.busy_wait(lambda: None) is None


def test_a_second_thread_looks_once_and_goes_to_sleep() -> None:
    looks: list[int] = []
    with wire._watching:
        assert wire.busy_wait(lambda: looks.append(1)) is None
    assert len(looks) == 1


def test_who_gives_way_stops_when_another_had_the_core_and_watches_for_nothing_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wire, "_SEVERAL_CORES", True)
    clock, own, real = (
        iter([0.0, 1e-6, 1.0, 1.0 + 1e-6, 2.0, 2.0 + 1e-6]),
        threading.get_ident(),
        time.monotonic,
    )
    # Threads of earlier tests' clusters have the real time.
    monkeypatch.setattr(time, "monotonic", lambda: next(clock) if threading.get_ident() == own else real())
    looks: list[int] = []
    assert wire.busy_wait(lambda: looks.append(1), 60.0, gives_way=True) is None
    assert len(looks) == 3  # the third took a second
    assert wire.busy_wait(lambda: looks.append(1), 60.0, gives_way=True) is None
    assert len(looks) == 4
    answer = iter([None, "here"])
    assert wire.busy_wait(lambda: next(answer), 60.0, gives_way=True) == "here"


def test_an_error_while_looking_ends_the_watch() -> None:
    class Gone(Exception):
        pass

    calls = iter([None])

    def look() -> None:
        if next(calls, "gone") == "gone":
            raise Gone

    with pytest.raises(Gone):
        for _ in range(2):
            wire.busy_wait(look)
    assert not wire._watching.locked()


@pytest.fixture
def channels() -> Iterator[tuple[wire.Channel, wire.Channel]]:
    here, there = (wire.Channel(s) for s in socket.socketpair())
    yield here, there
    here.close()
    there.close()


def test_what_was_slow_to_come_is_not_watched_for_again(
    channels: tuple, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = channels
    watched: list[str] = []

    def busy_wait(look: Callable, moment: float, gives_way: bool) -> Any:
        watched.append(here.after)
        return look()

    monkeypatch.setattr(wire, "busy_wait", busy_wait)
    for after, delay in [("slow", 0.05), ("quick", 0), ("slow", 0), ("quick", 0), ("slow", 0)]:
        here.after = after
        later = threading.Timer(delay, lambda: there.send(messages.PING, b"text"))
        if delay:
            later.start()
        else:
            there.send(messages.PING, b"text")
        assert here.receive().fields == b"text"
    # The second time it came at once, which shows without watching.
    assert watched == ["slow", "quick", "quick", "slow"]


def test_an_answer_is_watched_for_longer_than_the_next_question(monkeypatch: pytest.MonkeyPatch) -> None:
    moments: list[float] = []

    def busy_wait(look: Callable, moment: float, gives_way: bool) -> Any:
        moments.append(moment)
        assert gives_way is (len(moments) == 1)
        return look()

    monkeypatch.setattr(wire, "busy_wait", busy_wait)
    pair = socket.socketpair()
    asking, asked = wire.Channel(pair[0]), wire.Channel(pair[1], asks=False)
    asking.send(messages.PING)
    asked.receive()
    asked.send(messages.OK)
    asking.receive()
    for channel in (asking, asked):
        channel.close()
    assert moments[0] < moments[1]


def test_a_frame_that_comes_much_later_is_received_all_the_same(channels: tuple) -> None:
    here, there = channels
    later = threading.Timer(0.05, lambda: there.send(messages.PING, b"text"))
    later.start()
    assert here.receive().fields == b"text"
    later.join()


def test_a_connection_has_room_until_nobody_reads_it() -> None:
    here, there = socket.socketpair()
    with here, there:
        channel = wire.Channel(here)
        assert channel.has_room()
        here.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                here.send(bytes(1 << 12))
        assert not channel.has_room()
