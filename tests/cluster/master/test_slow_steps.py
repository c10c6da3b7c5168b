"""A step that waits long for a queue of another task tells so, where it runs and where the queue is."""

import json

import pytest

import tensorfleet as tf
from tensorfleet.cluster.master.slow_steps import SlowSteps
from tensorfleet.testing.cluster import free_addresses
from tests.support.tasks import output, read_until
from tests.support.waiting import SECONDS, in_background, until

SERVER = """
import json, sys
import tensorfleet as tf
tf.train.Server(json.loads(sys.argv[1]), sys.argv[2], 0).join()
"""
CLIENT = """
import sys
import tensorfleet as tf
with tf.device("/job:ps/task:0"):
    q = tf.FIFOQueue(10, tf.int32, shapes=[[]], shared_name="numbers")
    take = q.dequeue()
with tf.Session("grpc://" + sys.argv[1]) as sess:
    print(sess.run(take))
"""


def test_both_tasks_tell_of_the_queue_that_is_waited_for(tasks, tmp_path, monkeypatch):
    monkeypatch.setenv("TENSORFLEET_REPORT_SECONDS", "0.2")
    server, client = tmp_path / "server.py", tmp_path / "client.py"
    server.write_text(SERVER)
    client.write_text(CLIENT)
    cluster = free_addresses(ps=1, worker=1)
    ps, _ = (tasks.start(server, json.dumps(cluster), job) for job in ("ps", "worker"))
    waiting = tasks.start(client, cluster["worker"][0])
    found = read_until(waiting, lambda line: "A step has waited" in line and line)
    assert "for 'numbers' (QueueDequeueV2 'fifo_queue_Dequeue', made at" in found
    assert "of /job:ps/replica:0/task:0" in found
    found = read_until(ps, lambda line: "A step has waited" in line and line)
    assert (
        "for an element of queue 'numbers' of /job:ps/task:0 (0 of 10 elements; made by a session of /job:worker/task:0)"
        in found
    )
    with tf.device("/job:ps/task:0"):
        q = tf.FIFOQueue(10, tf.int32, shapes=[[]], shared_name="numbers")
        put = q.enqueue(7)
    with tf.Session(f"grpc://{cluster['worker'][0]}") as sess:
        sess.run(put)
    assert output(waiting).strip().endswith("7")


@pytest.fixture
def take(serve):
    """A dequeue from a queue of another task, and its session."""
    spec = tf.train.ClusterSpec(free_addresses(ps=1, worker=1))
    serve(spec, "ps", 0)
    target = serve(spec, "worker", 0).target
    with tf.device("/job:ps/task:0"):
        q = tf.FIFOQueue(10, tf.int32, shapes=[[]], shared_name="numbers")
        take, put = q.dequeue(), q.enqueue(7)
    with tf.Session(target) as sess:
        yield sess, take, put


def test_a_timeout_names_queue_and_task(take):
    sess, get, _ = take
    with pytest.raises(tf.errors.DeadlineExceededError) as caught:
        sess.run(get, options=tf.RunOptions(timeout_in_ms=300))
    assert "'numbers'" in str(caught.value)
    assert "/job:ps" in str(caught.value)


def test_steps_that_end_in_time_are_not_told_of(take, caplog):
    sess, get, put = take
    slow = SlowSteps([sess._engine])
    ended = in_background(sess.run, get)
    until(lambda: sess._engine.running)
    slow.look()
    slow.look()
    sess.run(put)
    assert ended.result(SECONDS) == 7
    until(lambda: not len(slow._seen))
    assert "A step has waited" not in caplog.text
