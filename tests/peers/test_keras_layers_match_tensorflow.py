"""Keras's layers give what TensorFlow's give with the same weights."""

import json
import subprocess
import sys

import numpy as np
import pytest

import tensorfleet as tf

# name, arguments, shape of the input without the batch
CASES = [
    [
        "DepthwiseConv2D",
        {"kernel_size": 3, "strides": 2, "padding": "same", "depth_multiplier": 2},
        [7, 6, 3],
    ],
    ["DepthwiseConv2D", {"kernel_size": [2, 3], "use_bias": False, "activation": "relu"}, [7, 6, 3]],
    ["SeparableConv1D", {"filters": 4, "kernel_size": 3, "padding": "same"}, [9, 3]],
    ["Conv3DTranspose", {"filters": 2, "kernel_size": 2, "strides": 2}, [3, 4, 2, 3]],
    ["GlobalAveragePooling3D", {}, [3, 4, 2, 3]],
    ["GlobalMaxPooling3D", {}, [3, 4, 2, 3]],
    ["ZeroPadding1D", {"padding": [1, 2]}, [4, 3]],
    ["ZeroPadding2D", {"padding": [[1, 2], [0, 3]]}, [4, 3, 2]],
    ["ZeroPadding2D", {"padding": [1, 2], "data_format": "channels_first"}, [2, 4, 3]],
    ["ZeroPadding3D", {"padding": 2}, [2, 3, 4, 1]],
    ["Cropping1D", {"cropping": [1, 0]}, [4, 3]],
    ["Cropping2D", {"cropping": [[1, 0], [0, 2]]}, [5, 6, 2]],
    ["Cropping2D", {"cropping": 1, "data_format": "channels_first"}, [2, 5, 6]],
    ["Cropping3D", {}, [4, 5, 3, 2]],
    ["UpSampling1D", {"size": 3}, [4, 3]],
    ["UpSampling3D", {"size": [1, 2, 3]}, [2, 3, 2, 2]],
    ["PReLU", {"shared_axes": [1], "alpha_initializer": "ones"}, [4, 3]],
    ["PReLU", {"alpha_initializer": "random_uniform"}, [4, 3]],
    ["SpatialDropout1D", {"rate": 0.5}, [4, 3]],
    ["SpatialDropout2D", {"rate": 0.5}, [4, 3, 2]],
    ["AlphaDropout", {"rate": 0.5}, [4, 3]],
    ["SimpleRNN", {"units": 3}, [5, 4]],
    ["GRU", {"units": 3, "reset_after": True, "recurrent_activation": "sigmoid"}, [5, 4]],
    ["GRU", {"units": 3, "reset_after": False, "recurrent_activation": "sigmoid"}, [5, 4]],
    [
        "LSTM",
        {"units": 3, "dropout": 0.3, "recurrent_dropout": 0.2, "recurrent_activation": "sigmoid"},
        [5, 4],
    ],
    ["RNN of LSTMCell", {"units": 3, "recurrent_activation": "sigmoid"}, [5, 4]],
    ["RNN of GRUCell", {"units": 3, "recurrent_activation": "sigmoid", "reset_after": True}, [5, 4]],
    ["RNN of SimpleRNNCell", {"units": 3}, [5, 4]],
    ["RNN of two", {"units": 3}, [5, 4]],
    ["masked LSTM", {"units": 3, "recurrent_activation": "sigmoid"}, [5, 4]],
    ["masked LSTM", {"units": 3, "recurrent_activation": "sigmoid", "return_sequences": True}, [5, 4]],
    [
        "masked GRU",
        {"units": 3, "recurrent_activation": "sigmoid", "reset_after": True, "go_backwards": True},
        [5, 4],
    ],
    ["masked SimpleRNN", {"units": 3, "return_sequences": True}, [5, 4]],
    ["masked GlobalAveragePooling1D", {}, [5, 4]],
    ["asked Attention", {}, [5, 4]],
    ["asked Attention", {"use_scale": True}, [5, 4]],
    ["asked AdditiveAttention", {}, [5, 4]],
]
PEER = """
import json, sys
import numpy as np
import keras
layers = keras.layers
saved = {}
for i, (name, arguments, shape) in enumerate(json.loads(sys.argv[1])):
    x = np.random.RandomState(i).uniform(-1, 1, [2, *shape]).astype("float32")
    if name.startswith("masked"):
        x[0, 3:] = x[1, 1] = x[1, 4:] = 0
        layer = getattr(layers, name[7:])(**arguments)
        x = layers.Masking()(x)
    elif name.startswith("asked"):
        layer = getattr(layers, name[6:])(**arguments)
        x[0, 3:] = 0
        x = [x[:, :2] * 2, layers.Masking()(x), x[:, ::-1]]
    elif name == "RNN of two":
        layer = layers.RNN([layers.SimpleRNNCell(**arguments), layers.LSTMCell(2)], return_sequences=True)
    elif name.startswith("RNN of "):
        layer = layers.RNN(getattr(layers, name[7:])(**arguments))
    else:
        layer = getattr(layers, name)(**arguments)
    saved[f"y{i}"] = np.asarray(layer(x))
    for j, w in enumerate(layer.get_weights()):
        saved[f"w{i}_{j:02}"] = w
np.savez(sys.argv[2], **saved)
"""


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    file = str(tmp_path_factory.mktemp("keras") / "layers.npz")
    subprocess.run([sys.executable, "-c", PEER, json.dumps(CASES), file], check=True, timeout=120)
    with np.load(file) as result:
        return dict(result)


def made(name, arguments):
    layers = tf.keras.layers
    if name.startswith(("masked", "asked")):
        return getattr(layers, name.split()[1])(**arguments)
    if name == "RNN of two":
        upper = layers.LSTMCell(2, recurrent_activation="sigmoid")
        return layers.RNN([layers.SimpleRNNCell(**arguments), upper], return_sequences=True)
    if name.startswith("RNN of "):
        return layers.RNN(getattr(layers, name[7:])(**arguments))
    return getattr(layers, name)(**arguments)


@pytest.mark.parametrize("i", range(len(CASES)), ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)])
def test_layers_give_the_same(theirs, i):
    name, arguments, shape = CASES[i]
    x = np.random.RandomState(i).uniform(-1, 1, [2, *shape]).astype("float32")
    weights = [theirs[key] for key in sorted(theirs) if key.startswith(f"w{i}_")]
    with tf.Graph().as_default(), tf.Session() as session:
        layer = made(name, arguments)
        if name.startswith("masked"):
            x[0, 3:] = x[1, 1] = x[1, 4:] = 0
            y = layer(tf.keras.layers.Masking()(tf.constant(x)))
        elif name.startswith("asked"):
            x[0, 3:] = 0
            y = layer(
                [
                    tf.constant(x[:, :2] * 2),
                    tf.keras.layers.Masking()(tf.constant(x)),
                    tf.constant(x[:, ::-1]),
                ]
            )
        else:
            y = layer(tf.constant(x))
        assert [tuple(w.shape.as_list()) for w in layer.weights] == [w.shape for w in weights]
        session.run(tf.global_variables_initializer())
        for variable, value in zip(layer.weights, weights, strict=True):
            variable.load(value, session)
        got = session.run(y, {tf.keras.backend.learning_phase(): False})
    assert got.shape == tuple(y.shape.as_list())
    np.testing.assert_allclose(got, theirs[f"y{i}"], rtol=1e-4, atol=1e-5)
