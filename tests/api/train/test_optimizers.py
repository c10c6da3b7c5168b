"""Every optimizer by its equation, in numpy: dense and by rows, reference and resource variables."""

import numpy as np
import pytest

import tensorfleet as tf

START = np.linspace(-1, 1, 10).reshape(5, 2).astype(np.float32)
FACTORS = np.float32([[1], [2], [3], [4], [5]])


def descent(g, s):
    return 0.1 * g


def momentum(g, s):
    s["a"] = 0.9 * s.get("a", 0) + g
    return 0.1 * s["a"]


def nesterov(g, s):
    s["a"] = 0.9 * s.get("a", 0) + g
    return 0.1 * (g + 0.9 * s["a"])


def adagrad(g, s):
    s["a"] = s.get("a", 0.1) + g * g
    return 0.1 * g / np.sqrt(s["a"])


def adadelta(g, s):
    s["a"] = 0.95 * s.get("a", 0) + 0.05 * g * g
    update = np.sqrt(s.get("u", 0) + 1e-6) / np.sqrt(s["a"] + 1e-6) * g
    s["u"] = 0.95 * s.get("u", 0) + 0.05 * update**2
    return 0.5 * update


def adam(g, s):
    s["t"] = s.get("t", 0) + 1
    s["m"] = 0.9 * s.get("m", 0) + 0.1 * g
    s["v"] = 0.999 * s.get("v", 0) + 0.001 * g * g
    rate = 0.1 * np.sqrt(1 - 0.999 ** s["t"]) / (1 - 0.9 ** s["t"])
    return rate * s["m"] / (np.sqrt(s["v"]) + 1e-8)


def rmsprop(g, s):
    s["r"] = 0.9 * s.get("r", 1) + 0.1 * g * g
    s["m"] = 0.5 * s.get("m", 0) + 0.1 * g / np.sqrt(s["r"] + 1e-10)
    return s["m"]


CASES = {
    "descent": (lambda: tf.train.GradientDescentOptimizer(0.1), descent),
    "momentum": (lambda: tf.train.MomentumOptimizer(0.1, 0.9), momentum),
    "nesterov": (lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True), nesterov),
    "adagrad": (lambda: tf.train.AdagradOptimizer(0.1), adagrad),
    "adadelta": (lambda: tf.train.AdadeltaOptimizer(0.5, epsilon=1e-6), adadelta),
    "adam": (lambda: tf.train.AdamOptimizer(0.1), adam),
    "rmsprop": (lambda: tf.train.RMSPropOptimizer(0.1, momentum=0.5), rmsprop),
}


def trained(make, resource, steps=5):
    with tf.Graph().as_default():
        w = tf.get_variable("w", initializer=START, use_resource=resource)
        train = make().minimize(tf.reduce_sum(tf.square(w) * FACTORS))
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(steps):
                session.run(train)
            return session.run(w)


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
@pytest.mark.parametrize("name", CASES)
def test_dense_steps_follow_the_equation(name, resource):
    make, step = CASES[name]
    w, state = START.astype(np.float64), {}
    for _ in range(5):
        w = w - step(2 * FACTORS * w, state)
    np.testing.assert_allclose(trained(make, resource), w, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
@pytest.mark.parametrize("name", CASES)
def test_steps_by_rows_touch_no_other_row_and_add_up_repeated_ones(name, resource):
    make, step = CASES[name]
    with tf.Graph().as_default():
        w = tf.get_variable("w", initializer=START, use_resource=resource)
        rows = tf.gather(w, [3, 1, 3])
        train = make().minimize(tf.reduce_sum(tf.square(rows)))
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(5):
                session.run(train)
            result = session.run(w)
    expected, state = START[[1, 3]].astype(np.float64), {}
    for _ in range(5):
        expected = expected - step(np.array([[2], [4]]) * expected, state)
    np.testing.assert_allclose(result[[1, 3]], expected, rtol=1e-4, atol=1e-5)
    assert result[[0, 2, 4]].tolist() == START[[0, 2, 4]].tolist()


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.train.ProximalGradientDescentOptimizer(0.05, 0.1, 0.1),
        lambda: tf.train.ProximalAdagradOptimizer(0.5, 0.1, 0.1, 0.1),
        lambda: tf.train.FtrlOptimizer(0.5, l1_regularization_strength=0.1),
        lambda: tf.train.FtrlOptimizer(0.5, l2_shrinkage_regularization_strength=0.1),
        lambda: tf.train.RMSPropOptimizer(0.02, centered=True, epsilon=1e-2),
        lambda: tf.train.AdagradDAOptimizer(0.1, tf.train.get_or_create_global_step(), 0.1, 0.1),
    ],
)
@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
def test_the_others_find_the_minimum(make, resource):
    assert np.abs(trained(make, resource, steps=40)).max() < 0.1


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
def test_a_row_that_is_not_there_is_named_and_nothing_changes(resource, session):
    w = tf.get_variable("w", initializer=START, use_resource=resource)
    chosen = tf.placeholder(tf.int32, [2])
    grad = tf.IndexedSlices(tf.ones([2, 2]), chosen)
    train = tf.train.AdagradOptimizer(0.1).apply_gradients([(grad, w)])
    session.run(tf.global_variables_initializer())
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="Index 7 at offset 1 in indices is out of range"
    ):
        session.run(train, {chosen: [0, 7]})
    assert session.run(w).tolist() == START.tolist()


def test_optimizers_are_known_by_their_base():
    for name in ("Adadelta", "Adagrad", "Adam", "Ftrl", "GradientDescent", "Momentum", "RMSProp"):
        assert getattr(tf.train, f"{name}Optimizer").__base__ is tf.train.Optimizer
