"""What a reader sees when the graph orders it after an update."""

import numpy as np
import pytest

import tensorfleet as tf


@pytest.mark.parametrize("compiled", [False, True])
def test_op_after_an_update_sees_the_new_value_through_an_old_read(compiled, monkeypatch, session):
    monkeypatch.setattr(
        "tensorfleet.runtime.segments.compiled.Compiler.wanted", lambda self: compiled and self.possible
    )
    v = tf.Variable(1.0)
    with tf.control_dependencies([tf.assign(v, 5.0)]):
        after = v + 1.0
    before = v + 1.0
    session.run(v.initializer)
    assert session.run(after) == 6
    session.run(v.initializer)
    assert session.run([before, after]) == [2, 6]


def test_host_op_after_an_update_sees_the_new_value(session):
    v = tf.Variable([1.0])
    with tf.control_dependencies([tf.assign(v, [5.0])]):
        seen = tf.py_func(lambda x: x, [v], tf.float32)
    session.run(v.initializer)
    assert session.run(seen).tolist() == [5]


def test_gradient_uses_the_value_before_the_update(session):
    v = tf.Variable(3.0)
    loss = tf.square(v)
    (grad,) = tf.gradients(loss, [v])
    update = v.assign_sub(0.1 * grad)
    session.run(v.initializer)
    assert session.run([loss, update]) == [9, pytest.approx(2.4)]


def test_moving_average_after_the_optimizer_uses_the_updated_variable(session):
    v = tf.Variable(0.0)
    train = tf.assign_add(v, 1.0)
    average = tf.train.ExponentialMovingAverage(0.5)
    with tf.control_dependencies([train]):
        both = average.apply([v])
    session.run(tf.global_variables_initializer())
    session.run(both)
    assert session.run(average.average(v)) == 0.5


def test_a_fed_variable_is_used_instead_of_its_state(session):
    v = tf.Variable(1.0)
    r = tf.Variable(1.0, use_resource=True)
    session.run(tf.global_variables_initializer())
    assert session.run(v + 1.0, {v: 10.0}) == 11
    assert session.run(v, {v: 10.0}) == 10
    assert session.run(r, {r: 10.0}) == 10
    assert session.run(v) == 1


@pytest.mark.parametrize("use_resource", [False, True])
def test_variables_of_strings(use_resource, session):
    v = tf.get_variable("s", initializer=tf.constant(["a", "b"]), use_resource=use_resource)
    change = v.assign(["c", "d"])
    session.run(v.initializer)
    assert session.run(v).tolist() == [b"a", b"b"]
    session.run(change.op)
    assert session.run(v.value()).tolist() == [b"c", b"d"]


def test_step_with_segments_around_a_host_op_keeps_its_order(session):
    v = tf.Variable(np.zeros(2, np.float32))
    first = tf.assign_add(v, [1.0, 1.0])
    with tf.control_dependencies([first]):
        middle = tf.py_func(lambda x: x * 10, [v.read_value()], tf.float32)
    middle.set_shape([2])
    second = tf.assign_add(v, middle)
    session.run(v.initializer)
    assert session.run(second).tolist() == [11, 11]
