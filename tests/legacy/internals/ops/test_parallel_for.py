"""A function of a number is computed for many numbers at once, and Jacobians are made by it."""

import numpy as np
import pytest
from tensorfleet.python.ops.parallel_for import control_flow_ops, gradients, test_util

import tensorfleet as tf


def value(tensor, feed=None):
    with tf.Session() as sess:
        return sess.run(tensor, feed)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default():
        yield


@pytest.mark.parametrize("count", [3, 300])
def test_results_of_all_iterations_are_stacked(count):
    x = tf.range(count, dtype=tf.float32)
    doubled, number = control_flow_ops.pfor(lambda i: (tf.gather(x, i) * 2.0, i), count)
    assert doubled.shape == [count]
    result = value([doubled, number])
    np.testing.assert_array_equal(result[0], 2.0 * np.arange(count))
    np.testing.assert_array_equal(result[1], np.arange(count))


def test_the_number_of_iterations_may_be_a_tensor():
    count = tf.placeholder(tf.int32, [])
    looped = control_flow_ops.for_loop(lambda i: i * i, tf.int32, count)
    stacked = control_flow_ops.pfor(lambda i: i * i, count)
    for item in value([looped, stacked], {count: 4}):
        np.testing.assert_array_equal(item, [0, 1, 4, 9])


def test_a_loop_function_may_reduce_over_all_iterations():
    x = tf.constant([1.0, 2.0, 6.0])

    def centred(i, pfor_config):
        here = tf.gather(x, i) - pfor_config.reduce_mean(tf.gather(x, i))
        return here / pfor_config.reduce_sum(tf.abs(here))

    np.testing.assert_allclose(
        value(control_flow_ops.pfor(centred, 3)), [-0.333333, -0.166667, 0.5], rtol=1e-5
    )


def test_bad_numbers_of_parallel_iterations_are_refused():
    with pytest.raises(ValueError, match="positive integer"):
        control_flow_ops.pfor(lambda i: i, 8, parallel_iterations=0)
    with pytest.raises(ValueError, match="Use for_loop instead"):
        control_flow_ops.pfor(lambda i: i, 8, parallel_iterations=1)
    with pytest.raises(TypeError, match="positive integer"):
        control_flow_ops.for_loop(lambda i: i, tf.int32, 8, parallel_iterations=0)
    with pytest.raises(ValueError, match="does not match"):
        control_flow_ops.for_loop(lambda i: (i, i), tf.int32, 8)


@pytest.mark.parametrize("use_pfor", [True, False])
def test_a_jacobian_has_the_shape_of_the_output_then_of_the_input(use_pfor):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    w = tf.constant([1.0, 2.0, 3.0])
    y = tf.einsum("ij,k->ik", x * x, w)
    of_x, of_w, nothing = gradients.jacobian(y, [x, w, tf.constant(1.0)], use_pfor=use_pfor)
    assert (of_x.shape, of_w.shape, nothing) == ([2, 3, 2, 2], [2, 3, 3], None)
    result = value([of_x, of_w])
    expected = np.einsum(
        "ia,ab,k->ikab", np.eye(2), 2.0 * np.array([[1.0, 2.0], [3.0, 4.0]]), [1.0, 2.0, 3.0]
    )
    np.testing.assert_allclose(result[0], expected)
    np.testing.assert_allclose(result[1], np.einsum("i,kc->ikc", [5.0, 25.0], np.eye(3)))


@pytest.mark.parametrize("use_pfor", [True, False])
def test_a_batch_jacobian_stays_within_rows(use_pfor):
    x = tf.placeholder(tf.float32, [None, 2])
    result = value(gradients.batch_jacobian(x * x, x, use_pfor=use_pfor), {x: [[1.0, 2.0], [3.0, 4.0]]})
    np.testing.assert_allclose(result, [[[2.0, 0.0], [0.0, 4.0]], [[6.0, 0.0], [0.0, 8.0]]])
    with pytest.raises(ValueError, match="Need first dimension"):
        gradients.batch_jacobian(tf.zeros([3, 2]), tf.zeros([2, 2]))


def test_a_jacobian_of_a_loop_is_found_however_many_elements_there_are():
    x = tf.constant([1.0, 2.0, 3.0])
    y = tf.scan(lambda a, e: a * e, tf.ones([90]) * 2.0, initializer=x)
    result = gradients.jacobian(y, x)
    assert result.shape == [90, 3, 3]
    np.testing.assert_allclose(value(result[2]), 8.0 * np.eye(3))


def test_the_base_of_tests_compares_both_loops():
    case = test_util.PForTestCase()
    with tf.Graph().as_default(), tf.Session():
        x = tf.constant([1.0, 5.0])
        case._test_loop_fn(lambda i: tf.gather(x, i), 2)
        with pytest.raises(AssertionError):
            case.run_and_assert_equal(tf.constant(1.0), tf.constant(2.0))
