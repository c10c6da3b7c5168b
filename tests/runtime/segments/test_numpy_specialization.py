"""What a segment leaves out when it runs again in numpy, and what it must not leave out."""

from functools import partial

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.runtime.segments import compiled, segment
from tests.support.waiting import together


@pytest.fixture(autouse=True)
def never_compile(monkeypatch):
    monkeypatch.setattr(compiled.Compiler, "wanted", lambda self: False)


@pytest.fixture
def ran(monkeypatch):
    """The types of the operations run by each call of `interpret`."""
    runs = []
    whole = segment.Segment.interpret

    def interpret(self, values, state, streams, *rest, steps=None, **more):
        runs.append([s.op.type for s in (self.steps if steps is None else steps)])
        return whole(self, values, state, streams, *rest, steps=steps, **more)

    monkeypatch.setattr(segment.Segment, "interpret", interpret)
    return runs


def test_shapes_are_worked_out_once(ran, session):
    x = tf.placeholder(tf.float32, [None, 4])
    y = tf.reshape(x * 2.0, [tf.shape(x)[0] * 2, 2])
    for rows in (3, 3, 3, 5, 5, 5, 3):
        found = session.run(y, {x: np.ones([rows, 4], np.float32)})
        np.testing.assert_array_equal(found, np.full([rows * 2, 2], 2.0))
    assert [("Shape" in types) for types in ran] == [True, True, False, True, True, False, False]


def test_a_gradient_that_nobody_uses_is_not_computed(ran, session):
    x = tf.placeholder(tf.float32, [2, 3])
    w = tf.Variable(np.ones([3, 1], np.float32))
    train = tf.train.GradientDescentOptimizer(0.5).minimize(tf.reduce_sum(tf.matmul(x, w)))
    session.run(w.initializer)
    ran.clear()
    for _ in range(3):
        session.run(train, {x: np.ones([2, 3], np.float32)})
    np.testing.assert_array_equal(session.run(w), np.full([3, 1], 1 - 3 * 0.5 * 2))
    assert [types.count("MatMul") for types in ran[:3]] == [
        2,
        2,
        1,
    ]  # the product itself is not needed either


def test_a_shape_that_is_fed_may_change(session):
    shape = tf.placeholder(tf.int32, [2])
    size = tf.size(tf.ones(shape) + 1.0) + tf.shape(shape)[0]
    for a, b in ((1, 2), (1, 2), (1, 2), (3, 4), (5, 6)):
        assert session.run(size, {shape: [a, b]}) == a * b + 2


def test_a_variable_may_change_its_shape(session):
    v = tf.Variable(np.zeros(2, np.float32), validate_shape=False)
    new = tf.placeholder(tf.float32)
    change = tf.assign(v, new, validate_shape=False)
    length = tf.shape(v)[0] * 10
    session.run(v.initializer)
    for n in (2, 2, 2, 5, 5, 7):
        session.run(change.op, {new: np.zeros(n, np.float32)})
        assert session.run(length) == n * 10


def test_a_check_is_made_though_its_result_is_not_used(session):
    x = tf.placeholder(tf.int32, [None])
    with tf.control_dependencies([tf.gather([1, 2, 3], x).op]):
        y = tf.shape(x)[0] + 1
    for _ in range(3):
        assert session.run(y, {x: [0, 1]}) == 3
    with pytest.raises(tf.errors.InvalidArgumentError, match="not in"):
        session.run(y, {x: [0, 9]})


def test_what_is_fetched_is_the_callers_own(session):
    x = tf.placeholder(tf.float32, [None, 3])
    y = tf.shape(x) + 0
    for _ in range(5):
        found = session.run(y, {x: np.ones([2, 3], np.float32)})
        np.testing.assert_array_equal(found, [2, 3])
        found[:] = 0


def test_threads_with_different_shapes(session):
    x = tf.placeholder(tf.float32, [None])
    y = tf.reduce_sum(x) / tf.cast(tf.size(x), tf.float32)

    def work(n):
        for _ in range(50):
            assert session.run(y, {x: np.full(n, n, np.float32)}) == n

    together(*(partial(work, n) for n in range(1, 13)))
