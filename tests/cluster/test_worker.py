"""A task's decisions, without sockets: what is late, and what belongs to a step that is over."""

import time

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.cluster.worker import Asker, Worker
from tests.support.waiting import in_background, until

HANDLE = "0" * 16
STAGE = {
    "id": 1,
    "ops": ["more"],
    "targets": ["more"],
    "given": [],
    "kept": [],
    "awaited": ["by:0"],
    "reply": [],
    "keep": [],
    "push": [],
    "known": [],
    "wire": "",
    "thin": [],
}


def test_an_element_for_a_client_that_has_gone_stays_in_the_queue():
    with tf.Graph().as_default() as graph:
        q = tf.FIFOQueue(10, tf.int32, shapes=[[]], name="q")
        q.enqueue(7, name="put")
        q.dequeue(name="take")
        q.size(name="size")
    made = Worker("/job:ps/replica:0/task:0", tf.ConfigProto())
    nodes = np.frombuffer(graph.as_graph_def().SerializeToString(), np.uint8)
    stages = [
        {**STAGE, "id": i, "ops": ["q", name], "targets": [name], "awaited": [], "reply": reply}
        for i, (name, reply) in enumerate((("put", []), ("take", ["take:0"]), ("size", ["size:0"])))
    ]
    told = {"session": HANDLE, "create": True, "known": [], "stages": stages}
    made.register("client", told, [nodes, np.zeros(0, np.uint8)])
    taking = in_background(made.run, HANDLE, 1, 1, 1, 0, [], None, Asker(lambda: True))
    until(lambda: made.session(HANDLE).steps and next(iter(made.session(HANDLE).steps.values())).contexts)
    time.sleep(0.2)
    made.run(HANDLE, 2, 0, 1, 0, [])
    with pytest.raises(tf.errors.CancelledError):
        taking.result(60)
    assert made.run(HANDLE, 3, 2, 1, 0, []) == [1]
    asker = Asker(lambda: False)
    assert made.run(HANDLE, 4, 1, 1, 0, [], None, asker) == [7]
    asker.give_back()  # the reply has not arrived
    assert made.run(HANDLE, 5, 2, 1, 0, []) == [1]
    assert made.run(HANDLE, 6, 1, 1, 0, [], None, Asker(lambda: False)) == [7]
    made.close()


@pytest.fixture
def worker():
    with tf.Graph().as_default() as graph:
        v = tf.Variable(1.0, name="v")
        by = tf.placeholder(tf.float32, [], name="by")
        tf.assign_add(v, by, name="more")
    made = Worker("/job:ps/replica:0/task:0", tf.ConfigProto())
    nodes = np.frombuffer(graph.as_graph_def().SerializeToString(), np.uint8)
    names = [op.name for op in graph.get_operations() if op.name.startswith("v")]
    init = {**STAGE, "id": 2, "ops": names, "targets": ["v/Assign"], "awaited": []}
    read = {**init, "id": 3, "ops": ["v", "v/read"], "targets": ["v/read"], "reply": ["v/read:0"]}
    told = {"session": HANDLE, "create": True, "known": [], "stages": [STAGE, init, read]}
    made.register("client", told, [nodes, np.zeros(0, np.uint8)])
    made.run(HANDLE, 1, 2, 1, 0, [])
    yield made
    made.close()


def value(worker):
    return float(worker.run(HANDLE, 1_000_000, 3, 1, 0, [])[0])


def push(worker, step, number):
    worker.arrived({"session": HANDLE, "step": step, "names": ["by:0"]}, [np.float32(number)])


def cancel(worker, step):
    worker.cancel({"session": HANDLE, "step": step, "reason": "given up"})


def test_a_stage_runs_with_what_was_pushed_for_its_step(worker):
    push(worker, 2, 5.0)
    worker.run(HANDLE, 2, 1, 1, 0, [])
    assert value(worker) == 6.0


def test_what_is_pushed_for_a_step_that_was_given_up_is_thrown_away(worker):
    cancel(worker, 2)
    push(worker, 2, 5.0)
    assert 2 not in worker.session(HANDLE).steps
    with pytest.raises(tf.errors.CancelledError, match="given up"):
        worker.run(HANDLE, 2, 1, 1, 0, [])
    assert value(worker) == 1.0


def test_a_stage_that_comes_after_its_step_was_given_up_does_nothing(worker):
    push(worker, 2, 5.0)
    cancel(worker, 2)
    with pytest.raises(tf.errors.CancelledError, match="given up"):
        worker.run(HANDLE, 2, 1, 1, 0, [])
    cancel(worker, 3)
    with pytest.raises(tf.errors.CancelledError, match="given up"):
        worker.run(HANDLE, 3, 2, 1, 0, [])
    assert value(worker) == 1.0


def test_a_wait_for_a_push_ends_at_the_deadline_and_with_its_session(worker):
    with pytest.raises(tf.errors.DeadlineExceededError, match="by:0"):
        worker.run(HANDLE, 2, 1, 1, 50, [])
    worker.client_gone("somebody else")
    assert value(worker) == 1.0
    worker.client_gone("client")
    with pytest.raises(tf.errors.AbortedError, match="make a new session"):
        worker.run(HANDLE, 3, 1, 1, 50, [])


def test_a_session_told_twice_is_the_same(worker):
    worker.register(
        "client",
        {"session": HANDLE, "create": True, "known": [], "stages": []},
        [np.zeros(0, np.uint8), np.zeros(0, np.uint8)],
    )
    assert value(worker) == 1.0
