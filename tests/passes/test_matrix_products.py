"""A sum of products of transposed matrices becomes one product, and stays the same sum."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.runtime.segments import compiled


def shared_weight(steps):
    """The gradient of a weight that every step of a small recurrent network uses."""
    w = tf.get_variable("w", [5, 5], initializer=tf.random_normal_initializer(seed=3))
    x = tf.placeholder(tf.float32, [None, 5])
    h = x
    for _ in range(steps):
        h = tf.tanh(tf.matmul(h, w))
    return x, w, tf.gradients(tf.reduce_sum(h), w)[0]


def parts(session, fetches, *feeds):
    return session._prepare(fetches, dict.fromkeys(feeds)).program.plan.parts


def step_types(session, fetches, *feeds):
    items = session._prepare(fetches, dict.fromkeys(feeds)).program.items
    return [step.op.type for item in items for step in item.segment.steps]


def numeric_gradient(w, x, steps):
    def loss(v):
        h = x.astype("d")
        for _ in range(steps):
            h = np.tanh(h @ v)
        return h.sum()

    result = np.zeros(w.shape)
    for i in np.ndindex(w.shape):
        change = np.zeros(w.shape)
        change[i] = 1e-6
        result[i] = (loss(w + change) - loss(w - change)) / 2e-6
    return result


@pytest.mark.parametrize("compile_it", [False, True])
def test_gradient_of_a_shared_weight_is_one_product_and_right(monkeypatch, compile_it, session):
    monkeypatch.setattr(compiled.Compiler, "wanted", lambda self: compile_it and self.possible)
    x, w, gradient = shared_weight(4)
    value = np.random.RandomState(0).rand(7, 5).astype("f")
    session.run(tf.global_variables_initializer())
    result, weight = session.run([gradient, w], {x: value})
    assert step_types(session, [gradient, w], x).count("MatMul") == 4 + 3  # forward, and back to each state
    np.testing.assert_allclose(result, numeric_gradient(weight.astype("d"), value, 4), rtol=2e-3, atol=2e-3)


def test_two_terms_are_added_as_they_are(session):
    x, _, gradient = shared_weight(2)
    assert not any(part.products for part in parts(session, gradient, x))


def test_a_term_that_is_fetched_stays_a_product_of_its_own(session):
    a, b = tf.placeholder(tf.float32, [6, 2]), tf.placeholder(tf.float32, [6, 3])
    terms = [tf.matmul(a * k, b, transpose_a=True) for k in (1.0, 2.0, 3.0)]
    total = tf.add_n(terms)
    feeds = {a: np.ones((6, 2)), b: np.ones((6, 3))}
    assert session.run(total, feeds).tolist() == [[36.0] * 3] * 2
    assert any(part.products for part in parts(session, total, a, b))
    assert session.run([total, terms[1]], feeds)[1].tolist() == [[12.0] * 3] * 2
    assert not any(part.products for part in parts(session, [total, terms[1]], a, b))


def test_a_term_that_is_fed_keeps_the_fed_value(session):
    a, b = tf.placeholder(tf.float32, [6, 2]), tf.placeholder(tf.float32, [6, 3])
    terms = [tf.matmul(a, b, transpose_a=True) for _ in range(3)]
    feeds = {a: np.ones((6, 2)), b: np.ones((6, 3)), terms[0]: np.zeros((2, 3))}
    assert session.run(tf.add_n(terms), feeds).tolist() == [[12.0] * 3] * 2


def test_sums_of_integers_and_of_other_products_are_left_alone(session):
    a = tf.placeholder(tf.int32, [2, 2])
    b = tf.placeholder(tf.float32, [2, 2])
    ints = tf.add_n([tf.matmul(a, a, transpose_a=True) for _ in range(3)])
    plain = tf.add_n([tf.matmul(b, b) for _ in range(3)])
    assert not any(part.products for part in parts(session, [ints, plain], a, b))


@pytest.mark.parametrize("compile_it", [False, True])
def test_only_the_columns_of_a_product_that_are_used_are_computed(compile_it, monkeypatch, session):
    wanted = (lambda self: self.possible) if compile_it else (lambda self: False)
    monkeypatch.setattr(compiled.Compiler, "wanted", wanted)
    x = tf.placeholder(tf.float32, [4, 3])
    v = tf.get_variable("v", [4, 2], initializer=tf.random_normal_initializer(seed=1))
    w = tf.get_variable("w", [5, 6], initializer=tf.random_normal_initializer(seed=2))
    loss = tf.reduce_sum(tf.tanh(tf.matmul(tf.concat([x, v], 1), w)))
    gradient = tf.gradients(loss, v)[0]
    data = np.random.default_rng(0).normal(size=(4, 3))
    session.run(tf.global_variables_initializer())
    result, a, b = session.run([gradient, v, w], {x: data})
    shapes = [
        step.kernel.__class__.__name__
        for item in session._prepare(gradient, {x: None}).program.items
        for step in item.segment.steps
    ]
    session.run(gradient, {x: data})
    both = np.concatenate([data, a], 1) @ b
    np.testing.assert_allclose(result, ((1 - np.tanh(both) ** 2) @ b.T)[:, 3:], rtol=1e-4, atol=1e-5)
    assert shapes.count("_Columns") == 1
