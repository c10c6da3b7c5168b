"""A task's decisions, without sockets: what is late, and what belongs to a step that is over."""

import threading
from dataclasses import replace

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.cluster.messages import Cancel, Push, Register
from tensorfleet.cluster.stage_spec import StageSpec
from tensorfleet.cluster.worker.pending_replies import PendingReply
from tensorfleet.cluster.worker.worker import Worker
from tensorfleet.runtime.trace import Collector
from tests.support.waiting import in_background, until

HANDLE = "0" * 16
STAGE = StageSpec(
    id=1,
    ops=["more"],
    targets=["more"],
    given=[],
    kept=[],
    awaited=["by:0"],
    reply=[],
    keep=[],
    push=[],
    known=[],
    wire="",
    thin=[],
)


class Line:
    """The connection of a client that waits for an answer, or has gone."""

    def __init__(self, gone=False, broken=False, full=False):
        self.gone, self.broken, self.full = gone, broken, full
        self.handed = None
        self.sent = []

    def is_closed(self):
        return self.gone

    def has_room(self):
        return not self.full

    def send(self, kind, fields, values):
        if self.broken:
            raise BrokenPipeError("nobody reads")
        self.sent.append((threading.current_thread(), [np.asarray(v).tolist() for v in values]))


@pytest.fixture
def queue():
    """A worker with a queue: stage 0 puts 7 in, 1 takes, 2 counts, 3 takes twice and tells the second, 4 puts 8 in."""
    with tf.Graph().as_default() as graph:
        q = tf.FIFOQueue(10, tf.int32, shapes=[[]], name="q")
        q.enqueue(7, name="put")
        q.dequeue(name="take")
        q.size(name="size")
        with tf.control_dependencies([q.dequeue(name="first")]):
            q.dequeue(name="second")
        q.enqueue(8, name="more")
    made = Worker("/job:ps/replica:0/task:0", tf.ConfigProto())
    nodes = np.frombuffer(graph.as_graph_def().SerializeToString(), np.uint8)
    does = ["put"], ["take"], ["size"], ["first", "second"], ["more"]
    replies = [], ["take:0"], ["size:0"], ["second:0"], []
    stages = [
        replace(STAGE, id=i, ops=["q", *ops], targets=ops, awaited=[], reply=reply)
        for i, (ops, reply) in enumerate(zip(does, replies, strict=True))
    ]
    told = Register(HANDLE, known=[], stages=stages, create=True)
    made.register("client", told, [nodes, np.zeros(0, np.uint8)])
    yield made
    made.close()


def taking(made, line, stage=1):
    """A client that waits for an element in another thread."""
    asker = PendingReply(line)
    result = in_background(made.run, HANDLE, 1, stage, 1, 0, [], None, asker)
    until(lambda: is_waited_for(made))
    return asker, result


def is_waited_for(made):
    engine = made.session(HANDLE).engine
    return any(
        queue._taking for where in (engine.private, engine.resources) for queue in where.of_kind("queue")
    )


def test_an_element_for_a_client_that_has_gone_stays_in_the_queue(queue):
    _, result = taking(queue, Line(gone=True))
    queue.run(HANDLE, 2, 0, 1, 0, [])
    with pytest.raises(tf.errors.CancelledError):
        result.result(60)
    assert queue.run(HANDLE, 3, 2, 1, 0, []) == [1]
    asker = PendingReply(Line())
    assert queue.run(HANDLE, 4, 1, 1, 0, [], None, asker) == [7]
    asker.give_back()  # the reply has not arrived
    assert queue.run(HANDLE, 5, 2, 1, 0, []) == [1]
    assert queue.run(HANDLE, 6, 1, 1, 0, [], None, PendingReply(Line())) == [7]


def test_who_waits_for_an_element_is_answered_by_whoever_puts_it_in(queue):
    line = Line()
    asker, result = taking(queue, line)
    queue.run(HANDLE, 2, 0, 1, 0, [])
    assert line.sent == [(threading.current_thread(), [7])]
    assert result.result(60) == [7]
    assert asker.is_answered()
    assert line.handed is asker
    asker.give_back()  # it was never read
    assert queue.run(HANDLE, 3, 2, 1, 0, []) == [1]


def test_an_element_that_is_there_is_not_answered_early(queue):
    line = Line()
    queue.run(HANDLE, 2, 0, 1, 0, [])
    asker = PendingReply(line)
    assert queue.run(HANDLE, 3, 1, 1, 0, [], None, asker) == [7]
    assert not asker.is_answered()
    assert not line.sent


def test_an_answer_that_does_not_get_away_is_known_to_be_lost(queue):
    asker, result = taking(queue, Line(broken=True))
    queue.run(HANDLE, 2, 0, 1, 0, [])  # it is none of the putter's business
    assert result.result(60) == [7]
    assert asker.is_answered()
    assert isinstance(asker.lost, ConnectionError)
    asker.give_back()
    assert queue.run(HANDLE, 3, 2, 1, 0, []) == [1]


def test_nobody_waits_for_the_client_of_another_to_read(queue):
    line = Line(full=True)
    asker, result = taking(queue, line)
    queue.run(HANDLE, 2, 0, 1, 0, [])
    assert result.result(60) == [7]  # the stage answers itself
    assert not asker.is_answered()
    assert not line.sent


def test_only_what_a_stage_takes_in_the_end_is_its_answer(queue):
    line = Line()
    _, result = taking(queue, line, stage=3)
    queue.run(HANDLE, 2, 0, 1, 0, [])
    until(lambda: is_waited_for(queue))
    assert not line.sent
    queue.run(HANDLE, 4, 4, 1, 0, [])
    assert result.result(60) == [8]
    assert [values for _, values in line.sent] == [[8]]


def test_a_traced_stage_answers_for_itself(queue):
    line = Line()
    asker = PendingReply(line)
    result = in_background(queue.run, HANDLE, 1, 1, 1, 0, [], Collector(), asker)
    until(lambda: is_waited_for(queue))
    queue.run(HANDLE, 2, 0, 1, 0, [])
    assert result.result(60) == [7]
    assert not line.sent


@pytest.fixture
def worker():
    with tf.Graph().as_default() as graph:
        v = tf.Variable(1.0, name="v")
        by = tf.placeholder(tf.float32, [], name="by")
        tf.assign_add(v, by, name="more")
    made = Worker("/job:ps/replica:0/task:0", tf.ConfigProto())
    nodes = np.frombuffer(graph.as_graph_def().SerializeToString(), np.uint8)
    names = [op.name for op in graph.get_operations() if op.name.startswith("v")]
    init = replace(STAGE, id=2, ops=names, targets=["v/Assign"], awaited=[])
    read = replace(init, id=3, ops=["v", "v/read"], targets=["v/read"], reply=["v/read:0"])
    told = Register(HANDLE, known=[], stages=[STAGE, init, read], create=True)
    made.register("client", told, [nodes, np.zeros(0, np.uint8)])
    made.run(HANDLE, 1, 2, 1, 0, [])
    yield made
    made.close()


def value(worker):
    return float(worker.run(HANDLE, 1_000_000, 3, 1, 0, [])[0])


def push(worker, step, number):
    worker.arrived(Push(HANDLE, step, ["by:0"]), [np.float32(number)])


def cancel(worker, step):
    worker.cancel(Cancel(HANDLE, step, "given up"))


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
        Register(HANDLE, known=[], stages=[], create=True),
        [np.zeros(0, np.uint8), np.zeros(0, np.uint8)],
    )
    assert value(worker) == 1.0
