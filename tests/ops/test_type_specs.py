"""The parts of values that specs describe, and values from such parts."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.ops.type_specs import IndexedSlicesSpec, RaggedTensorSpec, SparseTensorSpec, TensorSpec


@pytest.mark.parametrize(
    ("spec", "shapes", "types"),
    [
        (SparseTensorSpec([5, 3]), [[None, 2], [None], [2]], [tf.int64, tf.float32, tf.int64]),
        (SparseTensorSpec(), [[None, None], [None], [None]], [tf.int64, tf.float32, tf.int64]),
        (RaggedTensorSpec([4, None, 2], tf.int32, 1), [[None, 2], [5]], [tf.int32, tf.int64]),
        (RaggedTensorSpec(None, tf.int32, 2), [None, [None], [None]], [tf.int32, tf.int64, tf.int64]),
        (RaggedTensorSpec([3], tf.int32, 0), [[3]], [tf.int32]),
        (IndexedSlicesSpec([5, 2], indices_shape=[7]), [[7, 2], [7]], [tf.float32, tf.int64]),
        (
            IndexedSlicesSpec([5], dense_shape_dtype=tf.int32),
            [[None], [None], [1]],
            [tf.float32, tf.int64, tf.int32],
        ),
    ],
)
def test_the_parts_of_a_value_have_specs_of_their_own(spec, shapes, types):
    wanted = [TensorSpec(shape, dtype) for shape, dtype in zip(shapes, types, strict=True)]
    assert list(spec._component_specs) == wanted
    assert type(spec)(*spec._serialize()) == spec


def test_values_are_taken_apart_and_put_together():
    sparse = tf.SparseTensor([[0, 1]], [2.0], [1, 3])
    ragged = tf.ragged.constant([[[1], []], [[2, 3]]])
    slices = tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([2]), tf.constant([4, 1]))
    no_shape = tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([2]))
    one = TensorSpec([2], tf.int32)
    assert one._component_specs is one and one._serialize() == (tf.TensorShape([2]), tf.int32, None)
    with tf.Session() as sess:
        assert sess.run(one._from_components(one._to_components([1, 2]))).tolist() == [1, 2]
        spec = SparseTensorSpec([1, 3])
        again = sess.run(spec._from_components(spec._to_components(sparse)))
        assert again.values.tolist() == [2.0] and again.dense_shape.tolist() == [1, 3]
        spec = RaggedTensorSpec(ragged.shape, tf.int32, 2)
        parts = spec._to_components(ragged)
        assert sess.run(spec._from_components(parts)).to_list() == [[[1], []], [[2, 3]]]
        assert spec._from_components(sess.run(parts)).to_list() == [[[1], []], [[2, 3]]]
        for value in (slices, no_shape):
            again = IndexedSlicesSpec()._from_components(IndexedSlicesSpec()._to_components(value))
            assert again.values is value.values and again.dense_shape is value.dense_shape


def test_parts_that_are_arrays_make_the_value_of_a_fetch():
    sparse = SparseTensorSpec()._from_components([np.zeros([0, 1], np.int64), np.zeros(0), np.array([3])])
    assert isinstance(sparse, tf.SparseTensorValue)
    slices = IndexedSlicesSpec()._from_components((np.ones([1, 2]), np.array([0])))
    assert slices.dense_shape is None and slices.values.shape == (1, 2)
    assert RaggedTensorSpec([2], tf.int32, 0)._to_components("as it is") == ["as it is"]


def test_a_library_may_have_a_kind_of_its_own():
    class Pair(tf.python.framework.type_spec.BatchableTypeSpec):
        value_type = tuple

        def __init__(self, left, right):
            self._both = (left, right)

        def _serialize(self):
            return self._both

        def _batch(self, batch_size):
            return Pair(*(TensorSpec([batch_size, *s.shape.as_list()], s.dtype) for s in self._both))

        def _unbatch(self):
            return Pair(*(TensorSpec(s.shape[1:], s.dtype) for s in self._both))

    pair = Pair(TensorSpec([2]), TensorSpec([], tf.int32))
    assert pair._batch(5)._unbatch() == pair and pair != Pair(TensorSpec([3]), TensorSpec([], tf.int32))
    assert pair.is_compatible_with(Pair(TensorSpec([None]), TensorSpec([], tf.int32)))
