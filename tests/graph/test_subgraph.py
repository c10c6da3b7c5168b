"""`tf.graph_util`: parts of graphs, frozen for inference."""

import numpy as np
import pytest

import tensorfleet as tf


@pytest.fixture
def model():
    """A graph with a reference and a resource variable, and a session with values in them."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        w = tf.Variable(np.array([[1.0, 2.0], [3.0, 4.0]], np.float32), name="w")
        r = tf.get_variable("r", [2], use_resource=True, initializer=tf.ones_initializer())
        tf.identity(tf.identity(tf.matmul(x, w) + r, name="sum"), name="o")
        tf.square(x, name="unrelated")
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            yield graph, sess


def test_only_what_is_needed_is_kept(model):
    names = [n.name for n in tf.graph_util.extract_sub_graph(model[0].as_graph_def(), ["o"]).node]
    assert "unrelated" not in names
    assert names[0] == "x"
    assert names[-1] == "o"
    assert "w/Assign" not in names


def test_nodes_that_are_not_there(model):
    with pytest.raises(AssertionError, match="nope is not in graph"):
        tf.graph_util.extract_sub_graph(model[0].as_graph_def(), ["nope"])
    with pytest.raises(TypeError, match="iterable of strings"):
        tf.graph_util.extract_sub_graph(model[0].as_graph_def(), "o")


def test_a_frozen_graph_runs_without_variables(model):
    graph, sess = model
    frozen = tf.graph_util.convert_variables_to_constants(sess, graph.as_graph_def(), ["o"])
    kinds = {n.name: n.op for n in frozen.node}
    assert kinds["w"] == kinds["r"] == "Const"
    feed = np.array([[1.0, 1.0]], np.float32)
    with tf.Graph().as_default():
        (out,) = tf.import_graph_def(frozen, return_elements=["o:0"], name="")
        with tf.Session() as other:
            np.testing.assert_allclose(other.run(out, {"x:0": feed}), sess.run("o:0", {"x:0": feed}))


def test_variables_that_only_branches_and_loops_read_are_frozen_too():
    with tf.Graph().as_default() as graph, tf.variable_scope("", use_resource=True):
        a, b = tf.get_variable("a", initializer=2.0), tf.get_variable("b", initializer=3.0)
        branch = tf.cond(tf.constant(True), lambda: a * 1.0, lambda: b * 1.0)
        looped = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * b), [0, branch])[1]
        tf.identity(looped, name="out")
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            frozen = tf.graph_util.convert_variables_to_constants(sess, graph.as_graph_def(), ["out"])
    assert not {n.op for n in frozen.node} & {"VarHandleOp", "ReadVariableOp"}
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.import_graph_def(frozen, name="")
        assert sess.run("out:0") == 54.0


def test_some_variables_may_stay(model):
    graph, sess = model
    frozen = tf.graph_util.convert_variables_to_constants(
        sess, graph.as_graph_def(), ["o"], variable_names_blacklist=["w"]
    )
    assert {n.name: n.op for n in frozen.node}["w"] == "VariableV2"


def test_identities_are_taken_out_unless_protected(model):
    result = tf.graph_util.remove_training_nodes(model[0].as_graph_def(), protected_nodes=["o"])
    nodes = {n.name: n for n in result.node}
    assert "sum" not in nodes
    assert list(nodes["o"].input) == ["add"]


def test_checks_go_and_what_waits_only_for_them_goes_too():
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, name="x")
        with tf.control_dependencies([tf.check_numerics(x, "bad", name="check")]):
            y = tf.identity(x, name="y")
        tf.square(y, name="out")
    result = tf.graph_util.remove_training_nodes(graph.as_graph_def())
    assert {n.name: list(n.input) for n in result.node} == {"x": [], "out": ["x"]}


def test_small_questions(model):
    graph, _ = model
    assert tf.graph_util.tensor_shape_from_node_def_name(graph, "o").as_list() == [None, 2]
    text = tf.constant("a").op
    assert tf.graph_util.must_run_on_cpu(text)
    assert not tf.graph_util.must_run_on_cpu(graph.get_operation_by_name("w"))
    assert tf.graph_util.must_run_on_cpu(graph.get_operation_by_name("w"), pin_variables_on_cpu=True)
