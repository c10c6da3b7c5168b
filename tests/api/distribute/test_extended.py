"""Strategies of one's own: what they say replaces what all have in common; scopes are entered again, and left in order."""

import pytest
from tensorfleet.python.distribute import distribute_lib, input_lib, values
from tensorfleet.python.distribute import distribution_strategy_context as where

import tensorfleet as tf


class Replica(distribute_lib.ReplicaContext):
    def merge_call(self, merge_fn, args=(), kwargs=None):
        return "merged"


class Extended(distribute_lib.StrategyExtendedV1):
    def _call_for_each_replica(self, fn, args, kwargs):
        with Replica(self._container_strategy(), replica_id_in_sync_group=0):
            return fn(*args, **kwargs)

    def _create_variable(self, next_creator, *args, **kwargs):
        return {k: kwargs[k] for k in ("name", "synchronization", "aggregation")}

    def _reduce_to(self, reduce_op, value, destinations):
        return value, destinations

    def _local_results(self, value):
        return (value,)

    def _update(self, var, fn, args, kwargs, group):
        return self._update_non_slot(var, fn, (var, *args), kwargs, group)

    def _update_non_slot(self, colocate_with, fn, args, kwargs, group):
        return fn(*args, **kwargs), group

    def _experimental_make_numpy_dataset(self, numpy_input, session):
        return numpy_input, session

    def _experimental_run_steps_on_iterator(self, fn, iterator, iterations, initial_loop_values=None):
        steps = input_lib.MultiStepContext()
        for _ in range(iterations):
            fn(steps, next(iterator))
        return steps


class Strategy(distribute_lib.Strategy):
    def __init__(self):
        super().__init__(Extended(self))


@pytest.fixture
def strategy():
    return Strategy()


def test_a_strategy_of_ones_own_says_what_is_done(strategy):
    def replica(x):
        assert where.get_cross_replica_context() is None and where.get_strategy() is strategy
        variable = tf.Variable(1.0, name="v")
        return x, tf.distribute.get_replica_context().merge_call(None), variable

    x, merged, result = strategy.extended.call_for_each_replica(replica, args=(3,))
    assert (x, merged) == (3, "merged")
    assert result == {
        "name": "v",
        "synchronization": tf.VariableSynchronization.AUTO,
        "aggregation": tf.VariableAggregation.NONE,
    }
    assert strategy.extended.reduce_to("mean", 1, "/cpu:0") == (1, "/cpu:0")
    assert strategy.extended.batch_reduce_to("sum", [(1, "a"), (2, "b")]) == [(1, "a"), (2, "b")]
    assert strategy.reduce("sum", 1) == (1, "/device:CPU:0")
    assert strategy.extended.update("v", lambda v, x: v + x, args=("x",)) == ("vx", True)
    assert strategy.extended.update_non_slot("v", lambda: 1, group=False) == (1, False)
    assert strategy.experimental_make_numpy_dataset([1], "session") == ([1], "session")
    seen = []
    strategy.extended.experimental_run_steps_on_iterator(lambda _, x: seen.append(x), iter("abc"), 2)
    assert seen == ["a", "b"]


def test_outside_of_all_scopes_is_the_default_strategys_replica(strategy):
    assert where.get_replica_context() is where._get_default_replica_context()
    assert where.get_strategy() is where._get_default_strategy()
    assert where.get_cross_replica_context() is None
    with strategy.scope():
        assert where.get_cross_replica_context() is strategy


def test_a_scope_is_entered_again_and_inside_itself(strategy):
    scope, other = strategy.scope(), strategy.scope()
    for _ in range(2):
        with scope, other, scope:
            assert tf.distribute.get_strategy() is strategy
        assert not tf.distribute.has_strategy()
    with scope, pytest.raises(RuntimeError, match="Mixing different tf.distribute.Strategy objects"):
        Strategy().scope().__enter__()
    with scope, pytest.raises(RuntimeError, match="Mixing different tf.distribute.Strategy objects"):
        Strategy().extended.reduce_to("sum", 1, "/cpu:0")


def test_a_scope_is_not_left_inside_other_blocks(strategy):
    strategy.extended._default_device = "/device:GPU:0"
    blocks = {
        "Device": lambda: tf.device("/cpu:0"),
        "Variable creator": lambda: tf.variable_creator_scope(lambda make, **kwargs: make(**kwargs)),
        "Variable": lambda: tf.variable_scope("inner"),
    }
    for what, block in blocks.items():
        scope = strategy.scope()
        with scope:
            assert tf.constant(1).device == "/device:GPU:0"
            with block(), pytest.raises(RuntimeError, match=f"^{what} scope nesting error"):
                scope.__exit__(None, None, None)
        assert not tf.distribute.has_strategy()


def test_input_for_several_workers():
    devices = values.ReplicaDeviceMap(["/cpu:0", "/cpu:1"])
    assert devices.all_devices == ("/replica:0/task:0/device:CPU:0", "/replica:0/task:0/device:CPU:1")
    assert devices.num_replicas_in_graph == 2 and devices.replica_for_device("/cpu:1") == 1
    assert devices.devices_by_replica[1] == devices.logical_to_actual_devices(0)[1:]
    workers = input_lib.InputWorkers(devices, [("/cpu:0", ["/cpu:0"]), ("/cpu:1", ["/cpu:1"])])
    assert workers.num_workers == 2 and workers.worker_devices == ("/cpu:0", "/cpu:1")
    contexts = [tf.distribute.InputContext(2, i, 2) for i in range(2)]

    def input_fn(told):
        return tf.data.Dataset.range(4).shard(told.num_input_pipelines, told.input_pipeline_id)

    iterator = input_lib.InputFunctionIterator(input_fn, workers, contexts, None)
    element = iterator.get_next()
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as sess:
        sess.run(iterator.initialize())
        assert [sess.run(list(element.values)) for _ in range(2)] == [[0, 1], [2, 3]]
    with pytest.raises(ValueError, match="is not same as number of input_contexts"):
        input_lib.InputFunctionIterator(input_fn, workers, contexts[:1], None)
