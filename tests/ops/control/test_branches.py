"""tf.switch_case and tf.vectorized_map."""

import numpy as np
import pytest

import tensorfleet as tf


def test_the_function_of_the_number_runs(session):
    index = tf.placeholder(tf.int32, [])
    functions = [lambda i=i: tf.constant(i * 10) for i in range(3)]
    last, default = (
        tf.switch_case(index, functions),
        tf.switch_case(index, functions, lambda: tf.constant(-1)),
    )
    for i in (0, 1, 2):
        assert session.run([last, default], {index: i}) == [i * 10, i * 10]
    assert session.run([last, default], {index: 7}) == [20, -1]


def test_only_the_chosen_function_has_effects(session):
    v = tf.Variable(0)
    step = tf.switch_case(tf.constant(1), {0: lambda: v.assign_add(1), 1: lambda: v.assign_add(10)})
    session.run(v.initializer)
    session.run(step)
    assert session.run(v) == 10


def test_functions_that_are_none_are_refused():
    with pytest.raises(TypeError, match="must be callable"):
        tf.switch_case(tf.constant(0), {0: 1})
    with pytest.raises(ValueError, match="at least one item"):
        tf.switch_case(tf.constant(0), [])


def test_each_row_is_mapped(session):
    x = tf.constant(np.arange(6.0).reshape(3, 2))
    both = tf.vectorized_map(lambda row: (tf.reduce_sum(row), row * 2), x)
    total, doubled = session.run(both)
    assert total.tolist() == [1, 5, 9] and doubled.tolist() == [[0, 2], [4, 6], [8, 10]]


def test_branches_are_numbered_without_gaps_and_chosen_by_a_tensor():
    zero = lambda: tf.constant(0)  # noqa: E731
    for gaps in ({0: zero, 2: zero}, [(0, zero), (0, zero)]):
        with pytest.raises(ValueError, match="must form contiguous range"):
            tf.switch_case(tf.constant(0), gaps)
    with pytest.raises(TypeError, match="branch_index must a Tensor"):
        tf.switch_case(1, [zero, zero])
    with pytest.raises(TypeError, match="branch_index must an integer Tensor"):
        tf.switch_case(tf.constant(1.0), [zero, zero])


def test_gradients_of_each_row_are_taken_with_respect_to_what_all_rows_come_from(session):
    weights = tf.Variable([1.0, 2.0])
    losses = tf.reduce_sum(tf.constant([[1.0, 0.0], [3.0, 4.0], [0.0, 5.0]]) * weights, 1)
    grads = tf.vectorized_map(lambda loss: tf.gradients(loss, weights)[0], losses)
    session.run(tf.global_variables_initializer())
    assert session.run(grads).tolist() == [[1.0, 0.0], [3.0, 4.0], [0.0, 5.0]]
