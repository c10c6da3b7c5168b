"""Tasks that are stopped, closed or killed: every step that needs them ends as soon as the first."""

import pytest

import tensorfleet as tf
from tensorfleet.cluster import connection, peers
from tensorfleet.testing.cluster import ProcessCluster
from tests.support.waiting import in_background

SECONDS = 60  # for what takes less than one


@pytest.fixture
def impatient(monkeypatch):
    """A silent task is given up after half a second; nothing else that connecting has ends within the test."""
    monkeypatch.setenv("TENSORFLEET_SILENT_SECONDS", "0.5")
    monkeypatch.setattr(connection, "HANDSHAKE_SECONDS", 600.0)
    monkeypatch.setattr(peers, "HANDSHAKE_SECONDS", 600.0)


@pytest.mark.parametrize("how", ["stopped", "killed", "closed"])
@pytest.mark.parametrize("timeout", [0, 600_000], ids=["no deadline", "a long deadline"])
def test_later_steps_to_a_lost_task_end_as_the_first(impatient, how, timeout):
    with ProcessCluster(ps=1, worker=1) as cluster:
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(1.0)
            more = v.assign_add(1.0)
        with tf.device("/job:worker/task:0"):
            y = v + tf.placeholder_with_default(1.0, [])
        with tf.Session(cluster.target("worker", 0)) as sess:
            sess.run(v.initializer)
            sess.run([more, y])
            if how == "stopped":
                cluster.stop("ps", 0)
            elif how == "killed":
                cluster.kill("ps", 0)
            else:
                tf.fleet.stop_server(sess, "/job:ps/task:0")
                assert cluster.process("ps", 0).wait(SECONDS) == 0
            options = tf.RunOptions(timeout_in_ms=timeout)
            for _ in range(3):
                step = in_background(sess.run, [more, y], options=options)
                with pytest.raises(tf.errors.UnavailableError, match="/job:ps/replica:0/task:0"):
                    step.result(SECONDS)


def test_a_stopped_task_that_goes_on_is_used_again(impatient):
    with ProcessCluster(worker=1) as cluster:
        with tf.Session(cluster.target("worker", 0)) as sess:
            given = tf.placeholder(tf.float32, [])
            x = given + 1.0
            assert sess.run(x, {given: 1.0}) == 2.0
            cluster.stop("worker", 0)
            for _ in range(2):
                with pytest.raises(tf.errors.UnavailableError):
                    in_background(sess.run, x, {given: 1.0}).result(SECONDS)
            cluster.resume("worker", 0)
        with tf.Session(cluster.target("worker", 0)) as sess:
            assert sess.run(x, {given: 1.0}) == 2.0
