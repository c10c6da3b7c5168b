"""The graph's one global step."""

import pytest

import tensorfleet as tf


def test_there_is_one_per_graph(graph):
    assert tf.train.get_global_step() is None
    step = tf.train.create_global_step()
    assert step.op.name == "global_step" and step.dtype.base_dtype == tf.int64
    assert step not in tf.trainable_variables() and step in tf.global_variables()
    assert tf.train.get_global_step() is step and tf.train.get_or_create_global_step(graph) is step
    with pytest.raises(ValueError, match='"global_step" already exists'):
        tf.train.create_global_step()


def test_it_ignores_name_scopes():
    with tf.name_scope("outer"):
        assert tf.contrib.framework.get_or_create_global_step().op.name == "global_step"


def test_a_tensor_of_that_name_counts(session):
    result = tf.constant(3, name="global_step")
    assert tf.train.get_global_step() is result
    assert tf.train.global_step(session, result) == 3


@pytest.mark.parametrize("value, message", [(1.0, "does not have integer type"), ([1, 2], "is not scalar")])
def test_it_is_a_scalar_integer(value, message):
    with pytest.raises(TypeError, match=message):
        tf.train.assert_global_step(tf.constant(value))
    with pytest.raises(TypeError, match="must be a Variable or Tensor"):
        tf.train.assert_global_step(3)
