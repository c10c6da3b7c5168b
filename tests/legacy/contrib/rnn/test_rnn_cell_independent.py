"""Cells each unit of which sees no other unit's state."""

import numpy as np
import pytest

import tensorfleet as tf

R = tf.contrib.rnn
X = np.random.RandomState(0).uniform(-1, 1, [3, 4]).astype(np.float32)
H = np.random.RandomState(1).uniform(-1, 1, [3, 2]).astype(np.float32)
C = np.random.RandomState(2).uniform(-1, 1, [3, 2]).astype(np.float32)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def run(cell, state):
    """The step's values, and those of the cell's variables by name."""
    step = cell(tf.constant(X), state)
    prefix = f"{cell.scope_name}/"
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        values = s.run({v.op.name.removeprefix(prefix): v for v in cell.weights})
        return *s.run(step), values


def test_independent_units():
    output, state, w = run(R.IndRNNCell(2), tf.constant(H))
    assert {n: v.shape for n, v in w.items()} == {"kernel_w": (4, 2), "kernel_u": (1, 2), "bias": (2,)}
    assert (abs(w["kernel_u"]) <= 1).all()
    np.testing.assert_allclose(output, np.tanh(X @ w["kernel_w"] + H * w["kernel_u"]), rtol=1e-5)
    np.testing.assert_array_equal(output, state)


def test_independent_units_of_a_gru():
    output, state, w = run(R.IndyGRUCell(2), tf.constant(H))
    gates = sigmoid(X @ w["gates/kernel_w"] + np.tile(H, 2) * w["gates/kernel_u"] + 1)
    r, u = np.split(gates, 2, 1)
    result = np.tanh(X @ w["candidate/kernel_w"] + r * H * w["candidate/kernel_u"])
    np.testing.assert_allclose(output, u * H + (1 - u) * result, rtol=1e-5)
    np.testing.assert_array_equal(output, state)
    np.testing.assert_array_equal(w["gates/bias"], np.ones(4))


def test_independent_units_of_an_lstm():
    cell = R.IndyLSTMCell(2, forget_bias=0.5, bias_initializer=tf.constant_initializer(0.25))
    assert cell.state_size == (2, 2)
    output, state, w = run(cell, R.LSTMStateTuple(tf.constant(C), tf.constant(H)))
    i, j, f, o = np.split(X @ w["kernel_w"] + np.tile(H, 4) * w["kernel_u"] + 0.25, 4, 1)
    c = C * sigmoid(f + 0.5) + sigmoid(i) * np.tanh(j)
    np.testing.assert_allclose(state.c, c, rtol=1e-5)
    np.testing.assert_allclose(output, np.tanh(c) * sigmoid(o), rtol=1e-5)


@pytest.mark.parametrize("make", [R.IndRNNCell, R.IndyGRUCell, R.IndyLSTMCell])
def test_they_run_over_sequences(make, session):
    outputs, _ = tf.nn.dynamic_rnn(make(5), tf.constant(np.tile(X[:, None], [1, 4, 1])), dtype=tf.float32)
    session.run(tf.global_variables_initializer())
    assert session.run(outputs).shape == (3, 4, 5)
