"""Large variables that a compiled segment changes where they are, and never under somebody's hands."""

import signal
from itertools import starmap

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.runtime.segments import compiled, compiled_segment
from tests.support.waiting import SECONDS, in_background

SIZE = 1 << 19


def shrinking(optimizer=None, use_resource=False):
    """A step that takes a tenth off every element of a variable of ones."""
    v = tf.get_variable("v", [SIZE], initializer=tf.ones_initializer(), use_resource=use_resource)
    loss = tf.reduce_sum(tf.square(v)) / 2.0
    return v, loss, (optimizer or tf.train.GradientDescentOptimizer(0.1)).minimize(loss)


def store_of(session, v):
    return session._engine.resources.variable(v.op if v.op.type != "Identity" else v.op.inputs[0].op)


def programs_of(session, fetches):
    items = session._prepare(fetches, {}).program.items
    return [p for item in items for p in item.compiler.programs.values()]


@pytest.mark.parametrize("use_resource", [False, True])
def test_memory_stays_where_it_is(use_resource, always_compile, session):
    v, loss, train = shrinking(tf.train.AdamOptimizer(), use_resource)
    session.run(tf.global_variables_initializer())
    store = store_of(session, v.handle if use_resource else v)
    session.run([train, loss])
    address = store.value.unsafe_buffer_pointer()
    for _ in range(3):
        session.run([train, loss])
        assert store.value.unsafe_buffer_pointer() == address
    (program,) = programs_of(session, [train, loss])
    assert len(program.reused) == 3  # with Adam's moments


def test_what_was_fetched_or_read_does_not_change(always_compile, session):
    v, _, train = shrinking()
    session.run(tf.global_variables_initializer())
    store = store_of(session, v)
    for n in range(4):
        fetched, held, view = session.run(v), store.read(), np.asarray(store.read())
        session.run(train)
        now = np.float32(0.9**n)
        for seen in (fetched, np.asarray(held), view):
            np.testing.assert_allclose(seen, now, rtol=1e-5)
            assert (seen == seen[0]).all()


def test_layers_between_others_are_not_copied(always_compile, session):
    x = tf.placeholder(tf.float32, [8, 1024])
    layer = x
    for n in range(3):
        layer = tf.tanh(tf.matmul(layer, tf.get_variable(f"w{n}", [1024, 1024])))
    penalty = tf.add_n([tf.reduce_sum(tf.square(w)) for w in tf.trainable_variables()])
    train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(tf.reduce_sum(layer) + 1e-4 * penalty)
    session.run(tf.global_variables_initializer())
    session.run(train, {x: np.ones([8, 1024], "f")})
    (program,) = session._prepare(train, {x: 0}).program.items[0].compiler.programs.values()
    assert len(program.reused) == 6
    assert "f32[1024,1024]{1,0} copy(" not in program.call.as_text()


def test_step_whose_check_fails_changes_nothing(always_compile, session):
    v, loss, train = shrinking()
    x = tf.placeholder(tf.float32, [])
    with tf.control_dependencies([tf.check_numerics(x, "x")]):
        checked = tf.identity(loss)
    session.run(tf.global_variables_initializer())
    for _ in range(3):
        session.run([train, checked], {x: 1.0})
    before = session.run(v)
    for _ in range(2):
        with pytest.raises(tf.errors.InvalidArgumentError, match="x : Tensor had NaN"):
            session.run([train, checked], {x: np.nan})
    np.testing.assert_array_equal(session.run(v), before)
    session.run([train, checked], {x: 1.0})
    np.testing.assert_allclose(session.run(v), 0.9**4, rtol=1e-5)


def test_readers_see_whole_steps_while_others_train(always_compile, session):
    v, _, train = shrinking()
    session.run(tf.global_variables_initializer())
    session.run(train)
    training = [in_background(lambda: [session.run(train) for _ in range(15)]) for _ in range(2)]
    held = []
    while not all(steps.done() for steps in training):
        held.append((store_of(session, v).read(), session.run(v)))
        held = held[-4:]
        for value, fetched in held:
            for seen in (np.asarray(value), fetched):
                assert seen[0] == seen[-1] == seen[SIZE // 2]
    for steps in training:
        steps.result(SECONDS)
    np.testing.assert_allclose(session.run(v), 0.9**31, rtol=1e-4)


def test_variable_that_others_always_want_gets_new_memory(always_compile, session):
    v, _, train = shrinking()
    session.run(tf.global_variables_initializer())
    store, held = store_of(session, v), []
    for _ in range(1 + compiled._MAX_DISTURBANCE // compiled._DISTURBANCE_WEIGHT + 2):
        session.run(train)
        held.append(store.read())
    (program,) = programs_of(session, train)
    assert program.reused == ()
    np.testing.assert_allclose(
        [np.asarray(h)[0] for h in held], 0.9 ** np.arange(1, len(held) + 1), rtol=1e-4
    )


def test_interrupt_that_comes_while_a_program_runs_loses_nothing(always_compile, session, monkeypatch):
    v, loss, train = shrinking()
    steps = tf.get_variable("steps", [], initializer=tf.zeros_initializer())
    fetches = [train, loss, tf.assign_add(steps, 1.0)]
    session.run(tf.global_variables_initializer())
    for _ in range(2):
        session.run(fetches)

    def interrupted(call, args):
        """The result of a call, and then what Python does when a signal came meanwhile."""
        yield from starmap(call, args)
        signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(compiled_segment, "starmap", interrupted)
        session.run(fetches)
    np.testing.assert_allclose(session.run(v), 0.9**3, rtol=1e-5)
    assert session.run(steps) == 3
    session.run(fetches)
    np.testing.assert_allclose(session.run(v), 0.9**4, rtol=1e-5)


def test_program_that_fails_at_first_leaves_variables_as_they_were(always_compile, session, monkeypatch):
    v, _, train = shrinking()
    session.run(tf.global_variables_initializer())

    def lacking(self, args, made):
        for x in args[4]:
            x.delete()
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(compiled.CompiledSegment, "run", lacking)
        with pytest.raises(tf.errors.ResourceExhaustedError):
            session.run(train)
    assert (session.run(v) == 1).all()
    session.run(train)
    np.testing.assert_allclose(session.run(v), 0.9, rtol=1e-6)
