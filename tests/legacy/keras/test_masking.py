"""Steps that do not count: in layers, in losses, in metrics."""

import numpy as np
import pytest

import tensorfleet as tf

layers = tf.keras.layers
WORDS = np.array([[1, 2, 3, 0, 0], [4, 0, 0, 0, 0], [2, 2, 1, 3, 4]])


@pytest.fixture(autouse=True)
def forgetful():
    with tf.Graph().as_default():
        yield
    tf.keras.backend.set_session(None)


@pytest.mark.parametrize("kind", ["SimpleRNN", "GRU", "LSTM"])
@pytest.mark.parametrize("way", ["forwards", "both ways"])
def test_what_follows_a_sentence_changes_nothing(kind, way):
    inputs = tf.keras.Input((None,))
    h = layers.Embedding(5, 4, mask_zero=True)(inputs)
    layer = getattr(layers, kind)(3)
    h = layers.Bidirectional(layer)(h) if way == "both ways" else layer(h)
    model = tf.keras.Model(inputs, h)
    padded = model.predict(WORDS)
    for row, length in zip(range(3), (3, 1, 5), strict=True):
        np.testing.assert_allclose(
            padded[row], model.predict(WORDS[row : row + 1, :length])[0], rtol=1e-4, atol=1e-6
        )


def test_masks_go_through_layers_that_keep_steps(session):
    x = layers.Masking(-1.0)(tf.constant([[[1.0, 2.0], [-1.0, -1.0], [3.0, -1.0]]]))
    passed = layers.Dropout(0.5)(layers.Dense(4, activation="relu")(x))
    again = layers.LSTM(2, return_sequences=True)(layers.TimeDistributed(layers.Dense(3))(passed))
    assert session.run(again._keras_mask).tolist() == [[True, False, True]]
    assert not hasattr(layers.LSTM(2)(again), "_keras_mask")
    assert not hasattr(layers.Flatten()(again), "_keras_mask")
    session.run(tf.global_variables_initializer())
    values = session.run(again, {tf.keras.backend.learning_phase(): False})
    np.testing.assert_array_equal(values[0, 0], values[0, 1])  # the step between leaves all as it was


def test_losses_and_metrics_leave_out_steps_that_do_not_count():
    inputs = tf.keras.Input((5,))
    h = layers.Embedding(5, 1, mask_zero=True, embeddings_initializer="ones")(inputs)
    model = tf.keras.Model(inputs, layers.Dense(1, kernel_initializer="ones")(h))
    model.compile("sgd", "mse", metrics=["mae"])
    truth = np.full([3, 5, 1], 3.0)
    truth[WORDS == 0] = 100.0
    loss, error = model.evaluate(WORDS, truth, verbose=0)
    np.testing.assert_allclose(
        loss, 4.0 * (WORDS != 0).mean(), rtol=1e-5
    )  # over all steps, those of zero too
    np.testing.assert_allclose(error, 2.0, rtol=1e-5)
    model.fit(WORDS, truth, epochs=200, verbose=0)
    np.testing.assert_allclose(model.predict(WORDS)[WORDS != 0], 3.0, atol=0.1)


def test_a_layer_of_ones_own_takes_and_gives_masks(session):
    class Count(layers.Layer):
        def call(self, inputs, mask=None):
            return tf.reduce_sum(tf.cast(mask, tf.float32), 1)

    class Longer(layers.Layer):
        def call(self, inputs):
            return tf.pad(inputs, [[0, 0], [1, 0], [0, 0]])

        def compute_mask(self, inputs, mask=None):
            return tf.pad(mask, [[0, 0], [1, 0]], constant_values=True)

    x = layers.Embedding(5, 2, mask_zero=True)(tf.constant(WORDS))
    session.run(tf.global_variables_initializer())
    assert session.run(Count()(x)).tolist() == [3, 1, 5]
    assert session.run(Count()(Longer()(x))).tolist() == [4, 2, 6]


@pytest.mark.parametrize("kind", [layers.Attention, layers.AdditiveAttention])
def test_attention_looks_only_where_something_is(session, kind):
    values = layers.Embedding(5, 4, mask_zero=True)(tf.constant(WORDS))
    result = kind()([tf.ones([3, 2, 4]), values])
    early = kind(causal=True)([values, values])
    session.run(tf.global_variables_initializer())
    table, got, first = session.run([tf.global_variables()[0], result, early])
    np.testing.assert_allclose(got[1], np.tile(table[4], [2, 1]), rtol=1e-5)
    np.testing.assert_allclose(first[2, 0], table[2], rtol=1e-5)
    assert not first[1, 1:].any()  # questions that do not count get no answer
    with pytest.raises(ValueError, match="list of length 2 or 3"):
        kind()([values])
