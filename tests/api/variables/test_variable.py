"""Resource variables: what is checked, and where their copies are."""

import pytest

import tensorfleet as tf


def test_a_handle_keeps_leading_to_its_variable_through_copies(session):
    handle = tf.raw_ops.VarHandleOp(dtype=tf.int32, shape=[])
    session.run(tf.raw_ops.AssignVariableOp(resource=tf.identity(handle), value=7))
    assert session.run(tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.int32)) == 7


def test_a_resource_variable_takes_a_value_of_another_shape_when_it_is_not_known_before(session):
    v = tf.get_variable("v", [1, 1], use_resource=True)
    given = tf.placeholder(tf.float32)
    session.run(v.assign(given), {given: [[1.0, 2.0]]})
    assert session.run(v.read_value()).tolist() == [[1, 2]]


def test_sums_of_other_ranks_are_refused_when_the_graph_is_built():
    v = tf.get_variable("v", initializer=[0, 1], use_resource=True)
    with pytest.raises(ValueError, match="Shapes must be equal rank"):
        v.assign_add(1)


def test_an_initial_value_of_another_shape_is_refused():
    with pytest.raises(ValueError, match="is not compatible with the explicitly supplied `shape`"):
        tf.Variable([1.0, 2.0, 3.0], shape=[4], use_resource=True)


def test_a_resource_variable_is_not_initialized_from_inside_of_a_loop():
    def body(i):
        return i + tf.Variable(tf.zeros([], tf.int32), use_resource=True)

    with pytest.raises(ValueError, match="is from inside a control-flow construct"):
        tf.while_loop(lambda i: i < 3, body, [0])


def test_the_copy_on_a_caching_device_is_there_whatever_is_around():
    with tf.device("/job:ps/task:1"):
        v = tf.get_variable("v", [], use_resource=True, caching_device="/job:worker")
    with tf.python.framework.ops.colocate_with(v.op):
        w = tf.get_variable("w", [], use_resource=True, caching_device="/job:worker")
    assert [v.value().device, w.value().device] == ["/job:worker"] * 2


def test_a_variable_after_an_update_goes_by_the_name_of_the_update():
    v = tf.get_variable("v", [], use_resource=True)
    assert v.assign_add(1.0).name != v.name
