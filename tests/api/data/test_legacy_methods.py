"""Methods of the first datasets, which are transformations since."""

import numpy as np

import tensorfleet as tf


def elements(dataset):
    following = dataset.make_one_shot_iterator().get_next()
    result = []
    with tf.Session() as sess:
        try:
            while True:
                result.append(sess.run(following))
        except tf.errors.OutOfRangeError:
            return result


def test_elements_are_grouped_by_a_method():
    dataset = tf.contrib.data.Dataset.range(6).group_by_window(
        lambda x: x % 2, lambda key, window: window.batch(3), 3
    )
    assert [group.tolist() for group in elements(dataset)] == [[0, 2, 4], [1, 3, 5]]


def test_rows_of_different_lengths_become_sparse_by_a_method():
    lengths = tf.contrib.data.Dataset.range(1, 3).map(lambda n: tf.fill([n], n))
    (batch,) = elements(lengths.dense_to_sparse_batch(2, [4]))
    assert batch.values.tolist() == [1, 2, 2] and batch.dense_shape.tolist() == [2, 4]


def test_what_fails_is_left_out_by_a_method():
    dataset = tf.contrib.data.Dataset.from_tensor_slices(np.float32([1, 0, 2]))
    checked = dataset.map(lambda x: tf.check_numerics(1 / x, "no"))
    assert elements(checked.ignore_errors()) == [1, 0.5]
