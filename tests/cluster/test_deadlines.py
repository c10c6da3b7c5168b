"""Steps that must end: at their deadline, with their client, at Ctrl-C. Nothing of them is left, and no element is lost."""

import os
import signal
import socket
import threading
import time

import pytest

import tensorfleet as tf
from tensorfleet.testing.cluster import ProcessCluster
from tests.support.waiting import until

SECONDS = 120  # for what takes less than one on a quiet machine


@pytest.fixture(scope="module")
def cluster():
    with ProcessCluster(ps=1, worker=1) as made:
        yield made


@pytest.fixture
def queue():
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            q = tf.FIFOQueue(10, tf.int32, shapes=[[]], shared_name="q")
            yield q, q.dequeue(), q.enqueue(7), q.size()


def threads_of(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


@pytest.mark.parametrize("how", ["options", "config"])
def test_a_wait_for_an_element_ends_at_the_deadline_and_takes_nothing(cluster, queue, how):
    _, take, put, size = queue
    config = tf.ConfigProto(operation_timeout_in_ms=0 if how == "options" else 500)
    options = tf.RunOptions(timeout_in_ms=500) if how == "options" else None
    with tf.Session(cluster.target("worker", 0)) as other:
        other.run(size)
        idle = threads_of(cluster.process("ps", 0).pid)
        with tf.Session(cluster.target("worker", 0), config=config) as sess:
            with pytest.raises(tf.errors.DeadlineExceededError):
                sess.run(take, options=options)
        other.run(put)
        assert other.run(size) == 1  # nobody is waiting any more
        assert other.run(take) == 7
        until(lambda: threads_of(cluster.process("ps", 0).pid) <= idle + 2)


WAITING = """
import sys
import tensorfleet as tf
with tf.device("/job:ps/task:0"):
    q = tf.FIFOQueue(10, tf.int32, shapes=[[]], shared_name="q")
    size, take = q.size(), q.dequeue()
with tf.Session(sys.argv[1]) as sess:
    sess.run(size)
    open(sys.argv[2], "w").close()
    sess.run(take)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_client_that_ends_while_it_waits_takes_nothing_with_it(cluster, queue, tmp_path, number):
    _, take, put, size = queue
    script = tmp_path / "waiting.py"
    script.write_text(WAITING)
    with tf.Session(cluster.target("worker", 0)) as sess:
        sess.run(size)
        idle = threads_of(cluster.process("ps", 0).pid)
        client = cluster.script(script, cluster.target("worker", 0), str(tmp_path / "ready"))
        until((tmp_path / "ready").exists)
        until(lambda: threads_of(cluster.process("ps", 0).pid) > idle)
        time.sleep(0.3)  # for the dequeue to wait at the queue, which does not tell
        client.send_signal(number)
        assert client.wait(SECONDS) not in (0, None)
        until(lambda: threads_of(cluster.process("ps", 0).pid) <= idle)  # it has heard of it
        sess.run(put)
        assert sess.run(size) == 1
        assert sess.run(take) == 7


def test_a_killed_task_ends_a_waiting_step_at_once(queue):
    _, take, _, size = queue
    with ProcessCluster(ps=1, worker=1) as cluster, tf.Session(cluster.target("worker", 0)) as sess:
        sess.run(size)
        timer = threading.Timer(0.3, cluster.kill, ("ps", 0))
        timer.start()
        began = time.monotonic()
        with pytest.raises(tf.errors.UnavailableError, match="/job:ps/replica:0/task:0"):
            sess.run(take)
        print(f"{time.monotonic() - began - 0.3:.2f} s after the kill")
        timer.join(SECONDS)


def test_a_server_told_to_end_ends_the_steps_that_wait_in_it(queue):
    _, take, _, size = queue
    with ProcessCluster(ps=1, worker=1) as cluster, tf.Session(cluster.target("worker", 0)) as sess:
        sess.run(size)
        timer = threading.Timer(0.3, cluster.signal, ("ps", 0, signal.SIGTERM))
        timer.start()
        with pytest.raises(
            tf.errors.UnavailableError
        ):  # so that a monitored session waits for it to come back
            sess.run(take)
        timer.join(SECONDS)
        assert cluster.process("ps", 0).wait(SECONDS) == 0


CREATING = """
import sys
import tensorfleet as tf
open(sys.argv[2], "w").close()
try:
    tf.Session(sys.argv[1]).run(tf.no_op())
except KeyboardInterrupt:
    sys.exit(7)
"""


@pytest.mark.parametrize("answers", [False, True], ids=["nobody is there", "somebody says nothing"])
def test_ctrl_c_ends_the_wait_for_a_task(tmp_path, answers):
    script = tmp_path / "creating.py"
    script.write_text(CREATING)
    with ProcessCluster(worker=1) as cluster, socket.create_server(("localhost", 0)) as silent:
        address = f"localhost:{silent.getsockname()[1]}"
        if not answers:
            silent.close()
        client = cluster.script(script, f"grpc://{address}", str(tmp_path / "ready"))
        until((tmp_path / "ready").exists)
        time.sleep(0.3)  # for the client to wait in the constructor: the silent server cannot tell
        client.send_signal(signal.SIGINT)
        assert client.wait(SECONDS) == 7


def test_a_negative_timeout_means_none(cluster, queue):
    _, take, put, _ = queue
    config = tf.ConfigProto(operation_timeout_in_ms=-5)
    with tf.Session(cluster.target("worker", 0), config=config) as sess:
        sess.run(put, options=tf.RunOptions(timeout_in_ms=-5))
        assert sess.run(take, options=tf.RunOptions(timeout_in_ms=-5)) == 7
