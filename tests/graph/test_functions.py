"""Functions of graphs: captures, and their way through a GraphDef."""

import numpy as np
import pytest

import tensorfleet as tf
from tests.support.sessions import all_of


def drained(graph, names):
    with tf.Session(graph=graph) as session:
        return [np.asarray(value).tolist() for value in all_of(session, names)]


def build():
    three = tf.constant(np.full(5000, 3, np.int64))  # too large to be copied into functions
    numbers = tf.data.Dataset.range(6).map(lambda x: tf.cond(x > 2, lambda: x * three[0], lambda: x))
    odd = numbers.filter(lambda x: tf.equal(x % 2, 1)).flat_map(lambda x: tf.data.Dataset.range(x, x + 2))
    return tf.identity(odd.batch(4).make_one_shot_iterator().get_next(), name="result")


def test_functions_travel_in_the_library_of_a_graph_def():
    with tf.Graph().as_default() as graph:
        build()
    graph_def = graph.as_graph_def()
    assert {f.signature.name.rpartition("_")[0] for f in graph_def.library.function} >= {
        "Dataset_filter__lambda_"
    }
    assert drained(graph, "result:0") == [[1, 2, 9, 10], [15, 16]]
    with tf.Graph().as_default() as again:
        tf.import_graph_def(type(graph_def).FromString(graph_def.SerializeToString()), name="")
    assert drained(again, "result:0") == [[1, 2, 9, 10], [15, 16]]
    assert len(again.as_graph_def().library.function) == len(graph_def.library.function)


def test_what_is_captured_is_an_argument_and_constants_are_copied(graph):
    big, small = tf.constant(np.zeros(5000, np.int64)), tf.constant(2, tf.int64)
    tf.data.Dataset.range(3).map(lambda x: x + big[0] + small)
    (body,) = graph._functions.values()
    assert list(body.captures) == [big] and len(body.inputs) == 1
    assert graph.get_operations()[-1].inputs[1] is big
    with pytest.raises(ValueError, match="is not in the library"):
        from tensorfleet.graph.functions import find_function

        find_function(graph, "nobody")


def test_a_function_that_cannot_be_read_matters_only_when_called():
    with tf.Graph().as_default() as graph:
        tf.data.Dataset.range(3).map(lambda x: x + 1)
        graph_def = graph.as_graph_def()
    graph_def.library.function[0].node_def.add(name="odd", op="NoSuchOp")
    with tf.Graph().as_default() as again:
        tf.import_graph_def(graph_def, name="")
        assert len(again._functions) == 1
