"""Questions to a running task: who may ask, what is refused, and what the log says."""

import json
import logging
import socket
import time

import pytest

import tensorfleet as tf
from tensorfleet.base import counters
from tensorfleet.cluster.inspection import attach, leases, profile, topics
from tensorfleet.cluster.inspection.ask import Inspector, ask
from tensorfleet.cluster.transport import connection
from tensorfleet.runtime import recording
from tensorfleet.testing.cluster import ProcessCluster


def test_another_process_tells_its_time():
    with ProcessCluster(ps=1) as cluster:
        address = cluster.target("ps", 0).removeprefix("grpc://")
        before = time.time_ns()
        told = ask("/job:ps/task:0", address, "clock").content["time_ns"]
        assert before <= told <= time.time_ns()


def test_an_inspector_asks_again_on_the_same_connection(server):
    inspector = Inspector(server.task, server.target.removeprefix("grpc://"))
    try:
        first, second = (inspector.ask("clock").content["steady_ns"] for _ in range(2))
        assert first < second
    finally:
        inspector.close()


def test_an_unknown_topic_is_refused_with_the_nearest(server):
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="No topic 'clokc' to inspect. Did you mean 'clock'"
    ):
        ask(server.task, server.target.removeprefix("grpc://"), "clokc")


@pytest.mark.parametrize("options", ["[]", "{", "3", "[" * 100_000])
def test_options_that_are_no_object_are_refused(options):
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be a JSON object"):
        topics.answer(None, "somebody", "clock", options)


def test_a_task_that_is_gone_is_named():
    with pytest.raises(tf.errors.UnavailableError, match="/job:ps/task:3"):
        ask("/job:ps/task:3", "localhost:1", "clock")


def test_the_log_says_who_looked_at_what(monkeypatch, caplog):
    topic = topics.Topic(lambda server, options: topics.Report({"options": dict(options)}))
    monkeypatch.setattr(topics, "_topics", lambda: {"stacks": topic})
    with caplog.at_level(logging.INFO, logger="tensorflow"):
        report = topics.answer(None, "client-7", "stacks", json.dumps({"deep": 1}))
    assert report.content == {"options": {"deep": 1}}
    assert "Inspected by client-7: stacks" in caplog.text


@pytest.mark.parametrize("topic", ["pdb", "pdb_talk"])
def test_nothing_that_runs_code_is_answered_over_the_network(topic):
    with pytest.raises(tf.errors.PermissionDeniedError, match="only on its own machine"):
        topics.answer(None, "somebody", topic, "", is_on_this_machine=False)


def test_a_connection_tells_whether_its_other_end_is_on_this_machine():
    class Remote:
        family = socket.AF_INET

        def getpeername(self):
            return "192.0.2.7", 4000

    assert not connection.is_on_this_machine(Remote())
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with socket.create_connection(listener.getsockname()) as client:
            assert connection.is_on_this_machine(client)


# As JSON: some of it Python would not write.
_HOSTILE = (
    "true",
    "0",
    "-1",
    "18446744073709551616",
    "1" + "0" * 400,
    "1.5",
    "NaN",
    "-Infinity",
    "1e308",
    '""',
)
_HOSTILE += (
    f'"{"x" * 100_000}"',
    "[]",
    "[null]",
    "[[]]",
    "[1e400]",
    "{}",
    f'["x:{"9" * 5000}"]',
    '"\\ud800"',
)
_OPTIONS = {
    "clock": ["x"],
    "stacks": ["x"],
    "stats": ["x"],
    "watch": ["tensors", "steps", "session"],
    "watch_take": ["id", "seconds", "stats"],
    "numerics": ["steps"],
    "numerics_take": ["id", "seconds"],
    "attach": ["port"],
    "pdb": ["x"],
    "pdb_talk": ["id", "text", "seconds"],
    "profile": ["seconds", "native", "rate"],
    "withdraw": ["id"],
    "made_at": ["ops"],
    "trace_start": ["steps", "seconds", "by_op", "id", "hold"],
    "trace_take": ["id", "end", "start", "drop", "go"],
    "graph": ["nodes", "unless"],
    "settings": ["x"],
}


def test_the_hostile_options_are_those_of_all_topics():
    assert set(_OPTIONS) == set(topics._topics())


@pytest.mark.parametrize("topic", sorted(_OPTIONS))
def test_hostile_options_get_a_report_or_an_error_that_says_so(topic, monkeypatch):
    # What an option that fits would begin is tested elsewhere, and takes its time.
    for module, function in ((attach, "_open_debugpy"), (attach, "_open_terminal")):
        monkeypatch.setattr(module, function, lambda *_: {})
    monkeypatch.setattr(profile, "_by_py_spy", lambda *_: ("f 1\n", ""))
    with tf.Graph().as_default(), tf.Session() as session:
        session.run(tf.add(tf.random_uniform([]), 1.0, name="y"))
        for option in _OPTIONS[topic]:
            for value in _HOSTILE:
                known = _known(topic, option)
                try:
                    report = topics.answer(
                        None, "somebody", topic, "{" + ", ".join([*known, f'"{option}": {value}']) + "}"
                    )
                    json.dumps(report.content).encode()
                except tf.errors.InvalidArgumentError as error:
                    assert len(error.message) < 500
                except (tf.errors.NotFoundError, tf.errors.FailedPreconditionError):
                    pass
                finally:
                    _end_what_began()


def _known(topic, option):
    """What else is needed for a question to be taken seriously."""
    if topic == "watch" and option != "tensors":
        return ['"tensors": ["y"]']
    if topic in ("watch_take", "numerics_take") and option != "id":
        begun = topics.answer(None, "me", topic[:-5], '{"tensors": ["y"]}' if topic == "watch_take" else "{}")
        return [f'"id": "{begun.content["id"]}"', *(['"seconds": 0'] if option != "seconds" else [])]
    if topic == "trace_take" and option != "id":
        return [f'"id": "{topics.answer(None, "me", "trace_start", "{}").content["id"]}"']
    return []


def _end_what_began():
    for number in list(leases._watches):
        leases.withdraw(number)
    if recording.current is not None:
        recording.drop(recording.current)
    elif recording._last is not None:
        recording.drop(recording._last)


def test_options_cannot_write_a_line_of_their_own_into_the_log(caplog):
    with caplog.at_level(logging.INFO, logger="tensorflow"):
        topics.answer(None, "me\nERROR: asker", "stacks", "{\n\n}")
    (line,) = [r.getMessage() for r in caplog.records if "Inspected" in r.getMessage()]
    assert "\n" not in line and "asker" in line


def test_a_question_that_is_refused_is_not_the_last_error_of_the_task(server):
    before = counters.last_error.text
    with pytest.raises(tf.errors.InvalidArgumentError, match="nodes must be"):
        ask(server.task, server.target.removeprefix("grpc://"), "graph", {"nodes": -1})
    assert counters.last_error.text == before
