"""Errors that tell where operations were made and placed."""

import os

from tensorfleet.python.framework import error_interpolation, ops

import tensorfleet as tf


def _here():
    return os.path.basename(__file__)


def test_a_node_is_told_with_its_line_and_an_unknown_one_is_left_alone():
    tf.constant(1, name="one")
    message = error_interpolation.interpolate("in {{node one}}, {{node two}}", tf.get_default_graph())
    assert message.startswith("in node one (defined at ")
    assert f"{_here()}:" in message
    assert message.endswith(", {{node two}}")
    assert error_interpolation.interpolate("nothing", tf.get_default_graph()) == "nothing"


def test_the_blocks_that_name_devices_are_told_with_their_lines():
    def anywhere(op):
        return "/cpu:*"

    plain = tf.constant(0)
    with tf.device("/cpu"), tf.device("/cpu:0"):
        placed = tf.constant(1, name="placed")
    with tf.device(anywhere):
        chosen = tf.constant(2, name="chosen")
    assert plain.op._device_assignments == []
    inner, outer = placed.op._device_assignments
    assert (inner.obj, outer.obj) == ("/cpu:0", "/cpu")
    assert os.path.basename(inner.filename) == _here()
    assert chosen.op._device_assignments[0].obj.startswith("anywhere<")
    message = error_interpolation.interpolate("{{colocation_node placed}}", tf.get_default_graph())
    assert message.count("tf.device(/cpu:0)") == 2
    assert "No node-device colocations were active" in message


def test_the_operations_that_others_are_to_be_beside_are_told():
    with tf.device("/cpu:0"):
        first = tf.constant(1, name="first")
        with ops.colocate_with(first):
            second = tf.constant(2, name="second")
    assert list(second.op._colocation_dict) == ["first"]
    assert os.path.basename(second.op._colocation_dict["first"].filename) == _here()
    assert second.op._device_assignments == []
    message = error_interpolation.interpolate("{{colocation_node second}}", tf.get_default_graph())
    assert "tf.colocate_with(first)" in message
    assert "No device assignments were active" in message


def test_the_lines_of_a_graph_make_one_message():
    total = tf.add(1, 2, name="total")
    info = error_interpolation.create_graph_debug_info_def([("f", total.op)])
    assert any(file.endswith(_here()) for file in info.files)
    assert "total@f" in info.traces
