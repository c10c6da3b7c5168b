"""Many of everything: blocked operations, sessions, requests that nobody reads the answers of."""

import contextlib
import os
import socket
import time

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.cluster import messages
from tensorfleet.cluster.transport import connection
from tensorfleet.cluster.transport.token import token
from tensorfleet.testing.cluster import ProcessCluster
from tests.support.waiting import in_background, until

SECONDS = 120  # for what takes one on a quiet machine


@pytest.fixture(scope="module")
def cluster():
    with ProcessCluster(ps=1, worker=1) as result:
        yield result


def resources_of(pid):
    """Descriptors and threads of a process."""
    with open(f"/proc/{pid}/status") as f:
        result = dict(line.split(":", 1) for line in f.read().splitlines() if ":" in line)
    return len(os.listdir(f"/proc/{pid}/fd")), int(result["Threads"])


def memory_of(pid):
    """Megabytes."""
    with open(f"/proc/{pid}/statm") as f:
        return int(f.read().split()[1]) * 4096 >> 20


@pytest.mark.parametrize("end", ["queue", "session"])
def test_a_hundred_blocked_operations_wake_when_their_queue_or_session_is_closed(cluster, end):
    with tf.Graph().as_default() as graph:
        with tf.device("/job:ps/task:0"):
            q = tf.FIFOQueue(10, tf.int32, shapes=[[]], shared_name=f"blocked by {end}")
            take, size, close = q.dequeue(), q.size(), q.close()
        waiting = tf.Session(cluster.target("worker", 0))
        waiting.run(size)
        blocked = [in_background(waiting.run, take) for _ in range(100)]
        until(lambda: len(waiting._engine.running) == 100)
        time.sleep(0.5)  # for most of them to reach the queue, which does not tell
        began = time.monotonic()
        if end == "queue":
            with tf.Session(cluster.target("worker", 0), graph=graph) as sess:
                sess.run(close)
        else:
            waiting.close()
        raised = {type(run.exception(SECONDS)) for run in blocked}
        print(f"all awake after {time.monotonic() - began:.2f} s")
        waiting.close()
    assert raised <= {tf.errors.OutOfRangeError, tf.errors.CancelledError}


def test_a_thousand_sessions_leave_nothing_behind(cluster):
    pids = [cluster.process(job, 0).pid for job in ("ps", "worker")]
    with tf.Graph().as_default() as graph:
        with tf.device("/job:ps/task:0"):
            x = tf.constant(1.0) + 1.0

        def one():
            with tf.Session(cluster.target("worker", 0), graph=graph) as sess:
                assert sess.run(x) == 2.0

        for _ in range(5):
            one()
        time.sleep(0.5)  # for threads of these sessions to end, so that they do not count as there before
        before = [resources_of(pid) for pid in (os.getpid(), *pids)]
        for _ in range(1000):
            one()
        for pid, (files, threads) in zip((os.getpid(), *pids), before, strict=True):
            until(lambda pid=pid, f=files: resources_of(pid)[0] < f + 20)
            until(lambda pid=pid, t=threads: resources_of(pid)[1] < t + 20)


def test_a_client_that_reads_no_answers_has_to_wait_and_costs_no_memory(cluster):
    """The server does not read on while its answers are not read."""
    pid, address = cluster.process("worker", 0).pid, cluster.cluster["worker"][0]
    channel, _ = connection.connect(address, token(), messages.Hello("rude"), SECONDS)
    channel.say(messages.Describe())
    channel.receive()
    before = memory_of(pid)
    channel.sock.settimeout(2.0)
    sent = 0
    with contextlib.suppress(TimeoutError):
        while sent < 1_000_000:
            channel.say(messages.Describe())
            sent += 1
    assert sent < 1_000_000
    assert memory_of(pid) < before + 100
    channel.close()


def test_values_pushed_for_a_step_that_never_comes_are_forgotten_with_its_session(cluster):
    pid, address = cluster.process("worker", 0).pid, cluster.cluster["worker"][0]
    control, _ = connection.connect(address, token(), messages.Hello("pusher", control=True), SECONDS)
    channel, _ = connection.connect(address, token(), messages.Hello("pusher"), SECONDS)
    nothing = np.zeros(0, np.uint8)
    channel.say(messages.Register("s" * 16, known=[], stages=[], create=True), [nothing, nothing])
    assert channel.receive().kind == messages.OK
    before = memory_of(pid)
    for step in range(100):
        channel.say(messages.Push("s" * 16, step, ["x:0"]), [np.ones(1 << 20, np.uint8)])
        assert channel.receive().kind == messages.OK
    control.close()
    until(lambda: memory_of(pid) < before + 50)
    with contextlib.suppress(OSError):
        channel.sock.shutdown(socket.SHUT_RDWR)
    channel.close()
