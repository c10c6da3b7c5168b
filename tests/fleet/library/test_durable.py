"""Parameters, the state of their optimizer and tables outlive their server where it has a standby."""

import json

import numpy as np
import optax

import tensorfleet as tf
from tests.support.durable_cluster import DurableCluster

KEYS = np.arange(1000)


def test_training_goes_on_where_it_was_when_a_parameter_server_dies(monkeypatch):
    servers = DurableCluster(workers=1)
    try:
        paired = servers.wait_for_pair()
        task = {"cluster": servers.cluster, "task": {"type": "worker", "index": 0}}
        monkeypatch.setenv("TF_CONFIG", json.dumps(task))
        with tf.fleet.join(timeout=100) as cluster:
            model = cluster.parameters("model", {"w": np.zeros(3, np.float32)}, optax.adam(0.1))
            table = cluster.table("counts", dim=2)
            table.install("double", lambda rows: rows * 2)

            def step():
                model.push({"w": np.ones(3, np.float32)})
                table.push(KEYS, np.ones((1000, 2), np.float32))
                table.call("double", KEYS[:10])

            for _ in range(3):
                step()
            before = model.pull()["w"], table.pull(KEYS)
            servers.process(servers.leader()).kill()
            servers.wait_for("leads it now", paired)
            np.testing.assert_array_equal(model.pull()["w"], before[0])
            np.testing.assert_array_equal(table.pull(KEYS), before[1])
            step()
            np.testing.assert_allclose(
                model.pull()["w"], -0.4, rtol=1e-4
            )  # four steps of Adam, with its moments
            assert table.pull(KEYS[9:11]).tolist() == [[30, 30], [4, 4]]
    finally:
        servers.close()
