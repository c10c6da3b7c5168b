"""Side effects for tensors of a graph that is already built."""

import pytest
from tensorfleet.python.framework import subscribe

import tensorfleet as tf


@pytest.fixture
def seen():
    return []


def noting(seen):
    def note(value):
        seen.append(value.tolist())
        return value

    return lambda tensor: tf.py_func(note, [tensor], [tensor.dtype])


def test_whoever_uses_a_tensor_or_waits_for_it_runs_its_side_effect(seen, session):
    total = tf.constant(1) + 1
    twice = 2 * total
    with tf.control_dependencies([total]):
        later = tf.constant(7)
    result = subscribe.subscribe(total, noting(seen))
    assert later.op.control_inputs == [result.op]
    assert session.run(twice) == 4 and session.run(later) == 7 and session.run(result) == 2
    assert seen == [2, 2, 2]


def test_a_second_subscription_is_added_to_the_first(seen, session):
    x = tf.identity(3, name="x")
    first = subscribe.subscribe(x, noting(seen))
    assert subscribe.subscribe(first, [noting(seen), noting(seen)]) is first
    assert subscribe.subscribe(x, noting(seen)) is first
    assert first.op.name == "x/subscription/Identity"
    session.run(first)
    assert seen == [3, 3, 3, 3]


def test_structures_keep_their_kind_and_handles_are_left_alone(seen):
    a, b = tf.constant(1), tf.constant(2)
    result = subscribe.subscribe({"a": [a], "b": (b,)}, noting(seen))
    assert result["a"][0].op.inputs[0] is a and isinstance(result["b"], tuple)
    handle = tf.get_variable("r", [], use_resource=True).handle
    assert subscribe.subscribe(handle, noting(seen)) is handle
    with pytest.raises(TypeError, match="has invalid type 'str'"):
        subscribe.subscribe("a", noting(seen))


def test_reading_a_variable_is_seen_and_writing_it_is_not(seen, session):
    v = tf.get_variable("v", initializer=1.0)
    double, write = 2 * v, v.assign(4.0)
    subscribe.subscribe(v, noting(seen))
    session.run(v.initializer)
    session.run(double)
    session.run(write)
    assert session.run(double) == 8.0
    assert seen == [1.0, 4.0]


def test_a_side_effect_is_where_its_tensor_is(seen, session):
    with tf.device("/cpu:0"):
        placed = tf.constant(1.0, name="placed")
    branch = []

    def taken():
        branch.append(tf.add(placed, 1.0))
        return branch[0]

    result = tf.cond(placed > 0, taken, lambda: placed)
    on_device, in_branch = subscribe.subscribe([placed, branch[0]], noting(seen))
    assert on_device.device == placed.device
    assert in_branch.op._get_control_flow_context() is branch[0].op._get_control_flow_context()
    assert session.run(result) == 2.0
    assert sorted(seen) == [1.0, 2.0]
