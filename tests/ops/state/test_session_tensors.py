"""Tensors that stay in the session between runs."""

import numpy as np
import pytest

import tensorfleet as tf


def test_a_tensor_is_kept_and_used_in_later_runs(session):
    product = tf.constant(10) * tf.constant(5)
    handle = session.run(tf.get_session_handle(product))
    assert handle.eval() == 50
    holder, kept = tf.get_session_tensor(handle.handle, tf.int32)
    assert session.run(kept * 10, {holder: handle.handle}) == 500
    assert session.run(kept + 1, {holder: handle}) == 51


def test_handles_are_found_anywhere_in_what_is_fetched(session):
    x = tf.constant([1.0, 2.0])
    handle, value = session.run([tf.get_session_handle(x), x])
    assert value.tolist() == handle.eval().tolist() == [1, 2]
    assert str(handle) == handle.handle == handle.get_raw_handle()


def test_a_handle_stands_for_its_value_when_it_is_fed(session):
    x = tf.placeholder(tf.float32, [2])
    handle = session.run(tf.get_session_handle(tf.constant([3.0, 4.0])))
    np.testing.assert_array_equal(session.run(x * 2, {x: handle}), [6, 8])


def test_a_tensor_that_was_deleted_is_gone(session):
    handle = session.run(tf.get_session_handle(tf.constant(1)))
    handle.delete()
    with pytest.raises(tf.errors.InvalidArgumentError, match="is not in the session store"):
        handle.eval()
    other = session.run(tf.get_session_handle(tf.constant(1)))
    holder, delete = tf.delete_session_tensor(other.handle)
    session.run(delete, {holder: other.handle})
    with pytest.raises(tf.errors.InvalidArgumentError):
        other.eval()


def test_only_tensors_are_kept():
    with pytest.raises(TypeError, match="must be of type Tensor"):
        tf.get_session_handle(3)
