"""Cells with layer normalization."""

import numpy as np

import tensorfleet as tf


def test_gates_are_normalized_and_named(session):
    cell = tf.contrib.rnn.LayerNormBasicLSTMCell(4)
    x = tf.constant(np.random.RandomState(0).rand(2, 3, 5).astype(np.float32))
    outputs, state = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)
    names = {v.op.name.removeprefix("rnn/layer_norm_basic_lstm_cell/") for v in tf.trainable_variables()}
    parts = ("input", "transform", "forget", "output", "state")
    assert names == {"kernel", *(f"{p}/{w}" for p in parts for w in ("gamma", "beta"))}
    session.run(tf.global_variables_initializer())
    result, c = session.run([outputs, state.c])
    assert result.shape == (2, 3, 4)
    np.testing.assert_allclose(c.mean(1), 0, atol=1e-5)
    np.testing.assert_allclose(c.std(1), 1, atol=1e-3)


def test_without_normalization_it_is_an_lstm(session):
    cell = tf.contrib.rnn.LayerNormBasicLSTMCell(4, layer_norm=False)
    x = tf.ones([2, 3])
    with tf.variable_scope("lstm"):
        output, _ = cell(x, cell.zero_state(2, tf.float32), scope="basic_lstm_cell")
    with tf.variable_scope("lstm", reuse=True):
        basic = tf.nn.rnn_cell.BasicLSTMCell(4)
        expected, _ = basic(x, basic.zero_state(2, tf.float32))
    session.run(tf.global_variables_initializer())
    np.testing.assert_allclose(*session.run([output, expected]), rtol=1e-5)
