"""A durable parameter server that fails at each point of a step, one after the other, keeps each kind of state."""

import os

import pytest

import tensorfleet as tf
from tensorfleet.testing.fault_points import FaultPoints
from tests.chaos import durable_kinds
from tests.support.durable_cluster import DurableCluster
from tests.support.waiting import until

IS_LONG = "TENSORFLEET_CHAOS_ROUNDS" in os.environ
MOST_POINTS = 200
#: `make test` kills the leader everywhere, and tries the other faults with one kind of state
CASES = [(kind, "kill", True) for kind in durable_kinds.KINDS]
CASES += [
    (kind, fault, leads)
    for kind in (durable_kinds.KINDS if IS_LONG else ["first-in first-out queue"])
    for fault in ("kill", "stop", "slow", "cut")
    for leads in (True, False)
    if (fault, leads) != ("kill", True)
]


class Trial:
    """A durable parameter server that is made to fail at a point, and what a session does meanwhile."""

    def __init__(self, folder):
        self.points = [FaultPoints(folder / str(seat)) for seat in range(2)]
        self.cluster = DurableCluster(workers=1, env={"TENSORFLEET_TEST_POINTS": str(folder)})
        self.cluster.wait_for_pair()
        self.server = tf.train.Server(self.cluster.cluster, "worker", 0)
        self.steps = self.faults = 0

    def close(self):
        """Ends everything."""
        self.cluster.close()
        self.server.stop()
        for points in self.points:
            points.close()

    def step_with(self, sess, state, nth, fault, leads):
        """A step in which a server fails at its `nth` point; whether it has come to that point."""
        seat = self.cluster.leader() if leads else 1 - self.cluster.leader()
        points, since, process = self.points[seat], len(self.cluster.notes), self.cluster.process(seat)
        points.arm(nth, fault)
        state.step(sess, self.steps)
        self.steps += 1
        has_failed, last = not points.is_armed, points.last
        points.disarm()
        if not has_failed:
            return False
        self.faults += 1
        print(f"{fault} at point {nth}: {last}")
        if fault == "kill":
            until(lambda: process.poll() is not None, "the server dies")
        if fault in ("kill", "stop"):
            self.cluster.wait_for_pair(since)
        until(self.cluster.is_paired, "there are two servers again")
        return True


@pytest.fixture
def trial(tmp_path):
    made = Trial(tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize(("kind", "fault", "leads"), CASES)
def test_a_fault_at_any_point_of_a_step_neither_loses_nor_doubles_it(trial, kind, fault, leads):
    with tf.Graph().as_default(), tf.device(durable_kinds.PS):
        state = durable_kinds.KINDS[kind]()
        with tf.Session(trial.server.target) as sess:
            sess.run(state.initializers)
            for _ in range(2):  # the plans are made
                state.step(sess, trial.steps)
                trial.steps += 1
            nth = 1
            while trial.step_with(sess, state, nth, fault, leads):
                nth += 1
                assert nth < MOST_POINTS
            state.check(sess, trial.steps)
    print(f"{trial.faults} faults in {trial.steps} steps")
    assert trial.faults > 0
