"""Handles of queues, tables and variables can be fetched: that makes what they are of, and gives its names."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.base.protos import ResourceHandleProto

gen = tf.python.ops.gen_data_flow_ops


def _message(fetched):
    assert fetched.dtype.names == ("resource",) and fetched.ndim == 1
    return ResourceHandleProto.FromString(fetched.tobytes())


def test_a_handle_from_before_there_were_resources_is_a_container_and_a_name(session):
    shared = gen.fifo_queue([tf.float32], shared_name="mine", container="box")
    own = gen.random_shuffle_queue([tf.int32], name="own")
    table = tf.python.ops.gen_lookup_ops.hash_table(tf.string, tf.int64, name="words")
    result = session.run({"shared": shared, "both": [own, table]})
    assert result["shared"].tolist() == [b"box", b"mine"]
    for array, name in zip(result["both"], [b"own", b"words"], strict=True):
        assert array.dtype == object and array.shape == (2,)
        assert array[0] == b"localhost" and array[1].endswith(b"_" + name)


def test_a_resource_is_fetched_as_the_message_that_names_it(session):
    queue = tf.FIFOQueue(3, tf.float32, shared_name="q")
    variable = tf.get_variable("v", initializer=1.0, use_resource=True)
    result = session.run([queue.queue_ref, tf.identity(queue.queue_ref), variable.handle])
    assert [_message(f).name for f in result] == ["q", "q", "v"]
    assert _message(result[0]).maybe_type_name == "FIFOQueueV2"
    assert _message(queue.queue_ref.eval(session=session)).container == "localhost"


def test_fetching_the_handle_of_a_queue_makes_the_queue(session):
    first = tf.FIFOQueue(10, tf.float32, shared_name="a")
    other = tf.FIFOQueue(15, tf.float32, shared_name="a")
    session.run(first.queue_ref)
    with pytest.raises(tf.errors.InvalidArgumentError, match="capacity"):
        session.run(other.queue_ref)


def test_values_and_handles_are_fetched_together(session):
    queue = tf.FIFOQueue(3, tf.float32)
    handle, size = session.run((queue.queue_ref, queue.size()))
    assert handle.dtype.names == ("resource",) and size == 0


def test_a_string_variable_is_fetched_by_its_value(session):
    words = tf.Variable([b"a", b"b"])
    session.run(words.initializer)
    assert session.run(words._ref()).tolist() == [b"a", b"b"]
    assert session.run(tf.assign(words, [b"c", b"d"])).tolist() == [b"c", b"d"]


def test_a_fetched_handle_cannot_be_fed(session):
    queue = tf.FIFOQueue(3, tf.float32)
    handle = session.run(queue.queue_ref)
    with pytest.raises(TypeError, match="only names what it is of"):
        session.run(queue.size(), {queue.queue_ref: handle})
    assert isinstance(handle, np.ndarray)


def test_the_handle_of_a_queue_in_a_server_is_fetched(server):
    queue = tf.FIFOQueue(3, tf.float32, shared_name="there")
    with tf.Session(server.target) as session:
        assert _message(session.run(queue.queue_ref)).name == "there"
        assert session.run(gen.fifo_queue([tf.float32], shared_name="old")).tolist() == [b"localhost", b"old"]
