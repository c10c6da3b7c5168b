"""Short programs every TF1 tutorial has: devices by hand, by function, soft placement, ordering, servers."""

import pytest

import tensorfleet as tf


def test_pin_nodes_to_a_device(session):
    with tf.device("/cpu:0"):
        a = tf.Variable(1.0, name="a")
        b = a + 2
    c = a + b
    session.run(a.initializer)
    assert session.run(c) == 4


def test_choose_the_device_by_a_function():
    def variables_on_cpu(op):
        if op.type == "Variable":
            return "/cpu:0"
        else:
            return "/gpu:0"

    with tf.device(variables_on_cpu):
        a = tf.Variable(3.0)
        b = tf.constant(4.0)
        c = a + b
    assert c.device == "/device:GPU:0"
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        sess.run(a.initializer)
        assert sess.run(c) == 7


def test_log_where_nodes_run(capsys):
    c = tf.Variable(1.0, name="c")
    config = tf.ConfigProto()
    config.log_device_placement = True
    sess = tf.Session(config=config)
    c.initializer.run(session=sess)
    assert "c/Assign: (Assign): /job:localhost/replica:0/task:0/device:CPU:0" in capsys.readouterr().err
    sess.close()


def test_integer_variable_on_a_gpu_is_refused():
    with tf.device("/gpu:0"):
        i = tf.Variable(3)
    sess = tf.Session()
    with pytest.raises(tf.errors.InvalidArgumentError, match="Cannot assign a device for operation"):
        sess.run(i.initializer)


def test_integer_variable_on_a_gpu_with_soft_placement():
    with tf.device("/gpu:0"):
        i = tf.Variable(3)
    config = tf.ConfigProto()
    config.allow_soft_placement = True
    sess = tf.Session(config=config)
    sess.run(i.initializer)
    assert sess.run(i) == 3


def test_order_by_hand(session):
    a = tf.constant(1.0)
    b = a + 2.0
    with tf.control_dependencies([a, b]):
        c = tf.constant(3.0)
    assert session.run(c) == 3
    assert {o.name for o in c.op.control_inputs} == {a.op.name, b.op.name}


def test_local_server(server):
    c = tf.constant("Hello distributed TensorFlow!")
    with tf.Session(server.target) as sess:
        assert sess.run(c) == b"Hello distributed TensorFlow!"


def test_variables_on_a_local_server_are_shared_by_its_sessions(server):
    x = tf.Variable(0.0, name="x")
    increment = tf.assign_add(x, 1.0)
    with tf.Session(server.target) as one:
        one.run(x.initializer)
        one.run(increment)
    with tf.Session(server.target) as two:
        assert two.run(increment) == 2
    tf.Session.reset(server.target)
    with tf.Session(server.target) as three, pytest.raises(tf.errors.FailedPreconditionError):
        three.run(x)
