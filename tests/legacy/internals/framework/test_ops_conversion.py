"""How values become tensors inside TensorFlow."""

import pytest

import tensorfleet as tf
from tensorfleet.base import errors

ops = tf.python.framework.ops


def test_an_inner_constant_repeats_one_value_only():
    constant = tf.python.framework.constant_op.constant
    assert constant([7], shape=[10]).shape == [10]
    assert constant([1, 2, 3, 4], shape=[2, 2]).shape == [2, 2]
    with pytest.raises(TypeError, match="Expected Tensor's shape"):
        constant([1, 2, 3], shape=[10])
    with pytest.raises(TypeError, match="Expected Tensor's shape"):
        constant([1, 2, 3], shape=[2])
    assert tf.constant([1, 2, 3], shape=[10]).shape == [10]


def test_a_shape_with_a_large_dimension_is_int64():
    large = tf.TensorShape([2**31, 2])
    assert tf.convert_to_tensor(large).dtype == tf.int64
    with pytest.raises(ValueError, match=r"a dimension is too large \(2147483648\)"):
        tf.convert_to_tensor(large, dtype=tf.int32)
    with pytest.raises(TypeError, match="Cannot convert a TensorShape to dtype: float32"):
        tf.convert_to_tensor(tf.Dimension(3), tf.float32)
    with pytest.raises(TypeError, match="Cannot convert a TensorShape to dtype: float32"):
        tf.convert_to_tensor(tf.TensorShape([1]), dtype=tf.float32)


def test_what_needs_a_tensors_value_raises_a_type_error_of_its_own():
    kind = tf.python.framework.errors_impl.OperatorNotAllowedInGraphError
    assert kind is errors.OperatorNotAllowedInGraphError and issubclass(kind, TypeError)
    with pytest.raises(kind):
        bool(tf.constant(True))
    with pytest.raises(kind):
        iter(tf.constant([1]))


def test_several_values_become_tensors():
    assert [t.op.name for t in ops.internal_convert_n_to_tensor([1, 2.0], name="x")] == ["x_0", "x_1"]
    sparse = tf.SparseTensor([[0]], [1], [3])
    convert = tf.python.framework.sparse_tensor.convert_n_to_tensor_or_sparse_tensor
    assert convert([sparse, 3])[0] is sparse
    assert ops.convert_to_tensor_or_composite(sparse) is sparse
    with pytest.raises(ValueError, match="dtype mismatch"):
        ops.convert_to_tensor_or_composite(sparse, tf.float32)
    assert ops.convert_to_tensor_v2(1, dtype_hint=tf.float32).dtype == tf.float32


def test_elements_of_a_graph_know_themselves():
    x = tf.constant(1)
    assert ops._as_graph_element(3) is None
    assert ops.tensor_id(x) == ops.tensor_id(x)
    assert tf.python.framework.tensor_util.is_tensor_like(x)
    assert not tf.python.framework.tensor_util.is_tensor_like(3)
