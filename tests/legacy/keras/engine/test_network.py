"""Models as layers, the session, losses and helpers."""

import numpy as np
import pytest

import tensorfleet as tf

K, layers = tf.keras.backend, tf.keras.layers


def test_a_sequential_model_with_a_known_input_is_made_at_once():
    model = tf.keras.Sequential()
    model.add(layers.Dense(4, input_shape=(3,), activation="relu"))
    model.add(layers.Dense(2))
    assert [v.op.name for v in model.weights] == [
        "dense/kernel",
        "dense/bias",
        "dense_1/kernel",
        "dense_1/bias",
    ]
    assert model.input.shape.as_list() == [None, 3] and model.output.shape.as_list() == [None, 2]
    again = model(tf.ones([5, 3]))
    assert again.shape.as_list() == [5, 2] and len(tf.global_variables()) == 4
    assert model.count_params() == 26


def test_a_sequential_model_takes_an_input_tensor_as_its_first_layer():
    x = tf.keras.Input(shape=(3,), dtype="float64")
    model = tf.keras.Sequential()
    model.add(x)
    model.add(tf.keras.layers.Dense(2, dtype="float64"))
    assert model.inputs == [x]
    assert (model.built, model.output_shape, len(model.layers)) == (True, (None, 2), 1)
    model.compile("sgd", "mse")
    model.fit(np.ones([4, 3]), np.ones([4, 2]), verbose=0)
    again = tf.keras.Sequential.from_config(model.get_config())
    again.set_weights(model.get_weights())
    np.testing.assert_array_equal(again.predict(np.ones([1, 3])), model.predict(np.ones([1, 3])))


def test_a_sequential_model_refuses_tensors_that_are_no_inputs():
    x = tf.keras.Input(shape=(3,))
    with pytest.raises(TypeError, match="must be an instance of class Layer"):
        tf.keras.Sequential([tf.keras.layers.Dense(2)(x)])


def test_a_sequential_model_is_made_when_it_is_called():
    model = tf.keras.models.Sequential([layers.Flatten(), layers.Dropout(0.5), layers.Dense(2)], name="net")
    result = model(tf.ones([1, 2, 2]), training=False)
    assert [v.op.name for v in tf.trainable_variables()] == ["net/dense/kernel", "net/dense/bias"]
    assert result.op.name == "net/dense/BiasAdd"
    assert model.get_layer("dense") is model.layers[2]


def test_a_model_of_inputs_and_outputs_is_applied_to_others(session):
    a, b = tf.keras.Input((2,)), tf.keras.Input(shape=(2,))
    shared = layers.Dense(3, kernel_initializer="ones")
    total = layers.add([shared(a), shared(b)])
    model = tf.keras.Model(inputs=[a, b], outputs=layers.Lambda(lambda t: t * 2.0)(total))
    kinds = [type(layer).__name__ for layer in model.layers]
    assert kinds == ["InputLayer", "InputLayer", "Dense", "Add", "Lambda"]
    result = model([tf.ones([1, 2]), tf.zeros([1, 2])])
    session.run(tf.global_variables_initializer())
    assert session.run(result).tolist() == [[4.0, 4.0, 4.0]]
    assert session.run(model.output, {a: [[1, 1]], b: [[1, 1]]}).tolist() == [[8.0, 8.0, 8.0]]


def test_a_model_by_subclass():
    class Net(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.first = layers.Dense(2)
            self.second = layers.Dense(1)

        def call(self, inputs):
            return self.second(self.first(inputs))

    net = Net()
    net(tf.ones([1, 3]))
    assert [v.op.name for v in net.trainable_variables] == [
        f"net/dense{n}/{what}" for n in ("", "_1") for what in ("kernel", "bias")
    ]


def test_the_session_of_keras_starts_its_variables():
    dense = layers.Dense(1, kernel_initializer="ones")
    y = dense(tf.ones([1, 3]))
    session = K.get_session()
    assert session.run(y).tolist() == [[3.0]]
    dense.set_weights([np.full((3, 1), 2.0), [1.0]])
    assert K.get_session() is session
    assert K.get_value(y).tolist() == [[7.0]]
    assert dense.get_weights()[1].tolist() == [1.0]


def test_a_session_that_was_set_is_used():
    session = tf.Session()
    K.set_session(session)
    assert K.get_session() is session
    with tf.Session() as inner:
        assert K.get_session() is inner


def test_settings():
    assert (K.floatx(), K.image_data_format(), K.epsilon()) == ("float32", "channels_last", 1e-7)
    with pytest.raises(ValueError, match="Unknown data_format"):
        K.set_image_data_format("sideways")
    K.set_image_data_format("channels_first")
    try:
        assert layers.MaxPooling2D()(tf.ones([1, 3, 4, 4])).shape.as_list() == [1, 3, 2, 2]
    finally:
        K.set_image_data_format("channels_last")


def test_losses_by_hand(session):
    losses = tf.keras.losses
    true, predicted = np.array([[0.0, 1.0]], np.float32), np.array([[0.25, 0.75]], np.float32)
    results = [
        losses.mse(true, predicted),
        losses.categorical_crossentropy(true, predicted),
        losses.sparse_categorical_crossentropy([1], predicted),
        losses.BinaryCrossentropy()(true, predicted),
        losses.SparseCategoricalCrossentropy(from_logits=True)([1], [[0.0, 0.0]]),
        losses.MeanSquaredError(reduction="sum")(true, predicted, sample_weight=[2.0]),
    ]
    got = [np.ravel(v)[0] for v in session.run(results)]
    log = -np.log(0.75)
    np.testing.assert_allclose(got, [0.0625, log, log, log, np.log(2), 0.125], rtol=1e-5)


def test_categories():
    result = tf.keras.utils.to_categorical([[2], [0]])
    assert result.tolist() == [[0, 0, 1], [1, 0, 0]] and result.dtype == np.float32
    assert tf.keras.utils.to_categorical(1, 3).tolist() == [0, 1, 0]


def test_names_are_looked_up():
    assert tf.keras.activations.get("relu") is tf.keras.activations.relu
    assert isinstance(tf.keras.initializers.get("he_normal"), tf.variance_scaling_initializer)
    for part in ("activations", "initializers", "regularizers", "constraints"):
        with pytest.raises(ValueError):
            getattr(tf.keras, part).get("nothing")


def test_a_model_inside_another_is_one_of_its_layers():
    one, two = tf.keras.Input((3,)), tf.keras.Input((3,))
    inner = tf.keras.Sequential([layers.Dense(4), layers.BatchNormalization(), layers.Dense(2)])
    model = tf.keras.Model([one, two], layers.Subtract()([inner(one), inner(two)]))
    assert [layer.name for layer in model.layers] == ["input_1", "input_2", "sequential", "subtract"]
    assert [v.op.name.rpartition("/")[2] for v in model.weights[2:6]] == [
        "gamma",
        "beta",
        "moving_mean",
        "moving_variance",
    ]
    again = tf.keras.models.model_from_json(model.to_json())
    assert [v.shape.as_list() for v in again.weights] == [v.shape.as_list() for v in model.weights]


def test_what_is_trained_is_decided_when_the_model_is_compiled():
    judge = tf.keras.Sequential([layers.Dense(1, input_shape=(3,))])
    judge.compile("sgd", "mse")
    judge.trainable = False
    maker = tf.keras.Sequential([layers.Dense(3, input_shape=(2,))])
    noise = tf.keras.Input((2,))
    both = tf.keras.Model(noise, judge(maker(noise)))
    both.compile("sgd", "mse")
    before = judge.get_weights()
    both.train_on_batch(np.ones((4, 2)), np.full(4, 5.0))
    np.testing.assert_array_equal(judge.get_weights()[0], before[0])
    judge.train_on_batch(np.ones((4, 3)), np.full(4, 5.0))
    assert not np.array_equal(judge.get_weights()[0], before[0])


def test_a_library_gives_a_layer_what_belongs_to_it():
    layer, inner = tf.keras.layers.Layer(), tf.keras.layers.Dense(2)
    assert layer._track_trackable(inner, name="inner") is inner and layer.inner is inner
    other = layer._track_trackable(tf.keras.layers.Dense(3), name="inner")
    assert layer.inner is inner
    layer._track_trackable(other, name="inner", overwrite=True)
    assert layer.inner is other
