"""Weights saved here are read by TensorFlow's Keras; metrics have its values."""

import json
import subprocess
import sys

import numpy as np
import pytest

import tensorfleet as tf

K, layers = tf.keras.backend, tf.keras.layers
X = np.random.RandomState(0).rand(20, 3).astype("float32")
TRUE = (X[:, :1] + X[:, 1:2] > 1).astype("float32")

READS = """
import sys
import numpy as np
import keras
from keras import layers
model = keras.Sequential([
    keras.Input((3,)),
    layers.Dense(8, activation="relu", name="dense"),
    layers.BatchNormalization(name="batch_normalization"),
    layers.Reshape((4, 2)),
    layers.Conv1D(3, 2, padding="same", name="conv1d"),
    layers.Flatten(),
    layers.Dense(1, activation="sigmoid", name="dense_1"),
])
model.load_weights(sys.argv[1])
np.save(sys.argv[2], model.predict(np.load(sys.argv[3]), verbose=0))
"""
MEASURES = """
import json, sys
import numpy as np
import keras
true, predicted = np.load(sys.argv[1]), np.load(sys.argv[2])
values = {}
for name, arguments in json.loads(sys.argv[3]):
    metric = getattr(keras.metrics, name)(**arguments)
    for part in (slice(0, 13), slice(13, 20)):
        metric.update_state(true[part], predicted[part])
    values[json.dumps([name, arguments])] = np.asarray(metric.result()).tolist()
print("values: " + json.dumps(values))
"""
METRICS = [
    ["AUC", {}],
    ["AUC", {"curve": "PR"}],
    ["AUC", {"summation_method": "minoring", "num_thresholds": 20}],
    ["BinaryAccuracy", {"threshold": 0.4}],
    ["BinaryCrossentropy", {}],
    ["CosineSimilarity", {}],
    ["FalseNegatives", {"thresholds": [0.2, 0.6]}],
    ["FalsePositives", {}],
    ["Hinge", {}],
    ["KLDivergence", {}],
    ["MeanAbsoluteError", {}],
    ["MeanSquaredError", {}],
    ["Poisson", {}],
    ["Precision", {"thresholds": 0.6}],
    ["Recall", {}],
    ["RootMeanSquaredError", {}],
    ["SquaredHinge", {}],
    ["TrueNegatives", {}],
    ["TruePositives", {}],
]


@pytest.fixture(autouse=True)
def forgetful():
    yield
    K.set_session(None)


def test_tensorflow_reads_weights_saved_as_hdf5(tmp_path):
    with tf.Graph().as_default():
        model = tf.keras.Sequential(
            [
                layers.Dense(8, activation="relu", input_shape=(3,)),
                layers.BatchNormalization(),
                layers.Reshape((4, 2)),
                layers.Conv1D(3, 2, padding="same"),
                layers.Flatten(),
                layers.Dense(1, activation="sigmoid"),
            ]
        )
        model.compile("adam", "binary_crossentropy")
        model.fit(X, TRUE, epochs=3, verbose=0)
        model.save_weights(tmp_path / "model.h5")
        ours = model.predict(X)
    np.save(tmp_path / "x.npy", X)
    paths = [str(tmp_path / n) for n in ("model.h5", "y.npy", "x.npy")]
    subprocess.run([sys.executable, "-c", READS, *paths], check=True, timeout=300)
    np.testing.assert_allclose(ours, np.load(tmp_path / "y.npy"), rtol=1e-4, atol=1e-6)


def test_metrics_have_tensorflows_values(tmp_path):
    predicted = np.clip(X[:, 2:] * 0.5 + TRUE * 0.4, 0.01, 0.99)
    np.save(tmp_path / "true.npy", TRUE)
    np.save(tmp_path / "predicted.npy", predicted)
    arguments = [str(tmp_path / "true.npy"), str(tmp_path / "predicted.npy"), json.dumps(METRICS)]
    done = subprocess.run(
        [sys.executable, "-c", MEASURES, *arguments], check=True, timeout=300, capture_output=True, text=True
    )
    theirs = json.loads(done.stdout.partition("values: ")[2])
    with tf.Graph().as_default():
        true, guess = tf.placeholder("float32", [None, 1]), tf.placeholder("float32", [None, 1])
        metrics = [getattr(tf.keras.metrics, name)(**given) for name, given in METRICS]
        updates = [metric.update_state(true, guess) for metric in metrics]
        results = [metric.result() for metric in metrics]
        session = K.get_session()
        for part in (slice(0, 13), slice(13, 20)):
            session.run(updates, {true: TRUE[part], guess: predicted[part]})
        values = session.run(results)
    for key, value in zip(METRICS, values, strict=True):
        np.testing.assert_allclose(value, theirs[json.dumps(key)], rtol=2e-4, atol=1e-5, err_msg=str(key))
