"""Examples drawn again by rates and weights, and classes with wanted shares."""

import numpy as np
import pytest

import tensorfleet as tf

training = tf.contrib.training


def test_rows_are_repeated_as_often_as_their_rates_say():
    rows = tf.constant([[0], [1], [2]])
    x, y = training.resample_at_rate([rows, tf.constant([10, 11, 12])], [0.0, 1.0, 3.0], seed=4)
    counts = np.zeros(3)
    with tf.Session() as sess:
        for _ in range(300):
            result, other = sess.run([x, y])
            assert (result[:, 0] + 10 == other).all()
            counts += np.bincount(other - 10, minlength=3)
    np.testing.assert_allclose(counts / 300, [0, 1, 3], atol=0.4)
    assert tf.gradients(training.resample_at_rate([tf.constant([1.0])], [1.0])[0], rows) == [None]


def test_rows_are_drawn_by_their_weights():
    (x,), rates = training.weighted_resample([tf.constant([0, 1])], tf.constant([1.0, 3.0]), 0.5, seed=4)
    counts = np.zeros(2)
    with tf.Session() as sess:
        sess.run(tf.local_variables_initializer())
        for _ in range(400):
            result, at = sess.run([x, rates])
            counts += np.bincount(result, minlength=2)
            np.testing.assert_allclose(at, np.where(result == 1, 0.75, 0.25), rtol=1e-4)
    np.testing.assert_allclose(counts / 400, [0.25, 0.75], atol=0.15)


def batches(tensors, count):
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coordinator)
        result = [sess.run(tensors) for _ in range(count)]
        coordinator.request_stop()
        coordinator.join(threads)
    return result


def test_only_accepted_examples_are_batched():
    numbers = tf.train.range_input_producer(4, shuffle=False).dequeue()
    kept = training.rejection_sample(
        [numbers], lambda x: tf.to_float(x[0] > 1), 3, runtime_checks=True, name="chosen"
    )
    result = np.concatenate([np.ravel(b) for b in batches(kept, 4)])
    assert set(result) == {2, 3}


def test_rows_of_a_batch_are_accepted_one_by_one():
    kept = training.rejection_sample(
        [tf.constant([5, 6, 7])], lambda x: tf.to_float(x[0] < 7), 2, enqueue_many=True
    )
    assert set(np.ravel(batches(kept, 5))) == {5, 6}


@pytest.mark.parametrize("known", [True, False])
def test_classes_get_their_wanted_shares(known):
    labels = tf.constant([0] * 8 + [1] * 2)
    values, chosen = training.stratified_sample(
        [labels * 10], labels, [0.5, 0.5], 20, init_probs=[0.8, 0.2] if known else None, enqueue_many=True
    )
    result = batches([values[0], chosen], 40)
    for value, label in result:
        assert (value == label * 10).all()
    share = np.mean([label for _, label in result])
    assert 0.4 < share < 0.6


@pytest.mark.parametrize(
    ("labels", "options", "text"),
    [
        ([1], {"target_probs": [0.5, 0.6]}, "add up to one"),
        ([1], {"target_probs": [[0.5, 0.5]]}, "must be a vector"),
        ([[1]], {"target_probs": [0.5, 0.5]}, "labels must be a vector"),
        ([1, 1], {"target_probs": [0.5, 0.5]}, "incompatible"),
        ([1], {"target_probs": [0.5, 0.5], "init_probs": [1.0]}, "incompatible"),
    ],
)
def test_shares_that_do_not_fit_are_refused(labels, options, text):
    with pytest.raises(ValueError, match=text):
        training.stratified_sample([tf.constant([1])], labels, batch_size=2, enqueue_many=True, **options)
