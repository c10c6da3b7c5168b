"""Optimizers of `tf.contrib.opt` that choose the size of a step, or leave steps out."""

import numpy as np
import pytest
from tensorfleet.contrib.opt.python.training import sign_decay

import tensorfleet as tf

opt = tf.contrib.opt


def trained(optimizer, gradients, start, rows=None, use_resource=False, slots=()):
    """The variable (and slots) after one step by each of the gradients."""
    var = tf.get_variable("v", initializer=np.float32(start), use_resource=use_resource)
    grad = tf.placeholder(tf.float32, np.shape(gradients[0]))
    given = grad if rows is None else tf.IndexedSlices(grad, rows, tf.shape(var))
    step = tf.train.get_or_create_global_step()
    train = optimizer.apply_gradients([(given, var)], global_step=step)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for g in gradients:
            session.run(train, {grad: g})
        return session.run([var, *(optimizer.get_slot(var, s) for s in slots)])


def test_lars_scales_the_rate_by_the_norms():
    start, g = np.ones([3, 3]), np.full([3, 3], 2.0)
    (var, momentum) = trained(
        opt.LARSOptimizer(0.1, weight_decay=0.1, eeta=0.1, epsilon=1e-5), [g], start, slots=["momentum"]
    )
    ratio = 0.1 * 3.0 / (6.0 + 0.1 * 3.0 + 1e-5)
    np.testing.assert_allclose(var, start - 0.1 * ratio * g, rtol=1e-6)
    np.testing.assert_allclose(momentum, g)


def test_lars_leaves_some_variables_and_zero_norms_alone():
    (plain,) = trained(opt.LARSOptimizer(0.1, skip_list=["v"]), [np.float32([2.0])], [1.0])
    np.testing.assert_allclose(plain, [0.8], rtol=1e-6)
    with tf.Graph().as_default():
        (zero,) = trained(opt.LARSOptimizer(0.1), [np.float32([2.0])], [0.0])
    np.testing.assert_allclose(zero, [-0.2], rtol=1e-6)


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("rows", [None, [2, 0]])
def test_adamax(use_resource, rows):
    g = np.float32([0.1, -0.2, 0.3])[: None if rows is None else 2]
    (var,) = trained(opt.AdaMaxOptimizer(0.1), [g, 2 * g], [1.0, 2.0, 3.0], rows, use_resource)
    x, m, v = np.array([1.0, 2.0, 3.0]), np.zeros(3), np.zeros(3)
    at = slice(None) if rows is None else rows
    for t, now in ((1, g), (2, 2 * g)):
        m[at] = 0.9 * m[at] + 0.1 * now
        v[at] = np.maximum(0.999 * v[at], np.abs(now))
        x[at] -= 0.1 / (1 - 0.9**t) * m[at] / (v[at] + 1e-8)
    np.testing.assert_allclose(var, x, rtol=1e-5)


@pytest.mark.parametrize("rows", [None, [0, 1]])
@pytest.mark.parametrize("kind", ["add", "power"])
@pytest.mark.parametrize("use_resource", [False, True])
def test_steps_depend_on_whether_signs_agree(rows, kind, use_resource):
    decay = sign_decay.get_linear_decay_fn(10)
    if kind == "add":
        optimizer = opt.AddSignOptimizer(0.1, alpha=0.5, sign_decay_fn=decay)
    else:
        optimizer = opt.PowerSignOptimizer(0.1, base=2.0, sign_decay_fn=decay)
    g = np.float32([0.1, -0.3])
    gradients = [g, g, -g, -g]
    (var,) = trained(optimizer, gradients, [1.0, 2.0], rows, use_resource)
    x, m = np.array([1.0, 2.0]), np.zeros(2)
    for t, now in enumerate(gradients):
        m = 0.9 * m + 0.1 * now
        agreement = (1 - t / 10) * np.sign(now) * np.sign(m)
        x -= 0.1 * (0.5 + agreement if kind == "add" else 2.0**agreement) * now
    np.testing.assert_allclose(var, x, rtol=1e-5)


def test_a_decay_of_the_sign_needs_a_step():
    with pytest.raises(ValueError, match="global_step"):
        opt.AddSignOptimizer(sign_decay_fn=lambda step: 1.0).minimize(tf.Variable(1.0) * 2)


def test_decays_of_the_sign(session):
    linear = sign_decay.get_linear_decay_fn(100)
    cosine = sign_decay.get_cosine_decay_fn(100, num_periods=5, zero_after=2)
    restart = sign_decay.get_restart_decay_fn(100, num_periods=5, zero_after=2)
    step = tf.placeholder(tf.int64, [])
    items = [session.run([f(step) for f in (linear, cosine, restart)], {step: s}) for s in (0, 15, 55, 120)]
    half = 0.5 * (1 + np.cos(np.pi * 1.5)), 0.5 * (1 + np.cos(np.pi * 0.75))
    expected = [(1, 1, 1), (0.85, *half), (0.45, 0, 0), (0, 0, 0)]
    np.testing.assert_allclose(items, expected, atol=1e-5)


@pytest.mark.parametrize("rows", [None, [0, 1]])
def test_a_step_of_adagrad_need_not_be_counted(rows):
    optimizer = opt.RegAdagradOptimizer(1.0, initial_accumulator_value=0.25)
    with optimizer.avoid_updating_slots():
        var, total = trained(optimizer, [np.float32([0.1, 0.2])], [1.0, 2.0], rows, slots=["accumulator"])
    np.testing.assert_allclose(total, [0.25, 0.25])
    np.testing.assert_allclose(var, [1 - 0.1 / 0.5, 2 - 0.2 / 0.5], rtol=1e-6)


@pytest.mark.parametrize("lazy", [False, True])
def test_adam_by_the_global_step_is_adam(lazy):
    kind = opt.LazyAdamGSOptimizer if lazy else opt.AdamGSOptimizer
    gradients = [np.float32([0.1, 0.2]), np.float32([0.3, -0.1])]
    step = tf.train.get_or_create_global_step()
    optimizer = kind(global_step=step, learning_rate=0.1)
    (var,) = trained(optimizer, gradients, [1.0, 2.0], [0, 1])
    assert len(optimizer.variables()) == 2
    with tf.Graph().as_default():
        (plain,) = trained(tf.train.AdamOptimizer(0.1), gradients, [1.0, 2.0], [0, 1])
    np.testing.assert_allclose(var, plain, rtol=1e-5)


def test_rows_are_kept_below_a_norm(session):
    start = [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    table, columns = (tf.Variable(start) for _ in range(2))
    grad = tf.IndexedSlices(tf.fill([2, 2], 0.1), [0, 2], [3, 2])
    sgd = tf.train.GradientDescentOptimizer(3.0)
    clipping = opt.VariableClippingOptimizer(sgd, {table: [1], columns: [0]}, 2.0)
    train = clipping.apply_gradients([(grad, table), (grad, columns)])
    session.run(tf.global_variables_initializer())
    session.run(train)
    rows, whole = session.run([table, columns])
    moved = np.array([[-0.3, 0.7], [2.0, 3.0], [3.7, 4.7]])
    last = 2 * moved[2] / np.linalg.norm(moved[2])
    np.testing.assert_allclose(rows, [moved[0], moved[1], last], rtol=1e-5)
    np.testing.assert_allclose(whole, 2 * moved / np.linalg.norm(moved, axis=0), rtol=1e-5)


def test_a_gradient_of_zeros_changes_nothing(session):
    optimizer = opt.MultitaskOptimizerWrapper(tf.train.MomentumOptimizer(2.0, 0.9))
    a, b = tf.Variable([1.0]), tf.Variable([2.0])
    zero, one = tf.constant([0.0]), tf.constant([1.0])
    both = optimizer.apply_gradients([(one, a), (one, b)])
    only = optimizer.apply_gradients([(zero, a), (one, b)])
    slots = [optimizer.get_slot(v, "momentum") for v in (a, b)]
    session.run(tf.global_variables_initializer())
    session.run(both)
    session.run(only)
    items = [float(x[0]) for x in session.run([a, b, *slots])]
    np.testing.assert_allclose(items, [-1.0, 2 - 2 - 2 * 1.9, 1.0, 1.9], rtol=1e-6)


def test_gradients_are_clipped_together_and_none_stays_none(session):
    a, b = tf.Variable([1.0]), tf.Variable([1.0])
    (first, second), norm = opt.clip_gradients_by_global_norm([(tf.constant([4.0]), a), (None, b)], 1.0)
    assert second == (None, b) and first[1] is a
    assert session.run([first[0], norm]) == [[1.0], 4.0]
