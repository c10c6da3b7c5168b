"""Sessions that bring a cluster of their own (`ConfigProto.cluster_def`) to servers that know nothing of it."""

import numpy as np
import pytest

import tensorfleet as tf


@pytest.fixture
def servers():
    made = [tf.train.Server.create_local_server() for _ in range(3)]
    yield made
    for server in made:
        server.stop()


def of(*servers, job="worker", shared=False):
    """A configuration in which these servers are the tasks of one job."""
    addresses = [server.target.removeprefix("grpc://") for server in servers]
    config = tf.ConfigProto(cluster_def=tf.train.ClusterSpec({job: addresses}).as_cluster_def())
    config.experimental.share_session_state_in_clusterspec_propagation = shared
    return config


def test_servers_have_the_names_that_the_session_gives_them(servers, graph):
    one, two, _ = servers
    with tf.device("/job:worker/task:1"):
        a = tf.Variable([1.0, 2.0], name="a")
    with tf.device("/job:worker/task:0"):
        b = a * 2.0
    with tf.Session(one.target, config=of(one, two)) as s:
        s.run(a.initializer)
        np.testing.assert_array_equal(s.run(b), [2.0, 4.0])
        names = [d.name for d in s.list_devices()]
    assert [n for n in names if "CPU:0" in n] == [
        "/job:worker/replica:0/task:0/device:CPU:0",
        "/job:worker/replica:0/task:1/device:CPU:0",
    ]


def test_the_target_need_not_be_the_first_task(servers, graph):
    one, two, three = servers
    with tf.device("/job:renamed/task:2"):
        x = tf.placeholder(tf.float32, [])
        y = x + 1.0
    with tf.device("/job:renamed/task:1"):
        z = y * 2.0
    with tf.Session(two.target, config=of(three, two, one, job="renamed")) as s:
        assert s.run(z, {x: 3.0}) == 8.0


def test_a_traced_constant_is_on_its_own_task(servers, graph):
    one, two, _ = servers
    with tf.device("/job:worker/task:1"):
        c = tf.constant(17, name="c")
    traced = tf.RunMetadata()
    with tf.Session(one.target, config=of(one, two)) as s:
        s.run(c, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=traced)
    (stats,) = traced.step_stats.dev_stats
    assert stats.device == "/job:worker/replica:0/task:1/device:CPU:0"
    assert [n.node_name for n in stats.node_stats] == ["c"]


def test_such_sessions_have_their_own_state(servers, graph):
    one, two, _ = servers
    for task in (0, 1):
        with tf.device(f"/job:worker/task:{task}"):
            tf.Variable(1.0, name=f"v{task}")
    init, missing = tf.global_variables_initializer(), tf.report_uninitialized_variables()
    config = of(one, two)
    with tf.Session(one.target, config=config) as a, tf.Session(one.target, config=config) as b:
        a.run(init)
        assert a.run(missing).size == 0
        assert b.run(missing).size == 2


def test_such_sessions_share_their_state_when_they_ask_for_it(servers, graph):
    one, two, _ = servers
    with tf.device("/job:worker/task:1"):
        v = tf.Variable(1.0, name="v")
    config = of(one, two, shared=True)
    with tf.Session(one.target, config=config) as a, tf.Session(two.target, config=config) as b:
        a.run(v.initializer)
        b.run(v.assign_add(1.0))
        assert a.run(v) == 2.0


def test_a_target_that_is_not_in_the_cluster_is_refused(servers, graph):
    one, two, three = servers
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="not among the tasks of ConfigProto.cluster_def"
    ):
        tf.Session(three.target, config=of(one, two))
