"""Variables with copies: kept equal, or put together when read; one value of each in checkpoints."""

import numpy as np
import pytest

import tensorfleet as tf

from .conftest import TWO

SUM, MEAN = tf.VariableAggregation.SUM, tf.VariableAggregation.MEAN
ON_READ = tf.VariableSynchronization.ON_READ


def mine():
    """The number of the replica, from one."""
    return tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.float32) + 1.0


def test_a_variable_has_a_copy_on_each_device_under_one_name(mirrored, run):
    with mirrored.scope():
        v = tf.get_variable("v", initializer=tf.random_normal([3], seed=1))
    copies = mirrored.experimental_local_results(v)
    assert [c.name for c in copies] == ["v:0", "v/replica_1:0"]
    assert [c.device[-5:] for c in copies] == ["CPU:0", "CPU:1"]
    assert tf.global_variables() == tf.trainable_variables() == [v]
    first, second = run(copies)
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("make", ["get_variable", "Variable", "layer"])
def test_replicas_share_the_variables_they_make(mirrored, run, make):
    def step():
        if make == "layer":
            return tf.layers.dense(tf.ones([1, 2]) * mine(), 1, kernel_initializer=tf.ones_initializer())
        if make == "Variable":
            return tf.Variable(2.0, name="w") * mine()
        return tf.get_variable("w", initializer=2.0) * mine()

    result = mirrored.run(step)
    one, two = run(mirrored.unwrap(result))
    np.testing.assert_array_equal(np.ravel(one) * 2, np.ravel(two))
    assert [v.op.name for v in tf.trainable_variables()] == (
        ["dense/kernel", "dense/bias"] if make == "layer" else ["w"]
    )


@pytest.mark.parametrize(("aggregation", "wanted"), [(SUM, 4.0), (MEAN, 2.5)])
def test_what_replicas_write_is_aggregated_for_all_copies(mirrored, run, aggregation, wanted):
    with mirrored.scope():
        v = tf.Variable(1.0, aggregation=aggregation)
        added = mirrored.run(lambda: tf.identity(v.assign_add(mine())))
    run(mirrored.unwrap(added))
    with tf.Session(config=TWO) as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(mirrored.unwrap(added)) == (wanted, wanted)
        assert sess.run(mirrored.unwrap(v)) == (wanted, wanted)


def test_only_the_first_replicas_value_counts_where_asked(mirrored):
    with mirrored.scope():
        v = tf.Variable(0.0, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
        written = mirrored.run(lambda: v.assign(mine() * 7.0, read_value=False))
    with tf.Session(config=TWO) as sess:
        sess.run(v.initializer)
        sess.run(mirrored.unwrap(written))
        assert sess.run(mirrored.unwrap(v)) == (7.0, 7.0)


def test_writing_without_an_aggregation_is_refused(mirrored):
    with mirrored.scope():
        v = tf.Variable(1.0)
    with pytest.raises(ValueError, match="aggregation method"):
        mirrored.run(lambda: v.assign(2.0))


def test_a_write_above_the_replicas_or_outside_reaches_all_copies(mirrored):
    with mirrored.scope():
        v = tf.Variable(1.0)
        inside = v.assign_add(2.0)
    outside = tf.assign_sub(v, 1.0)
    with tf.Session(config=TWO) as sess:
        sess.run(v.initializer)
        assert sess.run(inside) == 3.0
        assert sess.run(outside) == 2.0
        assert sess.run(mirrored.unwrap(v)) == (2.0, 2.0)
        v.load(8.0, sess)
        assert sess.run(mirrored.unwrap(v)) == (8.0, 8.0)


def test_a_variable_synchronized_on_read_is_the_sum_of_what_replicas_wrote(mirrored):
    with mirrored.scope():
        v = tf.Variable(0.0, synchronization=ON_READ, aggregation=SUM)
        written = mirrored.run(lambda: v.assign_add(mine(), read_value=False))
        reset = v.assign(10.0, read_value=False)
        with pytest.raises(ValueError, match="assign_add"):
            v.assign_add(1.0)
    assert v not in tf.trainable_variables()
    with tf.Session(config=TWO) as sess:
        sess.run(v.initializer)
        sess.run(mirrored.unwrap(written))
        assert sess.run(v) == 3.0 and sess.run(mirrored.unwrap(v)) == (1.0, 2.0)
        sess.run(reset)
        assert sess.run(v) == 10.0 and sess.run(mirrored.unwrap(v)) == (5.0, 5.0)


def test_no_synchronization_is_refused(mirrored):
    with mirrored.scope(), pytest.raises(ValueError, match="`NONE` variable synchronization"):
        tf.Variable(1.0, synchronization=tf.VariableSynchronization.NONE)


def test_a_checkpoint_has_one_value_of_each_and_restores_all_copies(mirrored, tmp_path):
    with mirrored.scope():
        v = tf.get_variable("v", initializer=[1.0, 2.0])
        total = tf.get_variable(
            "total", initializer=6.0, trainable=False, synchronization=ON_READ, aggregation=SUM
        )
    saver = tf.train.Saver()
    with tf.Session(config=TWO) as sess:
        sess.run(tf.global_variables_initializer())
        path = saver.save(sess, str(tmp_path / "model"))
    reader = tf.train.NewCheckpointReader(path)
    assert reader.get_variable_to_shape_map() == {"v": [2], "total": []}
    assert reader.get_tensor("total") == 12.0
    with tf.Session(config=TWO) as sess:
        saver.restore(sess, path)
        assert sess.run(mirrored.unwrap(total)) == (6.0, 6.0)
        np.testing.assert_array_equal(sess.run(mirrored.unwrap(v))[1], [1.0, 2.0])
    # A program without a strategy reads it, and the other way round.
    with tf.Graph().as_default(), tf.Session() as sess:
        plain = tf.get_variable("v", [2])
        tf.train.Saver([plain]).restore(sess, path)
        np.testing.assert_array_equal(sess.run(plain), [1.0, 2.0])


def test_uninitialized_copies_are_reported(mirrored):
    with mirrored.scope():
        v = tf.get_variable("v", initializer=1.0)
    report = tf.report_uninitialized_variables()
    with tf.Session(config=TWO) as sess:
        sess.run(mirrored.unwrap(v)[0].initializer)
        assert list(sess.run(report)) == [b"v"]
        sess.run(v.initializer)
        assert not len(sess.run(report))


def test_metrics_count_over_all_replicas(mirrored, run):
    values = mirrored.run(lambda: tf.metrics.mean(mine()))
    with mirrored.scope():
        total = mirrored.run(lambda: tf.metrics.mean(mine()))
    with tf.Session(config=TWO) as sess:
        sess.run(tf.local_variables_initializer())
        sess.run(mirrored.unwrap(total[1]))
        assert sess.run(mirrored.unwrap(total[0]))[0] == 1.5
    assert len(mirrored.unwrap(values[1])) == 2


def test_central_storage_keeps_one_copy(run):
    strategy = tf.distribute.experimental.CentralStorageStrategy(["/cpu:0", "/cpu:1"], "/cpu:0")
    with strategy.scope():
        v = tf.get_variable("v", initializer=1.0)
        step = tf.train.get_or_create_global_step()

    def train():
        return tf.train.GradientDescentOptimizer(0.5).minimize(v * mine(), global_step=step)

    op = strategy.run(train)
    assert len(strategy.experimental_local_results(v)) == 1 and v.device.endswith("CPU:0")
    with tf.Session(config=TWO) as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(op)
        assert sess.run([v, step]) == [-0.5, 1]


def test_one_device_has_plain_variables():
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    with strategy.scope():
        v = tf.get_variable("v", initializer=1.0)
    assert strategy.extended.variable_created_in_scope(v) and v.device.endswith("CPU:0")
    step = strategy.run(lambda: tf.train.GradientDescentOptimizer(0.5).minimize(v * 2.0))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(step)
        assert sess.run(v) == 0.0
