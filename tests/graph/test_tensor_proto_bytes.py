"""Serialized tensors that are written and read without going through the message: the same bytes, the same tensors."""

import numpy as np
import pytest

from tensorfleet.base import dtypes
from tensorfleet.base.protos import TensorProto
from tensorfleet.graph.tensor_proto import array_of, parsed, proto_of, serialized

ARRAYS = {
    "matrix": np.arange(12, dtype=np.float32).reshape(3, 4),
    "turned": np.arange(12, dtype=np.int64).reshape(3, 4).T,
    "long": np.arange(100_000, dtype=np.int16),
    "none": np.zeros((0, 3), np.float64),
    "one": np.ones((1, 1), np.float32),
    "scalar": np.array(7, np.int32),
    "half": np.arange(3, dtype=np.float16),
    "complex": np.array([1 + 2j, 3], np.complex64),
    "strings": np.array([b"a", b"", b"bc"], object),
    "flags": np.array([True, False]),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_the_bytes_are_those_of_the_message(name):
    array = ARRAYS[name]
    assert serialized(array, dtypes.as_dtype(array.dtype)) == proto_of(array).SerializeToString()


@pytest.mark.parametrize("name", ARRAYS)
def test_what_is_written_is_read_again(name):
    array = ARRAYS[name]
    read = array_of(*parsed(proto_of(array).SerializeToString()))
    np.testing.assert_array_equal(read, array)
    assert read.shape == array.shape and read.dtype == array.dtype and read.flags.writeable


def test_fields_in_any_order_are_read():
    proto = proto_of(ARRAYS["matrix"])
    content = TensorProto(tensor_content=proto.tensor_content).SerializeToString()
    rest = TensorProto(dtype=proto.dtype, tensor_shape=proto.tensor_shape).SerializeToString()
    for data in (content + rest, rest + content + TensorProto(version_number=300).SerializeToString()):
        np.testing.assert_array_equal(array_of(*parsed(data)), ARRAYS["matrix"])


@pytest.mark.parametrize("cut", [1, 2, 5, 9, 20])
def test_a_message_that_is_cut_off_is_refused(cut):
    with pytest.raises(Exception, match="parsing|bytes for a constant|wire type|type"):
        array_of(*parsed(proto_of(ARRAYS["matrix"]).SerializeToString()[:-cut]))
