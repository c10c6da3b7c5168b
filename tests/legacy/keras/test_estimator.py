"""Compiled models as Estimators."""

import numpy as np
import pytest

import tensorfleet as tf

K, layers = tf.keras.backend, tf.keras.layers
X = np.random.RandomState(0).rand(40, 3).astype("float32")
Y = X.sum(1)


def rows(epochs):
    data = tf.data.Dataset.from_tensor_slices(({"place": X}, Y))
    return data.repeat(epochs).batch(10)


@pytest.mark.parametrize("optimizer", [tf.keras.optimizers.SGD(0.2), tf.train.GradientDescentOptimizer(0.2)])
def test_a_model_trains_as_an_estimator_from_its_own_weights(tmp_path, optimizer):
    place = tf.keras.Input((3,), name="place")
    hidden = layers.BatchNormalization(scale=False, center=False)(place)
    # All weights end above 0: those that begin near there have a small loss from the start.
    far = tf.keras.initializers.RandomUniform(-2.0, -1.0)
    model = tf.keras.Model(place, layers.Dense(1, name="sum", kernel_initializer=far)(hidden))
    model.compile(optimizer, "mse", metrics=["mae"])
    before, weights = model.predict(X), model.get_weights()
    result = tf.keras.estimator.model_to_estimator(model, model_dir=str(tmp_path))
    result.train(lambda: rows(1), steps=1)
    first = result.evaluate(lambda: rows(1))
    result.train(lambda: rows(20))
    last = result.evaluate(lambda: rows(1))
    assert last["global_step"] == 81 and last["loss"] < first["loss"]
    assert last["mean_absolute_error"] > 0
    predicted = [p["sum"] for p in result.predict(lambda: rows(1))]
    assert np.shape(predicted) == (40, 1)
    assert np.mean((np.ravel(predicted) - Y) ** 2) == pytest.approx(last["loss"], rel=1e-3)
    np.testing.assert_allclose(model.predict(X), before, rtol=1e-4, atol=1e-6)
    for now, then in zip(model.get_weights(), weights, strict=True):
        np.testing.assert_array_equal(now, then)


def test_only_compiled_models_are_taken():
    with pytest.raises(ValueError, match="has not been compiled"):
        tf.keras.estimator.model_to_estimator(tf.keras.Sequential([layers.Dense(1, input_shape=(2,))]))
