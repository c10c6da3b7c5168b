"""`tf.contrib.opt`."""

import numpy as np
import pytest

import tensorfleet as tf

opt = tf.contrib.opt


def trained(optimizer, steps=2, use_resource=False, sparse=True):
    """A table of ones after some steps down the squares of rows 1 (twice) and 2."""
    table = tf.get_variable("t", [4, 2], initializer=tf.ones_initializer(), use_resource=use_resource)
    rows = tf.nn.embedding_lookup(table, [1, 1, 2]) if sparse else table
    step = tf.train.get_or_create_global_step()
    train = optimizer.minimize(tf.reduce_sum(rows**2), global_step=step)
    with tf.Session() as s:
        s.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        for _ in range(steps):
            s.run(train)
        assert s.run(step) == steps
        return s.run(table)


def adam(gradient, steps, rate=0.1, decay=0.0, nesterov=False, beta1=0.9, beta2=0.999, epsilon=1e-8):
    x, m, v = 1.0, 0.0, 0.0
    for t in range(1, steps + 1):
        g = gradient(x)
        x -= decay * x
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
        ahead = beta1 * m + (1 - beta1) * g if nesterov else m
        x -= rate * np.sqrt(1 - beta2**t) / (1 - beta1**t) * ahead / (np.sqrt(v) + epsilon)
    return x


@pytest.mark.parametrize("use_resource", [False, True])
def test_lazy_adam_touches_only_the_rows_of_a_gradient(use_resource):
    table = trained(opt.LazyAdamOptimizer(0.1), use_resource=use_resource)
    assert (table[[0, 3]] == 1).all()
    np.testing.assert_allclose(table[1], adam(lambda x: 4 * x, 2), rtol=1e-5)
    np.testing.assert_allclose(table[2], adam(lambda x: 2 * x, 2), rtol=1e-5)


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_nadam_looks_ahead(use_resource, sparse):
    table = trained(opt.NadamOptimizer(0.1), use_resource=use_resource, sparse=sparse)
    np.testing.assert_allclose(table[2], adam(lambda x: 2 * x, 2, nesterov=True), rtol=1e-5)
    assert (table[0] == 1).all() == sparse


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_weights_decay_apart_from_the_gradient(use_resource, sparse):
    table = trained(opt.AdamWOptimizer(0.01, 0.1), use_resource=use_resource, sparse=sparse)
    np.testing.assert_allclose(table[2], adam(lambda x: 2 * x, 2, decay=0.01), rtol=1e-4)


def test_only_the_variables_named_decay(session):
    a = tf.get_variable("a", [], initializer=tf.ones_initializer())
    b = tf.get_variable("b", [], initializer=tf.ones_initializer())
    decaying = opt.extend_with_decoupled_weight_decay(tf.train.GradientDescentOptimizer)
    train = decaying(weight_decay=0.5, learning_rate=0.1).minimize(a + b, decay_var_list=[a])
    session.run(tf.global_variables_initializer())
    session.run(train)
    np.testing.assert_allclose(session.run([a, b]), [0.4, 0.9], rtol=1e-6)


def test_momentum_with_decay():
    table = trained(opt.MomentumWOptimizer(0.01, 0.1, 0.9), steps=1, sparse=False)
    np.testing.assert_allclose(table, 0.99 - 0.2, rtol=1e-5)


def test_a_swapping_saver_exchanges_variables_and_averages(tmp_path):
    x = tf.get_variable("x", [], initializer=tf.ones_initializer())
    averaging = opt.MovingAverageOptimizer(tf.train.GradientDescentOptimizer(0.5), average_decay=0.5)
    with pytest.raises(RuntimeError, match="apply_gradients"):
        averaging.swapping_saver()
    train = averaging.minimize(x)
    saver = averaging.swapping_saver()
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        s.run(train)
        path = saver.save(s, str(tmp_path / "c"))
        assert s.run(x) == 0.5
    reader = tf.train.NewCheckpointReader(path)
    assert reader.get_tensor("x") == 0.75
    assert reader.get_tensor("x/ExponentialMovingAverage") == 0.5


def test_a_swapping_saver_takes_parts_and_some_of_the_variables(tmp_path, session):
    halves = tf.fixed_size_partitioner(2)
    x = tf.get_variable("x", [4], initializer=tf.ones_initializer(), partitioner=halves)
    y = tf.get_variable("y", [], initializer=tf.ones_initializer())
    averaging = opt.MovingAverageOptimizer(tf.train.GradientDescentOptimizer(0.5), average_decay=0.5)
    train = averaging.minimize(tf.reduce_sum(x) + y)
    of_y = [v for v in tf.global_variables() if v.op.name.startswith("y")]
    with pytest.raises(ValueError, match="Variable to swap y/ExponentialMovingAverage is not in"):
        averaging.swapping_saver([y])
    some, all_of_them = averaging.swapping_saver(of_y), averaging.swapping_saver()
    session.run(tf.global_variables_initializer())
    session.run(train)
    reader = tf.train.NewCheckpointReader(some.save(session, str(tmp_path / "some")))
    assert reader.get_tensor("y") == 0.75 and not reader.has_tensor("x")
    reader = tf.train.NewCheckpointReader(all_of_them.save(session, str(tmp_path / "all")))
    assert reader.get_tensor("x").tolist() == [0.75] * 4


def test_stale_gradients_are_dropped(session):
    x = tf.get_variable("x", [], initializer=tf.ones_initializer())
    step = tf.train.get_or_create_global_step()
    late = tf.placeholder_with_default(np.int64(0), [])
    dropping = opt.DropStaleGradientOptimizer(tf.train.GradientDescentOptimizer(0.5), staleness=2)
    pairs = dropping.compute_gradients(2 * x)
    (gradient, _) = pairs[0]
    with tf.control_dependencies([gradient]):
        moved = step.assign_add(late)  # as if others had made steps meanwhile
    with tf.control_dependencies([moved]):
        pairs = [(tf.identity(gradient), x)]
        now = tf.identity(step.read_value())
    with tf.control_dependencies([now]):
        train = dropping.apply_gradients(pairs, global_step=step)
    (counter,) = [v for v in tf.global_variables() if "stale_counter" in v.name]
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    session.run(train)
    assert (session.run(x), session.run(step), session.run(counter)) == (0, 1, 0)
    session.run(train, {late: 5})
    assert (session.run(x), session.run(step), session.run(counter)) == (0, 6, 1)
    session.run(train, {late: 1})
    assert (session.run(x), session.run(step), session.run(counter)) == (-1, 8, 1)


def test_stale_gradients_need_a_global_step():
    x = tf.get_variable("x", [], initializer=tf.ones_initializer())
    dropping = opt.DropStaleGradientOptimizer(tf.train.GradientDescentOptimizer(0.5), staleness=2)
    with pytest.raises(ValueError, match="compute_gradients must be called"):
        dropping.apply_gradients([(tf.constant(1.0), x)])
    with pytest.raises(ValueError, match="Global step is required"):
        dropping.minimize(x)


def test_an_outside_optimizer_minimizes(session):
    class Halfway(opt.ExternalOptimizerInterface):
        def _minimize(self, initial_val, loss_grad_func, **kwargs):
            _, gradient = loss_grad_func(initial_val)
            return initial_val - 0.25 * gradient

    x = tf.get_variable("x", [2], initializer=tf.zeros_initializer())
    y = tf.get_variable("y", [], initializer=tf.zeros_initializer(), use_resource=True)
    loss = tf.reduce_sum((x - [2.0, 4.0]) ** 2) + (y - 6) ** 2
    seen = []
    session.run(tf.global_variables_initializer())
    Halfway(loss).minimize(session, fetches=[loss], loss_callback=seen.append)
    assert session.run(x).tolist() == [1, 2] and session.run(y) == 3
    with pytest.raises(NotImplementedError):
        opt.ExternalOptimizerInterface(loss).minimize(session)
    assert seen == [56]


def test_scipy_minimizes_within_bounds_and_constraints(session):
    pytest.importorskip("scipy")
    x = tf.get_variable("x", [2], initializer=tf.zeros_initializer())
    y = tf.get_variable("y", [], initializer=tf.zeros_initializer())
    loss = tf.reduce_sum((x - [1.0, 2.0]) ** 2) + (y - 4) ** 2
    free = opt.ScipyOptimizerInterface(loss, options={"maxiter": 50})
    bound = opt.ScipyOptimizerInterface(loss, var_to_bounds={y: (0, 2)})
    tied = opt.ScipyOptimizerInterface(loss, equalities=[x[0] - x[1]], inequalities=[3 - y], method="SLSQP")
    for interface, expected in ((free, (1, 2, 4)), (bound, (1, 2, 2)), (tied, (1.5, 1.5, 3))):
        session.run(tf.global_variables_initializer())
        interface.minimize(session)
        np.testing.assert_allclose([*session.run(x), session.run(y)], expected, atol=1e-3)
    with pytest.raises(ValueError, match="'jac'"):
        opt.ScipyOptimizerInterface(loss, jac=False).minimize(session)
