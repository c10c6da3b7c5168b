"""Sets in the last dimension."""

import numpy as np
import pytest

import tensorfleet as tf


def test_sets_of_two_matrices(session):
    a, b = np.array([[1, 2, 2], [3, 4, 5]]), np.array([[2, 9], [5, 3]])
    common = session.run(tf.sets.set_intersection(a, b))
    assert common.values.tolist() == [2, 3, 5] and common.dense_shape.tolist() == [2, 2]
    assert session.run(tf.sets.set_difference(a, b)).values.tolist() == [1, 4]
    assert session.run(tf.sets.set_union(a, b)).values.tolist() == [1, 2, 9, 3, 4, 5]


def test_sizes_count_different_elements(session):
    tensor = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [b"a", b"a", b"b"], [3, 2])
    assert session.run(tf.sets.set_size(tensor)).tolist() == [1, 0, 1]


def test_an_unknown_operation_is_refused(session):
    from tensorfleet.graph.apply import apply_list

    result = apply_list("DenseToDenseSetOperation", [[1]], [[2]], set_operation="xor")[1]
    with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid set_operation xor"):
        session.run(result)


@pytest.mark.parametrize("spread", [1, 10**9])
def test_sets_of_near_and_far_numbers_are_pythons(session, spread):
    random = np.random.RandomState(3)
    a, b = (random.randint(0, 9, (5, n)) * spread for n in (6, 4))
    rows = [(set(x), set(y)) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    wanted = {
        tf.sets.set_intersection: [sorted(x & y) for x, y in rows],
        tf.sets.set_difference: [sorted(x - y) for x, y in rows],
        tf.sets.set_union: [sorted(x | y) for x, y in rows],
    }
    for function, expected in wanted.items():
        result = session.run(function(a, b))
        assert result.values.tolist() == [m for e in expected for m in e]
        assert np.bincount(result.indices[:, 0], minlength=5).tolist() == [len(e) for e in expected]


def test_how_many_sets_there_are_is_known_when_they_are_counted(session):
    given = tf.SparseTensor([[0, 0], [1, 0]], [3, 4], [2, 2])
    result = tf.sets.size(given)
    assert result.shape.rank is None and session.run(result).tolist() == [1, 1]
