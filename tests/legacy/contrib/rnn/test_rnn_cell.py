"""Cells for other kinds of recurrence, and layers of cells in both directions."""

import numpy as np
import pytest

import tensorfleet as tf

R = tf.contrib.rnn
X = np.random.RandomState(0).uniform(-1, 1, [3, 4]).astype(np.float32)
STATE = np.random.RandomState(1).uniform(-1, 1, [3, 4]).astype(np.float32)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def run(*fetches):
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        return s.run(fetches)


def named(end):
    return next(v for v in tf.global_variables() if v.op.name.endswith(end))


@pytest.mark.parametrize("proj", [None, 2])
def test_nas_cell_combines_eight_gates(proj):
    cell = R.NASCell(4, num_proj=proj, use_bias=True)
    assert cell.state_size == (4, proj or 4)
    m = STATE[:, : proj or 4]
    output, state = cell(tf.constant(X), R.LSTMStateTuple(tf.constant(STATE), tf.constant(m)))
    got, (c, h), w, u, *p = run(output, state, cell.kernel, cell.recurrent_kernel, *cell.weights[3:])
    i, r = np.split(X @ w, 8, 1), np.split(m @ u, 8, 1)
    inner = np.tanh(sigmoid(i[0] + r[0]) * np.maximum(i[1] + r[1], 0))
    other = np.tanh(sigmoid(i[2] + r[2]) + np.maximum(i[3] * r[3], 0))
    expected_c = np.tanh(inner + STATE) * other
    third = np.tanh(np.tanh(i[4] + r[4]) * sigmoid(i[5] + r[5]))
    fourth = sigmoid(np.tanh(i[6] + r[6]) + sigmoid(i[7] + r[7]))
    expected = np.tanh(expected_c * np.tanh(third + fourth))
    np.testing.assert_allclose(c, expected_c, rtol=1e-5)
    np.testing.assert_allclose(got, expected @ p[0] if proj else expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(got, h)


def test_simple_and_update_gate_cells():
    (sru, c), (ug, new) = (
        cell(tf.constant(X), tf.constant(STATE)) for cell in (R.SRUCell(4), R.UGRNNCell(4))
    )
    sru, c, ug, new, w, v = run(sru, c, ug, new, named("sru_cell/kernel"), named("ugrnn_cell/kernel"))
    result, forget, reset, _ = np.split(X @ w, 4, 1)
    forget, reset = sigmoid(forget), sigmoid(reset)
    np.testing.assert_allclose(c, forget * STATE + (1 - forget) * result, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(sru, reset * np.tanh(c) + (1 - reset) * X, rtol=1e-4, atol=1e-6)
    gate, result = np.split(np.hstack([X, STATE]) @ v, 2, 1)
    gate = sigmoid(gate + 1)
    np.testing.assert_allclose(ug, gate * STATE + (1 - gate) * np.tanh(result), rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(ug, new)


def test_convolutional_cell_with_a_window_of_one_is_an_lstm_at_each_place():
    cell = R.ConvLSTMCell(2, [1, 3, 4], 2, [1, 1], skip_connection=True)
    outputs, state = tf.nn.dynamic_rnn(cell, tf.constant(X[None, None, None]), dtype=tf.float32)
    assert outputs.shape.as_list() == [1, 1, 1, 3, 6]
    got, c, w = run(outputs, state.c, named("conv_lstm_cell/kernel"))
    i, new, _, o = np.split(X @ w[0, 0, :4], 4, 1)
    expected = sigmoid(i) * np.tanh(new)
    np.testing.assert_allclose(c[0, 0], expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(got[0, 0, 0, :, :2], np.tanh(expected) * sigmoid(o), rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(got[0, 0, 0, :, 2:], X)
    with pytest.raises(ValueError, match="Invalid input_shape"):
        R.Conv1DLSTMCell(input_shape=[2, 3, 4], output_channels=1, kernel_shape=[1])


def test_fused_cells_run_backwards():
    steps = tf.constant(np.stack([X, 2 * X]))
    lengths = [1, 2, 2]
    forwards = R.FusedRNNCellAdaptor(R.GRUCell(2), use_dynamic_rnn=True)
    with tf.variable_scope("a"):
        plain, _ = forwards(tf.reverse_sequence(steps, lengths, 0, batch_axis=1), dtype=tf.float32)
    with tf.variable_scope("a", reuse=True):
        turned, state = R.TimeReversedFusedRNN(forwards)(steps, dtype=tf.float32, sequence_length=lengths)
    plain, turned, state = run(plain, turned, state)
    np.testing.assert_allclose(turned[0, 1:], plain[1, 1:], rtol=1e-5)
    np.testing.assert_allclose(turned[0, 0], plain[0, 0], rtol=1e-5)
    np.testing.assert_allclose(state, turned[0], rtol=1e-5)
    assert not turned[1, 0].any()


def test_layers_in_both_directions_see_what_both_directions_gave():
    def cells():
        return [R.GRUCell(2), R.GRUCell(3)]

    steps = tf.constant(np.stack([X, 2 * X]))
    outputs, fw, bw = R.stack_bidirectional_dynamic_rnn(
        cells(), cells(), steps, dtype=tf.float32, time_major=True
    )
    listed, fw2, bw2 = R.stack_bidirectional_rnn(
        cells(), cells(), tf.unstack(steps), dtype=tf.float32, scope="l"
    )
    by_name = {v.op.name: v for v in tf.global_variables()}
    copies = [
        by_name[f"l/{'/'.join(n.split('/')[1:])}".replace("bidirectional_rnn/", "")].assign(v)
        for n, v in by_name.items()
        if n.startswith("stack_bidirectional_rnn/cell_")
    ]
    assert len(copies) == 16
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        s.run(copies)
        one, other = s.run(((outputs, fw, bw), (tf.stack(listed), fw2, bw2)))
    assert one[0].shape == (2, 3, 6)
    for a, b in zip(
        tf.contrib.framework.nest.flatten(one), tf.contrib.framework.nest.flatten(other), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-5)


@pytest.mark.parametrize(
    ("cells", "states", "complaint"),
    [
        (([], [1]), None, "at least one fw cell"),
        (([1], (1,)), None, "cells_bw must be a list"),
        (([1, 2], [1]), None, "same depth"),
        (([1], [1]), [1, 2], "initial_states_fw must be a list"),
    ],
)
def test_layers_that_do_not_fit_are_refused(cells, states, complaint):
    for stacked in (R.stack_bidirectional_rnn, R.stack_bidirectional_dynamic_rnn):
        with pytest.raises(ValueError, match=complaint):
            stacked(*cells, [X], initial_states_fw=states, dtype=tf.float32)
