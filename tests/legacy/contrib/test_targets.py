"""What a model's outputs are for, before heads; sparse values from inside `tf.contrib.layers`."""

import numpy as np
import pytest

import tensorfleet as tf

L = tf.contrib.layers
LOGITS = np.array([[2.0], [-1.0], [0.5]], np.float32)


def test_numbers_have_a_squared_loss(session):
    target = L.regression_target(weight_column_name="w")
    features, labels = {"w": tf.constant([1.0, 2.0, 1.0])}, tf.constant([1.0, 1.0, 0.5])
    losses = [target.loss(LOGITS, labels, features), target.training_loss(LOGITS, labels, features)]
    np.testing.assert_allclose(session.run(losses), [(1 + 8 + 0) / 4, (1 + 8 + 0) / 3], rtol=1e-6)
    assert session.run(target.logits_to_predictions(LOGITS)).tolist() == [2.0, -1.0, 0.5]
    assert target.num_label_columns == 1


def test_classes_have_a_cross_entropy(session):
    two, three = L.multi_class_target(2), L.multi_class_target(3)
    labels = tf.constant([1, 0, 0])
    x = LOGITS[:, 0]
    wanted = np.mean(np.log1p(np.exp(x)) - x * [1, 0, 0])
    np.testing.assert_allclose(session.run(two.loss(tf.constant(LOGITS), labels, {})), wanted, rtol=1e-5)
    assert session.run(two.logits_to_predictions(LOGITS)).tolist() == [1, 0, 1]
    logits = np.random.RandomState(0).normal(size=[3, 3]).astype(np.float32)
    each = np.log(np.exp(logits).sum(1)) - logits[[0, 1, 2], [1, 0, 0]]
    np.testing.assert_allclose(session.run(three.loss(logits, labels, {})), each.mean(), rtol=1e-5)
    np.testing.assert_allclose(session.run(three.logits_to_predictions(logits, True)).sum(1), 1, rtol=1e-5)
    with pytest.raises(ValueError, match="n_classes must be > 1"):
        L.multi_class_target(1)


def test_a_margin_has_a_hinge_loss(session):
    target = L.binary_svm_target()
    loss = target.loss(tf.constant(LOGITS), tf.constant([1, 0, 0]), {})
    np.testing.assert_allclose(session.run(loss), (0 + 0 + 1.5) / 3, rtol=1e-6)
    with pytest.raises(ValueError, match="logits to probabilities is not supported"):
        target.logits_to_predictions(LOGITS, proba=True)


def test_classes_are_evaluated(session):
    ops = L.multi_class_target(2).get_eval_ops({}, tf.constant(LOGITS), tf.constant([1, 0, 0]))
    session.run(tf.local_variables_initializer())
    session.run([update for _, update in ops.values()])
    by_name = {name: session.run(value) for name, (value, _) in ops.items()}
    np.testing.assert_allclose(by_name["accuracy"], 2 / 3, rtol=1e-6)
    np.testing.assert_allclose(by_name["labels/actual_target_mean"], 1 / 3, rtol=1e-6)
    np.testing.assert_allclose(by_name["precision/positive_threshold_0.500000_mean"], 1 / 2)
    assert by_name["recall/positive_threshold_0.500000_mean"] == 1
    with pytest.raises(ValueError, match="should be either 'classes' or 'probabilities'"):
        L.multi_class_target(2).get_eval_ops({}, LOGITS, tf.constant([1, 0, 0]), {("x", "y"): None})


def test_places_of_values_are_moved_to_the_front(session):
    from tensorfleet.contrib.layers.python.ops import (
        bucketization_op,
        sparse_feature_cross_op,
        sparse_ops,
    )

    given = np.array([[[0, 0, 1, 0], [0, 0, 0, 0]], [[1, 0, 1, 1], [0, 0, 1, 0]]])
    ids = session.run(sparse_ops.indicators_to_sparse_ids(tf.constant(given)))
    assert ids.values.tolist() == [2, 0, 2, 3, 2] and ids.dense_shape.tolist() == [2, 2, 3]
    assert ids.indices.tolist() == [[0, 0, 0], [1, 0, 0], [1, 0, 1], [1, 0, 2], [1, 1, 0]]
    words = session.run(sparse_ops.dense_to_sparse_tensor(tf.constant(["a", "", "b"])))
    assert words.values.tolist() == [b"a", b"b"]
    sparse = tf.SparseTensor([[0, 0], [2, 0], [2, 2]], [1, 1, 1], [3, 3])
    assert session.run(sparse_ops.sparse_row_envelope(sparse)).tolist() == [1, 0, 3]
    assert session.run(bucketization_op.bucketize([1.0, 5.0, 9.0], [2, 9])).tolist() == [0, 1, 2]
    crossed = sparse_feature_cross_op.sparse_feature_cross(
        [tf.constant([["a"]]), tf.constant([["b"], ["c"]][:1])]
    )
    assert session.run(crossed).values.tolist() == [b"a_X_b"]
