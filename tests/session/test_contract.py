"""The corners of `Session.run`: what is fed, fetched, grown, interrupted, closed and freed."""

import gc
import time
import weakref
from functools import partial

import numpy as np
import pytest

import tensorfleet as tf
from tests.support.waiting import in_background, together


def test_cycle_of_control_dependencies_is_named():
    a = tf.constant(1.0)
    b = tf.add(a, 1.0, name="first")
    c = tf.add(b, 1.0, name="second")
    b.op._add_control_input(c.op)
    with (
        tf.Session() as s,
        pytest.raises(
            tf.errors.InvalidArgumentError, match="contains a cycle with 2 nodes, including: first"
        ),
    ):
        s.run(c)


def test_session_of_another_graph_cannot_evaluate():
    a = tf.constant(1.0)
    with tf.Session(graph=tf.Graph()) as s:
        with pytest.raises(ValueError, match="the tensor's graph is different from the session's graph"):
            a.eval()
        with pytest.raises(ValueError, match="Cannot use the given session to execute operation"):
            a.op.run(session=s)
    with pytest.raises(ValueError, match=r"Cannot evaluate tensor using `eval\(\)`: No default session"):
        tf.Variable(1.0).eval()


@pytest.mark.parametrize("value", [{1, 2}, object()])
def test_feeding_what_is_no_number_is_a_type_error(value):
    x = tf.placeholder(tf.float32)
    with tf.Session() as s, pytest.raises(TypeError, match="Cannot feed"):
        s.run(x * 2.0, {x: value})


def test_step_that_takes_too_long_is_an_error(session):
    slow = tf.py_func(lambda: np.float32(time.sleep(0.05) or 1.0), [], tf.float32)
    assert session.run(slow, options=tf.RunOptions(timeout_in_ms=60_000)) == 1.0
    with pytest.raises(tf.errors.DeadlineExceededError, match="has not returned in time"):
        session.run(slow, options=tf.RunOptions(timeout_in_ms=1))


def test_session_that_nobody_holds_frees_its_variables_at_once():
    v = tf.Variable(np.ones(100, np.float32))
    s = tf.Session()
    s.run(v.initializer)
    s.run([v.assign_add(v), {"nested": v}])
    gone = weakref.ref(s)
    gc.disable()
    try:
        del s
        assert gone() is None
    finally:
        gc.enable()


def test_function_that_raises_leaves_the_session_usable(session):
    fails = [True, False, True, False]

    def sometimes(x):
        if fails.pop(0):
            raise ValueError("not today")
        return x

    v, w = tf.Variable(1.0), tf.Variable(0.0)
    with tf.control_dependencies([v.assign_add(1.0)]):
        y = tf.py_func(sometimes, [v * 2.0], tf.float32)
    update = w.assign(tf.reshape(y, []))
    session.run(tf.global_variables_initializer())
    for expected in (6.0, 10.0):
        with pytest.raises(tf.errors.InvalidArgumentError, match="not today"):
            session.run(update)
        assert session.run(update) == expected


class Interrupted:
    """A lock whose owner-to-be is interrupted while waiting for it."""

    def acquire(self):
        raise KeyboardInterrupt

    def release(self):
        raise RuntimeError("cannot release un-acquired lock")


@pytest.mark.parametrize("rows", [False, True])
def test_interrupted_step_leaves_no_lock_held(rows, session):
    v = tf.Variable([1.0])
    train = tf.train.MomentumOptimizer(0.1, 0.9)
    loss = tf.reduce_sum(tf.gather(v, [0]) if rows else v)
    step = train.minimize(loss)
    session.run(tf.global_variables_initializer())
    stores = [session._engine.resources.variable(x.op) for x in (v, train.get_slot(v, "momentum"))]
    second = max(stores, key=lambda store: store.order)
    lock, second.lock = second.lock, Interrupted()
    with pytest.raises(KeyboardInterrupt):
        session.run(step)
    second.lock = lock
    in_background(session.run, step).result(10)
    np.testing.assert_allclose(session.run(v), [0.9])


def test_many_threads_run_while_the_graph_grows(graph):
    x = tf.placeholder(tf.float32, [2])
    count = tf.Variable(0.0)
    increment = count.assign_add(1.0, use_locking=True)
    s = tf.Session()
    s.run(count.initializer)

    def work(k):
        for j in range(5):
            with graph.as_default():
                y = tf.tanh(x * float(k)) + float(j)
                gradient = tf.gradients(y, x)[0]
            value, _, _ = s.run([y, gradient, increment], {x: [1.0, 2.0]})
            np.testing.assert_allclose(value, np.tanh([k, 2 * k]) + j, rtol=1e-5)

    together(*(partial(work, k) for k in range(8)))
    assert s.run(count) == 40.0
    s.close()


def test_batch_that_changes_every_step_stops_compiling(monkeypatch, session):
    monkeypatch.setattr("tensorfleet.runtime.segments.compiled.Compiler.wanted", lambda self: self.possible)
    x = tf.placeholder(tf.float32, [None])
    y = tf.reduce_sum(tf.tanh(x))
    for n in range(1, 30):
        np.testing.assert_allclose(session.run(y, {x: np.ones(n)}), n * np.tanh(1.0), rtol=1e-5)
    (item,) = next(iter(session._prepared.values())).program.items
    assert len(item.compiler.programs) <= 4


def test_programs_with_thousands_of_results_are_not_compiled(session):
    x = tf.placeholder(tf.float32, [4])
    terms = [x + float(i) for i in range(1200)]
    session.run(terms, {x: np.ones(4)})
    (item,) = next(iter(session._prepared.values())).program.items
    assert not item.compiler.possible


def test_deep_graphs_need_no_deep_stack(session):
    x = tf.placeholder(tf.float32, [2])
    y = x
    for _ in range(3000):
        y = tf.negative(y)
    (gradient,) = tf.gradients(y, x)
    for _ in range(2):
        value, slope = session.run([y, gradient], {x: [1.0, 2.0]})
    np.testing.assert_array_equal(value, [1.0, 2.0])
    np.testing.assert_array_equal(slope, [1.0, 1.0])


def test_constant_initializer_leaves_no_room_for_a_shape():
    for value in ("text", np.zeros(2, np.float32), tf.zeros([2])):
        with pytest.raises(ValueError, match="If initializer is a constant, do not specify shape"):
            tf.get_variable("v", [2], initializer=value)


def test_empty_lists_of_tensors_are_named():
    with pytest.raises(
        ValueError, match="List argument 'values' to 'ConcatV2' Op with length 0 shorter than"
    ):
        tf.concat([], 0)
