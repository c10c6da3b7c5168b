"""The graph of a session with the devices and lines of its operations, whole or in part."""

import json

import pytest

import tensorfleet as tf
from tensorfleet.cluster.inspection import topics
from tensorfleet.cluster.inspection.ask import ask
from tensorfleet.testing.cluster import ProcessCluster


def graph_here(**options):
    return topics.answer(None, "somebody", "graph", json.dumps(options)).content


def test_operations_have_their_devices_inputs_and_lines():
    with tf.Graph().as_default(), tf.Session() as sess:
        a = tf.constant([1.0], name="a")
        with tf.control_dependencies([a]):
            b = tf.constant([2.0], name="b")
        sess.run(tf.add(a, b, name="sum"))
        handle = f"local-{id(sess._engine):x}"
        (mine,) = [s for s in graph_here()["sessions"] if s["session"] == handle]
    nodes = {node["name"]: node for node in mine["graph"]}
    assert nodes["sum"]["inputs"] == ["a:0", "b:0"] and nodes["sum"]["op"] == "Add"
    assert nodes["b"]["inputs"] == ["^a"]
    assert nodes["sum"]["device"].endswith("device:CPU:0")
    assert "test_graph.py:" in nodes["sum"]["line"]


def test_a_task_tells_what_sessions_of_others_have_registered_with_it():
    with ProcessCluster(ps=1, worker=1) as cluster, tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            v = tf.get_variable("v", [2], initializer=tf.zeros_initializer())
        with tf.Session(cluster.target("worker", 0)) as sess:
            sess.run(v.initializer)
            address = cluster.target("ps", 0).removeprefix("grpc://")
            (session,) = ask("ps/0", address, "graph").content["sessions"]
    assert "v" in {node["name"] for node in session["graph"]}
    assert all("/job:ps/" in node["device"] for node in session["graph"] if node["op"] == "VariableV2")


def test_a_large_graph_is_told_in_part():
    with tf.Graph().as_default(), tf.Session():
        for _ in range(30):
            tf.constant(1.0)
        report = graph_here(nodes=10)
    assert sum(len(session["graph"]) for session in report["sessions"]) == 10
    assert report["left_out"] >= 20


def test_a_graph_that_the_asker_has_is_not_told_again_until_it_changes():
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.constant(1.0, name="x")
        sess.run(x)
        first = graph_here()
        assert graph_here(unless=first["version"]) == {"version": first["version"], "is_unchanged": True}
        y = tf.add(x, 1.0, name="y")
        second = graph_here(unless=first["version"])
        assert "y" in {node["name"] for session in second["sessions"] for node in session["graph"]}
        sess.run(y)  # now it is placed
        assert "sessions" in graph_here(unless=second["version"])


@pytest.mark.parametrize("nodes", [0, -1, 20_001, "many", None, 1.5, True])
def test_a_number_of_nodes_that_is_none_is_refused(nodes):
    with pytest.raises(tf.errors.InvalidArgumentError, match="nodes must be a whole number"):
        graph_here(nodes=nodes)
