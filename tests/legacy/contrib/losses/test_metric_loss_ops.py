"""Losses that bring examples of one class near each other, against the same in numpy."""

import numpy as np
import pytest

import tensorfleet as tf

M = tf.contrib.losses.metric_learning
RANDOM = np.random.RandomState(0)
X = RANDOM.normal(size=[12, 4]).astype(np.float32)
LABELS = RANDOM.randint(0, 3, 12)


def distances(squared):
    result = np.square(X[:, None] - X[None]).sum(-1)
    return result if squared else np.sqrt(result)


@pytest.mark.parametrize("margin", [0.2, 1.0, 5.0])
def test_triplets(session, margin):
    d, total, pairs = distances(True), 0.0, 0
    for a in range(12):
        others = [d[a, n] for n in range(12) if LABELS[n] != LABELS[a]]
        for p in range(12):
            if p != a and LABELS[p] == LABELS[a]:
                further = [n for n in others if n > d[a, p]]
                total += max(margin + d[a, p] - (min(further) if further else max(others)), 0)
                pairs += 1
    loss = session.run(M.triplet_semihard_loss(tf.constant(LABELS), tf.constant(X), margin))
    np.testing.assert_allclose(loss, total / pairs, rtol=1e-4)


def test_contrasts(session):
    y, same = X[::-1].copy(), (np.arange(12) % 2).astype(np.float32)
    apart = np.sqrt(np.square(X - y).sum(1))
    expected = (same * apart**2 + (1 - same) * np.maximum(3 - apart, 0) ** 2).mean()
    np.testing.assert_allclose(session.run(M.contrastive_loss(same, X, y, 3.0)), expected, rtol=1e-4)


def test_pairs(session):
    y = X[::-1].copy()
    logits = X @ y.T
    logs = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    target = (LABELS[:, None] == LABELS[None]).astype(float)
    target /= target.sum(1, keepdims=True)
    expected = -(target * logs).sum(1).mean()
    expected += 0.25 * 0.01 * (np.square(X).sum(1).mean() + np.square(y).sum(1).mean())
    np.testing.assert_allclose(session.run(M.npairs_loss(LABELS, X, y, reg_lambda=0.01)), expected, rtol=1e-4)


def test_lifted_structures(session):
    d, total, pairs = distances(False), 0.0, 0
    for i in range(12):
        for j in range(i + 1, 12):
            if LABELS[i] == LABELS[j]:
                near = sum(np.exp(1 - d[a, n]) for a in (i, j) for n in range(12) if LABELS[n] != LABELS[a])
                total += max(np.log(near) + d[i, j], 0) ** 2
                pairs += 1
    np.testing.assert_allclose(session.run(M.lifted_struct_loss(LABELS, X)), total / (2 * pairs), rtol=1e-4)


@pytest.mark.parametrize("loss", [M.triplet_semihard_loss, M.lifted_struct_loss])
def test_examples_of_one_class_come_together(loss, session):
    x = tf.Variable(X)
    train = tf.train.AdamOptimizer(0.05).minimize(loss(LABELS, x))
    session.run(tf.global_variables_initializer())
    for _ in range(150):
        session.run(train)
    result = session.run(x)
    assert np.isfinite(result).all()
    centres = np.stack([result[k == LABELS].mean(0) for k in range(3)])
    nearest = np.square(result[:, None] - centres).sum(-1).argmin(1)
    assert (nearest == LABELS).mean() > 0.9


def test_pairs_may_share_several_classes(session):
    rows = np.array([[1, 0, 1, 0], [1, 1, 0, 0], [0, 0, 1, 1]], np.float32)
    labels = [tf.SparseTensor(np.argwhere(r), r[r > 0], [4]) for r in rows]
    anchors, positives = X[:3], X[3:6]
    target = np.minimum(rows[:, None], rows[None]).sum(2)
    target /= target.sum(1, keepdims=True)
    similar = anchors @ positives.T
    entropy = np.log(np.exp(similar).sum(1)) - (target * similar).sum(1)
    lengths = np.square(anchors).sum(1).mean() + np.square(positives).sum(1).mean()
    result = session.run(M.npairs_loss_multilabel(labels, tf.constant(anchors), tf.constant(positives)))
    np.testing.assert_allclose(result, entropy.mean() + 0.25 * 0.002 * lengths, rtol=1e-5)
    with pytest.raises(TypeError, match="sparse_labels must be a list of SparseTensors"):
        M.npairs_loss_multilabel([tf.zeros([4])], tf.constant(anchors), tf.constant(positives))
