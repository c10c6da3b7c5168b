"""Training and evaluating in turn, in one process or by the tasks of a cluster."""

import glob
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.testing.cluster import free_addresses
from tests.support.tasks import output, read_until

sys.path.insert(0, str(Path(__file__).parent / "programs"))
import trainer

PROGRAM = Path(__file__).parent / "programs" / "trainer.py"


@pytest.fixture
def made(tmp_path, monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    config = tf.estimator.RunConfig(str(tmp_path / "m"), save_checkpoints_steps=20)
    yield tf.estimator.Estimator(trainer.model_fn, config=config)
    tf.summary.FileWriterCache.clear()


def serving():
    x = tf.placeholder(tf.float32, [None, 2])
    return tf.estimator.export.ServingInputReceiver({"x": x}, {"x": x})


class Steps(tf.estimator.Exporter):
    """Notes what it is given."""

    name = "steps"

    def __init__(self):
        self.seen = []

    def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
        self.seen.append((int(eval_result["global_step"]), is_the_final_export))
        assert checkpoint_path.endswith(f"-{self.seen[-1][0]}")
        assert export_path == os.path.join(estimator.model_dir, "export", "steps")
        return "noted"


def run(estimator, exporters=None, max_steps=50, throttle_secs=0):
    return tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(trainer.input_fn, max_steps=max_steps),
        tf.estimator.EvalSpec(
            lambda: trainer.input_fn(1), None, exporters=exporters, throttle_secs=throttle_secs
        ),
    )


def test_every_checkpoint_but_the_first_is_evaluated(made):
    steps = Steps()
    metrics, exported = run(made, steps)
    assert steps.seen == [(20, False), (40, False), (50, True)]
    assert metrics["global_step"] == 50 and sorted(metrics) == ["global_step", "loss", "y"]
    assert exported == ["noted"]


def test_evaluations_are_throttled_but_for_the_last(made):
    steps = Steps()
    run(made, steps, throttle_secs=600)
    assert steps.seen == [(20, False), (50, True)]


def test_a_training_that_is_done_is_not_done_again(made):
    run(made)
    assert run(made) == (None, None)
    steps = Steps()
    run(made, steps, max_steps=60)
    assert steps.seen == [(60, True)]


def test_exporters_write_models(made):
    final = tf.estimator.FinalExporter("final", serving)
    latest = tf.estimator.LatestExporter("latest", serving, exports_to_keep=2)
    best = tf.estimator.BestExporter("best", serving, exports_to_keep=1)
    _, exported = run(made, [final, latest, best])
    assert all(isinstance(path, bytes) for path in exported)
    folder = os.path.join(made.model_dir, "export")
    by_name = {name: os.listdir(os.path.join(folder, name)) for name in ("final", "latest", "best")}
    assert {name: len(paths) for name, paths in by_name.items()} == {"final": 1, "latest": 2, "best": 1}
    predict = tf.contrib.predictor.from_saved_model(os.path.join(folder, "final", by_name["final"][0]))
    y = predict({"x": [[1.0, 1.0]]})["y"]
    np.testing.assert_allclose(y, [[made.get_variable_value("d/kernel").sum()]], rtol=1e-5)


def test_the_best_model_is_known_after_a_restart(tmp_path):
    class Model:
        model_dir = str(tmp_path)

        def export_saved_model(self, path, *_, **__):
            return path

    def step(exporter, loss):
        return exporter.export(Model(), "path", "checkpoint", {"loss": loss, "global_step": 1}, False)

    exporter = tf.estimator.BestExporter(serving_input_receiver_fn=serving)
    assert [step(exporter, loss) for loss in (3.0, 4.0, 2.0, 2.0)] == ["path", None, "path", None]
    with tf.summary.FileWriter(str(tmp_path / "eval")) as writer:
        for loss in (3.0, 2.0, 5.0):
            writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=loss)]), 1)
    again = tf.estimator.BestExporter(serving_input_receiver_fn=serving)
    assert [step(again, loss) for loss in (2.5, 2.0, 1.0)] == [None, "path", "path"]
    with pytest.raises(ValueError, match="no loss is found"):
        again.export(Model(), "path", "checkpoint", {"other": 1.0}, False)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: tf.estimator.TrainSpec(3), TypeError, "must be callable"),
        (lambda: tf.estimator.TrainSpec(serving, 0), ValueError, "max_steps > 0"),
        (lambda: tf.estimator.TrainSpec(serving, hooks=[3]), TypeError, "SessionRunHook"),
        (lambda: tf.estimator.EvalSpec(3), TypeError, "must be callable"),
        (lambda: tf.estimator.EvalSpec(serving, 0), ValueError, "steps > 0"),
        (lambda: tf.estimator.EvalSpec(serving, name=3), TypeError, "must be string"),
        (lambda: tf.estimator.EvalSpec(serving, start_delay_secs=-1), ValueError, "start_delay_secs >= 0"),
        (lambda: tf.estimator.EvalSpec(serving, throttle_secs=-1), ValueError, "throttle_secs >= 0"),
        (lambda: tf.estimator.EvalSpec(serving, exporters=3), TypeError, "must be an Exporter"),
        (lambda: tf.estimator.EvalSpec(serving, exporters=[Steps(), Steps()]), ValueError, "unique names"),
        (lambda: tf.estimator.LatestExporter("a", serving, exports_to_keep=0), ValueError, "positive"),
        (lambda: tf.estimator.BestExporter("a", serving, compare_fn=None), ValueError, "must not be None"),
        (lambda: tf.estimator.BestExporter("a", serving, compare_fn=lambda a: a), ValueError, "must include"),
    ],
)
def test_specifications_are_checked(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_parts_are_of_their_kinds(made):
    train, evaluate = tf.estimator.TrainSpec(serving), tf.estimator.EvalSpec(serving)
    for arguments in ((3, train, evaluate), (made, 3, evaluate), (made, train, 3)):
        with pytest.raises(TypeError, match="must have type"):
            tf.estimator.train_and_evaluate(*arguments)


class Cluster:
    """The tasks of a cluster, each a process of the same program."""

    def __init__(self, tasks, *arguments, **jobs):
        self._tasks, self._arguments = tasks, arguments
        self._cluster = free_addresses(**jobs)

    def start(self, job):
        return self._tasks.start(PROGRAM, *self._arguments, task=(self._cluster, job, 0))


def evaluated(folder: Path) -> list[int]:
    paths = glob.glob(str(folder / "eval" / "events*"))
    events = [e for path in sorted(paths) for e in tf.train.summary_iterator(path)]
    return [e.step for e in events if any(v.tag == "loss" for v in e.summary.value)]


def test_every_task_does_its_part_and_ends(tmp_path, tasks):
    cluster = Cluster(tasks, tmp_path, "200", ps=1, chief=1, worker=1)
    ps = cluster.start("ps")
    others = [cluster.start(job) for job in ("chief", "worker", "evaluator")]
    for process, job in zip(others, ("chief", "worker", "evaluator"), strict=True):
        assert f"{job} 0 is done" in output(process)
    assert "ps 0 is done" in output(ps)
    assert int(tf.train.load_variable(str(tmp_path), "global_step")) >= 200
    steps = evaluated(tmp_path)
    assert steps == sorted(set(steps)) and steps[-1] >= 200
    assert len(os.listdir(tmp_path / "export" / "last")) == 1


@pytest.mark.parametrize("victim", ["worker", "chief", "ps"])
def test_a_task_that_was_killed_comes_back(tmp_path, tasks, victim):
    cluster = Cluster(tasks, tmp_path, "300", ps=1, chief=1, worker=1)
    running = {job: cluster.start(job) for job in ("ps", "chief", "worker")}
    read_until(running["worker" if victim == "worker" else "chief"], lambda line: line == "step\n")
    running[victim].kill()
    running[victim].wait()
    running[victim] = cluster.start(victim)
    for job in ("chief", "worker", "ps"):
        assert f"{job} 0 is done" in output(running[job])
    assert int(tf.train.load_variable(str(tmp_path), "global_step")) >= 300


def test_workers_make_their_steps_together(tmp_path, tasks):
    cluster = Cluster(tasks, tmp_path, "60", "together", ps=1, chief=1, worker=1)
    running = {job: cluster.start(job) for job in ("ps", "chief", "worker", "evaluator")}
    for job in ("chief", "worker", "evaluator", "ps"):
        assert f"{job} 0 is done" in output(running[job])
    assert int(tf.train.load_variable(str(tmp_path), "global_step")) >= 60


def test_a_master_trains_and_evaluates(tmp_path, tasks):
    cluster = Cluster(tasks, tmp_path, "100", ps=1, master=1, worker=1)
    ps, master, worker = (cluster.start(job) for job in ("ps", "master", "worker"))
    for process in (master, worker, ps):
        output(process)
    assert evaluated(tmp_path)[-1] >= 100
    assert len(os.listdir(tmp_path / "export" / "last")) >= 1


def test_a_checkpoint_that_is_deleted_during_its_evaluation_is_left(made, monkeypatch):
    from tensorfleet_legacy.estimator.training import _Evaluator

    made.train(trainer.input_fn, steps=1)
    evaluator = _Evaluator(made, tf.estimator.EvalSpec(lambda: trainer.input_fn(1), None), 3)

    def deleted():
        for path in glob.glob(made.latest_checkpoint() + ".*"):
            os.remove(path)
        return trainer.input_fn(1)

    evaluator.spec = tf.estimator.EvalSpec(deleted, None)
    assert evaluator.evaluate() is None and not evaluator.finished
    evaluator.spec = tf.estimator.EvalSpec(lambda: 3, None)
    made = tf.estimator.Estimator(trainer.model_fn, made.model_dir + "2")
    made.train(trainer.input_fn, steps=3)
    evaluator._estimator = made
    with pytest.raises(TypeError):
        evaluator.evaluate()
    evaluator.spec = tf.estimator.EvalSpec(lambda: trainer.input_fn(1), None)
    metrics, exported = evaluator.evaluate()
    assert metrics["global_step"] == 3 and exported == [] and evaluator.finished


def test_an_evaluator_does_not_wait_for_ever_for_trainers_that_died(made, monkeypatch):
    made.train(trainer.input_fn, steps=1)
    monkeypatch.setenv("TENSORFLEET_CHECKPOINT_SECONDS", "0.05")
    cluster = {"chief": ["a:1"], "worker": ["b:1"]}
    task = {"type": "evaluator", "index": 0}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": task}))
    evaluator = tf.estimator.Estimator(trainer.model_fn, made.model_dir)
    train = tf.estimator.TrainSpec(trainer.input_fn, max_steps=3)
    evaluate = tf.estimator.EvalSpec(
        lambda: trainer.input_fn(1), None, start_delay_secs=0, throttle_secs=0.01
    )
    with pytest.raises(tf.errors.DeadlineExceededError) as caught:
        tf.estimator.train_and_evaluate(evaluator, train, evaluate)
    assert f"a new checkpoint to evaluate in {made.model_dir}" in caught.value.message
    assert "set TENSORFLEET_CHECKPOINT_SECONDS" in caught.value.message
    assert evaluated(Path(made.model_dir)) == [1]


def test_there_is_one_evaluator(tmp_path, monkeypatch):
    cluster = {"chief": ["a:1"], "worker": ["b:1"]}
    by_name = {"cluster": cluster, "task": {"type": "evaluator", "index": 1}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(by_name))
    estimator = tf.estimator.Estimator(trainer.model_fn, str(tmp_path))
    with pytest.raises(ValueError, match="only be one `evaluator` task"):
        run(estimator)
    with pytest.raises(ValueError, match="Please use tf.estimator.train_and_evaluate"):
        estimator.train(trainer.input_fn, steps=1)


def test_scripts_can_read_how_long_workers_wait():
    training = tf.python.estimator.training
    assert (training._DELAY_SECS_PER_WORKER, training._MAX_DELAY_SECS) == (5, 60)
