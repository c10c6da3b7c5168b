"""The loss of clusters that are not the classes."""

import numpy as np
import pytest

import tensorfleet as tf

M = tf.contrib.losses.metric_learning
score = M.metric_loss_ops.compute_clustering_score
LABELS = np.array([0, 0, 0, 1, 1, 2])


@pytest.mark.parametrize("kind", ["nmi", "ami", "ari", "vmeasure", "const"])
def test_perfect_clusters_score_one(session, kind):
    other = LABELS if kind == "const" else (LABELS + 1) % 3
    assert session.run(score(LABELS, other, kind)) == pytest.approx(1)
    assert session.run(score(LABELS, np.zeros(6, np.int64), kind)) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("kind", ["nmi", "vmeasure", "ami", "ari"])
def test_clusters_that_are_partly_right_score_between(session, kind):
    result = session.run(score(LABELS, np.array([0, 0, 1, 1, 2, 3]), kind))
    assert 0 < result < 1
    if kind in ("nmi", "vmeasure"):
        classes = [3 / 6, 2 / 6, 1 / 6]
        clusters = [2 / 6, 2 / 6, 1 / 6, 1 / 6]
        both = [2 / 6, 1 / 6, 1 / 6, 1 / 6, 1 / 6]
        entropy = lambda p: -sum(x * np.log(x) for x in p)  # noqa: E731
        output = entropy(classes) + entropy(clusters) - entropy(both)
        np.testing.assert_allclose(result, 2 * output / (entropy(classes) + entropy(clusters)), rtol=1e-5)
    if kind == "ari":  # pairs: 4 of one class, 2 of one cluster, 1 of both, 15 of all
        np.testing.assert_allclose(result, (1 - 8 / 15) / (3 - 8 / 15), rtol=1e-5)


@pytest.mark.parametrize("tuned", [True, False])
def test_classes_that_are_far_apart_have_no_loss(session, tuned):
    places = np.array([[0.0], [0.1], [0.2], [50.0], [50.1], [99.0]], np.float32)
    loss = M.cluster_loss(LABELS, tf.constant(places), 1.0, tuned)
    assert session.run(loss) == pytest.approx(0, abs=1e-4)
    assert loss.shape == []


def test_the_loss_brings_classes_together():
    with tf.Graph().as_default(), tf.Session() as session:
        start = np.random.RandomState(0).normal(size=[6, 2]).astype(np.float32)
        places = tf.Variable(start)
        loss = M.cluster_loss(LABELS.reshape(-1, 1), places, 1.0, margin_type="ami", print_losses=False)
        train = tf.train.AdamOptimizer(0.1).minimize(loss)
        session.run(tf.global_variables_initializer())
        before = session.run(loss)
        for _ in range(60):
            session.run(train)
        assert session.run(loss) < 0.3 * before
        tags = {
            op.name.rpartition("/")[2] for op in session.graph.get_operations() if op.type == "ScalarSummary"
        }
        assert {"score_pred", "ami", "score_gt"} <= tags


def test_measures_that_nobody_knows_are_refused():
    with pytest.raises(ValueError, match="Unrecognized margin_type: other"):
        M.cluster_loss(LABELS, tf.zeros([6, 2]), 1.0, margin_type="other")
