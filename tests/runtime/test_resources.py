"""The stores of variables."""

import pytest

import tensorfleet as tf


def test_two_variables_of_one_shared_name_have_one_type(session):
    handles = [
        tf.raw_ops.VarHandleOp(dtype=dtype, shape=[], shared_name="one") for dtype in (tf.float32, tf.int32)
    ]
    write = tf.raw_ops.AssignVariableOp(resource=handles[0], value=1.5)
    read = tf.raw_ops.ReadVariableOp(resource=handles[1], dtype=tf.int32)
    session.run(write)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Expected int32 got float32") as raised:
        session.run(read)
    assert raised.value.op is handles[1].op
    assert session.run(tf.raw_ops.ReadVariableOp(resource=handles[0], dtype=tf.float32)) == 1.5
