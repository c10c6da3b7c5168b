"""Synchronous training whose parameter server is killed again and again ends, with the same weights as without kills."""

import json
import os

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.testing.faults import Faults
from tests.chaos import durable_training
from tests.support.durable_cluster import SECONDS, DurableCluster
from tests.support.waiting import until

STEPS = 50 * int(os.environ.get("TENSORFLEET_CHAOS_ROUNDS", "20"))
SEED = int(os.environ.get("TENSORFLEET_CHAOS_SEED", "20261119"))
EVERY_SECONDS = float(os.environ.get("TENSORFLEET_CHAOS_KILL_SECONDS", "0.5"))


def trained(server):
    """Where a training is now; nothing before it has begun."""
    with tf.Graph().as_default():
        model = durable_training.Model("momentum", durable_training.PS)
        with tf.Session(server.target) as sess:
            if len(sess.run(tf.report_uninitialized_variables([model.step]))):
                return None
            return sess.run([model.step, model.weights, model.bias])


@pytest.mark.parametrize("optimizer", ["adam", "momentum"])
def test_kills_of_the_leader_do_not_change_what_is_learnt(optimizer):
    faults = Faults(f"{SEED} {optimizer}")
    with DurableCluster(workers=3) as cluster:
        since, kills = cluster.wait_for_pair(), 0
        # It stays when the others have ended, so that the parameter server does.
        server = tf.train.Server(cluster.cluster, "worker", 2)
        trained(server)
        workers = [
            cluster.script("durable_training.py", json.dumps(cluster.cluster), n, optimizer, STEPS)
            for n in range(2)
        ]
        while any(worker.poll() is None for worker in workers):
            faults.pause(EVERY_SECONDS)
            faults.kill(cluster.process(cluster.leader()))
            kills += 1
            since = cluster.wait_for_pair(since)
            faults.pause(EVERY_SECONDS)
        until(lambda: all(worker.poll() is not None for worker in workers), "the workers end")
        assert [worker.wait(SECONDS) for worker in workers] == [0, 0]
        step, *found = trained(server)
        server.stop()
    print(f"{kills} kills in {step} steps")
    assert step >= STEPS
    for value, wanted in zip(found, durable_training.wanted(optimizer, int(step)), strict=True):
        np.testing.assert_array_equal(value, wanted)
