"""Ready-made models: names of variables, metrics and predictions are TensorFlow's, and they learn."""

import json

import numpy as np
import pytest

import tensorfleet as tf

column = tf.feature_column
N = 64
RANDOM = np.random.RandomState(0)
X = {
    "a": RANDOM.rand(N).astype(np.float32),
    "kind": np.array([b"x", b"y", b"z", b"x"] * (N // 4)),
}
TWO = (X["a"] > 0.5).astype(np.int64)
THREE = np.array([0, 1, 2, 0] * (N // 4))
NUMBER = (2 * X["a"] + 1).astype(np.float32)


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    yield
    tf.summary.FileWriterCache.clear()


def data(y, epochs=None, x=X):
    return tf.estimator.inputs.numpy_input_fn(x, y, batch_size=16, num_epochs=epochs, shuffle=False)


def kind():
    return column.categorical_column_with_vocabulary_list("kind", ["x", "y", "z"])


def dense():
    return [column.numeric_column("a"), column.embedding_column(kind(), 2)]


BINARY = [
    "accuracy",
    "accuracy_baseline",
    "auc",
    "auc_precision_recall",
    "average_loss",
    "global_step",
    "label/mean",
    "loss",
    "precision",
    "prediction/mean",
    "recall",
]
CLASSES = ["all_class_ids", "all_classes", "class_ids", "classes"]
CONFIG = {"config": tf.estimator.RunConfig(tf_random_seed=2)}


def test_a_deep_classifier_of_two_classes(tmp_path):
    classifier = tf.estimator.DNNClassifier([8], dense(), str(tmp_path), **CONFIG)
    result = classifier.train(data(TWO), steps=200).evaluate(data(TWO, 1))
    assert sorted(result) == BINARY
    assert result["accuracy"] > 0.9 and result["auc"] > 0.95
    assert result["accuracy_baseline"] == pytest.approx(max(TWO.mean(), 1 - TWO.mean()))
    assert result["loss"] == pytest.approx(16 * result["average_loss"], rel=1e-5)
    names = [n for n in classifier.get_variable_names() if "Adagrad" not in n]
    assert names == [
        "dnn/hiddenlayer_0/bias",
        "dnn/hiddenlayer_0/kernel",
        "dnn/input_from_feature_columns/input_layer/kind_embedding/embedding_weights",
        "dnn/logits/bias",
        "dnn/logits/kernel",
        "global_step",
    ]
    assert "dnn/logits/kernel/Adagrad" in classifier.get_variable_names()
    row = next(classifier.predict(data(None, 1)))
    assert sorted(row) == sorted(["logits", "logistic", "probabilities", *CLASSES])
    assert row["classes"][0] == str(row["class_ids"][0]).encode()
    np.testing.assert_allclose(row["probabilities"], [1 - row["logistic"][0], row["logistic"][0]], rtol=1e-5)
    assert list(row["all_class_ids"]) == [0, 1] and list(row["all_classes"]) == [b"0", b"1"]


def test_sizes_of_layers_may_be_given_as_what_can_be_gone_through_once(tmp_path):
    classifier = tf.estimator.DNNClassifier(map(int, ["8", "4"]), dense(), str(tmp_path), **CONFIG)
    classifier.train(data(TWO), steps=1).evaluate(data(TWO, 1))
    assert classifier.get_variable_value("dnn/logits/kernel").shape == (4, 1)


def test_a_linear_classifier_of_three_named_classes(tmp_path):
    names = ["red", "green", "blue"]
    labels = np.array([names[i].encode() for i in THREE])
    classifier = tf.estimator.LinearClassifier([kind()], str(tmp_path), 3, label_vocabulary=names)
    result = classifier.train(data(labels), steps=100).evaluate(data(labels, 1))
    assert sorted(result) == ["accuracy", "average_loss", "global_step", "loss"]
    assert result["accuracy"] == 1.0
    assert [n for n in classifier.get_variable_names() if "Ftrl" not in n] == [
        "global_step",
        "linear/linear_model/bias_weights",
        "linear/linear_model/kind/weights",
    ]
    rows = list(classifier.predict(data(None, 1)))
    assert [row["classes"][0] for row in rows] == list(labels)
    assert sorted(rows[0]) == sorted(["logits", "probabilities", *CLASSES])


@pytest.mark.parametrize(
    "make",
    [
        lambda folder: tf.estimator.LinearRegressor([column.numeric_column("a")], folder),
        lambda folder: tf.estimator.DNNRegressor([8], [column.numeric_column("a")], folder, **CONFIG),
        lambda folder: tf.estimator.DNNLinearCombinedRegressor(
            folder,
            [kind()],
            dnn_feature_columns=dense(),
            dnn_hidden_units=[8],
            dnn_optimizer=lambda: tf.train.AdamOptimizer(0.01),
            **CONFIG,
        ),
    ],
    ids=["linear", "deep", "both"],
)
def test_regressors_learn_numbers(tmp_path, make):
    output = make(str(tmp_path))
    result = output.train(data(NUMBER), steps=300).evaluate(data(NUMBER, 1))
    assert sorted(result) == ["average_loss", "global_step", "label/mean", "loss", "prediction/mean"]
    assert result["global_step"] == 300
    assert result["average_loss"] < 0.05
    assert result["label/mean"] == pytest.approx(NUMBER.mean(), rel=1e-5)
    row = next(output.predict(data(None, 1)))
    assert list(row) == ["predictions"] and row["predictions"].shape == (1,)


def test_wide_and_deep_trains_each_part_with_its_own_optimizer(tmp_path):
    classifier = tf.estimator.DNNLinearCombinedClassifier(
        str(tmp_path),
        linear_feature_columns=[kind()],
        dnn_feature_columns=dense(),
        dnn_hidden_units=[4, 4],
        dnn_dropout=0.1,
        batch_norm=True,
        **CONFIG,
    )
    assert classifier.train(data(TWO), steps=20).evaluate(data(TWO, 1))["global_step"] == 20
    names = classifier.get_variable_names()
    assert "linear/linear_model/kind/weights/Ftrl" in names
    assert "dnn/hiddenlayer_1/kernel/Adagrad" in names
    assert "dnn/hiddenlayer_0/batchnorm_0/moving_mean" in names
    moved = classifier.get_variable_value("dnn/hiddenlayer_0/batchnorm_0/moving_mean")
    assert np.abs(moved).max() > 0
    with pytest.raises(ValueError, match="Either linear_feature_columns or dnn_feature_columns"):
        tf.estimator.DNNLinearCombinedRegressor()
    with pytest.raises(ValueError, match="dnn_hidden_units must be defined"):
        tf.estimator.DNNLinearCombinedRegressor(dnn_feature_columns=dense())


def test_baselines_learn_the_labels_alone(tmp_path):
    regressor = tf.estimator.BaselineClassifier(str(tmp_path / "c"), n_classes=3)
    regressor.train(data(THREE), steps=300)
    row = next(regressor.predict(data(None, 1)))
    np.testing.assert_allclose(row["probabilities"], [0.5, 0.25, 0.25], atol=0.02)
    assert regressor.get_variable_value("baseline/bias").shape == (3,)
    regressor = tf.estimator.BaselineRegressor(str(tmp_path / "r"))
    regressor.train(data(NUMBER), steps=300)
    assert next(regressor.predict(data(None, 1)))["predictions"][0] == pytest.approx(NUMBER.mean(), abs=0.1)


def test_the_first_step_of_a_linear_regressor_is_gradient_descent(tmp_path):
    x = {"a": np.array([1.0, 2.0], np.float32), "w": np.array([1.0, 3.0], np.float32)}
    y = np.array([3.0, 5.0], np.float32)
    regressor = tf.estimator.LinearRegressor(
        [column.numeric_column("a")],
        str(tmp_path),
        weight_column="w",
        optimizer=tf.train.GradientDescentOptimizer(0.1),
    )
    regressor.train(data(y, x=x), steps=1)
    # The loss is the weighted sum of squares, whose batch holds each example eight times.
    gradient = 8 * sum(w * -2 * t * a for a, w, t in zip(x["a"], x["w"], y, strict=True))
    np.testing.assert_allclose(
        regressor.get_variable_value("linear/linear_model/a/weights"), [[-0.1 * gradient]], rtol=1e-5
    )
    result = regressor.evaluate(data(y, 1, x=x))
    assert result["label/mean"] == pytest.approx((1 * 3 + 3 * 5) / 4)


def test_a_classifier_is_exported_for_servers(tmp_path):
    output = tf.estimator.LinearClassifier(dense()[:1], str(tmp_path / "m")).train(data(TWO), steps=1)
    spec = column.make_parse_example_spec(dense()[:1])
    function = tf.estimator.export.build_parsing_serving_input_receiver_fn(spec)
    path = output.export_saved_model(str(tmp_path / "out"), function)
    example = tf.train.Example()
    example.features.feature["a"].float_list.value.append(1)
    with tf.Session(graph=tf.Graph()) as sess:
        signatures = tf.saved_model.load(sess, ["serve"], path).signature_def
        assert sorted(signatures) == ["classification", "predict", "regression", "serving_default"]
        result = signatures["serving_default"]
        names = {key: result.outputs[key].name for key in ("classes", "scores")}
        outcome = sess.run(names, {result.inputs["inputs"].name: [example.SerializeToString()]})
    assert outcome["classes"].tolist() == [[b"0", b"1"]] and outcome["scores"].shape == (1, 2)


def test_labels_are_checked(tmp_path):
    classifier = tf.estimator.DNNClassifier([2], dense(), str(tmp_path), 3)
    for labels, message in (
        (None, "must provide a labels Tensor"),
        (np.zeros([N, 2], np.int64), "Mismatched label shape"),
        (np.zeros(N, np.float32), "Labels dtype should be integer"),
    ):
        with pytest.raises(ValueError, match=message):
            classifier.train(data(labels), steps=1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Labels must be <= 2"):
        classifier.train(data(np.full(N, 3)), steps=1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tf.estimator.DNNClassifier([2], dense(), n_classes=1), "n_classes must be > 1"),
        (
            lambda: tf.estimator.DNNClassifier([2], dense(), label_vocabulary=["a"]),
            'does not have "n_classes"',
        ),
        (lambda: tf.estimator.LinearRegressor(dense(), label_dimension=0), "Invalid label_dimension"),
        (lambda: tf.estimator.LinearRegressor(dense(), loss_reduction="none"), "Invalid loss_reduction"),
    ],
)
def test_arguments_are_checked(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_optimizers_are_named_made_or_given(tmp_path):
    for wrong, message in (("Fast", "Unsupported optimizer name: Fast"), (3, "not an Optimizer instance")):
        regressor = tf.estimator.LinearRegressor([column.numeric_column("a")], str(tmp_path), optimizer=wrong)
        with pytest.raises(ValueError, match=message):
            regressor.train(data(NUMBER), steps=1)


def test_what_examples_must_hold():
    numeric = [column.numeric_column("a")]
    spec = tf.estimator.classifier_parse_example_spec(numeric, "y", weight_column="w")
    assert sorted(spec) == ["a", "w", "y"] and spec["y"].dtype == tf.int64 and spec["y"].shape == (1,)
    spec = tf.estimator.regressor_parse_example_spec(numeric, "y", label_dimension=3)
    assert spec["y"].dtype == tf.float32 and spec["y"].shape == (3,)
    with pytest.raises(ValueError, match="label should not be used as feature"):
        tf.estimator.regressor_parse_example_spec(numeric, "a")


def test_further_metrics(tmp_path):
    def spread(labels, predictions, features):
        assert sorted(features) == ["a", "kind"]
        return {"spread": tf.metrics.mean(tf.abs(predictions["predictions"] - tf.expand_dims(labels, -1)))}

    regressor = tf.estimator.BaselineRegressor(str(tmp_path))
    more = tf.estimator.add_metrics(regressor, spread)
    result = more.train(data(NUMBER), steps=1).evaluate(data(NUMBER, 1))
    assert sorted(set(result) - set(regressor.evaluate(data(NUMBER, 1)))) == ["spread"]
    with pytest.raises(ValueError, match="not expected args: .*colour"):
        tf.estimator.add_metrics(regressor, lambda colour: {})


def test_large_variables_are_spread_over_parameter_servers(tmp_path, monkeypatch):
    cluster = {"chief": ["a:1"], "ps": ["b:1", "c:1"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "chief", "index": 0}}))
    classifier = tf.estimator.DNNClassifier([600], [column.numeric_column("a", shape=[300])], str(tmp_path))
    with tf.Graph().as_default(), tf.device(classifier._device_fn):
        tf.train.create_global_step()
        classifier.model_fn({"a": tf.ones([2, 300])}, tf.constant([0, 1]), "train", classifier.config)
        by_name = {v.name: v.device for v in tf.trainable_variables()}
    assert list(by_name) == [
        "dnn/hiddenlayer_0/kernel/part_0:0",
        "dnn/hiddenlayer_0/kernel/part_1:0",
        "dnn/hiddenlayer_0/bias/part_0:0",
        "dnn/logits/kernel/part_0:0",
        "dnn/logits/bias/part_0:0",
    ]
    assert set(by_name.values()) == {"/job:ps/task:0", "/job:ps/task:1"}


def test_networks_without_an_end():
    experimental = tf.estimator.experimental
    deep = experimental.dnn_logit_fn_builder(3, [4], dense()[:1], tf.nn.relu, 0.5, None, False)
    linear = experimental.linear_logit_fn_builder(2, [kind()])
    with tf.Graph().as_default():
        features = {"a": tf.ones([5, 1]), "kind": tf.constant([["x"]] * 5)}
        scores = experimental.call_logit_fn(deep, features, tf.estimator.ModeKeys.TRAIN, None, None)
        assert scores.shape.as_list() == [5, 3]
        assert experimental.call_logit_fn(linear, features, "train", None, None).shape.as_list()[1] == 2
        names = [v.op.name for v in tf.trainable_variables()]
        assert "hiddenlayer_0/kernel" in names and "linear_model/kind/weights" in names
    with pytest.raises(ValueError, match="units must be an int"):
        experimental.linear_logit_fn_builder(1.5, [kind()])
    with pytest.raises(ValueError, match="should return a Tensor"):
        experimental.call_logit_fn(lambda features: 3, {}, "train", None, None)
