"""Chains of tags against all paths tried one by one."""

import itertools

import numpy as np

import tensorfleet as tf
from tests.support.sessions import run_initialized as run

crf = tf.contrib.crf
RANDOM = np.random.RandomState(2)
POTENTIALS = RANDOM.randn(3, 4, 3).astype(np.float32)
MOVES = RANDOM.randn(3, 3).astype(np.float32)
LENGTHS = [4, 2, 1]


def score(row, path):
    return sum(POTENTIALS[row, t, tag] for t, tag in enumerate(path)) + sum(
        MOVES[a, b] for a, b in itertools.pairwise(path)
    )


def paths(row):
    return list(itertools.product(range(3), repeat=LENGTHS[row]))


def test_the_score_of_a_path():
    tags = np.array([[0, 1, 2, 1], [2, 2, 0, 0], [1, 0, 0, 0]])
    result = run(crf.crf_sequence_score(POTENTIALS, tags, LENGTHS, MOVES))
    np.testing.assert_allclose(result, [score(r, tags[r][: LENGTHS[r]]) for r in range(3)], rtol=1e-5)


def test_the_norm_sums_over_all_paths():
    expected = [np.log(sum(np.exp(score(r, p)) for p in paths(r))) for r in range(3)]
    np.testing.assert_allclose(run(crf.crf_log_norm(POTENTIALS, LENGTHS, MOVES)), expected, rtol=1e-5)


def test_the_norm_of_nothing_is_zero():
    result = run(crf.crf_log_norm(POTENTIALS, [0, 1, 0], MOVES))
    assert result[0] == result[2] == 0 and result[1] != 0


def test_decoding_finds_the_best_path_of_each_length():
    tags, best = run(crf.crf_decode(POTENTIALS, MOVES, LENGTHS))
    for row in range(3):
        expected = max(paths(row), key=lambda p, row=row: score(row, p))
        assert tags[row].tolist() == [*expected, *[0] * (4 - LENGTHS[row])]
        np.testing.assert_allclose(best[row], score(row, expected), rtol=1e-5)
    path, total = crf.viterbi_decode(POTENTIALS[0], MOVES)
    assert path == tags[0].tolist()
    np.testing.assert_allclose(total, best[0], rtol=1e-5)


def test_some_tags_allowed_count_only_their_paths():
    allowed = np.zeros((3, 4, 3), bool)
    allowed[:, :, 1:] = True
    expected = [np.log(sum(np.exp(score(r, p)) for p in paths(r) if 0 not in p)) for r in range(3)]
    result = run(crf.crf_multitag_sequence_score(POTENTIALS, allowed, LENGTHS, MOVES))
    np.testing.assert_allclose(result, expected, rtol=1e-5)


def test_training_makes_the_shown_path_the_best():
    tags = np.array([[0, 1, 2, 1], [2, 2, 0, 0], [1, 0, 0, 0]])
    potentials = tf.Variable(POTENTIALS)
    likelihood, moves = crf.crf_log_likelihood(potentials, tags, LENGTHS)
    assert moves.op.name == "transitions"
    step = tf.train.GradientDescentOptimizer(0.5).minimize(-tf.reduce_mean(likelihood))
    result, _ = crf.crf_decode(potentials, moves, LENGTHS)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(60):
            session.run(step)
        result = session.run(result)
    for row, length in enumerate(LENGTHS):
        assert result[row, :length].tolist() == tags[row, :length].tolist()


def test_cells_find_the_best_path():
    random = np.random.RandomState(3)
    scores, moves = (
        random.normal(size=[2, 5, 3]).astype(np.float32),
        random.normal(size=[3, 3]).astype(np.float32),
    )
    forward = tf.contrib.crf.CrfDecodeForwardRnnCell(moves)
    pointers, last = tf.nn.dynamic_rnn(
        forward, tf.constant(scores[:, 1:]), initial_state=tf.constant(scores[:, 0]), dtype=tf.int32
    )
    tag = tf.cast(tf.argmax(last, 1), tf.int32)[:, None]
    back = tf.contrib.crf.CrfDecodeBackwardRnnCell(3)
    before, _ = tf.nn.dynamic_rnn(back, tf.reverse(pointers, [1]), initial_state=tag)
    path = tf.reverse(tf.concat([tag, before[:, :, 0]], 1), [1])
    with tf.Session() as sess:
        result, wanted = sess.run([path, tf.contrib.crf.crf_decode(scores, moves, [5, 5])[0]])
    np.testing.assert_array_equal(result, wanted)
