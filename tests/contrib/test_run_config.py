"""What a script learns of its cluster from RunConfig."""

import importlib
import json

import pytest

import tensorfleet as tf
from tensorfleet.launch import alias

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


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("estimator.Estimator", "MonitoredTrainingSession"),
        ("keras.callbacks", "in a session"),
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
        with pytest.raises(
            ImportError, match="no tensorflow.keras.callbacks. TensorFleet has Keras's layers and losses"
        ):
            importlib.import_module("tensorflow.keras.callbacks")
    finally:
        alias.uninstall()
