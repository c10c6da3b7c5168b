"""The networks of `tf.keras.applications` are TensorFlow's: the same weights in the same order, the same outputs."""

import inspect
import json
import subprocess
import sys

import numpy as np
import pytest

import tensorfleet as tf

CASES = {
    "VGG16": dict(input_shape=[32, 32, 3], include_top=False, pooling="avg"),
    "MobileNet": dict(input_shape=[64, 64, 3], classes=10, alpha=0.5),
    "MobileNetV2": dict(input_shape=[64, 65, 3], classes=10, alpha=0.35),
    "Xception": dict(input_shape=[71, 71, 3], classes=10),
    "InceptionV3": dict(input_shape=[75, 75, 3], include_top=False, pooling="max"),
    "ResNet50": dict(input_shape=[40, 40, 3], classes=10),
    "ResNet50V2": dict(input_shape=[40, 40, 3], classes=10),
    "DenseNet121": dict(input_shape=[32, 32, 3], classes=10),
}


def weight(j, shape):
    random, shape = np.random.RandomState(j), tuple(shape)
    if len(shape) == 1:
        return random.uniform(0.5, 1.5, shape).astype("float32")
    fan = int(np.prod(shape[:-1])) if len(shape) < 4 or shape[-1] > 1 else int(np.prod(shape[:2]))
    return (random.uniform(-1, 1, shape) / np.sqrt(fan)).astype("float32")


def images(shape):
    return np.random.RandomState(0).uniform(-1, 1, [2, *shape]).astype("float32")


PEER = """
import json, sys
import numpy as np
import keras
from keras import applications
found = {}
for name, options in json.loads(sys.argv[1]).items():
    model = getattr(applications, name)(weights=None, **options)
    shapes = [list(w.shape) for w in model.get_weights()]
    model.set_weights([weight(j, shape) for j, shape in enumerate(shapes)])
    outputs = model(images(options["input_shape"]), training=False)
    found[name] = [shapes, np.asarray(outputs).tolist()]
    keras.backend.clear_session()
print("found: " + json.dumps(found))
"""


@pytest.fixture(scope="module")
def theirs():
    command = [
        sys.executable,
        "-c",
        "".join([inspect.getsource(weight), inspect.getsource(images), PEER]),
        json.dumps(CASES),
    ]
    done = subprocess.run(command, check=True, timeout=300, capture_output=True, text=True)
    return json.loads(done.stdout.partition("found: ")[2])


@pytest.mark.parametrize("name", CASES)
def test_networks_give_the_same(theirs, name):
    shapes, expected = theirs[name]
    with tf.Graph().as_default():
        model = getattr(tf.keras.applications, name)(weights=None, **CASES[name])
        assert [w.shape.as_list() for w in model.weights] == shapes
        model.set_weights([weight(j, shape) for j, shape in enumerate(shapes)])
        got = model.predict(images(CASES[name]["input_shape"]))
        tf.keras.backend.set_session(None)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-4 * scale)
