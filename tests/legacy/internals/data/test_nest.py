"""Structures of datasets, where lists are atoms."""

import pytest

import tensorfleet as tf
from tensorfleet_legacy.internals.data import nest

SPARSE = tf.SparseTensorValue([[0]], [0], [1])


def test_lists_and_sparse_values_are_atoms():
    assert nest.flatten(({"b": [3, 4], "a": 1}, [5])) == [1, [3, 4], [5]]
    assert nest.flatten((SPARSE, [SPARSE])) == [SPARSE, [SPARSE]]
    assert nest.is_sequence((1,)) and not nest.is_sequence([1]) and not nest.is_sequence("a")


def test_results_are_arranged_like_the_first_structure():
    assert nest.map_structure(lambda x, y: x + y, ([1], {"a": 2}), ([3], {"a": 4})) == ([1, 3], {"a": 6})
    assert nest.pack_sequence_as(({"b": 0, "a": 0}, 0), [1, 2, 3]) == ({"a": 1, "b": 2}, 3)
    assert nest.map_structure_up_to((0, 0), len, ((1, 2), [3])) == (2, 1)
    assert nest.flatten_up_to((1, 2), ((1,), [2])) == [(1,), [2]]


def test_what_does_not_fit_is_refused():
    nest.assert_same_structure(([1, 2], 3), (4, [5]))
    nest.assert_same_structure({"a": 1}, {"b": 1}, check_types=False)
    with pytest.raises(ValueError, match="don't have the same set of keys"):
        nest.assert_same_structure({"a": 1}, {"b": 1})
    with pytest.raises(ValueError, match="don't have the same nested structure"):
        nest.assert_same_structure((1, 2), (1, (2,)))
    with pytest.raises(TypeError, match="don't have the same sequence type"):
        nest.assert_same_structure((1,), {"a": 1})
    with pytest.raises(ValueError, match="Structure is a scalar but len"):
        nest.pack_sequence_as("scalar", [4, 5])
    with pytest.raises(TypeError, match="If shallow structure is a sequence, input must also be"):
        nest.flatten_up_to((1,), [1])
    with pytest.raises(ValueError, match="don't have the same sequence length"):
        nest.assert_shallow_structure((1, 2), (1, 2, 3))
