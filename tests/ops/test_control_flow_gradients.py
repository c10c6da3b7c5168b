"""Gradients through branches and loops."""

import numpy as np
import pytest

import tensorfleet as tf


@pytest.mark.parametrize("x", [2.0, 0.5, -2.0])
def test_branches_have_derivatives_of_any_order(x):
    given = tf.placeholder(tf.float32, [])
    inner = lambda: tf.cond(given > 1, lambda: given**3, lambda: given * tf.sin(given))  # noqa: E731
    y = tf.cond(given > 0, inner, lambda: tf.constant(1.0))
    orders = [tf.gradients(y, given)[0]]
    orders += [tf.gradients(orders[0], given)[0]]
    s, c = np.sin(x), np.cos(x)
    wanted = {2.0: [12, 12], 0.5: [s + x * c, 2 * c - x * s], -2.0: [0, 0]}[x]
    with tf.Session() as session:
        for _ in range(2):
            np.testing.assert_allclose(session.run(orders, {given: x}), wanted, rtol=1e-6)


@pytest.mark.parametrize(("taken", "slope"), [(False, 2), (True, 27)])
def test_a_merge_made_by_hand_has_a_gradient(taken, slope):
    x = tf.constant(3.0)
    no, yes = tf.raw_ops.Switch(data=x, pred=tf.constant(taken))
    merged, _ = tf.raw_ops.Merge(inputs=[no * 2, yes * yes * yes])
    with tf.Session() as session:
        assert session.run(tf.gradients(merged, x)[0]) == slope


def test_the_second_gradient_of_a_loop_is_refused():
    x = tf.constant(2.0)
    y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), [0, x])[1]
    (g,) = tf.gradients(y, x)
    with pytest.raises(TypeError, match="Second-order gradient for while loops not supported"):
        tf.gradients(g, x)


def test_back_prop_false_stops_gradients():
    x = tf.constant(2.0)
    y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), [0, x], back_prop=False)[1]
    assert tf.gradients(y, x) == [None]


def test_rows_gathered_in_a_loop_give_the_variable_its_gradient():
    table = tf.get_variable("table", initializer=np.ones([3, 2], np.float32))
    total = tf.while_loop(
        lambda i, c: i < 2, lambda i, c: (i + 1, c + tf.reduce_sum(tf.gather(table, [i]))), [0, 0.0]
    )[1]
    (gradient,) = tf.gradients(total, table)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(gradient).tolist() == [[1, 1], [1, 1], [0, 0]]


def test_a_gradient_inside_of_a_loop_does_not_go_to_what_the_loop_began_with():
    x = tf.placeholder(tf.float32, [], name="beginning")
    with pytest.raises(ValueError, match="inside while loop with respect to op 'beginning'"):
        tf.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, tf.gradients(v * 2, x)[0]), [0, x + 1])


def test_rows_that_a_branch_reads_of_a_variable_have_a_gradient_of_rows():
    v = tf.get_variable("v", initializer=np.ones((4, 2), np.float32), use_resource=True)
    p = tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: 3 * tf.reduce_sum(tf.gather(v, [1, 2])), lambda: tf.constant(0.0))
    rows = tf.gradients(y, v)[0]
    train = tf.train.GradientDescentOptimizer(1.0).minimize(y)
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(rows, {p: True}).indices.tolist() == [1, 2]
        assert session.run(rows, {p: False}).values.shape == (0, 2)
        for taken in (False, True):
            session.run(train, {p: taken})
        assert session.run(v).tolist() == [[1, 1], [-2, -2], [-2, -2], [1, 1]]
