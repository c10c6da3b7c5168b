"""From recordings to one trace: clocks, processes, rows, arrows. No task is asked here."""

import pytest

from tensorfleet.fleet.clock_offsets import NONE, ClockOffset
from tensorfleet.fleet.trace_merge import TaskTrace, TraceRequest, merge
from tensorfleet.testing.chrome_trace import problems_of

ASKED = TraceRequest(20, 10.0, False, 1_000_000, 1_700_000_000_000_000_000)


def task(label, *events, **more):
    return TaskTrace(
        label, "host", 7, label, events=list(events), threads={1: "MainThread", 2: "serve"}, **more
    )


def event(kind, name, began, ended, thread=1, **args):
    return [kind, name, began, ended, thread, args]


def sent(began, ended, flow="f", **more):
    return event("send", "send", began, ended, flow=flow, end="out", bytes=8_000, **more)


def received(began, ended, flow="f"):
    return event("receive", "receive", began, ended, 2, flow=flow, end="in", bytes=8_000, via="tcp")


def slices(trace, name):
    return [e for e in trace["traceEvents"] if e["ph"] == "X" and e["name"] == name]


def test_times_are_those_of_one_clock_from_the_first_recording_on():
    other = ClockOffset(steady=5_000_000, wall=3, uncertainty=1_000)
    trace = merge(
        [
            task("a", event("step", "one", 2_001_000, 2_003_500), began=2_000_000),
            task("b", event("step", "two", 7_002_000, 7_002_001), began=7_000_500, clock=other),
        ],
        {},
        ASKED,
    )
    assert not problems_of(trace)
    assert [(e["ts"], e["dur"]) for e in slices(trace, "one") + slices(trace, "two")] == [
        (1.0, 2.5),
        (2.0, 0.001),
    ]
    assert trace["otherData"]["start_unix_ns"] == ASKED.unix_ns + 1_000_000
    assert trace["otherData"]["tasks"]["b"]["steady_clock_offset_us"] == 5000
    assert trace["otherData"]["tasks"]["b"]["clock_uncertainty_us"] == 1


def test_an_offset_that_may_be_none_is_not_applied():
    small = ClockOffset(steady=900, wall=0, uncertainty=1_000)
    trace = merge([task("a", event("step", "one", 5_000, 6_000), began=4_000, clock=small)], {}, ASKED)
    assert slices(trace, "one")[0]["ts"] == 1.0
    assert trace["otherData"]["tasks"]["a"]["corrected_by_us"] == 0


def test_an_arrow_has_both_ends_and_tells_bytes_speed_and_peers():
    trace = merge([task("a", sent(0, 2_000)), task("b", received(4_000, 4_100))], {}, ASKED)
    assert not problems_of(trace)
    arrow = {e["ph"]: e for e in trace["traceEvents"] if e["ph"] in "sf"}
    assert arrow["s"]["id"] == arrow["f"]["id"]
    assert (arrow["s"]["pid"], arrow["f"]["pid"]) == (1, 2)
    (start,), (end,) = slices(trace, "send to b"), slices(trace, "receive from a")
    assert start["args"]["transfer_us"] == end["args"]["transfer_us"] == 4.0
    assert end["args"]["megabytes_per_second"] == 2000.0
    assert start["args"]["via"] == "tcp"
    assert (start["args"]["peer"], end["args"]["peer"]) == ("b", "a")


def test_a_transfer_with_one_end_has_no_arrow():
    trace = merge([task("a", sent(0, 2_000)), task("b", received(4_000, 4_100, "g"))], {}, ASKED)
    assert not problems_of(trace)
    assert trace["otherData"]["arrows"] == 0


def test_no_arrow_points_back_in_time():
    trace = merge([task("a", sent(5_000, 6_000)), task("b", received(4_000, 4_100))], {}, ASKED)
    assert not problems_of(trace)
    assert trace["otherData"]["arrows"] == 0


def test_threads_are_ordered_by_their_work_and_no_two_have_a_number():
    trace = merge(
        [
            task("a", event("wait", "w", 0, 1, 2), event("step", "s", 0, 1, 1)),
            task("b", event("stage", "t", 0, 1, 1)),
        ],
        {},
        ASKED,
    )
    names = {e["tid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    assert names == {10_000: "sessions (MainThread)", 10_001: "serve", 20_000: "serves others (MainThread)"}


def test_what_is_missing_or_dropped_is_said():
    trace = merge([task("a", dropped=5)], {"b": "it was lost."}, ASKED)
    assert trace["otherData"]["notes"] == [
        "b is not in this trace: it was lost.",
        "a recorded more than it could keep: 5 events were left out.",
    ]


def test_unfused_costs_are_said_to_be_that():
    trace = merge([task("a")], {}, TraceRequest(1, 1.0, True, 0, 0))
    assert trace["otherData"]["by_op"] is True
    assert "unfused" in trace["otherData"]["notes"][0]


def test_tasks_of_one_process_are_one():
    a, b = task("a", event("step", "s", 0, 1)), task("b", event("step", "s", 0, 1))
    a.process = b.process = "same"
    trace = merge([a, b], {}, ASKED)
    assert list(trace["otherData"]["tasks"]) == ["a, b"]
    assert len(slices(trace, "s")) == 1


@pytest.mark.parametrize("tasks", [[], [task("a")]])
def test_nothing_recorded_is_a_trace_too(tasks):
    trace = merge(tasks, {}, ASKED)
    assert not problems_of(trace)
    assert NONE.applied == 0
