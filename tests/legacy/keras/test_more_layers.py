"""Keras's less common layers: what they do, and that they are made again from their descriptions."""

import numpy as np
import pytest

import tensorfleet as tf

K, layers = tf.keras.backend, tf.keras.layers
RANDOM = np.random.RandomState(0)


def started(fetches, training=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, {} if training is None else {K.learning_phase(): training})


def test_small_numbers_are_cut_off():
    assert started(layers.ThresholdedReLU(0.5)(tf.constant([[-1.0, 0.4, 0.6]]))).tolist() == [
        [0, 0, np.float32(0.6)]
    ]


def test_the_size_of_what_passes_is_a_loss():
    layer = layers.ActivityRegularization(l1=0.5, l2=2.0)
    y = layer(tf.constant([[1.0, -2.0]]))
    value, loss = started([y, layer.losses[0]])
    assert value.tolist() == [[1, -2]]
    np.testing.assert_allclose(loss, 0.5 * 3 + 2 * 5)


@pytest.mark.parametrize(
    ("layer", "shape", "axes"),
    [
        (layers.SpatialDropout1D, [8, 5, 6], 1),
        (layers.SpatialDropout2D, [8, 3, 4, 6], (1, 2)),
        (layers.SpatialDropout3D, [8, 2, 3, 2, 6], (1, 2, 3)),
    ],
)
def test_whole_channels_are_dropped_in_training(layer, shape, axes):
    y = layer(0.5)(tf.ones(shape))
    dropped, kept = started(y, True), started(y, False)
    assert (kept == 1).all()
    assert set(np.unique(dropped)) == {0, 2}
    assert (dropped.std(axes) == 0).all()


def test_a_dropout_keeps_mean_and_deviation():
    x = RANDOM.normal(size=[200, 100]).astype("float32")
    y = started(layers.AlphaDropout(0.3)(tf.constant(x)), True)
    np.testing.assert_allclose([y.mean(), y.std()], [0, 1], atol=0.05)


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
def test_each_place_has_a_kernel_of_its_own(data_format):
    x = RANDOM.uniform(-1, 1, [2, 5, 6, 3]).astype("float32")
    layer = layers.LocallyConnected2D(4, (2, 3), strides=(1, 2), data_format=data_format)
    first = data_format == "channels_first"
    y = layer(tf.constant(x.transpose([0, 3, 1, 2]) if first else x))
    got, kernel = started([y, layer.kernel])
    got = got.transpose([0, 2, 3, 1]) if first else got
    assert kernel.shape == (8, 18, 4) and layer.bias.shape.as_list() == [4, 2, 4]
    window = x[:, 2:4, 2:5].reshape([2, 18])
    np.testing.assert_allclose(got[:, 2, 1], window @ kernel[2 * 2 + 1], rtol=1e-4, atol=1e-5)


def test_each_step_has_a_kernel_of_its_own():
    x = RANDOM.uniform(-1, 1, [2, 5, 3]).astype("float32")
    layer = layers.LocallyConnected1D(4, 2, use_bias=False)
    got, kernel = started([layer(tf.constant(x)), layer.kernel])
    np.testing.assert_allclose(got[:, 3], x[:, 3:5].reshape([2, 6]) @ kernel[3], rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match='only "valid" is supported'):
        layers.LocallyConnected1D(4, 2, padding="same")


X = RANDOM.uniform(-1, 1, [3, 5, 4]).astype("float32")


@pytest.mark.parametrize(
    ("fast", "plain"),
    [
        (layers.CuDNNLSTM, lambda: layers.LSTM(2, recurrent_activation="sigmoid")),
        (layers.CuDNNGRU, lambda: layers.GRU(2, recurrent_activation="sigmoid", reset_after=True)),
    ],
)
def test_layers_of_cudnn_have_two_biases(fast, plain):
    one, other = fast(2), plain()
    outputs = [layer(tf.constant(X)) for layer in (one, other)]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        kernel, recurrent, bias = (RANDOM.uniform(-1, 1, w.shape.as_list()) for w in one.weights)
        inner = bias.reshape([2, -1])
        same = inner if other.weights[2].shape.ndims == 2 else inner.sum(0)
        for layer, last in ((one, bias), (other, same)):
            for variable, value in zip(layer.weights, (kernel, recurrent, last), strict=True):
                variable.load(value, session)
        np.testing.assert_allclose(*session.run(outputs), rtol=1e-5)


@pytest.mark.parametrize("kind", ["SimpleRNN", "GRU", "LSTM"])
def test_what_is_dropped_stays_dropped_over_the_steps(kind):
    same = tf.constant(np.ones([1, 4, 50], np.float32))
    options = dict(kernel_initializer="ones", recurrent_initializer="zeros", return_sequences=True)
    y = getattr(layers, kind)(1, dropout=0.5, activation=None, **options)(same)
    run = getattr(layers, kind)(1, dropout=0.5, recurrent_dropout=0.5, return_sequences=True)(same)
    values, more = started([y, run], True)
    assert len(set(values[0, :, 0])) == 1 or kind != "SimpleRNN"
    assert more.shape == (1, 4, 1)
    if kind == "SimpleRNN":
        assert values[0, 0, 0] != 50
        assert started(y, False)[0, 0, 0] == 50


class Minimal(layers.Layer):
    """A cell by Keras's rules."""

    def __init__(self, units, **kwargs):
        self.units = self.state_size = units
        super().__init__(**kwargs)

    def build(self, input_shape):
        self.kernel = self.add_weight(shape=(input_shape[-1], self.units), name="kernel", initializer="ones")
        self.built = True

    def call(self, inputs, states):
        output = K.dot(inputs, self.kernel) + 0.5 * states[0]
        return output, [output]


@pytest.mark.parametrize("time_major", [False, True])
def test_a_cell_of_ones_own_runs_through_sequences(time_major):
    layer = layers.RNN(Minimal(2), return_state=True, return_sequences=True, time_major=time_major)
    outputs, last = started(layer(tf.constant(X.transpose([1, 0, 2]) if time_major else X)))
    outputs = outputs.transpose([1, 0, 2]) if time_major else outputs
    state = np.zeros([3])
    for step in range(5):
        state = X[:, step].sum(1) + 0.5 * state
        np.testing.assert_allclose(outputs[:, step, 0], state, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(last, outputs[:, -1])
    with pytest.raises(ValueError, match="should have a `call` method"):
        layers.RNN(3)


def test_cells_one_above_the_other():
    layer = layers.RNN([layers.LSTMCell(3), layers.GRUCell(2), Minimal(4)], return_state=True)
    y, *states = layer(tf.constant(X))
    assert [s.shape.as_list()[-1] for s in states] == [3, 3, 2, 4]
    assert len(layer.trainable_weights) == 7 and started(y).shape == (3, 4)
    zeros = layer.cell.get_initial_state(batch_size=5, dtype=tf.float32)
    assert [z.shape for z in started(zeros)] == [(5, 3), (5, 3), (5, 2), (5, 4)]


def test_dropping_cells_train_in_a_model():
    inputs = tf.keras.Input((5, 4))
    h = layers.RNN([layers.LSTMCell(8, dropout=0.1, recurrent_dropout=0.1)])(inputs)
    model = tf.keras.Model(inputs, layers.Dense(1)(h))
    model.compile("adam", "mse")
    before = model.evaluate(X, X.sum((1, 2)), verbose=0)
    model.fit(X, X.sum((1, 2)), epochs=30, verbose=0)
    assert model.evaluate(X, X.sum((1, 2)), verbose=0) < before


@pytest.mark.parametrize(
    "layer",
    [
        lambda: layers.DepthwiseConv2D((2, 3), strides=2, depth_multiplier=2, activation="relu"),
        lambda: layers.Cropping2D(((1, 2), (3, 4))),
        lambda: layers.ZeroPadding1D((1, 2)),
        lambda: layers.UpSampling3D((1, 2, 3)),
        lambda: layers.PReLU(shared_axes=[1, 2]),
        lambda: layers.SpatialDropout2D(0.25),
        lambda: layers.LocallyConnected2D(3, (2, 2)),
        lambda: layers.LSTM(3, dropout=0.25),
        lambda: layers.GRU(3, reset_after=True),
        lambda: layers.CuDNNLSTM(3),
        lambda: layers.RNN(layers.LSTMCell(3, dropout=0.5)),
        lambda: layers.RNN([layers.GRUCell(3), layers.SimpleRNNCell(2)]),
    ],
)
def test_layers_are_made_again_from_their_descriptions(layer):
    result = layer()
    config = result.get_config()
    again = type(result).from_config(config)
    assert again.get_config() == config


def test_a_wrapper_builds_what_it_wraps():
    class Twice(layers.Wrapper):
        def call(self, inputs):
            return self.layer(self.layer(inputs))

    layer = Twice(layers.Dense(4, kernel_initializer="identity", bias_initializer="ones"))
    np.testing.assert_allclose(started(layer(tf.constant(X[:, 0]))), X[:, 0] + 2, rtol=1e-5)
    assert len(layer.weights) == 2
