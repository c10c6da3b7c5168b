"""Functions of `tf.keras.backend` give what TensorFlow's give."""

import subprocess
import sys

import numpy as np
import pytest

import tensorfleet as tf

CASES = """
def cases(K, constant):
    import numpy as np

    random = np.random.RandomState(0)

    def x(*shape):
        return constant(random.uniform(-1, 1, shape).astype("float32"))

    steps = random.uniform(0.1, 1, [2, 6, 5]).astype("float32")
    steps /= steps.sum(-1, keepdims=True)
    steps = constant(steps)
    labels, lengths, known = np.array([[1, 2, 0], [3, 3, 1]]), np.array([[6], [5]]), np.array([[2], [3]])
    image, sequence, volume = x(2, 7, 6, 3), x(2, 9, 3), x(2, 4, 5, 4, 2)
    return {
        "conv1d": lambda: K.conv1d(sequence, x(3, 3, 4), padding="causal", data_format="channels_last"),
        "conv2d": lambda: K.conv2d(image, x(3, 3, 3, 4), (2, 1), "same", "channels_last"),
        "dilated": lambda: K.conv2d(image, x(2, 2, 3, 4), data_format="channels_last", dilation_rate=(2, 2)),
        "conv3d": lambda: K.conv3d(volume, x(2, 2, 2, 2, 3), (1, 1, 1), "valid", "channels_last"),
        "conv2d_transpose": lambda: K.conv2d_transpose(
            image, x(2, 2, 4, 3), (2, 14, 12, 4), (2, 2), "valid", "channels_last"
        ),
        "depthwise_conv2d": lambda: K.depthwise_conv2d(image, x(3, 3, 3, 2), (1, 1), "same", "channels_last"),
        "separable_conv2d": lambda: K.separable_conv2d(
            image, x(3, 3, 3, 2), x(1, 1, 6, 4), (1, 1), "valid", "channels_last"
        ),
        "max": lambda: K.pool2d(image, (2, 3), (2, 2), "same", "channels_last"),
        "avg": lambda: K.pool3d(volume, (2, 2, 2), (1, 2, 1), "valid", "channels_last", "avg"),
        "batch_normalization": lambda: K.batch_normalization(image, x(3), x(3) + 2, x(3), x(3)),
        "ctc": lambda: K.ctc_batch_cost(labels, steps, lengths, known),
        "greedy": lambda: K.ctc_decode(steps, lengths[:, 0])[0][0][:, :5],
        "beam": lambda: K.ctc_decode(steps, lengths[:, 0], greedy=False, beam_width=5, top_paths=2)[1],
        "temporal_padding": lambda: K.temporal_padding(sequence, (1, 2)),
        "spatial_2d_padding": lambda: K.spatial_2d_padding(image, ((1, 2), (0, 3)), "channels_first"),
        "spatial_3d_padding": lambda: K.spatial_3d_padding(volume, data_format="channels_last"),
        "repeat": lambda: K.repeat(x(2, 3), 4),
        "repeat_elements": lambda: K.repeat_elements(image, 3, 2),
        "resize_images": lambda: K.resize_images(image, 2, 3, "channels_last"),
        "resize_volumes": lambda: K.resize_volumes(volume, 1, 2, 3, "channels_last"),
        "hard_sigmoid": lambda: K.hard_sigmoid(x(3) * 2.4),
    }
"""
PEER = """
import sys
import numpy as np
import tensorflow as tf
from tensorflow.keras import backend
saved = {name: np.asarray(ask()) for name, ask in cases(backend, tf.constant).items()}
np.savez(sys.argv[1], **saved)
"""
NAMES = [line.split('"')[1] for line in CASES.splitlines() if line.startswith('        "')]


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    file = str(tmp_path_factory.mktemp("keras") / "backend.npz")
    done = subprocess.run(
        [sys.executable, "-c", CASES + PEER, file], timeout=120, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    with np.load(file) as result:
        return dict(result)


@pytest.fixture(scope="module")
def ours():
    by_name = {}
    exec(CASES, by_name)
    with tf.Graph().as_default(), tf.Session() as session:
        return session.run(
            {name: ask() for name, ask in by_name["cases"](tf.keras.backend, tf.constant).items()}
        )


@pytest.mark.parametrize("name", NAMES)
def test_functions_give_the_same(theirs, ours, name):
    np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-4, atol=1e-5)
