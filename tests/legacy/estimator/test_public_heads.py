"""`tf.estimator.BinaryClassHead` and its relatives, alone and at the end of estimators: values computed by hand."""

import numpy as np
import pytest

import tensorfleet as tf

head = tf.estimator
A = np.linspace(0, 1, 32).astype(np.float32)
X = {"a": A}
TWO = (A > 0.5).astype(np.int64)
LOGITS = np.array([[2.0], [-1.0], [0.5]], np.float32)
LABELS = np.array([[1], [1], [0]])


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    yield
    tf.summary.FileWriterCache.clear()


def data(y, epochs=None):
    return tf.estimator.inputs.numpy_input_fn(X, y, batch_size=8, num_epochs=epochs, shuffle=False)


def columns():
    return [tf.feature_column.numeric_column("a")]


def value_of(make):
    with tf.Graph().as_default(), tf.Session() as sess:
        result = make()
        sess.run(
            [tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()]
        )
        return sess.run(result)


def evaluated(make, features, logits, labels):
    """The metrics of one batch."""
    with tf.Graph().as_default(), tf.Session() as sess:
        inputs = {key: tf.constant(value) for key, value in features.items()}
        labels = (
            {k: tf.constant(v) for k, v in labels.items()}
            if isinstance(labels, dict)
            else tf.constant(labels)
        )
        spec = make().create_estimator_spec(inputs, "eval", tf.constant(logits), labels)
        sess.run([tf.local_variables_initializer(), tf.tables_initializer()])
        sess.run([metric.updates for metric in spec.eval_metric_ops.values()])
        result = sess.run({key: metric.result() for key, metric in spec.eval_metric_ops.items()})
        return {**result, "loss": sess.run(spec.loss)}


def cross_entropy(labels, logits):
    return np.maximum(logits, 0) - logits * labels + np.log1p(np.exp(-np.abs(logits)))


def test_the_loss_of_two_classes_is_a_mean_over_the_batch():
    expected = cross_entropy(LABELS, LOGITS)
    mean = value_of(lambda: head.BinaryClassHead().loss(tf.constant(LABELS), tf.constant(LOGITS), {}))
    assert mean == pytest.approx(expected.mean(), rel=1e-6)
    total = value_of(
        lambda: head.BinaryClassHead(loss_reduction="sum").loss(tf.constant(LABELS), tf.constant(LOGITS), {})
    )
    assert total == pytest.approx(expected.sum(), rel=1e-6)


def test_weights_weigh_examples_but_do_not_change_how_many_there_are():
    weights = np.array([[1.0], [0.0], [4.0]], np.float32)
    result = value_of(
        lambda: head.BinaryClassHead(weight_column="w").loss(
            tf.constant(LABELS),
            tf.constant(LOGITS),
            {"w": tf.constant(weights)},
            regularization_losses=[0.5, 0.25],
        )
    )
    assert result == pytest.approx((cross_entropy(LABELS, LOGITS) * weights).sum() / 3 + 0.75, rel=1e-6)


def test_metrics_of_two_classes_and_at_thresholds():
    result = evaluated(lambda: head.BinaryClassHead(thresholds=[0.2], name="h"), {}, LOGITS, LABELS)
    assert result["accuracy/h"] == pytest.approx(1 / 3)
    assert result["precision/h"] == pytest.approx(1 / 2) and result["recall/h"] == pytest.approx(1 / 2)
    assert result["accuracy_baseline/h"] == pytest.approx(2 / 3)
    assert result["recall/positive_threshold_0.2/h"] == pytest.approx(1.0)
    assert result["precision/positive_threshold_0.2/h"] == pytest.approx(2 / 3)
    assert result["average_loss/h"] == pytest.approx(result["loss"])
    assert result["auc/h"] == pytest.approx(1 / 2, abs=0.01)


def test_classes_with_names():
    names = ["red", "green", "blue"]
    logits = np.array([[1.0, 2.0, 0.0], [3.0, 0.0, 0.0]], np.float32)
    labels = np.array([[b"green"], [b"blue"]], object)
    result = evaluated(lambda: head.MultiClassHead(3, label_vocabulary=names), {}, logits, labels)
    log = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    assert result["loss"] == pytest.approx(-(log[0, 1] + log[1, 2]) / 2, rel=1e-6)
    assert result["accuracy"] == pytest.approx(0.5)
    predictions = value_of(
        lambda: head.MultiClassHead(3, label_vocabulary=names).predictions(
            tf.constant(logits), ["classes", "class_ids"]
        )
    )
    assert list(predictions) == ["classes", "class_ids"] and predictions["classes"].tolist() == [
        [b"green"],
        [b"red"],
    ]


def test_labels_of_several_classes_are_rows_or_a_sparse_tensor():
    logits = np.array([[1.0, -1.0], [-2.0, 3.0]], np.float32)
    rows = np.array([[1, 0], [1, 1]])
    expected = cross_entropy(rows, logits).mean()
    head_of = lambda: head.MultiLabelHead(2, label_vocabulary=["x", "y"])  # noqa: E731
    dense = value_of(lambda: head_of().loss(tf.constant(rows), tf.constant(logits), {}))
    words = tf.SparseTensorValue([[0, 0], [1, 0], [1, 1]], np.array([b"x", b"x", b"y"], object), [2, 2])
    sparse = value_of(lambda: head_of().loss(tf.SparseTensor.from_value(words), tf.constant(logits), {}))
    assert dense == pytest.approx(expected, rel=1e-6) and sparse == pytest.approx(expected, rel=1e-6)
    result = evaluated(lambda: head.MultiLabelHead(2, classes_for_class_based_metrics=[1]), {}, logits, rows)
    assert result["probability_mean/class1"] == pytest.approx(
        (1 / (1 + np.exp(-logits[:, 1]))).mean(), rel=1e-6
    )


def test_heads_for_numbers():
    labels = np.array([[1.0], [0.0], [2.0]], np.float32)
    result = evaluated(lambda: head.RegressionHead(), {}, LOGITS, labels)
    assert result["loss"] == pytest.approx(((LOGITS - labels) ** 2).mean())
    assert result["label/mean"] == pytest.approx(1.0) and result["prediction/mean"] == pytest.approx(0.5)
    poisson = value_of(
        lambda: head.PoissonRegressionHead(compute_full_loss=False).loss(
            tf.constant(labels), tf.constant(LOGITS), {}
        )
    )
    assert poisson == pytest.approx((np.exp(LOGITS) - LOGITS * labels).mean(), rel=1e-6)
    predictions = value_of(lambda: head.LogisticRegressionHead().predictions(tf.constant(LOGITS)))
    np.testing.assert_allclose(predictions["predictions"], 1 / (1 + np.exp(-LOGITS)), rtol=1e-6)
    np.testing.assert_array_equal(predictions["logits"], LOGITS)


def test_several_heads_share_the_logits_and_add_their_losses():
    logits = np.array([[0.5, 2.0, 1.0], [-1.0, 0.0, 3.0]], np.float32)
    labels = {"b": np.array([[1], [0]]), "r": np.array([[1.0, 1.0], [0.0, 2.0]], np.float32)}

    def make():
        return head.MultiHead(
            [head.BinaryClassHead(name="b"), head.RegressionHead(label_dimension=2, name="r")], [1.0, 2.0]
        )

    result = evaluated(make, {}, logits, labels)
    first = cross_entropy(labels["b"], logits[:, :1]).mean()
    second = ((logits[:, 1:] - labels["r"]) ** 2).mean()
    assert result["loss/b"] == pytest.approx(first, rel=1e-6)
    assert result["loss/r"] == pytest.approx(second, rel=1e-6)
    assert result["loss"] == pytest.approx(first + 2 * second, rel=1e-6)
    assert make().name == "b_r" and make().logits_dimension == 3


@pytest.mark.parametrize(
    ("make", "phrase"),
    [
        (lambda: head.BinaryClassHead(thresholds=[1.0]), "thresholds not in"),
        (lambda: head.BinaryClassHead(loss_reduction="none"), "Invalid loss_reduction: none"),
        (lambda: head.BinaryClassHead(loss_fn=lambda labels: 0), "loss_fn must contain argument: logits"),
        (lambda: head.MultiClassHead(2), "n_classes must be > 2: 2"),
        (lambda: head.MultiClassHead(3, label_vocabulary=["a"]), "does not have"),
        (lambda: head.MultiLabelHead(1), "n_classes must be > 1"),
        (lambda: head.MultiLabelHead(2, classes_for_class_based_metrics=[2]), r"in range \[0, 1\]"),
        (lambda: head.RegressionHead(0), "Invalid label_dimension 0"),
        (lambda: head.MultiHead([]), "Must specify heads"),
        (lambda: head.MultiHead([head.RegressionHead()]), "must have name specified"),
        (lambda: head.BinaryClassHead().loss(None, tf.constant(LOGITS)), "You must provide a labels Tensor"),
        (lambda: head.RegressionHead().loss(tf.constant(LABELS), tf.zeros([3, 2])), "logits shape must be"),
        (lambda: head.BinaryClassHead().predictions(tf.constant(LOGITS), ["x"]), "Prediction key must be in"),
        (
            lambda: head.RegressionHead().create_estimator_spec({}, "train", LOGITS, LABELS),
            "train_op_fn and optimizer cannot both be None",
        ),
    ],
)
def test_what_is_wrong_is_said(make, phrase):
    with tf.Graph().as_default(), pytest.raises(ValueError, match=phrase):
        make()


def test_labels_out_of_range_fail_when_they_come():
    with pytest.raises(tf.errors.InvalidArgumentError, match="Labels must be <= n_classes - 1"):
        labels = np.array([[0], [2], [1]])
        value_of(lambda: head.BinaryClassHead().loss(tf.placeholder_with_default(labels, [3, 1]), LOGITS, {}))


ESTIMATORS = {
    "deep": lambda h, folder: tf.estimator.DNNEstimator(h, [8], columns(), folder, batch_norm=True),
    "linear": lambda h, folder: tf.estimator.LinearEstimator(h, columns(), folder),
    "both": lambda h, folder: tf.estimator.DNNLinearCombinedEstimator(
        h, folder, linear_feature_columns=columns(), dnn_feature_columns=columns(), dnn_hidden_units=[8]
    ),
    "baseline": lambda h, folder: tf.estimator.BaselineEstimator(h, folder),
}


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_estimators_take_heads(tmp_path, kind):
    output = ESTIMATORS[kind](tf.contrib.estimator.binary_classification_head(), str(tmp_path))
    before = output.train(data(TWO), steps=1).evaluate(data(TWO, 1))["loss"]
    result = output.train(data(TWO), steps=100).evaluate(data(TWO, 1))
    assert result["global_step"] == 101 and result["loss"] < before
    assert result["loss"] == pytest.approx(result["average_loss"], rel=1e-5)
    assert sorted(next(output.predict(data(None, 1))))[-1] == "probabilities"


def test_a_head_in_a_model_of_ones_own_trains_with_a_keras_optimizer(tmp_path):
    def model_fn(features, labels, mode):
        layer = tf.keras.layers.Dense(1)
        logits = layer(tf.expand_dims(features["a"], 1))
        optimizer = tf.keras.optimizers.SGD(0.5)
        optimizer.iterations = tf.train.get_or_create_global_step()
        return tf.estimator.RegressionHead().create_estimator_spec(
            features, mode, logits, labels, optimizer=optimizer, trainable_variables=layer.trainable_variables
        )

    estimator = tf.estimator.Estimator(model_fn, str(tmp_path))
    result = estimator.train(data(2 * A), steps=300).evaluate(data(2 * A, 1))
    assert result["loss"] < 1e-3 and result["global_step"] == 300
