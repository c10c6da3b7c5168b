"""Other kinds of LSTM: the values that TensorFlow's own tests of them expect, and the equations in numpy."""

import numpy as np
import pytest

import tensorfleet as tf

R = tf.contrib.rnn
ROWS = np.array([[1.0] * 4, [2.0] * 4, [3.0] * 4], np.float32)


@pytest.fixture(autouse=True)
def _halves():
    """All variables without an initializer of their own begin with 0.5."""
    with tf.variable_scope("root", initializer=tf.constant_initializer(0.5)):
        yield


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def run(*fetches):
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        return s.run(fetches)


def names():
    return {v.op.name.removeprefix("root/"): tuple(v.shape.as_list()) for v in tf.global_variables()}


def tenths(*sizes):
    return [tf.constant(np.full([3, n], 0.1, np.float32)) for n in sizes]


def test_coupled_gates_give_the_published_values():
    cell = R.CoupledInputForgetGateLSTMCell(2, forget_bias=1.0, state_is_tuple=False)
    output, state = run(*cell(tf.constant(ROWS), *tenths(cell.state_size)))
    expected = np.array([0.121753, 0.103349, 0.100178])
    np.testing.assert_allclose(output, np.repeat(expected[:, None], 2, 1), atol=1e-6)
    c = np.array([0.137523, 0.105450, 0.100742])
    np.testing.assert_allclose(state, np.stack([c, c, expected, expected], 1), atol=1e-6)


def test_coupled_gates_keep_their_rows_in_as_many_variables_as_asked():
    cell = R.CoupledInputForgetGateLSTMCell(
        2, use_peepholes=True, num_proj=3, num_unit_shards=3, proj_clip=0.05
    )
    output, state = run(*cell(tf.constant(ROWS), R.LSTMStateTuple(*tenths(2, 3))))
    prefix = "coupled_input_forget_gate_lstm_cell/"
    assert names() == {
        f"{prefix}W_0": (3, 6),
        f"{prefix}W_1": (2, 6),
        f"{prefix}W_2": (2, 6),
        f"{prefix}B": (6,),
        f"{prefix}W_F_diag": (2,),
        f"{prefix}W_O_diag": (2,),
        f"{prefix}W_P_0": (2, 3),
    }
    forget = sigmoid(0.5 * (ROWS.sum(1) + 0.3) + 1 + 0.05)
    c = forget * 0.1 + (1 - forget) * np.tanh(0.5 * (ROWS.sum(1) + 0.3))
    np.testing.assert_allclose(state.c[:, 0], c, rtol=1e-5)
    np.testing.assert_allclose(output, 0.05)  # clipped
    np.testing.assert_array_equal(output, state.h)


def test_layer_normalization_makes_the_published_states():
    for make in (
        lambda: R.LayerNormLSTMCell(2, layer_norm=True),
        lambda: R.CoupledInputForgetGateLSTMCell(2, layer_norm=True),
    ):
        state = R.LSTMStateTuple(tf.constant([[0.0, 0.1]]), tf.constant([[0.2, 0.3]]))
        h, after = run(*make()(tf.constant([[1.0, 1.0]]), state))
        np.testing.assert_allclose(after.c, [[-1, 1]], rtol=1e-4)
        np.testing.assert_allclose(h, [[-0.38079708, 0.38079708]], rtol=1e-4)
    own = {n.removeprefix("layer_norm_lstm_cell/") for n in names() if n.startswith("layer_norm_lstm_cell")}
    parts = ("input", "transform", "forget", "output", "state")
    assert own == {"kernel", "bias", *(f"{p}/{w}" for p in parts for w in ("gamma", "beta"))}


def test_layer_normalized_cell_without_normalization_is_an_lstm_with_peepholes_and_projection():
    options = dict(use_peepholes=True, cell_clip=0.3, num_proj=3, proj_clip=0.4)
    state = R.LSTMStateTuple(*tenths(2, 3))
    (one, one_state), (other, other_state) = (
        cell(tf.constant(ROWS), state)
        for cell in (R.LayerNormLSTMCell(2, **options), R.LSTMCell(2, **options))
    )
    one, one_state, other, other_state = run(one, one_state, other, other_state)
    np.testing.assert_allclose(one, other, rtol=1e-6)
    np.testing.assert_allclose(one_state.c, other_state.c, rtol=1e-6)


@pytest.mark.parametrize(
    ("norm", "peepholes", "c", "h"),
    [
        (False, False, [0.65937078, 0.74983585], [0.44923624, 0.49362513]),
        (False, True, [0.65937084, 0.7574988], [0.4792085, 0.53470564]),
        (True, False, [0.50125383, 0.58805949], [0.32770363, 0.37397948]),
        (True, True, [0.50125383, 0.59587258], [0.35041603, 0.40873795]),
    ],
)
def test_weight_normalization_gives_the_published_values(norm, peepholes, c, h):
    cell = R.WeightNormLSTMCell(2, norm=norm, use_peepholes=peepholes)
    state = R.LSTMStateTuple(tf.constant([[0.0, 0.1]]), tf.constant([[0.2, 0.3]]))
    output, after = run(*cell(tf.constant([[1.0, 1.0]]), state))
    np.testing.assert_allclose(after.c, [c], rtol=1e-5)
    np.testing.assert_allclose(after.h, [h], rtol=1e-5)
    np.testing.assert_array_equal(output, after.h)
    assert names()["wn_lstm_cell/kernel"] == (4, 8)
    assert ("wn_lstm_cell/norm_1" in names()) == norm


@pytest.mark.parametrize("groups", [1, 2])
def test_each_group_of_a_grouped_lstm_is_an_lstm(groups):
    size = 4 // groups
    x = tf.ones([2, 4])
    grouped = R.GLSTMCell(4, number_of_groups=groups)
    whole, _ = grouped(x, grouped.zero_state(2, tf.float32))
    small = R.LSTMCell(size)
    part, _ = small(x[:, :size], small.zero_state(2, tf.float32))
    whole, part = run(whole, part)
    np.testing.assert_allclose(whole, np.tile(part, groups), rtol=1e-5)
    own = {n.removeprefix("glstm_cell/") for n in names() if n.startswith("glstm_cell")}
    assert own == {*(f"group{g}/kernel" for g in range(groups)), *(f"bias_{g}" for g in "ijfo")}


def test_groups_must_divide_what_they_share():
    with pytest.raises(ValueError, match="num_units must be divisible"):
        R.GLSTMCell(3, number_of_groups=2)
    with pytest.raises(ValueError, match="num_proj must be divisible"):
        R.GLSTMCell(4, num_proj=3, number_of_groups=2)
    cell = R.GLSTMCell(4, num_proj=2, number_of_groups=2)
    assert cell.state_size == (4, 2)
    with pytest.raises(ValueError, match=r"input size \(3\) must be divisible"):
        cell(tf.ones([1, 3]), cell.zero_state(1, tf.float32))


@pytest.mark.parametrize("peepholes", [False, True])
def test_phased_lstm_opens_each_unit_at_its_own_time(peepholes):
    cell = R.PhasedLSTMCell(2, use_peepholes=peepholes, ratio_on=0.5)
    times = np.array([[1.0], [2.0], [3.0]])
    c, h = (np.full([3, 2], 0.1, np.float32) for _ in range(2))
    output, state = cell((tf.constant(times), tf.constant(ROWS)), R.LSTMStateTuple(*tenths(2, 2)))
    by_name = {v.op.name.rpartition("phased_lstm_cell/")[2]: v for v in tf.global_variables()}
    parts = {"period", "phase", "ratio_on"}
    kernels = {f"{p}/{w}" for p in ("mask_gates", "new_input", "output_gate") for w in ("kernel", "bias")}
    assert set(by_name) == parts | kernels
    output, state, period, phase = run(output, state, by_name["period"], by_name["phase"])
    assert ((period >= 1) & (period <= 1000)).all() and ((phase >= 0) & (phase <= period)).all()
    ratio = (times - phase) % period / period
    k = np.where(ratio < 0.25, 4 * ratio, np.where(ratio < 0.5, 2 - 4 * ratio, 0.001 * ratio))
    seen = 0.5 * (ROWS.sum(1, keepdims=True) + 0.2)
    gate = sigmoid(seen + (0.1 if peepholes else 0))
    new = c * gate + gate * np.tanh(seen)
    out = np.tanh(new) * sigmoid(seen + (0.5 * new.sum(1, keepdims=True) if peepholes else 0))
    np.testing.assert_allclose(state.c, k * new + (1 - k) * c, rtol=1e-4)
    np.testing.assert_allclose(output, k * out + (1 - k) * h, rtol=1e-4)


def test_phased_lstm_learns_its_rhythm_over_a_sequence():
    steps = tf.constant(np.tile(ROWS[:, None], [1, 5, 1]))
    times = tf.constant(np.tile(np.arange(5.0)[None, :, None], [3, 1, 1]))
    cell = R.PhasedLSTMCell(2, trainable_ratio_on=False)
    outputs, _ = tf.nn.dynamic_rnn(cell, (times, steps), dtype=tf.float32)
    trained = [v for v in tf.trainable_variables() if v.op.name.endswith(("period", "phase", "ratio_on"))]
    assert len(trained) == 2
    gradients = run(*tf.gradients(tf.reduce_sum(outputs), trained))
    assert all(np.isfinite(g).all() and g.any() for g in gradients)


def test_intersection_cell_gives_the_published_values():
    cell = R.IntersectionRNNCell(2, num_in_proj=2)
    output, state = run(*cell(tf.constant(ROWS), *tenths(2)))
    np.testing.assert_allclose(output[:, 0], [2.00431061, 4.00060606, 6.00008249], rtol=1e-6)
    np.testing.assert_allclose(state[:, 1], [0.13752282, 0.10545051, 0.10074195], rtol=1e-6)
    assert names() == {
        "intersection_rnn_cell/in_projection/kernel": (4, 2),
        "intersection_rnn_cell/in_projection/bias": (2,),
        "intersection_rnn_cell/kernel": (4, 8),
        "intersection_rnn_cell/bias": (8,),
    }
    with pytest.raises(ValueError, match="num_in_proj should be set to num_units"):
        R.IntersectionRNNCell(2)(tf.constant(ROWS), *tenths(2))
