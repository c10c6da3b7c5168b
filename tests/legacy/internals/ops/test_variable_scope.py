"""Stores of variables that a program makes itself."""

from tensorfleet.python.ops import data_flow_ops, variable_scope

import tensorfleet as tf


def test_variables_of_a_store_are_found_in_its_block_only():
    store = variable_scope.EagerVariableStore()
    with store.as_default():
        v = tf.get_variable("v", [], trainable=True)
        w = tf.get_variable("w", [], trainable=False)
    assert store.variables() == [v, w]
    assert (store.trainable_variables(), store.non_trainable_variables()) == ([v], [w])
    assert tf.get_variable("v", []) is not v
    with store.as_default(), tf.variable_scope("", reuse=True):
        assert tf.get_variable("v", []) is v
    assert tf.global_variables()[:2] == [v, w]


def test_a_queue_for_graphics_cards_is_a_queue(session):
    queue = data_flow_ops.GPUCompatibleFIFOQueue(10, tf.float32)
    session.run(queue.enqueue(2.0))
    assert session.run(queue.dequeue()) == 2
