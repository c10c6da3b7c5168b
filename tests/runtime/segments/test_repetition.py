"""A block of operations that repeats is a loop in the program, and computes what the operations do."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.runtime.segments import compiled, tracing
from tensorfleet.runtime.segments.repetition import Repetition

X = np.linspace(-1, 1, 6, dtype=np.float32)


def _loops(session, fetched, feeds):
    """How many loops the programs of a step have, and how many repetitions there are."""
    items = session._prepare(fetched, feeds).program.items
    texts = [p.call.as_text() for item in items for p in item.compiler.programs.values()]
    pieces = [piece for item in items for piece in item.compiler.pieces.pieces]
    return sum(text.count(" while(") for text in texts), sum(isinstance(p, Repetition) for p in pieces)


def _compare(monkeypatch, fetched, feeds, loops=1):
    """Compares what a step gives compiled and interpreted."""
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with monkeypatch.context() as patch:
            patch.setattr(compiled.Compiler, "wanted", lambda self: False)
            interpreted = session.run(fetched, feeds)
        with monkeypatch.context() as patch:
            patch.setattr(compiled.Compiler, "wanted", lambda self: self.possible)
            patch.setattr(compiled.Compiler, "mostly_calls", lambda self: False)
            found = session.run(fetched, feeds)
        for a, b in zip(tf.nest.flatten(found), tf.nest.flatten(interpreted), strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)
            assert a.dtype == b.dtype
        assert _loops(session, fetched, feeds)[0] == loops
        return _loops(session, fetched, feeds)[1]


def test_a_chain_with_other_constants_in_each_round(monkeypatch):
    x = value = tf.placeholder(tf.float32, [6])
    for i in range(100):
        value = value * (0.9 + i % 7 * 0.01) + float(i % 3)
    assert _compare(monkeypatch, value, {x: X}) == 1


def test_several_values_that_go_from_round_to_round(monkeypatch):
    a = x = tf.placeholder(tf.float32, [6])
    b = x + 1.0
    for i in range(60):
        a, b = tf.tanh(b * 0.5 + float(i)), a - b * 0.1
    _compare(monkeypatch, [a, b], {x: X})


def test_the_first_value_is_also_used_in_every_round(monkeypatch):
    x = value = tf.placeholder(tf.float32, [6])
    for i in range(60):
        value = value * x + float(i % 5)
    _compare(monkeypatch, value, {x: X})


def test_one_constant_that_changes_and_one_that_does_not_may_be_the_same(monkeypatch):
    x = value = tf.placeholder(tf.float32, [6])
    numbers = [tf.constant(0.1 * i) for i in range(4)]
    for i in range(60):
        value = value * numbers[2] + numbers[i % 4]
    _compare(monkeypatch, value, {x: X})


def test_values_from_the_middle_are_used_later(monkeypatch):
    x = value = tf.placeholder(tf.float32, [6])
    taken = []
    for i in range(200):
        value = value * 0.9 + float(i)
        if i in (90, 150):
            taken.append(value)
    _compare(monkeypatch, [tf.add_n(taken), value], {x: X}, loops=3)


def test_the_first_round_brings_the_value_to_its_shape(monkeypatch):
    x = value = tf.placeholder(tf.float32, None)
    value = value * 1.0
    value = value + 0.0
    for _ in range(60):
        value = value * tf.constant([0.9] * 6) + 1.0
    _compare(monkeypatch, value, {x: np.float32(2.0)})


def test_a_value_that_grows_in_every_round_is_no_loop(monkeypatch):
    x = value = tf.placeholder(tf.float32, [None])
    for _ in range(64):
        value = tf.concat([value * 0.5, [1.0]], 0)
    assert _compare(monkeypatch, value, {x: X}, loops=0) == 1


def test_a_long_one_that_is_no_loop_stays_in_numpy(monkeypatch, always_compile, session):
    monkeypatch.setattr(tracing, "_MAX_UNROLLED_STEPS", 100)
    x = value = tf.placeholder(tf.float32, [None])
    for _ in range(64):
        value = tf.concat([value * 0.5, [1.0]], 0)
    assert session.run(value, {x: X}).shape == (70,)
    (item,) = session._prepare(value, {x: X}).program.items
    assert list(item.compiler.programs.values()) == [None]


def test_a_round_that_needs_the_one_before_the_last_is_no_loop(monkeypatch):
    a = x = tf.placeholder(tf.float32, [6])
    b = x + 1.0
    for _ in range(80):
        a, b = b, tf.atan2(a, b)
    _compare(monkeypatch, b, {x: X}, loops=0)


def test_operations_of_several_kinds_with_matrices_and_shapes(monkeypatch):
    x = value = tf.placeholder(tf.float32, [6, 6])
    w = tf.get_variable("w", initializer=np.eye(6, dtype=np.float32) * 0.9)
    for i in range(40):
        value = tf.reshape(tf.matmul(tf.tanh(value * 0.9 + float(i % 3)), w), [6, 6])
    _compare(monkeypatch, value, {x: np.tile(X, [6, 1])})


def test_integers_wrap_as_ever(monkeypatch):
    x = value = tf.placeholder(tf.int32, [3])
    for i in range(100):
        value = value * 3 + i
    _compare(monkeypatch, value, {x: [1, 2, 3]})


def test_a_check_in_a_round_is_told_with_the_operation(always_compile, session):
    x = value = tf.placeholder(tf.float32, [6])
    for i in range(40):
        value = tf.check_numerics(value * 10.0 + float(i), "too large", name=f"checked{i}")
    np.testing.assert_allclose(session.run(value, {x: X * 1e-30}).shape, [6])
    assert _loops(session, value, {x: X})[0] == 1
    with pytest.raises(tf.errors.InvalidArgumentError, match="(?s)too large.*checked"):
        session.run(value, {x: X * 1e20})


def test_shapes_inside_a_loop_are_told_to_the_watch(always_compile, session, monkeypatch):
    seen = []
    x = value = tf.placeholder(tf.float32, [6])
    for i in range(60):
        value = value * 0.9 + float(i)
    (item,) = session._prepare(value, {x: X}).program.items
    monkeypatch.setattr(item.compiler.varying, "note", lambda inputs, values, pays: seen.append(values))
    session.run(value, {x: X})
    shapes = {np.shape(seen[0][out]) for step in item.segment.steps for out in step.outs}
    assert shapes == {(6,)}
