"""The check of traces finds what is wrong with them."""

import copy

import pytest

from tensorfleet.testing.chrome_trace import problems_of


def meta(name, pid, tid=0):
    return {"ph": "M", "name": name, "pid": pid, "tid": tid, "ts": 0, "args": {"name": "n"}}


def piece(ts, dur, tid=1, name="s"):
    return {"ph": "X", "cat": "c", "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": {}}


def end(phase, ts, tid, number=1):
    return {"ph": phase, "cat": "t", "name": "t", "id": number, "pid": 1, "tid": tid, "ts": ts}


NAMES = [meta("process_name", 1), meta("thread_name", 1, 1), meta("thread_name", 1, 2)]
RIGHT = [piece(0, 10), end("s", 0, 1), piece(0, 10, name="inner"), piece(4, 2, 2), end("f", 4, 2)]


def made(events):
    return {"traceEvents": [*NAMES, *copy.deepcopy(events)], "displayTimeUnit": "ms"}


def test_a_right_trace_has_no_problems():
    assert problems_of(made(RIGHT)) == []


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        ([piece(0, 10), piece(5, 10)], "begins inside"),
        ([piece(5, 1), piece(0, 1)], "not sorted"),
        ([piece(-1, 1)], "not a number of 0 or more"),
        ([piece(0, -1)], "not a number of 0 or more"),
        ([piece(0, float("nan"))], "not JSON"),
        ([{"ph": "B", "name": "b", "pid": 1, "tid": 1, "ts": 0}], "the phase 'B'"),
        ([{"ph": "X"}], "lacks"),
        ([piece(0, 1, tid=3)], "has no name"),
        ([piece(0, 1), end("s", 0, 1)], "only one end"),
        ([piece(0, 9), end("f", 1, 1), end("s", 2, 1)], "ends before it begins"),
        ([piece(0, 1), piece(0, 1, 2), end("s", 0, 1), end("f", 3, 2)], "in no slice"),
        ([piece(0, 1), end("s", 0, 1), end("s", 0, 1)], "two ends of the kind"),
    ],
)
def test_what_is_wrong_is_said(events, problem):
    assert any(problem in text for text in problems_of(made(events))), problems_of(made(events))


@pytest.mark.parametrize("trace", [[], {}, {"traceEvents": {}}, {"traceEvents": [], "displayTimeUnit": "h"}])
def test_something_else_is_no_trace(trace):
    assert problems_of(trace)
