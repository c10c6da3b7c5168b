"""Element types: what is turned into one."""

import ml_dtypes
import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.base.protos import DataType


def test_every_number_in_a_message_has_a_type_of_its_own():
    items = [tf.as_dtype(number) for number in DataType.values() if number]
    assert [d.as_datatype_enum for d in items] == [number for number in DataType.values() if number]
    assert len({d.name for d in items}) == len(items)


@pytest.mark.parametrize("name", ["float8_e5m2", "float4_e2m1fn", "int4", "uint2"])
def test_later_types_are_those_of_numpy(name):
    kind = tf.as_dtype(name)
    assert kind.as_numpy_dtype is getattr(ml_dtypes, name)
    assert kind == tf.as_dtype(np.dtype(kind.as_numpy_dtype))
    assert (kind.is_floating, kind.is_integer) == ("float" in name, "int" in name)
    assert kind.min < kind.max


def test_an_object_may_say_its_type_by_name():
    class Named:
        dtype = "f4"

    assert tf.as_dtype(Named) is tf.as_dtype(Named()) is tf.float32
    with pytest.raises(TypeError, match="Cannot convert value"):
        tf.as_dtype(np.dtype([("a", np.int32), ("b", np.int32)]))
