"""A client from which nothing comes any more, not even the end of its connections: its work ends all the same."""

import textwrap
import time

import tensorfleet as tf
from tensorfleet.testing.cluster import ProcessCluster
from tensorfleet.testing.proxy import Proxy

SECONDS = 60  # for what takes a few on a quiet machine

CLIENT = """
    import sys, threading, time
    import tensorfleet as tf

    take = tf.FIFOQueue(9, tf.int32, shapes=[[]], shared_name="q").dequeue()
    turns = tf.get_variable("turns", [], tf.int64, tf.zeros_initializer(), use_resource=True)

    def turn(text):
        with tf.control_dependencies([turns.assign_add(1)]):
            return tf.strings.join([text, ""])  # a loop over strings is not compiled

    forever = tf.while_loop(lambda _: tf.constant(True), turn, [tf.constant("")])
    sess = tf.Session(sys.argv[1])
    sess.run(turns.initializer)
    for fetch in (take, take, forever):
        threading.Thread(target=sess.run, args=(fetch,), daemon=True).start()
    time.sleep(600)
"""


def test_the_steps_of_a_silent_client_are_cancelled_and_its_dequeues_withdrawn(tmp_path):
    script = tmp_path / "client.py"
    script.write_text(textwrap.dedent(CLIENT))
    q = tf.FIFOQueue(9, tf.int32, shapes=[[]], shared_name="q")
    number = tf.placeholder(tf.int32, [])
    put, take = q.enqueue(number), q.dequeue()
    turns = tf.get_variable("turns", [], tf.int64, use_resource=True)
    with (
        ProcessCluster(worker=1, env={"TENSORFLEET_SILENT_SECONDS": "0.75"}) as cluster,
        Proxy(cluster.cluster["worker"][0]) as network,
        tf.Session(cluster.target("worker", 0)) as sess,
    ):
        cluster.script(script, f"grpc://{network.address}")
        limit = time.monotonic() + SECONDS

        def counted():
            assert time.monotonic() < limit
            try:
                return sess.run(turns)
            except tf.errors.FailedPreconditionError:
                return -1

        while counted() < 10:
            time.sleep(0.01)
        time.sleep(0.5)  # for the dequeues to have begun as well
        network.partition()
        seen = -1
        while seen != (seen := counted()):  # until the loop has ended
            time.sleep(0.5)
        for n in (7, 8):
            sess.run(put, {number: n})
        assert [sess.run(take), sess.run(take)] == [7, 8]  # nobody else took them


def test_a_patient_client_is_not_taken_for_a_silent_one(monkeypatch):
    """However long a task may be silent for it, it says often enough itself that it is there."""
    monkeypatch.setenv("TENSORFLEET_SILENT_SECONDS", "600")
    with ProcessCluster(worker=1, env={"TENSORFLEET_SILENT_SECONDS": "0.75"}) as cluster:
        with tf.Session(cluster.target("worker", 0)) as sess:
            x = tf.placeholder_with_default(1.0, []) + 1.0
            sess.run(x)
            time.sleep(8)  # longer than the server waits
            assert sess.run(x) == 2.0
