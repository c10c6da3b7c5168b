"""Models that run on parts of each batch."""

import numpy as np
import pytest

import tensorfleet as tf

layers, several = tf.keras.layers, tf.keras.utils.multi_gpu_model


@pytest.fixture(autouse=True)
def forgetful():
    with tf.Graph().as_default():
        yield
    tf.keras.backend.set_session(None)


def model():
    inputs = tf.keras.Input((3,))
    return tf.keras.Model(inputs, layers.Dense(1, name="out")(layers.Dense(4, activation="tanh")(inputs)))


@pytest.mark.parametrize("rows", [1, 7, 8])
def test_replicas_give_what_the_model_gives(rows):
    one = model()
    many = several(one, gpus=4)
    x = np.random.RandomState(0).rand(rows, 3).astype("float32")
    assert many.output_names == ["out"]
    np.testing.assert_allclose(many.predict(x), one.predict(x), rtol=1e-5)


def test_training_the_replicas_trains_the_model():
    one = model()
    many = several(one, gpus=2)
    many.compile("adam", "mse")
    x = np.random.RandomState(0).rand(64, 3).astype("float32")
    before = one.get_weights()
    history = many.fit(x, x.sum(1), epochs=20, verbose=0).history["loss"]
    assert history[-1] < history[0]
    assert len(many.trainable_weights) == 4
    assert any((a != b).any() for a, b in zip(before, one.get_weights(), strict=True))


def test_models_of_several_inputs_and_outputs():
    a, b = tf.keras.Input((2,)), tf.keras.Input((2,))
    one = tf.keras.Model([a, b], [layers.add([a, b]), layers.subtract([a, b])])
    x, y = np.arange(10.0).reshape([5, 2]), np.ones([5, 2])
    total, difference = several(one, gpus=[0, 1]).predict([x, y])
    np.testing.assert_allclose(total, x + y)
    np.testing.assert_allclose(difference, x - y)


@pytest.mark.parametrize("gpus", [1, [0]])
def test_one_replica_is_refused(gpus):
    with pytest.raises(ValueError, match="For multi-gpu usage to be effective"):
        several(model(), gpus=gpus)
