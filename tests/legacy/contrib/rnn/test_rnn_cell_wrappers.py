"""Cells around other cells."""

import numpy as np
import pytest

import tensorfleet as tf

R = tf.contrib.rnn
X = np.random.RandomState(0).uniform(-1, 1, [3, 4]).astype(np.float32)


def run(*fetches):
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        return s.run(fetches)


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


@pytest.mark.parametrize("in_tuple", [False, True])
def test_attention_looks_back_at_the_last_outputs(in_tuple):
    random = np.random.RandomState(3)
    old, seen, memory = (random.uniform(-1, 1, [3, n]).astype(np.float32) for n in (2, 2, 10))
    cell = R.AttentionCellWrapper(R.BasicRNNCell(2), 5, attn_vec_size=3, state_is_tuple=in_tuple)
    assert cell.state_size == ((2, 2, 10) if in_tuple else 14)
    state = [tf.constant(part) for part in (old, seen, memory)]
    output, after = cell(tf.constant(X), tuple(state) if in_tuple else tf.concat(state, 1))
    prefix = f"{cell.scope_name}/"
    variables = {v.op.name.removeprefix(prefix): v for v in tf.global_variables()}
    output, after, w = run(output, after, variables)
    hidden = np.tanh(
        np.hstack([np.hstack([X, seen]) @ w["kernel"] + w["bias"], old]) @ w["basic_rnn_cell/kernel"]
    )
    known = memory.reshape([3, 5, 2])
    asked = hidden @ w["attention/kernel"] + w["attention/bias"]
    score = (w["attention/attn_v"] * np.tanh(known @ w["attention/attn_w"][0, 0] + asked[:, None])).sum(2)
    result = (softmax(score)[:, :, None] * known).sum(1)
    expected = np.hstack([hidden, result]) @ w["attn_output_projection/kernel"]
    np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-6)
    whole = np.hstack([hidden, result, np.hstack([memory[:, 2:], expected])])
    np.testing.assert_allclose(np.hstack(after) if in_tuple else after, whole, rtol=1e-4, atol=1e-6)


def test_attention_is_refused_where_it_cannot_work():
    with pytest.raises(TypeError, match="cell"):
        R.AttentionCellWrapper(None, 0)
    with pytest.raises(ValueError, match="attn_length should be greater than zero, got -1"):
        R.AttentionCellWrapper(R.BasicLSTMCell(8), -1)
    with pytest.raises(
        ValueError, match="Cell returns tuple of states, but the flag state_is_tuple is not set"
    ):
        R.AttentionCellWrapper(R.BasicLSTMCell(8), 4, state_is_tuple=False)


def test_attention_trains_over_a_sequence():
    cell = R.AttentionCellWrapper(R.LSTMCell(4), 3)
    outputs, _ = tf.nn.dynamic_rnn(cell, tf.constant(np.tile(X[:, None], [1, 5, 1])), dtype=tf.float32)
    loss = tf.reduce_mean(tf.square(outputs - 0.5))
    train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        before = s.run(loss)
        for _ in range(20):
            s.run(train)
        assert s.run(loss) < before / 2


@pytest.mark.parametrize("coupled", [True, False])
def test_highway_mixes_inputs_and_outputs(coupled):
    cell = R.HighwayWrapper(R.BasicRNNCell(4), coupled, carry_bias_init=0.5)
    with tf.variable_scope("way"):
        output, state = cell(tf.constant(X), tf.zeros([3, 4]))
    variables = {v.op.name: v for v in tf.global_variables()}
    gates = {"way/carry_w", "way/carry_b"} | (set() if coupled else {"way/transform_w", "way/transform_b"})
    assert set(variables) == gates | {"way/basic_rnn_cell/kernel", "way/basic_rnn_cell/bias"}
    output, state, w = run(output, state, variables)
    carry = 1 / (1 + np.exp(-X @ w["way/carry_w"] - 0.5))
    transform = 1 - carry if coupled else 1 / (1 + np.exp(-X @ w["way/transform_w"] + 0.5))
    np.testing.assert_allclose(output, X * carry + state * transform, rtol=1e-5, atol=1e-6)


def test_compiled_cells_are_the_cells_themselves():
    cell = R.CompiledWrapper(R.GRUCell(4), compile_stateful=True)
    assert (cell.state_size, cell.output_size) == (4, 4)
    with tf.variable_scope("a"):
        compiled, _ = tf.nn.dynamic_rnn(cell, tf.constant(X[None]), dtype=tf.float32)
    with tf.variable_scope("a", reuse=True):
        plain, _ = tf.nn.dynamic_rnn(R.GRUCell(4), tf.constant(X[None]), dtype=tf.float32)
    np.testing.assert_array_equal(*run(compiled, plain))


def test_batch_and_time_change_places():
    turned = R.transpose_batch_time(tf.placeholder(tf.float32, [3, None, 4]))
    assert turned.shape.as_list() == [None, 3, 4]
    assert R.best_effort_input_batch_size([tf.zeros([5, 3, 4])]) == 3


def test_block_gru_cells_differ_in_the_names_of_their_variables():
    by_name = {}
    for cell in (R.GRUBlockCell(2, name="one"), R.GRUBlockCellV2(2, name="two")):
        by_name[cell.name] = cell(tf.constant(X), tf.zeros([3, 2]))[0]
    names = {v.op.name: v for v in tf.global_variables()}
    pairs = {"w_ru": "gates/kernel", "b_ru": "gates/bias", "w_c": "candidate/kernel", "b_c": "candidate/bias"}
    assert set(names) == {f"one/{n}" for n in pairs} | {f"two/{n}" for n in pairs.values()}
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        s.run([names[f"two/{to}"].assign(names[f"one/{of}"]) for of, to in pairs.items()])
        np.testing.assert_array_equal(*s.run([by_name["one"], by_name["two"]]))
