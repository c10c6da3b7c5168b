"""Curves of rates over thresholds, and the areas under them."""

import numpy as np
import pytest

import tensorfleet as tf

M = tf.contrib.metrics
RANDOM = np.random.RandomState(0)
LABELS = RANDOM.rand(80) < 0.4
SCORES = np.round(np.clip(LABELS * 0.3 + RANDOM.rand(80) * 0.7, 0, 1), 1).astype(np.float32)  # with ties
WEIGHTS = RANDOM.randint(1, 4, 80).astype(np.float32)


@pytest.fixture
def inputs():
    return tf.placeholder(tf.bool, [None], "y"), tf.placeholder(tf.float32, [None], "p")


def streamed(session, pair):
    value, update = pair
    session.run(tf.local_variables_initializer())
    for part in (slice(0, 30), slice(30, 80)):
        last = {"y:0": LABELS[part], "p:0": SCORES[part], "w:0": WEIGHTS[part]}
        session.run(update, last)
    return session.run(value, last)


@pytest.fixture(autouse=True)
def weights():
    return tf.placeholder(tf.float32, [None], "w")


def area(weights=None):
    """The share of pairs of a true and a false one that are in the right order; equal ones count half."""
    w = np.ones(80) if weights is None else weights
    wins = (SCORES[LABELS][:, None] > SCORES[~LABELS]) + 0.5 * (SCORES[LABELS][:, None] == SCORES[~LABELS])
    pairs = w[LABELS][:, None] * w[~LABELS]
    return (wins * pairs).sum() / pairs.sum()


def test_the_exact_area_is_the_share_of_pairs_in_order(session, inputs, weights):
    np.testing.assert_allclose(streamed(session, M.streaming_dynamic_auc(*inputs)), area())
    weighted = M.streaming_dynamic_auc(*inputs, weights=weights)
    np.testing.assert_allclose(streamed(session, weighted), area(WEIGHTS))
    with pytest.raises(ValueError, match="curve must be either ROC or PR"):
        M.streaming_dynamic_auc(*inputs, curve="LOC")


def test_the_exact_area_below_precision_and_recall(session, inputs):
    points = [(0.0, 1.0)]
    for cut in np.unique(SCORES)[::-1]:
        said = cut <= SCORES
        points.append(((said & LABELS).sum() / LABELS.sum(), LABELS[said].mean()))
    x, y = np.array(points).T
    expected = ((x[1:] - x[:-1]) * (y[1:] + y[:-1]) / 2).sum()
    np.testing.assert_allclose(streamed(session, M.streaming_dynamic_auc(*inputs, curve="PR")), expected)


def test_labels_of_one_kind_have_no_area(session):
    value, update = M.streaming_dynamic_auc(tf.constant([1, 1]), tf.constant([0.1, 0.9]))
    session.run(tf.local_variables_initializer())
    session.run(update)
    assert session.run(value) == 0
    with pytest.raises(tf.errors.InvalidArgumentError, match="labels must be 0 or 1"):
        bad = M.streaming_dynamic_auc(tf.constant([2, 1]), tf.constant([0.1, 0.9]))
        session.run(tf.local_variables_initializer())
        session.run(bad[1])


@pytest.mark.parametrize("logit", [True, False])
def test_an_area_has_an_interval(session, inputs, logit):
    data = streamed(session, M.auc_with_confidence_intervals(*inputs, logit_transformation=logit))
    wins = (SCORES[LABELS][:, None] > SCORES[~LABELS]) + 0.5 * (SCORES[LABELS][:, None] == SCORES[~LABELS])
    error = np.sqrt(wins.mean(1).var(ddof=1) / LABELS.sum() + wins.mean(0).var(ddof=1) / (~LABELS).sum())
    a, z = area(), 1.959964
    if logit:
        middle, width = np.log(a / (1 - a)), z * error / (a * (1 - a))
        ends = [1 / (1 + np.exp(-(middle + s * width))) for s in (-1, 1)]
    else:
        ends = [a - z * error, a + z * error]
    np.testing.assert_allclose([data.auc, data.lower, data.upper], [a, *ends], rtol=1e-4)
    with pytest.raises(ValueError, match="alpha must be between 0 and 1"):
        M.auc_with_confidence_intervals(*inputs, alpha=1.5)


@pytest.mark.parametrize("curve", ["ROC", "PR"])
def test_points_of_a_curve(session, inputs, curve):
    points = streamed(session, M.streaming_curve_points(*inputs, num_thresholds=5, curve=curve))
    for (x, y), cut in zip(points, [-1e-7, 0.25, 0.5, 0.75, 1 + 1e-7], strict=True):
        said = cut < SCORES
        recall = (said & LABELS).sum() / LABELS.sum()
        if curve == "ROC":
            wanted = (said & ~LABELS).sum() / (~LABELS).sum(), recall
        else:
            wanted = recall, LABELS[said].mean() if said.any() else 1
        np.testing.assert_allclose((x, y), wanted, atol=1e-6)


def test_counts_at_equal_thresholds(session, inputs, weights):
    data = streamed(session, M.precision_recall_at_equal_thresholds(*inputs, weights, num_thresholds=5))
    np.testing.assert_allclose(data.thresholds, [0, 0.25, 0.5, 0.75, 1])
    said = SCORES[None] >= data.thresholds[:, None]
    tp, fp = ((said & x) @ WEIGHTS for x in (LABELS, ~LABELS))
    np.testing.assert_allclose(data.tp, tp)
    np.testing.assert_allclose(data.fp, fp)
    np.testing.assert_allclose(data.fn, tp[0] - tp)
    np.testing.assert_allclose(data.tn, fp[0] - fp)
    np.testing.assert_allclose(data.precision, tp / np.maximum(tp + fp, 1e-7), rtol=1e-5)
    np.testing.assert_allclose(data.recall, tp / tp[0], rtol=1e-5)


def test_an_area_from_histograms_is_nearly_exact(session, inputs):
    pair = M.auc_using_histogram(*inputs, score_range=[0.0, 1.0], nbins=50)
    np.testing.assert_allclose(streamed(session, pair), area(), atol=0.01)


def test_recall_at_the_first_precision_that_is_enough(session, inputs):
    strict = streamed(session, M.recall_at_precision(*inputs, 0.7, strict_mode=True))
    precisions = {}
    for cut in np.linspace(0, 1, 200)[1:-1]:
        said = cut < SCORES
        if said.any() and LABELS[said].mean() >= 0.7:
            precisions.setdefault(LABELS[said].mean(), (said & LABELS).sum() / LABELS.sum())
    np.testing.assert_allclose(strict, precisions[min(precisions)], rtol=1e-5)
    assert streamed(session, M.recall_at_precision(*inputs, 1.0, strict_mode=True, name="all")) <= 1


def test_labels_among_the_best_predictions(session):
    predictions = np.array([[0.1, 0.5, 0.4], [0.6, 0.3, 0.1], [0.2, 0.3, 0.5]], np.float32)
    value, update = M.streaming_recall_at_k(predictions, np.array([2, 2, 2]), 2)
    best = np.argsort(-predictions)[:, :2]
    precise, change = M.streaming_sparse_average_precision_at_top_k(best, np.array([[2], [2], [2]], np.int64))
    session.run(tf.local_variables_initializer())
    session.run([update, change])
    np.testing.assert_allclose(session.run([value, precise]), [2 / 3, (0.5 + 0 + 1) / 3], rtol=1e-6)
