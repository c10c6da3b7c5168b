"""Estimators of tf.contrib.learn with the methods of scikit-learn."""

import numpy as np
import pytest

import tensorfleet as tf

learn = tf.contrib.learn
X = np.array([[0.0], [1.0], [2.0], [3.0]], np.float32)


def test_arrays_go_in_and_come_out():
    columns = [tf.contrib.layers.real_valued_column("")]
    model = learn.SKCompat(learn.LinearClassifier(columns))
    assert model.fit(X, np.array([0, 0, 1, 1]), steps=100) is model
    predictions = model.predict(X, batch_size=3)
    assert predictions["probabilities"].shape == (4, 2) and predictions["logits"].shape == (4, 1)
    assert list(model.predict(X, outputs=["logits"])) == ["logits"]
    assert model.score(X, np.array([0, 0, 1, 1]))["accuracy"] >= 0.5
    with pytest.raises(ValueError, match="Metrics argument should be None or dict"):
        model.score(X, X, metrics=[1])


def test_estimators_can_be_trained_and_evaluated():
    model = learn.LinearRegressor([tf.contrib.layers.real_valued_column("")])
    assert isinstance(model, learn.Trainable) and isinstance(model, learn.Evaluable)
    assert issubclass(learn.NotFittedError, ValueError) and issubclass(learn.NotFittedError, AttributeError)
    with pytest.raises(TypeError, match="abstract"):
        learn.Trainable()


def test_columns_are_found_from_what_an_input_function_gives():
    (column,) = learn.infer_real_valued_columns_from_input_fn(lambda: ({"x": tf.zeros([4, 3])}, None))
    assert column.key == "x" and tuple(column.shape) == (3,)
