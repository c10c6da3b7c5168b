"""Random programs on three tasks give what one process gives.

`make test` tries a hundred of them, `make chaos` thousands; TENSORFLEET_CHAOS_SEED chooses others. To run one again:
TENSORFLEET_CHAOS_SEED=<seed> TENSORFLEET_CHAOS_GRAPHS=1 python -m pytest tests/chaos/test_graphs.py
"""

import os

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.testing.cluster import free_addresses
from tests.support.random_graphs import TASKS, outcome

COUNT = int(os.environ.get("TENSORFLEET_CHAOS_GRAPHS", "100"))
SEED = int(os.environ.get("TENSORFLEET_CHAOS_SEED", "20261116"))
PARTS = min(COUNT, 10)  # tests, so that several processes share them


@pytest.fixture(scope="module")
def servers():
    spec = free_addresses(ps=2, worker=1)
    items = [tf.train.Server(spec, job, index) for job, index in (("ps", 0), ("ps", 1), ("worker", 0))]
    yield items
    for server in items:
        server.stop()


def differences(seed, servers):
    """What is different on a cluster; None if nothing is."""
    place = seed % len(TASKS)
    wanted, program = outcome(seed)
    try:
        result, _ = outcome(seed, servers[place].target, TASKS, TASKS[place])
    except tf.errors.OpError as e:
        return f"{e} ({', '.join(program.steps)})"
    finally:
        for server in servers:
            tf.Session.reset(server.target)
    pairs = enumerate(zip(result, wanted, strict=True))
    return next((f"value {i}: {a} instead of {b}" for i, (a, b) in pairs if not np.array_equal(a, b)), None)


@pytest.mark.parametrize("part", range(PARTS))
def test_a_cluster_gives_the_values_of_one_process(part, servers):
    for seed in range(SEED + part, SEED + COUNT, PARTS):
        result = differences(seed, servers)
        assert result is None, f"seed {seed}, session on {TASKS[seed % len(TASKS)]}: {result}"
