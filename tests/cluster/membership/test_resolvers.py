"""Resolvers tell a program which cluster it is in."""

import json
import os

import pytest

import tensorfleet as tf
from tensorfleet.cluster.membership.slurm import expanded

resolvers = tf.distribute.cluster_resolver
SPEC = tf.train.ClusterSpec({"worker": ["c:3", "d:4"]})


@pytest.fixture
def environment(monkeypatch):
    def set_to(**fields) -> None:
        monkeypatch.setenv("TF_CONFIG", json.dumps(fields))

    monkeypatch.delenv("TF_CONFIG", raising=False)
    return set_to


def test_the_cluster_of_tf_config(environment):
    environment(
        cluster={"ps": ["a:1", "b:2"], "worker": ["c:3"]}, task={"type": "ps", "index": 1}, rpc_layer="grpc"
    )
    r = resolvers.TFConfigClusterResolver()
    assert r.cluster_spec().as_dict() == {"ps": ["a:1", "b:2"], "worker": ["c:3"]}
    assert (r.task_type, r.task_id, r.rpc_layer, r.environment) == ("ps", 1, "grpc", None)
    assert r.master() == "grpc://b:2"
    assert r.master("worker", 0) == "grpc://c:3"
    assert r.master("worker", 0, rpc_layer="") == "c:3"
    with pytest.raises(ValueError, match="No task with index 5"):
        r.master("worker", 5)
    r.task_type, r.task_id, r.rpc_layer = "worker", 0, "x"
    assert r.master() == "x://c:3"


def test_without_tf_config_everything_is_local(environment):
    r = resolvers.TFConfigClusterResolver()
    assert not r.cluster_spec()
    assert r.master() == ""
    assert r.num_accelerators()["CPU"] == 1
    environment(cluster={"worker": ["c:3"]})
    assert r.master() == ""
    environment(cluster={"worker": ["c:3", "d:4"]})
    with pytest.raises(ValueError, match="does not say which task this is"):
        r.master()


def test_a_cluster_given_by_the_program():
    r = resolvers.SimpleClusterResolver(SPEC)
    assert r.cluster_spec() is SPEC
    assert r.master() == ""
    assert r.master("worker", 1) == "d:4"
    assert (r.task_type, r.task_id, r.rpc_layer, r.environment) == (None, None, None, "")
    r = resolvers.SimpleClusterResolver(SPEC, "m", "worker", 1, "e", {"GPU": 2}, "grpc")
    assert r.master() == "grpc://m"
    assert r.master("worker", 1, rpc_layer="http") == "http://d:4"
    assert r.num_accelerators() == {"GPU": 2}
    with pytest.raises(TypeError, match="must be a `tf.train.ClusterSpec`"):
        resolvers.SimpleClusterResolver({"worker": ["c:3"]})


def test_several_clusters_as_one():
    first = resolvers.SimpleClusterResolver(SPEC, "m", "worker", 1, rpc_layer="grpc", environment="e")
    second = resolvers.SimpleClusterResolver(tf.train.ClusterSpec({"worker": ["e:5"], "ps": ["p:1"]}))
    r = resolvers.UnionResolver(first, second)
    assert r.cluster_spec().as_dict() == {"worker": ["c:3", "d:4", "e:5"], "ps": ["p:1"]}
    assert (r.task_type, r.task_id, r.rpc_layer, r.environment) == ("worker", 1, "grpc", "e")
    assert r.master() == "grpc://m"
    assert r.master("ps", 0) == "grpc://p:1"
    with pytest.raises(TypeError, match="sub-class of `ClusterResolver"):
        resolvers.UnionResolver(1)


def test_numbered_tasks_are_joined_by_number():
    def numbered(tasks):
        return resolvers.SimpleClusterResolver(tf.train.ClusterSpec({"worker": tasks}))

    r = resolvers.UnionResolver(numbered({1: "f:5"}), numbered({0: "e:5"}))
    assert r.cluster_spec().as_dict() == {"worker": ["e:5", "f:5"]}
    with pytest.raises(KeyError, match="two addresses"):
        resolvers.UnionResolver(numbered({1: "f:5"}), numbered({1: "g:6"})).cluster_spec()


SLURM = {
    "SLURM_PROCID": "1",
    "SLURM_NTASKS": "5",
    "SLURM_NTASKS_PER_NODE": "2",
    "SLURM_JOB_NODELIST": "n[13,41-42]",
}


@pytest.fixture
def slurm(monkeypatch):
    monkeypatch.delenv("OMPI_COMM_WORLD_RANK", raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")

    def started(**changes):
        for name in SLURM:
            monkeypatch.delenv(name, raising=False)
        for name, value in {**SLURM, **changes}.items():
            if value is not None:
                monkeypatch.setenv(name, value)

    return started


def test_the_cluster_of_a_slurm_allocation(slurm):
    slurm()
    r = resolvers.SlurmClusterResolver({"worker": 4, "ps": 1}, gpus_per_node=4, gpus_per_task=2)
    assert (r.master(), r.get_task_info()) == ("", (None, None))
    assert r.cluster_spec().as_dict() == {
        "ps": ["n13:8888"],
        "worker": ["n13:8889", "n41:8888", "n41:8889", "n42:8888"],
    }
    assert r.get_task_info() == ("worker", 0)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "2,3"
    assert (r.master(), r.master("ps", 0, rpc_layer="x")) == ("grpc://n13:8889", "x://n13:8888")
    assert r.num_accelerators() == {"GPU": 4}


@pytest.mark.parametrize(
    ("changes", "options", "text"),
    [
        ({"SLURM_NTASKS_PER_NODE": None}, {}, "SLURM_NTASKS_PER_NODE is set"),
        ({}, {"gpus_per_node": 1}, "more GPUs per node"),
        ({"SLURM_NTASKS": "3"}, {}, "the jobs have 5, Slurm started 3"),
        ({"SLURM_PROCID": None}, {}, "not started by Slurm"),
    ],
)
def test_allocations_that_do_not_fit_the_jobs_are_refused(slurm, changes, options, text):
    slurm(**changes)
    with pytest.raises(RuntimeError, match=text):
        resolvers.SlurmClusterResolver({"worker": 4, "ps": 1}, **{"gpus_per_node": 2, **options})


def test_tasks_that_mpirun_started_know_their_number(slurm, monkeypatch):
    slurm(SLURM_NTASKS="1")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "4")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "5")
    r = resolvers.SlurmClusterResolver({"worker": 4, "ps": 1}, gpus_per_node=2, auto_set_gpu=False)
    r.cluster_spec()
    assert r.get_task_info() == ("worker", 3)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""


@pytest.mark.parametrize(
    ("listed", "names"),
    [
        ("a", ["a"]),
        ("a,b", ["a", "b"]),
        ("n[08-10],x", ["n08", "n09", "n10", "x"]),
        ("r[1-2]n[3,5]", ["r1n3", "r1n5", "r2n3", "r2n5"]),
    ],
)
def test_lists_of_nodes_are_written_out(listed, names):
    assert expanded(listed) == names
