"""Which task is the chief of a script."""

import pytest

from tensorfleet.cli.plan import with_chief


@pytest.mark.parametrize(
    ("chief", "jobs"),
    [
        ('self.is_master = task.type == "master" and task.index == 0', {"ps": 1, "master": 1, "worker": 1}),
        ('is_chief = task["type"] in ("master", "worker") and index == 0', {"ps": 1, "worker": 2}),
        ('is_chief = index == 0\nif task["type"] == "master": evaluate()', {"ps": 1, "worker": 2}),
        ('run(target, job_name == "master", is_chief=is_chief)', {"ps": 1, "master": 1, "worker": 1}),
        ('if config["task"]["type"] in ["master", "worker"]: run()', {"ps": 1, "worker": 2}),
        ("if config.task_type == TaskType.MASTER: train()", {"ps": 1, "master": 1, "worker": 1}),
        ('if FLAGS.mode == "master": train()', {"ps": 1, "worker": 2}),
        ('is_master = task.type != "worker"\nkind = "master"', {"ps": 1, "master": 1, "worker": 1}),
        ('is_chief = task.type != "worker"', {"ps": 1, "worker": 2}),
    ],
)
def test_the_first_worker_is_the_master_of_a_script_without_another_chief(tmp_path, chief, jobs):
    path = tmp_path / "script.py"
    path.write_text(f'config = os.environ["TF_CONFIG"]\ntf.train.Server(config["cluster"])\n{chief}\n')
    assert with_chief(path, {"ps": 1, "worker": 2}) == jobs
    assert with_chief(path, {"worker": 2, "chief": 1}) == {"worker": 2, "chief": 1}


@pytest.mark.parametrize(
    ("lines", "jobs"),
    [
        ("tf.estimator.train_and_evaluate(a, b, c)", {"ps": 1, "chief": 1, "worker": 1}),
        ("e = tf.estimator.Estimator(f)\nos.environ['TF_CONFIG'] = '{}'", {"ps": 1, "worker": 2}),
        ("tf.train.Server(c)\ntf.estimator.RunConfig()", {"ps": 1, "worker": 2}),
        ("tf.estimator.inputs.numpy_input_fn(x)", {"ps": 1, "worker": 2}),
        ("tf.estimator.ModeKeys.TRAIN", {"ps": 1, "worker": 2}),
        ("estimator = learn.DNNClassifier(c)\nestimator.fit(x)", {"ps": 1, "worker": 2}),
        ("tf.estimator.Estimator(f, tf.contrib.learn.RunConfig())", {"ps": 1, "worker": 2}),
        ("from tensorflow.estimator import Estimator", {"ps": 1, "chief": 1, "worker": 1}),
        ("tf.estimator.DNNClassifier(c)\ntf.distribute.MirroredStrategy()", {"ps": 1, "worker": 2}),
    ],
)
def test_the_first_worker_is_the_chief_of_a_script_with_estimators(tmp_path, lines, jobs):
    path = tmp_path / "script.py"
    path.write_text(lines)
    assert with_chief(path, {"ps": 1, "worker": 2}) == jobs


def test_the_only_worker_is_the_chief_of_a_script_with_estimators(tmp_path):
    path = tmp_path / "script.py"
    path.write_text("tf.estimator.train_and_evaluate(a, b, c)")
    assert with_chief(path, {"ps": 1, "worker": 1}) == {"ps": 1, "chief": 1, "worker": 0}


def test_a_script_that_writes_its_cluster_down_is_the_chief_when_it_runs_alone(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(
        "import os, tensorflow as tf\n"
        "if FLAGS.ps_hosts:\n    os.environ['TF_CONFIG'] = FLAGS.ps_hosts\n"
        "tf.estimator.RunConfig()\n"
    )
    assert with_chief(path, {"ps": 1, "worker": 2}) == {"ps": 1, "worker": 2}
    assert with_chief(path, {"ps": 0, "worker": 1}) == {"ps": 0, "chief": 1, "worker": 0}
