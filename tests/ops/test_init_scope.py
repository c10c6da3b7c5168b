"""`tf.init_scope`: out of functions that are being traced."""

from tensorfleet.python.framework import function

import tensorfleet as tf


def test_operations_go_to_the_graph_around_a_function(session):
    results = []

    @function.Defun(tf.float32)
    def scaled(x):
        with tf.name_scope("inside"), tf.init_scope():
            results.append(tf.Variable(3.0, name="scale"))
        return x * results[0]

    y = scaled(2.0)
    assert results[0].graph is tf.get_default_graph() and results[0].op.name == "inside/scale"
    session.run(results[0].initializer)
    assert session.run(y) == 6.0


def test_control_dependencies_are_left_and_come_back():
    first = tf.constant(1.0)
    with tf.control_dependencies([first]):
        with tf.init_scope():
            free = tf.constant(2.0)
        bound = tf.constant(3.0)
    assert free.op.control_inputs == [] and bound.op.control_inputs == [first.op]


def test_devices_named_inside_count_before_those_outside():
    body = tf.Graph()
    body._building_function = True
    with tf.device("/cpu:0"), body.as_default():
        with tf.device("/device:GPU:0"), tf.init_scope():
            inside = tf.constant(1.0)
        with tf.init_scope():
            outside = tf.constant(1.0)
    after = tf.constant(1.0)
    assert inside.graph is tf.get_default_graph() and inside.device == "/device:GPU:0"
    assert outside.device == "/device:CPU:0" and after.device == "" and not body.get_operations()
