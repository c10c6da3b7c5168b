"""The keys of predictions and metrics are those that estimators use."""

import numpy as np

import tensorfleet as tf

canned = tf.python.estimator.canned


def test_a_classifier_predicts_and_measures_under_these_keys(tmp_path):
    model = tf.estimator.LinearClassifier([tf.feature_column.numeric_column("x")], str(tmp_path))
    data = tf.estimator.inputs.numpy_input_fn(
        {"x": np.arange(8.0)}, np.arange(8) // 4, batch_size=4, num_epochs=None, shuffle=False
    )
    model.train(data, steps=2)
    result, keys = next(model.predict(data)), canned.prediction_keys.PredictionKeys
    assert {keys.LOGITS, keys.LOGISTIC, keys.PROBABILITIES, keys.CLASS_IDS, keys.CLASSES} <= set(result)
    measured, keys = model.evaluate(data, steps=1), canned.metric_keys.MetricKeys
    assert {keys.LOSS, keys.LOSS_MEAN, keys.ACCURACY, keys.AUC, keys.AUC_PR, keys.LABEL_MEAN} <= set(measured)


def test_the_class_below_estimators_is_an_estimator():
    model = tf.estimator.LinearClassifier([tf.feature_column.numeric_column("x")])
    assert isinstance(model, tf.python.estimator.estimator.EstimatorV2)
