"""Small programs of the kind people write, with what makes each of them tricky."""

import numpy as np
import pytest

import tensorfleet as tf


@pytest.fixture(params=["numpy", "compiled"])
def life(request, monkeypatch):
    """Runs a test in the numpy life only, then with every segment compiled at once."""
    compiled = request.param == "compiled"
    monkeypatch.setattr(
        "tensorfleet.runtime.segments.compiled.Compiler.wanted", lambda self: compiled and self.possible
    )
    return request.param


def test_linear_regression_on_scalars_fed_to_placeholders_of_unknown_rank(life, session):
    x, y = tf.placeholder("float"), tf.placeholder("float")
    w, b = tf.Variable(0.0), tf.Variable(0.0)
    cost = tf.reduce_sum(tf.pow(x * w + b - y, 2)) / 2
    train = tf.train.GradientDescentOptimizer(0.1).minimize(cost)
    session.run(tf.global_variables_initializer())
    for _ in range(3):
        session.run(train, {x: 1.0, y: 2.0})
    np.testing.assert_allclose(session.run([w, b]), [0.488, 0.488], rtol=1e-5)
    np.testing.assert_allclose(session.run(cost, {x: [1.0, 2.0], y: [2.0, 4.0]}), 3.74, rtol=1e-3)


def test_nothing_divided_by_zero_is_no_error(life, session):
    n = tf.placeholder(tf.int32, [None])
    zero = tf.placeholder(tf.int32, [])
    for operation in (n // zero, n % zero, tf.truncatediv(n, zero)):
        assert session.run(operation, {n: np.zeros(0), zero: 0}).shape == (0,)
        with pytest.raises(tf.errors.InvalidArgumentError, match="division by zero"):
            session.run(operation, {n: [1], zero: 0})


def test_binarized_weights_borrow_the_gradient_of_another_op(graph, session):
    w = tf.Variable([0.5, -2.0])
    with graph.gradient_override_map({"Sign": "Identity"}):
        loss = tf.reduce_sum(tf.sign(w) * [3.0, 4.0])
    (gradient,) = tf.gradients(loss, w)
    session.run(w.initializer)
    np.testing.assert_array_equal(session.run(gradient), [3.0, 4.0])


def test_python_function_gets_a_gradient_by_override(graph, session):
    tf.RegisterGradient("TestProgramsSquare")(lambda op, grad: grad * 2.0 * op.inputs[0])
    w = tf.Variable([1.0, 2.0])
    with graph.gradient_override_map({"PyFunc": "TestProgramsSquare"}):
        (y,) = tf.py_func(lambda x: np.square(x), [w], [tf.float32])
    train = tf.train.GradientDescentOptimizer(0.25).minimize(tf.reduce_sum(y))
    session.run(w.initializer)
    for _ in range(2):
        session.run(train)
    np.testing.assert_array_equal(session.run(w), [0.25, 0.5])


def test_stop_gradients_gives_partial_derivatives(session):
    a = tf.constant(0.0)
    b = 2 * a
    assert session.run(tf.gradients(a + b, [a, b])) == [3.0, 1.0]
    assert session.run(tf.gradients(a + b, [a, b], stop_gradients=[a, b])) == [1.0, 1.0]
    assert tf.gradients(tf.tanh(b), [a], stop_gradients=[b]) == [None]


def test_integers_have_no_gradient_and_raise_nothing():
    x, n = tf.constant([1.0, 2.0]), tf.constant([1, 2])
    assert tf.gradients(tf.argmax(x), x) == [None]
    assert tf.gradients(tf.cast(x, tf.int32), x) == [None]
    assert tf.gradients(n * n, n) == [None]


def test_towers_on_two_devices_share_variables(life):
    x = tf.placeholder(tf.float32, [4, 3])
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    towers = []
    for i, part in enumerate(tf.split(x, 2)):
        with tf.device(f"/cpu:{i}"), tf.variable_scope("model", reuse=tf.AUTO_REUSE):
            w = tf.get_variable("w", [3, 1], initializer=tf.ones_initializer())
            towers.append(optimizer.compute_gradients(tf.reduce_mean(tf.square(tf.matmul(part, w)))))
    averaged = [(tf.add_n([g for g, _ in pair]) / 2, pair[0][1]) for pair in zip(*towers, strict=True)]
    train = optimizer.apply_gradients(averaged)
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w)))
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as s:
        s.run(tf.global_variables_initializer())
        feed = {x: np.eye(4, 3)}
        losses = []
        for _ in range(4):
            losses.append(s.run(loss, feed))
            s.run(train, feed)
        np.testing.assert_allclose(losses, [0.75, 0.676875, 0.551480, 0.401182], rtol=1e-5)


def test_convolution_trains_on_an_empty_batch(life, session):
    images = tf.placeholder(tf.float32, [None, 4, 4, 1])
    w = tf.get_variable("w", [3, 3, 1, 2], initializer=tf.ones_initializer())
    d = tf.get_variable("d", [2, 2, 2, 1], initializer=tf.ones_initializer())
    h = tf.nn.max_pool(tf.nn.conv2d(images, w, [1, 1, 1, 1], "SAME"), [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    loss = tf.reduce_sum(tf.nn.depthwise_conv2d(h, d, [1, 1, 1, 1], "SAME"))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    session.run(tf.global_variables_initializer())
    for _ in range(2):
        assert session.run([loss, train], {images: np.zeros((0, 4, 4, 1))})[0] == 0.0
    np.testing.assert_array_equal(session.run(w), np.ones((3, 3, 1, 2)))


def test_variable_changes_its_shape(life, session):
    value = tf.placeholder(tf.float32, None)
    free = tf.Variable(value, validate_shape=False)
    fixed = tf.Variable([1.0, 2.0])
    doubled = [tf.tanh(free) * 0.0 + free * 2.0, fixed * 2.0]
    write = [
        tf.assign(free, value, validate_shape=False),
        tf.assign(fixed, value, validate_shape=False),
    ]
    session.run([free.initializer, fixed.initializer], {value: [1.0, 2.0]})
    for shape in [(2,), (3,), (2,), (2, 2), (3,), ()]:
        new = np.full(shape, 3.0, np.float32)
        session.run(write, {value: new})
        for got in session.run(doubled):
            np.testing.assert_array_equal(got, new * 2)
