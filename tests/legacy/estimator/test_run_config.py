"""What a script learns of its cluster from RunConfig."""

import importlib
import json

import pytest

import tensorfleet as tf
from tensorfleet.cli.scripts import alias

CLUSTER = {"ps": ["a:1", "b:1"], "chief": ["c:1"], "worker": ["d:1", "e:1"]}


@pytest.mark.parametrize("kind", ["estimator", "contrib"])
def test_the_cluster_of_tf_config(monkeypatch, kind):
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": CLUSTER, "task": {"type": "worker", "index": 1}}))
    config = (tf.estimator if kind == "estimator" else tf.contrib.learn).RunConfig(model_dir="m")
    assert (config.task_type, config.task_id, config.is_chief) == ("worker", 1, False)
    assert (config.num_ps_replicas, config.num_worker_replicas, config.global_id_in_cluster) == (2, 3, 2)
    assert config.cluster_spec == tf.train.ClusterSpec(CLUSTER)
    assert (config.master, config.model_dir) == ("grpc://e:1", "m")


def test_without_a_cluster_it_is_the_only_worker(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    config = tf.estimator.RunConfig(save_checkpoints_steps=5)
    assert config.is_chief and config.master == "" and config.num_worker_replicas == 1
    assert (config.save_checkpoints_steps, config.save_checkpoints_secs) == (5, None)
    assert config.replace(model_dir="n").model_dir == "n"
    with pytest.raises(ValueError, match="colour"):
        config.replace(colour=1)
    changed = config.replace(save_checkpoints_secs=3)
    assert (changed.save_checkpoints_steps, changed.save_checkpoints_secs) == (None, 3)
    assert (config.session_config, config.evaluation_master, config.service) == (None, "", None)


def told(monkeypatch, job, index=0, cluster=CLUSTER, **others):
    task = {"type": job, "index": index}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": task, **others}))
    return tf.estimator.RunConfig()


def test_every_task_has_a_number_of_its_own(monkeypatch):
    order = [("chief", 0), ("worker", 0), ("worker", 1), ("ps", 0), ("ps", 1)]
    assert [told(monkeypatch, *task).global_id_in_cluster for task in order] == [0, 1, 2, 3, 4]


def test_an_evaluator_is_outside_the_cluster(monkeypatch):
    config = told(monkeypatch, "evaluator", eval_session_master="grpc://x:1")
    assert (config.task_type, config.is_chief, config.master) == ("evaluator", False, "")
    assert not config.cluster_spec.jobs and config.evaluation_master == "grpc://x:1"
    assert (config.num_ps_replicas, config.num_worker_replicas) == (0, 0)
    assert config.global_id_in_cluster is None


def test_sessions_speak_with_parameter_servers_only(monkeypatch):
    assert list(told(monkeypatch, "worker", 1).session_config.device_filters) == [
        "/job:ps",
        "/job:worker/task:1",
    ]
    assert list(told(monkeypatch, "chief").session_config.device_filters) == ["/job:ps", "/job:chief"]


def test_a_cluster_of_one_task_needs_no_server(monkeypatch):
    config = told(monkeypatch, "chief", cluster={"chief": ["a:1"]})
    assert config.master == "" and config.is_chief


def test_a_master_is_the_chief_of_older_clusters(monkeypatch):
    cluster = {"master": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}
    config = told(monkeypatch, "master", cluster=cluster)
    assert config.is_chief and config.num_worker_replicas == 2
    with pytest.raises(ValueError, match="task_type `evaluator` is not supported"):
        told(monkeypatch, "evaluator", cluster=cluster)
    with pytest.raises(ValueError, match="job `chief` is not supported"):
        told(monkeypatch, "master", cluster={**cluster, "chief": ["d:1"]})


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        (
            {"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0}},
            ValueError,
            'one "chief" node',
        ),
        (
            {"cluster": {"chief": ["a:1", "b:1"]}, "task": {"type": "chief", "index": 0}},
            ValueError,
            "only one",
        ),
        ({"cluster": {"chief": ["a:1"]}, "task": {"index": 0}}, ValueError, "task type must be set"),
        ({"cluster": {"chief": ["a:1"]}, "task": {"type": "chief"}}, ValueError, "task index must be set"),
        (
            {"cluster": {"chief": ["a:1"]}, "task": {"type": "x", "index": 0}},
            ValueError,
            "not a valid task_type",
        ),
        ({"task": {"type": "ps"}}, ValueError, "task type must be WORKER"),
        ({"task": {"index": 2}}, ValueError, "task index must be 0"),
        ({"service": 3}, TypeError, "must be a dict"),
        ({"model_dir": ""}, ValueError, "should not be empty"),
    ],
)
def test_what_cannot_be_meant_is_refused(monkeypatch, fields, error, message):
    monkeypatch.setenv("TF_CONFIG", json.dumps(fields))
    with pytest.raises(error, match=message):
        tf.estimator.RunConfig()


def test_the_folder_of_tf_config(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", json.dumps({"model_dir": "/there"}))
    assert tf.estimator.RunConfig().model_dir == "/there"
    with pytest.raises(ValueError, match="must have the same value"):
        tf.estimator.RunConfig(model_dir="/here")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"save_checkpoints_steps": 1, "save_checkpoints_secs": 1}, "cannot be both set"),
        ({"save_summary_steps": -1}, ">= 0"),
        ({"keep_checkpoint_max": -1}, ">= 0"),
        ({"log_step_count_steps": 0}, "> 0"),
        ({"tf_random_seed": 1.5}, "must be integer"),
        ({"session_config": 3}, "ConfigProto"),
        ({"device_fn": lambda x: x}, 'one argument "op"'),
        ({"protocol": "udp"}, "grpc"),
        ({"train_distribute": object()}, "tf.distribute.Strategy"),
        ({"model_dir": ""}, "non-empty"),
    ],
)
def test_settings_are_checked(monkeypatch, settings, message):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(ValueError, match=message):
        tf.estimator.RunConfig(**settings)


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("estimator.BoostedTreesClassifier", "tf.estimator.Estimator"),
        ("keras.none", "docs/"),
        ("contrib.none", "docs/"),
    ],
)
def test_what_is_missing_says_what_to_do(name, instead):
    module, _, attribute = name.partition(".")
    with pytest.raises(AttributeError, match=f"no attribute '{attribute}'.*{instead}"):
        getattr(getattr(tf, module), attribute)


def test_a_missing_module_says_what_to_do():
    alias.install()
    try:
        with pytest.raises(ImportError, match="no tensorflow.distribute.none. docs.distribute.md"):
            importlib.import_module("tensorflow.distribute.none")
    finally:
        alias.uninstall()


@pytest.mark.parametrize(
    ("job", "index", "leads"), [("worker", 0, True), ("worker", 1, False), ("ps", 0, False)]
)
def test_tasks_of_a_strategy_need_no_chief(monkeypatch, job, index, leads):
    cluster = {"ps": ["localhost:1"], "worker": ["localhost:2", "localhost:3"]}
    fields = {"cluster": cluster, "task": {"type": job, "index": index}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(fields))
    config = tf.estimator.RunConfig(train_distribute=tf.distribute.OneDeviceStrategy("/cpu:0"))
    assert (config.task_type, config.task_id, config.is_chief) == (job, index, leads)
    assert (config.num_ps_replicas, config.num_worker_replicas) == (1, 2)
