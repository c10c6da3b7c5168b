"""What callbacks do during training."""

import glob
import os

import numpy as np
import pytest

import tensorfleet as tf

K, layers, callbacks = tf.keras.backend, tf.keras.layers, tf.keras.callbacks
X = np.random.RandomState(0).rand(20, 3).astype("float32")
Y = X.sum(1)


@pytest.fixture
def model():
    result = tf.keras.Sequential([layers.Dense(1, input_shape=(3,), kernel_initializer="zeros")])
    result.compile(tf.keras.optimizers.SGD(0.1), "mse", metrics=["mae"])
    return result


def test_hooks_are_called_in_order(model):
    class Listener(callbacks.Callback):
        def __init__(self):
            super().__init__()
            self.heard = []

        def on_train_begin(self, logs=None):
            self.heard.append("train")

        def on_epoch_begin(self, epoch, logs=None):
            self.heard.append(f"epoch {epoch}")

        def on_batch_end(self, batch, logs=None):
            self.heard.append(f"batch {batch} of {logs['size']}: {sorted(logs)}")

        def on_test_batch_end(self, batch, logs=None):
            self.heard.append(f"test {batch}")

        def on_epoch_end(self, epoch, logs=None):
            self.heard.append(sorted(logs))

        def on_train_end(self, logs=None):
            self.heard.append("end")

    listener = Listener()
    model.fit(X, Y, batch_size=12, verbose=0, callbacks=[listener], validation_data=(X[:4], Y[:4]))
    keys = "['batch', 'loss', 'mean_absolute_error', 'size']"
    shown = ["loss", "mean_absolute_error", "val_loss", "val_mean_absolute_error"]
    expected = ["train", "epoch 0", f"batch 0 of 12: {keys}", f"batch 1 of 8: {keys}", "test 0", shown, "end"]
    assert listener.heard == expected
    assert listener.model is model and listener.params["samples"] == 20


def test_functions_as_a_callback(model):
    seen = []
    callback = callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: seen.append(epoch),
        on_batch_begin=lambda batch, logs: seen.append(f"b{batch}"),
    )
    model.fit(X, Y, epochs=2, batch_size=20, verbose=0, callbacks=[callback])
    assert seen == ["b0", 0, "b0", 1]


def test_training_stops_early_with_the_best_weights(model):
    K.set_value(model.optimizer.lr, 0.0)
    stopping = callbacks.EarlyStopping(monitor="loss", min_delta=0.01, patience=2, restore_best_weights=True)
    history = model.fit(X, Y, epochs=10, verbose=0, callbacks=[stopping])
    assert len(history.epoch) == 3 and stopping.stopped_epoch == 2


def test_training_stops_when_the_loss_is_no_number(model, capsys):
    model.fit(X, Y * np.nan, epochs=3, verbose=0, callbacks=[callbacks.TerminateOnNaN()])
    assert "Invalid loss, terminating training" in capsys.readouterr().out
    assert len(model.history.epoch) == 1


def test_the_learning_rate_follows_a_schedule(model):
    by_epoch = callbacks.LearningRateScheduler(lambda epoch: 0.5 / (epoch + 1))
    history = model.fit(X, Y, epochs=2, verbose=0, callbacks=[by_epoch])
    np.testing.assert_allclose(history.history["lr"], [0.5, 0.25])
    by_rate = callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.5)
    model.fit(X, Y, epochs=2, verbose=0, callbacks=[by_rate])
    assert K.get_value(model.optimizer.lr) == pytest.approx(0.0625)
    with pytest.raises(ValueError, match="should be float"):
        model.fit(X, Y, verbose=0, callbacks=[callbacks.LearningRateScheduler(lambda epoch: 1)])


def test_the_learning_rate_falls_on_a_plateau(model):
    plateau = callbacks.ReduceLROnPlateau(monitor="loss", factor=0.5, patience=1, min_delta=100.0)
    model.fit(X, Y, epochs=4, verbose=0, callbacks=[plateau])
    assert K.get_value(model.optimizer.lr) == pytest.approx(0.1 * 0.5**3)


def test_a_table_of_epochs(model, tmp_path):
    path = tmp_path / "log.csv"
    model.fit(X, Y, epochs=2, verbose=0, callbacks=[callbacks.CSVLogger(path)])
    model.fit(X, Y, epochs=1, verbose=0, callbacks=[callbacks.CSVLogger(path, append=True)])
    lines = path.read_text().splitlines()
    assert lines[0] == "epoch,loss,mean_absolute_error"
    assert [line.split(",")[0] for line in lines[1:]] == ["0", "1", "0"]


def test_checkpoints_after_epochs_and_of_the_best_only(model, tmp_path):
    each = callbacks.ModelCheckpoint(str(tmp_path / "w-{epoch:02d}"), save_weights_only=True)
    best = callbacks.ModelCheckpoint(
        str(tmp_path / "best"), monitor="loss", mode="max", save_best_only=True, save_weights_only=True
    )
    model.fit(X, Y, epochs=2, verbose=0, callbacks=[each, best])
    names = sorted(os.path.basename(p) for p in glob.glob(str(tmp_path / "*.index")))
    assert names == ["best.index", "w-01.index", "w-02.index"]
    last = model.get_weights()
    model.load_weights(str(tmp_path / "best"))
    first = model.get_weights()
    assert not np.allclose(first[0], last[0])
    model.load_weights(str(tmp_path / "w-02"))
    np.testing.assert_array_equal(model.get_weights()[0], last[0])
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("w-02")


def test_summaries_for_tensorboard(model, tmp_path):
    board = callbacks.TensorBoard(
        log_dir=str(tmp_path), histogram_freq=1, write_images=True, update_freq="batch"
    )
    model.fit(X, Y, epochs=2, batch_size=10, verbose=0, callbacks=[board], validation_data=(X, Y))
    tags: dict[str, int] = {}
    graphs = 0
    for path in glob.glob(str(tmp_path / "events*")):
        for event in tf.train.summary_iterator(path):
            graphs += event.HasField("graph_def")
            for value in event.summary.value:
                tags[value.tag] = tags.get(value.tag, 0) + 1
    assert graphs == 1
    assert tags["epoch_loss"] == tags["epoch_val_mean_absolute_error"] == 2 and tags["batch_loss"] == 4
    assert tags["dense/kernel_0"] == 2
