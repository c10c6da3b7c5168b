"""Losses and metrics against TensorFlow's: values, gradients, names of results and variables, collections."""

import numpy as np
import pytest

import tensorfleet

RANDOM = np.random.RandomState(0)
LABELS = RANDOM.randint(0, 2, (4, 3)).astype(np.float32)
LOGITS = RANDOM.randn(4, 3).astype(np.float32)
GUESSES = RANDOM.rand(4, 3).astype(np.float32)
CLASSES = np.array([0, 2, 1, 2], np.int32)
WEIGHTS = {
    "one": 1.0,
    "scalar": 0.3,
    "zero": 0.0,
    "rows": np.array([[0.5], [0.0], [2.0], [1.0]], np.float32),
    "all": np.abs(LOGITS).round(1) * (LABELS > 0),
}
LOSSES = {
    "absolute_difference": lambda tf, p, **o: tf.losses.absolute_difference(LABELS, p, **o),
    "cosine_distance": lambda tf, p, **o: tf.losses.cosine_distance(LABELS, p, axis=1, **o),
    "hinge_loss": lambda tf, p, **o: tf.losses.hinge_loss(LABELS, p, **o),
    "huber_loss": lambda tf, p, **o: tf.losses.huber_loss(LABELS, p, delta=0.7, **o),
    "log_loss": lambda tf, p, **o: tf.losses.log_loss(LABELS, tf.sigmoid(p), **o),
    "mean_squared_error": lambda tf, p, **o: tf.losses.mean_squared_error(LABELS, p, **o),
    "sigmoid": lambda tf, p, **o: tf.losses.sigmoid_cross_entropy(LABELS, p, label_smoothing=0.1, **o),
    "softmax": lambda tf, p, **o: tf.losses.softmax_cross_entropy(LABELS, p, label_smoothing=0.2, **o),
    "sparse": lambda tf, p, **o: tf.losses.sparse_softmax_cross_entropy(CLASSES, p, **o),
    "sparse column": lambda tf, p, **o: tf.losses.sparse_softmax_cross_entropy(CLASSES[:, None], p, **o),
}
ONE_PER_ROW = {"cosine_distance", "softmax", "sparse", "sparse column"}
REDUCTIONS = ["none", "weighted_sum", "weighted_mean", "weighted_sum_over_batch_size"]
REDUCTIONS += ["weighted_sum_by_nonzero_weights"]


def _loss(tf, make, shape):
    with tf.Graph().as_default():
        p = tf.placeholder(tf.float32, shape)
        loss = make(tf, p)
        gradient = tf.gradients(loss, p)[0]
        described = (loss.name, loss.shape.as_list(), [t.name for t in tf.losses.get_losses()])
        with tf.Session() as session:
            return described, session.run([loss, gradient], {p: LOGITS})


def _same_loss(tensorflow, make, shape):
    (named, ours), (their_names, others) = _loss(tensorfleet, make, shape), _loss(tensorflow, make, shape)
    assert named == their_names
    for a, b in zip(ours, others, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("name", LOSSES)
def test_weighted_losses_and_gradients_equal(tensorflow, name, weights, reduction):
    given = WEIGHTS[weights]
    if name in ONE_PER_ROW:
        if weights == "all":
            pytest.skip("one loss per row")
        if weights == "rows" and name == "softmax":
            given = given[:, 0]
    make = lambda tf, p: LOSSES[name](tf, p, weights=given, reduction=reduction)  # noqa: E731
    _same_loss(tensorflow, make, [4, 3])


@pytest.mark.parametrize("weights", ["one", "zero", "rows", "all"])
def test_mean_pairwise_squared_error_equals(tensorflow, weights):
    make = lambda tf, p: tf.losses.mean_pairwise_squared_error(LABELS, p, WEIGHTS[weights])  # noqa: E731
    _same_loss(tensorflow, make, [4, 3])


def test_losses_of_batches_of_unknown_size_equal(tensorflow):
    def make(tf, p):
        y = tf.placeholder_with_default(LABELS, [None, 3])
        w = tf.placeholder_with_default(WEIGHTS["rows"], [None, 1])
        return tf.losses.mean_squared_error(y, p, w, scope="mine")

    _same_loss(tensorflow, make, [None, 3])


def test_the_total_loss_equals(tensorflow):
    def make(tf, p):
        tf.losses.mean_squared_error(LABELS, p)
        tf.losses.huber_loss(LABELS, p)
        tf.get_variable("w", [2], initializer=tf.ones_initializer(), regularizer=tf.nn.l2_loss)
        return tf.losses.get_total_loss(add_regularization_losses=False)

    _same_loss(tensorflow, make, [4, 3])


# -- metrics -------------------------------------------------------------------------------------------

BATCHES = [
    (
        RANDOM.randint(0, 3, (6,)).astype(np.int64),
        RANDOM.randint(0, 3, (6,)).astype(np.int64),
        RANDOM.rand(6, 4).astype(np.float32),
        RANDOM.rand(6).astype(np.float32).round(1),
    )
    for _ in range(3)
]
METRICS = {
    "accuracy": lambda m, y, p, s, w: m.accuracy(y, p, w),
    "mean": lambda m, y, p, s, w: m.mean(s[:, 0], w),
    "mean_absolute_error": lambda m, y, p, s, w: m.mean_absolute_error(y, p, w),
    "mean_squared_error": lambda m, y, p, s, w: m.mean_squared_error(s[:, 1], s[:, 0], w),
    "root_mean_squared_error": lambda m, y, p, s, w: m.root_mean_squared_error(s[:, 1], s[:, 0], w),
    "mean_relative_error": lambda m, y, p, s, w: m.mean_relative_error(s[:, 1], s[:, 0], s[:, 2] - 0.5, w),
    "mean_cosine_distance": lambda m, y, p, s, w: m.mean_cosine_distance(
        s, s[:, ::-1], 1, None if w is None else w[:, None]
    ),
    "mean_tensor": lambda m, y, p, s, w: m.mean_tensor(s[:, 0], w),
    "percentage_below": lambda m, y, p, s, w: m.percentage_below(s[:, 0], 0.4, w),
    "precision": lambda m, y, p, s, w: m.precision(y, p, w),
    "recall": lambda m, y, p, s, w: m.recall(y, p, w),
    "true_positives": lambda m, y, p, s, w: m.true_positives(y, p, w),
    "true_negatives": lambda m, y, p, s, w: m.true_negatives(y, p, w),
    "false_positives": lambda m, y, p, s, w: m.false_positives(y, p, w),
    "false_negatives": lambda m, y, p, s, w: m.false_negatives(y, p, w),
    "true_positives_at": lambda m, y, p, s, w: m.true_positives_at_thresholds(y, s[:, 0], [0.2, 0.6], w),
    "true_negatives_at": lambda m, y, p, s, w: m.true_negatives_at_thresholds(y, s[:, 0], [0.2, 0.6], w),
    "false_positives_at": lambda m, y, p, s, w: m.false_positives_at_thresholds(y, s[:, 0], [0.2, 0.6], w),
    "false_negatives_at": lambda m, y, p, s, w: m.false_negatives_at_thresholds(y, s[:, 0], [0.2, 0.6], w),
    "precision_at": lambda m, y, p, s, w: m.precision_at_thresholds(y, s[:, 0], [0.2, 0.6], w),
    "recall_at": lambda m, y, p, s, w: m.recall_at_thresholds(y, s[:, 0], [0.2, 0.6], w),
    "auc": lambda m, y, p, s, w: m.auc(y, s[:, 0], w),
    "auc_pr": lambda m, y, p, s, w: m.auc(y, s[:, 0], w, curve="PR", num_thresholds=20),
    "auc_careful": lambda m, y, p, s, w: m.auc(
        y, s[:, 0], w, curve="PR", num_thresholds=20, summation_method="careful_interpolation"
    ),
    "auc_minoring": lambda m, y, p, s, w: m.auc(y, s[:, 0], w, summation_method="minoring"),
    "auc_majoring": lambda m, y, p, s, w: m.auc(
        y, s[:, 0], w, summation_method="majoring", thresholds=[0.2, 0.5]
    ),
    "sensitivity_at": lambda m, y, p, s, w: m.sensitivity_at_specificity(y, s[:, 0], 0.5, w),
    "specificity_at": lambda m, y, p, s, w: m.specificity_at_sensitivity(y, s[:, 0], 0.5, w),
    "mean_iou": lambda m, y, p, s, w: m.mean_iou(y, p, 3, w),
    "mean_per_class_accuracy": lambda m, y, p, s, w: m.mean_per_class_accuracy(y, p, 3, w),
    "recall_at_k": lambda m, y, p, s, w: m.recall_at_k(y[:, None], s, 2, weights=w),
    "recall_at_k_of_class": lambda m, y, p, s, w: m.recall_at_k(y[:, None], s, 2, class_id=1, weights=w),
    "precision_at_k": lambda m, y, p, s, w: m.precision_at_k(y[:, None], s, 2, weights=w),
    "precision_at_k_of_class": lambda m, y, p, s, w: m.precision_at_k(
        y[:, None], s, 2, class_id=1, weights=w
    ),
    "average_precision_at_k": lambda m, y, p, s, w: m.average_precision_at_k(y[:, None], s, 3, weights=w),
}


def _measure(tf, make, weighted, size):
    """What `value_op` and `update_op` give: at the start, at each batch, at the end."""
    with tf.Graph().as_default() as graph:
        y, p = tf.placeholder(tf.int64, [size]), tf.placeholder(tf.int64, [size])
        s, w = tf.placeholder(tf.float32, [size, 4]), tf.placeholder(tf.float32, [size])
        value, update = make(tf.metrics, y, p, s, w if weighted else None)
        described = (value.name, update.name, value.dtype.name, value.shape.as_list())
        # TensorFlow 2 numbers a name that 1.15 leaves alone
        names = [
            [v.name.replace("max_1", "max") for v in graph.get_collection(k)]
            for k in ("local_variables", "metric_variables")
        ]
        described += (names, [v.dtype.name for v in tf.local_variables()], tf.global_variables())
        seen = []
        with tf.Session() as session:
            session.run(tf.local_variables_initializer())
            seen.append(session.run(value))
            for batch in BATCHES:
                seen.append(session.run(update, dict(zip((y, p, s, w), batch, strict=True))))
                seen.append(session.run(value))
    return described, seen


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("size", [6, None])
@pytest.mark.parametrize("name", METRICS)
def test_metrics_over_batches_equal(tensorflow, name, weighted, size):
    if name == "mean_tensor" and size is None:
        pytest.skip("needs a known shape")
    described, ours = _measure(tensorfleet, METRICS[name], weighted, size)
    their_description, others = _measure(tensorflow, METRICS[name], weighted, size)
    assert described == their_description
    for a, b in zip(ours, others, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
