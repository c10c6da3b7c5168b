"""The table of where operations run."""

import pytest

import tensorfleet as tf


def test_the_table_says_where_operations_are_and_why():
    with tf.device("/cpu:1"):
        a = tf.random_uniform([], name="a")
    with tf.colocate_with(a):
        b = tf.random_uniform([], name="b")
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as sess:
        lines = tf.fleet.explain_placement(sess, [a, b, tf.add(a, b, name="sum")]).splitlines()
    rows = {line.split()[0]: line.split(None, 3)[2:] for line in lines}
    assert rows["a"] == ["/device:CPU:1", "tf.device('/device:CPU:1')"]
    assert rows["b/RandomUniform"][0] == rows["a/RandomUniform"][0] == "/device:CPU:1"
    assert rows["b"] == ["/device:CPU:1", "stays with a"]
    assert rows["sum"] == ["/device:CPU:0", "default"]


def test_an_operation_that_follows_its_follower_says_so():
    a = tf.random_uniform([], name="a")
    with tf.colocate_with(a), tf.device("/cpu:1"):
        b = tf.identity(tf.random_uniform([]), name="b")
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as sess:
        lines = tf.fleet.explain_placement(sess, [a, b]).splitlines()
    (row,) = [line.split(None, 3) for line in lines if line.startswith("a ")]
    assert row[2] == "/device:CPU:1"
    assert row[3].startswith("stays with ")


@pytest.mark.parametrize("creator", [tf.train.MonitoredSession, tf.train.SingularMonitoredSession])
def test_a_monitored_session_is_explained_too(creator):
    total = tf.Variable(1.0, name="v") + 1.0
    with creator() as sess:
        sess.run(total)
        assert "VariableV2" in tf.fleet.explain_placement(sess)
        sess.run_step_fn(lambda step_context: tf.fleet.explain_placement(step_context.session, total))
    with pytest.raises(RuntimeError, match="already closed"):
        tf.fleet.explain_placement(sess)


@pytest.mark.parametrize("given", [None, 5, "grpc://localhost:1"])
def test_what_is_no_session_is_refused(given):
    with pytest.raises(TypeError, match="session must be a tf.Session or a monitored session, but got"):
        tf.fleet.explain_placement(given)
