"""Calls in the argument order of before 1.0 work where 1.15 refuses them, and warn once."""

import inspect

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.ops import argument_order as old_order

LOGITS = np.array([[2.0, -1.0, 0.5], [0.1, 0.2, 3.0]], np.float32)
LABELS = np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]], np.float32)
SPARSE = tf.SparseTensorValue([[0, 0], [1, 1]], np.array([1, 2], np.int32), [2, 2])


def _entropy(kind):
    return getattr(tf.nn, f"{kind}_cross_entropy_with_logits")


@pytest.mark.parametrize("kind", ["softmax", "sparse_softmax", "sigmoid"])
def test_cross_entropies_take_logits_before_labels(session, kind):
    labels = np.array([0, 2]) if kind == "sparse_softmax" else LABELS
    function = _entropy(kind)
    wanted = session.run(function(labels=labels, logits=LOGITS))
    for old in (
        function(LOGITS, labels),
        function(LOGITS, labels=labels),
        function(LOGITS, labels, name="loss"),
    ):
        np.testing.assert_array_equal(session.run(old), wanted)


def test_old_arguments_after_the_labels_are_taken(session):
    along = session.run(tf.nn.softmax_cross_entropy_with_logits(LOGITS, LABELS, 0))
    np.testing.assert_array_equal(
        along, session.run(tf.nn.softmax_cross_entropy_with_logits(labels=LABELS, logits=LOGITS, dim=0))
    )
    assert tf.nn.sigmoid_cross_entropy_with_logits(LOGITS, LABELS, "old").op.name == "old"
    named = tf.nn.sigmoid_cross_entropy_with_logits(logits=LOGITS, targets=LABELS)
    np.testing.assert_array_equal(
        *session.run([named, tf.nn.sigmoid_cross_entropy_with_logits(LOGITS, targets=LABELS)])
    )


def test_cross_entropies_called_neither_way_are_refused():
    for kind in ("softmax", "sparse_softmax", "sigmoid"):
        with pytest.raises(ValueError, match=f"Only call `{kind}_cross_entropy_with_logits` with named arg"):
            _entropy(kind)(LOGITS, labels=LABELS, logits=LOGITS)
        with pytest.raises(ValueError, match="Both labels and logits must be provided"):
            _entropy(kind)(LOGITS)
        with pytest.raises(ValueError, match="Both labels and logits must be provided"):
            _entropy(kind)(labels=LABELS)


def test_sampled_losses_take_inputs_before_labels(session):
    weights, biases = tf.random_normal([20, 3], seed=1), tf.zeros([20])
    inputs, labels = tf.constant(LOGITS), tf.constant([[3], [5]])
    drawn = tuple(map(tf.constant, ([1, 2, 4], [[0.5], [0.5]], [0.5, 0.5, 0.5])))
    weights = session.run(weights)
    for loss in (tf.nn.nce_loss, tf.nn.sampled_softmax_loss):
        old = loss(weights, biases, inputs, labels, 3, 20, sampled_values=drawn)
        new = loss(weights, biases, labels, inputs, 3, 20, sampled_values=drawn)
        np.testing.assert_array_equal(*session.run([old, new]))


def test_joining_and_cutting_take_the_dimension_first(session):
    x = tf.constant(LOGITS)
    for joined in (tf.concat(1, [x, x]), tf.concat(1, (x, x)), tf.concat(concat_dim=1, values=[x, x])):
        np.testing.assert_array_equal(session.run(joined), np.concatenate([LOGITS, LOGITS], 1))
    for parts in (tf.split(1, 3, x), tf.split(split_dim=1, num_split=3, value=x), tf.split(x, 3, 1)):
        np.testing.assert_array_equal(session.run(parts), np.split(LOGITS, 3, 1))
    parts = tf.sparse_split(1, 2, tf.SparseTensor(*SPARSE))
    assert [p.dense_shape.tolist() for p in session.run(parts)] == [[2, 1], [2, 1]]


def test_an_image_is_resized_to_a_height_and_a_width(session):
    image = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
    nearest = tf.image.ResizeMethod.NEAREST_NEIGHBOR
    old, new = tf.image.resize_images(image, 2, 3, nearest), tf.image.resize_images(image, [2, 3], nearest)
    np.testing.assert_array_equal(*session.run([old, new]))


def test_sequences_are_scored_with_inputs_before_labels(session):
    inputs = np.zeros([3, 2, 4], np.float32)
    labels = tf.SparseTensor([[0, 0], [1, 0]], [1, 2], [2, 1])
    old, new = tf.nn.ctc_loss(inputs, labels, [3, 3]), tf.nn.ctc_loss(labels, inputs, [3, 3])
    np.testing.assert_array_equal(*session.run([old, new]))


def test_each_function_warns_once_at_the_line_that_calls_it(caplog):
    old_order._warned.clear()
    for _ in range(2):
        tf.nn.softmax_cross_entropy_with_logits(LOGITS, LABELS)
        tf.concat(0, [LOGITS, LOGITS])
    assert [r.getMessage() for r in caplog.records] == [
        "tf.nn.softmax_cross_entropy_with_logits is called with its arguments of before TensorFlow 1.0. "
        "Give them by name: logits=..., labels=..., dim=..., name=....",
        "tf.concat is called with its arguments of before TensorFlow 1.0. "
        "Give them by name: axis=..., values=..., name=....",
    ]
    assert caplog.records[0].filename == "test_argument_order.py"


def test_functions_keep_the_signature_of_1_15():
    assert [*inspect.signature(tf.nn.sigmoid_cross_entropy_with_logits).parameters] == [
        "_sentinel",
        "labels",
        "logits",
        "name",
    ]
