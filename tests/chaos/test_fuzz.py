"""Frames and graphs with mistakes in them: an error each time, never a crash, a hang, or memory without bounds.

`make test` tries ten thousand of them, `make chaos` a million; TENSORFLEET_CHAOS_SEED chooses others.
"""

import contextlib
import os
import resource
import time

import pytest

import tensorfleet as tf
from tensorfleet.cluster import messages
from tensorfleet.cluster.transport import connection
from tensorfleet.cluster.transport.token import token
from tensorfleet.testing import fuzz

COUNT = int(os.environ.get("TENSORFLEET_CHAOS_FUZZ", "10000"))
SEED = int(os.environ.get("TENSORFLEET_CHAOS_SEED", "20261116"))
SECONDS = 60  # for one message, on a busy machine
MEMORY = 1 << 20  # kilobytes that the process may grow by


@pytest.fixture(autouse=True)
def bounded():
    print(f"seed {SEED}")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEMORY


def test_frames_with_mistakes_are_read_or_refused():
    mutator, good = fuzz.Mutator(SEED), fuzz.frames()
    for _ in range(COUNT * 7 // 10):
        data = mutator.bytes(mutator.random.choice(good))
        with contextlib.suppress(ConnectionError, tf.errors.OpError):
            for frame in fuzz.heard(data):
                fuzz.read_all(frame)


def test_a_server_answers_frames_with_mistakes_and_goes_on(server):
    address = server.target.removeprefix("grpc://")
    mutator, good = fuzz.Mutator(SEED + 1), fuzz.frames(first=1)
    for _ in range(COUNT // 10):
        channel, _ = connection.connect(address, token(), messages.Hello("test"), SECONDS)
        channel.sock.settimeout(SECONDS)
        with contextlib.suppress(OSError, tf.errors.OpError):
            channel.sock.sendall(mutator.bytes(mutator.random.choice(good)))
            channel.sock.shutdown(1)
            while True:
                channel.receive()
        channel.close()
    assert_serves(server)


@pytest.mark.parametrize("request_type", messages.REQUESTS.values(), ids=lambda message: message.__name__)
def test_a_server_refuses_each_wrong_field_of_a_request_and_serves_on(server, request_type):
    address = server.target.removeprefix("grpc://")
    channel, _ = connection.connect(address, token(), messages.Hello("test"), SECONDS)
    channel.sock.settimeout(SECONDS)
    tensors = fuzz.tensors_of(fuzz.sample(request_type))
    for mistake in fuzz.mistakes(request_type):
        channel.send(request_type.kind, mistake.fields, tensors)
        answer = channel.receive()
        if mistake.refused:
            assert answer.kind == messages.FAILED, mistake.what
            assert "A message does not make sense" in answer.read(messages.Failed).message
    channel.close()
    assert_serves(server)


def test_a_server_refuses_a_hello_that_makes_no_sense(server):
    address = server.target.removeprefix("grpc://")
    for mistake in fuzz.mistakes(messages.Hello):
        if mistake.refused:
            with pytest.raises((OSError, tf.errors.OpError)):
                connection.connect(address, token(), _Said(mistake.fields), SECONDS)
    assert_serves(server)


class _Said:
    """A message with any fields."""

    kind = messages.WELCOME

    def __init__(self, fields):
        self._fields = fields

    def encode(self):
        return self._fields


def assert_serves(server):
    with tf.Graph().as_default(), tf.Session(server.target) as sess:
        assert sess.run(tf.constant(2.0) * 3.0) == 6.0


def test_graphs_with_mistakes_are_imported_or_refused():
    mutator, goods = fuzz.Mutator(SEED + 2), [fuzz.graph_def(), *[fuzz.graph_def(small=True)] * 3]
    slowest = 0.0
    for i in range(COUNT // 5):
        began = time.process_time()
        good = mutator.random.choice(goods)
        if i % 2:
            data = mutator.bytes(good.SerializeToString())
        else:
            copy = tf.GraphDef()
            copy.CopyFrom(good)
            mutator.message(copy)
            data = copy.SerializeToString()
        try:
            given = tf.GraphDef.FromString(data)
        except Exception as e:
            assert type(e).__name__ == "DecodeError"
            continue
        with tf.Graph().as_default(), contextlib.suppress(ValueError, TypeError, tf.errors.OpError):
            tf.import_graph_def(given, name="")
        slowest = max(slowest, time.process_time() - began)
    assert slowest < SECONDS
