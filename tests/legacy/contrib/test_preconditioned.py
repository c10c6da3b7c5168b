"""Optimizers that turn gradients by what earlier ones were like."""

import numpy as np
import pytest

import tensorfleet as tf

RANDOM = np.random.RandomState(0)
START = RANDOM.normal(size=[3, 4]).astype(np.float32)
GRADS = [RANDOM.normal(size=[3, 4]).astype(np.float32) for _ in range(3)]


def power(matrix, p):
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.maximum(values, 1e-4) ** p) @ vectors.T


def after(optimizer, grads, start=START):
    """The variable after each gradient."""
    var = tf.Variable(start)
    given = tf.placeholder(tf.float32, start.shape)
    train = optimizer.apply_gradients([(given, var)])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        result = []
        for grad in grads:
            sess.run(train, {given: grad})
            result.append(sess.run(var))
        return result


def test_each_dimension_has_a_matrix():
    result = after(tf.contrib.opt.ShampooOptimizer(learning_rate=0.5), GRADS)
    x, left, right = START.astype(np.float64), np.zeros([3, 3]), np.zeros([4, 4])
    for grad, value in zip(GRADS, result, strict=True):
        left, right = left + grad @ grad.T, right + grad.T @ grad
        turned = power(left / 3 + 1e-4 * np.eye(3), -0.25) @ grad @ power(right / 4 + 1e-4 * np.eye(4), -0.25)
        x = x - 0.5 * turned
        np.testing.assert_allclose(value, x, rtol=1e-3, atol=1e-4)


def test_large_dimensions_have_a_diagonal():
    optimizer = tf.contrib.opt.ShampooOptimizer(max_matrix_size=3, gbar_decay=0.9, gbar_weight=0.1)
    result = after(optimizer, GRADS)
    x, mean, left, right = START.astype(np.float64), 0, np.zeros([3, 3]), np.zeros(4)
    for grad, value in zip(GRADS, result, strict=True):
        mean = 0.9 * mean + 0.1 * grad
        left, right = left + grad @ grad.T, right + np.square(grad).sum(0) / 4
        x = x - power(left / 3 + 1e-4 * np.eye(3), -0.25) @ mean * right**-0.25
        np.testing.assert_allclose(value, x, rtol=1e-3, atol=1e-4)


def test_matrices_are_computed_now_and_then():
    step = tf.train.get_or_create_global_step()
    optimizer = tf.contrib.opt.ShampooOptimizer(step, svd_interval=2)
    var = tf.Variable(START)
    train = optimizer.apply_gradients([(tf.constant(GRADS[0]), var)], global_step=step)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train)
        np.testing.assert_allclose(sess.run(var), START - GRADS[0], rtol=1e-5)
        sess.run(train)
        assert np.abs(sess.run(var) - (START - 2 * GRADS[0])).max() > 0.05
    assert {"H_0", "H_1", "Gbar_0", "Gbar_1", "gbar"} <= set(optimizer.get_slot_names())


def test_gradients_of_a_few_rows_move_these_rows():
    table = tf.Variable(np.ones([10, 2], np.float32))
    loss = tf.reduce_sum(tf.nn.embedding_lookup(table, [3, 7]))
    train = tf.contrib.opt.ShampooOptimizer(max_matrix_size=4).minimize(loss)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train)
        moved = np.abs(sess.run(table) - 1).sum(1) > 0
        assert np.flatnonzero(moved).tolist() == [3, 7]


@pytest.mark.parametrize("window", [1, 3])
def test_a_window_of_gradients_gives_the_scale(window):
    optimizer = tf.contrib.opt.GGTOptimizer(
        0.1, beta1=0.5, window=window, eps=1e-4, svd_eps=1e-6, sigma_eps=0.01
    )
    result = after(optimizer, GRADS)
    x, mean, kept = START.astype(np.float64).ravel(), np.zeros(12), np.zeros([window, 12])
    for i, (grad, value) in enumerate(zip(GRADS, result, strict=True)):
        mean = 0.5 * mean + 0.5 * grad.ravel()
        kept[i % window] = mean
        m = kept.T / np.sqrt(min(i + 1, window))
        s, u = np.linalg.eigh(m.T @ m + 1e-6 * np.eye(window))
        seen = u.T @ (m.T @ mean)
        inside = m @ u @ (seen / (np.sqrt(s) + 0.01) ** 3)
        outside = (mean - m @ u @ (seen / s)) / np.sqrt(s).min()
        x = x - 0.1 * (inside + outside)
        # The smallest root comes from the damping alone while the window is not full.
        if i + 1 >= window:
            np.testing.assert_allclose(value.ravel(), x, rtol=0.02, atol=0.02)
        else:
            x = value.ravel().astype(np.float64)


def test_these_optimizers_find_a_minimum():
    for make in (
        lambda: tf.contrib.opt.ShampooOptimizer(learning_rate=0.3),
        lambda: tf.contrib.opt.GGTOptimizer(0.1),
    ):
        tf.reset_default_graph()
        x, y = tf.get_variable("x", initializer=START), tf.get_variable("y", initializer=[3.0])
        loss = tf.reduce_sum(tf.square(x - 1.0)) + tf.reduce_sum(tf.square(y))
        train = make().minimize(loss)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            first = sess.run(loss)
            for _ in range(60):
                sess.run(train)
            assert sess.run(loss) < first / 4
