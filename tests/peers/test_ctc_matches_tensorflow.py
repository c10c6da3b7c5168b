"""Connectionist temporal classification, compared with TensorFlow."""

import numpy as np
import pytest

import tensorfleet as fleet

X = np.random.RandomState(0).randn(9, 4, 5).astype(np.float32) * 2
LENGTHS = [9, 6, 7, 3]
PLACES = [[0, 0], [0, 1], [0, 2], [1, 0], [2, 0], [2, 1], [2, 2], [3, 0]]
LABELS = [0, 0, 1, 3, 2, 2, 2, 1]


def labels(tf):
    return tf.SparseTensor(np.array(PLACES, np.int64), np.array(LABELS, np.int32), np.array([4, 3], np.int64))


def loss(tf, x, **options):
    value = tf.nn.ctc_loss(labels(tf), x, LENGTHS, **options)
    return [value, *tf.gradients(value * [1.0, 2.0, 3.0, 4.0], x)]


def dense(tf, x):
    rows = tf.constant([[1, 1, 2], [4, 0, 0], [3, 3, 3], [2, 0, 0]])
    value = tf.nn.ctc_loss_v2(rows, x, [3, 1, 3, 1], LENGTHS, blank_index=0)
    return [value, *tf.gradients(value, x)]


CASES = {
    "loss": loss,
    "collapsed": lambda tf, x: loss(tf, x, preprocess_collapse_repeated=True),
    "not_merged": lambda tf, x: loss(tf, x, ctc_merge_repeated=False),
    "greedy": lambda tf, x: list(tf.nn.ctc_greedy_decoder(x, LENGTHS)),
    "greedy_not_merged": lambda tf, x: list(tf.nn.ctc_greedy_decoder(x, LENGTHS, merge_repeated=False)),
    "beams": lambda tf, x: list(tf.nn.ctc_beam_search_decoder(x, LENGTHS, 20, 3, merge_repeated=False)),
    "one_beam": lambda tf, x: list(tf.nn.ctc_beam_search_decoder(x, LENGTHS, 50)),
    "dense": dense,
    "collapse": lambda tf, x: list(
        tf.nn.collapse_repeated(tf.constant([[1, 1, 2, 2, 1], [3, 3, 3, 4, 4]]), tf.constant([5, 3]))
    ),
    "unique": lambda tf, x: list(tf.nn.ctc_unique_labels(tf.constant([[1, 1, 2, 2, 1], [3, 4, 3, 4, 5]]))),
}


def run(tf, build):
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, X.shape)
        fetches = build(tf, x)
        with tf.Session() as session:
            return session.run(fetches, {x: X})


def flat(value):
    if isinstance(value, (list, tuple)):
        return [x for v in value for x in flat(v)]
    return [np.asarray(value)]


@pytest.mark.parametrize("name", CASES)
def test_results_are_the_same(tensorflow, name):
    theirs, ours = run(tensorflow, CASES[name]), run(fleet, CASES[name])
    for a, b in zip(flat(ours), flat(theirs), strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5)
