"""Recurrent cells against their equations; networks of them; what they refuse."""

import numpy as np
import pytest

import tensorfleet as tf

X = np.random.RandomState(0).randn(4, 2).astype(np.float32)
C, H = (np.random.RandomState(i).randn(4, 3).astype(np.float32) for i in (1, 2))


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as result:
        tf.set_random_seed(1)
        yield result


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def run(fetches, feeds=None):
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        weights = {v.op.name: s.run(v) for v in tf.global_variables()}
        return s.run(fetches, feeds), weights


def test_basic_rnn_cell():
    out, state = tf.nn.rnn_cell.BasicRNNCell(3)(tf.constant(X), tf.constant(H))
    (a, b), w = run([out, state])
    wanted = np.tanh(np.concatenate([X, H], 1) @ w["basic_rnn_cell/kernel"] + w["basic_rnn_cell/bias"])
    np.testing.assert_allclose(a, wanted, rtol=1e-5)
    assert np.array_equal(a, b)


def test_gru_cell():
    out, _ = tf.nn.rnn_cell.GRUCell(3)(tf.constant(X), tf.constant(H))
    got, w = run(out)
    gates = sigmoid(np.concatenate([X, H], 1) @ w["gru_cell/gates/kernel"] + w["gru_cell/gates/bias"])
    r, u = gates[:, :3], gates[:, 3:]
    c = np.tanh(np.concatenate([X, r * H], 1) @ w["gru_cell/candidate/kernel"] + w["gru_cell/candidate/bias"])
    np.testing.assert_allclose(got, u * H + (1 - u) * c, rtol=1e-4, atol=1e-6)
    assert w["gru_cell/gates/bias"].tolist() == [1] * 6


@pytest.mark.parametrize("name", ["basic", "full"])
def test_lstm_cells(name):
    kind = tf.nn.rnn_cell.BasicLSTMCell if name == "basic" else tf.nn.rnn_cell.LSTMCell
    out, (c, h) = kind(3, forget_bias=0.5)(tf.constant(X), tf.nn.rnn_cell.LSTMStateTuple(C, H))
    (o, new_c, new_h), w = run([out, c, h])
    (kernel,) = (v for k, v in w.items() if k.endswith("kernel"))
    i, j, f, g = np.split(np.concatenate([X, H], 1) @ kernel, 4, 1)
    wanted = C * sigmoid(f + 0.5) + sigmoid(i) * np.tanh(j)
    np.testing.assert_allclose(new_c, wanted, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(new_h, np.tanh(wanted) * sigmoid(g), rtol=1e-4, atol=1e-6)
    assert np.array_equal(o, new_h)


def test_lstm_with_everything():
    cell = tf.nn.rnn_cell.LSTMCell(
        3, use_peepholes=True, cell_clip=0.4, num_proj=2, proj_clip=0.1, initializer=tf.ones_initializer()
    )
    assert cell.state_size == (3, 2)
    out, state = cell(tf.constant(X), cell.zero_state(4, tf.float32))
    (o, c), w = run([out, state.c])
    assert sorted(w) == [
        f"lstm_cell/{n}" for n in ("bias", "kernel", "projection/kernel", "w_f_diag", "w_i_diag", "w_o_diag")
    ]
    assert o.shape == (4, 2)
    assert np.abs(c).max() <= 0.4 + 1e-6
    assert np.abs(o).max() <= 0.1 + 1e-6


def test_a_concatenated_state():
    cell = tf.nn.rnn_cell.BasicLSTMCell(3, state_is_tuple=False)
    assert cell.state_size == 6
    _, state = cell(tf.constant(X), tf.constant(np.concatenate([C, H], 1)))
    assert run(state)[0].shape == (4, 6)


def test_block_cells_are_the_same_as_the_written_out_ones():
    block = tf.contrib.rnn.LSTMBlockCell(3)
    out, (c, h) = block(tf.constant(X), (tf.constant(C), tf.constant(H)))
    (o, new_c, new_h), w = run([out, c, h])
    i, j, f, g = np.split(np.concatenate([X, H], 1) @ w["lstm_cell/kernel"], 4, 1)
    wanted = C * sigmoid(f + 1.0) + sigmoid(i) * np.tanh(j)
    np.testing.assert_allclose(new_c, wanted, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(o, np.tanh(wanted) * sigmoid(g), rtol=1e-4, atol=1e-6)
    assert np.array_equal(o, new_h)


def test_the_fused_lstm_is_the_block_cell_step_by_step():
    x = tf.constant(np.random.RandomState(5).randn(5, 4, 2).astype(np.float32))
    fused = tf.contrib.rnn.LSTMBlockFusedCell(3, name="same")
    outs, (c, h) = fused(x, dtype=tf.float32, sequence_length=[5, 2, 0, 3])
    cell = tf.contrib.rnn.LSTMBlockCell(3, name="same", reuse=True)
    wanted, state = tf.nn.dynamic_rnn(
        cell,
        x,
        dtype=tf.float32,
        sequence_length=[5, 2, 0, 3],
        time_major=True,
        scope=tf.get_variable_scope(),
    )
    grads = [tf.gradients(tf.reduce_sum(o * o), tf.trainable_variables()[0])[0] for o in (outs, wanted)]
    result, _ = run([outs, c, h, wanted, state.c, state.h, *grads])
    for a, b in [(0, 3), (1, 4), (2, 5), (6, 7)]:
        np.testing.assert_allclose(result[a], result[b], rtol=1e-4, atol=1e-6)


def test_stacked_cells_have_their_own_variables():
    cell = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.GRUCell(3), tf.nn.rnn_cell.BasicLSTMCell(2)])
    outs, state = tf.nn.dynamic_rnn(cell, tf.ones([4, 5, 2]), dtype=tf.float32)
    names = [v.op.name for v in tf.trainable_variables()]
    assert names[0] == "rnn/multi_rnn_cell/cell_0/gru_cell/gates/kernel"
    assert names[-1] == "rnn/multi_rnn_cell/cell_1/basic_lstm_cell/bias"
    assert len(cell.trainable_weights) == 6
    assert outs.shape.as_list() == [4, 5, 2]
    (o, (a, b)), _ = run([outs, state])
    assert a.shape == (4, 3)
    np.testing.assert_allclose(o[:, -1], b.h)


def test_the_same_cell_shares_its_variables():
    cell = tf.nn.rnn_cell.BasicRNNCell(3)
    state = cell.zero_state(4, tf.float32)
    for _ in range(3):
        _, state = cell(tf.constant(X), state)
    assert len(tf.trainable_variables()) == 2
    with pytest.raises(ValueError, match="already exists"):
        tf.nn.rnn_cell.BasicRNNCell(3, name="basic_rnn_cell", reuse=False)(
            tf.constant(X), tf.zeros([4, 3]), scope="basic_rnn_cell"
        )


def test_a_cell_of_ones_own():
    class Doubling(tf.nn.rnn_cell.RNNCell):
        @property
        def state_size(self):
            return 2

        @property
        def output_size(self):
            return 2

        def call(self, inputs, state):
            w = tf.get_variable("w", [2], initializer=tf.ones_initializer())
            return inputs * w, state * 2.0 + 1.0

    cell = Doubling()
    outs, state = tf.nn.dynamic_rnn(cell, tf.ones([4, 5, 2]), dtype=tf.float32)
    assert [v.op.name for v in tf.trainable_variables()] == ["rnn/doubling/w"]
    assert len(cell.trainable_variables) == 1
    assert run(state)[0].tolist() == [[31, 31]] * 4


def test_dropout_drops_only_what_it_is_told():
    cell = tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.BasicRNNCell(50), output_keep_prob=0.5, seed=3)
    out, state = cell(tf.ones([4, 2]), tf.ones([4, 50]))
    (o, s), _ = run([out, state])
    assert 0.3 < (o == 0).mean() < 0.7
    assert (s != 0).all()
    with pytest.raises(ValueError, match="must be between 0 and 1"):
        tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.BasicRNNCell(5), input_keep_prob=0.0)


def test_variational_dropout_drops_the_same_units_in_every_step():
    cell = tf.nn.rnn_cell.DropoutWrapper(
        tf.nn.rnn_cell.BasicRNNCell(40), output_keep_prob=0.5, variational_recurrent=True, dtype=tf.float32
    )
    outs, _ = tf.nn.dynamic_rnn(cell, tf.ones([3, 6, 2]), dtype=tf.float32)
    got, _ = run(outs)
    dropped = got == 0
    assert dropped.any()
    assert (dropped == dropped[:1, :1]).all()


def test_the_memory_of_an_lstm_is_not_dropped():
    inner = tf.nn.rnn_cell.BasicLSTMCell(50)
    cell = tf.nn.rnn_cell.DropoutWrapper(inner, state_keep_prob=0.5)
    _, state = cell(tf.ones([4, 2]), inner.zero_state(4, tf.float32))
    (c, h), _ = run([state.c, state.h])
    assert (c != 0).all()
    assert (h == 0).any()


def test_residuals_and_devices():
    inner = tf.nn.rnn_cell.BasicRNNCell(2, activation=lambda x: x * 0.0)
    out, _ = tf.nn.rnn_cell.ResidualWrapper(inner)(tf.constant(X), tf.zeros([4, 2]))
    assert np.array_equal(run(out)[0], X)
    placed, _ = tf.nn.rnn_cell.DeviceWrapper(tf.nn.rnn_cell.GRUCell(2), "/cpu:0")(
        tf.constant(X), tf.zeros([4, 2])
    )
    assert placed.device == "/device:CPU:0"


def test_dropout_in_a_loop_differs_from_step_to_step():
    cell = tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.BasicRNNCell(40), output_keep_prob=0.5)
    outs, _ = tf.nn.dynamic_rnn(cell, tf.ones([3, 6, 2]), dtype=tf.float32)
    got, _ = run(outs)
    assert not ((got == 0) == (got == 0)[:, :1]).all()


def test_a_network_learns():
    x, y = tf.placeholder(tf.float32, [8, 6, 2]), tf.placeholder(tf.float32, [8, 1])
    _, state = tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(8), x, dtype=tf.float32)
    loss = tf.reduce_mean(tf.square(tf.layers.dense(state.h, 1) - y))
    train = tf.train.AdamOptimizer(0.05).minimize(loss)
    given = np.random.RandomState(0).randn(8, 6, 2).astype(np.float32)
    feeds = {x: given, y: given.sum((1, 2))[:, None] / 5}
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        first = s.run(loss, feeds)
        for _ in range(60):
            s.run(train, feeds)
        assert s.run(loss, feeds) < first / 10


def test_arguments_are_checked():
    cell = tf.nn.rnn_cell.BasicRNNCell(3)
    with pytest.raises(TypeError, match="is not an RNNCell"):
        tf.nn.dynamic_rnn(3, tf.ones([1, 2, 3]), dtype=tf.float32)
    with pytest.raises(ValueError, match="If there is no initial_state, you must give a dtype"):
        tf.nn.dynamic_rnn(cell, tf.ones([1, 2, 3]))
    with pytest.raises(ValueError, match="sequence_length must be a vector"):
        tf.nn.dynamic_rnn(cell, tf.ones([1, 2, 3]), sequence_length=[[1]], dtype=tf.float32)
    with pytest.raises(ValueError, match="inputs must not be empty"):
        tf.nn.static_rnn(cell, [], dtype=tf.float32)
    with pytest.raises(TypeError, match="inputs must be a sequence"):
        tf.nn.static_rnn(cell, tf.ones([2, 2]), dtype=tf.float32)
    with pytest.raises(ValueError, match="Must specify at least one cell"):
        tf.nn.rnn_cell.MultiRNNCell([])
    with pytest.raises(TypeError, match="cells must be a list or tuple"):
        tf.nn.rnn_cell.MultiRNNCell(cell)
    with pytest.raises(ValueError, match="Expected inputs.shape\\[-1\\] to be known"):
        cell(tf.placeholder(tf.float32, [2, None]), tf.zeros([2, 3]))


def test_a_wrong_number_of_lengths_fails_when_run():
    lengths = tf.placeholder(tf.int32, [None])
    outs, _ = tf.nn.dynamic_rnn(
        tf.nn.rnn_cell.BasicRNNCell(3), tf.ones([2, 3, 1]), sequence_length=lengths, dtype=tf.float32
    )
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match="Expected shape for Tensor"):
            s.run(outs, {lengths: [1, 2, 3]})


def test_a_saved_state_goes_on():
    class Saver:
        saved: dict = {}

        def state(self, name):
            return tf.ones([4, 3])

        def save_state(self, name, value):
            self.saved[name] = value
            return value

    saver = Saver()
    outs, state = tf.nn.static_state_saving_rnn(
        tf.nn.rnn_cell.BasicRNNCell(3), [tf.constant(X)] * 2, saver, "s"
    )
    (o, s, kept), _ = run([outs[-1], state, saver.saved["s"]])
    assert np.array_equal(o, s)
    assert np.array_equal(s, kept)


def test_cells_refuse_integers_and_a_batch_that_is_not_the_inputs():
    with tf.Graph().as_default():
        cell = tf.nn.rnn_cell.GRUCell(2)
        with pytest.raises(ValueError, match="RNN cell only supports floating"):
            cell(tf.zeros([3, 4], tf.int32), tf.zeros([3, 2]))
        inputs = tf.placeholder(tf.float32, [None, 4])
        for size in (5, tf.constant(5)):
            with pytest.raises(ValueError, match="batch size from input tensor is different"):
                cell.get_initial_state(inputs, size)
        with pytest.raises(ValueError, match="dtype from input tensor is different"):
            cell.get_initial_state(inputs, dtype=tf.float64)
        assert cell.get_initial_state(inputs).shape.as_list() == [None, 2]
        assert cell.get_initial_state(tf.zeros([3, 4]), 3, tf.float32).shape == [3, 2]


def test_wrapped_cells_are_made_again_from_their_description():
    wrapped = tf.nn.rnn_cell.DeviceWrapper(tf.nn.rnn_cell.LSTMCell(3), "/cpu:0")
    result = wrapped.get_config()
    assert result["cell"]["class_name"] == "LSTMCell" and result["cell"]["config"]["num_units"] == 3
    again = tf.nn.rnn_cell.DeviceWrapper.from_config(result)
    assert again.state_size == wrapped.state_size
    given = {**result, "cell": tf.nn.rnn_cell.GRUCell(5)}
    assert tf.nn.rnn_cell.DeviceWrapper.from_config(given).output_size == 5


def test_what_is_emitted_may_have_a_rank_that_is_fed(session):
    cell, rank = tf.nn.rnn_cell.BasicRNNCell(3), tf.placeholder(tf.int32)

    def loop(time, output, state, _):
        size = [] if output is None else [2]
        emitted = tf.ones(tf.concat([size, tf.reshape(rank, [-1])], 0), tf.int64)
        following = cell.zero_state(2, tf.float32) if output is None else state
        return tf.fill([2], time >= 4), tf.zeros([2, 1]), following, emitted, None

    outputs, _, _ = tf.nn.raw_rnn(cell, loop)
    result = outputs.stack()
    session.run(tf.global_variables_initializer())
    assert session.run(result, {rank: 3}).shape == (4, 2, 3)
