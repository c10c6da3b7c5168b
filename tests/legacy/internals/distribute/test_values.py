"""Inner names of `tf.distribute`: values of replicas, keys of collectives, modules by their first names."""

import threading

from tensorfleet.contrib.distribute.python import (
    cross_tower_utils,
    mirrored_strategy,
    parameter_server_strategy,
)
from tensorfleet.python.distribute import cross_device_utils, values

import tensorfleet as tf


def test_values_of_replicas_have_their_inner_names():
    strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
    with strategy.scope():
        v = tf.Variable(1.0)
        n = tf.Variable(1.0, synchronization=tf.VariableSynchronization.ON_READ)
    given = strategy.run(lambda: tf.distribute.get_replica_context().replica_id_in_sync_group)
    assert type(v) is values.MirroredVariable and type(n) is values.SyncOnReadVariable
    assert type(given) is values.PerReplica
    assert values.select_replica(1, [given]) == [given.values[1]]
    shared = tf.distribute.experimental.CentralStorageStrategy(["/gpu:0", "/gpu:1"], "/cpu:0")
    with shared.scope():
        assert type(tf.Variable(1.0)) is values.AggregatingVariable


def test_one_replica_has_an_ordinary_variable():
    strategy = tf.distribute.experimental.CentralStorageStrategy(["/cpu:0"])
    with strategy.scope():
        v = tf.train.create_global_step()
    assert type(v) is tf.python.ops.resource_variable_ops.ResourceVariable
    assert v._distribute_strategy is strategy


def test_keys_count_up_in_every_thread_for_itself():
    keys = cross_device_utils.CollectiveKeys(op_instance_key_start=100, variable_instance_key_start=200)
    assert cross_tower_utils.CollectiveKeys is cross_device_utils.CollectiveKeys
    assert (
        keys.get_group_key(["CPU:0", "CPU:1"]) == keys.get_group_key(["/device:CPU:1", "/device:CPU:0"]) == 1
    )
    assert keys.get_group_key(["GPU:0"]) == 2
    seen = [(keys.get_op_instance_key(), keys.get_variable_instance_key()) for _ in range(2)]
    thread = threading.Thread(target=lambda: seen.append((keys.get_op_instance_key(), 0)))
    thread.start()
    thread.join()
    assert seen == [(100, 200), (101, 201), (100, 0)]


def test_strategies_are_in_modules_of_their_own():
    assert mirrored_strategy.MirroredStrategy is tf.contrib.distribute.MirroredStrategy
    assert parameter_server_strategy.ParameterServerStrategy is tf.contrib.distribute.ParameterServerStrategy
