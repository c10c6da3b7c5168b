"""The parts of the CTC loss."""

import numpy as np

import tensorfleet as tf

ctc = tf.python.ops.ctc_ops


def _run(x):
    with tf.Session() as sess:
        return sess.run(x)


def test_dense_labels_become_sparse_up_to_their_lengths():
    result = _run(ctc.dense_labels_to_sparse([[1, 3, 3, 0, 0], [4, 2, 2, 9, 0]], [2, 4]))
    assert result.values.tolist() == [1, 3, 4, 2, 2, 9]
    assert result.dense_shape.tolist() == [2, 4]


def test_states_with_the_same_index_are_summed():
    states = tf.log([[[1.0, 2.0, 3.0, 4.0]]])
    np.testing.assert_allclose(
        _run(tf.exp(ctc._sum_states([[0, 1, 0, 1]], states))), [[[4, 6, 0, 0]]], rtol=1e-6
    )


def test_states_are_summed_by_their_labels():
    labels = tf.constant([[3, 4, 3]])
    states = tf.log([[[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]]])
    sums = _run(tf.exp(ctc._state_to_olabel(labels, 6, states)))
    np.testing.assert_allclose(sums, [[[2.6, 0, 0, 0.6, 0.3, 0]]], rtol=1e-5, atol=1e-7)
    again = _run(tf.exp(ctc._state_to_olabel_unique(labels, 6, states, tf.nn.ctc_unique_labels(labels))))
    np.testing.assert_array_equal(again, sums)


def test_a_scan_goes_both_ways_and_may_show_its_start():
    x = tf.constant([1.0, 2.0, 3.0])

    def scan(**how):
        return _run(ctc._scan(lambda a, e: a + e, x, 23.0, **how)).tolist()

    assert scan() == [24, 26, 29]
    assert scan(inclusive=True) == [23, 24, 26, 29]
    assert scan(reverse=True, inclusive=True) == [29, 28, 26, 23]
    assert scan(final_only=True) == 29
    assert scan(final_only=True, reverse=True) == 29


def test_labels_of_any_type_become_sparse_ones_of_the_loss():
    labels = ctc.dense_labels_to_sparse(tf.constant([[1, 2]], tf.int64), [2])
    assert labels.values.dtype == tf.int32
