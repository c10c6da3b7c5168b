"""Where the tensors of a loop may be used."""

import pytest
from tensorfleet.python.ops import control_flow_ops, control_flow_util

import tensorfleet as tf


def _tensor_of_a_loop():
    kept = []

    def body(i):
        kept.append(tf.constant(1, name="kept"))
        return i + kept[0]

    tf.while_loop(lambda i: i < 3, body, [0])
    return kept[0]


def test_a_tensor_of_a_loop_cannot_be_used_outside_of_it():
    inside = _tensor_of_a_loop()
    with pytest.raises(
        ValueError, match="'while/kept' as input to 'Add' because 'while/kept' is in a while loop"
    ):
        tf.add(1, inside)
    with pytest.raises(ValueError, match="as input to 'cond/Add' because 'while/kept' is in a while loop"):
        tf.cond(tf.constant(True), lambda: tf.add(1, inside), lambda: tf.constant(0))


def test_a_tensor_of_a_loop_cannot_be_used_in_another():
    inside = _tensor_of_a_loop()
    with pytest.raises(ValueError, match="to 'while_1/Add' because they are in different while loops"):
        tf.while_loop(lambda i: i < 3, lambda i: tf.add(i, inside), [0])
    with pytest.raises(
        ValueError, match="to 'while_2/NextIteration' because they are in different while loops"
    ):
        tf.while_loop(lambda i: i < 3, lambda i: inside, [0])


def test_a_tensor_of_a_loop_may_be_used_in_a_loop_within_it(session):
    def body(i):
        step = tf.constant(2)
        return tf.while_loop(lambda j: j < 6, lambda j: j + step, [i])

    assert session.run(tf.while_loop(lambda i: i < 5, body, [0])) == 6


def test_operations_marked_for_xla_run_as_others_do(session):
    context = control_flow_ops.XLAControlFlowContext()
    context.Enter()
    x = tf.constant(2.0)
    y = tf.while_loop(lambda v: v < 10.0, tf.square, [x], maximum_iterations=5)
    slope = tf.gradients(y, x)[0]
    assert control_flow_util.IsInXLAContext(x.op)
    context.Exit()
    assert not control_flow_util.InXlaContext(tf.get_default_graph())
    assert session.run([tf.identity(y), tf.identity(slope)]) == [16, 32]
