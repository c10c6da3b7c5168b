"""Arrays as TensorProto messages, and attributes that are messages."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.graph import apply, tensor_proto


@pytest.mark.parametrize(
    ("values", "dtype", "field", "written"),
    [
        ([1 + 2j, 3 - 4j], tf.complex64, "scomplex_val", [1, 2, 3, -4]),
        ([1 + 2j], tf.complex128, "dcomplex_val", [1, 2]),
        ([1.0, 2.0], tf.float16, "half_val", [15360, 16384]),
        ([1.0, 2.0], tf.bfloat16, "half_val", [16256, 16384]),
        ([True, False], tf.bool, "bool_val", [True, False]),
        ([7, 8], tf.uint16, "int_val", [7, 8]),
    ],
)
def test_types_that_are_not_written_as_raw_bytes(values, dtype, field, written):
    proto = tf.make_tensor_proto(values, dtype)
    assert list(getattr(proto, field)) == written and not proto.tensor_content
    np.testing.assert_array_equal(tf.make_ndarray(proto), np.array(values, dtype.as_numpy_dtype))


def test_fewer_values_than_elements_are_written_as_they_are():
    proto = tf.make_tensor_proto([1.0, 2.0], shape=[2, 2])
    assert list(proto.float_val) == [1, 2] and not proto.tensor_content
    assert tf.make_ndarray(proto).tolist() == [[1, 2], [2, 2]]
    assert tf.make_ndarray(tf.make_tensor_proto("a", shape=[2])).tolist() == [b"a", b"a"]
    assert tf.make_ndarray(tf.make_tensor_proto([], tf.float32, [0, 3])).shape == (0, 3)


def test_objects_that_say_how_to_make_an_array():
    class Table:
        def __array__(self, dtype=None, copy=None):
            return np.array([[b"a", b"b"]])

    class Buffer:
        __array_interface__ = np.arange(3.0).__array_interface__

    assert tf.make_ndarray(tf.make_tensor_proto(Table())).tolist() == [[b"a", b"b"]]
    assert tf.convert_to_tensor(Buffer()).dtype == tf.float64


def test_attributes_are_messages_where_tensorflow_gives_messages():
    value = tf.constant([1.0, 2.0]).op.get_attr("value")
    assert tf.make_ndarray(value).tolist() == [1.0, 2.0]
    shape = tf.placeholder(tf.float32, [2, None]).op.get_attr("shape")
    assert [d.size for d in shape.dim] == [2, -1]
    shapes = tf.FIFOQueue(1, [tf.int32], [[4]]).queue_ref.op.get_attr("shapes")
    assert [tf.TensorShape(s).as_list() for s in shapes] == [[4]]
    assert tf.constant(1).op.get_attr("dtype") is tf.int32


def test_a_large_constant_of_one_value_is_written_as_that_value(monkeypatch):
    for module in (apply, tensor_proto):
        monkeypatch.setattr(module, "MAX_CONSTANT_BYTES", 1000)
    filled = tf.constant(2.5, shape=[30, 20])
    written = tf.get_default_graph().as_graph_def()
    assert list(written.node[0].attr["value"].tensor.float_val) == [2.5]
    with tf.Graph().as_default():
        (again,) = tf.import_graph_def(written, return_elements=[filled.name], name="")
        with tf.Session() as session:
            np.testing.assert_array_equal(session.run(again), np.full([30, 20], 2.5))
    with pytest.raises(ValueError, match="larger than 2GB"):
        tf.constant(np.zeros([30, 20], np.float32))
    with pytest.raises(ValueError, match="is too large"):
        tf.make_ndarray(_message([1.0, 2.0], [30, 20]))


def _message(values, shape):
    result = tf.make_tensor_proto(values)
    result.ClearField("tensor_content")
    result.float_val.extend(values)
    result.tensor_shape.CopyFrom(tf.TensorShape(shape).as_proto())
    return result
