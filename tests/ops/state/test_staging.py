"""Staging areas: values put aside for a later step."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.ops.state.staging import StagingArea
from tests.support.waiting import in_background


def test_values_come_out_in_the_order_they_went_in(session):
    x = tf.placeholder(tf.float32)
    area = tf.contrib.staging.StagingArea([tf.float32, tf.float32], shapes=[[], []])
    put, (a, b), size = area.put([x, x * 2]), area.get(), area.size()
    for i in range(3):
        session.run(put, {x: i})
    assert session.run(size) == 3
    assert [session.run([a, b]) for _ in range(3)] == [[0, 0], [1, 2], [2, 4]]


def test_a_pipeline_of_one_step(session):
    """Each step computes on what the step before put aside."""
    x = tf.placeholder(tf.float32)
    area = StagingArea([tf.float32], shapes=[[]])
    put, (got,) = area.put([x]), area.get()
    session.run(put, {x: 0})
    assert [session.run([got * 10, put], {x: i})[0] for i in range(1, 5)] == [0, 10, 20, 30]


def test_names_make_dictionaries():
    area = StagingArea([tf.float32, tf.int32], shapes=[[], [2]], names=["a", "b"], shared_name="st")
    put, got = area.put({"a": 1.0, "b": [1, 2]}), area.get()
    assert got["b"].shape.as_list() == [2]
    assert (area.name, put.name, got["a"].op.name) == ("st", "st_put", "st_get")
    with tf.Session() as sess:
        sess.run(put)
        peeked = sess.run(area.peek(0))
        assert peeked["a"] == 1.0
        assert sess.run(got)["b"].tolist() == [1, 2]
    with pytest.raises(ValueError, match="must enqueue a dictionary"):
        area.put([1.0, [1, 2]])
    with pytest.raises(ValueError, match="do not match"):
        area.put({"a": 1.0})
    with pytest.raises(ValueError, match="must have names"):
        StagingArea([tf.float32]).put({"a": 1.0})


def test_what_is_put_is_checked():
    area = StagingArea([tf.float32], shapes=[[2]])
    with pytest.raises(ValueError, match="Unexpected number of inputs 2 vs 1"):
        area.put([1.0, 2.0])
    with pytest.raises(ValueError, match="Datatypes do not match"):
        area.put([tf.constant([1, 2])])
    with pytest.raises(ValueError, match="incompatible"):
        area.put([tf.constant([1.0, 2.0, 3.0])])


def test_capacity_holds_back_and_clear_makes_room(session):
    area = StagingArea([tf.float32], capacity=2)
    put = area.put([1.0])
    short = tf.RunOptions(timeout_in_ms=20)
    session.run(put)
    session.run(put)
    with pytest.raises(tf.errors.DeadlineExceededError):
        session.run(put, options=short)
    assert session.run(area.size()) == 2
    session.run(area.clear())
    assert session.run(area.size()) == 0
    session.run(put)


def test_memory_limit(session):
    x = tf.placeholder(tf.float32)
    area = StagingArea([tf.float32], memory_limit=8)
    put, (got,) = area.put([x]), area.get()
    with pytest.raises(tf.errors.ResourceExhaustedError, match="memory limit of '8'"):
        session.run(put, {x: np.zeros(3)})
    session.run(put, {x: np.zeros(2)})
    with pytest.raises(tf.errors.DeadlineExceededError):
        session.run(put, {x: np.zeros(1)}, options=tf.RunOptions(timeout_in_ms=20))
    session.run(got)
    session.run(put, {x: np.ones(1)})
    assert session.run(got).tolist() == [1]


def test_peek_waits_for_its_element_while_others_take(session):
    x = tf.placeholder(tf.float32)
    area = StagingArea([tf.float32], shapes=[[]])
    put, (got,), (second,) = area.put([x]), area.get(), area.peek(1)
    looker = in_background(session.run, second)
    session.run(put, {x: 1})
    assert session.run(got) == 1
    session.run(put, {x: 2})
    session.run(put, {x: 3})
    assert looker.result(60) == 3
