"""Variables over parameter servers, the rest on the worker."""

import types

import pytest

import tensorfleet as tf

CLUSTER = {"ps": ["a:1", "b:1"], "worker": ["c:1", "d:1"]}


def test_variables_take_turns_and_ops_stay_on_the_worker():
    with tf.device(tf.train.replica_device_setter(worker_device="/job:worker/task:1", cluster=CLUSTER)):
        v = [tf.Variable(1.0) for _ in range(3)]
        r = tf.Variable(1.0, use_resource=True)
        total = tf.add_n([tf.identity(x) for x in v])
    assert [x.device for x in v] == ["/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:0"]
    assert r.device == "/job:ps/task:1"
    assert total.device == "/job:worker/task:1"
    assert v[0].initializer.device == "/job:ps/task:0"


def test_a_setter_is_a_method_as_scripts_that_ask_for_its_type_expect():
    assert isinstance(tf.train.replica_device_setter(ps_tasks=1), types.MethodType)


def test_inner_devices_win_and_merge():
    with tf.device(tf.train.replica_device_setter(ps_tasks=2)):
        with tf.device("/cpu:0"):
            v = tf.Variable(1.0)
            c = tf.constant(1.0)
        with tf.device("/job:ps/task:1"):
            w = tf.Variable(1.0)
        with tf.device("/job:worker/task:3/gpu:0"):
            x = tf.Variable(1.0)
    assert v.device == "/job:ps/task:0/device:CPU:0"
    assert c.device == "/job:worker/device:CPU:0"
    assert w.device == "/job:ps/task:1"
    assert x.device == "/job:worker/task:3/device:GPU:0"


def test_without_merging_an_op_with_a_device_is_left_alone():
    with tf.device(tf.train.replica_device_setter(ps_tasks=2, merge_devices=False)), tf.device("/cpu:0"):
        assert tf.Variable(1.0).device == "/device:CPU:0"


def test_no_servers_place_nothing():
    assert tf.train.replica_device_setter() is None
    assert tf.train.replica_device_setter(cluster={"worker": ["c:1"]}) is None


def test_strategy_by_bytes_fills_the_emptier_server():
    strategy = tf.contrib.training.GreedyLoadBalancingStrategy(2, tf.contrib.training.byte_size_load_fn)
    with tf.device(tf.train.replica_device_setter(cluster=CLUSTER, ps_strategy=strategy)):
        sizes = [100, 10, 10, 50, 100]
        v = [tf.get_variable(f"v{i}", [n], use_resource=bool(i % 2)) for i, n in enumerate(sizes)]
    assert [x.device[-1] for x in v] == ["0", "1", "1", "1", "1"]


def test_strategy_by_chance_is_the_same_in_every_process():
    strategy = tf.contrib.training.RandomStrategy(2, seed=0)
    with tf.device(tf.train.replica_device_setter(cluster=CLUSTER, ps_strategy=strategy)):
        devices = [tf.Variable(1.0).device for _ in range(4)]
    assert [d[-1] for d in devices] == ["1", "0", "1", "1"]


def test_strategy_must_be_a_function():
    with pytest.raises(TypeError, match="ps_strategy must be callable"):
        tf.train.replica_device_setter(ps_tasks=1, ps_strategy=3)
