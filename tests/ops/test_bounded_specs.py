"""Specs of tensors with bounds."""

import pickle

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.ops.bounded_specs import BoundedTensorSpec


def test_bounds_are_arrays_of_the_type_that_nobody_changes():
    spec = BoundedTensorSpec([2, 3], tf.int32, 0, [1, 2, 3], name="steps")
    assert spec.minimum.dtype == np.int32 and spec.maximum.tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="read-only"):
        spec.maximum[0] = 9
    assert repr(spec) == (
        "BoundedTensorSpec(shape=(2, 3), dtype=tf.int32, name='steps', minimum=array(0, dtype=int32), "
        "maximum=array([1, 2, 3], dtype=int32))"
    )


def test_specs_are_the_same_with_the_same_bounds_only():
    spec = BoundedTensorSpec([3], tf.float32, -1, 1)
    assert spec == BoundedTensorSpec([3], tf.float32, -1.0, 1.0) and hash(spec) == hash(
        pickle.loads(pickle.dumps(spec))
    )
    assert spec != BoundedTensorSpec([3], tf.float32, -1, 2) and spec != tf.TensorSpec([3])
    assert spec.is_compatible_with(tf.zeros([3]))


def test_bounds_come_from_another_spec_or_the_type():
    assert BoundedTensorSpec.from_spec(tf.TensorSpec([], tf.uint8)).maximum == 255
    spec = BoundedTensorSpec([], tf.uint8, 3, 4, "a")
    assert BoundedTensorSpec.from_spec(spec) == spec


def test_bounds_must_be_there_and_fit_the_shape():
    with pytest.raises(ValueError, match="minimum and maximum must be provided; but saw 'None' and '1'"):
        BoundedTensorSpec([2], tf.float32, None, 1)
    with pytest.raises(ValueError, match="maximum is not compatible with shape"):
        BoundedTensorSpec([2], tf.float32, 0, [1, 1, 1])
