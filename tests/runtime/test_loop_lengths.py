"""Loops whose length changes from run to run share their programs."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.runtime.scheduling import host_loops as loops
from tensorfleet.runtime.segments.loop_stores import room_for

LENGTHS = [5, 9, 6, 14, 11, 7, 16, 10, 13, 3, 8]


@pytest.fixture
def at_once(monkeypatch):
    """Loops are compiled when they run for the second time."""
    monkeypatch.setattr(loops, "_COMPILE_AFTER_SECONDS", 0.0)


def recurrent():
    """A cell over sequences of any length, and the gradient of its weights."""
    x = tf.placeholder(tf.float32, [None, 2, 3], name="x")
    w = tf.get_variable("w", initializer=np.linspace(-0.5, 0.5, 9, dtype=np.float32).reshape(3, 3))
    size = tf.shape(x)[0]
    inputs = tf.TensorArray(tf.float32, size, element_shape=[2, 3]).unstack(x)
    outputs = tf.TensorArray(tf.float32, size, element_shape=[2, 3])

    def body(i, state, written):
        state = tf.tanh(tf.matmul(state, w) + inputs.read(i))
        return i + 1, state, written.write(i, state)

    start = (tf.constant(0), tf.zeros([2, 3]), outputs)
    _, _, outputs = tf.while_loop(lambda i, *_: i < size, body, start)
    states = outputs.stack()
    total = tf.reduce_sum(states * tf.reshape(tf.range(6.0), [2, 3]))
    return x, states, tf.gradients(total, w)[0]


def programs(session, fetches, x):
    program = session._prepare(fetches, {x: None}).program
    return [len(item.traced.programs) for item in program.items if isinstance(item, loops.LoopItem)]


def test_one_program_serves_all_lengths_up_to_a_power_of_two(at_once, session):
    x, states, slope = recurrent()
    session.run(tf.global_variables_initializer())
    for length in LENGTHS:
        session.run([states, slope], {x: np.ones((length, 2, 3))})
    rooms = {room_for(length) for length in LENGTHS}
    assert max(programs(session, [states, slope], x)) <= 1 + len(rooms)


def test_loops_with_room_compute_what_the_host_does(at_once, session, monkeypatch):
    x, states, slope = recurrent()
    session.run(tf.global_variables_initializer())
    random = np.random.RandomState(1)
    given = [random.randn(length, 2, 3) for length in LENGTHS]
    compiled = [session.run([states, slope], {x: one}) for one in given]
    assert [len(s) for s, _ in compiled] == LENGTHS
    monkeypatch.setattr(loops, "_COMPILE_AFTER_SECONDS", np.inf)
    with tf.Session() as other:
        other.run(tf.global_variables_initializer())
        for one, (states_then, slope_then) in zip(given, compiled, strict=True):
            on_host = other.run([states, slope], {x: one})
            np.testing.assert_allclose(states_then, on_host[0], rtol=1e-4, atol=1e-6)
            np.testing.assert_allclose(slope_then, on_host[1], rtol=1e-3, atol=1e-5)


def test_an_element_behind_the_last_is_refused_although_there_is_room(at_once, session):
    size = tf.placeholder(tf.int32, [])
    end = tf.placeholder(tf.int32, [])
    array = tf.TensorArray(tf.float32, size, element_shape=[])
    _, array = tf.while_loop(
        lambda i, _: i < end, lambda i, a: (i + 1, a.write(i, tf.cast(i, tf.float32))), (0, array)
    )
    total = tf.reduce_sum(array.stack())
    for length in (5, 6, 7, 5, 7):
        assert session.run(total, {size: length, end: length}) == sum(range(length))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Tried to write to index 6 but array is not"):
        session.run(total, {size: 6, end: 7})


def test_the_size_of_an_array_in_a_loop_is_that_of_the_array_and_not_its_room(at_once, session):
    size = tf.placeholder(tf.int32, [])
    array = tf.TensorArray(tf.float32, size, element_shape=[])
    _, array = tf.while_loop(
        lambda i, a: i < a.size(), lambda i, a: (i + 1, a.write(i, tf.cast(a.size(), tf.float32))), (0, array)
    )
    values = array.stack()
    for length in (5, 3, 7, 6, 1):
        np.testing.assert_array_equal(session.run(values, {size: length}), [length] * length)


def test_a_loop_that_needs_the_value_of_a_size_is_compiled_once(at_once, session, monkeypatch):
    from tensorfleet.runtime.segments import traced_loops

    compiled = []
    whole = traced_loops.TracedLoop._compile
    monkeypatch.setattr(
        traced_loops.TracedLoop, "_compile", lambda self, *args: compiled.append(1) or whole(self, *args)
    )
    x, size = tf.placeholder(tf.float32, [6]), tf.placeholder(tf.int32, [])

    def body(i, value):
        return i + 1, tf.reshape(tf.reshape(value, [size, -1]) * 0.5, [6])

    y = tf.while_loop(lambda i, _: i < 5, body, (tf.constant(0), x))[1]
    for _ in range(5):
        np.testing.assert_allclose(session.run(y, {x: np.ones(6), size: 2}), np.full(6, 0.5**5))
    assert len(compiled) == 1
