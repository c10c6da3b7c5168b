"""A task that is alive and does nothing: whoever waits for it is woken by a deadline, a cancellation, or Ctrl-C."""

import socket
import threading
import time

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.cluster import messages
from tensorfleet.cluster.master import step_driver as stepping
from tensorfleet.cluster.stage_spec import Route, StageSpec
from tensorfleet.cluster.transport.listener import Listener
from tensorfleet.cluster.transport.token import token
from tensorfleet.cluster.worker.worker import Worker
from tests.support.waiting import in_background

SECONDS = 60  # for what takes less than three on a quiet machine
HANDLE = "0" * 16


class Stalled:
    """Something at an address that answers questions whether it is alive, and reads nothing else."""

    def __init__(self):
        door = socket.create_server(("localhost", 0))
        self.address = f"localhost:{door.getsockname()[1]}"
        self.came = threading.Event()
        self._end = threading.Event()
        welcome = messages.Welcome(1, "/job:a/replica:0/task:0", "a", 0, {"a": [self.address]})
        self._listener = Listener([door], token(), lambda: welcome, self._serve, 1 << 30)
        self._listener.start()

    def _serve(self, channel, hello):
        if hello.control:
            try:
                while channel.receive().kind == messages.PING:
                    channel.send(messages.OK)
            except (OSError, tf.errors.OpError):
                pass
        else:
            self.came.set()
            self._end.wait(2 * SECONDS)
        channel.close()

    def close(self):
        self._end.set()
        self._listener.close()


@pytest.fixture
def stalled():
    made = Stalled()
    yield made
    made.close()


@pytest.fixture(params=[1, 10_000_000], ids=["waits for the answer", "cannot even send"])
def pusher(request, stalled):
    """A task whose stage pushes a value to the stalled one."""
    with tf.Graph().as_default() as graph:
        tf.placeholder(tf.float32, [request.param], name="given")
        tf.identity(graph.get_tensor_by_name("given:0"), name="value")
    made = Worker("/job:ps/replica:0/task:0", tf.ConfigProto())
    told = {n: [] for n in ("kept", "awaited", "reply", "keep", "known", "thin", "targets")}
    push = Route("/job:worker/replica:0/task:0", stalled.address, ["value:0"])
    told |= {"id": 0, "ops": ["value"], "given": ["given:0"], "push": [push], "wire": ""}
    nodes = np.frombuffer(graph.as_graph_def().SerializeToString(), np.uint8)
    register = messages.Register(HANDLE, known=[], stages=[StageSpec(**told)], create=True)
    made.register("client", register, [nodes, np.zeros(0, np.uint8)])
    made.value = np.zeros(request.param, np.float32)
    yield made
    made.close()


def test_a_push_to_it_ends_at_the_deadline(pusher):
    with pytest.raises(tf.errors.DeadlineExceededError, match="/job:worker/replica:0/task:0"):
        pusher.run(HANDLE, 1, 0, 1, 500, [pusher.value])


@pytest.mark.parametrize("how", ["step", "session", "client"])
def test_a_push_to_it_ends_with_its_step_session_or_client(pusher, stalled, how):
    pushing = in_background(pusher.run, HANDLE, 1, 0, 1, 0, [pusher.value])
    assert stalled.came.wait(SECONDS)
    time.sleep(0.1)  # nothing happens, which cannot be waited for
    assert not pushing.done()
    if how == "step":
        pusher.cancel(messages.Cancel(HANDLE, 1, "given up"))
    elif how == "session":
        pusher.close_session(HANDLE)
    else:
        pusher.client_gone("client")
    with pytest.raises(tf.errors.CancelledError):
        pushing.result(SECONDS)


def test_a_push_of_a_step_that_was_given_up_before_is_not_made(pusher):
    pusher.cancel(messages.Cancel(HANDLE, 1, "given up"))
    with pytest.raises(tf.errors.CancelledError):
        pusher.run(HANDLE, 1, 0, 1, 0, [pusher.value])


@pytest.fixture
def stuck(server):
    """A server that runs no stage from when `stuck.set()` was called until the test is over, and its target."""
    stuck, came, over, run = threading.Event(), threading.Event(), threading.Event(), server.worker.run

    def run_never(*given):
        if stuck.is_set():
            came.set()
            over.wait(2 * SECONDS)
        return run(*given)

    server.worker.run = run_never
    yield server.target.replace("localhost", "127.0.0.1"), stuck, came
    over.set()


def test_a_step_that_needs_it_ends_at_the_deadline(stuck):
    target, stick, _ = stuck
    with tf.Graph().as_default(), tf.Session(target) as sess:
        x = tf.placeholder(tf.float32) + 1.0
        assert sess.run(x, {"Placeholder:0": 1.0}) == 2.0
        stick.set()
        with pytest.raises(tf.errors.DeadlineExceededError, match="/job:local"):
            sess.run(x, {"Placeholder:0": 1.0}, options=tf.RunOptions(timeout_in_ms=300))
        stick.clear()
        assert sess.run(x, {"Placeholder:0": 2.0}) == 3.0


def test_a_step_that_needs_it_ends_when_its_session_is_closed(stuck):
    target, stick, came = stuck
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32) + 1.0
        sess = tf.Session(target)
        assert sess.run(x, {"Placeholder:0": 1.0}) == 2.0
        stick.set()
        running = in_background(sess.run, x, {"Placeholder:0": 1.0})
        assert came.wait(SECONDS)
        sess.close()
        with pytest.raises(tf.errors.CancelledError):
            running.result(SECONDS)


def test_a_connection_that_was_given_up_before_its_answer_is_read_is_an_unavailable_task(stuck, monkeypatch):
    target, _, _ = stuck
    answer = stepping.StepDriver._answer

    def given_up(self, fd):
        self.asked[fd][2].close()  # as the watch on the task does
        return answer(self, fd)

    with tf.Graph().as_default(), tf.Session(target) as sess:
        x = tf.placeholder(tf.float32) + 1.0
        assert sess.run(x, {"Placeholder:0": 1.0}) == 2.0
        for timeout in (0, 1000 * SECONDS):
            with monkeypatch.context() as patch:
                patch.setattr(stepping.StepDriver, "_answer", given_up)
                with pytest.raises(tf.errors.UnavailableError, match="/job:local"):
                    sess.run(x, {"Placeholder:0": 1.0}, options=tf.RunOptions(timeout_in_ms=timeout))
            assert sess.run(x, {"Placeholder:0": 2.0}) == 3.0
