"""Metrics over several batches, computed again by numpy."""

import numpy as np
import pytest

import tensorfleet as tf

RANDOM = np.random.RandomState(0)
TRUTH = RANDOM.randint(0, 2, 40).astype(bool)
SCORES = (RANDOM.rand(40) * 0.6 + TRUTH * 0.4).astype(np.float32)
GUESS = SCORES > 0.5


def over_batches(make, *arrays, size=8):
    """The value after the last batch; the update must give it too."""
    inputs = [tf.placeholder(a.dtype, [None, *a.shape[1:]]) for a in arrays]
    value, update = make(*inputs)
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        for start in range(0, len(arrays[0]), size):
            feed = {t: a[start : start + size] for t, a in zip(inputs, arrays, strict=True)}
            last = session.run(update, feed)
        result = session.run(value)
    if np.shape(last) == np.shape(result):
        np.testing.assert_allclose(last, result)
    return result


M = tf.metrics
HITS, MISSES = (TRUTH & GUESS).sum(), (TRUTH & ~GUESS).sum()
ALARMS, REST = (~TRUTH & GUESS).sum(), (~TRUTH & ~GUESS).sum()


@pytest.mark.parametrize(
    ("metric", "wanted"),
    [
        (M.accuracy, (TRUTH == GUESS).mean()),
        (M.precision, HITS / (HITS + ALARMS)),
        (M.recall, HITS / (HITS + MISSES)),
        (M.true_positives, HITS),
        (M.false_negatives, MISSES),
        (M.false_positives, ALARMS),
        (M.true_negatives, REST),
    ],
)
def test_counts_of_right_and_wrong(metric, wanted):
    assert over_batches(metric, TRUTH, GUESS) == pytest.approx(wanted)


def test_errors_of_numbers():
    a, b = SCORES, SCORES[::-1].copy()
    assert over_batches(M.mean_absolute_error, a, b) == pytest.approx(np.abs(a - b).mean())
    assert over_batches(M.mean_squared_error, a, b) == pytest.approx(((a - b) ** 2).mean())
    assert over_batches(M.root_mean_squared_error, a, b) == pytest.approx(np.sqrt(((a - b) ** 2).mean()))


def test_a_weighted_mean():
    weights = RANDOM.rand(40).astype(np.float32)
    assert over_batches(M.mean, SCORES, weights) == pytest.approx(np.average(SCORES, weights=weights))


def test_the_value_changes_only_with_the_update(session):
    x = tf.placeholder(tf.float32, [None])
    value, update = M.mean(x)
    session.run(tf.local_variables_initializer())
    assert session.run(value) == 0
    assert session.run(update, {x: [1, 3]}) == 2
    assert session.run(value) == 2
    assert session.run(update, {x: [5]}) == 3
    session.run(tf.variables_initializer(tf.get_collection(tf.GraphKeys.METRIC_VARIABLES)))
    assert session.run(value) == 0


def test_variables_are_local_and_results_are_collected():
    value, update = M.mean(
        tf.constant([1.0]), metrics_collections=["a", "b"], updates_collections="c", name="m"
    )
    assert (value.name, update.name) == ("m/value:0", "m/update_op:0")
    assert [v.name for v in tf.local_variables()] == ["m/total:0", "m/count:0"]
    assert tf.local_variables() == tf.get_collection(tf.GraphKeys.METRIC_VARIABLES)
    assert tf.global_variables() == []
    assert tf.get_collection("a") == tf.get_collection("b") == [value] and tf.get_collection("c") == [update]


def test_two_metrics_have_variables_of_their_own():
    M.accuracy([1], [1])
    M.accuracy([1], [1])
    names = [v.name for v in tf.local_variables()]
    assert names == ["accuracy/total:0", "accuracy/count:0", "accuracy_1/total:0", "accuracy_1/count:0"]


def test_the_area_under_a_curve_of_ranks():
    positive, negative = SCORES[TRUTH], SCORES[~TRUTH]
    wanted = (positive[:, None] > negative[None]).mean()
    result = over_batches(lambda y, p: M.auc(y, p, num_thresholds=2000), TRUTH, SCORES)
    assert result == pytest.approx(wanted, abs=2e-3)
    with pytest.raises(ValueError, match="curve must be either ROC or PR"):
        M.auc([True], [0.5], curve="XYZ")
    with pytest.raises(ValueError, match="Invalid summation_method"):
        M.auc([True], [0.5], summation_method="guess")


def test_probabilities_must_be_probabilities(session):
    scores = tf.placeholder(tf.float32, [2])
    _, update = M.auc([True, False], scores)
    session.run(tf.local_variables_initializer())
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"predictions must be in \[0, 1\]"):
        session.run(update, {scores: [0.5, 1.5]})


def test_intersection_over_union_and_accuracy_of_classes():
    labels, guesses = np.array([0, 0, 1, 1, 2, 2, 2, 1]), np.array([0, 1, 1, 1, 2, 0, 2, 1])
    iou = over_batches(lambda y, p: M.mean_iou(y, p, 4), labels, guesses, size=4)
    assert iou == pytest.approx(np.mean([1 / 3, 3 / 4, 2 / 3]))  # class 3 never occurs
    each = over_batches(lambda y, p: M.mean_per_class_accuracy(y, p, 3), labels, guesses, size=4)
    assert each == pytest.approx(np.mean([1 / 2, 1, 2 / 3]))


def test_the_best_k():
    labels = np.array([[0, 1], [2, 2]], np.int64)
    scores = np.array([[0.9, 0.1, 0.5, 0.4], [0.2, 0.3, 0.9, 0.8]], np.float32)
    recall = over_batches(lambda y, p: M.recall_at_k(y, p, 2), labels, scores)
    precision = over_batches(lambda y, p: M.precision_at_k(y, p, 2), labels, scores)
    average = over_batches(lambda y, p: M.average_precision_at_k(y, p, 2), labels, scores)
    assert recall == pytest.approx(2 / 3)  # the second item's label counts once
    assert precision == pytest.approx(2 / 4)
    assert average == pytest.approx((1 / 2 + 1 / 2) / 2)


def test_a_share_below_a_threshold():
    assert over_batches(lambda x: M.percentage_below(x, 0.5), SCORES) == pytest.approx((SCORES < 0.5).mean())


def test_sensitivity_must_be_a_share():
    with pytest.raises(ValueError, match="`specificity` must be in the range"):
        M.sensitivity_at_specificity([True], [0.5], 1.5)
    with pytest.raises(ValueError, match="`sensitivity` must be in the range"):
        M.specificity_at_sensitivity([True], [0.5], -0.5)


@pytest.mark.parametrize(
    ("measure", "class_id", "expected"),
    [
        (tf.metrics.precision_at_k, None, 2 / 4),
        (tf.metrics.precision_at_k, 1, 1.0),
        (tf.metrics.recall_at_k, None, 2 / 4),
        (tf.metrics.recall_at_k, 0, 0.0),
        (tf.metrics.average_precision_at_k, None, (1 / 2 / 2 + 1) / 2),
    ],
)
def test_labels_of_the_best_k_may_be_sparse(measure, class_id, expected, session):
    predictions = tf.constant([[0.1, 0.3, 0.6], [0.2, 0.5, 0.3]])
    sparse = tf.SparseTensorValue(
        [[0, 0], [0, 1], [0, 2], [1, 0]], np.array([0, 1, 7] + [1], np.int64), [2, 3]
    )
    options = {} if class_id is None else {"class_id": class_id}
    if measure is tf.metrics.average_precision_at_k:
        sparse = tf.SparseTensorValue([[0, 0], [0, 1], [1, 0]], np.array([0, 1, 1], np.int64), [2, 2])
    value, update = measure(sparse, predictions, 2, **options)
    session.run(tf.local_variables_initializer())
    assert session.run(update) == pytest.approx(expected)
    assert session.run(value) == pytest.approx(expected)
