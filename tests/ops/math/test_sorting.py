"""Sorting, the largest values, and searches in sorted rows."""

import numpy as np
import pytest

import tensorfleet as tf
from tests.support.sessions import run


def test_top_k_prefers_the_first_of_equals():
    values, indices = run(tf.nn.top_k([1.0, 3.0, 3.0, 2.0], k=3))
    assert (values.tolist(), indices.tolist()) == ([3, 3, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="input must have last dimension >= k = 5 but is 2"):
        tf.nn.top_k([1.0, 2.0], k=5)
    y = tf.placeholder(tf.float32, [None])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"at least k columns\. Had 2, needed 5"):
        run(tf.nn.top_k(y, 5), {y: [1, 2]})


def test_an_unsorted_top_k_has_the_order_of_the_heap_that_collects_it():
    x = tf.placeholder(tf.float32, [None, 4])
    top = tf.nn.top_k(x * 2.0, 3, sorted=False)
    with tf.Session() as session:
        for _ in range(5):  # the order stays when a step is compiled
            values, indices = session.run(top, {x: [[0.1, 0.3, 0.2, 0.4], [0.1, 0.4, 0.3, 0.2]]})
            assert indices.tolist() == [[2, 1, 3], [3, 1, 2]]
            np.testing.assert_allclose(values, [[0.4, 0.6, 0.8], [0.4, 0.8, 0.6]])


@pytest.mark.parametrize("shape", [(3, 300), (50, 2000)])  # the second is too large for heaps
def test_an_unsorted_top_k_has_the_largest(shape):
    x, k = np.random.randint(0, 1000, shape).astype(np.float32), shape[1] // 2
    values, indices = run(tf.nn.top_k(x, k, sorted=False))
    np.testing.assert_array_equal(np.sort(values), np.sort(x)[:, -k:])
    np.testing.assert_array_equal(np.take_along_axis(x, indices, -1), values)


def test_in_top_k_counts_only_larger_predictions():
    predictions = [[0.1, 0.5, 0.5], [0.2, 0.3, np.inf]]
    assert run(tf.nn.in_top_k(predictions, [1, 0], 1)).tolist() == [True, False]
    assert run(tf.nn.in_top_k([[0.1, 0.5]], [7], 2)).tolist() == [False]


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint8, np.int64])
def test_sort_handles_the_extremes_of_every_type(dtype):
    edge = np.finfo(dtype) if dtype == np.float32 else np.iinfo(dtype)
    value = np.array([[3, edge.max], [edge.min, 1]], dtype)
    for axis in (-1, 0):
        np.testing.assert_array_equal(run(tf.sort(tf.constant(value), axis=axis)), np.sort(value, axis=axis))
        down = run(tf.sort(tf.constant(value), axis=axis, direction="DESCENDING"))
        np.testing.assert_array_equal(down, np.flip(np.sort(value, axis=axis), axis))
    assert run(tf.argsort(tf.constant(value))).tolist() == np.argsort(value).tolist()


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_sorting_along_any_axis_of_an_unknown_rank(axis):
    x, value = tf.placeholder(tf.float32), np.random.RandomState(1).rand(3, 4, 2).astype(np.float32)
    np.testing.assert_array_equal(run(tf.argsort(x, axis), {x: value}), np.argsort(value, axis))
    np.testing.assert_array_equal(run(tf.sort(x, axis, "DESCENDING"), {x: value}), -np.sort(-value, axis))


def test_searchsorted_by_rows():
    rows = [[1, 3, 5], [2, 4, 6]]
    assert run(tf.searchsorted(rows, [[3, 9], [1, 4]])).tolist() == [[1, 3], [0, 1]]
    assert run(tf.searchsorted(rows, [[3, 9], [1, 4]], side="right")).tolist() == [[2, 3], [0, 2]]
    assert run(tf.searchsorted([1, 3, 5], [4])).tolist() == [2]
