"""Functions that are one operation where they are called."""

import numpy as np
import pytest
from tensorfleet.python.framework import function

import tensorfleet as tf


def test_a_call_is_one_operation(session):
    @function.Defun(tf.float32, tf.float32)
    def hypotenuse(a, b):
        return tf.sqrt(a * a + b * b)

    c = hypotenuse([3.0, 5.0], [4.0, 12.0])
    assert c.op.type == "PartitionedCall" and len(tf.get_default_graph()._functions) == 1
    assert session.run(c).tolist() == [5.0, 13.0]
    hypotenuse(1.0, 2.0)
    assert len(tf.get_default_graph()._functions) == 1


def test_types_may_come_from_the_arguments_and_tensors_from_around(session):
    big = tf.constant(np.arange(5000.0))

    @function.Defun()
    def pair(x):
        return x + tf.cast(big[7], x.dtype), x * 2

    assert session.run(pair(tf.constant(1))) == [8, 2]
    assert session.run(pair(tf.constant(1.5))) == [8.5, 3.0]


def test_functions_differentiate_by_themselves_or_as_told(session):
    @function.Defun(tf.float32)
    def cube(x):
        return x * x * x

    @function.Defun(tf.float32, python_grad_func=lambda op, g: 100 * g)
    def strange(x):
        return x * x

    x = tf.constant(2.0)
    assert session.run(tf.gradients(cube(x), x)) == [12.0]
    assert session.run(tf.gradients(strange(x), x)) == [100.0]


def test_effects_are_refused():
    @function.Defun(tf.float32)
    def noisy(x):
        return tf.Print(x, [x])

    with pytest.raises(ValueError, match="has an effect or a state"):
        noisy(1.0)


def test_calls_travel_in_a_graph_def(session):
    @function.Defun(tf.float32)
    def square(x):
        return x * x

    tf.identity(square(3.0), name="result")
    graph_def = tf.get_default_graph().as_graph_def()
    tf.import_graph_def(graph_def, name="")
    assert session.run("result:0") == 9.0
