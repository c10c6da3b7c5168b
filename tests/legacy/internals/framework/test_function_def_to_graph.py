"""Functions as messages, and messages as graphs."""

import pytest
from tensorfleet.python.framework.function_def_to_graph import (
    function_def_to_graph,
    function_def_to_graph_def,
)
from tensorfleet.python.framework.graph_to_function_def import graph_to_function_def

import tensorfleet as tf


def squares_and_cubes(out_names=None):
    with tf.Graph().as_default() as graph:
        x, y = (tf.placeholder(tf.float32, name=name) for name in "xy")
        squares = tf.add_n([tf.pow(x, 2), tf.pow(y, 2)], name="squares")
        cubes = tf.add_n([tf.pow(x, 3), tf.pow(y, 3)], name="cubes")
    result = graph_to_function_def(graph, graph.get_operations(), [x, y], [squares, cubes], out_names)
    result.signature.name = "powers"
    return result


def test_a_graph_is_a_function_and_a_graph_again():
    graph = function_def_to_graph(squares_and_cubes())
    assert graph.name == "powers"
    with tf.Session(graph=graph) as sess:
        assert sess.run(graph.outputs, {"x:0": 2, "y:0": 3}) == [13.0, 35.0]


def test_shapes_of_arguments_may_be_told():
    graph = function_def_to_graph(squares_and_cubes(), [None, tf.TensorShape([5, 7])])
    assert graph.inputs[0].shape.dims is None
    assert [t.shape.as_list() for t in graph.outputs] == [[5, 7], [5, 7]]
    with pytest.raises(ValueError, match="Length of input_shapes must match"):
        function_def_to_graph(squares_and_cubes(), [None])


def test_a_function_is_a_graph_def_with_names_for_its_tensors():
    result, names = function_def_to_graph_def(squares_and_cubes())
    assert names["x"] == "x:0"
    assert names["squares:sum:0"] == "squares:0"
    with tf.Graph().as_default():
        cubes, x, y = tf.import_graph_def(
            result, return_elements=[names["cubes:sum:0"], "x:0", "y:0"], name=""
        )
        with tf.Session() as sess:
            assert sess.run(cubes, {x: 2, y: 3}) == 35.0


def test_results_may_have_names():
    assert [a.name for a in squares_and_cubes(["a", "b"]).signature.output_arg] == ["a", "b"]
    with pytest.raises(ValueError, match="Length of out_names"):
        squares_and_cubes(["a"])


def test_what_waits_for_an_argument_still_does():
    @tf.function
    def f(x):
        with tf.control_dependencies([x]):
            return tf.constant(3.0, name="y")

    result = f.get_concrete_function(tf.constant(1.0)).function_def
    graph = function_def_to_graph(result)
    assert graph.get_operation_by_name("y").control_inputs == [graph.inputs[0].op]
