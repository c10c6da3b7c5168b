"""Reading a dump: values, times, and the graph around them."""

import numpy as np
import pytest

import tensorfleet as tf

debug = tf.python.debug


@pytest.fixture
def dump(session, tmp_path):
    x = tf.placeholder(tf.float32, [2], name="x")
    with tf.name_scope("scope"):
        y = tf.multiply(x, 2.0, name="y")
    with tf.control_dependencies([tf.no_op(name="first")]):
        z = tf.log(y, name="z")
    watched = tf.RunOptions()
    debug.watch_graph(watched, session.graph, debug_urls=f"file://{tmp_path}")
    session.run(z, {x: [1.0, 0.0]}, options=watched)
    return debug.DebugDumpDir(str(tmp_path))


def test_values_are_found_by_name_and_by_a_predicate(dump):
    assert dump.size == len(dump.dumped_tensor_data) == 4
    assert dump.debug_watch_keys("z") == ["z:0:DebugIdentity"]
    (datum,) = dump.watch_key_to_data("z:0:DebugIdentity")
    assert (datum.node_name, datum.output_slot, datum.tensor_name) == ("z", 0, "z:0")
    assert datum.device_name == "/job:localhost/replica:0/task:0/device:CPU:0"
    assert np.isneginf(datum.get_tensor()[1])
    assert [d.tensor_name for d in dump.find(debug.has_inf_or_nan, first_n=1)] == ["z:0"]
    assert dump.find(debug.has_inf_or_nan, exclude_node_names="z") == []
    assert dump.get_rel_timestamps("z", 0, "DebugIdentity")[0] >= 0
    with pytest.raises(KeyError, match="does not exist in the debug dump"):
        dump.get_tensors("none", 0, "DebugIdentity")


def test_the_graph_tells_neighbours(dump):
    assert dump.node_inputs("z") == ["scope/y"]
    assert dump.node_inputs("z", is_control=True) == ["first"]
    assert dump.node_recipients("scope/y") == ["z"]
    assert set(dump.transitive_inputs("z")) == {"scope/y", "scope/y/y", "x", "first"}
    assert dump.node_op_type("z") == "Log" and dump.node_exists("z") and not dump.node_exists("none")
    with pytest.raises(LookupError, match="set_python_graph"):
        dump.node_traceback("z")
    dump.set_python_graph(tf.get_default_graph())
    assert dump.node_traceback("z")[-1][0] == __file__


def test_a_folder_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(OSError, match="does not exist"):
        debug.DebugDumpDir(str(tmp_path / "none"))
