"""Nodes that become operations later."""

from tensorfleet.python.framework import ops, test_ops

import tensorfleet as tf


def test_a_node_becomes_an_operation_of_the_branch_it_is_taken_in():
    graph = tf.get_default_graph()
    x = test_ops.int_output()

    def branch():
        ops._create_c_op(graph, ops._NodeDef("IntInput", "cond/taken"), [x], [])
        assert len(graph._add_new_tf_operations()) == 1
        return x

    tf.cond(x < 10, branch, lambda: x)
    taken = graph.get_operation_by_name("cond/taken")
    assert taken.inputs[0].op.type == "Switch"
    assert taken._get_control_flow_context().name == "cond/cond_text"


def test_the_names_of_nodes_are_taken():
    graph = tf.get_default_graph()
    node = ops._create_c_op(graph, ops._NodeDef("IntOutput", "mine"), [], [])
    assert graph._create_op_from_tf_operation(node).name == "mine"
    assert test_ops.int_output(name="mine").op.name == "mine_1"
    assert graph._add_new_tf_operations() == []
