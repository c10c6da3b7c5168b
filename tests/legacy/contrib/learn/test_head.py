"""Heads of tf.contrib.learn."""

import math

import numpy as np
import pytest

import tensorfleet as tf

learn = tf.contrib.learn
TRAIN, EVAL, INFER = learn.ModeKeys.TRAIN, learn.ModeKeys.EVAL, learn.ModeKeys.INFER


def run(head, mode=EVAL, features=None, labels=None, logits=None, **more):
    """The operations of a head, and what the loss, the predictions and the metrics are after one batch."""
    result = head.create_model_fn_ops(features or {}, mode, labels, logits=logits, **more)
    with tf.Session() as session:
        session.run(
            [tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()]
        )
        metrics = {k: update for k, (_, update) in result.eval_metric_ops.items()}
        loss = None if result.loss is None else session.run(result.loss)
        return result, loss, session.run(result.predictions), session.run(metrics)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default():
        yield


def test_a_regression_head_has_the_mean_square_and_scores():
    head = learn.regression_head()
    result, loss, predictions, metrics = run(head, labels=[0.0, 1.0], logits=[[1.0], [3.0]])
    assert loss == metrics["loss"] == 2.5
    assert predictions["scores"].tolist() == [1, 3]
    assert result.output_alternatives[None][0] == learn.ProblemType.LINEAR_REGRESSION


def test_weights_count_in_the_loss_and_again_in_what_is_reported():
    head = learn.regression_head(weight_column_name="w", head_name="h")
    features = {"w": tf.constant([[1.0], [3.0]])}
    _, loss, _, metrics = run(head, features=features, labels=[0.0, 1.0], logits=[[1.0], [3.0]])
    assert loss == 6.5 and metrics == {"loss/h": 3.25}
    with pytest.raises(ValueError, match="Weights w missing from features"):
        run(head, labels=[0.0], logits=[[1.0]])


def test_a_link_function_makes_predictions_of_logits():
    _, _, predictions, _ = run(learn.regression_head(link_fn=tf.square), INFER, logits=[[3.0]])
    assert predictions["scores"].tolist() == [9]
    head = learn.poisson_regression_head(label_dimension=2)
    _, loss, predictions, _ = run(head, labels=[[1.0, 2.0]], logits=[[0.0, 1.0]])
    np.testing.assert_allclose(predictions["scores"], [[1, math.e]], rtol=1e-6)
    stirling = 2 * math.log(2) - 2 + 0.5 * math.log(4 * math.pi)
    np.testing.assert_allclose(loss, (1 + math.e - 2 + stirling) / 2, rtol=1e-5)


def test_two_classes_have_one_logit():
    head = learn.multi_class_head(2, thresholds=[0.2, 0.5])
    result, loss, predictions, metrics = run(head, labels=[0, 1], logits=[[1.0], [1.0]])
    assert head.logits_dimension == 1
    np.testing.assert_allclose(loss, (math.log(1 + math.e) + math.log(1 + 1 / math.e)) / 2, rtol=1e-5)
    assert sorted(predictions) == ["classes", "logistic", "logits", "probabilities"]
    assert predictions["classes"].tolist() == [1, 1]
    assert metrics["accuracy"] == metrics["labels/actual_label_mean"] == 0.5
    assert metrics["recall/positive_threshold_0.200000_mean"] == pytest.approx(1)
    assert metrics["precision/positive_threshold_0.500000_mean"] == pytest.approx(0.5)
    kind, exported = result.output_alternatives[None]
    assert kind == learn.ProblemType.LOGISTIC_REGRESSION
    with tf.Session() as session:
        assert session.run(exported["classes"]).tolist() == [[b"0", b"1"]] * 2


def test_several_classes_may_have_metrics_of_their_own():
    head = learn.multi_class_head(3, metric_class_ids=[2])
    _, loss, predictions, metrics = run(head, labels=[[2], [0]], logits=[[1.0, 0, 0], [1.0, 0, 0]])
    log = math.log(math.e + 2)
    np.testing.assert_allclose(loss, (log + log - 1) / 2, rtol=1e-5)
    assert predictions["classes"].tolist() == [0, 0]
    assert metrics["labels/prediction_mean/class2"] == 0
    assert metrics["labels/actual_label_mean/class2"] == 0.5
    np.testing.assert_allclose(metrics["labels/probability_mean/class2"], 1 / (math.e + 2), rtol=1e-5)
    assert metrics["labels/logits_mean/class2"] == 0


def test_classes_may_be_texts():
    head = learn.multi_class_head(3, label_keys=["a", "b", "c"])
    result, _, predictions, metrics = run(head, labels=["b"], logits=[[0.0, 1.0, 0.0]])
    assert predictions["classes"].tolist() == [b"b"] and metrics["accuracy"] == 1
    with tf.Session() as session:
        assert session.run(result.output_alternatives[None][1]["classes"]).tolist() == [[b"a", b"b", b"c"]]


def test_an_example_may_have_several_labels_or_none():
    head = learn.multi_label_head(2, metric_class_ids=[0])
    sparse = tf.SparseTensorValue(np.array([[0, 0]]), np.array([1], np.int64), np.array([2, 1]))
    _, loss, predictions, metrics = run(head, labels=sparse, logits=[[-1.0, 1.0], [-1.0, 1.0]])
    each = math.log(1 + 1 / math.e)
    np.testing.assert_allclose(loss, (3 * each + each + 1) / 4, rtol=1e-5)
    assert predictions["classes"].tolist() == [[0, 1], [0, 1]]
    assert metrics["accuracy"] == 0.75 and metrics["labels/prediction_mean/class0"] == 0
    assert {"auc", "auc_precision_recall", "auc/class0", "auc_precision_recall/class0"} <= set(metrics)


def test_a_support_vector_head_has_the_hinge_loss():
    result, loss, predictions, metrics = run(
        learn.binary_svm_head(), labels=[0, 1], logits=[[-0.5], [1.2]], features={}
    )
    assert loss == pytest.approx(0.25) and predictions["classes"].tolist() == [0, 1]
    assert metrics["accuracy"] == 1
    assert list(result.output_alternatives[None][1]) == ["logits", "classes"]


def test_a_centered_bias_is_trained_beside_the_model():
    head = learn.regression_head(enable_centered_bias=True)
    result = head.create_model_fn_ops({}, TRAIN, [2.0], lambda loss: tf.no_op(), logits=[[1.0]])
    (bias,) = tf.trainable_variables()
    assert bias.op.name == "regression_head/centered_bias_weight"
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        before = session.run(result.loss)
        for _ in range(30):
            session.run(result.train_op)
        assert session.run(result.loss) < before and session.run(bias)[0] > 0.5


def test_a_head_makes_logits_of_the_layer_below():
    head = learn.multi_class_head(3)
    result = head.create_model_fn_ops({}, INFER, logits_input=tf.zeros([2, 5]))
    assert result.predictions["logits"].shape.as_list() == [2, 3]
    names = [v.op.name for v in tf.trainable_variables()]
    assert names == ["multi_class_head/logits/weights", "multi_class_head/logits/biases"]
    assert result.loss is None and result.train_op is None and result.eval_metric_ops == {}


def test_losses_of_ones_own_are_taken():
    def mine(labels, logits, weights=1.0):
        return tf.reduce_sum(logits) * 2

    for head in (learn.multi_class_head(2, loss_fn=mine), learn.multi_label_head(2, loss_fn=mine)):
        logits = tf.ones([1, head.logits_dimension])
        assert run(head, labels=[[1] * head.logits_dimension], logits=logits)[1] == 2 * head.logits_dimension
    with pytest.raises(ValueError, match="Argument weights not found in loss_fn"):
        learn.multi_class_head(2, loss_fn=lambda labels, logits: 0)


def test_several_heads_share_a_network():
    heads = [
        learn.multi_class_head(3, label_name="a", head_name="one"),
        learn.regression_head(label_name="b", head_name="two"),
        learn.loss_only_head(lambda: [tf.constant(1.0), tf.constant(2.0)], "three"),
    ]
    head = learn.multi_head(heads, loss_weights=[1.0, 2.0, 10.0])
    labels = {"a": [0], "b": [1.0]}
    result, loss, predictions, metrics = run(head, labels=labels, logits=tf.zeros([1, 4]))
    assert head.logits_dimension == 4
    np.testing.assert_allclose(loss, math.log(3) + 2 + 30, rtol=1e-5)
    assert sorted(metrics) == ["accuracy/one", "loss/one", "loss/two"]
    assert predictions[("two", "scores")].tolist() == [0]
    given = {"one": tf.zeros([1, 3]), "two": tf.ones([1, 1])}
    result = head.create_model_fn_ops({}, INFER, logits=given)
    assert sorted(result.output_alternatives) == ["one", "two"]
    result = head.create_model_fn_ops({}, TRAIN, labels, learn.no_op_train_fn, logits=given)
    assert isinstance(result.train_op, tf.Operation) and result.predictions is None
    with pytest.raises(ValueError, match="Members of MultiHead must have names"):
        learn.multi_head([learn.regression_head()])
    with pytest.raises(ValueError, match="heads and loss_weights must have same size"):
        learn.multi_head(heads, [1.0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: learn.multi_class_head(1), "n_classes must be > 1 for classification: 1."),
        (
            lambda: learn.multi_class_head(2, metric_class_ids=[0]),
            "metric_class_ids invalid for n_classes==2",
        ),
        (lambda: learn.multi_class_head(2, label_keys=["a", "b"]), "label_keys is not supported for n_cla"),
        (lambda: learn.multi_class_head(3, label_keys=["a"]), "Length of label_keys must equal n_classes"),
        (lambda: learn.multi_class_head(3, metric_class_ids=[3]), r"Class ID 3 not in \[0, 3\)"),
        (lambda: learn.multi_label_head(1), "n_classes must be > 1 for classification"),
        (lambda: learn.regression_head(label_dimension=0), "Invalid logits_dimension 0"),
    ],
)
def test_heads_that_make_no_sense_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "Neither logits nor logits_input supplied"),
        ({"logits": [[0.0]], "logits_input": [[0.0]]}, "Both logits and logits_input supplied"),
        ({"logits": [[0.0, 1.0]]}, "Dimensions 2 and 1 are not compatible"),
        ({"logits": [[0.0]], "mode": "other"}, "mode=other unrecognized"),
        ({"logits": [[0.0]], "mode": TRAIN, "labels": [0.0]}, "train_op_fn can not be None in TRAIN mode"),
        ({"logits": [[0.0]], "labels": tf.SparseTensorValue([[0]], [1], [1])}, "SparseTensor is not supp"),
    ],
)
def test_what_a_head_cannot_use_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        learn.regression_head().create_model_fn_ops(**{"features": {}, "mode": EVAL, **given})


def test_what_a_model_function_gives_is_checked():
    loss, train = tf.constant([1.0]), tf.no_op()
    assert learn.ModelFnOps(TRAIN, None, loss, train).loss.shape == []
    assert learn.ModelFnOps(INFER, {"a": 1}).predictions["a"].dtype == tf.int32
    for given, message in (
        ((TRAIN, None, loss), "Missing train_op"),
        ((TRAIN, None, None, train), "Missing loss"),
        ((EVAL, None, loss), "Missing predictions"),
        ((TRAIN, None, tf.zeros([2]), train), "Loss must be scalar"),
        (("other", 1), "Invalid mode other"),
        ((EVAL, 1, loss, None, [1]), "eval_metric_ops must be a dict"),
    ):
        with pytest.raises(ValueError, match=message):
            learn.ModelFnOps(*given)
    with pytest.raises(TypeError, match="All hooks returned from model_fn must be SessionRunHook"):
        learn.ModelFnOps(INFER, 1, training_hooks=[3])


def test_it_becomes_a_spec_of_an_estimator():
    head = learn.multi_head([learn.regression_head(head_name="a"), learn.multi_class_head(3, head_name="b")])
    spec = head.create_model_fn_ops({}, INFER, logits=tf.zeros([1, 4])).estimator_spec("a")
    assert spec.mode == tf.estimator.ModeKeys.PREDICT
    assert isinstance(spec.export_outputs["b"], tf.estimator.export.ClassificationOutput)
    default = spec.export_outputs[tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY]
    assert isinstance(default, tf.estimator.export.RegressionOutput)
    result = learn.regression_head().create_model_fn_ops({}, EVAL, [1.0], logits=[[1.0]])
    assert result.estimator_spec().eval_metric_ops == {}
