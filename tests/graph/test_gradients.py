"""`tf.gradients` and what users hang onto it."""

import numpy as np
import pytest

import tensorfleet as tf


def test_none_where_nothing_depends(session):
    x, y = tf.constant(1.0), tf.constant(2.0)
    assert tf.gradients(x * 2.0, [y]) == [None]
    assert tf.gradients(tf.stop_gradient(x) * 2.0, [x]) == [None]
    assert tf.gradients(tf.cast(tf.cast(x, tf.int32), tf.float32), [x]) == [None]


def test_unconnected_gradients_can_be_zero(session):
    x, y = tf.constant(1.0), tf.constant([2.0, 3.0])
    (grad,) = tf.gradients(x * 2.0, [y], unconnected_gradients=tf.UnconnectedGradients.ZERO)
    assert session.run(grad).tolist() == [0, 0]


def test_several_paths_are_summed(session):
    x = tf.constant(3.0)
    for method in (
        None,
        tf.AggregationMethod.EXPERIMENTAL_TREE,
        tf.AggregationMethod.EXPERIMENTAL_ACCUMULATE_N,
    ):
        (grad,) = tf.gradients(x * x + 2.0 * x, [x], aggregation_method=method)
        assert session.run(grad) == 8


def test_grad_ys_weigh_the_results(session):
    x = tf.constant([1.0, 2.0])
    (grad,) = tf.gradients([x * 3.0, x], [x], grad_ys=[tf.constant([1.0, 10.0]), tf.constant([2.0, 2.0])])
    assert session.run(grad).tolist() == [5, 32]
    with pytest.raises(ValueError, match="Passed 1 grad_ys for 2 ys"):
        tf.gradients([x, x], [x], grad_ys=[tf.constant(1.0)])


def test_stop_gradients_hold_a_tensor_constant(session):
    a = tf.constant(2.0)
    b = a * 3.0
    assert session.run(tf.gradients(a + b, [a, b], stop_gradients=[a, b])) == [1, 1]
    assert session.run(tf.gradients(a + b, [a, b])) == [4, 1]


def test_second_order(session):
    x = tf.placeholder(tf.float64, [])
    (first,) = tf.gradients(tf.sin(x) * x**3, [x])
    (second,) = tf.gradients(first, [x])
    v = 0.7
    expected = -np.sin(v) * v**3 + 6 * np.cos(v) * v**2 + 6 * np.sin(v) * v
    assert session.run(second, {x: v}) == pytest.approx(expected)


def test_gather_gives_indexed_slices_kept_sparse_to_the_optimizer(session):
    table = tf.get_variable("t", [5, 2], initializer=tf.ones_initializer())
    rows = tf.concat([tf.gather(table, [0, 1]), tf.gather(table, [1])], 0)
    (grad,) = tf.gradients(tf.reduce_sum(rows), [table])
    assert isinstance(grad, tf.IndexedSlices)
    session.run(table.initializer)
    assert sorted(session.run(grad).indices.tolist()) == [0, 1, 1]
    session.run(tf.train.GradientDescentOptimizer(1.0).apply_gradients([(grad, table)]))
    assert session.run(table)[:3, 0].tolist() == [0, -1, 1]


def test_hessian_of_a_quadratic_form(session):
    a = np.array([[2.0, 1.0], [1.0, 5.0]])
    x = tf.Variable([1.0, -1.0], dtype=tf.float64)
    y = tf.reduce_sum(x * tf.squeeze(tf.matmul(tf.constant(a), tf.expand_dims(x, 1))))
    (hessian,) = tf.hessians(y, x)
    session.run(x.initializer)
    np.testing.assert_allclose(session.run(hessian), 2 * a)


def test_registered_gradient_through_an_override_map(session):
    @tf.RegisterGradient("TestTimesTen")
    def _times_ten(op, grad):
        return grad * 10.0

    x = tf.constant(2.0)
    with tf.get_default_graph().gradient_override_map({"Identity": "TestTimesTen"}):
        y = tf.identity(x)
    assert session.run(tf.gradients(y, [x])[0]) == 10
    with pytest.raises(KeyError, match="Registering two gradient"):
        tf.RegisterGradient("TestTimesTen")(_times_ten)


def test_custom_gradient(session):
    @tf.custom_gradient
    def clipped(x):
        return tf.identity(x), lambda dy: tf.clip_by_value(dy, -1.0, 1.0)

    x = tf.constant(4.0)
    y = clipped(x) * 7.0
    assert session.run([y, tf.gradients(y, [x])[0]]) == [28, 1]


def scaled(takes_variables, **options):
    """x times a variable made inside, whose gradients are 10 and 100 times what comes back."""

    @tf.custom_gradient
    def f(x):
        v = tf.get_variable("v", initializer=2.0, **options)
        y = x * v.value()
        if takes_variables:
            return y, lambda dy, variables: (dy * 10, [dy * 100 for _ in variables])
        return y, lambda dy: dy * 10

    return f


def test_custom_gradient_of_a_function_with_variables(session):
    x = tf.constant(4.0)
    y = scaled(True, use_resource=True)(x) * 7.0
    grads = tf.gradients(y, [x, *tf.trainable_variables()])
    session.run(tf.global_variables_initializer())
    assert session.run([y, *grads]) == [56, 70, 700]
    with tf.variable_scope("other"):
        fixed = scaled(False, use_resource=True, trainable=False)(x)
    assert session.run(tf.gradients(fixed, x)) == [10]
    for name, takes, resource, complaint in [
        ("a", False, True, "must accept a 'variables' keyword"),
        ("b", True, False, "must be `ResourceVariable`s"),
    ]:
        with tf.variable_scope(name), pytest.raises(TypeError, match=complaint):
            scaled(takes, use_resource=resource)(x)


def test_recomputed_gradient_is_that_of_the_function(session):
    def f(x, y):
        return tf.sin(x) * tf.get_variable("w", initializer=3.0, use_resource=True) * y

    x, y = tf.constant(0.5), tf.constant(2.0)
    with tf.variable_scope("a", reuse=tf.AUTO_REUSE):
        result = tf.recompute_grad(f)(x, y)
        xs = [x, y, *tf.trainable_variables()]
        pairs = list(zip(tf.gradients(result, xs), tf.gradients(f(x, y), xs), strict=True))
    session.run(tf.global_variables_initializer())
    for again, plain in session.run(pairs):
        assert again == pytest.approx(plain)
    assert len([op for op in x.graph.get_operations() if op.type == "Sin"]) == 3


def test_no_gradient_flows_through_py_func(session):
    x = tf.constant(2.0)
    assert tf.gradients(tf.py_func(lambda v: v, [x], tf.float32), [x]) == [None]


def test_integers_have_no_gradient(session):
    assert tf.gradients(tf.constant(1), [tf.constant(1)]) == [None]
    with pytest.raises(TypeError, match="Only floating point"):
        tf.gradients(tf.constant(True), [tf.constant(1.0)])


def test_pure_op_without_a_written_gradient_uses_its_kernel(session):
    x = tf.placeholder(tf.float64, [3, 3])
    q, r = tf.qr(x) if hasattr(tf, "qr") else tf.linalg.qr(x)
    (grad,) = tf.gradients(tf.reduce_sum(r), [x])
    value = np.array([[2.0, 1.0, 0.3], [0.5, 3.0, 0.1], [0.2, 0.4, 1.0]])
    run = session.make_callable(tf.reduce_sum(r), [x])
    numeric = np.zeros((3, 3))
    for i in range(3):
        for j in range(3):
            step = np.zeros((3, 3))
            step[i, j] = 1e-6
            numeric[i, j] = (run(value + step) - run(value - step)) / 2e-6
    np.testing.assert_allclose(session.run(grad, {x: value}), numeric, rtol=1e-5, atol=1e-6)


def test_gradients_can_be_placed_with_their_ops(session):
    with tf.device("/cpu:1"):
        x = tf.constant(2.0)
        y = tf.square(x)
    (grad,) = tf.gradients(y, [x], colocate_gradients_with_ops=True)
    assert grad.op.colocation_groups() != [b"loc:@" + grad.op.name.encode()]


def test_sums_of_gradients_are_made_on_each_device_first():
    w = tf.constant([[1.0]], name="w")
    with tf.device("/task:1"):
        a = tf.matmul(w, [[1.0]], name="a")
    with tf.device("/task:2"):
        b, c = tf.matmul(w, [[2.0]], name="b"), tf.matmul(w, [[3.0]], name="c")
    (near,) = tf.gradients(a + b + c, [w], colocate_gradients_with_ops=True)
    assert near.op.colocation_groups() == w.op.colocation_groups()
    inner = [t.op for t in near.op.inputs if t.op.type == "AddN"]
    assert [op.device for op in inner] == ["/task:2"]
    (loose,) = tf.gradients(a + b + c, [w])
    assert loose.op.colocation_groups() == [b"loc:@" + loose.op.inputs[0].op.name.encode()]


def test_what_gradients_and_hessians_refuse():
    x = tf.constant([1.0])
    with pytest.raises(ValueError, match="Unknown value for unconnected_gradients: 'other'"):
        tf.gradients(x, x, unconnected_gradients="other")
    with pytest.raises(ValueError, match="None values not supported"):
        tf.hessians(x, x)


def test_a_function_with_its_own_gradient_gets_the_tensors_it_is_called_with():
    x, y = tf.constant(2.0), tf.constant(3.0)
    seen = []

    @tf.custom_gradient
    def product(a, b):
        seen.extend([a, b])

        def gradient(dy, **_):
            return [dy * b, dy * a], []  # for arguments, and for variables: there are none

        return a * b, gradient

    grads = tf.gradients(product(x, y), [x, y])
    assert seen == [x, y]
    with tf.Session() as sess:
        assert sess.run(grads) == [3.0, 2.0]


def test_a_gradient_that_was_given_has_the_shape_of_its_input_in_the_end(session):
    x = tf.constant(2.0)
    assert session.run(tf.gradients(x + 3.0, x, tf.ones([1]))) == [1.0]


def test_gradients_that_were_given_stand_among_the_gradients():
    x = tf.constant([1.0, 2.0])
    (result,) = tf.gradients(tf.identity(x), x, tf.constant([3.0, 4.0]))
    assert any(op.name == "gradients/grad_ys_0" for op in result.graph.get_operations())


@pytest.mark.parametrize("kind", ["ReciprocalGrad", "RsqrtGrad", "SqrtGrad", "SigmoidGrad", "TanhGrad"])
def test_second_gradients_of_complex_numbers_are_those_of_differences(session, kind):
    draw = np.random.RandomState(7)
    starts = [draw.uniform(1, 2, 5) + 1j * draw.uniform(-2, 2, 5) for _ in range(2)]
    x, y = map(tf.constant, starts)
    result = getattr(tf.raw_ops, kind)(y=x, dy=y)
    assert tf.test.compute_gradient_error([x, y], [[5], [5]], result, [5], x_init_value=starts) < 1e-5


def test_the_length_of_a_complex_number_has_a_second_gradient(session):
    x = tf.constant(2.0, tf.float64)
    (slope,) = tf.gradients(tf.abs(tf.complex(tf.cos(x), tf.constant(1.0, tf.float64))), x)
    assert tf.test.compute_gradient_error(x, [], slope, []) < 1e-6
