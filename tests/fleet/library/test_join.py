"""How a program finds its place in a cluster."""

import json
import os
import signal

import numpy as np
import optax
import pytest

import tensorfleet as tf
from tensorfleet.testing.cluster import ProcessCluster

ADDRESSES = {"ps": ["localhost:0"], "worker": ["localhost:0"]}


def told(monkeypatch, job, index, **jobs):
    cluster = {job: [f"localhost:{i}" for i in range(1, n + 1)] for job, n in jobs.items()}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": job, "index": index}}))


def test_a_program_without_a_cluster_is_told_how_to_get_one(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(
        RuntimeError, match=r"TF_CONFIG is not set .* `tensorfleet run --ps 1 --workers 2 train.py`"
    ):
        tf.fleet.join()


def test_a_limit_that_is_none_is_refused():
    with pytest.raises(ValueError, match="timeout must be above 0"):
        tf.fleet.join(timeout=0)


@pytest.mark.parametrize(("ps", "workers", "name"), [(0, 1, "ps"), (1, 0, "workers")])
def test_a_local_cluster_needs_servers_and_workers(ps, workers, name):
    with pytest.raises(ValueError, match=f"{name} must be 1 or more, not 0"):
        tf.fleet.local(ps, workers)


def test_workers_share_batches():
    def work():
        with tf.fleet.join() as cluster:
            return cluster.rank, cluster.workers, cluster.is_chief, list(cluster.shard(range(8)))

    with tf.fleet.local(workers=3) as local:
        assert local.run(work) == [
            (0, 3, True, [0, 3, 6]),
            (1, 3, False, [1, 4, 7]),
            (2, 3, False, [2, 5]),
        ]


def test_the_error_of_a_worker_is_raised():
    def work():
        with tf.fleet.join() as cluster:
            if cluster.rank == 1:
                raise KeyError("mine")

    with tf.fleet.local(workers=2) as local, pytest.raises(KeyError, match="mine"):
        local.run(work)


def test_a_closed_cluster_makes_no_parameters():
    with tf.fleet.local() as local:
        with local.join() as cluster:
            pass
        with pytest.raises(
            RuntimeError, match="The cluster is closed. Use it inside the block of fleet.join"
        ):
            cluster.table("t", 1)


def test_a_program_joins_the_cluster_of_its_environment(monkeypatch):
    with ProcessCluster(ps=1, worker=1, here=[("worker", 0)]) as processes:
        task = {"type": "worker", "index": 0}
        monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": processes.cluster, "task": task}))
        with tf.fleet.join(timeout=60) as cluster:
            model = cluster.parameters("model", {"w": np.zeros(3, np.float32)}, optax.sgd(1.0))
            model.push({"w": np.ones(3, np.float32)})
            assert model.pull()["w"].tolist() == [-1, -1, -1]


SERVES = """
import tensorfleet as tf
with tf.fleet.join() as cluster:
    raise SystemExit(f"a parameter server is no worker: {cluster}")
"""


def test_a_parameter_server_serves_until_the_end(monkeypatch, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(SERVES)
    with ProcessCluster(ps=1, worker=1, here=[("worker", 0), ("ps", 0)]) as processes:
        for job in ("ps", "worker"):
            told = {"cluster": processes.cluster, "task": {"type": job, "index": 0}}
            monkeypatch.setenv("TF_CONFIG", json.dumps(told))
            if job == "ps":
                processes._env = dict(os.environ)
                server = processes.script(script)
        with tf.fleet.join(timeout=60) as cluster:
            table = cluster.table("t", 1)
            table.push([1], np.float32([1]))
            assert table.pull([1]).tolist() == [[1]]
        assert server.poll() is None
        server.send_signal(signal.SIGTERM)
        server.wait(60)


def test_a_cluster_without_parameter_servers_is_refused(monkeypatch, serve):
    from tensorfleet.fleet.library.join import Cluster

    server = serve({"worker": ["localhost:0"]}, "worker", 0)
    with pytest.raises(
        RuntimeError, match="The cluster has no parameter servers. Start it with `tensorfleet run --ps 1`"
    ):
        Cluster(server, 10.0)
