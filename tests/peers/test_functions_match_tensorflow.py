"""`tf.function` and AutoGraph in a graph: TensorFlow's values."""

import sys

import numpy as np
import pytest

from tests.peers.programs import agree, walk


def branches(tf):
    @tf.function
    def f(x):
        if tf.reduce_sum(x) > 2.0:
            y = x * 2.0
            z = 1
        elif tf.reduce_sum(x) > 0.0:
            y, z = x, 2
        else:
            y, z = -x, 3
        return y, z

    return [f(tf.constant([a, 1.0])) for a in (3.0, -0.5, -4.0)]


def loops(tf):
    @tf.function
    def f(n):
        total, i = 0, 0
        while i < n:
            i += 1
            if tf.equal(i % 3, 0):
                continue
            if i > 8:
                break
            for j in tf.range(i):
                total += j
        return total, i

    return [f(tf.constant(n)) for n in (0, 4, 20)]


def variables(tf):
    v = tf.Variable(1.0, use_resource=True)

    @tf.function
    def f(x):
        v.assign_add(x)
        w = v * 10.0
        v.assign(w + 1.0)
        return w, v.read_value()

    with tf.control_dependencies([v.initializer]):
        x = tf.identity(2.0)
    return f(x)


def gradients(tf):
    x = tf.constant([1.0, 2.0, 3.0])

    @tf.function
    def f(x):
        y = x
        for _ in tf.range(3):
            if tf.reduce_sum(y) > 50.0:
                y = y + 1.0
            else:
                y = y * x
        return y

    return tf.gradients(f(x), x)


def tapes(tf):
    x = tf.constant(np.arange(6, dtype=np.float32).reshape(3, 2))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.sin(x) * x
    return [tape.gradient(y, x), tape.batch_jacobian(y, x), tape.jacobian(y, x)]


def early_returns(tf):
    @tf.function
    def f(x):
        if x > 10:
            return x
        if x > 5:
            return x * 10
        return -x

    return [f(tf.constant(x)) for x in (12, 7, 3)]


def structures(tf):
    @tf.function
    def f(a, b, k=2):
        return {"sum": a[0] + a[1] * k, "list": [b["x"], b["x"] * 2]}

    return f((tf.constant(1), tf.constant(2)), {"x": tf.constant(3.0)}, k=5)


PROGRAMS = {f.__name__: f for f in (branches, loops, variables, gradients, tapes, early_returns, structures)}


@walk(PROGRAMS)
def test_values(tensorflow, program):
    if sys.version_info >= (3, 13) and program in (branches, early_returns, gradients, loops):
        pytest.skip("TensorFlow 2.21's AutoGraph does not convert functions on Python 3.13")
    agree(tensorflow, program)
