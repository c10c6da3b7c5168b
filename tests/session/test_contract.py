"""The corners of `Session.run`: what is fed, fetched, grown, interrupted, closed and freed."""

from __future__ import annotations

import pytest

import tensorfleet as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


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
