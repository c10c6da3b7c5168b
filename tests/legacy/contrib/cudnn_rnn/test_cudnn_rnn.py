"""The LSTM of cuDNN."""

import numpy as np
import pytest

import tensorfleet as tf

C = tf.contrib.cudnn_rnn
X = np.random.RandomState(0).uniform(-1, 1, [6, 2, 3]).astype(np.float32)


def test_layers_are_those_of_compatible_cells(session):
    outputs, (h, c) = C.CudnnLSTM(2, 4, name="lstm")(tf.constant(X))
    names = [v.op.name for v in tf.global_variables()]
    assert names[:2] == [
        f"lstm/rnn/multi_rnn_cell/cell_0/cudnn_compatible_lstm_cell/{w}" for w in ("kernel", "bias")
    ]
    with tf.variable_scope("lstm", reuse=True):
        cells = tf.nn.rnn_cell.MultiRNNCell([C.CudnnCompatibleLSTMCell(4) for _ in range(2)])
        other, states = tf.nn.dynamic_rnn(cells, tf.constant(X), time_major=True, dtype=tf.float32)
    assert len(tf.global_variables()) == 4
    session.run(tf.global_variables_initializer())
    got, last, cell, expected, after = session.run([outputs, h, c, other, states])
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(last, [s.h for s in after], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(cell, [s.c for s in after], rtol=1e-5, atol=1e-6)


def test_both_directions(session):
    outputs, (h, _) = C.CudnnLSTM(2, 4, direction="bidirectional", name="lstm")(tf.constant(X))
    assert outputs.shape.as_list() == [6, 2, 8]
    with tf.variable_scope("lstm", reuse=True):
        ways = [[C.CudnnCompatibleLSTMCell(4) for _ in range(2)] for _ in range(2)]
        other, _, _ = tf.contrib.rnn.stack_bidirectional_dynamic_rnn(
            *ways, tf.constant(X), dtype=tf.float32, time_major=True
        )
    session.run(tf.global_variables_initializer())
    got, last, expected = session.run([outputs, h, other])
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(last[3], got[0, :, 4:], rtol=1e-5)


def test_states_go_on_and_what_lies_between_layers_is_dropped(session):
    layer = C.CudnnLSTM(2, 4, dropout=0.5)
    whole, _ = layer(tf.constant(X), training=False)
    first, state = layer(tf.constant(X[:3]), training=False)
    second, _ = layer(tf.constant(X[3:]), initial_state=state, training=False)
    dropped, _ = layer(tf.constant(X), training=True)
    session.run(tf.global_variables_initializer())
    whole, first, second, dropped = session.run([whole, first, second, dropped])
    np.testing.assert_allclose(np.concatenate([first, second]), whole, rtol=1e-5, atol=1e-6)
    assert not np.allclose(dropped, whole)
    with pytest.raises(ValueError, match="Invalid direction"):
        C.CudnnLSTM(1, 2, direction="up")


def test_a_gru_is_that_of_compatible_cells(session):
    outputs, (h,) = C.CudnnGRU(2, 4, direction="bidirectional", name="gru")(tf.constant(X))
    assert outputs.shape.as_list() == [6, 2, 8]
    with tf.variable_scope("gru", reuse=True):
        ways = [[C.CudnnCompatibleGRUCell(4) for _ in range(2)] for _ in range(2)]
        other, _, _ = tf.contrib.rnn.stack_bidirectional_dynamic_rnn(
            *ways, tf.constant(X), dtype=tf.float32, time_major=True
        )
    assert len(tf.global_variables()) == 24
    session.run(tf.global_variables_initializer())
    for v in tf.global_variables():
        v.load(np.random.RandomState(len(v.op.name)).uniform(-1, 1, v.shape.as_list()), session)
    got, last, expected = session.run([outputs, h, other])
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(last[2], got[-1, :, :4], rtol=1e-5)


def test_one_step_of_a_gru_resets_after_the_weights(session):
    outputs, _ = C.CudnnGRU(1, 4, name="gru")(tf.constant(X[:1]), initial_state=(tf.ones([1, 2, 4]),))
    session.run(tf.global_variables_initializer())
    for i, v in enumerate(tf.global_variables()):
        v.load(np.random.RandomState(i).uniform(-1, 1, v.shape.as_list()), session)
    w = {v.op.name.split("gru_cell/")[1]: session.run(v) for v in tf.global_variables()}
    x, h = X[0], np.ones([2, 4])
    gates = 1 / (1 + np.exp(-(np.concatenate([x, h], 1) @ w["gates/kernel"] + w["gates/bias"])))
    r, u = np.split(gates, 2, 1)
    kept = h @ w["candidate/hidden_projection/kernel"] + w["candidate/hidden_projection/bias"]
    own = x @ w["candidate/input_projection/kernel"] + w["candidate/input_projection/bias"]
    np.testing.assert_allclose(session.run(outputs)[0], (1 - u) * np.tanh(own + r * kept) + u * h, rtol=1e-4)


@pytest.mark.parametrize(("kind", "activation"), [("CudnnRNNTanh", tf.tanh), ("CudnnRNNRelu", tf.nn.relu)])
def test_plain_layers_are_those_of_basic_cells(session, kind, activation):
    outputs, (h,) = getattr(C, kind)(2, 4, name="plain")(tf.constant(X))
    with tf.variable_scope("plain", reuse=True):
        cells = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.BasicRNNCell(4, activation) for _ in range(2)])
        other, states = tf.nn.dynamic_rnn(cells, tf.constant(X), time_major=True, dtype=tf.float32)
    session.run(tf.global_variables_initializer())
    got, last, expected, after = session.run([outputs, h, other, states])
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(last, after, rtol=1e-5, atol=1e-6)
