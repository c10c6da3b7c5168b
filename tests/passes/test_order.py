"""What a reader sees when the graph orders it after an update."""

from __future__ import annotations

import numpy as np
import pytest

import tensorfleet as tf


@pytest.mark.parametrize("compiled", [False, True])
def test_op_after_an_update_sees_the_new_value_through_an_old_read(compiled, monkeypatch):
    monkeypatch.setattr(
        "tensorfleet.runtime.compiled.Compiler.wanted", lambda self: compiled and self.possible
    )
    v = tf.Variable(1.0)
    with tf.control_dependencies([tf.assign(v, 5.0)]):
        after = v + 1.0
    before = v + 1.0
    with tf.Session() as s:
        s.run(v.initializer)
        assert s.run(after) == 6
        s.run(v.initializer)
        assert s.run([before, after]) == [2, 6]


def test_host_op_after_an_update_sees_the_new_value():
    v = tf.Variable([1.0])
    with tf.control_dependencies([tf.assign(v, [5.0])]):
        seen = tf.py_func(lambda x: x, [v], tf.float32)
    with tf.Session() as s:
        s.run(v.initializer)
        assert s.run(seen).tolist() == [5]


def test_gradient_uses_the_value_before_the_update():
    v = tf.Variable(3.0)
    loss = tf.square(v)
    (grad,) = tf.gradients(loss, [v])
    update = v.assign_sub(0.1 * grad)
    with tf.Session() as s:
        s.run(v.initializer)
        assert s.run([loss, update]) == [9, pytest.approx(2.4)]


def test_moving_average_after_the_optimizer_uses_the_updated_variable():
    v = tf.Variable(0.0)
    train = tf.assign_add(v, 1.0)
    average = tf.train.ExponentialMovingAverage(0.5)
    with tf.control_dependencies([train]):
        both = average.apply([v])
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        s.run(both)
        assert s.run(average.average(v)) == 0.5


def test_a_fed_variable_is_used_instead_of_its_state():
    v = tf.Variable(1.0)
    r = tf.Variable(1.0, use_resource=True)
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        assert s.run(v + 1.0, {v: 10.0}) == 11
        assert s.run(v, {v: 10.0}) == 10
        assert s.run(r, {r: 10.0}) == 10
        assert s.run(v) == 1


@pytest.mark.parametrize("use_resource", [False, True])
def test_variables_of_strings(use_resource):
    v = tf.get_variable("s", initializer=tf.constant(["a", "b"]), use_resource=use_resource)
    change = v.assign(["c", "d"])
    with tf.Session() as s:
        s.run(v.initializer)
        assert s.run(v).tolist() == [b"a", b"b"]
        s.run(change.op)
        assert s.run(v.value()).tolist() == [b"c", b"d"]


def test_step_with_segments_around_a_host_op_keeps_its_order():
    v = tf.Variable(np.zeros(2, np.float32))
    first = tf.assign_add(v, [1.0, 1.0])
    with tf.control_dependencies([first]):
        middle = tf.py_func(lambda x: x * 10, [v.read_value()], tf.float32)
    middle.set_shape([2])
    second = tf.assign_add(v, middle)
    with tf.Session() as s:
        s.run(v.initializer)
        assert s.run(second).tolist() == [11, 11]
