"""Gradients by a tape, and functions of TensorFlow 2, in a graph."""

import pytest

import tensorfleet as tf

GradientTape = tf.python.eager.backprop.GradientTape


def test_a_tape_gives_gradients_of_what_it_watches():
    with GradientTape() as tape:
        x, other = tf.constant(3.0), tf.constant(4.0)
        tape.watch(x)
        y = x * x * other
    grads = tape.gradient(y, {"x": x, "other": other})
    assert grads["other"] is None
    with tf.Session() as sess:
        assert sess.run(grads["x"]) == 24
    with pytest.raises(RuntimeError, match="once on non-persistent tapes"):
        tape.gradient(y, x)


def test_variables_are_watched_and_gradients_that_are_missing_may_be_zeros():
    v, w = tf.Variable(2.0), tf.Variable(2.0, trainable=False)
    with GradientTape(persistent=True) as tape:
        y = v * v * w
    assert tape.gradient(y, [v, w])[1] is None
    zeros = tape.gradient(y, [w], unconnected_gradients=tf.UnconnectedGradients.ZERO)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(tape.gradient(y, v, output_gradients=3.0)) == 24
        assert sess.run(zeros) == [0]


def test_a_tape_records_once_at_a_time():
    with GradientTape() as tape, pytest.raises(ValueError, match="already recording"):
        tape.__enter__()
    with pytest.raises(ValueError, match="not recording"), tape.stop_recording():
        pass


def test_a_function_of_version_2_is_called_in_the_graph():
    v = tf.Variable(1.0, use_resource=True)

    @tf.python.eager.def_function.function
    def add(x):
        v.assign_add(x)
        return {"sum": x + 1.0}

    result = add(tf.constant(2.0))
    with tf.Session() as sess:
        sess.run(v.initializer)
        assert sess.run(result) == {"sum": 3.0}
        assert sess.run(v) == 3

    @tf.python.eager.function.defun(input_signature=())
    def nothing():
        return None

    assert isinstance(nothing(), tf.Operation) and add.python_function


def test_what_tests_ask_about_eager_execution():
    context, ops = tf.python.eager.context, tf.python.framework.ops
    assert context.num_gpus() == len([d for d in context.list_devices() if "GPU" in d])
    assert context.shared_name("x") == "x" and context.async_wait() is None
    x = tf.constant([1, 2])
    assert not isinstance(x, ops.EagerTensor)
    assert tf.python.ops.math_ops.tensor_equals(x, x) and tf.python.ops.math_ops.tensor_not_equals(x, 1)


def test_a_cell_of_another_kind_is_told_as_the_name_says():
    message = tf.python.ops.rnn_cell_impl.ASSERT_LIKE_RNNCELL_ERROR_REGEXP
    with pytest.raises(TypeError, match=message):
        tf.nn.dynamic_rnn(object(), tf.ones([1, 2, 3]), dtype=tf.float32)


def test_a_tape_knows_the_variables_that_were_used():
    a, b, c = (tf.get_variable(n, initializer=1.0, use_resource=n != "b") for n in "abc")
    fixed = tf.get_variable("fixed", initializer=1.0, trainable=False)
    before = c * 2.0
    with tf.python.eager.backprop.GradientTape() as tape:
        _ = a * b + fixed + before
    assert tape.watched_variables() == (a, b)
    with tf.python.eager.backprop.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(c)
        _ = a * b
    assert tape.watched_variables() == (c,)


def test_a_tape_follows_what_is_made_of_what_it_watches():
    with tf.python.eager.backprop.GradientTape(persistent=True) as tape:
        x = tf.constant(3.0)
        tape.watch(x)
        y = x * x
        z = y * 2.0
        other = tf.constant(1.0) * 2.0
        w = z * other
    with tf.Session() as sess:
        assert sess.run(tape.gradient(z, y)) == 2
    assert tape.gradient(w, other) is None
