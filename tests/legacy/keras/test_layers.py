"""Keras's layers inside a graph."""

import inspect

import numpy as np
import pytest

import tensorfleet as tf

layers = tf.keras.layers


def started(fetches, feeds=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feeds)


def names():
    return [v.op.name for v in tf.global_variables()]


def test_layers_and_variables_are_named_by_name_scopes():
    x = tf.placeholder(tf.float32, [None, 8, 8, 3])
    with tf.variable_scope("outer"):
        h = layers.Conv2D(4, 3, activation="relu")(x)
    h = layers.BatchNormalization()(h)
    h = layers.Flatten()(layers.MaxPooling2D()(h))
    first, second = layers.Dense(3, activation="softmax"), layers.Dense(2)
    y = first(h)
    second(y)
    assert names() == [
        *("outer/conv2d/kernel", "outer/conv2d/bias"),
        *(f"batch_normalization/{n}" for n in ("gamma", "beta", "moving_mean", "moving_variance")),
        *("dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"),
    ]
    assert y.op.name == "dense/Softmax"
    assert [v.op.name for v in first.trainable_weights] == ["dense/kernel", "dense/bias"]
    assert len(tf.trainable_variables()) == 8


def test_a_layer_keeps_its_variables():
    dense = layers.Dense(2, name="shared")
    a, b = dense(tf.ones([1, 3])), dense(tf.ones([1, 3]))
    assert names() == ["shared/kernel", "shared/bias"]
    assert (a.op.name, b.op.name) == ("shared/BiasAdd", "shared_1/BiasAdd")


def test_updates_and_losses_stay_with_the_layer():
    bn = layers.BatchNormalization()
    bn(tf.ones([2, 3]))
    dense = layers.Dense(2, kernel_regularizer=tf.keras.regularizers.l2(0.5), kernel_initializer="ones")
    dense(tf.ones([1, 3]))
    assert len(bn.updates) == 2 and tf.get_collection(tf.GraphKeys.UPDATE_OPS) == []
    assert tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES) == []
    assert started(dense.losses) == [3.0]


def test_the_learning_phase_decides_about_dropout():
    x = np.ones([4, 100], np.float32)
    y = layers.Dropout(0.5)(tf.constant(x))
    phase = tf.keras.backend.learning_phase()
    assert phase.op.name == "keras_learning_phase"
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(y), x)
        trained = session.run(y, {phase: True})
        assert set(np.unique(trained)) == {0.0, 2.0}
    tf.keras.backend.set_learning_phase(1)
    assert set(np.unique(started(layers.Dropout(0.5)(tf.constant(x))))) == {0.0, 2.0}
    np.testing.assert_array_equal(started(layers.Dropout(0.5)(tf.constant(x), training=False)), x)


def test_a_layer_of_ones_own():
    class Scaled(layers.Layer):
        def __init__(self, units, **kwargs):
            super().__init__(**kwargs)
            self.units = units

        def build(self, input_shape):
            self.scale = self.add_weight(
                name="scale", shape=(input_shape[-1], self.units), initializer="ones"
            )
            super().build(input_shape)

        def call(self, inputs):
            return tf.matmul(inputs, self.scale)

    result = Scaled(2)(tf.ones([1, 3]))
    assert names() == ["scaled/scale"]
    assert started(result).tolist() == [[3.0, 3.0]]


@pytest.mark.parametrize(
    ("layer", "shape", "result"),
    [
        (lambda: layers.Reshape((-1, 3)), [2, 4, 6], [2, 8, 3]),
        (lambda: layers.Permute((2, 1)), [2, 4, 6], [2, 6, 4]),
        (lambda: layers.RepeatVector(3), [2, 4], [2, 3, 4]),
        (lambda: layers.UpSampling2D(2), [2, 4, 6, 1], [2, 8, 12, 1]),
        (lambda: layers.ZeroPadding2D(((1, 2), (0, 3))), [2, 4, 6, 1], [2, 7, 9, 1]),
        (lambda: layers.GlobalAveragePooling2D(), [2, 4, 6, 5], [2, 5]),
        (lambda: layers.Conv1D(5, 2, padding="causal"), [2, 4, 6], [2, 4, 5]),
        (lambda: layers.Conv2DTranspose(3, 3, strides=2, padding="same"), [2, 4, 4, 5], [2, 8, 8, 3]),
        (lambda: layers.SeparableConv2D(3, 3), [2, 4, 4, 5], [2, 2, 2, 3]),
        (lambda: layers.LayerNormalization(), [2, 4, 5], [2, 4, 5]),
        (lambda: layers.LSTM(3), [2, 4, 5], [2, 3]),
        (lambda: layers.GRU(3, return_sequences=True), [2, 4, 5], [2, 4, 3]),
        (lambda: layers.Bidirectional(layers.SimpleRNN(3)), [2, 4, 5], [2, 6]),
        (lambda: layers.TimeDistributed(layers.Dense(3)), [2, 4, 5], [2, 4, 3]),
    ],
)
def test_shapes(layer, shape, result):
    output = layer()(tf.placeholder(tf.float32, [None, *shape[1:]]))
    assert output.shape.as_list() == [None, *result[1:]]
    assert started(layer()(tf.ones(shape))).shape == tuple(result)


def test_embeddings_are_looked_up():
    result = layers.Embedding(5, 2)(tf.constant([[1, 4], [0, 1]]))
    assert names() == ["embedding/embeddings"] and result.dtype == tf.float32
    table, rows = started([tf.global_variables()[0], result])
    np.testing.assert_array_equal(rows, table[[[1, 4], [0, 1]]])
    assert np.abs(table).max() <= 0.05


def test_lstm_forgets_little_at_first_and_gives_its_states():
    out, h, c = layers.LSTM(2, return_sequences=True, return_state=True)(tf.ones([3, 4, 5]))
    assert names() == ["lstm/kernel", "lstm/recurrent_kernel", "lstm/bias"]
    bias, values, last, cell = started([tf.global_variables()[2], out, h, c])
    assert bias.tolist() == [0, 0, 1, 1, 0, 0, 0, 0]
    np.testing.assert_array_equal(values[:, -1], last)
    assert cell.shape == (3, 2)


def test_layers_of_several_inputs():
    a, b = tf.constant([[1.0, 5.0]]), tf.constant([[3.0, 2.0]])
    results = [
        layers.add([a, b]),
        layers.Maximum()([a, b]),
        layers.concatenate([a, b]),
        layers.dot([a, b], 1),
    ]
    assert [v.tolist() for v in started(results)] == [[[4, 7]], [[3, 5]], [[1, 5, 3, 2]], [[13]]]
    with pytest.raises(ValueError, match="at least 2 inputs"):
        layers.Add()([a])


def test_argument_lists_are_those_of_keras():
    conv = " ".join(inspect.signature(layers.Conv2D.__init__).parameters)
    assert conv.startswith(
        "self filters kernel_size strides padding data_format dilation_rate activation use_bias kernel_initializer"
    )
    lstm = " ".join(inspect.signature(layers.LSTM.__init__).parameters)
    assert lstm.endswith("implementation return_sequences return_state go_backwards stateful unroll kwargs")


def test_a_graph_with_keras_layers_trains(session):
    x = np.random.RandomState(0).rand(32, 4).astype(np.float32)
    h = layers.Dense(8, activation="tanh")(tf.constant(x))
    loss = tf.reduce_mean(tf.keras.losses.mean_squared_error(x.sum(1, keepdims=True), layers.Dense(1)(h)))
    train = tf.train.AdamOptimizer(0.05).minimize(loss)
    session.run(tf.global_variables_initializer())
    before = session.run(loss)
    for _ in range(50):
        session.run(train)
    assert session.run(loss) < before / 4


def test_a_layer_of_ones_own_decides_what_it_does_when_nobody_says_whether_it_trains():
    class Frozen(layers.BatchNormalization):
        def call(self, inputs, training=None):
            return super().call(inputs, training=True if training is None else training)

    x = np.random.RandomState(0).normal(5.0, 10.0, (1000, 4)).astype(np.float32)
    model = tf.keras.Sequential([Frozen(input_shape=(4,), epsilon=1e-9)])
    np.testing.assert_allclose(model.predict(x, batch_size=1000).mean(0), np.zeros(4), atol=1e-4)
    np.testing.assert_allclose(model.predict(x, batch_size=1000).std(0), np.ones(4), atol=1e-4)
