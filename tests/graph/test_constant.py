"""What shapes know of values while a graph is built."""

import pytest

import tensorfleet as tf


def shapes_inside_a_loop(make):
    result = []

    def body(i):
        result.extend(t.shape.as_list() for t in make(i))
        return i + 1

    tf.while_loop(lambda i: i < 3, body, [0])
    return result


def test_sizes_from_outside_a_loop_are_known_to_shapes_inside():
    n, sizes = tf.constant(3), tf.constant([2, 3])
    assert shapes_inside_a_loop(
        lambda i: [
            tf.ones([n, 4]),
            tf.fill([n + 1, n * 2], 0),
            tf.fill(tf.concat([sizes, [n]], 0), 0),
            tf.fill([sizes[1], i], 0),
            tf.fill(sizes[1:], 0),
        ]
    ) == [[3, 4], [4, 6], [2, 3, 3], [3, None], [3]]


def test_a_shape_that_is_fed_stays_unknown_inside_a_loop_but_for_what_was_taken_out_of_it_before():
    shape = tf.shape(tf.placeholder(tf.float32, [None, 5]))
    width = shape[1]
    assert shapes_inside_a_loop(lambda i: [tf.fill([shape[1], 2], 0), tf.fill([width, 2], 0)]) == [
        [None, 2],
        [5, 2],
    ]


def test_sizes_from_outside_two_loops_and_values_are_not_known():
    n, result = tf.constant(3), []

    def body(i):
        result.append(tf.get_static_value(n + 1))
        tf.while_loop(lambda j: j < 2, inner, [0])
        return i + 1

    def inner(j):
        result.append(tf.ones([n, 2]).shape.as_list())
        return j + 1

    tf.while_loop(lambda i: i < 3, body, [0])
    assert result == [None, [None, 2]]


def test_the_shape_of_a_scalar_is_a_vector_of_integers():
    assert tf.convert_to_tensor(tf.TensorShape([])).dtype == tf.int32
    assert tf.ones_like(tf.TensorShape([])).dtype == tf.int32
    assert tf.convert_to_tensor(tf.TensorShape([]), tf.int64).dtype == tf.int64


def test_integers_beyond_their_type_keep_the_lowest_bits():
    results = [
        tf.constant(-2147483649, tf.int32),
        tf.constant([2**31], tf.int32),
        tf.constant([-1, 300], tf.uint8),
        tf.constant(1) + 2**31,
    ]
    with tf.Session() as sess:
        items = [value.tolist() for value in sess.run(results)]
    assert items == [2147483647, [-2147483648], [255, 44], -2147483647]
    with pytest.raises(OverflowError, match="too large"):
        tf.constant(2**70, tf.int32)


def test_a_constant_may_be_named_none():
    assert tf.constant(1, name=None).op.name == "Const"
