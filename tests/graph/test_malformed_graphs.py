"""Graphs made to do harm are refused at once, whole, wherever they come from."""

import functools
import time

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.cluster import messages
from tensorfleet.cluster.transport import connection
from tensorfleet.cluster.transport.token import token
from tensorfleet.testing.malformed_graphs import MALFORMED, constant

SECONDS = 30  # asserted; on a quiet machine each takes less than one


@functools.cache
def made(what):
    return MALFORMED[what]().SerializeToString()


def test_there_are_enough_of_them():
    assert len(MALFORMED) >= 60


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_graph_is_refused_and_leaves_nothing(what):
    graph_def = tf.GraphDef.FromString(made(what))
    began = time.process_time()
    with tf.Graph().as_default() as graph:
        with pytest.raises((ValueError, TypeError)):
            tf.import_graph_def(graph_def, name="")
    assert time.process_time() - began < SECONDS
    assert not graph.get_operations() or len(graph_def.node) < 5


@pytest.fixture(scope="module")
def server():
    result = tf.train.Server.create_local_server()
    yield result
    result.stop()


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_graph_sent_to_a_server_is_an_error_there(server, what):
    data = np.frombuffer(made(what), np.uint8)
    address = server.target.removeprefix("grpc://")
    channel, _ = connection.connect(address, token(), messages.Hello("test"), SECONDS)
    channel.sock.settimeout(SECONDS)
    values = [data, np.zeros(0, np.uint8)]
    channel.say(messages.Register("evil" + "0" * 12, known=[], stages=[], create=True), values)
    answer = channel.receive()
    assert answer.kind == messages.FAILED, answer.fields
    channel.say(messages.Close("evil" + "0" * 12))
    assert channel.receive().kind == messages.OK
    channel.close()


def test_more_nodes_can_be_allowed_or_fewer(monkeypatch):
    monkeypatch.setenv("TENSORFLEET_MAX_NODES", "2")
    graph_def = tf.GraphDef()
    for i in range(3):
        graph_def.node.add(name=f"n{i}", op="NoOp")
    with tf.Graph().as_default(), pytest.raises(ValueError, match="TENSORFLEET_MAX_NODES"):
        tf.import_graph_def(graph_def)


def test_short_constants_repeat_their_last_value(session):
    (c,) = tf.import_graph_def(constant([2, 3], float_val=[1.0, 2.0]), return_elements=["c:0"])
    assert session.run(c).tolist() == [[1.0, 2.0, 2.0], [2.0, 2.0, 2.0]]
