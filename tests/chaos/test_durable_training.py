"""Training whose parameter server is killed again and again ends: synchronous training with the same weights as without kills,
asynchronous training with the same accuracy and no step too few or too many."""

import json
import os

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.testing.faults import Faults
from tests.chaos import durable_async, durable_training
from tests.support.durable_cluster import SECONDS, DurableCluster

STEPS = 50 * int(os.environ.get("TENSORFLEET_CHAOS_ROUNDS", "20"))
SEED = int(os.environ.get("TENSORFLEET_CHAOS_SEED", "20261119"))
MOST_DIFFERENCE = 0.02
EVERY_SECONDS = float(os.environ.get("TENSORFLEET_CHAOS_KILL_SECONDS", "0.5"))


def trained(server):
    """Where a training is now; nothing before it has begun."""
    with tf.Graph().as_default():
        model = durable_training.Model("momentum", durable_training.PS)
        with tf.Session(server.target) as sess:
            if len(sess.run(tf.report_uninitialized_variables([model.step]))):
                return None
            return sess.run([model.step, model.weights, model.bias])


def kill_while_training(cluster, faults, workers):
    """Kills the leader again and again until the workers have ended; gives how often."""
    since, kills = len(cluster.notes), 0
    while any(worker.poll() is None for worker in workers):
        faults.pause(EVERY_SECONDS)
        faults.kill(cluster.process(cluster.leader()))
        kills += 1
        since = cluster.wait_for_pair(since)
        faults.pause(EVERY_SECONDS)
    assert [worker.wait(SECONDS) for worker in workers] == [0, 0]
    return kills


@pytest.mark.parametrize("optimizer", ["adam", "momentum"])
def test_kills_of_the_leader_do_not_change_what_is_learnt(optimizer):
    faults = Faults(f"{SEED} {optimizer}")
    with DurableCluster(workers=3) as cluster:
        cluster.wait_for_pair()
        # It stays when the others have ended, so that the parameter server does.
        server = tf.train.Server(cluster.cluster, "worker", 2)
        trained(server)
        workers = [
            cluster.script("durable_training.py", json.dumps(cluster.cluster), n, optimizer, STEPS)
            for n in range(2)
        ]
        kills = kill_while_training(cluster, faults, workers)
        step, *found = trained(server)
        server.stop()
    print(f"{kills} kills in {step} steps")
    assert step >= STEPS
    for value, wanted in zip(found, durable_training.wanted(optimizer, int(step)), strict=True):
        np.testing.assert_array_equal(value, wanted)


@pytest.mark.parametrize("optimizer", ["adam", "momentum"])
def test_kills_of_the_leader_do_not_change_how_well_is_learnt(optimizer):
    faults = Faults(f"{SEED} asynchronous {optimizer}")
    with DurableCluster(workers=3) as cluster:
        cluster.wait_for_pair()
        server = tf.train.Server(cluster.cluster, "worker", 2)
        with tf.Graph().as_default():
            model = durable_async.Model(optimizer, durable_async.PS)
            with tf.Session(server.target) as sess:
                sess.run(tf.report_uninitialized_variables([model.step]))
                workers = [
                    cluster.script("durable_async.py", json.dumps(cluster.cluster), n, optimizer, STEPS)
                    for n in range(2)
                ]
                kills = kill_while_training(cluster, faults, workers)
                steps, accuracy = sess.run([model.step, model.accuracy], model.batch(0, 5000))
        server.stop()
    wanted = durable_async.accuracy_in_one_process(optimizer, 2 * STEPS)
    print(f"{kills} kills in {steps} steps: accuracy {accuracy:.3f}, in one process {wanted:.3f}")
    assert steps == 2 * STEPS
    assert wanted > 0.9
    assert abs(accuracy - wanted) < MOST_DIFFERENCE
