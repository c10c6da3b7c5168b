"""`tf.contrib.legacy_seq2seq`."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet_legacy.contrib.legacy_seq2seq import seq2seq as legacy_seq2seq
from tensorfleet_legacy.contrib.legacy_seq2seq import seq2seq_attention as legacy_attention
from tests.support.sessions import run_initialized

SYMBOLS, UNITS, LENGTH = 7, 5, 4


def _symbols(count=LENGTH):
    return [tf.placeholder(tf.int32, [None]) for _ in range(count)]


def _vectors():
    return [tf.constant(np.random.RandomState(t).randn(2, 3).astype(np.float32)) for t in range(LENGTH)]


def _names():
    return [v.op.name for v in tf.trainable_variables()]


def test_rnn_decoder_is_the_cell_step_by_step():
    cell = tf.contrib.rnn.GRUCell(UNITS)
    inputs, start = _vectors(), tf.ones([2, UNITS])
    outputs, state = legacy_seq2seq.rnn_decoder(inputs, start, cell, scope="decoder")
    expected = start
    for value in inputs:
        with tf.variable_scope("decoder", reuse=True):
            _, expected = cell(value, expected)
    assert _names()[0] == "decoder/gru_cell/gates/kernel"
    assert len(outputs) == LENGTH
    got, last, wanted = run_initialized([outputs[-1], state, expected])
    np.testing.assert_allclose(got, wanted, rtol=1e-6)
    np.testing.assert_allclose(last, wanted, rtol=1e-6)


def test_loop_function_replaces_all_inputs_but_the_first():
    times = []

    def loop(previous, time):
        times.append(time)
        return previous[:, :3]

    cell = tf.contrib.rnn.BasicRNNCell(UNITS)
    legacy_seq2seq.rnn_decoder(_vectors(), tf.zeros([2, UNITS]), cell, loop_function=loop)
    assert times == [1, 2, 3]


def test_encoder_and_decoder_share_weights_only_when_tied():
    legacy_seq2seq.basic_rnn_seq2seq(_vectors(), _vectors(), tf.contrib.rnn.BasicRNNCell(UNITS))
    assert len(_names()) == 4
    legacy_seq2seq.tied_rnn_seq2seq(_vectors(), _vectors(), tf.contrib.rnn.BasicRNNCell(UNITS))
    assert _names()[4:] == [
        f"combined_tied_rnn_seq2seq/tied_rnn_seq2seq/basic_rnn_cell/{part}" for part in ("kernel", "bias")
    ]


@pytest.mark.parametrize(
    "build", [legacy_seq2seq.embedding_rnn_seq2seq, legacy_attention.embedding_attention_seq2seq]
)
def test_a_tensor_chooses_whether_outputs_are_fed_back(build, session):
    tf.set_random_seed(3)
    source, target, fed = _symbols(), _symbols(3), tf.placeholder(tf.bool, [])
    cell = tf.contrib.rnn.BasicLSTMCell(UNITS)
    outputs, state = build(source, target, cell, SYMBOLS, SYMBOLS + 1, 6, feed_previous=fed)
    assert isinstance(state, tf.contrib.rnn.LSTMStateTuple)
    feeds = {p: [1, 2] for p in source + target}
    session.run(tf.global_variables_initializer())
    given = session.run(outputs, {**feeds, fed: False})
    back = session.run(outputs, {**feeds, fed: True})
    other = session.run(outputs, {**feeds, target[1]: [3, 4], fed: True})
    assert [o.shape for o in given] == [(2, SYMBOLS + 1)] * 3
    np.testing.assert_allclose(given[0], back[0], rtol=1e-5)
    np.testing.assert_allclose(other[2], back[2], rtol=1e-5)


def test_attention_reads_the_encoder(session):
    states = tf.placeholder(tf.float32, [None, 6, UNITS])
    cell = tf.contrib.rnn.GRUCell(UNITS)
    outputs, _ = legacy_attention.attention_decoder(
        _vectors(),
        tf.zeros([2, UNITS]),
        states,
        cell,
        output_size=9,
        num_heads=2,
        initial_state_attention=True,
    )
    session.run(tf.global_variables_initializer())
    nothing = session.run(outputs[0], {states: np.zeros([2, 6, UNITS])})
    something = session.run(outputs[0], {states: np.ones([2, 6, UNITS])})
    assert nothing.shape == (2, 9)
    assert not np.allclose(nothing, something)
    assert "attention_decoder/AttnW_1" in _names()


def test_decoding_needs_inputs_and_heads():
    cell, states = tf.contrib.rnn.GRUCell(UNITS), tf.zeros([2, 6, UNITS])
    with pytest.raises(ValueError, match="at least 1 input"):
        legacy_attention.attention_decoder([], tf.zeros([2, UNITS]), states, cell)
    with pytest.raises(ValueError, match="less than 1 heads"):
        legacy_attention.attention_decoder(_vectors(), tf.zeros([2, UNITS]), states, cell, num_heads=0)


def test_losses_average_over_time_and_batch():
    logits = [tf.constant([[0.0, 0.0], [0.0, 0.0]])] * 3
    targets = [tf.constant([0, 1])] * 3
    weights = [tf.constant([1.0, 1.0]), tf.constant([1.0, 0.0]), tf.constant([1.0, 0.0])]
    each = legacy_seq2seq.sequence_loss_by_example(logits, targets, weights)
    summed = legacy_seq2seq.sequence_loss_by_example(logits, targets, weights, average_across_timesteps=False)
    one = legacy_seq2seq.sequence_loss(logits, targets, weights)
    each, summed, one = run_initialized([each, summed, one])
    np.testing.assert_allclose(each, [np.log(2)] * 2, rtol=1e-6)
    np.testing.assert_allclose(summed, [3 * np.log(2), np.log(2)], rtol=1e-6)
    np.testing.assert_allclose(one, np.log(2), rtol=1e-6)
    with pytest.raises(ValueError, match="must be the same"):
        legacy_seq2seq.sequence_loss(logits, targets[:1], weights)


def test_buckets_share_one_model_which_learns():
    tf.set_random_seed(1)
    source, target = _symbols(), _symbols(3)
    weights = [tf.ones([2])] * 3

    def model(encoder_inputs, decoder_inputs):
        cell = tf.contrib.rnn.GRUCell(UNITS)
        attend = legacy_attention.embedding_attention_seq2seq
        return attend(encoder_inputs, decoder_inputs, cell, SYMBOLS, SYMBOLS, 6)

    build = legacy_seq2seq.model_with_buckets
    outputs, losses = build(source, target, target, weights, [(2, 2), (4, 3)], model)
    assert [len(o) for o in outputs] == [2, 3]
    assert len(_names()) == len(set(_names()))
    train = tf.train.AdamOptimizer(0.05).minimize(losses[1])
    feeds = {p: [1, 2] for p in source + target}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        before = session.run(losses, feeds)
        for _ in range(40):
            session.run(train, feeds)
        after = session.run(losses, feeds)
    assert all(b < 0.5 * a for a, b in zip(before, after, strict=True))
    with pytest.raises(ValueError, match="at least that of last bucket"):
        build(source[:1], target, target, weights, [(2, 2)], model)


def test_it_is_also_found_where_it_was_before_1_0():
    assert tf.nn.seq2seq.rnn_decoder is legacy_seq2seq.rnn_decoder


def _difference(labels, logits):
    return tf.cast(labels, tf.float32) - logits


@pytest.mark.parametrize(
    "function",
    [
        _difference,
        lambda labels, inputs: _difference(labels, inputs),  # as of 1.0
        lambda inputs, labels: _difference(labels, inputs),  # before
        lambda logit, target: _difference(target, logit),
        lambda **given: _difference(**given),
    ],
)
def test_a_loss_function_may_have_the_arguments_of_any_version(session, function):
    logits, target, weight = tf.constant([5.0]), tf.constant([7]), tf.constant([1.0])
    loss = tf.nn.seq2seq.sequence_loss_by_example(
        [logits], [target], [weight], softmax_loss_function=function
    )
    assert session.run(loss) == pytest.approx([2.0])
