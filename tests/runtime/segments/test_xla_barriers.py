"""Shared values are computed once in a compiled program."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.kernels.parallel_for import core_count
from tests.support.sessions import initialized, programs_of


def recurrence(steps):
    """A value that every step of a chain uses three times, as in the gradient of a recurrent network."""
    x = tf.placeholder(tf.float32, [64, 64])
    state, shared = x, []
    for k in range(steps):
        state = state * (1.0 / (k + 2)) - x * state + 0.5
        shared += [state * 2.0 - x, state * x]
    return x, tf.concat(shared, 0)


def expected(x, steps):
    state, shared = x, []
    for k in range(steps):
        state = state * np.float32(1.0 / (k + 2)) - x * state + np.float32(0.5)
        shared += [state * 2 - x, state * x]
    return np.concatenate(shared)


def run_and_count(steps):
    with tf.Graph().as_default(), tf.Session() as s:
        x, y = recurrence(steps)
        value = np.random.RandomState(0).rand(64, 64).astype("f")
        np.testing.assert_allclose(s.run(y, {x: value}), expected(value, steps), rtol=1e-4, atol=1e-5)
        (program,) = programs_of(s, y, [x])
        return program.call.as_text().count(" multiply(")


def test_program_grows_with_the_length_of_a_chain_not_with_its_square(always_compile):
    assert run_and_count(40) < 3 * run_and_count(20)


def test_short_programs_have_no_barriers(always_compile, session):
    x = tf.placeholder(tf.float32, [64, 64])
    y = tf.square(x) + 1.0
    fetches = [y * x, y - x]
    session.run(fetches, {x: np.ones((64, 64))})
    (program,) = programs_of(session, fetches, [x])
    assert "opt-barrier" not in program.call.as_text()


def test_few_elements_that_see_large_windows_are_divided_among_threads(always_compile, session):
    x = tf.placeholder(tf.float32, [8, 64, 64, 3])
    y = tf.nn.depthwise_conv2d(x, np.ones([11, 11, 3, 1], "f"), [1, 1, 1, 1], "VALID")
    session.run(y, {x: np.ones([8, 64, 64, 3], "f")})
    (program,) = programs_of(session, y, [x])
    assert core_count() == 1 or 'outer_dimension_partitions":["' in program.call.as_text()


def blocks_with(program, instruction):
    """The computations of a compiled program that have this instruction in them."""
    return [block for block in program.as_text().split("\n}\n") if f" {instruction}(" in block]


@pytest.mark.parametrize("transposed", ["transpose_a", "transpose_b", "neither"])
def test_a_sum_does_not_compute_the_products_it_is_made_of_again(always_compile, session, transposed):
    x = tf.placeholder(tf.float32, [800, 800])
    inner = tf.matmul(x, x)
    outer = tf.matmul(inner, inner, **({} if transposed == "neither" else {transposed: True}))
    total = tf.reduce_sum(outer)
    value = np.random.RandomState(0).rand(800, 800).astype("f")
    found = session.run(total, {x: value})
    (program,) = programs_of(session, total, [x])
    assert all(block.count(" dot(") == 1 for block in blocks_with(program.call, "dot"))
    square = value.astype("d") @ value
    left, right = square.T if transposed == "transpose_a" else square, square
    expected = (left @ (right.T if transposed == "transpose_b" else right)).sum()
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_nor_those_of_an_einsum(always_compile, session):
    x = tf.placeholder(tf.float32, [800, 800])
    inner = tf.einsum("ij,jk->ik", x, x)
    total = tf.reduce_sum(tf.einsum("ij,kj->ik", inner, inner))
    session.run(total, {x: np.ones((800, 800), "f")})
    (program,) = programs_of(session, total, [x])
    assert all(block.count(" dot(") == 1 for block in blocks_with(program.call, "dot"))


def test_the_gradient_of_a_maximum_finds_it_where_the_maximum_was_taken(always_compile, session):
    x = tf.placeholder(tf.float32, [3, 37, 5])
    scores = tf.exp(-tf.abs(x)) + tf.reduce_logsumexp(x, axis=1, keepdims=True) * 0.1
    best = tf.nn.relu(x) + tf.reduce_max(scores, axis=1, keepdims=True)
    rest = tf.cumsum(x, axis=1, reverse=True, exclusive=True) * 0.1
    (gradient,) = tf.gradients(tf.reduce_mean(tf.square(tf.tanh(best) + tf.tanh(rest))), [x])
    # A sum of the maxima alone: each of the 15 has one element that gets all of its gradient.
    (one_each,) = tf.gradients(tf.reduce_max(scores, axis=1), [scores])
    for seed in range(10):
        value = np.random.RandomState(seed).randn(3, 37, 5).astype("f")
        compiled, chosen = session.run([gradient, one_each], {x: value})
        assert np.isfinite(compiled).all()
        np.testing.assert_array_equal(chosen.sum(1), np.ones((3, 5), "f"))
        np.testing.assert_allclose(compiled, _in_pieces(gradient, x, value), rtol=1e-4, atol=1e-6)


def test_a_result_that_nobody_uses_is_not_computed(always_compile):
    """The updates of large variables wait for those who read them, but not for the gradient of the input."""
    w, v = tf.get_variable("w", [1024, 512]), tf.get_variable("v", [512, 1024])
    x = tf.placeholder(tf.float32, [8, 1024])
    loss = tf.reduce_sum(tf.square(tf.fleet.jax_op(lambda w, v, x: x @ w @ v)(w, v, x)))
    train = tf.train.AdamOptimizer(0.01).minimize(loss)
    with initialized() as session:
        session.run([train, loss], {x: np.ones((8, 1024), "f")})
        (program,) = programs_of(session, [train, loss], [x])
    assert program.reused and "opt-barrier" in program.call.as_text()
    assert program.call.as_text().count(" dot(") == 5


def _in_pieces(gradient, x, value):
    """The same, in a session that runs each operation by itself."""
    ops, fetches = gradient.graph.get_operations(), []
    for op in ops:
        fetches += [t for t in op.outputs if t.dtype == tf.float32 and op.type != "Placeholder"]
    with tf.Session(graph=gradient.graph) as sess:
        return dict(zip(fetches, sess.run(fetches, {x: value}), strict=True))[gradient]
