"""Control dependencies, devices, colocation, collections, seeds, finalizing."""

import copy
import threading

import numpy as np
import pytest

import tensorfleet as tf


def test_control_dependencies_nest_and_clear(graph):
    a, b = tf.no_op(name="a"), tf.no_op(name="b")
    with tf.control_dependencies([a]):
        with tf.control_dependencies([b]):
            both = tf.no_op()
        with tf.control_dependencies(None):
            none = tf.no_op()
    assert {o.name for o in both.control_inputs} == {"a", "b"}
    assert none.control_inputs == []


def test_op_whose_input_already_waits_does_not_wait_again(graph):
    a = tf.no_op(name="a")
    with tf.control_dependencies([a]):
        x = tf.constant(1.0)
        y = tf.identity(x)
    assert x.op.control_inputs == [a]
    assert y.op.control_inputs == []


def test_device_strings_merge_inner_over_outer(graph):
    with tf.device("/job:ps/task:1"):
        with tf.device("/cpu:0"):
            a = tf.constant(1)
        with tf.device("/task:2/gpu:3"):
            b = tf.constant(1)
        with tf.device(None):
            c = tf.constant(1)
    assert a.device == "/job:ps/task:1/device:CPU:0"
    assert b.device == "/job:ps/task:2/device:GPU:3"
    assert c.device == ""


def test_device_function_is_called_with_each_op(graph):
    seen = []

    def choose(op):
        seen.append(op.type)
        return "/cpu:0" if op.type == "VariableV2" else "/gpu:0"

    with tf.device(choose):
        v = tf.Variable(3.0)
        c = tf.constant(4.0)
    assert v.device == "/device:CPU:0"
    assert c.device == "/device:GPU:0"
    assert "VariableV2" in seen


def test_device_spec_is_accepted(graph):
    with tf.device(tf.DeviceSpec(job="worker", task=2, device_type="CPU", device_index=0)):
        assert tf.constant(1).device == "/job:worker/task:2/device:CPU:0"


@pytest.mark.parametrize("bad", ["/jobs:a", "/cpu:0/gpu:0", "/task:x"])
def test_malformed_device_is_refused(graph, bad):
    with pytest.raises(ValueError, match="attribute|multiple|Malformed"), tf.device(bad):
        tf.constant(1)


def test_colocation_follows_the_other_op(graph):
    with tf.device("/cpu:1"):
        a = tf.constant(1.0, name="a")
    with tf.device("/cpu:0"), tf.colocate_with(a.op):
        b = tf.constant(2.0)
    assert b.device == "/device:CPU:1"
    assert b.op.colocation_groups() == [b"loc:@a"]


def test_finalized_graph_refuses_new_operations(graph):
    tf.constant(1)
    graph.finalize()
    with pytest.raises(RuntimeError, match="Graph is finalized and cannot be modified"):
        tf.constant(2)


def test_tensors_of_two_graphs_do_not_mix(graph):
    a = tf.constant(1.0)
    with tf.Graph().as_default():
        b = tf.constant(1.0)
        with pytest.raises(ValueError, match="must be from the same graph"):
            tf.add(a, b)


def test_collections_filter_by_scope(graph):
    with tf.variable_scope("a"):
        tf.get_variable("x", [1])
    with tf.variable_scope("b"):
        tf.get_variable("x", [1])
    assert [v.name for v in tf.trainable_variables("a")] == ["a/x:0"]
    graph.add_to_collections(["p", "q", "p"], 7)
    assert tf.get_collection("p") == [7]
    tf.get_collection_ref("p").append(8)
    assert tf.get_collection("p") == [7, 8]


def test_operations_are_made_of_nodes_too(graph, session):
    with tf.device("/cpu:0"), tf.name_scope("around"):
        x = tf.constant([1.0, -2.0], name="x")
    node = tf.NodeDef(op="Neg", name="n", device="/job:localhost")
    first = tf.no_op()
    operation = tf.Operation(node, graph, [x], [tf.float32], control_inputs=[first])
    assert isinstance(operation, tf.Operation) and graph.get_operation_by_name("n") is operation
    assert (operation.device, operation.control_inputs, operation.outputs[0].shape) == (
        "/job:localhost",
        [first],
        [2],
    )
    internal = graph._create_op_internal("Abs", [operation.outputs[0]], [tf.float32], name="a")
    assert session.run(internal.outputs[0]).tolist() == [1.0, 2.0]
    for wrong, said in (((1, graph), "needs to be a NodeDef"), ((node, 1), "needs to be a Graph")):
        with pytest.raises(TypeError, match=said):
            tf.Operation(*wrong)


def test_tensor_is_not_a_bool(graph):
    with pytest.raises(
        TypeError, match="using a `tf.Tensor` as a Python `bool` is not allowed in Graph execution"
    ):
        bool(tf.constant(True))


def test_tensor_is_not_iterable(graph):
    with pytest.raises(TypeError, match="only iterable when eager execution is enabled"):
        list(tf.constant([1, 2]))


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1, tf.int32),
        (1.5, tf.float32),
        (2**40, tf.int64),
        (True, tf.bool),
        ("a", tf.string),
        (b"a", tf.string),
    ]
    + [
        ([1, 2.5], tf.float32),
        (np.float64(1), tf.float64),
        (np.ones(2, np.int64), tf.int64),
        (1j, tf.complex128),
    ],
)
def test_python_values_get_tensorflows_types(graph, value, dtype):
    assert tf.constant(value).dtype == dtype


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(1.5, tf.int32), ("a", tf.float32), (1, tf.bool)],
)
def test_value_that_does_not_fit_its_type_is_refused(graph, value, dtype):
    with pytest.raises(TypeError):
        tf.constant(value, dtype)


def test_truth_values_are_numbers_where_numbers_are_wanted(graph):
    x = tf.constant([1, 2])
    with tf.Session() as sess:
        assert sess.run([tf.constant(True, tf.int64), x + True]) == [1, pytest.approx([2, 3])]
        assert sess.run(tf.constant([False, 1.5])).tolist() == [0.0, 1.5]


def test_ragged_and_none_values_are_refused(graph):
    with pytest.raises(ValueError, match="rectangular|dense"):
        tf.constant([[1], [1, 2]])
    with pytest.raises(ValueError, match="None values not supported"):
        tf.constant(None)


def test_list_with_tensors_becomes_a_pack(graph):
    x = tf.placeholder(tf.float32, [])
    packed = tf.convert_to_tensor([x, 2.0])
    assert packed.op.type == "Pack"
    assert packed.shape.as_list() == [2]


def test_constant_does_not_follow_later_changes_of_the_array(graph, session):
    array = np.zeros(2, np.float32)
    c = tf.constant(array)
    array[:] = 5
    assert session.run(c).tolist() == [0, 0]


def test_each_op_remembers_the_line_that_made_it(graph):
    c = tf.constant(1)
    assert c.op.source_line.startswith(__file__)
    assert c.op.traceback[-1][2] == "test_each_op_remembers_the_line_that_made_it"


def test_shape_mismatch_names_op_shapes_and_line(graph):
    with pytest.raises(
        ValueError, match=r"Dimensions must be equal, but are 3 and 2 for 'MatMul' \(op: 'MatMul'\)"
    ) as e:
        tf.matmul(tf.ones([2, 3]), tf.ones([2, 3]))
    assert "[2,3], [2,3]" in str(e.value)
    assert "test_graph.py" in str(e.value)


def test_mixed_types_are_refused(graph):
    with pytest.raises((TypeError, ValueError), match="int32"):
        tf.add(tf.constant(1), tf.constant(1.0))


@pytest.mark.parametrize(
    ("other", "phrase"),
    [
        ([[1.0, 2.0]], "Shapes must be equal rank, but are 1 and 2"),
        (
            [1.0, 2.0, 3.0],
            r"Dimension 0 in both shapes must be equal, but are 2 and 3. Shapes are \[2\] and \[3\].",
        ),
    ],
)
def test_shapes_that_an_operation_cannot_join_are_told_in_detail(other, phrase):
    with pytest.raises(ValueError, match=phrase):
        tf.raw_ops.ApproximateEqual(x=[1.0, 2.0], y=other)


def test_scripts_see_whether_a_graph_has_been_built(graph):
    assert len(graph._nodes_by_id.keys()) == 0
    op = tf.no_op(name="a")
    assert list(graph._nodes_by_id.values()) == [op] and graph._nodes_by_name == {"a": op}


def test_a_thread_has_a_default_graph_of_its_own():
    here, there = tf.get_default_graph(), []
    a = tf.constant(1, name="a")

    def work():
        there.append(tf.get_default_graph())
        there.append(tf.constant(2, name="a").name)
        with here.as_default():
            there.append(tf.identity(a).graph)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert there[0] is not here and there[1:] == ["a:0", here]
    assert tf.get_default_graph() is here


def test_a_device_scope_is_left_after_those_inside_it():
    graph = tf.Graph()
    outer = graph.device("/cpu:0")
    outer.__enter__()
    with graph.device("/cpu:1"):
        with pytest.raises(RuntimeError, match="scope nesting"):
            outer.__exit__(None, None, None)


def test_what_no_message_can_hold_is_refused():
    half = np.broadcast_to(np.float32([0, 1]), (1 << 27, 2))
    with tf.Graph().as_default() as graph:
        with pytest.raises(ValueError, match="larger than 2GB"):
            tf.constant(np.broadcast_to(np.float32([0, 1]), (1 << 28, 2)))
        for _ in range(2):
            tf.constant(half)
        with pytest.raises(ValueError, match="GraphDef cannot be larger than 2GB"):
            graph.as_graph_def()


def test_a_copy_of_a_tensor_is_the_tensor():
    x = tf.constant(1.0)
    assert copy.copy(x) is x


def test_a_tensor_of_unknown_shape_is_printed_without_one():
    assert str(tf.placeholder(tf.int32, name="x")) == 'Tensor("x:0", dtype=int32)'
    assert str(tf.placeholder(tf.int32, [None, 2], name="y")) == 'Tensor("y:0", shape=(?, 2), dtype=int32)'
