"""Cells with few gates, and a cell with a memory."""

import numpy as np
import pytest

import tensorfleet as tf

R = tf.contrib.rnn
RANDOM = np.random.RandomState(0)
X = RANDOM.normal(size=[2, 5, 3]).astype(np.float32)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def run(fetches):
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(fetches)


def test_a_minimal_cell_mixes_its_state_and_its_input():
    cell = R.MinimalRNNCell(4)
    outputs, state = tf.nn.dynamic_rnn(cell, tf.constant(X), dtype=tf.float32)
    assert [v.op.name for v in tf.trainable_variables()] == [
        "rnn/minimal_rnn_cell/kernel",
        "rnn/minimal_rnn_cell/bias",
    ]
    result, last, kernel, bias = run([outputs, state, *tf.trainable_variables()])
    h = np.zeros([2, 4])
    for t in range(5):
        z = np.tanh(X[:, t] @ kernel[:3])
        u = sigmoid(np.concatenate([z, h], 1) @ kernel[3:] + bias)
        h = u * h + (1 - u) * z
        np.testing.assert_allclose(result[:, t], h, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(last, result[:, -1])


def test_a_chaos_free_cell_has_two_gates():
    cell = R.CFNCell(4)
    outputs, _ = tf.nn.dynamic_rnn(cell, tf.constant(X), dtype=tf.float32)
    result, kernel, recurrent, bias = run([outputs, *tf.trainable_variables()])
    h = np.zeros([2, 4])
    for t in range(5):
        theta, eta = np.split(sigmoid(h @ recurrent + X[:, t] @ kernel[:, :8] + bias), 2, 1)
        h = theta * np.tanh(h) + (1 - eta) * np.tanh(X[:, t] @ kernel[:, 8:])
        np.testing.assert_allclose(result[:, t], h, rtol=1e-4, atol=1e-6)


def machine(**kwargs):
    return R.NTMCell(tf.nn.rnn_cell.LSTMCell(6), 8, 5, read_head_num=1, write_head_num=1, **kwargs)


def test_a_head_looks_at_one_place_after_another():
    """One step, by hand: content, interpolation, shift and sharpening as in the article."""
    cell = machine(output_dim=4)
    state = cell.zero_state(2, tf.float32)
    output, after = cell(tf.constant(X[:, 0]), state)
    assert output.shape == [2, 4]
    values = {v.op.name.split("/")[-1]: v for v in tf.trainable_variables() if "lstm_cell" not in v.op.name}
    inner = after.controller_state.h
    result, weights, memory, read, h, v = run(
        [output, after.w_list, after.M, after.read_vector_list, inner, values]
    )
    outcome = h @ v["parameters_kernel"] + v["parameters_bias"]
    before = np.exp(v["initial_address_weights_0"])
    before /= before.sum()
    head, m = outcome[:, :11], np.full([8, 5], 1e-6)
    key = np.tanh(head[:, :5])
    alike = key @ m.T / (np.linalg.norm(m, axis=1) * np.linalg.norm(key, axis=1)[:, None] + 1e-8)
    content = np.exp(np.log1p(np.exp(head[:, 5:6])) * alike)
    content /= content.sum(1, keepdims=True)
    g = sigmoid(head[:, 6:7])
    mixed = g * content + (1 - g) * before
    shift = np.exp(head[:, 7:10])
    shift /= shift.sum(1, keepdims=True)
    moved = sum(shift[:, i : i + 1] * np.roll(mixed, s, 1) for i, s in enumerate((0, 1, -1)))
    sharp = moved ** (np.log1p(np.exp(head[:, 10:11])) + 1)
    sharp /= sharp.sum(1, keepdims=True)
    np.testing.assert_allclose(weights[0], sharp, rtol=1e-4)
    np.testing.assert_allclose(read[0], sharp @ m, rtol=1e-4)
    erase, add = sigmoid(outcome[:, 22:27]), np.tanh(outcome[:, 27:])
    w = weights[1][:, :, None]
    np.testing.assert_allclose(memory, m * (1 - w * erase[:, None]) + w * add[:, None], rtol=1e-4, atol=1e-8)
    joined = np.concatenate([h, read[0]], 1)
    np.testing.assert_allclose(result, joined @ v["output_kernel"] + v["output_bias"], rtol=1e-4, atol=1e-6)


def test_a_machine_runs_over_sequences_and_learns():
    cell = machine(output_dim=2)
    state, outputs = cell.zero_state(2, tf.float32), []
    for t in range(4):
        output, state = cell(tf.constant(X[:, t]), state)
        outputs.append(output)
    assert len(tf.trainable_variables()) == 10
    loss = tf.reduce_mean(tf.square(outputs[-1] - 1.0))
    train = tf.train.AdamOptimizer(0.05).minimize(loss)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        first = sess.run(loss)
        for _ in range(15):
            sess.run(train)
        assert sess.run(loss) < first / 2
    with pytest.raises(TypeError, match="NTM RNN controller cell"):
        R.NTMCell("lstm", 8, 5, 1, 1)
