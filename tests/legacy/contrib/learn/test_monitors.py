"""Monitors of `tf.contrib.learn`, which `fit` takes beside hooks."""

import numpy as np
import pytest

import tensorfleet as tf

learn = tf.contrib.learn
X = np.random.RandomState(0).rand(64, 2).astype(np.float32)
Y = (X[:, 0] > X[:, 1]).astype(np.int32)


@pytest.fixture
def classifier(tmp_path, monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    columns = [tf.contrib.layers.real_valued_column("", dimension=2)]
    config = learn.RunConfig(save_checkpoints_steps=5, save_checkpoints_secs=None)
    yield learn.LinearClassifier(columns, model_dir=str(tmp_path), config=config)
    tf.summary.FileWriterCache.clear()


class Seen(learn.monitors.EveryN):
    def __init__(self, *args):
        super().__init__(*args)
        self.steps, self.losses = [], []

    def every_n_step_begin(self, step):
        super().every_n_step_begin(step)
        return ["global_step:0"]

    def every_n_step_end(self, step, outputs):
        self.steps.append(step)
        self.losses.append(int(outputs["global_step:0"]))
        return False


def test_a_monitor_looks_at_the_first_step_and_at_every_fifth(classifier):
    seen = Seen(5, 1)
    classifier.fit(X, Y, steps=12, monitors=[seen])
    assert seen.steps == [1, 6, 11]
    assert len(seen.losses) == 3


def test_a_monitor_ends_the_training_at_a_step(classifier):
    classifier.fit(X, Y, steps=50, monitors=[learn.monitors.StopAtStep(num_steps=7)])
    assert classifier.get_variable_value("global_step") == 7
    with pytest.raises(ValueError, match="Exactly one of num_steps or last_step"):
        learn.monitors.StopAtStep()


def test_a_validation_monitor_evaluates_new_checkpoints_and_ends_what_gets_no_better(classifier, caplog):
    monitor = learn.monitors.ValidationMonitor(
        X,
        Y,
        every_n_steps=5,
        early_stopping_metric="accuracy",
        early_stopping_metric_minimize=False,
        early_stopping_rounds=10,
    )
    with caplog.at_level("INFO", logger="tensorflow"):
        classifier.fit(X, Y, steps=1000, monitors=[monitor])
    assert "Validation (step" in caplog.text
    assert monitor.early_stopped and monitor.best_metrics["accuracy"] == monitor.best_value
    assert classifier.get_variable_value("global_step") < 1000


def test_a_validation_monitor_needs_data_and_a_metric_that_is_there(classifier):
    with pytest.raises(ValueError, match="Either x or input_fn should be provided"):
        learn.monitors.ValidationMonitor()
    monitor = learn.monitors.ValidationMonitor(
        X, Y, every_n_steps=1, early_stopping_rounds=1, early_stopping_metric="absent"
    )
    with pytest.raises(ValueError, match="Metric absent missing from outputs"):
        classifier.fit(X, Y, steps=20, monitors=[monitor])


def test_tensors_are_logged_by_tags(classifier, caplog):
    with caplog.at_level("INFO", logger="tensorflow"):
        classifier.fit(
            X, Y, steps=2, monitors=[learn.monitors.PrintTensor({"at": "global_step:0"}, every_n=1)]
        )
    assert "Step 2: at = " in caplog.text
