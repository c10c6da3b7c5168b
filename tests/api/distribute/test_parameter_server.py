"""Variables on parameter servers, a replica on each worker."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.testing.cluster import free_addresses

ParameterServerStrategy = tf.distribute.experimental.ParameterServerStrategy


@pytest.fixture
def cluster(serve):
    spec = tf.train.ClusterSpec(free_addresses(ps=2, worker=2))
    targets = {(job, i): serve(spec, job, i).target for job in ("ps", "worker") for i in range(2)}
    return spec, targets


def resolver(spec, index):
    return tf.distribute.cluster_resolver.SimpleClusterResolver(spec, task_type="worker", task_id=index)


def test_variables_are_in_turn_on_the_servers_and_workers_share_them(cluster):
    spec, targets = cluster
    for index, wanted in ((0, 0.5), (1, 0.0)):
        strategy = ParameterServerStrategy(resolver(spec, index))
        with tf.Graph().as_default():
            with strategy.scope():
                a = tf.get_variable("a", initializer=1.0)
                b = tf.get_variable("b", initializer=np.float32([1.0, 2.0]))
                step = tf.train.get_or_create_global_step()

            def train(a=a, b=b, step=step):
                loss = a + tf.reduce_sum(b * b)
                assert loss.device == f"/job:worker/replica:0/task:{index}/device:CPU:0"  # noqa: B023
                return tf.train.GradientDescentOptimizer(0.5).minimize(loss, global_step=step), loss

            op, _ = strategy.run(train)
            assert [v.device for v in (a, b, step)] == ["/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:0"]
            assert strategy.num_replicas_in_sync == 1
            assert strategy.extended.should_checkpoint == (index == 0)
            config = strategy.update_config_proto(tf.ConfigProto())
            assert list(config.device_filters) == [f"/job:worker/task:{index}", "/job:ps"]
            with tf.Session(targets["worker", index], config=config) as sess:
                if index == 0:
                    sess.run(tf.global_variables_initializer())
                sess.run(op)
                assert sess.run([a, step]) == [wanted, index + 1]


def test_without_a_cluster_everything_is_here(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    strategy = ParameterServerStrategy()
    with strategy.scope():
        v = tf.get_variable("v", initializer=1.0)
    op = strategy.run(lambda: tf.train.GradientDescentOptimizer(0.5).minimize(v * 2.0))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(op)
        assert sess.run(v) == 0.0


def test_a_variable_goes_to_its_server_whatever_surrounds_it(cluster):
    strategy = ParameterServerStrategy(resolver(cluster[0], 1))
    with strategy.scope():
        a = tf.get_variable("a", initializer=1.0)

        def replica():
            with tf.device("/job:worker/task:0"):
                b, there = tf.get_variable("b", initializer=1.0), tf.constant(1.0)
            with strategy.extended.colocate_vars_with(b):
                c = tf.get_variable("c", initializer=1.0)
            with tf.colocate_with(c.op):
                d, beside = tf.get_variable("d", initializer=1.0), tf.constant(1.0)
            return b, c, d, there, beside

        result = strategy.extended.call_for_each_replica(replica)
    assert [v.device for v in (a, *result[:3])] == [f"/job:ps/task:{i}" for i in (0, 1, 1, 0)]
    assert result[3].device == "/job:worker/replica:0/task:0/device:CPU:0"
    assert "/job:ps/" in result[4].device


def test_a_worker_may_have_several_replicas(cluster):
    strategy = tf.contrib.distribute.ParameterServerStrategy(num_gpus_per_worker=2)
    config = tf.ConfigProto()
    strategy.configure(config, cluster[0].as_dict(), "worker", 1)
    worker = "/job:worker/replica:0/task:1"
    assert strategy.extended.worker_devices == (f"{worker}/device:GPU:0", f"{worker}/device:GPU:1")
    assert strategy.num_replicas_in_sync == 2 and not config.isolate_session_state
    with strategy.scope():

        def replica():
            v = tf.get_variable("v", initializer=1.0, aggregation=tf.VariableAggregation.SUM)
            return v, v.assign_add(tf.constant(1.0))

        v, added = strategy.extended.call_for_each_replica(replica)
    assert v.device == "/job:ps/task:0" and tf.global_variables() == [v]
    with tf.Session(cluster[1]["worker", 1], config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        sess.run(v.initializer)
        sess.run(strategy.group(added))
        assert sess.run(v) == 3.0


def test_sessions_of_one_machine_share_no_state(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    for strategy in (
        ParameterServerStrategy(),
        tf.distribute.MirroredStrategy(["/cpu:0"]),
        tf.distribute.experimental.CentralStorageStrategy(["/cpu:0"]),
    ):
        assert strategy.update_config_proto(tf.ConfigProto()).isolate_session_state
