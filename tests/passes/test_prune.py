"""What runs, given what is fed."""

import numpy as np
import pytest

import tensorfleet as tf


def test_a_fed_value_is_used_though_its_operation_runs_for_another_of_its_results(session):
    x = tf.placeholder(tf.float32, [4])
    first, second = tf.split(x, 2)
    total, seen = session.run([first + second, first], {x: [1, 2, 3, 4], first: [100, 200]})
    assert total.tolist() == [103, 204] and seen.tolist() == [100, 200]


def test_a_fed_value_of_a_host_operation_is_used(session):
    words = tf.string_split(["a b"])
    sizes = [tf.size(words.values), tf.size(words.indices), words.values]
    count, places, seen = session.run(sizes, {words.values: ["x", "y", "z"]})
    assert (count, places, seen.tolist()) == (3, 4, [b"x", b"y", b"z"])


@pytest.mark.parametrize("resource", [False, True])
def test_what_is_waited_for_runs_though_its_result_is_fed(session, resource):
    v = tf.get_variable("v", initializer=1.0, use_resource=resource)
    seen = tf.identity(v.assign_add(1.0))
    with tf.control_dependencies([seen]):
        y = tf.constant(1.0) * 2.0
    session.run(v.initializer)
    assert session.run([y, seen * 3.0], {seen: 5.0}) == [2.0, 15.0]
    assert session.run(v) == 2.0


def test_a_placeholder_that_is_waited_for_needs_no_more_than_its_value(session):
    fed, default = tf.placeholder(tf.float32, []), tf.placeholder_with_default(3.0, [])
    with tf.control_dependencies([fed, default]):
        y = tf.constant(5.0)
    assert session.run(y, {fed: 1.0, default: 2.0}) == 5.0


def test_a_fed_reference_is_a_value(session):
    v = tf.get_variable("v", initializer=np.zeros([1 << 14, 2], np.float32), use_resource=False)
    rows = tf.gather(v._ref(), [1])
    session.run(v.initializer)
    assert session.run(rows, {v._ref(): np.full([1 << 14, 2], 3.0)}).tolist() == [[3.0, 3.0]]
