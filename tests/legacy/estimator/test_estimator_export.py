"""SavedModels of estimators, and how they are fed."""

import os

import numpy as np
import pytest

import tensorfleet as tf

export = tf.estimator.export


def model_fn(features, labels, mode):
    x = features["x"] if isinstance(features, dict) else features
    w = tf.get_variable("w", [2, 1], initializer=tf.ones_initializer())
    y = tf.matmul(x, w)
    outputs = {
        "serving_default": export.PredictOutput({"y": y}),
        "scores": export.ClassificationOutput(scores=y),
        "value": export.RegressionOutput(y),
    }
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, {"y": y}, export_outputs=outputs)
    loss = tf.losses.mean_squared_error(labels, y)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    metrics = {"mean": tf.metrics.mean(y)}
    return tf.estimator.EstimatorSpec(mode, {"y": y}, loss, train, eval_metric_ops=metrics)


@pytest.fixture
def trained(tmp_path, monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    result = tf.estimator.Estimator(model_fn, str(tmp_path / "m"))
    result.train(lambda: (tf.ones([2, 2]), tf.ones([2, 1])), steps=1)
    return result


def load(path, *tags):
    with tf.Session(graph=tf.Graph()) as sess:
        meta = tf.saved_model.load(sess, list(tags), path)
        yield sess, meta.signature_def


def raw():
    return export.build_raw_serving_input_receiver_fn({"x": tf.placeholder(tf.float32, [None, 2], name="x")})


def test_a_model_is_fed_tensors(trained, tmp_path):
    path = trained.export_saved_model(str(tmp_path / "out"), raw())
    assert isinstance(path, bytes) and os.path.basename(path).isdigit()
    assert os.listdir(tmp_path / "out") == [os.path.basename(path).decode()]
    for sess, signatures in load(path, "serve"):
        assert list(signatures) == ["serving_default"]  # the others want tf.Examples
        serve = signatures["serving_default"]
        result = sess.run(serve.outputs["y"].name, {serve.inputs["x"].name: [[1.0, 2.0]]})
    np.testing.assert_allclose(result, [[1.0, 2.0]] @ trained.get_variable_value("w"))


def test_a_model_is_fed_examples(trained, tmp_path):
    spec = {"x": tf.FixedLenFeature([2], tf.float32)}
    function = export.build_parsing_serving_input_receiver_fn(spec)
    path = trained.export_savedmodel(
        str(tmp_path / "out"), function, assets_extra={"a/b.txt": __file__}, as_text=True
    )
    assert os.path.exists(os.path.join(path, b"assets.extra/a/b.txt"))
    assert os.path.exists(os.path.join(path, b"saved_model.pbtxt"))
    example = tf.train.Example()
    example.features.feature["x"].float_list.value.extend([1, 2])
    for sess, signatures in load(path, "serve"):
        assert sorted(signatures) == ["scores", "serving_default", "value"]
        value = signatures["value"]
        assert value.method_name == "tensorflow/serving/regress"
        result = sess.run(
            value.outputs["outputs"].name, {value.inputs["inputs"].name: [example.SerializeToString()]}
        )
    np.testing.assert_allclose(result, [[1.0, 2.0]] @ trained.get_variable_value("w"))


def test_a_model_that_takes_one_tensor(trained, tmp_path):
    def function():
        x = tf.placeholder(tf.float32, [None, 2])
        return export.TensorServingInputReceiver(x, x, {"rows": x})

    path = trained.export_saved_model(str(tmp_path / "out"), function)
    for _, signatures in load(path, "serve"):
        assert sorted(signatures) == ["rows:serving_default", "serving_default"]
        assert list(signatures["serving_default"].inputs) == ["input"]


def test_graphs_of_all_modes_in_one_model(trained, tmp_path):
    supervised = tf.estimator.experimental.build_raw_supervised_input_receiver_fn(
        {"x": tf.placeholder(tf.float32, [None, 2], name="x")},
        tf.placeholder(tf.float32, [None, 1], name="l"),
    )
    functions = {"train": supervised, "eval": supervised, "infer": raw()}
    path = trained.experimental_export_all_saved_models(str(tmp_path / "out"), functions)
    for tag in ("train", "eval", "serve"):
        for _, signatures in load(path, tag):
            assert list(signatures) == ["serving_default" if tag == "serve" else tag]
            if tag != "serve":
                names = ["loss", "metrics/mean/update_op", "metrics/mean/value", "predictions/y"]
                assert sorted(signatures[tag].outputs) == names
    with pytest.raises(ValueError, match="No valid modes"):
        trained.experimental_export_all_saved_models(str(tmp_path), {})
    with pytest.raises(ValueError, match="input_receiver_fn must be defined"):
        trained.export_saved_model(str(tmp_path), None)


def test_a_model_with_other_variables_is_not_exported(trained, tmp_path):
    other = tf.estimator.Estimator(
        lambda features: tf.estimator.EstimatorSpec("infer", tf.get_variable("other", [2])), trained.model_dir
    )
    with pytest.raises(ValueError, match="Could not load all requested variables"):
        other.export_saved_model(str(tmp_path / "out"), raw())


def test_receivers_are_checked():
    x = tf.placeholder(tf.float32, [None])
    assert export.ServingInputReceiver(x, x).features == {"feature": x}
    for arguments, message in (
        ((None, x), "features must be defined"),
        ((x, None), "receiver_tensors must be defined"),
        (({3.0: x}, x), "keys must be strings or ints"),
        ((x, {3: x}), "keys must be strings"),
        (({"a": 1}, x), "must be a Tensor"),
        ((x, x, [x]), "must be a dict"),
    ):
        with pytest.raises(ValueError, match=message):
            export.ServingInputReceiver(*arguments)
    with pytest.raises(ValueError, match="overlapping keys: {'a'}"):
        tf.estimator.experimental.build_raw_supervised_input_receiver_fn({"a": x}, {"a": x})


def test_outputs_are_checked():
    for make, message in (
        (lambda: export.ClassificationOutput(), "At least one of scores and classes"),
        (lambda: export.ClassificationOutput(scores=tf.constant("a")), "scores must be a float32 Tensor"),
        (lambda: export.ClassificationOutput(classes=tf.constant(1)), "classes must be a string Tensor"),
        (lambda: export.RegressionOutput(tf.constant("a")), "float32 Tensor"),
        (lambda: export.PredictOutput({1: tf.constant(1)}), "key must be a string"),
        (lambda: export.PredictOutput({"a": 1}), "must be a Tensor"),
    ):
        with pytest.raises(ValueError, match=message):
            make()
