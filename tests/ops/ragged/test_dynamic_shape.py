"""Shapes of ragged tensors that are brought to a common one."""

import numpy as np
import pytest
from tensorfleet.python.ops.ragged import ragged_tensor_shape, ragged_test_util

import tensorfleet as tf

Shape = ragged_tensor_shape.RaggedTensorDynamicShape


def sizes(session, shape):
    outer = [np.asarray(session.run(s)).tolist() for s in shape.partitioned_dim_sizes]
    return [*outer, *session.run(shape.inner_dim_sizes).tolist()]


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ([], [2, [2, 3], 4], [2, [2, 3], 4]),
        ([3], [3, [2, 0, 1], 1], [3, [2, 0, 1], 3]),
        ([1, 3, [3, 0, 2], 1, 2], [2, 1, 1, [7, 2], 1], [2, 3, [3, 0, 2] * 2, [7] * 5 + [2] * 5, 2]),
        ([2, [2, 1], 2, 1], [1, 1, 2, [2, 1]], [2, [2, 1], 2, [2, 1] * 3]),
    ],
)
def test_two_shapes_are_brought_to_one(session, one, other, both):
    given = [Shape.from_dim_sizes(s) for s in (one, other)]
    for pair in (given, given[::-1]):
        assert sizes(session, ragged_tensor_shape.broadcast_dynamic_shape(*pair)) == both


def test_what_a_shape_tells_of_its_dimensions(session):
    shape = Shape.from_tensor(tf.ragged.constant([[[1, 2], [3, 4]], [[5, 6]]], ragged_rank=1))
    assert sizes(session, shape) == [2, [2, 1], 2]
    assert (shape.rank, shape.num_partitioned_dimensions, shape.num_inner_dimensions) == (3, 2, 1)
    assert [shape.is_ragged(i) for i in range(3)] == [False, True, False]
    assert session.run([shape.num_slices_in_dimension(i) for i in range(3)]) == [2, 3, 6]
    assert shape.with_dim_size_dtype(tf.int32).dim_size_dtype == tf.int32


def test_shapes_that_do_not_fit_are_refused(session):
    wrong = Shape.from_dim_sizes([2, 3]).broadcast_dimension(1, 4)
    with pytest.raises(tf.errors.InvalidArgumentError, match="size mismatch in dimension 1"):
        session.run(wrong.inner_dim_sizes)
    with pytest.raises(ValueError, match="rank mismatch"):
        ragged_tensor_shape.broadcast_to(tf.ones([1, 1, 1]), Shape.from_dim_sizes([2, [1, 2]]))
    with pytest.raises(ValueError, match="ragged rank mismatch"):
        ragged_tensor_shape.broadcast_to(tf.ragged.constant([[1]]), Shape.from_dim_sizes([2, 3]))
    with pytest.raises(ValueError, match="outermost partitioned dimension must be uniform"):
        Shape([[1, 2]], [])


def test_a_dense_tensor_takes_ragged_rows(session):
    result = ragged_tensor_shape.broadcast_to([[10], [20], [30]], Shape.from_dim_sizes([3, [2, 0, 1]]))
    assert session.run(result).to_list() == [[10, 10], [], [30]]
    one = ragged_tensor_shape.broadcast_to(7, Shape.from_dim_sizes([2, [1, 2], 2]))
    assert session.run(one).to_list() == [[[7, 7]], [[7, 7], [7, 7]]]


@pytest.mark.parametrize(
    ("x", "y", "total"),
    [
        ([[1, 2, 3]], np.array([[10], [20]]), [[11, 12, 13], [21, 22, 23]]),
        ([[[1], [2]], [[3]]], [[10, 20]], [[[11, 21], [12, 22]], [[13, 23]]]),
        ([[[[1], [2]]], [[[3], [4]]]], [[10, 20], [30]], [[[[11, 21], [32]]], [[[13, 23], [34]]]]),
    ],
)
def test_sums_of_tensors_with_different_rows(session, x, y, total):
    inner = 1 if np.ndim(x[0][0]) else None
    first = tf.ragged.constant(x, ragged_rank=inner)
    second = tf.constant(y, tf.int32) if isinstance(y, np.ndarray) else tf.ragged.constant(y)
    assert session.run(first + second).to_list() == total
    assert session.run(second + first).to_list() == total


class Case(ragged_test_util.RaggedTensorTestCase):
    __test__ = False

    def test_all(self):
        rows = tf.ragged.constant([[1.0, 2.0], []])
        with self.session() as sess:
            self.assertRaggedEqual(rows, [[1.0, 2.0], []])
            self.assertRaggedAlmostEqual(rows, [[1.0, 2.00000001], []])
            feeds = {}
            again = self.rebuild_ragged_tensor_with_value_rowids(rows, feeds, sess)
            self.assertEqual(sess.run(again, feeds).to_list(), [[1.0, 2.0], []])
            for assertion, other in (
                (self.assertRaggedEqual, [[1.0], [2.0]]),
                (self.assertRaggedAlmostEqual, [[1.0, 2.1], []]),
                (self.assertRaggedEqual, tf.constant([[1.0, 2.0]])),
            ):
                with self.assertRaises(AssertionError):
                    assertion(rows, other)


def test_what_tests_of_ragged_tensors_assert():
    Case("test_all").debug()
