"""Metrics of tf.contrib.metrics that are not those of tf.metrics."""

import numpy as np
import pytest

import tensorfleet as tf

metrics = tf.contrib.metrics


def after(make, *batches):
    """The value and the last update after some batches of arguments."""
    places = [tf.placeholder(tf.float32, [None]) for _ in batches[0]]
    value, update = make(*places)
    with tf.Session() as sess:
        sess.run(tf.local_variables_initializer())
        for batch in batches:
            last = sess.run(update, dict(zip(places, batch, strict=True)))
        return sess.run(value), last


def drawn(count):
    random = np.random.RandomState(5)
    x = random.normal(3.0, 2.0, count).astype(np.float32)
    return x, (0.5 * x + random.normal(size=count)).astype(np.float32)


def test_covariance_is_that_of_all_batches():
    x, y = drawn(10)
    value, update = after(metrics.streaming_covariance, (x[:3], y[:3]), (x[3:], y[3:]))
    assert value == update
    np.testing.assert_allclose(value, np.cov(x, y)[0, 1], rtol=1e-4)
    assert np.isnan(after(metrics.streaming_covariance, (x[:1], y[:1]))[0])


def test_covariance_counts_by_weights():
    x, y = drawn(6)
    weights = np.array([1, 3, 2, 0, 1, 2], np.float32)
    value, _ = after(metrics.streaming_covariance, (x[:3], y[:3], weights[:3]), (x[3:], y[3:], weights[3:]))
    repeated = np.repeat(np.stack([x, y]), weights.astype(int), axis=1)
    np.testing.assert_allclose(value, np.cov(repeated)[0, 1], rtol=1e-4)


def test_correlation_is_that_of_all_batches():
    x, y = drawn(12)
    value, update = after(metrics.streaming_pearson_correlation, (x[:5], y[:5]), (x[5:], y[5:]))
    np.testing.assert_allclose([value, update], np.corrcoef(x, y)[0, 1], rtol=1e-4)


def test_rates_of_wrong_predictions():
    predictions, labels = np.array([1, 0, 1, 1, 0], np.float32), np.array([1, 0, 0, 1, 1], np.float32)
    batches = (predictions[:2], labels[:2]), (predictions[2:], labels[2:])
    assert after(metrics.streaming_false_positive_rate, *batches)[0] == 0.5
    np.testing.assert_allclose(after(metrics.streaming_false_negative_rate, *batches), 1 / 3)
    value, _ = after(
        lambda p, y: metrics.streaming_false_positive_rate_at_thresholds(p, y, [0.5, 2.0]), *batches
    )
    assert value.tolist() == [0.5, 0.0]


def test_counts_at_thresholds_take_predictions_first():
    batch = np.array([0.2, 0.7, 0.9], np.float32), np.array([0, 1, 0], np.float32)
    value, _ = after(lambda p, y: metrics.streaming_true_positives_at_thresholds(p, y, [0.1, 0.8]), batch)
    assert value.tolist() == [1.0, 0.0]


def test_values_are_counted_and_kept():
    assert after(metrics.count, ([1.0, 2.0],), ([3.0],))[0] == 3.0
    assert after(metrics.count, ([1.0, 2.0], [0.5, 2.0]))[0] == 2.5
    kept, _ = after(metrics.streaming_concat, ([1.0, 2.0],), ([3.0],), ([],))
    assert kept.tolist() == [1.0, 2.0, 3.0]
    some, _ = after(lambda v: metrics.streaming_concat(v, max_size=3), ([1.0, 2.0],), ([3.0, 4.0],), ([5.0],))
    assert some.tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(ValueError, match="static size"):
        metrics.streaming_concat(tf.placeholder(tf.float32, [None, None]))


def test_agreement_beyond_chance():
    labels, predictions = np.array([0, 0, 1, 1, 2, 2]), np.array([0, 0, 1, 2, 2, 0])
    table = np.zeros((3, 3))
    np.add.at(table, (labels, predictions), 1)
    chance = (table.sum(0) * table.sum(1)).sum() / 36
    expected = (np.trace(table) / 6 - chance) / (1 - chance)
    batches = (labels[:3], predictions[:3]), (labels[3:], predictions[3:])
    value, update = after(lambda y, p: metrics.cohen_kappa(tf.to_int32(y), tf.to_int32(p), 3), *batches)
    np.testing.assert_allclose([value, update], expected, rtol=1e-5)
    with pytest.raises(ValueError, match=">= 2"):
        metrics.cohen_kappa([1], [1], 1)


def test_the_best_predictions_are_given_already():
    labels, top = np.array([[1], [2]], np.int64), np.array([[1, 0], [0, 1]], np.int64)
    for make in (
        metrics.streaming_sparse_precision_at_top_k,
        lambda t, y: metrics.sparse_recall_at_top_k(y, t),
    ):
        value, update = make(top, labels)
        with tf.Session() as sess:
            sess.run(tf.local_variables_initializer())
            assert sess.run(update) == sess.run(value)


def test_metrics_go_into_collections():
    metrics.streaming_covariance([1.0], [2.0], metrics_collections=["a"], updates_collections=["b"])
    metrics.streaming_false_negative_rate([1.0], [1.0], metrics_collections=["a"], updates_collections=["b"])
    assert (len(tf.get_collection("a")), len(tf.get_collection("b"))) == (2, 2)
    names = [v.op.name for v in tf.local_variables()]
    assert "covariance/comoment" in names


def test_average_precision_of_classes_that_are_ranked_already():
    ranked = tf.placeholder(tf.int64, [None, 2])
    value, update = tf.contrib.metrics.streaming_sparse_average_precision_at_top_k(
        ranked, tf.constant([[1], [1]], tf.int64), metrics_collections="values"
    )
    assert tf.get_collection("values") == [value]
    with tf.Session() as sess:
        sess.run(tf.local_variables_initializer())
        assert sess.run(update, {ranked: [[0, 1], [2, 3]]}) == 0.25  # found at rank 2, and not at all
        assert sess.run(update, {ranked: [[1, 0], [1, 0]]}) == 0.625
        assert sess.run(value) == 0.625
    with pytest.raises(ValueError, match="last dimension of predictions_idx must be set"):
        tf.contrib.metrics.streaming_sparse_average_precision_at_top_k(
            tf.placeholder(tf.int64, [2, None]), tf.constant([[1], [1]], tf.int64)
        )


def test_values_are_concatenated_along_an_axis_that_they_have():
    with pytest.raises(ValueError, match="statically known rank"):
        metrics.streaming_concat(tf.placeholder(tf.float32))
    for axis in (-3, 2):
        with pytest.raises(ValueError, match=r"not in \[0, 2\)"):
            metrics.streaming_concat(tf.zeros([2, 3]), axis=axis)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda x, y: metrics.streaming_true_positives_at_thresholds(x, y, [0.5]), ["true_positives"]),
        (
            lambda x, y: metrics.streaming_false_negative_rate_at_thresholds(x, y, [0.5]),
            [f"false_negative_rate_at_thresholds/{name}" for name in ("false_negatives", "true_positives")],
        ),
        (
            lambda x, y: metrics.cohen_kappa(y, tf.cast(x, tf.int32), 2),
            [f"cohen_kappa/{name}" for name in ("po", "pe_row", "pe_col")],
        ),
        (
            lambda x, y: metrics.f1_score(y, x),
            ["f1/true_positives", "f1/false_positives", "f1/false_negatives"],
        ),
        (
            lambda x, y: metrics.precision_recall_at_equal_thresholds(tf.cast(y, tf.bool), x, name="foo"),
            ["foo/variables/tp_buckets", "foo/variables/fp_buckets"],
        ),
    ],
)
def test_what_a_metric_keeps_has_its_names(make, expected):
    make(tf.constant([0.0, 1.0]), tf.constant([0, 1]))
    assert [v.op.name for v in tf.local_variables()] == expected


def test_precision_is_taken_at_the_highest_threshold_with_the_wanted_recall(session):
    scores, labels = tf.constant([0.0, 1.0, 1.0, 0.0]), tf.constant([1, 0, 0, 1])
    value, update = metrics.precision_at_recall(labels, scores, target_recall=0.2)
    session.run(tf.local_variables_initializer())
    assert session.run(update) == session.run(value) == 0.5  # all wrong: where everything is called true
