"""Weight gradients of loops are added up after them."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.runtime.scheduling import host_loops as loops


@pytest.fixture
def at_once(monkeypatch):
    """Loops are compiled when they run for the second time."""
    monkeypatch.setattr(loops, "_COMPILE_AFTER_SECONDS", 0.0)


def gradient(after=lambda state, w: state):
    """The gradient of a weight that is used in each iteration."""
    x = tf.placeholder(tf.float32, [None, 2, 3], name="x")
    w = tf.get_variable("w", initializer=np.linspace(-0.5, 0.5, 9, dtype=np.float32).reshape(3, 3))
    size = tf.shape(x)[0]
    inputs = tf.TensorArray(tf.float32, size, element_shape=[2, 3]).unstack(x)

    def body(i, state):
        return i + 1, after(tf.tanh(tf.matmul(state + inputs.read(i), w)), w)

    _, state = tf.while_loop(lambda i, _: i < size, body, (tf.constant(0), tf.ones([2, 3])))
    return x, tf.gradients(tf.reduce_sum(tf.square(state)), [w, x])


def sums(program):
    """The sums that compiled loops leave for their end."""
    items = [item for item in program.items if isinstance(item, loops.LoopItem)]
    assert all(item.traced.programs for item in items)
    return [one for item in items for one in item.traced.sums]


def results(x, fetches, lengths):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        random = np.random.RandomState(2)
        made = [session.run(fetches, {x: random.randn(n, 2, 3)}) for n in lengths]
        return made, session._prepare(fetches, {x: None}).program


LENGTHS = [4, 4, 7, 12, 3, 12, 20, 17, 1, 9]


def test_sums_of_products_are_what_the_host_adds_up(at_once, monkeypatch):
    x, slopes = gradient()
    compiled, program = results(x, slopes, LENGTHS)
    assert len(sums(program)) == 1
    monkeypatch.setattr(loops, "_COMPILE_AFTER_SECONDS", np.inf)
    for made, right in zip(compiled, results(x, slopes, LENGTHS)[0], strict=True):
        for a, b in zip(made, right, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_a_weight_used_twice_in_an_iteration_is_added_up_in_the_loop(at_once, monkeypatch):
    x, slopes = gradient(after=lambda state, w: tf.tanh(tf.matmul(state, w)))
    compiled, _ = results(x, slopes, LENGTHS)
    monkeypatch.setattr(loops, "_COMPILE_AFTER_SECONDS", np.inf)
    for made, right in zip(compiled, results(x, slopes, LENGTHS)[0], strict=True):
        np.testing.assert_allclose(made[0], right[0], rtol=1e-5, atol=1e-6)


def test_a_sum_goes_on_where_a_long_loop_was_interrupted(at_once, monkeypatch):
    monkeypatch.setattr("tensorfleet.runtime.segments.traced_loops._FIRST_HOST_SECONDS", 0.0)
    x, slopes = gradient()
    compiled, program = results(x, slopes, [9, 9, 14])
    assert len(sums(program)) == 1
    monkeypatch.setattr(loops, "_COMPILE_AFTER_SECONDS", np.inf)
    for made, right in zip(compiled, results(x, slopes, [9, 9, 14])[0], strict=True):
        np.testing.assert_allclose(made[0], right[0], rtol=1e-5, atol=1e-6)
