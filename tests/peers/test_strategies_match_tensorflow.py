"""Strategies of one machine against TensorFlow's, in graph mode."""

import warnings

import numpy as np
import pytest

import tensorfleet

START = np.linspace(-1, 1, 10).reshape(5, 2).astype(np.float32)
STRATEGIES = {
    "mirrored": lambda tf: tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"]),
    "one device": lambda tf: tf.distribute.OneDeviceStrategy("/cpu:0"),
    "central storage": lambda tf: tf.distribute.experimental.CentralStorageStrategy(
        ["/cpu:0", "/cpu:1"], "/cpu:0"
    ),
}
OPTIMIZERS = {
    "descent": lambda tf: tf.train.GradientDescentOptimizer(0.1),
    "adam": lambda tf: tf.train.AdamOptimizer(0.1),
    "momentum": lambda tf: tf.train.MomentumOptimizer(0.1, 0.9),
}


def _train(tf, strategy, optimizer, sparse):
    with tf.Graph().as_default(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        strategy = STRATEGIES[strategy](tf)
        with strategy.scope():
            w = tf.get_variable("net/w", initializer=START)
            step = tf.train.get_or_create_global_step()
            batches = strategy.make_dataset_iterator(tf.data.Dataset.range(24).batch(6))
            total = tf.get_variable(
                "total",
                initializer=1.0,
                trainable=False,
                synchronization=tf.VariableSynchronization.ON_READ,
                aggregation=tf.VariableAggregation.SUM,
            )

            def replica(x):
                rows = tf.gather(w, x % 5) if sparse else w * tf.cast(tf.reduce_sum(x), tf.float32)
                loss = tf.reduce_sum(tf.square(rows)) / 10.0
                train = OPTIMIZERS[optimizer](tf).minimize(loss, global_step=step)
                return train, loss, total.assign_add(loss, read_value=False)

            train, loss, counted = strategy.experimental_run(replica, batches)
            summed = (
                strategy.reduce(tf.distribute.ReduceOp.SUM, loss, axis=None) if loss is not None else None
            )
        config = tf.ConfigProto(device_count={"CPU": 2}, allow_soft_placement=True)
        with tf.Session(config=config) as sess:
            sess.run(tf.global_variables_initializer())
            sess.run(batches.initialize())
            history = []
            for _ in range(3):
                _, _, value = sess.run([strategy.group(train), strategy.group(counted), summed])
                history.append([value, *sess.run([w, step, total])])
        names = sorted(v.name for v in tf.global_variables())
        trained = [v.name for v in tf.trainable_variables()]
    return names, trained, history


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("strategy", ["mirrored", "one device"])
def test_training_with_a_strategy_equals(tensorflow, strategy, optimizer, sparse):
    ours = _train(tensorfleet, strategy, optimizer, sparse)
    theirs = _train(tensorflow, strategy, optimizer, sparse)
    assert ours[:2] == theirs[:2]
    for a, b in zip(ours[2], theirs[2], strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-4)


def _context(tf):
    """What a program can ask about where it is."""
    with tf.Graph().as_default():
        d = tf.distribute
        strategy = STRATEGIES["mirrored"](tf)
        seen = [d.has_strategy(), d.in_cross_replica_context(), d.get_replica_context().num_replicas_in_sync]
        with strategy.scope():
            seen += [d.has_strategy(), d.in_cross_replica_context(), d.get_replica_context()]
            v = tf.get_variable("v", initializer=1.0)
            seen += [[x.name for x in strategy.experimental_local_results(v)], strategy.num_replicas_in_sync]

            def replica():
                seen.append((d.in_cross_replica_context(), tf.identity(v).name))
                return {"a": [1, tf.constant(2.0, name="two")]}

            result = strategy.experimental_run(replica)
        seen += [result["a"][0], [t.name for t in strategy.experimental_local_results(result["a"][1])]]
        seen += [strategy.extended.worker_devices, strategy.extended.parameter_devices]
    return [list(s) if isinstance(s, tuple) else s for s in seen]


def test_contexts_and_names_equal(tensorflow):
    assert _context(tensorfleet) == _context(tensorflow)


def _pieces(tf, size, batch):
    with tf.Graph().as_default(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        strategy = STRATEGIES["mirrored"](tf)
        with strategy.scope():
            batches = strategy.make_dataset_iterator(tf.data.Dataset.range(size).batch(batch))
            element = strategy.experimental_local_results(batches.get_next())
        result = []
        with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as sess:
            sess.run(batches.initialize())
            while True:
                try:
                    result.append([a.tolist() for a in sess.run(element)])
                except tf.errors.OutOfRangeError:
                    return result


@pytest.mark.parametrize(("size", "batch"), [(12, 4), (10, 4), (8, 8)])
def test_batches_are_divided_alike(tensorflow, size, batch):
    assert _pieces(tensorfleet, size, batch) == _pieces(tensorflow, size, batch)
