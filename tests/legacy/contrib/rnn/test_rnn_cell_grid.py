"""LSTMs over time and frequency: the values that TensorFlow's own tests of them expect, and numpy's."""

import numpy as np
import pytest

import tensorfleet as tf

R = tf.contrib.rnn
SAME = np.array([[1.0] * 4, [2.0] * 4, [3.0] * 4], np.float32)
RISING = np.array([[1.0, 1.1, 1.2, 1.3], [2.0, 2.1, 2.2, 2.3], [3.0, 3.1, 3.2, 3.3]], np.float32)
UNITS, SHIFTS = 2, 3


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


def twice(rows):
    """Both units give the same."""
    return np.repeat(np.array(rows), 2, 1)


def tenths(count):
    return [tf.constant(np.full([3, UNITS], 0.1, np.float32))] * count


@pytest.mark.parametrize("in_tuple", [False, True])
def test_coupled_gates_of_a_grid_give_the_published_values(in_tuple):
    cell = R.GridLSTMCell(
        UNITS,
        feature_size=2,
        frequency_skip=1,
        num_frequency_blocks=[SHIFTS],
        couple_input_forget_gates=True,
        state_is_tuple=in_tuple,
    )
    state = cell.state_tuple_type(*tenths(6)) if in_tuple else tf.concat(tenths(6), 1)
    output, after = run(*cell(tf.constant(SAME), state))
    expected = [
        [0.416383, 0.403238, 0.524020, 0.565425, 0.557865, 0.609699],
        [0.627331, 0.622393, 0.688342, 0.708078, 0.694245, 0.715171],
        [0.711050, 0.709197, 0.736533, 0.744264, 0.737390, 0.745250],
    ]
    np.testing.assert_allclose(output, twice(expected), atol=1e-6)
    expected = [
        [0.625556, 0.416383, 0.759134, 0.524020, 0.798795, 0.557865],
        [0.875488, 0.627331, 0.936432, 0.688342, 0.941961, 0.694245],
        [0.957327, 0.711050, 0.979522, 0.736533, 0.980245, 0.737390],
    ]
    np.testing.assert_allclose(np.concatenate(after, 1) if in_tuple else after, twice(expected), atol=1e-6)
    assert cell.output_size == 12
    if in_tuple:
        assert after._fields[:3] == ("state_f00_b00_c", "state_f00_b00_m", "state_f01_b00_c")


UP = [
    [0.464130, 0.419165, 0.593283, 0.738350, 0.661638, 0.866774],
    [0.669636, 0.628966, 0.736057, 0.895927, 0.755559, 0.954359],
    [0.751109, 0.711716, 0.778357, 0.940779, 0.784530, 0.980604],
]
DOWN = {
    0: [
        [0.520789, 0.476968, 0.604341, 0.760207, 0.635773, 0.850218],
        [0.692621, 0.652363, 0.737517, 0.899558, 0.745984, 0.946840],
        [0.759940, 0.720652, 0.778552, 0.941606, 0.781035, 0.977731],
    ],
    1: [
        [0.322645, 0.276068, 0.584654, 0.690292, 0.640446, 0.840071],
        [0.493625, 0.449236, 0.730828, 0.865996, 0.749429, 0.944958],
        [0.608587, 0.566683, 0.777345, 0.925820, 0.782597, 0.976858],
    ],
}


@pytest.mark.parametrize("offset", [0, 1])
def test_both_directions_of_a_grid_give_the_published_values(offset):
    cell = R.BidirectionalGridLSTMCell(
        UNITS,
        feature_size=2,
        share_time_frequency_weights=True,
        frequency_skip=1,
        num_frequency_blocks=[SHIFTS],
        backward_slice_offset=offset,
    )
    output, after = run(*cell(tf.constant(RISING), cell.state_tuple_type(*tenths(12))))
    np.testing.assert_allclose(output[:, :12], twice(UP), atol=1e-6)
    np.testing.assert_allclose(output[:, 12:], twice(DOWN[offset]), atol=1e-6)
    np.testing.assert_allclose(after.fwd_state_f01_b00_c[:, 0], [0.877293, 1.038811, 1.079919], atol=1e-6)
    np.testing.assert_array_equal(after.bwd_state_f02_b00_m, output[:, 20:22])
    assert {v.op.name for v in tf.global_variables()} == {
        f"root/bidirectional_grid_lstm_cell/{way}/{v}" for way in ("fwd", "bwd") for v in ("W_f_0_0", "B_f_0")
    }


def test_blocks_of_frequencies_have_variables_of_their_own():
    cell = R.GridLSTMCell(
        UNITS,
        use_peepholes=True,
        feature_size=2,
        frequency_skip=1,
        num_frequency_blocks=[1, 1],
        start_freqindex_list=[0, 2],
        end_freqindex_list=[2, 4],
        cell_clip=0.5,
    )
    output, after = run(*cell(tf.constant(RISING), cell.state_tuple_type(*tenths(4))))
    assert after._fields == ("state_f00_b00_c", "state_f00_b00_m", "state_f00_b01_c", "state_f00_b01_m")
    for block, columns in enumerate((RISING[:, :2], RISING[:, 2:])):
        seen = 0.5 * (columns.sum(1) + 0.2)
        gate = sigmoid(seen + 0.05)  # the state below is zero, the one before 0.1
        c_up = np.minimum(gate * np.tanh(seen), 0.5)
        c_on = np.minimum(sigmoid(seen + 1.05) * 0.1 + gate * np.tanh(seen), 0.5)
        out = sigmoid(seen + 0.5 * c_up + 0.5 * c_on)
        np.testing.assert_allclose(after[2 * block][:, 0], c_on, rtol=1e-5)
        np.testing.assert_allclose(output[:, 4 * block], out * np.tanh(c_on), rtol=1e-5)
        np.testing.assert_allclose(output[:, 4 * block + 2], out * np.tanh(c_up), rtol=1e-5)
    result = {v.op.name.removeprefix("root/grid_lstm_cell/") for v in tf.global_variables()}
    ways = [f"{gate}_diag_{way}{of}" for gate in "FIO" for way in ("freq", "time") for of in "ft"]
    expected = {f"W_{name}_{block}" for name in ways for block in range(2)}
    expected |= {f"{v}_{block}{end}" for block in range(2) for v, end in (("W_f", "_0"), ("B_f", ""))}
    expected |= {f"{v}_{block}{end}" for block in range(2) for v, end in (("W_t", "_0"), ("B_t", ""))}
    assert result == expected


def test_windows_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="Must specify num_frequency_blocks"):
        R.GridLSTMCell(2)
    cell = R.GridLSTMCell(UNITS, feature_size=2, num_frequency_blocks=[2])
    with pytest.raises(ValueError, match="requires 3 but gets 2"):
        cell(tf.constant(SAME), cell.state_tuple_type(*tenths(4)))
    cell = R.GridLSTMCell(UNITS, feature_size=2, num_frequency_blocks=[1, 1])
    with pytest.raises(ValueError, match="Length of num_frequency_blocks is not 1, but instead is 2"):
        cell(tf.constant(SAME), cell.state_tuple_type(*tenths(4)))


def test_time_frequency_cell_slides_over_the_columns():
    cell = R.TimeFreqLSTMCell(UNITS, use_peepholes=True, feature_size=2, frequency_skip=1)
    output, state = run(*cell(tf.constant(RISING), tf.concat(tenths(6), 1)))
    below, c_old, expected = np.zeros([3, 1]), 0.1, []
    for f in range(SHIFTS):
        seen = 0.5 * (RISING[:, f : f + 2].sum(1, keepdims=True) + 0.2 + 2 * below)
        c = sigmoid(seen + 1.05) * c_old + sigmoid(seen + 0.05) * np.tanh(seen)
        below = sigmoid(seen + 0.5 * c) * np.tanh(c)
        expected += [c, below]
    np.testing.assert_allclose(state, twice(np.hstack(expected)), rtol=1e-5)
    np.testing.assert_allclose(output, twice(np.hstack(expected[1::2])), rtol=1e-5)
    assert {v.op.name.removeprefix("root/time_freq_lstm_cell/") for v in tf.global_variables()} == {
        "W_0",
        "B",
        *(f"W_{gate}_diag" for gate in "FIO"),
    }
