"""What a trace says in a few lines."""

from tensorfleet.fleet.trace_merge import TaskTrace, TraceRequest, merge
from tensorfleet.fleet.trace_summary import as_text, summarize


def made(*events, missing=None):
    threads = {1: "MainThread"}
    other = TaskTrace("b", process="b", threads=threads)
    other.events = [
        ["receive", "r", 4_000, 4_100, 1, {"flow": "f", "end": "in", "bytes": 8_000}],
        ["wait", "wait for the queue 'q'", 5_000, 9_000, 1, {}],
    ]
    a = TaskTrace("a", process="a", steps=2, threads=threads)
    a.events = [["send", "s", 0, 2_000, 1, {"flow": "f", "end": "out", "bytes": 8_000}], *events]
    return merge([a, other], missing or {}, TraceRequest(2, 1.0, False, 0, 0))


def test_the_items_with_the_most_time_come_first():
    summary = summarize(
        made(*[["op", name, i, i + t, 1, {}] for i, (name, t) in enumerate([("x", 5), ("y", 9)])])
    )
    assert [(line.name, line.count) for line in summary.items] == [("y", 1), ("x", 1)]


def test_items_of_one_name_are_added_up():
    (line,) = summarize(made(["op", "x", 0, 1_000, 1, {}], ["op", "x", 2_000, 5_000, 1, {}])).items
    assert (line.count, line.total, line.longest) == (2, 4.0, 3.0)


def test_a_transfer_is_counted_once_with_the_time_it_was_under_way():
    (line,) = summarize(made()).transfers
    assert (line.task, line.name, line.bytes, line.total) == ("b", "receive from a", 8_000, 4.0)


def test_waits_are_told_by_task():
    (line,) = summarize(made()).waits
    assert (line.task, line.total) == ("b", 4.0)


def test_the_text_has_tables_notes_and_no_more_lines_than_asked_for():
    text = as_text(
        summarize(made(*[["op", f"op{i}", 0, 10, 1, {}] for i in range(30)], missing={"c": "it was lost."})),
        5,
    )
    assert "Steps: 2 of a." in text
    assert "(the 5 longest of 30)" in text
    assert text.count("\n  a ") == 5
    assert "Note: c is not in this trace: it was lost." in text
    assert "2000.0" in text  # MB/s


def test_a_trace_without_transfers_says_so():
    trace = merge([TaskTrace("a")], {}, TraceRequest(1, 1.0, False, 0, 0))
    assert "No values went from task to task." in as_text(summarize(trace))
