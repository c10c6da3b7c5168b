"""Training with replicas is training with their batches together."""

import numpy as np
import pytest

import tensorfleet as tf

from .conftest import TWO

OPTIMIZERS = {
    "descent": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "adam": lambda: tf.train.AdamOptimizer(0.1),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.1, centered=True, epsilon=1e-3),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(0.5),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.1),
}
X = np.linspace(-1, 1, 32).reshape(16, 2).astype(np.float32)


def _loss(x):
    w = tf.get_variable("w", initializer=np.float32([[0.5], [-0.3]]))
    table = tf.get_variable("table", initializer=np.ones([4, 1], np.float32))
    rows = tf.gather(table, tf.cast(tf.abs(x[:, 0]) * 3.9, tf.int32))
    return tf.reduce_sum(tf.square(tf.matmul(x, w) + rows - 0.2))


def _after(step, variables, first=(), config=None):
    with tf.Session(config=config) as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(list(first))
        for _ in range(2):
            sess.run(step)
        return sess.run(variables)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_two_replicas_make_the_steps_of_one_with_both_batches(name, mirrored):
    data = tf.data.Dataset.from_tensor_slices(X).batch(8)
    optimizer = OPTIMIZERS[name]()
    with mirrored.scope():
        batches = mirrored.make_dataset_iterator(data)
        step = tf.train.get_or_create_global_step()
        op = mirrored.run(
            lambda x: optimizer.minimize(_loss(x), global_step=step), args=(batches.get_next(),)
        )
    ours = _after(mirrored.group(op), tf.global_variables(), [batches.initialize()], TWO)
    names = [v.name for v in tf.global_variables()]
    with tf.Graph().as_default():
        batch = tf.data.Dataset.from_tensor_slices(X).batch(8).make_one_shot_iterator().get_next()
        step = tf.train.get_or_create_global_step()
        with tf.variable_scope("", use_resource=True):
            op = OPTIMIZERS[name]().minimize(_loss(batch), global_step=step)
        result = dict(
            zip([v.name for v in tf.global_variables()], _after(op, tf.global_variables()), strict=True)
        )
    assert set(names) == set(result)
    for own, value in zip(names, ours, strict=True):
        np.testing.assert_allclose(value, result[own], rtol=1e-5, atol=1e-6, err_msg=own)


def test_all_copies_stay_equal(mirrored):
    with mirrored.scope():
        v = tf.get_variable("v", initializer=[1.0, 2.0])

    def train():
        mine = tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.float32)
        return tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(v * (mine - 3.0)))

    first, second = _after(mirrored.run(train), mirrored.unwrap(v), config=TWO)
    np.testing.assert_array_equal(first, second)


def test_an_optimizer_above_the_replicas_is_refused(mirrored):
    with mirrored.scope():
        v = tf.get_variable("v", initializer=1.0)
        with pytest.raises(RuntimeError, match="cross-replica context"):
            tf.train.GradientDescentOptimizer(0.1).minimize(v * 2.0)


def test_a_monitored_session_trains_saves_and_goes_on(mirrored, tmp_path):
    def build():
        with mirrored.scope():
            step = tf.train.get_or_create_global_step()
            v = tf.get_variable("v", initializer=4.0)
        op = mirrored.run(lambda: tf.train.GradientDescentOptimizer(0.25).minimize(v * 1.0, global_step=step))
        return v, op

    for wanted in (3, 5):
        with tf.Graph().as_default():
            v, op = build()
            hooks = [tf.train.StopAtStepHook(last_step=wanted)]
            with tf.train.MonitoredTrainingSession(
                checkpoint_dir=str(tmp_path), hooks=hooks, config=TWO, log_step_count_steps=None
            ) as sess:
                while not sess.should_stop():
                    _, value = sess.run([op, v])
    reader = tf.train.NewCheckpointReader(tf.train.latest_checkpoint(str(tmp_path)))
    assert reader.get_tensor("global_step") == 5
    assert reader.get_tensor("v") == 4.0 - 5 * 0.5
    assert not [name for name in reader.get_variable_to_shape_map() if "replica" in name]


def test_batch_normalization_averages_its_moments_over_replicas(mirrored):
    data = tf.data.Dataset.from_tensor_slices(X).batch(16)
    with mirrored.scope():
        batches = mirrored.make_dataset_iterator(data)

    def build(x):
        y = tf.layers.batch_normalization(x, training=True, momentum=0.5)
        updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS, tf.get_default_graph().get_name_scope() or None)
        return y, tf.group(*updates)

    _, updated = mirrored.run(build, args=(batches.get_next(),))
    mean = next(v for v in tf.global_variables() if "moving_mean" in v.name)
    with tf.Session(config=TWO) as sess:
        sess.run([tf.global_variables_initializer(), batches.initialize()])
        sess.run(mirrored.unwrap(updated))
        np.testing.assert_allclose(sess.run(mean), X.mean(0) * 0.5, atol=1e-6)
        parts = sess.run(mirrored.unwrap(mean))
    np.testing.assert_allclose(parts, [X[:8].mean(0) * 0.5, X[8:].mean(0) * 0.5], atol=1e-6)


def test_summaries_are_the_first_replicas(mirrored):
    mirrored.run(lambda: tf.summary.scalar("loss", tf.constant(1.0)))
    (kept,) = tf.get_collection(tf.GraphKeys.SUMMARIES)
    assert kept.op.name == "loss"
