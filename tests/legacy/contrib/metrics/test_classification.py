"""Measures of probabilities at the best threshold."""

import numpy as np
import pytest

import tensorfleet as tf

M = tf.contrib.metrics
RANDOM = np.random.RandomState(0)
LABELS = RANDOM.rand(80) < 0.4
CHANCES = np.clip(LABELS * 0.4 + RANDOM.rand(80) * 0.6, 0, 1).astype(np.float32)


def counts(threshold):
    said = threshold < CHANCES
    return (said & LABELS).sum(), (said & ~LABELS).sum(), (~said & LABELS).sum()


CUTS = [-1e-7, *(np.arange(1, 199) / 199), 1 + 1e-7]
TP, FP, FN = np.array([counts(c) for c in CUTS], float).T
PRECISION, RECALL = TP / (TP + FP + 1e-7), TP / (TP + FN + 1e-7)


def streamed(session, pair):
    value, update = pair
    session.run(tf.local_variables_initializer())
    for part in (slice(0, 30), slice(30, 80)):
        session.run(update, {"y:0": LABELS[part], "p:0": CHANCES[part]})
    return session.run(value)


@pytest.fixture(autouse=True)
def inputs():
    return tf.placeholder(tf.bool, [None], "y"), tf.placeholder(tf.float32, [None], "p")


def test_the_best_harmonic_mean(session, inputs):
    expected = (2 * PRECISION * RECALL / (PRECISION + RECALL + 1e-7)).max()
    np.testing.assert_allclose(streamed(session, M.f1_score(*inputs)), expected, rtol=1e-5)


@pytest.mark.parametrize("wanted", [0.5, 0.8])
def test_one_measure_where_the_other_is_as_asked(session, inputs, wanted):
    recall = streamed(session, M.recall_at_precision(*inputs, wanted))
    np.testing.assert_allclose(recall, RECALL[np.argmin(abs(PRECISION - wanted))], rtol=1e-5)
    away = abs(RECALL - wanted)
    precision = streamed(session, M.precision_at_recall(*inputs, wanted))
    np.testing.assert_allclose(precision, PRECISION[np.flatnonzero(away == away.min())[-1]], rtol=1e-4)
    with pytest.raises(ValueError, match="range"):
        M.precision_at_recall(*inputs, 1.5)
