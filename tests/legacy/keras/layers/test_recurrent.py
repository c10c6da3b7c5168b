"""Keras's recurrent layers in models: states given, states kept, constants, both directions."""

import numpy as np
import pytest

import tensorfleet as tf

layers, K = tf.keras.layers, tf.keras.backend
RANDOM = np.random.RandomState(0)


def test_states_given_are_inputs_of_the_layer():
    source, target = layers.Input((None, 3)), layers.Input((None, 2))
    _, *states = layers.LSTM(4, return_state=True, name="encoder")(source)
    decoder = layers.LSTM(4, return_sequences=True, return_state=True, name="decoder")
    outputs = decoder(target, initial_state=states)[0]
    model = tf.keras.Model([source, target], layers.Dense(2)(outputs))
    assert {layer.name for layer in model.layers} >= {"encoder", "decoder"}
    x, y = RANDOM.rand(4, 5, 3), RANDOM.rand(4, 6, 2)
    model.compile("sgd", "mse")
    before = model.get_layer("encoder").get_weights()[0]
    model.fit([x, y], y, verbose=0)
    assert np.abs(model.get_layer("encoder").get_weights()[0] - before).max() > 0
    again = tf.keras.Model.from_config(model.get_config())
    again.set_weights(model.get_weights())
    np.testing.assert_allclose(again.predict([x, y]), model.predict([x, y]), rtol=1e-5)
    # The same layer from states that are fed, step by step.
    h, c = layers.Input((4,)), layers.Input((4,))
    step = tf.keras.Model([target, h, c], decoder(target, initial_state=[h, c]))
    first = tf.keras.Model(source, states).predict(x)
    whole = tf.keras.Model([source, target], outputs).predict([x, y])
    for i in range(3):
        result, *first = step.predict([y[:, i : i + 1], *first])
        np.testing.assert_allclose(result[:, 0], whole[:, i], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", ["SimpleRNN", "GRU", "LSTM", "RNN"])
def test_a_stateful_layer_goes_on_where_the_last_batch_ended(kind):
    def made(stateful, steps):
        options = dict(stateful=stateful, batch_input_shape=(2, steps, 3))
        layer = (
            layers.RNN(layers.LSTMCell(4), **options)
            if kind == "RNN"
            else getattr(layers, kind)(4, **options)
        )
        return tf.keras.Sequential([layer])

    parts, whole = made(True, 2), made(False, 4)
    whole.set_weights(parts.get_weights())
    x = RANDOM.rand(2, 4, 3)
    expected = whole.predict(x)
    for _ in range(2):
        parts.predict(x[:, :2])
        np.testing.assert_allclose(parts.predict(x[:, 2:]), expected, rtol=1e-5)
        parts.reset_states()
    assert len(parts.weights) == 3
    with pytest.raises(ValueError, match="can be divided by the batch size. Found: 3 samples"):
        parts.predict(np.zeros([3, 2, 3]))
    with pytest.raises(ValueError, match="incompatible with the specified batch size"):
        parts.predict(x[:, :2], batch_size=1)


def test_states_may_be_set_and_are_kept_in_training():
    model = tf.keras.Sequential([layers.GRU(2, stateful=True, batch_input_shape=(1, 3, 2))])
    model.compile("sgd", "mse")
    layer, x = model.layers[0], RANDOM.rand(1, 3, 2)
    model.train_on_batch(x, np.zeros([1, 2]))
    assert np.abs(K.get_value(layer.states[0])).max() > 0
    layer.reset_states(np.full([1, 2], 0.5))
    assert K.get_value(layer.states[0]).tolist() == [[0.5, 0.5]]
    with pytest.raises(ValueError, match="expected shape=\\(1, 2\\), found shape=\\(1, 3\\)"):
        layer.reset_states(np.zeros([1, 3]))
    with pytest.raises(AttributeError, match="must be stateful"):
        layers.GRU(2).reset_states()
    with pytest.raises(ValueError, match="needs to know its batch size"):
        layers.GRU(2, stateful=True)(tf.placeholder(tf.float32, [None, 3, 2]))


class Adding(layers.Layer):
    """A cell that adds a constant to what it has seen."""

    state_size = output_size = 2

    def call(self, inputs, states, constants):
        result = states[0] + inputs + constants[0]
        return result, [result]


def test_constants_are_seen_by_each_step():
    x, more = layers.Input((3, 2)), layers.Input((2,))
    model = tf.keras.Model([x, more], layers.RNN(Adding())(x, constants=more))
    got = model.predict([np.ones([1, 3, 2]), np.full([1, 2], 10.0)])
    assert got.tolist() == [[33.0, 33.0]]


def test_both_directions_have_states():
    x = layers.Input((3, 2))
    outputs = layers.Bidirectional(layers.LSTM(4, return_sequences=True, return_state=True))(x)
    assert [K.int_shape(t) for t in outputs] == [(None, 3, 8)] + [(None, 4)] * 4
    again = layers.Bidirectional(layers.LSTM(4), merge_mode="sum")(x, initial_state=outputs[1:])
    model = tf.keras.Model(x, again)
    assert len(model.layers) == 3 and model.predict(np.ones([1, 3, 2])).shape == (1, 4)
    with pytest.raises(ValueError, match="different `go_backwards`"):
        layers.Bidirectional(layers.GRU(2), backward_layer=layers.GRU(2))


def test_a_step_of_ones_own_runs_through_sequences():
    x = np.arange(12, dtype="float32").reshape([2, 3, 2])

    def step(inputs, states):
        return inputs + states[0], [inputs + states[0]]

    def run(**options):
        last, outputs, states = K.rnn(step, K.constant(x), [tf.zeros([2, 2])], **options)
        return [K.eval(v) for v in (last, outputs, states[0])]

    sums = x.cumsum(1)
    for options in ({}, {"unroll": True}):
        last, outputs, state = run(**options)
        np.testing.assert_array_equal(outputs, sums)
        np.testing.assert_array_equal(last, sums[:, -1])
        np.testing.assert_array_equal(state, last)
    np.testing.assert_array_equal(run(go_backwards=True)[1], x[:, ::-1].cumsum(1))
    mask = K.constant([[True, True, False], [True, False, True]], dtype="bool")
    held = run(mask=mask)[1]
    np.testing.assert_array_equal(held[0, 2], sums[0, 1])
    np.testing.assert_array_equal(held[1], [x[1, 0], x[1, 0], x[1, 0] + x[1, 2]])
    np.testing.assert_array_equal(run(mask=mask, zero_output_for_mask=True)[1][0, 2], [0, 0])


def test_a_cell_with_peepholes_has_weights_for_them():
    layer = layers.RNN(tf.keras.experimental.PeepholeLSTMCell(3))
    y = layer(tf.ones([2, 4, 5]))
    assert [w.op.name for w in layer.weights][3:] == [
        f"rnn/{gate}_gate_peephole_weights" for gate in ("input", "forget", "output")
    ]
    assert y.shape.as_list() == [2, 3]
