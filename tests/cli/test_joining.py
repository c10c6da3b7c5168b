"""What a launcher says to workers that join by hand, and to whoever says something else."""

import contextlib
import json
import signal
import threading

import pytest

import tensorfleet as tf
from tensorfleet.cli.joining import (
    ADMITTED,
    HERE,
    JOIN,
    LEFT,
    REFUSED,
    SIGNAL,
    JoinListener,
    follow_signals,
    heard,
    say,
)
from tensorfleet.cli.plan import TOKEN, Task
from tensorfleet.cli.policy import ScaleError
from tensorfleet.cluster.messages import Hello, Inspect, Ping
from tensorfleet.cluster.transport.connection import connect
from tests.support.waiting import in_background, until

SECRET = "a secret of the run that is long enough"
SECONDS = 20


class Run:
    """A launcher that has room for some workers."""

    def __init__(self, room):
        self.room = room
        self.guests, self.exits = [], []

    def call(self, decide):
        decide(0.0)

    def admit(self, guest, now):
        if len(self.guests) == self.room:
            raise ScaleError("All numbers of workers are taken.")
        guest.label = f"worker/{len(self.guests)}"
        self.guests.append(guest)
        command = ["python", "-m", "tensorfleet", "train.py", "--task_index=0"]
        return Task("worker", 0, "worker-0.unplaced.invalid:2222", command, {"A": "b", TOKEN: SECRET})

    def on_exit(self, label, code, lost=None):
        self.exits.append((label, code))


@pytest.fixture
def run():
    return Run(room=1)


@pytest.fixture
def listener(run):
    result = JoinListener(run, SECRET, "train.py", only_here=True)
    yield result
    result.close()


@contextlib.contextmanager
def connected(listener):
    channel, _ = connect(listener.address, SECRET.encode(), Hello("join"), SECONDS)
    with contextlib.closing(channel):
        channel.sock.settimeout(SECONDS)
        yield channel


def test_a_worker_is_told_its_number_and_its_arguments_and_not_the_token(run, listener):
    with connected(listener) as channel:
        say(channel, JOIN, address="127.0.0.1:4000")
        told = {"label": "worker/0", "environment": {"A": "b"}, "arguments": ["--task_index=0"]}
        assert heard(channel) == (ADMITTED, told)
        assert run.guests[0].address == "127.0.0.1:4000" and run.guests[0].host == "this machine"
        say(channel, HERE)
        say(channel, LEFT, code=3)
        until(lambda: run.exits == [("worker/0", 3)], "the end of the worker")


def test_a_worker_without_room_is_told_why(run, listener):
    run.room = 0
    with connected(listener) as channel:
        say(channel, JOIN, address="127.0.0.1:4000")
        assert heard(channel) == (REFUSED, {"why": "All numbers of workers are taken."})
    assert run.exits == []


def test_a_connection_that_ends_was_a_worker_that_died(run, listener):
    with connected(listener) as channel:
        say(channel, JOIN, address="127.0.0.1:4000")
        heard(channel)
    until(lambda: run.exits == [("worker/0", -signal.SIGKILL)], "the end of the worker")


def test_signals_go_to_the_worker_and_the_end_of_the_connection_kills_it(run, listener):
    got = []
    with connected(listener) as channel:
        say(channel, JOIN, address="127.0.0.1:4000")
        heard(channel)
        following = in_background(follow_signals, channel, got.append)
        run.guests[0].send(signal.SIGTERM)
        until(lambda: got == [signal.SIGTERM], "the signal")
        run.guests[0].send(signal.SIGKILL)
        following.result(SECONDS)
    assert got[0] == signal.SIGTERM and got[-1] == signal.SIGKILL
    until(lambda: run.exits == [("worker/0", -signal.SIGKILL)], "the end of the worker")


@pytest.mark.parametrize(
    "message",
    [
        Inspect(JOIN, "[1]"),
        Inspect(JOIN, "no JSON"),
        Inspect(JOIN, json.dumps({"address": 5})),
        Inspect(JOIN, json.dumps({"address": "nowhere"})),
        Inspect(JOIN, json.dumps({"address": "a:b"})),
        Inspect(LEFT, "{}"),
        Inspect(SIGNAL, '{"number": 9}'),
        Ping(),
    ],
)
def test_whoever_says_something_else_is_sent_away(run, listener, message):
    with connected(listener) as channel:
        channel.say(message)
        with pytest.raises(OSError):
            heard(channel)
    assert run.guests == [] and run.exits == []
    with connected(listener) as channel:  # and others are still served
        say(channel, JOIN, address="127.0.0.1:4000")
        assert heard(channel)[0] == ADMITTED


def test_the_end_of_the_run_ends_the_connections(run, listener):
    with connected(listener) as channel:
        say(channel, JOIN, address="127.0.0.1:4000")
        heard(channel)
        threading.Thread(target=listener.close, daemon=True).start()
        with pytest.raises(OSError):
            heard(channel)


def test_a_place_to_join_at_that_is_none_is_an_error(run, monkeypatch):
    monkeypatch.setenv("TENSORFLEET_JOIN_AT", "nowhere")
    with pytest.raises(tf.errors.InvalidArgumentError, match='Could not interpret "nowhere"'):
        JoinListener(run, SECRET, "train.py", only_here=True)
