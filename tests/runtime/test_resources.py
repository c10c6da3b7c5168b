"""The stores of variables."""

import threading

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.kernels import philox
from tensorfleet.runtime.resources import RandomStreams, VariableStore


def test_a_value_is_changed_in_place_until_somebody_else_holds_it():
    store = VariableStore("v", tf.float32)
    store.value = np.zeros(3, np.float32)
    place = id(store.value)
    assert id(store.writable()) == place
    held = store.read()
    store.writable()[:] = 1
    np.testing.assert_array_equal(held, np.zeros(3))
    np.testing.assert_array_equal(store.read(), np.ones(3))
    del held
    place = id(store.value)
    assert id(store.writable()) == place


def test_two_variables_of_one_shared_name_have_one_type(session):
    handles = [
        tf.raw_ops.VarHandleOp(dtype=dtype, shape=[], shared_name="one") for dtype in (tf.float32, tf.int32)
    ]
    write = tf.raw_ops.AssignVariableOp(resource=handles[0], value=1.5)
    read = tf.raw_ops.ReadVariableOp(resource=handles[1], dtype=tf.int32)
    session.run(write)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Expected int32 got float32") as raised:
        session.run(read)
    assert raised.value.op is handles[1].op
    assert session.run(tf.raw_ops.ReadVariableOp(resource=handles[0], dtype=tf.float32)) == 1.5


def test_nobody_takes_random_numbers_that_another_is_drawing():
    with tf.Graph().as_default():
        op = tf.raw_ops.RandomUniform(shape=[2], dtype=tf.float32, seed=3).op
    streams, begun, others = RandomStreams(), threading.Event(), []

    def take():
        begun.set()
        others.append(streams.take(op, 1))

    thread = threading.Thread(target=take)
    with streams.drawing([op, op]):
        mine = streams.take(op, 0)
        thread.start()
        assert begun.wait(60)
        streams.take(op, 5)
    thread.join(60)
    assert np.array_equal(others[0], philox.skip(mine, 5))
    assert np.array_equal(streams.take(op, 0), philox.skip(mine, 6))
