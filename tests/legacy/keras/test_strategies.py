"""Keras models that are made and compiled in a strategy's scope."""

import json
from pathlib import Path

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.testing.cluster import free_addresses
from tests.support.tasks import Tasks, output

PROGRAM = Path(__file__).parent / "programs" / "strategy_worker.py"
X = np.random.RandomState(0).rand(32, 3).astype(np.float32)
Y = (X.sum(1, keepdims=True) > 1.5).astype(np.float32)
K = tf.keras.backend


@pytest.fixture(autouse=True)
def session():
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as result:
        K.set_session(result)
        yield result
    K.set_session(None)


def build(optimizer):
    return tf.keras.Sequential(
        [
            tf.keras.layers.Dense(4, activation="tanh", kernel_initializer="ones", input_shape=(3,)),
            tf.keras.layers.BatchNormalization(),
            tf.keras.layers.Dense(1, activation="sigmoid", kernel_initializer="ones"),
        ]
    ), optimizer


def fitted(optimizer, strategy=None):
    """A model's weights, and what `fit` and `evaluate` said, with a strategy or without."""
    if strategy is None:
        strategy = tf.distribute.get_strategy()
    with strategy.scope():
        model, given = build(optimizer())
        model.compile(given, "binary_crossentropy", metrics=["acc"])
    history = model.fit(X, Y, batch_size=8, epochs=2, shuffle=False, verbose=0).history
    return model, history, model.evaluate(X, Y, verbose=0)


OPTIMIZERS = {
    "keras adam": lambda: tf.keras.optimizers.Adam(0.01),
    "keras sgd": lambda: tf.keras.optimizers.SGD(0.1, momentum=0.9),
    "tf adam": lambda: tf.train.AdamOptimizer(0.01),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("kind", ["mirrored", "one device", "central"])
def test_fitting_with_a_strategy_gives_the_same_model(name, kind):
    strategy = {
        "mirrored": lambda: tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"]),
        "one device": lambda: tf.distribute.OneDeviceStrategy("/cpu:0"),
        "central": lambda: tf.distribute.experimental.CentralStorageStrategy(["/cpu:0", "/cpu:1"]),
    }[kind]()
    model, history, measured = fitted(OPTIMIZERS[name], strategy)
    other, wanted, known = fitted(OPTIMIZERS[name])
    for a, b in zip(model.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(history["loss"], wanted["loss"], rtol=1e-4)
    np.testing.assert_allclose(history["acc"], wanted["acc"], rtol=1e-4)
    np.testing.assert_allclose(measured, known, rtol=1e-4)
    if kind == "mirrored":
        first, second = K.get_session().run(strategy.unwrap(model.weights[0]))
        np.testing.assert_array_equal(first, second)


def test_an_estimator_of_a_model_trains_with_a_strategy(tmp_path):
    model, optimizer = build(tf.keras.optimizers.SGD(0.1))
    model.compile(optimizer, "binary_crossentropy", metrics=["acc"])
    config = tf.estimator.RunConfig(
        str(tmp_path),
        train_distribute=tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"]),
        session_config=tf.ConfigProto(device_count={"CPU": 2}),
    )
    estimator = tf.keras.estimator.model_to_estimator(model, config=config)
    data = lambda: tf.data.Dataset.from_tensor_slices((X, Y)).repeat().batch(8)  # noqa: E731
    estimator.train(data, steps=4)
    assert estimator.get_variable_value("global_step") == 4
    assert estimator.evaluate(data, steps=4)["loss"] > 0
    tf.summary.FileWriterCache.clear()


def test_workers_fit_one_model_together():
    cluster = free_addresses(worker=2)
    with Tasks() as tasks:
        started = [tasks.start(PROGRAM, task=(cluster, "worker", index)) for index in range(2)]
        items = [json.loads(output(p).splitlines()[-1]) for p in started]
    assert items[0] == items[1]
    x = np.random.RandomState(3).rand(16, 2).astype(np.float32)
    w = np.float32(items[0]["before"])
    for _ in range(3):
        for batch in (x[:8], x[8:]):
            w = w - 0.1 * 2 * batch.T @ (batch @ (w - np.float32([[1.0], [-2.0]]))) / 8
    np.testing.assert_allclose(items[0]["after"], w, rtol=1e-4, atol=1e-5)
