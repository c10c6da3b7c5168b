"""Nested lists, tuples and arrays of different lengths as ragged tensors."""

import numpy as np
import pytest

import tensorfleet as tf
from tests.support.sessions import run


def lists(made):
    result = run(made)
    return result.to_list() if hasattr(result, "to_list") else result.tolist()


@pytest.mark.parametrize(
    ("pylist", "options", "expected"),
    [
        ([[1, 2], [3], []], {}, [[1, 2], [3], []]),
        ([np.array([1, 2]), np.array([3]), [4, 5]], {}, [[1, 2], [3], [4, 5]]),
        (np.array([np.array([1]), np.array([2, 3])], object), {}, [[1], [2, 3]]),
        ([[], [], np.array([])], {}, [[], [], []]),
        ([[[1, 2], [3, 4]], [[5, 6]]], {"ragged_rank": 1}, [[[1, 2], [3, 4]], [[5, 6]]]),
        ([[[1, 2], [3, 4]], [[5, 6]]], {"inner_shape": (2,)}, [[[1, 2], [3, 4]], [[5, 6]]]),
        ([[], [[]]], {"ragged_rank": 1, "inner_shape": (0,)}, [[], [[]]]),
        ([], {"ragged_rank": 1}, []),
        ([1, 2], {}, [1, 2]),
        (7, {}, 7),
    ],
)
def test_rows_of_any_length_become_ragged(pylist, options, expected):
    assert lists(tf.ragged.constant(pylist, **options)) == expected
    value = tf.ragged.constant_value(pylist, **options)
    assert (value.to_list() if hasattr(value, "to_list") else value.tolist()) == expected


def test_empty_rows_have_the_shape_that_is_asked_for():
    result = tf.ragged.constant([], ragged_rank=2, inner_shape=(3,))
    assert result.ragged_rank == 2 and result.flat_values.shape.as_list() == [0, 3]
    empty = tf.ragged.constant_value([], ragged_rank=1, inner_shape=(100, 20))
    assert empty.values.shape == (0, 100, 20) and empty.row_splits.tolist() == [0]


@pytest.mark.parametrize(
    ("pylist", "options", "kind", "told"),
    [
        ([1, [2]], {}, ValueError, "all scalar values must have the same nesting depth"),
        ([[[]], [1]], {}, ValueError, "empty list nesting is greater than scalar value nesting"),
        ([[1]], {"ragged_rank": -1}, ValueError, "must be nonnegative"),
        (1, {"ragged_rank": 1}, ValueError, "incompatible with ragged_rank=1"),
        (1, {"inner_shape": (1,)}, ValueError, r"incompatible with dim\(inner_shape\)=1"),
        ([[1]], {"ragged_rank": 1, "inner_shape": (1,)}, ValueError, "incompatible with ragged_rank=1 and"),
        ([1, 2], {"ragged_rank": 1}, ValueError, "requires scalar value depth greater than 1"),
        ([[[1, 2]], [[3]]], {"ragged_rank": 1}, ValueError, "inner values have inconsistent shape"),
        ([[[1], [2]], [[3]]], {"inner_shape": (2,)}, TypeError, "Expected Tensor's shape"),
    ],
)
def test_lists_that_do_not_fit_are_refused(pylist, options, kind, told):
    with pytest.raises(kind, match=told):
        tf.ragged.constant(pylist, **options)
