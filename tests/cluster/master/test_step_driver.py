"""Steps over a cluster, from the inside."""

import gc
import weakref

import tensorfleet as tf
from tensorfleet.cluster.master.step_driver import StepDriver


def test_a_step_that_is_over_is_gone_without_the_collector(monkeypatch, server):
    """Its arrays go with it: the memory of a large one is used again by the next step."""
    steps = []
    go = StepDriver.go

    def remembered(self, feeds):
        steps.append(weakref.ref(self))
        return go(self, feeds)

    monkeypatch.setattr(StepDriver, "go", remembered)
    with tf.device("/job:local/task:0"):
        v = tf.get_variable("v", [1000], initializer=tf.zeros_initializer())
        add = v.assign_add(tf.ones([1000]))
    with tf.Session(server.target) as session:
        session.run(v.initializer)
        gc.disable()
        try:
            session.run(add)
            session.run(v)
            assert steps and [step() for step in steps] == [None] * len(steps)
        finally:
            gc.enable()
