"""What the CTC loss and decoders refuse."""

import numpy as np
import pytest

import tensorfleet as tf
from tests.support.sessions import run

X = np.random.RandomState(0).randn(4, 2, 3).astype(np.float32)


def sparse(places, values):
    return tf.SparseTensor(np.array(places, np.int64), np.array(values, np.int32), [2, 5])


def test_a_certain_alignment_costs_nothing():
    scores = np.full((3, 1, 3), -50.0, np.float32)
    scores[0, 0, 0] = scores[1, 0, 2] = scores[2, 0, 1] = 50.0
    labels = tf.SparseTensor([[0, 0], [0, 1]], tf.constant([0, 1]), [1, 2])
    assert abs(run(tf.nn.ctc_loss(labels, scores, [3]))[0]) < 1e-5
    (path,), _ = run(tf.nn.ctc_greedy_decoder(scores, [3]))
    assert path.values.tolist() == [0, 1]


def test_labels_must_fit_into_the_time():
    long = sparse([[0, i] for i in range(5)] + [[1, 0]], [0, 1, 0, 1, 0, 1])
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="Not enough time for target transition sequence"
    ):
        run(tf.nn.ctc_loss(long, X, [4, 4]))
    ignored = run(tf.nn.ctc_loss(long, X, [4, 4], ignore_longer_outputs_than_inputs=True))
    assert ignored[0] == 0
    assert ignored[1] > 0


def test_arguments_are_checked():
    with pytest.raises(TypeError, match="to be a SparseTensor"):
        tf.nn.ctc_loss(tf.constant([[1]]), X, [4, 4])
    good = sparse([[0, 0], [1, 0]], [0, 1])
    with pytest.raises(tf.errors.FailedPreconditionError, match="sequence_length"):
        run(tf.nn.ctc_loss(good, X, [4, 9]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="nonnegative"):
        run(tf.nn.ctc_loss(sparse([[0, 0], [1, 0]], [0, -1]), X, [4, 4]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="more paths than the beam width"):
        run(tf.nn.ctc_beam_search_decoder(X, [4, 4], beam_width=1, top_paths=2)[1])


def test_there_is_no_second_gradient():
    x = tf.constant(X)
    (g,) = tf.gradients(tf.nn.ctc_loss(sparse([[0, 0], [1, 0]], [0, 1]), x, [4, 4]), x)
    with pytest.raises(LookupError, match="second"):
        tf.gradients(g, x)


def test_a_batch_of_nothing_is_refused():
    none = tf.SparseTensor(np.zeros((0, 2), np.int64), np.zeros(0, np.int32), [0, 0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="batch_size must not be 0"):
        run(tf.nn.ctc_loss(none, X[:, :0], np.zeros(0, np.int32)))
