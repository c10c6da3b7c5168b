"""What surrounds Keras's models: data sets in files, batches made ahead, scikit-learn, SavedModels, pictures of layers."""

import json
import pickle
import sys

import numpy as np
import pytest

import tensorfleet as tf

layers, K = tf.keras.layers, tf.keras.backend
RANDOM = np.random.RandomState(0)


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    (tmp_path / "datasets").mkdir()
    return tmp_path / "datasets"


def test_a_data_set_that_is_not_there_says_where_to_put_it(home):
    with pytest.raises(FileNotFoundError, match=f"no file imdb.npz.*{home}.*put the file there"):
        tf.keras.datasets.imdb.load_data()


def test_digits_of_ones_own_come_before_those_that_are_here(home):
    np.savez(home / "mnist.npz", x_train=np.ones([2, 28, 28]), y_train=[1, 2], x_test=[0], y_test=[3])
    (x, y), (_, test) = tf.keras.datasets.mnist.load_data()
    assert x.shape == (2, 28, 28) and y.tolist() == [1, 2] and test.tolist() == [3]


def test_small_images_are_read(home):
    def batch(path, **labels):
        data = {b"data": RANDOM.randint(0, 255, [2, 3072]).astype("uint8")}
        data |= {key.encode(): value for key, value in labels.items()}
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(pickle.dumps(data))
        return data[b"data"]

    for i in range(1, 6):
        images = batch(home / "cifar-10-batches-py" / f"data_batch_{i}", labels=[i, 0])
    batch(home / "cifar-10-batches-py" / "test_batch", labels=[9, 8])
    (x, y), (_, test) = tf.keras.datasets.cifar10.load_data()
    assert x.shape == (10, 32, 32, 3) and y.ravel().tolist() == [1, 0, 2, 0, 3, 0, 4, 0, 5, 0]
    np.testing.assert_array_equal(x[8], images[0].reshape(3, 32, 32).transpose(1, 2, 0))
    assert test.tolist() == [[9], [8]]
    for part in ("train", "test"):
        batch(home / "cifar-100-python" / part, fine_labels=[7, 8], coarse_labels=[1, 2])
    assert tf.keras.datasets.cifar100.load_data("coarse")[0][1].tolist() == [[1], [2]]


def test_texts_are_numbers_of_words(home):
    texts = np.empty(4, dtype=object)
    texts[:] = [[1, 2, 30], [4, 5], [1, 1, 1, 1], [30, 31]]
    arrays = {"x_train": texts[:3], "y_train": np.arange(3), "x_test": texts[3:], "y_test": np.array([3])}
    np.savez(home / "imdb.npz", **arrays)
    (x, y), (test, _) = tf.keras.datasets.imdb.load_data(num_words=10)
    assert dict(zip(y, x, strict=True)) == {0: [1, 4, 5, 2], 1: [1, 7, 8], 2: [1, 4, 4, 4, 4]}
    assert test.tolist() == [[1, 2, 2]]
    np.savez(home / "reuters.npz", x=texts, y=np.arange(4))
    (x, y), _ = tf.keras.datasets.reuters.load_data(
        oov_char=None, num_words=10, start_char=None, index_from=0
    )
    assert len(x) == 3 and all(len(t) <= 4 for t in x)
    (home / "imdb_word_index.json").write_text(json.dumps({"the": 1}))
    assert tf.keras.datasets.imdb.get_word_index() == {"the": 1}


class Counting(tf.keras.utils.Sequence):
    """Numbers, higher with each epoch."""

    def __init__(self):
        self.epoch = 0

    def __len__(self):
        return 3

    def __getitem__(self, index):
        return 10 * self.epoch + index

    def on_epoch_end(self):
        self.epoch += 1


@pytest.mark.parametrize("processes", [False, True])
def test_batches_are_made_ahead_in_order(processes):
    enqueuer = tf.keras.utils.OrderedEnqueuer(Counting(), use_multiprocessing=processes)
    enqueuer.start(workers=2, max_queue_size=2)
    items = enqueuer.get()
    assert [next(items) for _ in range(7)] == [0, 1, 2, 10, 11, 12, 20]
    enqueuer.stop()
    assert not enqueuer.is_running()


def test_a_generator_that_fails_ends_its_queue():
    def failing():
        yield 1
        raise KeyError("broken")

    enqueuer = tf.keras.utils.GeneratorEnqueuer(failing())
    enqueuer.start()
    items = enqueuer.get()
    assert next(items) == 1
    with pytest.raises(KeyError, match="broken"):
        next(items)
    assert not enqueuer.is_running()


def build(units=3):
    model = tf.keras.Sequential([layers.Dense(units, input_dim=4), layers.Dense(3, activation="softmax")])
    model.compile("adam", "categorical_crossentropy", metrics=["accuracy"])
    return model


def test_models_are_estimators_of_scikit_learn():
    wrappers = tf.keras.wrappers.scikit_learn
    x, y = RANDOM.rand(30, 4), np.array(["a", "b", "c"])[RANDOM.randint(0, 3, 30)]
    classifier = wrappers.KerasClassifier(build, epochs=1, verbose=0, units=5)
    classifier.fit(x, y)
    assert classifier.model.layers[0].units == 5 and set(classifier.predict(x)) <= set("abc")
    assert classifier.predict_proba(x).shape == (30, 3) and 0 <= classifier.score(x, y) <= 1
    assert classifier.get_params() == {"epochs": 1, "verbose": 0, "units": 5, "build_fn": build}
    with pytest.raises(ValueError, match="foo is not a legal parameter"):
        wrappers.KerasClassifier(build, foo=1)


def test_a_saved_model_is_served_and_loaded(tmp_path):
    model, x = build(), RANDOM.rand(6, 4)
    path = str(tmp_path / "served")
    tf.keras.experimental.export_saved_model(model, path)
    expected = model.predict(x)
    again = tf.keras.models.load_model(path)
    np.testing.assert_allclose(again.predict(x), expected, rtol=1e-6)
    assert again.metrics_names == ["loss", "acc"]
    with tf.Session(graph=tf.Graph()) as session:
        loaded = tf.saved_model.loader.load(session, ["serve"], path)
        signature = loaded.signature_def["serving_default"]
        names = [next(iter(part.values())).name for part in (signature.inputs, signature.outputs)]
        np.testing.assert_allclose(session.run(names[1], {names[0]: x}), expected, rtol=1e-6)
    again = tf.keras.models.model_from_yaml(model.to_yaml())
    assert again.count_params() == model.count_params()


def test_lambdas_come_back_from_their_code():
    i = layers.Input((3,))
    factor = 2.0
    y = layers.Lambda(lambda t, more: t * factor + more, arguments={"more": 1.0})(i)
    y = layers.Lambda(lambda t: K.sum(t, 1, keepdims=True), output_shape=lambda s: (s[0], 1))(y)
    again = tf.keras.models.model_from_json(tf.keras.Model(i, y).to_json())
    assert again.predict(np.ones([1, 3])).tolist() == [[9.0]] and again.output_shape == (None, 1)


def test_operations_between_layers_are_part_of_a_model():
    i = layers.Input((3,))
    h = layers.Dense(4)(i)
    model = tf.keras.Model(i, layers.Dense(1)(tf.concat([tf.nn.relu(h) * 2.0, i], 1)))
    assert len(model.trainable_weights) == 4
    names = [layer.name for layer in model.layers]
    assert "tf_op_layer_Relu" in names and "tf_op_layer_concat" in names
    x = RANDOM.rand(2, 3)
    j = layers.Input((3,))
    np.testing.assert_allclose(tf.keras.Model(j, model(j)).predict(x), model.predict(x), rtol=1e-6)
    again = tf.keras.models.model_from_json(model.to_json())
    again.set_weights(model.get_weights())
    np.testing.assert_allclose(again.predict(x), model.predict(x), rtol=1e-6)


def test_what_does_not_go_together_is_refused():
    a, b = layers.Input((3,)), layers.Input((4,))
    with pytest.raises(ValueError, match="Graph disconnected: cannot obtain value for tensor"):
        tf.keras.Model(a, layers.Dense(1)(b))
    with pytest.raises(ValueError, match=r"could not be broadcast together with shapes \(3,\) \(4,\)"):
        layers.add([a, b])
    with pytest.raises(ValueError, match="matching shapes except for the concat axis"):
        layers.concatenate([a, b], axis=0)


def test_a_layer_used_twice_has_no_one_output():
    dense, a, b = layers.Dense(2), layers.Input((3,)), layers.Input((3,))
    first, second = dense(a), dense(b)
    assert dense.get_output_at(0) is first and dense.get_input_at(1) is b
    assert dense.output_shape == (None, 2) and dense.get_output_at(1) is second
    with pytest.raises(AttributeError, match="multiple inbound nodes"):
        dense.output  # noqa: B018
    with pytest.raises(ValueError, match="only 2 inbound nodes"):
        dense.get_output_at(2)


def test_a_picture_of_a_model_needs_its_packages(monkeypatch):
    for name in ("pydot", "pydotplus", "pydot_ng"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match="You must install pydot and graphviz"):
        tf.keras.utils.plot_model(build())


def test_weights_of_imagenet_are_looked_for(home):
    with pytest.raises(
        ValueError, match="put the file vgg16_weights_tf_dim_ordering_tf_kernels_notop.h5 into"
    ):
        tf.keras.applications.VGG16(include_top=False)
    (home.parent / "models").mkdir()
    index = {str(i): [f"n{i}", f"thing {i}"] for i in range(1000)}
    (home.parent / "models" / "imagenet_class_index.json").write_text(json.dumps(index))
    decoded = tf.keras.applications.vgg16.decode_predictions(np.eye(1000)[7:8], top=1)
    assert decoded == [[("n7", "thing 7", 1.0)]]
    with pytest.raises(ValueError, match="expects a batch of predictions"):
        tf.keras.applications.vgg16.decode_predictions(np.zeros([1, 10]))


def test_rates_along_a_cosine():
    kinds = tf.keras.experimental
    assert K.eval(kinds.CosineDecay(1.0, 10)(5)) == pytest.approx(0.5)
    assert K.eval(kinds.CosineDecayRestarts(1.0, 10)(10)) == pytest.approx(1.0)
    again = kinds.LinearCosineDecay.from_config(kinds.LinearCosineDecay(0.5, 10).get_config())
    assert K.eval(again(0)) == pytest.approx(0.5005)
