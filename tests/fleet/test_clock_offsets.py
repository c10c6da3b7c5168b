"""The offset of another clock comes from the exchange with the shortest round trip."""

import time

from tensorfleet.fleet import clock_offsets
from tensorfleet.fleet.clock_offsets import ClockOffset, better, measure


class Clocks:
    """A task whose clocks are ahead of ours, and whose answers take their time; our own clocks are counted, not read."""

    def __init__(self, monkeypatch, ahead, trips):
        self.now, self.ahead, self.trips = 1_000, ahead, iter(trips)
        monkeypatch.setattr(clock_offsets, "time", self)

    def monotonic_ns(self):
        return self.now

    def time_ns(self):
        return self.now

    def ask(self):
        there, back = next(self.trips)
        self.now += there
        told = {"steady_ns": self.now + self.ahead, "time_ns": self.now + self.ahead + 7}
        self.now += back
        return told


def test_the_shortest_trip_counts(monkeypatch):
    clocks = Clocks(monkeypatch, 5_000, [(100, 900), (20, 20), (500, 10)])
    assert measure(clocks.ask, 3) == ClockOffset(5_000, 5_007, 21)


def test_the_true_offset_is_within_the_uncertainty(monkeypatch):
    for there, back in [(0, 100), (100, 0), (33, 34), (1, 0)]:
        offset = measure(Clocks(monkeypatch, -123_456, [(there, back)]).ask, 1)
        assert abs(offset.steady + 123_456) <= offset.uncertainty


def test_the_more_precise_of_two_is_taken():
    rough, fine = ClockOffset(1, 1, 10), ClockOffset(2, 2, 5)
    assert better(rough, fine) is better(fine, rough) is fine


def test_the_own_clock_has_no_offset():
    offset = measure(lambda: {"steady_ns": time.monotonic_ns(), "time_ns": time.time_ns()})
    assert offset.applied == 0
