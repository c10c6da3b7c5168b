"""TF_CONFIG is read in one place, and its mistakes are shown where they are."""

import json

import pytest

import tensorfleet as tf
from tensorfleet.cluster.membership import tf_config

CLUSTER = {"ps": ["a:1", "b:2"], "worker": ["c:3", "d:4"]}


def config(**fields) -> tf_config.TFConfig:
    return tf_config.read({"TF_CONFIG": json.dumps(fields)})


def test_without_it_there_is_no_cluster():
    found = tf_config.read({})
    assert not found.cluster
    assert found.task_type is found.task_index is found.address is None
    assert found.is_chief


def test_it_tells_the_cluster_and_the_task():
    found = config(cluster=CLUSTER, task={"type": "ps", "index": 1}, rpc_layer="grpc", environment="cloud")
    assert found.cluster == tf.train.ClusterSpec(CLUSTER)
    assert (found.task_type, found.task_index) == ("ps", 1)
    assert (found.rpc_layer, found.environment) == ("grpc", "cloud")
    assert found.address == "b:2"


def test_it_may_be_a_file(tmp_path):
    path = tmp_path / "tf_config.json"
    path.write_text(json.dumps({"cluster": CLUSTER, "task": {"type": "worker", "index": "0"}}))
    found = tf_config.read({"TF_CONFIG": str(path)})
    assert found.address == "c:3"
    path.write_text("{")
    with pytest.raises(ValueError, match=r"file .*tf_config.json\) is not valid JSON"):
        tf_config.read({"TF_CONFIG": str(path)})


@pytest.mark.parametrize(
    ("jobs", "task", "chief"),
    [
        (["chief", "worker"], ("chief", 0), True),
        (["master", "worker"], ("master", 0), True),
        (["chief", "worker"], ("worker", 0), False),
        (["worker", "ps"], ("worker", 0), True),
        (["worker", "ps"], ("ps", 0), False),
        (["worker"], ("evaluator", 0), False),
    ],
)
def test_who_is_the_chief(jobs, task, chief):
    found = config(cluster={job: ["h:1"] for job in jobs}, task={"type": task[0], "index": task[1]})
    assert found.is_chief == chief


def test_an_evaluator_is_outside_the_cluster():
    assert config(cluster=CLUSTER, task={"type": "evaluator", "index": 0}).address is None


def test_numbered_tasks():
    assert config(cluster={"worker": {"1": "c:3"}}).cluster.as_dict() == {"worker": {1: "c:3"}}


def test_malformed_text_is_shown_with_the_place():
    with pytest.raises(ValueError) as e:
        tf_config.read({"TF_CONFIG": '{"cluster": {"ps": ["a:1",]}}'})
    lines = str(e.value).splitlines()
    assert "TF_CONFIG is not valid JSON" in lines[0]
    assert lines[1][lines[2].index("^")] in ",]"


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"cluster": ["a:1"]}, "'cluster' in TF_CONFIG must be a JSON object"),
        ({"cluster": {"ps": "a:1"}}, "maps job names to lists of addresses"),
        ({"task": 3}, "'task' in TF_CONFIG must be a JSON object"),
        ({"task": {"type": "ps", "index": "one"}}, "must be a number, not 'one'"),
        ({"cluster": CLUSTER, "task": {"type": "ps", "index": 2}}, r"job 'ps', which has tasks \[0, 1\]"),
    ],
)
def test_what_makes_no_sense_is_refused(fields, text):
    with pytest.raises(ValueError, match=text):
        config(**fields)


def test_it_must_be_an_object():
    with pytest.raises(ValueError, match="must be a JSON object, not"):
        tf_config.read({"TF_CONFIG": "[1]"})


def test_a_session_master_is_the_address_to_connect_to(monkeypatch):
    cluster = {"ps": ["ps0:2222"], "worker": ["worker0:2222"]}
    config = {"cluster": cluster, "session_master": "sessionmaster:2222", "task": {"type": "ps", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    assert tf.distribute.cluster_resolver.TFConfigClusterResolver().master() == "sessionmaster:2222"
