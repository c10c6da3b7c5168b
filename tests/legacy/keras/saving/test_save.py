"""Models as text and as files."""

import json

import numpy as np
import pytest

import tensorfleet as tf

K, layers = tf.keras.backend, tf.keras.layers
X = np.random.RandomState(0).rand(20, 3).astype("float32")
Y = X.sum(1)


def chain():
    return tf.keras.Sequential(
        [
            layers.Dense(
                4, activation="relu", input_shape=(3,), kernel_regularizer=tf.keras.regularizers.l2(0.1)
            ),
            layers.BatchNormalization(),
            layers.Dropout(0.5),
            layers.Dense(1, kernel_constraint="non_neg"),
        ]
    )


def branched():
    one, two = tf.keras.Input((3,), name="one"), tf.keras.Input((3,), name="two")
    shared = layers.Dense(2, name="shared")
    both = layers.Concatenate()([shared(one), shared(two)])
    return tf.keras.Model([one, two], [layers.Dense(1, name="a")(both), layers.Dense(2, name="b")(both)])


def test_a_chain_survives_json():
    model = chain()
    again = tf.keras.models.model_from_json(model.to_json())
    assert [type(layer).__name__ for layer in again.layers] == [
        type(layer).__name__ for layer in model.layers
    ]
    assert json.loads(again.to_json())["config"] == json.loads(model.to_json())["config"]
    again.set_weights(model.get_weights())
    np.testing.assert_allclose(again.predict(X), model.predict(X), rtol=1e-6)


def test_a_branched_model_survives_json():
    model = branched()
    text = model.to_json()
    again = tf.keras.models.model_from_json(text)
    assert json.loads(again.to_json()) == json.loads(text)
    again.set_weights(model.get_weights())
    for ours, theirs in zip(again.predict([X, X[::-1]]), model.predict([X, X[::-1]]), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    uses = {layer["name"]: layer["inbound_nodes"] for layer in json.loads(text)["config"]["layers"]}
    assert uses["shared"] == [[["one", 0, 0, {}]], [["two", 0, 0, {}]]]
    assert uses["a"] == [[["concatenate", 0, 0, {}]]]


def test_a_clone_has_weights_of_its_own():
    for model, data in ((chain(), X), (branched(), [X, X])):
        clone = tf.keras.models.clone_model(model)
        assert not {id(w) for w in clone.weights} & {id(w) for w in model.weights}
        clone.set_weights(model.get_weights())
        for ours, theirs in zip(np.atleast_1d(clone.predict(data)[0]), model.predict(data)[0], strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_a_layer_of_ones_own_is_found_by_its_name():
    class Twice(layers.Layer):
        def call(self, inputs):
            return inputs * 2.0

    model = tf.keras.Sequential([Twice(input_shape=(3,))])
    text = model.to_json()
    with pytest.raises(ValueError, match="Unknown layer: Twice"):
        tf.keras.models.model_from_json(text)
    again = tf.keras.models.model_from_json(text, custom_objects={"Twice": Twice})
    np.testing.assert_allclose(again.predict(X), X * 2)
    with tf.keras.utils.CustomObjectScope({"Twice": Twice}):
        tf.keras.models.model_from_json(text)


def test_weights_and_the_optimizer_in_a_checkpoint(tmp_path):
    model = chain()
    model.compile(tf.keras.optimizers.Adam(0.01), "mse")
    model.fit(X, Y, epochs=2, verbose=0)
    path = str(tmp_path / "weights")
    model.save_weights(path)
    names = dict(tf.train.list_variables(path))
    assert "layer_with_weights-0/kernel/.ATTRIBUTES/VARIABLE_VALUE" in names
    assert "layer_with_weights-0/kernel/.OPTIMIZER_SLOT/optimizer/m/.ATTRIBUTES/VARIABLE_VALUE" in names
    assert "optimizer/iter/.ATTRIBUTES/VARIABLE_VALUE" in names
    saved = model.get_weights()
    other = chain()
    other.load_weights(path)
    for ours, theirs in zip(other.get_weights(), saved, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    model.fit(X, Y, epochs=1, verbose=0)
    model.load_weights(path)
    assert K.get_value(model.optimizer.iterations) == 2
    with pytest.raises(OSError, match="neither a checkpoint nor an HDF5 file"):
        model.load_weights(str(tmp_path / "nothing"))


def test_hdf5_needs_its_package(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match="pip install h5py"):
        chain().save(tmp_path / "model.h5")


def test_a_whole_model_in_one_file(tmp_path):
    pytest.importorskip("h5py")
    model = chain()
    model.compile(tf.keras.optimizers.Adam(0.01), "mse", metrics=["mae"])
    model.fit(X, Y, epochs=2, verbose=0)
    path = str(tmp_path / "model.h5")
    model.save(path)
    again = tf.keras.models.load_model(path)
    np.testing.assert_allclose(again.predict(X), model.predict(X), rtol=1e-6)
    assert again.metrics_names == model.metrics_names
    for ours, theirs in zip(again.optimizer.get_weights(), model.optimizer.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_the_summary_is_a_table():
    lines: list[str] = []
    chain().summary(print_fn=lines.append)
    assert lines[:7] == [
        'Model: "sequential"',
        "_" * 65,
        "Layer (type)                 Output Shape              Param #   ",
        "=" * 65,
        "dense (Dense)                (None, 4)                 16        ",
        "_" * 65,
        "batch_normalization (BatchNo (None, 4)                 16        ",
    ]
    assert lines[-4:] == ["Total params: 37", "Trainable params: 29", "Non-trainable params: 8", "_" * 65]
    lines.clear()
    branched().summary(print_fn=lines.append)
    assert any("shared[0][0]" in line for line in lines) and any("shared[1][0]" in line for line in lines)
