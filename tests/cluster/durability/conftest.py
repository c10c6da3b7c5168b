"""A durable parameter server in this process: a primary, a standby, a worker, and a guard that the test plays."""

import contextlib

import pytest

import tensorfleet as tf
from tensorfleet.cluster import messages
from tensorfleet.cluster.durability.role import State
from tensorfleet.cluster.transport import connection, moved_addresses
from tensorfleet.cluster.transport.peers import failure
from tensorfleet.cluster.transport.token import token
from tensorfleet.testing.cluster import free_addresses

TASK = "/job:ps/replica:0/task:0"
SECONDS = 20


class Pair:
    """The servers of one durable task."""

    def __init__(self):
        *self.places, worker = free_addresses(ps=3)["ps"]
        self.worker = tf.train.Server({"ps": [self.places[0]], "worker": [worker]}, "worker", 0)
        self.servers = [None, None]
        self.epoch = 0
        self.start(0, State.WAITING)
        self.start(1, State.STANDING_BY)

    def start(self, seat, state):
        """A server in a seat: one that may lead, or one that stands by."""
        cluster = self.worker.cluster.as_dict() | {"ps": [self.places[seat]]}
        server = tf.train.Server(cluster, "ps", 0, start=False)
        server.make_durable(self.places, state)
        server.start()
        self.servers[seat] = server
        return server

    def tell(self, seat, message):
        channel, _ = connection.connect(self.places[seat], token(), messages.Hello("guard"), SECONDS)
        with contextlib.closing(channel):
            channel.sock.settimeout(SECONDS)
            channel.say(message)
            frame = channel.receive()
        if frame.kind == messages.FAILED:
            raise failure(frame)
        return frame.read(messages.Led)

    def lead(self, seat, with_standby=False):
        """The guard's decision that the server in a seat leads."""
        self.epoch += 1
        standby = self.places[1 - seat] if with_standby else ""
        return self.tell(seat, messages.Lead(TASK, self.epoch, standby, self.places))

    def stand_down(self, seat):
        """The guard's decision that the server in a seat leads no more."""
        self.epoch += 1
        return self.tell(seat, messages.StandDown(TASK, self.epoch))

    def hand_over(self, seat):
        """The server in a seat leads no more, and the other one leads with it as its standby."""
        self.stand_down(seat)
        return self.lead(1 - seat, with_standby=True)

    def fail_over(self):
        """The first server is lost, and the second one leads."""
        self.servers[0].stop()
        self.lead(1)

    def session(self):
        return tf.Session(self.worker.target)

    def close(self):
        for server in (*self.servers, self.worker):
            if server is not None:
                server.stop()
        moved_addresses.forget()


@pytest.fixture
def pair():
    made = Pair()
    made.lead(0, with_standby=True)
    yield made
    made.close()
