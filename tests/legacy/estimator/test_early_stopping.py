"""Trainings that end early, and evaluations in the midst of them."""

import importlib.util
import json
from pathlib import Path

import pytest

import tensorfleet as tf
from tensorfleet_legacy.estimator.early_stopping import evaluations

experimental = tf.estimator.experimental
spec = importlib.util.spec_from_file_location("trainer", Path(__file__).parent / "programs" / "trainer.py")
trainer = importlib.util.module_from_spec(spec)
spec.loader.exec_module(trainer)


@pytest.fixture
def made(tmp_path, monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    yield tf.estimator.Estimator(trainer.model_fn, str(tmp_path))
    tf.summary.FileWriterCache.clear()


def written(folder, *values):
    with tf.summary.FileWriter(folder) as writer:
        for step, value in values:
            writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=value)]), step)


CASES = {
    "higher": (experimental.stop_if_higher_hook, 2.0, [(1, 3.0)], [(1, 2.0)]),
    "lower": (experimental.stop_if_lower_hook, 2.0, [(1, 1.0)], [(1, 2.0)]),
    "increase": (experimental.stop_if_no_increase_hook, 10, [(1, 3.0), (11, 3.0)], [(1, 3.0), (11, 4.0)]),
    "decrease": (experimental.stop_if_no_decrease_hook, 10, [(1, 3.0), (11, 3.0)], [(1, 3.0), (11, 2.0)]),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("stops", [True, False])
def test_a_metric_ends_the_training(made, case, stops):
    make, number, ends, goes_on = CASES[case]
    written(made.eval_dir(), *(ends if stops else goes_on))
    hook = make(made, "loss", number, run_every_secs=None, run_every_steps=1)
    made.train(trainer.input_fn, hooks=[hook], steps=4)
    assert int(made.get_variable_value("global_step")) == (1 if stops else 4)


def test_the_first_steps_do_not_count(made):
    written(made.eval_dir(), (1, 9.0))
    hook = experimental.stop_if_higher_hook(
        made, "loss", 2.0, min_steps=2, run_every_secs=None, run_every_steps=1
    )
    made.train(trainer.input_fn, hooks=[hook], steps=4)
    assert int(made.get_variable_value("global_step")) == 4


def test_others_follow_the_chief(made, monkeypatch, tmp_path):
    cluster = {"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 0}}))
    other = tf.estimator.Estimator(trainer.model_fn, str(tmp_path))
    follows = experimental.make_early_stopping_hook(other, lambda: pytest.fail("only the chief asks"))
    asks = experimental.make_early_stopping_hook(made, lambda: True, None, 1)
    with tf.Graph().as_default():
        step = tf.train.create_global_step()
        train = tf.assign_add(step, 1)
        with tf.train.MonitoredSession(hooks=[follows, asks]) as sess:
            assert sess.run(train) == 1
            assert sess.should_stop()
        with tf.train.MonitoredSession(hooks=[follows]) as sess:
            sess.run(train)
            assert not sess.should_stop()
    with pytest.raises(TypeError, match="must have type"):
        experimental.make_early_stopping_hook(3, lambda: True)
    with pytest.raises(ValueError, match="Only one of"):
        experimental.make_early_stopping_hook(made, lambda: True, 1, 1)


def test_a_worker_waits_for_the_last_checkpoint(made, monkeypatch, tmp_path):
    made.train(trainer.input_fn, hooks=[experimental.make_stop_at_checkpoint_step_hook(made, 5)])
    assert int(made.get_variable_value("global_step")) == 5
    cluster = {"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 0}}))
    other = tf.estimator.Estimator(trainer.model_fn, str(tmp_path))
    with tf.Graph().as_default():
        train = tf.assign_add(tf.train.create_global_step(), 1)
        hook = experimental.make_stop_at_checkpoint_step_hook(other, 5, 0.01)
        done = 0
        with tf.train.MonitoredSession(hooks=[hook]) as sess:
            while not sess.should_stop():
                done = sess.run(train)
    assert done == 5


def test_a_worker_does_not_wait_for_ever_for_the_last_checkpoint(monkeypatch, tmp_path):
    monkeypatch.setenv("TENSORFLEET_CHECKPOINT_SECONDS", "0.05")
    cluster = {"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 0}}))
    other = tf.estimator.Estimator(trainer.model_fn, str(tmp_path))
    with tf.Graph().as_default():
        train = tf.assign_add(tf.train.create_global_step(), 1)
        hook = experimental.make_stop_at_checkpoint_step_hook(other, 1, 0.01)
        with pytest.raises(tf.errors.DeadlineExceededError) as caught:
            with tf.train.MonitoredSession(hooks=[hook]) as sess:
                sess.run(train)
    assert f"the checkpoint of step 1 in {tmp_path}" in caught.value.message
    assert "set TENSORFLEET_CHECKPOINT_SECONDS" in caught.value.message


def test_evaluation_in_memory(made):
    hook = experimental.InMemoryEvaluatorHook(
        made, lambda: trainer.input_fn(1), name="memory", every_n_iter=4
    )
    made.train(trainer.input_fn, hooks=[hook], steps=10)
    tf.summary.FileWriterCache.clear()
    result = evaluations(made.eval_dir("memory"))
    assert list(result) == [0, 4, 8, 10]
    last = made.evaluate(lambda: trainer.input_fn(1))
    assert result[10]["loss"] == pytest.approx(last["loss"], rel=1e-5)
    assert result[0]["loss"] > result[10]["loss"]
    with pytest.raises(ValueError, match="invalid every_n_iter"):
        experimental.InMemoryEvaluatorHook(made, trainer.input_fn, every_n_iter=0)
