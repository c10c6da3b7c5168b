"""Rates from counters."""

import pytest

from tensorfleet.cli.dashboard.rates import rates_of, with_shared_reads, within
from tensorfleet.cli.dashboard.snapshots import snapshot_of


def report(time, incarnation=1, **values):
    return snapshot_of("worker/0", {"time": time, "incarnation": incarnation, **values}, time)


def steps(count, seconds=0.0, **parts):
    return {"count": count, "seconds": seconds, "parts": parts}


def test_a_rate_needs_two_moments():
    assert rates_of([]) is None
    assert rates_of([report(1.0)]) is None
    assert rates_of([report(1.0), report(1.1)]) is None


def test_steps_and_parts_are_of_the_time_between_the_snapshots():
    history = [
        report(10.0, steps=steps(100, 50.0, input=20.0, compute=30.0)),
        report(12.0, steps=steps(120, 60.0, input=26.0, compute=34.0)),
    ]
    rates = rates_of(history)
    assert rates.steps == 10.0 and rates.step_seconds == 0.5
    assert rates.parts["input"] == pytest.approx(0.6) and rates.parts["wait"] == 0.0
    assert rates.part_seconds["compute"] == pytest.approx(0.2)


def test_only_the_last_seconds_count():
    history = [report(float(t), steps=steps(t * 10 if t < 7 else 70)) for t in range(20)]
    assert rates_of(history, 5.0, least_steps=0).steps == 0.0
    assert [s.time for s in within(history, 5.0)] == [14.0, 15.0, 16.0, 17.0, 18.0, 19.0]


def test_a_restarted_task_begins_again():
    history = [
        report(1.0, 1, steps=steps(1000)),
        report(2.0, 2, steps=steps(3)),
        report(3.0, 2, steps=steps(5)),
    ]
    assert rates_of(history[:2]) is None
    assert rates_of(history).steps == 2.0


def test_a_counter_that_shrinks_is_no_negative_rate():
    assert rates_of([report(1.0, steps=steps(9)), report(2.0, steps=steps(3))]).steps == 0.0


def test_a_clock_that_was_set_back_gives_no_rate():
    assert rates_of([report(100.0, steps=steps(9)), report(50.0, steps=steps(12))]) is None


def test_bytes_are_those_asked_of_others_and_those_served():
    peer = {"task": "ps/0", "requests": 0, "sent_bytes": 0, "received_bytes": 0}
    server = {"sent_bytes": 0, "received_bytes": 0, "busy_seconds": 0, "updates": 0}
    history = [
        report(1.0, peers=[peer], server=server),
        report(
            3.0,
            peers=[peer | {"requests": 4, "sent_bytes": 100, "received_bytes": 20}],
            server={"sent_bytes": 40, "received_bytes": 60, "busy_seconds": 1.0, "updates": 8},
        ),
    ]
    rates = rates_of(history)
    assert (rates.sent_bytes, rates.received_bytes, rates.load_bytes) == (70.0, 40.0, 50.0)
    assert (rates.busy, rates.updates) == (0.5, 4.0)
    assert (rates.links["ps/0"].bytes, rates.links["ps/0"].requests) == (60.0, 2.0)


def test_a_peer_that_is_new_counts_from_zero_but_a_variable_does_not():
    """The list of variables holds the busiest: one that comes into it has moved its bytes earlier."""
    variable = {"name": "v", "read_bytes": 1000, "update_bytes": 0}
    history = [report(1.0), report(2.0, peers=[{"task": "ps/1", "sent_bytes": 10}], variables=[variable])]
    assert rates_of(history).links["ps/1"].bytes == 10.0
    assert rates_of(history).variables == {}


def test_staleness_is_counted_in_the_window():
    def applied(**counts):
        return [{"worker": "worker/1", "counts": counts, "dropped": sum(counts.values())}]

    history = [report(1.0, staleness=applied(**{"1": 5})), report(2.0, staleness=applied(**{"1": 5, "3": 2}))]
    rates = rates_of(history)
    assert rates.staleness == {"worker/1": {3: 2.0}} and rates.dropped == 2.0


def test_the_speed_of_slow_steps_does_not_jump():
    """A step of three seconds: in five seconds it ends once or twice."""
    history = [report(float(t), steps=steps(1 + t // 3)) for t in range(60)]
    speeds = [rates_of(history[:end], 5.0).steps for end in range(20, 60)]
    assert max(speeds) < 1.35 * min(speeds)
    assert rates_of(history, 5.0).recent_steps in (1.0, 2.0)


def test_older_snapshots_are_not_looked_at_for_fast_steps():
    history = [report(float(t), steps=steps(1 + t * (1 if t < 20 else 9))) for t in range(40)]
    assert rates_of(history, 5.0).steps == 9.0 and rates_of(history, 5.0).seconds == 5.0


def reader(time, reads, size):
    return report(time, peers=[{"task": "ps/0", "shared_variables": {"w": [reads, size]}}])


def owner(time, updates):
    variable = {"name": "w", "bytes": 40, "updates": updates, "update_bytes": 40 * updates, "reads": 0}
    return report(time, variables=[variable])


def test_reads_from_shared_memory_count_for_the_variable_of_the_server():
    rates = {
        "ps/0": rates_of([owner(10.0, 0), owner(12.0, 4)]),
        "worker/0": rates_of([reader(10.0, 5, 200), reader(12.0, 25, 1000)]),
        "worker/1": rates_of([reader(10.0, 0, 0), reader(12.0, 2, 80)]),
    }
    use = with_shared_reads(rates)["ps/0"].variables["w"]
    assert (use.reads, use.read_bytes) == (11.0, 440.0)
    assert (use.updates, use.update_bytes, use.bytes) == (2.0, 80.0, 520.0)


def test_reads_of_a_variable_that_the_server_does_not_list_are_left_out():
    rates = {
        "ps/0": rates_of([report(10.0), report(12.0)]),
        "worker/0": rates_of([reader(10.0, 5, 200), reader(12.0, 25, 1000)]),
    }
    assert with_shared_reads(rates)["ps/0"].variables == {}
    assert with_shared_reads(rates)["worker/0"] == rates["worker/0"]
