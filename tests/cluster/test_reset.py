"""`tf.Session.reset`: state is freed, and the sessions on the target end."""

import pytest

import tensorfleet as tf
from tensorfleet.testing.cluster import ProcessCluster
from tests.support.waiting import in_background, until


def test_sessions_on_the_target_are_lost_and_new_ones_go_on(server):
    v = tf.Variable(2.0, name="v")
    with tf.container("mine"):
        w = tf.Variable(1.0, name="v")
    used, unused = tf.Session(server.target), tf.Session(server.target)
    used.run(tf.global_variables_initializer())
    tf.Session.reset(server.target, ["mine"])
    with pytest.raises(tf.errors.AbortedError, match="is not found"):
        used.run(v)
    # The server learns of a session when it first runs something.
    assert unused.run(v) == 2.0
    with pytest.raises(tf.errors.FailedPreconditionError):
        unused.run(w)


def test_the_container_without_a_name_has_the_name_of_the_job(server):
    v = tf.Variable(2.0, name="v")
    tf.Session(server.target).run(v.initializer)
    tf.Session.reset(server.target, ["elsewhere"])
    assert tf.Session(server.target).run(v) == 2.0
    tf.Session.reset(server.target, ["local"])
    with pytest.raises(tf.errors.FailedPreconditionError):
        tf.Session(server.target).run(v)


def test_a_step_that_waits_is_cancelled(server):
    session = tf.Session(server.target)
    queue = tf.FIFOQueue(1, tf.float32)
    element = queue.dequeue()
    session.run(queue.size())
    waiting = in_background(session.run, element)
    until(lambda: session._engine.running)
    tf.Session.reset(server.target)
    with pytest.raises(tf.errors.CancelledError, match="Session::Close"):
        waiting.result(60)


def test_a_session_of_another_process_is_lost_too():
    with ProcessCluster(ps=1, worker=1) as cluster:
        with tf.device("/job:worker/task:0"):
            v = tf.Variable(2.0, name="v")
        target = cluster.target("worker", 0)
        session = tf.Session(target)
        session.run(v.initializer)
        other = tf.Session(cluster.target("ps", 0))
        assert other.run(v) == 2.0
        tf.Session.reset(target, ["mine"])
        with pytest.raises(tf.errors.AbortedError):
            session.run(v)
        assert other.run(v) == 2.0  # it has another master


def test_local_sessions_are_closed_by_it_too():
    v = tf.Variable(2.0, name="v")
    with tf.Session() as sess:
        sess.run(v.initializer)
        tf.Session.reset("")
        with pytest.raises(tf.errors.CancelledError, match="Session has been closed"):
            sess.run(v)
    with tf.Session() as sess:
        sess.run(v.initializer)
        assert sess.run(v) == 2.0
