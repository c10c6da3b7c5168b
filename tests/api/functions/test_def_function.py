"""`tf.function` in a graph: traced once for each kind of arguments, and called."""

import numpy as np
import pytest

import tensorfleet as tf
from tests.support.sessions import run, run_initialized


def test_a_function_is_traced_once_for_each_kind_of_arguments():
    seen = []

    @tf.function
    def double(x, times=2):
        seen.append((x.dtype, x.shape.as_list(), times))
        return x * times

    results = [
        double(tf.constant(1)),
        double(tf.constant(5)),
        double(np.array([1.0, 2.0])),
        double(tf.constant(1), times=3),
    ]
    assert [np.asarray(v).tolist() for v in run(results)] == [2, 10, [2.0, 4.0], 3]
    assert seen == [(tf.int32, [], 2), (tf.float64, [2], 2), (tf.int32, [], 3)]


def test_without_effects_a_call_is_one_operation():
    result = tf.function(lambda x: x * x + 1.0)(tf.constant(3.0))
    assert result.op.type == "PartitionedCall"
    assert run([result, *tf.gradients(result, result.op.inputs[0])]) == [10.0, 6.0]


def test_a_signature_serves_all_shapes():
    seen = []

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def total(x):
        seen.append(x.shape.as_list())
        return tf.reduce_sum(x)

    assert run([total([1.0, 2.0]), total(tf.constant([1.0]))]) == [3.0, 1.0] and seen == [[None]]
    with pytest.raises(ValueError, match="Python inputs incompatible with input_signature"):
        total(tf.constant([[1.0]]))
    with pytest.raises(TypeError, match="only pass arguments covered by it"):
        total([1.0], 2)
    with pytest.raises(TypeError, match="input_signature must be a possibly nested sequence of TensorSpec"):
        tf.function(total, input_signature=[1])


def test_structures_go_in_and_out():
    @tf.function
    def both(pair, options):
        return {"sum": pair[0] + pair[1], "rest": (options["k"], None)}

    result = both((tf.constant(1), tf.constant(2)), {"k": tf.constant(3)})
    assert result["rest"][1] is None
    assert run([result["sum"], result["rest"][0]]) == [3, 3]


def test_effects_are_in_the_order_of_the_program():
    v = tf.Variable(1.0, use_resource=True)

    @tf.function
    def change(x):
        v.assign_add(x)
        before = v * 1.0
        v.assign(before * 10.0)
        if x > 0:
            v.assign_add(0.5)
        for _ in tf.range(3):
            v.assign_add(1.0)
        return before, v.read_value()

    with tf.Session() as sess:
        result = change(tf.constant(2.0))
        sess.run(v.initializer)
        for _ in range(3):
            before, after = sess.run(result)
            assert after == before * 10 + 3.5
            assert sess.run(v) == after


def test_a_function_without_results_is_an_operation():
    v = tf.Variable(1.0, use_resource=True)

    @tf.function
    def reset(x):
        v.assign(x)

    result = reset(tf.constant(7.0))
    with tf.Session() as sess:
        sess.run(v.initializer)
        sess.run(result)
        assert sess.run(v) == 7


class Model:
    def __init__(self):
        self.w = None

    @tf.function
    def __call__(self, x):
        if self.w is None:
            self.w = tf.Variable(tf.ones([2, 1]) * 3.0, name="w")
        return tf.matmul(x, self.w)


def test_variables_are_made_in_the_first_call_around_the_function():
    first, second = Model(), Model()
    results = [first(tf.ones([1, 2])), first(tf.ones([3, 2])), second(tf.ones([1, 2]))]
    assert [v.op.name for v in tf.global_variables()] == ["w", "w_1"]
    (slope,) = tf.gradients(results[1], first.w)
    result = run_initialized([*results, slope])
    assert result[0].tolist() == [[6.0]] and result[1].shape == (3, 1)
    np.testing.assert_array_equal(result[3], [[3.0], [3.0]])


def test_a_function_cannot_make_variables_each_time():
    with pytest.raises(ValueError, match="tried to create variables on non-first call"):
        tf.function(lambda x: tf.Variable(1.0) + x)(1.0)


def test_a_step_of_training_is_a_function():
    w = tf.Variable([1.0, 2.0], use_resource=True)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((w - x) ** 2)
        (grad,) = tape.gradient(loss, [w])
        w.assign_sub(0.25 * grad)
        return loss

    with tf.Session() as sess:
        result = step(tf.constant([0.0, 0.0]))
        sess.run(w.initializer)
        assert sess.run([result, result][0]) == 5.0
        np.testing.assert_allclose(sess.run(w), [0.5, 1.0])
        assert sess.run(result) == pytest.approx(1.25)


def test_an_optimizer_of_version_1_works_inside():
    w = tf.get_variable("w", initializer=2.0, use_resource=True)

    @tf.function
    def step():
        return tf.train.GradientDescentOptimizer(0.5).minimize(w * w, var_list=[w])

    with tf.Session() as sess:
        result = step()
        sess.run(tf.global_variables_initializer())
        sess.run(result)
        assert sess.run(w) == 0.0


def test_functions_call_functions():
    @tf.function
    def inner(x):
        return x + 1

    @tf.function
    def outer(x):
        while x < 10:
            x = inner(x)
        return x * 2

    assert run(outer(tf.constant(3))) == 20


def test_a_concrete_function():
    v = tf.Variable(2.0, use_resource=True)

    @tf.function
    def times(x):
        return {"y": x * v}

    result = times.get_concrete_function(tf.TensorSpec([None], tf.float32))
    assert result.inputs[0].shape.as_list() == [None] and result.outputs[0].dtype == tf.float32
    assert result.structured_input_signature == ((tf.TensorSpec([None], tf.float32),), {})
    assert result.variables == [v] and result.captured_inputs == [v.handle]
    assert result.output_dtypes == {"y": tf.float32}
    assert run_initialized(result(tf.constant([1.0, 2.0])))["y"].tolist() == [2.0, 4.0]
    with pytest.raises(ValueError, match="not compatible with the shape this function was traced with"):
        result(tf.constant([[1.0]]))


def test_a_wrapped_function_keeps_its_variables_and_can_be_cut():
    def graph(x):
        w = tf.get_variable("w", initializer=3.0)
        y = tf.identity(x * w, name="product")
        return y + 1.0

    wrapped = tf.wrap_function(graph, [tf.TensorSpec([], tf.float32)])
    product = wrapped.prune(
        wrapped.graph.get_tensor_by_name("arg:0"), wrapped.graph.get_tensor_by_name("product:0")
    )
    rest = wrapped.prune("product:0", wrapped.outputs[0])
    assert [v.op.name for v in wrapped.variables] == ["w"]
    two = tf.constant(2.0)
    assert run_initialized([wrapped(two), product(two), rest(two)]) == [7.0, 6.0, 3.0]


def test_a_wrapped_function_may_be_given_values_once_and_for_all():
    def joined(x, adds, by):
        return x + by["how_much"] if adds else x - by["how_much"]

    number = tf.TensorSpec([], tf.float32)
    plus = tf.wrap_function(joined, [number, True, {"how_much": 2.0}])
    minus = tf.wrap_function(joined, [number, False, {"how_much": number}])
    assert run_initialized([plus(tf.constant(1.0)), minus(tf.constant(1.0), tf.constant(5.0))]) == [3.0, -4.0]


def test_functions_can_be_left_as_python():
    seen = []

    @tf.function
    def told(x):
        seen.append(1)
        return x

    tf.config.experimental_run_functions_eagerly(True)
    try:
        told(tf.constant(1))
        told(tf.constant(1))
    finally:
        tf.config.experimental_run_functions_eagerly(False)
    assert len(seen) == 2


def test_jacobians_of_a_tape():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    whole, rows = run([tape.jacobian(y, x), tape.batch_jacobian(y, x)])
    assert whole.shape == (2, 2, 2, 2)
    np.testing.assert_array_equal(rows, [np.diag([2.0, 4.0]), np.diag([6.0, 8.0])])
    np.testing.assert_array_equal(np.einsum("ijkl->ij", whole), run(2 * x))


def test_a_keras_model_is_trained_in_a_function():
    model = tf.keras.Sequential([tf.keras.layers.Dense(8, activation="relu"), tf.keras.layers.Dense(1)])
    optimizer, mean = tf.keras.optimizers.Adam(0.05), tf.keras.metrics.Mean()

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables, strict=True))
        mean(loss)
        return loss

    x = np.random.RandomState(0).rand(32, 3).astype(np.float32)
    result = step(tf.constant(x), tf.constant(x.sum(1, keepdims=True)))
    assert model.trainable_variables[0].op.name == "sequential/dense/kernel"
    variables = [*tf.global_variables(), *mean.variables, *optimizer.variables()]
    with tf.Session() as sess:
        sess.run([v.initializer for v in variables])
        losses = [sess.run(result) for _ in range(40)]
        assert losses[-1] < losses[0] / 4
        assert sess.run(mean.result()) == pytest.approx(np.mean(losses), rel=1e-4)
        assert sess.run(optimizer.iterations) == 40


@pytest.mark.filterwarnings("ignore:Converting sparse IndexedSlices")
def test_gradients_of_loops_over_variables_inside_functions(session):
    variable = tf.Variable([1.0, 2.0, 3.0, 4.0], use_resource=True)

    @tf.function
    def picked(x):
        return x + tf.reduce_sum(variable.sparse_read([1, 3]))

    @tf.function
    def slope():
        total = tf.while_loop(lambda i, _: i < 2, lambda i, x: (i + 1, picked(x)), [0, 0.0])[1]
        return tf.gradients(total, variable)[0]

    @tf.function
    def shape_inside():
        assert variable.sparse_read([1]).shape.as_list() == [1]
        return tf.constant(0)

    session.run(tf.global_variables_initializer())
    assert session.run(slope()).tolist() == [0.0, 2.0, 0.0, 2.0]
    assert session.run(shape_inside()) == 0


def test_what_a_branch_or_a_turn_of_a_loop_does_is_done_though_nothing_of_it_is_returned(session):
    variable = tf.Variable(1.0, use_resource=True)
    taken = tf.placeholder(tf.bool)

    def add(amount):
        variable.assign_add(amount)
        return 0.0

    @tf.function
    def branch(which):
        tf.cond(which, lambda: add(1.0), lambda: add(4.0))
        return variable.read_value()

    @tf.function
    def loop():
        tf.while_loop(lambda i: i < 3, lambda i: i + 1 + int(add(10.0)), [0])
        return variable.read_value()

    session.run(variable.initializer)
    after_branch, after_loop = branch(taken), loop()
    assert session.run(after_branch, {taken: False}) == 5.0
    assert session.run(after_branch, {taken: True}) == 6.0
    assert session.run(after_loop) == 36.0


def test_functions_traced_before_any_of_them_is_called_stay_apart():
    @tf.function
    def shape(x):
        return tf.reduce_sum(x) if x.shape.rank else x

    number, vector = (shape.get_concrete_function(tf.TensorSpec(s, tf.float32)) for s in ((), (3,)))
    assert number.name != vector.name
    assert run_initialized([number(tf.constant(2.0)), vector(tf.constant([1.0, 2.0, 3.0]))]) == [2.0, 6.0]


def test_gradients_inside_are_taken_with_respect_to_constants_around():
    x = tf.constant(3.0)

    @tf.function
    def slope():
        return tf.gradients(x * x, x)[0]

    with tf.Session() as sess:
        assert sess.run(slope()) == 6.0
