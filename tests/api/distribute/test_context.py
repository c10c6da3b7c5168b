"""Where a program is: in no strategy's scope, above the replicas of one, or in a replica."""

import pytest

import tensorfleet as tf

SUM, MEAN = tf.distribute.ReduceOp.SUM, tf.distribute.ReduceOp.MEAN


def test_outside_of_scopes_the_default_strategy_is_at_work():
    strategy = tf.distribute.get_strategy()
    replica = tf.distribute.get_replica_context()
    assert not tf.distribute.has_strategy() and not tf.distribute.in_cross_replica_context()
    assert strategy.num_replicas_in_sync == replica.num_replicas_in_sync == 1
    assert replica.replica_id_in_sync_group == 0 and replica.strategy is strategy and replica.devices == ("",)
    assert replica.merge_call(lambda s, x: (tf.distribute.in_cross_replica_context(), x), args=(3,)) == (
        True,
        3,
    )
    assert strategy.run(lambda a, b=1: (a, b), args=(2,), kwargs={"b": 5}) == (2, 5)
    assert strategy.experimental_local_results(3) == (3,)
    assert strategy.reduce(SUM, 4) == 4
    with strategy.scope():
        assert not tf.distribute.has_strategy()


def test_the_default_strategy_has_no_devices():
    with pytest.raises(RuntimeError, match="unsupported by default"):
        tf.distribute.get_strategy().extended.worker_devices  # noqa: B018


def test_a_scope_is_above_the_replicas_and_a_function_that_is_run_is_inside_one(mirrored):
    def look():
        replica = tf.distribute.get_replica_context()
        assert tf.distribute.has_strategy() and not tf.distribute.in_cross_replica_context()
        assert tf.distribute.get_strategy() is mirrored is replica.strategy
        return replica.replica_id_in_sync_group

    with mirrored.scope() as entered:
        assert entered is mirrored and tf.distribute.in_cross_replica_context()
        assert tf.distribute.get_replica_context() is None
    numbers = mirrored.run(look)
    assert [tf.get_static_value(n) for n in mirrored.unwrap(numbers)] == [0, 1]
    assert not tf.distribute.has_strategy()


def test_a_graph_made_inside_a_scope_is_outside_of_it(mirrored):
    with mirrored.scope(), tf.Graph().as_default():
        assert not tf.distribute.has_strategy()


def test_scopes_of_two_strategies_do_not_nest(mirrored):
    other = tf.distribute.OneDeviceStrategy("/cpu:0")
    with mirrored.scope(), mirrored.scope(), pytest.raises(RuntimeError, match="Mixing different"):
        other.scope().__enter__()


def test_a_strategy_can_be_set_for_the_rest_of_a_program(mirrored):
    tf.distribute.experimental_set_strategy(mirrored)
    assert tf.distribute.get_strategy() is mirrored
    tf.distribute.experimental_set_strategy(None)
    assert not tf.distribute.has_strategy()


def test_merge_call_sees_all_replicas_and_gives_each_its_part(mirrored, run):
    def step():
        replica = tf.distribute.get_replica_context()
        mine = tf.cast(replica.replica_id_in_sync_group, tf.float32) + 1.0
        total = replica.merge_call(lambda s, v: s.reduce(SUM, v), args=(mine,))
        mean = replica.all_reduce(MEAN, [mine, {"twice": 2 * mine}])
        return total + mine, mean

    plus, mean = mirrored.run(step)
    assert run(mirrored.unwrap(plus)) == (4.0, 5.0)
    assert run(mirrored.unwrap(mean[0])) == (1.5, 1.5)
    assert run(mirrored.unwrap(mean[1]["twice"])) == (3.0, 3.0)


def test_replicas_must_meet_equally_often(mirrored):
    def step():
        replica = tf.distribute.get_replica_context()
        if tf.get_static_value(replica.replica_id_in_sync_group) == 0:
            replica.merge_call(lambda strategy: None)

    with pytest.raises(RuntimeError, match="different number"):
        mirrored.run(step)


def test_what_a_replica_raises_reaches_the_caller_and_ends_the_others(mirrored):
    import threading

    def step():
        replica = tf.distribute.get_replica_context()
        if tf.get_static_value(replica.replica_id_in_sync_group) == 1:
            raise ZeroDivisionError("here")
        replica.merge_call(lambda strategy: None)

    with pytest.raises(ZeroDivisionError, match="here"):
        mirrored.run(step)
    assert not [t for t in threading.enumerate() if t.name.startswith("tensorfleet-replica")]


def test_reducing_inside_a_replica_says_to_merge(mirrored):
    with pytest.raises(RuntimeError, match="merge_call"):
        mirrored.run(lambda: mirrored.reduce(SUM, tf.constant(1.0)))


def test_the_sum_of_what_is_the_same_everywhere_is_refused(mirrored):
    with mirrored.scope():
        assert mirrored.reduce(MEAN, 5) == 5
        with pytest.raises(ValueError, match="non-DistributedValues"):
            mirrored.reduce(SUM, tf.constant(5))


def test_results_keep_their_structure(mirrored):
    result = mirrored.run(lambda: {"a": [1, tf.constant(2)], "n": None})
    assert result["a"][0] == 1 and result["n"] is None
    assert len(mirrored.experimental_local_results(result["a"][1])) == 2


def test_reducing_over_an_axis_weighs_elements_alike(mirrored, run):
    def step():
        first = tf.equal(tf.distribute.get_replica_context().replica_id_in_sync_group, 0)
        return tf.cond(first, lambda: tf.constant([1.0, 2.0, 3.0]), lambda: tf.constant([10.0]))

    values = mirrored.run(step)
    assert run(mirrored.reduce(MEAN, values, axis=0)) == 4.0
    assert run(mirrored.reduce(SUM, values, axis=0)) == 16.0


def test_a_strategy_survives_deep_copies(mirrored):
    import copy

    assert copy.deepcopy({"strategy": mirrored})["strategy"] is mirrored
