"""Values of several tensors, one behind the other."""

import numpy as np
import pytest
from tensorfleet.python.framework import composite_tensor_utils as utils

import tensorfleet as tf


def test_rows_of_sparse_values_are_appended(session):
    value = tf.SparseTensorValue(np.array([[0, 1]]), np.array([5]), np.array([2, 3]))
    both = utils.append_composite_tensor(value, value)
    assert (both.indices.tolist(), both.dense_shape.tolist()) == ([[0, 1], [2, 1]], [4, 3])
    tensor = tf.SparseTensor.from_value(value)
    assert session.run(utils.append_composite_tensor(tensor, tensor)).indices.tolist() == [[0, 1], [2, 1]]


def test_rows_of_ragged_values_are_appended(session):
    tensor = tf.ragged.constant([[1], [2, 3]])
    value = session.run(tensor)
    wanted = [[1], [2, 3], [1], [2, 3]]
    assert utils.append_composite_tensor(value, value).to_list() == wanted
    assert session.run(utils.append_composite_tensor(tensor, tensor)).to_list() == wanted


def test_kinds_are_not_mixed():
    tensor = tf.ragged.constant([[1]])
    assert utils.is_composite_or_composite_value(tensor)
    assert not utils.is_composite_or_composite_value(np.zeros(2))
    with pytest.raises(RuntimeError, match="their types differ"):
        utils.append_composite_tensor(tensor, tf.constant(1))


def test_a_message_tells_of_a_handle():
    from tensorfleet.python.framework.cpp_shape_inference_pb2 import CppShapeInferenceResult

    kind = CppShapeInferenceResult.HandleShapeAndType(shape=tf.TensorShape([None, 4]).as_proto(), dtype=1)
    data = CppShapeInferenceResult.HandleData(is_set=True, shape_and_type=[kind])
    again = CppShapeInferenceResult.FromString(CppShapeInferenceResult(handle_data=data).SerializeToString())
    assert again.handle_data.shape_and_type[0].shape.dim[1].size == 4
