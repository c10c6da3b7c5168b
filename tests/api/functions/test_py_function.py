"""Python functions of tensors that have values."""

import numpy as np
import pytest
from tensorfleet.python.ops import script_ops

import tensorfleet as tf
from tests.support.sessions import run


def test_the_function_sees_values_and_may_use_operations():
    seen = []

    def function(a, b):
        seen.append((a.numpy().tolist(), a.shape.as_list(), a.dtype, int(b), str(b)))
        if tf.reduce_sum(a) > int(b):  # Python's own control flow
            a = a * 2
        return tf.square(a), [float(x) for x in a], np.asarray(a) + 1

    x = tf.placeholder(tf.float32, [2])
    outputs = tf.py_function(function, [x, 4], [tf.float32, tf.float64, tf.float32])
    assert outputs[0].op.type == "EagerPyFunc" and outputs[0].shape.ndims is None
    with tf.Session() as session:
        got = [v.tolist() for v in session.run(outputs, {x: [1, 2]})]
        assert got == [[1, 4], [1, 2], [2, 3]]
        assert session.run(outputs[0], {x: [3, 4]}).tolist() == [36, 64]
    assert seen[0] == ([1, 2], [2], tf.float32, 4, "<tf.Tensor: shape=(), dtype=int32, numpy=np.int32(4)>")


def test_gradients_go_through():
    x, y, n = tf.constant([1.0, 2.0]), tf.constant(3.0), tf.constant(2)

    def function(a, b, k):
        return a * b * tf.cast(k, tf.float32), tf.reduce_sum(a)

    first, second = tf.py_function(function, [x, y, n], [tf.float32, tf.float32])
    grads = tf.gradients(first, [x, y, n])
    assert grads[2] is None
    assert [g.tolist() for g in run(grads[:2])] == [[6, 6], 6]
    both = run(tf.gradients([first, second], [x, y]))
    assert [g.tolist() for g in both] == [[7, 7], 6]
    (unused,) = run(tf.gradients(second, y))
    assert unused == 0


def test_results_take_the_type_that_was_asked_for():
    result = tf.py_function(lambda a: a.numpy().astype(np.int32), [[1.0, 2.0]], tf.float32)
    assert run(result).dtype == np.float32
    text = tf.py_function(lambda s: s.numpy().decode() + "!", [tf.constant("hey")], tf.string)
    assert run(text) == b"hey!"


def test_a_function_for_its_effect():
    calls = []
    result = tf.py_function(lambda a: calls.append(a.numpy()), [1], [])
    assert result.type == "EagerPyFunc"
    run(result)
    assert calls == [1]


def test_errors_of_the_function_are_those_of_the_run():
    def bad(a):
        raise ValueError("not this one")

    with pytest.raises(tf.errors.InvalidArgumentError, match="ValueError: not this one"):
        run(tf.py_function(bad, [1], tf.int32))


def test_it_works_in_datasets(session):
    def double(x):
        return tf.py_function(lambda v: v.numpy() * 2, [x], tf.int64)

    value = tf.data.Dataset.range(3).map(double).make_one_shot_iterator().get_next()
    assert [session.run(value) for _ in range(3)] == [0, 2, 4]


def test_a_variable_cannot_be_returned():
    result = script_ops.eager_py_func(lambda: tf.Variable(1.0, use_resource=True), [], tf.float32)
    with pytest.raises(tf.errors.UnknownError, match="Attempting to return a variable"):
        run(result)
