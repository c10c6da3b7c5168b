"""Estimators that train and evaluate with strategies."""

import sys
from pathlib import Path

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.testing.cluster import free_addresses
from tests.support.tasks import output

sys.path.insert(0, str(Path(__file__).parent / "programs"))
import strategy_worker

PROGRAM = Path(__file__).parent / "programs" / "strategy_worker.py"
X = np.random.RandomState(0).rand(16, 2).astype(np.float32)
Y = X @ np.float32([[1.0], [-2.0]])


@pytest.fixture(autouse=True)
def ended():
    yield
    tf.summary.FileWriterCache.clear()


@pytest.fixture
def mirrored(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    return tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])


def input_of(batch):
    def input_fn():
        return tf.data.Dataset.from_tensor_slices((X, Y)).repeat().batch(batch)

    return input_fn


def model_fn(features, labels, mode, params):
    w = tf.get_variable("w", initializer=np.float32([[0.5], [0.5]]))
    predicted = tf.matmul(features, w)
    loss = tf.losses.mean_squared_error(labels, predicted, reduction=params["reduction"])
    metrics = {"mae": tf.metrics.mean_absolute_error(labels, predicted)}
    train = None
    if mode == tf.estimator.ModeKeys.TRAIN:
        train = tf.train.AdamOptimizer(0.05).minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train, eval_metric_ops=metrics)


def estimator(folder, reduction=tf.losses.Reduction.SUM_BY_NONZERO_WEIGHTS, **settings):
    config = tf.estimator.RunConfig(
        str(folder), session_config=tf.ConfigProto(device_count={"CPU": 2}), **settings
    )
    return tf.estimator.Estimator(model_fn, config=config, params={"reduction": reduction})


@pytest.mark.parametrize("reduction", [tf.losses.Reduction.SUM, tf.losses.Reduction.SUM_BY_NONZERO_WEIGHTS])
def test_two_replicas_train_as_one_with_both_batches(tmp_path, mirrored, reduction):
    two = estimator(tmp_path / "two", reduction, train_distribute=mirrored).train(input_of(4), steps=5)
    one = estimator(tmp_path / "one", reduction).train(input_of(8), steps=5)
    assert sorted(two.get_variable_names()) == sorted(one.get_variable_names())
    for name in one.get_variable_names():
        np.testing.assert_allclose(
            two.get_variable_value(name), one.get_variable_value(name), rtol=1e-5, atol=1e-6
        )


def test_replicas_evaluate_as_one(tmp_path, mirrored):
    result = estimator(tmp_path / "m", eval_distribute=mirrored).train(input_of(8), steps=2)
    plain = estimator(tmp_path / "m")
    two, one = result.evaluate(input_of(4), steps=2), plain.evaluate(input_of(8), steps=2)
    assert two.keys() == one.keys() == {"loss", "mae", "global_step"}
    for name in one:
        np.testing.assert_allclose(two[name], one[name], rtol=1e-5)


def test_a_distribute_config_names_both_strategies(mirrored):
    wanted = tf.contrib.distribute.DistributeConfig(train_distribute=mirrored, eval_distribute=mirrored)
    config = tf.estimator.RunConfig(experimental_distribute=wanted)
    assert config.train_distribute is config.eval_distribute is mirrored
    with pytest.raises(ValueError, match="not both"):
        tf.estimator.RunConfig(experimental_distribute=wanted, train_distribute=mirrored)


def test_several_replicas_need_a_dataset(tmp_path, mirrored):
    result = estimator(tmp_path, train_distribute=mirrored)
    with pytest.raises(ValueError, match="must give a `tf.data.Dataset`"):
        result.train(lambda: (tf.constant(X), tf.constant(Y)), steps=1)


def test_workers_of_a_cluster_without_a_chief_train_together(tmp_path):
    from tests.support.tasks import Tasks

    cluster = free_addresses(worker=2)
    with Tasks() as tasks:
        started = [
            tasks.start(PROGRAM, tmp_path / "m", 30, task=(cluster, "worker", index)) for index in range(2)
        ]
        for process in started:
            assert "ended" in output(process)
    reader = tf.train.NewCheckpointReader(tf.train.latest_checkpoint(str(tmp_path / "m")))
    assert reader.get_tensor("global_step") == 30
    # One process with the batches of both makes the same steps; it starts from where they have started.
    first = tf.train.NewCheckpointReader(str(tmp_path / "m" / "model.ckpt-0")).get_tensor("w")
    x = np.random.RandomState(3).rand(16, 2).astype(np.float32)
    halves = [x[0::2], x[1::2]]
    w = first
    for step in range(30):
        batch = np.concatenate(
            [np.take(h, range(4 * step, 4 * step + 4), axis=0, mode="wrap") for h in halves]
        )
        error = batch @ w - batch @ np.float32([[1.0], [-2.0]])
        w = w - 0.1 * 2 * batch.T @ error / len(batch)
    np.testing.assert_allclose(reader.get_tensor("w"), w, rtol=1e-4, atol=1e-5)


def test_of_a_strategy_with_one_graph_the_first_worker_trains_on_the_devices_of_all(tmp_path):
    from tests.support.tasks import Tasks

    cluster = free_addresses(worker=2)
    with Tasks() as tasks:
        started = [
            tasks.start(PROGRAM, tmp_path / "m", 5, "MirroredStrategy", task=(cluster, "worker", index))
            for index in range(2)
        ]
        for process in started:
            assert "ended" in output(process)
    saved = tf.train.NewCheckpointReader(tf.train.latest_checkpoint(str(tmp_path / "m")))
    w = tf.train.NewCheckpointReader(str(tmp_path / "m" / "model.ckpt-0")).get_tensor("w")
    x = np.random.RandomState(3).rand(16, 2).astype(np.float32)
    for step in range(5):  # two batches of four in each
        batch = np.take(x, range(8 * step, 8 * step + 8), axis=0, mode="wrap")
        w = w - 0.1 * 2 * batch.T @ (batch @ w - batch @ np.float32([[1.0], [-2.0]])) / len(batch)
    np.testing.assert_allclose(saved.get_tensor("w"), w, rtol=1e-4, atol=1e-5)
    assert saved.get_tensor("global_step") == 5


def test_without_a_cluster_the_same_program_trains_alone(tmp_path, monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    strategy_worker.main(str(tmp_path), 10)
    assert tf.train.load_checkpoint(str(tmp_path)).get_tensor("global_step") == 10
