"""Models are compiled, fitted, evaluated and used to predict."""

import re

import numpy as np
import pytest

import tensorfleet as tf

K, layers = tf.keras.backend, tf.keras.layers
X = np.random.RandomState(0).rand(40, 3).astype("float32")
Y = (X @ np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]], "float32")) + 0.5
LABELS = (X.sum(1) > 1.5).astype("int64")


def linear(units=2, **kwargs):
    return tf.keras.Sequential([layers.Dense(units, input_shape=(3,), kernel_initializer="zeros", **kwargs)])


def test_fit_lowers_the_loss_and_keeps_its_history():
    model = linear()
    model.compile(tf.keras.optimizers.SGD(0.3), "mse", metrics=["mae"])
    history = model.fit(X, Y, epochs=6, batch_size=8, verbose=0, validation_split=0.25)
    assert list(history.history) == [
        "loss",
        "mean_absolute_error",
        "val_loss",
        "val_mean_absolute_error",
    ]
    assert history.epoch == list(range(6))
    assert history.history["loss"][-1] < history.history["loss"][0] / 10
    assert model.metrics_names == ["loss", "mean_absolute_error"]
    loss, error = model.evaluate(X, Y, verbose=0)
    predicted = model.predict(X, batch_size=7)
    assert predicted.shape == (40, 2)
    assert loss == pytest.approx(np.mean((predicted - Y) ** 2), rel=1e-4)
    assert error == pytest.approx(np.mean(np.abs(predicted - Y)), rel=1e-4)


def test_one_step_of_gradient_descent_by_hand():
    model = linear()
    model.compile(tf.keras.optimizers.SGD(0.1), "mse")
    assert model.train_on_batch(X, Y) == pytest.approx(np.mean(Y**2), rel=1e-5)
    gradient = 2 * X.T @ (0 - Y) / Y.size
    np.testing.assert_allclose(model.get_weights()[0], -0.1 * gradient, rtol=1e-4)


def test_the_learning_rate_can_be_set_between_steps():
    model = linear()
    model.compile("sgd", "mse")
    model.train_on_batch(X, Y)
    K.set_value(model.optimizer.lr, 0.0)
    before = model.get_weights()
    model.train_on_batch(X, Y)
    np.testing.assert_array_equal(model.get_weights()[0], before[0])
    assert K.get_value(model.optimizer.iterations) == 2
    model.optimizer.lr = 0.5
    assert K.get_value(model.optimizer.learning_rate) == 0.5


@pytest.mark.parametrize("name", ["sgd", "rmsprop", "adagrad", "adadelta", "adam", "adamax", "nadam", "ftrl"])
def test_every_optimizer_trains_whole_variables_and_rows(name):
    ids = tf.keras.Input((2,), dtype="int32")
    hidden = layers.Flatten()(layers.Embedding(5, 3)(ids))
    model = tf.keras.Model(ids, layers.Dense(1)(hidden))
    result = tf.keras.optimizers.get(name)
    result.learning_rate = 0.1
    model.compile(result, "mse")
    rows = np.array([[0, 1], [2, 1]])
    before = model.get_weights()
    losses = [model.train_on_batch(rows, np.array([5.0, -5.0])) for _ in range(3)]
    assert losses[2] < losses[0]
    after = model.get_weights()
    np.testing.assert_array_equal(after[0][3:], before[0][3:])
    again = tf.keras.optimizers.deserialize(tf.keras.optimizers.serialize(result))
    assert type(again) is type(result) and again.get_config()["learning_rate"] == pytest.approx(0.1)


def test_an_optimizer_of_train_is_wrapped():
    model = linear()
    model.compile(tf.train.GradientDescentOptimizer(0.1), "mse")
    model.fit(X, Y, epochs=2, verbose=0, batch_size=20)
    assert K.get_value(model.optimizer.iterations) == 4


def test_classes_given_as_numbers():
    model = linear(activation="softmax")
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    loss, accuracy = model.evaluate(X, LABELS, verbose=0)
    assert loss == pytest.approx(np.log(2), rel=1e-4)
    assert accuracy == pytest.approx(np.mean(LABELS == 0))
    assert model.metrics_names == ["loss", "acc"]


def test_several_outputs_with_weights_of_losses():
    one, two = tf.keras.Input((3,), name="one"), tf.keras.Input((3,), name="two")
    both = layers.concatenate([one, two])
    outputs = [
        layers.Dense(n, name=name, kernel_initializer="zeros")(both) for n, name in ((1, "a"), (2, "b"))
    ]
    model = tf.keras.Model([one, two], outputs)
    model.compile("sgd", {"a": "mse", "b": "mae"}, loss_weights={"a": 0.5, "b": 2.0}, metrics={"b": "mse"})
    assert model.metrics_names == ["loss", "a_loss", "b_loss", "b_mean_squared_error"]
    values = model.evaluate({"one": X, "two": X}, {"a": Y[:, 0], "b": Y}, verbose=0, batch_size=10)
    a, b = np.mean(Y[:, 0] ** 2), np.mean(np.abs(Y))
    np.testing.assert_allclose(values, [0.5 * a + 2 * b, a, b, np.mean(Y**2)], rtol=1e-4)
    assert [v.shape for v in model.predict([X, X])] == [(40, 1), (40, 2)]


def test_weights_of_examples_and_of_classes():
    model = linear(1, activation="sigmoid")
    model.compile("sgd", "binary_crossentropy", weighted_metrics=["accuracy"])
    heavy = np.where(LABELS == 1, 3.0, 1.0)
    by_sample = model.test_on_batch(X, LABELS, sample_weight=heavy)
    assert by_sample[0] == pytest.approx(np.log(2) * heavy.mean(), rel=1e-4)
    model.fit(X, LABELS, class_weight={0: 1.0, 1: 3.0}, epochs=1, verbose=0, shuffle=False)
    with pytest.raises(ValueError, match="must contain all classes"):
        model.fit(X, LABELS, class_weight={0: 1.0}, verbose=0)


def test_datasets_and_generators():
    model = linear()
    model.compile("sgd", "mse")
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(10)
    history = model.fit(data, epochs=2, verbose=0, validation_data=data)
    assert len(history.history["val_loss"]) == 2
    assert K.get_value(model.optimizer.iterations) == 8
    model.fit(data.repeat(), epochs=2, steps_per_epoch=3, verbose=0)
    assert K.get_value(model.optimizer.iterations) == 14
    assert model.predict(data).shape == (40, 2)
    assert model.evaluate(data, steps=4, verbose=0) == pytest.approx(
        model.evaluate(X, Y, verbose=0), rel=1e-4
    )

    def batches():
        while True:
            yield X[:8], Y[:8]

    model.fit_generator(batches(), steps_per_epoch=2, verbose=0)
    assert K.get_value(model.optimizer.iterations) == 16
    assert model.predict_generator(batches(), steps=2).shape == (16, 2)
    model.evaluate_generator(batches(), steps=2)


def test_tensors_of_the_graph_are_run_for_each_batch():
    model = linear()
    model.compile("sgd", "mse")
    data = tf.data.Dataset.from_tensor_slices((X, Y)).repeat().batch(10)
    x, y = data.make_one_shot_iterator().get_next()
    model.fit(x, y, steps_per_epoch=3, epochs=2, verbose=0)
    assert K.get_value(model.optimizer.iterations) == 6
    assert model.predict(x, steps=2).shape == (20, 2)
    assert model.evaluate(x, y, steps=2, verbose=0) > 0


def test_a_dataset_that_runs_out_ends_training(caplog):
    model = linear()
    model.compile("sgd", "mse")
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(10)
    assert len(model.fit(data, epochs=4, steps_per_epoch=3, verbose=0).history["loss"]) == 2


def test_a_sequence_says_how_long_it_is():
    class Parts(tf.keras.utils.Sequence):
        ended = 0

        def __len__(self):
            return 4

        def __getitem__(self, i):
            return X[i * 10 : i * 10 + 10], Y[i * 10 : i * 10 + 10]

        def on_epoch_end(self):
            self.ended += 1

    parts, model = Parts(), linear()
    model.compile("sgd", "mse")
    model.fit(parts, epochs=2, verbose=0)
    assert K.get_value(model.optimizer.iterations) == 8 and parts.ended == 2


def test_a_model_learns_its_inputs_from_the_data():
    class Net(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.parts = [layers.Dense(4, activation="relu"), layers.Dense(2)]

        def call(self, inputs):
            for part in self.parts:
                inputs = part(inputs)
            return inputs

    for model in (Net(), tf.keras.Sequential([layers.Dense(2)])):
        model.compile("sgd", "mse")
        model.fit(X, Y, epochs=1, verbose=0)
        assert model.predict(X[:5]).shape == (5, 2)


def test_moving_averages_and_dropout_follow_the_learning_phase():
    model = tf.keras.Sequential(
        [layers.BatchNormalization(momentum=0.0, input_shape=(3,)), layers.Dropout(0.5), layers.Dense(2)]
    )
    model.compile(tf.keras.optimizers.SGD(0.0), "mse")
    model.train_on_batch(X, Y)
    np.testing.assert_allclose(K.get_value(model.layers[0].moving_mean), X.mean(0), rtol=1e-4)
    np.testing.assert_array_equal(model.predict(X), model.predict(X))


def test_a_metric_of_ones_own_and_a_loss_that_was_added():
    class Total(tf.keras.metrics.Metric):
        def __init__(self, name="total", **kwargs):
            super().__init__(name=name, **kwargs)
            self.sum = self.add_weight("sum", initializer="zeros")

        def update_state(self, y_true, y_pred, sample_weight=None):
            self.sum.assign_add(tf.reduce_sum(y_true))

        def result(self):
            return self.sum

    model = linear()
    model.add_loss(lambda: tf.constant(7.0))
    model.compile("sgd", "mse", metrics=[Total()])
    loss, total = model.evaluate(X, Y, verbose=0, batch_size=16)
    assert total == pytest.approx(Y.sum(), rel=1e-4) and loss == pytest.approx(np.mean(Y**2) + 7, rel=1e-4)


def test_what_does_not_fit_is_refused():
    model = linear()
    with pytest.raises(RuntimeError, match="must compile your model"):
        model.fit(X, Y)
    with pytest.raises(ValueError, match="Unknown optimizer: nothing"):
        model.compile("nothing", "mse")
    with pytest.raises(ValueError, match="Unknown loss function"):
        model.compile("sgd", "nothing")
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match="expected dense_input to have shape \\(3,\\)"):
        model.fit(X[:, :2], Y)
    with pytest.raises(ValueError, match="same number of samples"):
        model.fit(X, Y[:3])
    with pytest.raises(ValueError, match="expects targets to have the same shape"):
        model.fit(X, Y[:, :1])
    with pytest.raises(TypeError, match="Unexpected keyword argument passed to optimizer"):
        tf.keras.optimizers.SGD(wrong=1)


def test_progress_is_shown(capsys):
    model = linear()
    model.compile("sgd", "mse")
    model.fit(X, Y, epochs=2, verbose=1, batch_size=20)
    written = capsys.readouterr().out
    assert written.startswith("Train on 40 samples\nEpoch 1/2\n")
    assert "40/40 [==============================] - " in written and "/sample - loss: " in written
    model.fit(X, Y, epochs=1, verbose=2)
    assert re.search(r"\n40/40 - \d+s - loss: ", capsys.readouterr().out)
    model.fit(X, Y, epochs=1, verbose=0)
    assert capsys.readouterr().out == ""
