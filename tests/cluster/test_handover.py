"""An element on its way from a queue to its client: it is the client's once its process has read it, and not before."""

import select
import time

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.cluster import messages
from tensorfleet.cluster.master import step_driver as stepping
from tensorfleet.cluster.stage_spec import StageSpec
from tensorfleet.cluster.transport import connection
from tensorfleet.cluster.transport.token import token
from tests.support.waiting import until

SECONDS = 60  # for what takes less than one on a quiet machine
HANDLE = "0" * 16
PUT, TAKE, TAKE_MANY, SIZE, TAKE_AND_COPY = range(5)
ROWS = 4


@pytest.fixture(params=["local", "tcp"])
def transport(request, monkeypatch):
    if request.param == "tcp":
        monkeypatch.setattr(connection, "has_local_names", lambda: False)
    return request.param


def stage(number, ops, targets, reply):
    nothing = {n: [] for n in ("given", "kept", "awaited", "keep", "push", "known", "thin")}
    return StageSpec(id=number, ops=ops, targets=targets, reply=reply, wire="", **nothing)


class Client:
    """What a session does, message by message."""

    def __init__(self, server, width=1):
        with tf.Graph().as_default() as graph:
            q = tf.FIFOQueue(100, tf.float32, shapes=[[width]], name="q", shared_name="q")
            q.enqueue_many(tf.reshape(tf.range(ROWS * width, dtype=tf.float32), [ROWS, width]), name="put")
            one = q.dequeue(name="take")
            q.dequeue_many(2, name="many")
            q.size(name="size")
            tf.FIFOQueue(100, tf.float32, shapes=[[width]], name="copies").enqueue(one, name="copy")
        names = [op.name for op in graph.get_operations()]
        makes = [n for n in names if n.split("/")[0] in ("range", "Reshape", "put", "q")]
        self.stages = [
            stage(PUT, [*makes, "put"], ["put"], []),
            stage(TAKE, ["q", "take"], [], ["take:0"]),
            stage(TAKE_MANY, ["q", "many", "many/n"], [], ["many:0"]),
            stage(SIZE, ["q", "size"], [], ["size:0"]),
            stage(TAKE_AND_COPY, ["q", "take", "copies", "copy"], ["copy"], ["take:0"]),
        ]
        self.channel = self.connect(server)
        nodes = np.frombuffer(graph.as_graph_def().SerializeToString(), np.uint8)
        register = messages.Register(HANDLE, known=[], stages=self.stages, create=True)
        self.channel.say(register, [nodes, np.zeros(0, np.uint8)])
        assert self.channel.receive().kind == messages.OK
        self.steps = 0

    @staticmethod
    def connect(server):
        address = server.target.removeprefix("grpc://")
        return connection.connect(address, token(), messages.Hello("test"), SECONDS)[0]

    def ask(self, number):
        self.steps += 1
        self.channel.say(messages.Run(HANDLE, self.steps, number, 1, 0))

    def run(self, number):
        self.ask(number)
        frame = self.channel.receive()
        assert frame.kind == messages.OK, frame.fields
        return frame.tensors

    def arrived(self):
        """Whether an answer can be read."""
        return bool(select.select([self.channel.sock], [], [], 0)[0])


@pytest.fixture
def clients(server, transport):
    """One that puts and looks, and one that takes."""
    made = [Client(server), Client(server)]
    made[0].run(PUT)
    made[1].steps = 1000
    yield made
    for one in made:
        one.channel.close()


def size(client):
    return int(client.run(SIZE)[0])


@pytest.mark.parametrize("number, taken", [(TAKE, [0.0]), (TAKE_MANY, [0.0, 1.0])])
def test_what_was_read_is_taken(clients, number, taken):
    other, taker = clients
    assert taker.run(number)[0].ravel().tolist() == taken
    taker.channel.abandon()
    assert size(other) == ROWS - len(taken)


@pytest.mark.parametrize("number", [TAKE, TAKE_MANY])
def test_what_was_sent_and_not_read_is_put_back_in_its_place(clients, number):
    other, taker = clients
    taker.ask(number)
    until(taker.arrived)
    assert size(other) < ROWS
    taker.channel.abandon()
    until(lambda: size(other) == ROWS)
    assert other.run(TAKE)[0] == 0.0


def test_what_was_dequeued_and_not_sent_is_put_back(clients, server, monkeypatch):
    other, taker = clients
    run = server.worker.run

    def run_and_lose(*given):
        found = run(*given)
        if given[2] == TAKE:
            taker.channel.abandon()
        return found

    monkeypatch.setattr(server.worker, "run", run_and_lose)
    taker.ask(TAKE)
    until(lambda: taker.channel.fileno() == -1)
    until(lambda: size(other) == ROWS)
    monkeypatch.undo()
    assert other.run(TAKE)[0] == 0.0


def test_what_was_sent_in_part_is_put_back(server, transport, monkeypatch):
    monkeypatch.setattr(
        "tensorfleet.cluster.transport.shared_memory.MIN_BYTES", 1 << 40
    )  # through the socket, which has room for less
    other, taker = Client(server, 4_000_000), Client(server, 4_000_000)
    other.run(PUT)
    taker.steps = 1000
    taker.ask(TAKE)
    until(taker.arrived)
    taker.channel.sock.recv(1 << 16)
    taker.channel.abandon()
    until(lambda: size(other) == ROWS)
    assert other.run(TAKE)[0][0] == 0.0
    other.channel.close()


def test_what_came_too_late_is_returned(clients):
    other, taker = clients
    assert taker.run(TAKE)[0] == 0.0
    taker.channel.send(messages.RETURN)
    assert taker.channel.receive().kind == messages.OK
    assert size(other) == ROWS
    taker.channel.send(messages.RETURN)  # there is nothing more to return
    assert taker.channel.receive().kind == messages.OK
    assert size(other) == ROWS


def test_a_later_answer_that_is_not_read_returns_nothing_of_an_earlier_one(clients):
    other, taker = clients
    assert taker.run(TAKE)[0] == 0.0
    taker.ask(SIZE)
    until(taker.arrived)
    taker.channel.abandon()
    time.sleep(0.2)  # nothing happens, which cannot be waited for
    assert size(other) == ROWS - 1


def test_an_element_of_a_step_that_has_had_effects_is_not_put_back(clients):
    other, taker = clients
    taker.ask(TAKE_AND_COPY)
    until(taker.arrived)
    taker.channel.abandon()
    time.sleep(0.2)  # nothing happens, which cannot be waited for
    assert size(other) == ROWS - 1


def test_an_element_that_comes_at_the_deadline_is_not_lost(server, monkeypatch):
    target = server.target.replace("localhost", "127.0.0.1")  # so it goes over the wire
    answer = stepping.StepDriver._answer

    def late(self, fd):
        if self.deadline is None:
            return answer(self, fd)
        until(lambda: select.select([fd], [], [], 0)[0])
        raise self._late()

    with tf.Graph().as_default():
        q = tf.FIFOQueue(10, tf.int32, shapes=[[]], shared_name="late")
        put, take, count = q.enqueue_many([[1, 2]]), q.dequeue(), q.size()
        with tf.Session(target) as sess:
            sess.run(put)
            sess.run(count)
            monkeypatch.setattr(stepping.StepDriver, "_answer", late)
            with pytest.raises(tf.errors.DeadlineExceededError):
                sess.run(take, options=tf.RunOptions(timeout_in_ms=1000 * SECONDS))
            assert sess.run(count) == 2
            assert sess.run(take) == 1
