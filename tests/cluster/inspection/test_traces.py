"""Topics `trace_start` and `trace_take`: what a task accepts, and how it gives its events away."""

import json

import pytest

import tensorfleet as tf
from tensorfleet.cluster.inspection import traces
from tensorfleet.runtime import recording


@pytest.fixture(autouse=True)
def no_recording():
    yield
    if recording._last is not None:
        recording.drop(recording._last)


def start(**options):
    return traces.start(None, options).content


def take(**options):
    return traces.take(None, options).content


def test_a_recording_is_started_ended_and_taken_in_pieces(monkeypatch):
    monkeypatch.setattr(traces, "_PIECE_EVENTS", 2)
    told = start(steps=3, seconds=60)
    for i in range(5):
        recording.current.open("wait", f"w{i}").end()
    assert take(id=told["id"])["done"] is False
    first = take(id=told["id"], end=True)
    assert first["done"]
    assert (len(first["events"]), first["left"]) == (2, 3)
    rest = [take(id=told["id"], start=at) for at in (2, 4)]
    assert [event[1] for piece in (first, *rest) for event in piece["events"]] == [f"w{i}" for i in range(5)]
    assert rest[-1]["left"] == 0
    json.dumps(first)


def test_steps_wait_for_go(session):
    told = start(hold=True)
    y = tf.constant(1.0) + tf.random_uniform([])
    session.run(y)
    assert take(id=told["id"])["steps"] == 0
    take(id=told["id"], go=True)
    session.run(y)
    assert take(id=told["id"])["steps"] == 1


def test_what_was_dropped_is_gone():
    told = start()
    take(id=told["id"], drop=True)
    with pytest.raises(tf.errors.NotFoundError, match="There is no such trace: it was taken already"):
        take(id=told["id"])
    assert recording.current is None


def test_a_second_trace_is_refused_with_what_to_do():
    start()
    with pytest.raises(
        tf.errors.FailedPreconditionError, match="is being traced already.*then start yours again"
    ):
        start()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"steps": 0}, "steps must be a whole number from 1"),
        ({"steps": True}, "steps must be a whole number"),
        ({"steps": "many"}, "steps must be a whole number"),
        ({"seconds": 0}, "seconds must be a number above 0"),
        ({"seconds": float("nan")}, "seconds must be a number"),
        ({"seconds": 1e9}, "at most 3600"),
        ({"by_op": 1}, "by_op must be true or false"),
        ({"id": ""}, "id must be a text"),
        ({"id": 3}, "id must be a text"),
        ({"stesp": 3}, "Unknown option 'stesp'"),
    ],
)
def test_wrong_options_are_refused(options, error):
    with pytest.raises(tf.errors.InvalidArgumentError, match=error):
        start(**options)
    assert recording.current is None


@pytest.mark.parametrize("options", [{"id": "unknown"}, {}])
def test_an_unknown_trace_is_refused(options):
    with pytest.raises(tf.errors.NotFoundError, match="There is no such trace"):
        take(**options)


@pytest.mark.parametrize("at", [-1, "0", True])
def test_a_wrong_start_is_refused(at):
    told = start()
    with pytest.raises(tf.errors.InvalidArgumentError, match="start must be a whole number"):
        take(id=told["id"], start=at)
