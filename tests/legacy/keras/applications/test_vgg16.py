"""The networks of `tf.keras.applications`: their published sizes, their tops, their training."""

import numpy as np
import pytest

import tensorfleet as tf

A = tf.keras.applications
# As the documentation of Keras's applications lists them.
PARAMETERS = {
    "VGG16": 138_357_544,
    "VGG19": 143_667_240,
    "MobileNet": 4_253_864,
    "MobileNetV2": 3_538_984,
    "Xception": 22_910_480,
    "InceptionV3": 23_851_784,
    "ResNet50": 25_636_712,
    "ResNet101": 44_707_176,
    "ResNet50V2": 25_613_800,
    "ResNet152V2": 60_380_648,
    "DenseNet121": 8_062_504,
}


@pytest.fixture(autouse=True)
def forgetful():
    with tf.Graph().as_default():
        yield
    tf.keras.backend.set_session(None)


@pytest.mark.parametrize("name", PARAMETERS)
def test_networks_have_their_published_sizes(name):
    model = getattr(A, name)(weights=None)
    assert model.count_params() == PARAMETERS[name]
    assert model.output_shape == (None, 1000)


def test_networks_without_their_top_take_any_size():
    model = A.MobileNet(weights=None, include_top=False, alpha=0.25)
    assert model.output_shape == (None, None, None, 256)
    pooled = A.MobileNetV2(weights=None, include_top=False, pooling="max", alpha=0.35)
    assert pooled.predict(np.zeros([1, 40, 48, 3], "float32")).shape == (1, 1280)


def test_a_network_trains_on_top_of_another_layer():
    inputs = tf.keras.Input((32, 32, 1))
    colours = tf.keras.layers.Concatenate()([inputs] * 3)
    net = A.MobileNet(
        weights=None, input_tensor=colours, input_shape=(32, 32, 3), alpha=0.25, classes=2, dropout=0
    )
    model = tf.keras.Model(inputs, net.output)
    model.compile("adam", "sparse_categorical_crossentropy")
    x = np.random.RandomState(0).rand(8, 32, 32, 1).astype("float32")
    y = np.arange(8) % 2
    x[y == 1] += 1
    history = model.fit(x, y, epochs=4, verbose=0).history["loss"]
    assert history[-1] < history[0]


def test_weights_come_from_files(tmp_path):
    model = A.MobileNet(weights=None, input_shape=(32, 32, 3), alpha=0.25, classes=3)
    model.save_weights(str(tmp_path / "net"))
    x = np.random.RandomState(0).rand(1, 32, 32, 3).astype("float32")
    expected = model.predict(x)
    with tf.Graph().as_default():
        tf.keras.backend.set_session(None)
        again = A.MobileNet(weights=str(tmp_path / "net"), input_shape=(32, 32, 3), alpha=0.25, classes=3)
        np.testing.assert_allclose(again.predict(x), expected, rtol=1e-4)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "not downloaded here: give `weights=None`"),
        ({"classes": 5}, "`classes` should be 1000"),
        ({"weights": "missing.h5"}, "path to the weights file"),
        ({"weights": None, "input_shape": (16, 16, 3)}, "at least 32x32"),
        ({"weights": None, "input_shape": (None, None, 3)}, "static `input_shape`"),
    ],
)
def test_what_cannot_be_is_refused(options, text):
    with pytest.raises(ValueError, match=text):
        A.ResNet50(**options)


def test_images_are_prepared_as_each_network_was_trained():
    x = np.full([1, 2, 2, 3], 255, np.uint8)
    x[..., 1:] = 0
    np.testing.assert_allclose(A.mobilenet.preprocess_input(x)[0, 0, 0], [1, -1, -1])
    np.testing.assert_allclose(
        A.resnet50.preprocess_input(x)[0, 0, 0], [-103.939, -116.779, 255 - 123.68], rtol=1e-5
    )
    torch = A.densenet.preprocess_input(x)[0, 0, 0]
    np.testing.assert_allclose(torch, [(1 - 0.485) / 0.229, -0.456 / 0.224, -0.406 / 0.225], rtol=1e-5)
    with tf.Session() as session:
        result = A.vgg16.preprocess_input(tf.constant(x.astype("float32")))
        np.testing.assert_allclose(session.run(result), A.vgg16.preprocess_input(x), rtol=1e-5)
    first = A.vgg16.preprocess_input(x.transpose([0, 3, 1, 2]), data_format="channels_first")
    np.testing.assert_allclose(first.transpose([0, 2, 3, 1]), A.vgg16.preprocess_input(x))


def test_a_layer_that_does_not_ask_whether_it_is_trained_is_not_told():
    x = tf.ones([2, 3])
    result = tf.keras.layers.Flatten()(tf.keras.layers.Dense(4)(x, training=True), training=False)
    assert result.shape.as_list() == [2, 4]


def test_layers_inside_of_a_call_for_training_are_called_for_training():
    class Outer(tf.keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.inner = tf.keras.layers.Dropout(0.5)

        def call(self, inputs):
            return self.inner(inputs)

    class Whole(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self._layers.append(Outer())

        def call(self, inputs, training=None):
            return self._layers[0](inputs)

    model, x = Whole(), tf.ones([100])
    trained, used = model(x, training=True), model(x, training=False)
    with tf.Session() as sess:
        trained, used = sess.run([trained, used])
    assert set(trained) == {0.0, 2.0} and set(used) == {1.0}
