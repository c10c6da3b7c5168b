"""Decoders with their helpers, attention and beams."""

import itertools

import numpy as np
import pytest

import tensorfleet as tf
from tests.support.sessions import run_initialized as run

s2s = tf.contrib.seq2seq
WORDS, UNITS, BATCH = 5, 8, 3


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        yield


def cell():
    return tf.nn.rnn_cell.BasicLSTMCell(UNITS)


def truth(steps=4):
    return tf.constant(np.random.RandomState(0).rand(BATCH, steps, 2).astype(np.float32))


def test_training_runs_each_sequence_to_its_length():
    helper = s2s.TrainingHelper(truth(), [4, 2, 3])
    layer = tf.layers.Dense(WORDS)
    lstm = cell()
    decoder = s2s.BasicDecoder(lstm, helper, lstm.zero_state(BATCH, tf.float32), layer)
    outputs, state, lengths = s2s.dynamic_decode(decoder, impute_finished=True)
    assert [v.op.name for v in tf.trainable_variables()] == [
        "decoder/basic_lstm_cell/kernel",
        "decoder/basic_lstm_cell/bias",
        "decoder/dense/kernel",
        "decoder/dense/bias",
    ]
    assert outputs.rnn_output.shape.as_list() == [BATCH, None, WORDS]
    result, ids, final, steps = run([outputs.rnn_output, outputs.sample_id, state.h, lengths])
    assert result.shape == (BATCH, 4, WORDS) and ids.shape == (BATCH, 4) and steps.tolist() == [4, 2, 3]
    assert not result[1, 2:].any() and result[1, :2].any()
    assert (ids == result.argmax(-1)).all() and final.shape == (BATCH, UNITS)


def test_decoding_the_truth_gives_what_dynamic_rnn_gives():
    lstm = cell()
    helper = s2s.TrainingHelper(truth(), [4, 2, 3])
    decoder = s2s.BasicDecoder(lstm, helper, lstm.zero_state(BATCH, tf.float32))
    with tf.variable_scope("rnn"):
        outputs, state, _ = s2s.dynamic_decode(decoder, impute_finished=True, scope=tf.get_variable_scope())
    with tf.variable_scope("rnn", reuse=True):
        expected, final = tf.nn.dynamic_rnn(
            lstm, truth(), [4, 2, 3], dtype=tf.float32, scope=tf.get_variable_scope()
        )
    a, b, c, d = run([outputs.rnn_output, expected, state.h, final.h])
    np.testing.assert_allclose(a, b, rtol=1e-5)
    np.testing.assert_allclose(c, d, rtol=1e-5)


def test_gradients_reach_the_weights_of_an_attending_decoder():
    memory = tf.constant(np.random.RandomState(1).rand(BATCH, 6, UNITS).astype(np.float32))
    mechanism = s2s.BahdanauAttention(UNITS, memory, memory_sequence_length=[6, 3, 1])
    wrapped = s2s.AttentionWrapper(cell(), mechanism, attention_layer_size=UNITS, alignment_history=True)
    start = wrapped.zero_state(BATCH, tf.float32)
    decoder = s2s.BasicDecoder(wrapped, s2s.TrainingHelper(truth(), [4, 4, 4]), start, tf.layers.Dense(WORDS))
    outputs, state, _ = s2s.dynamic_decode(decoder)
    assert sorted(v.op.name for v in tf.trainable_variables()) == [
        "decoder/attention_wrapper/attention_layer/kernel",
        "decoder/attention_wrapper/bahdanau_attention/attention_v",
        "decoder/attention_wrapper/bahdanau_attention/query_layer/kernel",
        "decoder/attention_wrapper/basic_lstm_cell/bias",
        "decoder/attention_wrapper/basic_lstm_cell/kernel",
        "decoder/dense/bias",
        "decoder/dense/kernel",
        "memory_layer/kernel",
    ]
    loss = tf.reduce_sum(tf.square(outputs.rnn_output))
    grads = tf.gradients(loss, tf.trainable_variables())
    history, *result = run([state.alignment_history.stack(), *grads])
    assert all(np.abs(g).max() > 0 for g in result)
    assert history.shape == (4, BATCH, 6)
    np.testing.assert_allclose(history.sum(-1), 1, rtol=1e-5)
    assert not history[:, 1, 3:].any() and (history[:, 2, 0] == 1).all()


@pytest.mark.parametrize("normalize", [False, True])
def test_luong_attention_scales_when_asked_to(normalize):
    memory = tf.constant(np.random.RandomState(1).rand(BATCH, 6, 4).astype(np.float32))
    wrapped = s2s.AttentionWrapper(
        cell(), s2s.LuongAttention(UNITS, memory, scale=normalize), output_attention=False
    )
    output, state = wrapped(tf.ones([BATCH, 2]), wrapped.zero_state(BATCH, tf.float32))
    names = [v.op.name for v in tf.trainable_variables()]
    assert ("attention_wrapper/luong_attention/attention_g" in names) == normalize
    result, attention = run([output, state.attention])
    assert result.shape == (BATCH, UNITS) and attention.shape == (BATCH, 4)


def markov(matrix):
    """A cell whose logits depend on the last word alone, and the embedding that tells it the word."""

    class Cell(tf.nn.rnn_cell.RNNCell):
        @property
        def state_size(self):
            return 1

        @property
        def output_size(self):
            return WORDS

        def call(self, inputs, state):
            return tf.matmul(inputs, tf.constant(matrix)), state + 1

    return Cell(), tf.constant(np.eye(WORDS, dtype=np.float32))


def test_greedy_decoding_follows_the_likeliest_word_to_the_end():
    matrix = np.zeros((WORDS, WORDS), np.float32)
    for a, b in ((1, 3), (3, 2), (2, 4), (4, 0)):
        matrix[a, b] = 5
    one, embedding = markov(matrix)
    helper = s2s.GreedyEmbeddingHelper(embedding, [1, 2], 0)
    decoder = s2s.BasicDecoder(one, helper, one.zero_state(2, tf.float32))
    outputs, _, lengths = s2s.dynamic_decode(decoder, maximum_iterations=9)
    ids, steps = run([outputs.sample_id, lengths])
    assert ids[0].tolist() == [3, 2, 4, 0] and ids[1, :2].tolist() == [4, 0] and steps.tolist() == [4, 2]
    outputs, _, lengths = s2s.dynamic_decode(decoder, maximum_iterations=3)
    assert run(lengths).tolist() == [3, 2]


def test_sampling_follows_the_probabilities():
    matrix = np.full((WORDS, WORDS), -30.0, np.float32)
    matrix[:, 3] = 30
    one, embedding = markov(matrix)
    helper = s2s.SampleEmbeddingHelper(embedding, [1] * 4, 0, seed=3)
    decoder = s2s.BasicDecoder(one, helper, one.zero_state(4, tf.float32))
    ids = run(s2s.dynamic_decode(decoder, maximum_iterations=5)[0].sample_id)
    assert (ids == 3).all()


@pytest.mark.parametrize("probability", [0.0, 1.0])
def test_scheduled_sampling_feeds_samples_or_the_truth(probability):
    matrix = np.full((WORDS, WORDS), -30.0, np.float32)
    matrix[:, 3] = 30
    one, embedding = markov(matrix)
    seen = []

    class Noting(type(one)):
        def call(self, inputs, state):
            seen.append(inputs)
            return super().call(inputs, state)

    given = tf.one_hot(np.ones((2, 4), np.int32), WORDS)
    helper = s2s.ScheduledEmbeddingTrainingHelper(given, [4, 4], embedding, probability)
    noting = Noting()
    outputs, _, _ = s2s.dynamic_decode(s2s.BasicDecoder(noting, helper, noting.zero_state(2, tf.float32)))
    ids = run(outputs.sample_id)
    assert (ids == (3 if probability else -1)).all()


def exhaustive(matrix, start, end, steps, penalty):
    """The best sequences by trying all of them."""
    log = matrix - np.log(np.exp(matrix).sum(1, keepdims=True))
    by_name = {}
    for words in itertools.product(range(WORDS), repeat=steps):
        total, last, kept = 0.0, start, []
        for w in words:
            total += log[last, w]
            last = w
            kept.append(w)
            if w == end:
                break
        # an end token adds to the length from the step after it on
        length = len(kept) - (len(kept) == steps and kept[-1] == end)
        by_name[tuple(kept)] = total / ((5 + length) / 6) ** penalty
    return sorted(by_name.items(), key=lambda pair: -pair[1])


@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_a_beam_wide_enough_finds_the_best_sequences(penalty):
    matrix = np.random.RandomState(5).randn(WORDS, WORDS).astype(np.float32)
    one, embedding = markov(matrix)
    width, steps = 60, 3
    start = s2s.tile_batch(one.zero_state(2, tf.float32), width)
    decoder = s2s.BeamSearchDecoder(one, embedding, [1, 2], 0, start, width, length_penalty_weight=penalty)
    final, _, _ = s2s.dynamic_decode(decoder, maximum_iterations=steps)
    ids, scores = run([final.predicted_ids, final.beam_search_decoder_output.scores])
    for row, first in enumerate((1, 2)):
        for place, (words, score) in enumerate(exhaustive(matrix, first, 0, steps, penalty)[:5]):
            padded = list(words) + [0] * (steps - len(words))
            assert ids[row, :, place].tolist() == padded
            np.testing.assert_allclose(scores[row, -1, place], score, rtol=1e-4)


def test_beams_keep_the_states_of_their_parents():
    lstm, layer = cell(), tf.layers.Dense(WORDS)
    embedding = tf.get_variable("embedding", [WORDS, 4])
    memory = tf.constant(np.random.RandomState(1).rand(2, 6, UNITS).astype(np.float32))
    mechanism = s2s.LuongAttention(UNITS, s2s.tile_batch(memory, 3))
    wrapped = s2s.AttentionWrapper(lstm, mechanism, attention_layer_size=UNITS)
    start = wrapped.zero_state(6, tf.float32)
    decoder = s2s.BeamSearchDecoder(wrapped, embedding, [1, 2], 0, start, 3, output_layer=layer)
    final, state, lengths = s2s.dynamic_decode(decoder, maximum_iterations=4)
    ids, h, steps = run([final.predicted_ids, state.cell_state.cell_state.h, lengths])
    assert ids.shape[0] == 2 and ids.shape[2] == 3 and h.shape == (2, 3, UNITS) and steps.shape == (2, 3)


def test_rows_are_repeated_for_each_beam():
    result = run(s2s.tile_batch(tf.constant([[1, 2], [3, 4]]), 2))
    assert result.tolist() == [[1, 2], [1, 2], [3, 4], [3, 4]]


def test_a_tree_is_followed_from_its_leaves():
    ids = np.array([[[1, 2, 3]], [[4, 5, 6]], [[7, 8, 9]], [[-1, -1, -1]]])
    parents = np.array([[[0, 0, 0]], [[0, 1, 1]], [[2, 1, 2]], [[-1, -1, -1]]])
    result = run(s2s.gather_tree(ids, parents, [3], 10))
    assert result[:, 0, 0].tolist() == [2, 6, 7, 10]
    assert result[:, 0, 1].tolist() == [2, 5, 8, 10]


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="start_tokens must be a vector"):
        s2s.GreedyEmbeddingHelper(tf.eye(3), 1, 0)
    with pytest.raises(TypeError, match="is not an RNNCell"):
        s2s.BasicDecoder(None, None, None)
    with pytest.raises(ValueError, match="sequence_length to be a vector"):
        s2s.TrainingHelper(truth(), 4)
