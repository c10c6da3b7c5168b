"""Parts of estimators where libraries and TensorFlow's own tests import them from."""

import pytest

import tensorfleet as tf

_ESTIMATOR = tf.python.estimator


@pytest.mark.parametrize(
    "module, name, public",
    [
        ("canned.parsing_utils", "classifier_parse_example_spec", "classifier_parse_example_spec"),
        ("early_stopping", "stop_if_lower_hook", "experimental.stop_if_lower_hook"),
        ("head.multi_class_head", "MultiClassHead", "MultiClassHead"),
        ("extenders", "add_metrics", "add_metrics"),
        ("mode_keys", "ModeKeys", "ModeKeys"),
    ],
)
def test_modules_have_public_names(module, name, public):
    result = tf.estimator
    for part in public.split("."):
        result = getattr(result, part)
    place = _ESTIMATOR
    for part in module.split("."):
        place = getattr(place, part)
    assert getattr(place, name) is result


def test_keys_are_what_estimators_return(tmp_path):
    metrics, predictions = (
        _ESTIMATOR.canned.metric_keys.MetricKeys,
        _ESTIMATOR.canned.prediction_keys.PredictionKeys,
    )
    column = tf.feature_column.numeric_column("x")
    model = tf.estimator.LinearClassifier([column], model_dir=str(tmp_path))

    def data():
        return {"x": tf.constant([[1.0], [2.0]])}, tf.constant([[0], [1]])

    model.train(data, steps=1)
    result = model.evaluate(data, steps=1)
    assert {metrics.LOSS, metrics.LOSS_MEAN, metrics.ACCURACY, metrics.AUC_PR, metrics.LABEL_MEAN} <= set(
        result
    )
    first = next(model.predict(lambda: data()[0], yield_single_examples=True))
    assert {
        predictions.LOGITS,
        predictions.LOGISTIC,
        predictions.CLASS_IDS,
        predictions.PROBABILITIES,
    } <= set(first)
