"""Ways to add up over devices: all give the same, and one's own is asked."""

import pytest

import tensorfleet as tf

WAYS = {
    "nccl": lambda: tf.distribute.NcclAllReduce(2),
    "hierarchical": lambda: tf.distribute.HierarchicalCopyAllReduce(),
    "one device": lambda: tf.distribute.ReductionToOneDevice("/cpu:1"),
    "function": lambda: tf.distribute.ReductionToOneDevice(accumulation_fn=lambda parts: parts[0] + parts[1]),
}


def _reduced(way, run):
    strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"], cross_device_ops=way)
    with strategy.scope():
        v = tf.get_variable("v", initializer=1.0)
        mine = strategy.run(
            lambda: tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.float32) + 1.0
        )
        sums = [strategy.reduce(op, mine) for op in ("SUM", "MEAN")]
        copies = strategy.extended.reduce_to(tf.distribute.ReduceOp.SUM, mine, v)
    return run(sums), run(strategy.unwrap(copies))


@pytest.mark.parametrize("name", WAYS)
def test_all_ways_add_up_alike(name, run):
    assert _reduced(WAYS[name](), run) == ([3.0, 1.5], (3.0, 3.0))


def test_ones_own_way_is_asked(run):
    class Doubled(tf.distribute.CrossDeviceOps):
        def reduce_implementation(self, reduce_op, per_replica_value, destinations):
            return 2.0 * super().reduce_implementation(reduce_op, per_replica_value, "/cpu:0")

    strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"], cross_device_ops=Doubled())
    with strategy.scope():
        total = strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(lambda: tf.constant(1.0)))
    assert run(total) == 4.0


def test_anything_else_is_refused():
    with pytest.raises(ValueError, match="CrossDeviceOps"):
        tf.distribute.MirroredStrategy(["/cpu:0"], cross_device_ops="nccl")
    with pytest.raises(ValueError, match="num_packs"):
        tf.distribute.NcclAllReduce(-1)
