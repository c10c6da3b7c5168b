"""Names are an interface: checkpoints and fetches by name depend on them."""

import pytest

import tensorfleet as tf


def test_repeated_names_get_numbers(graph):
    names = [tf.constant(1, name="c").name for _ in range(3)]
    assert names == ["c:0", "c_1:0", "c_2:0"]


def test_names_differ_even_without_regard_to_case(graph):
    assert tf.constant(1, name="Foo").op.name == "Foo"
    assert tf.constant(1, name="foo").op.name == "foo_1"


def test_number_already_taken_is_skipped(graph):
    tf.constant(1, name="a")
    tf.constant(1, name="a_1")
    assert tf.constant(1, name="a").op.name == "a_2"


def test_operator_puts_its_constant_inside_its_scope(graph):
    x = tf.placeholder(tf.float32, [])
    y = x + 1.0
    assert y.op.name == "add"
    assert y.op.inputs[1].op.name == "add/y"


def test_scope_is_unique_and_can_be_reentered(graph):
    with tf.name_scope("s") as first:
        tf.constant(1, name="a")
    with tf.name_scope("s") as second:
        pass
    assert (first, second) == ("s/", "s_1/")
    with tf.name_scope(first):
        assert tf.constant(1, name="a").op.name == "s/a_1"


def test_empty_scope_returns_to_the_root(graph):
    with tf.name_scope("a"), tf.name_scope(None):
        assert tf.constant(1, name="b").op.name == "b"


def test_variable_names_of_both_forms(graph):
    tf.Variable(1.0, name="v")
    tf.Variable(1.0, name="r", use_resource=True)
    names = [op.name for op in graph.get_operations()]
    assert names[:4] == ["v/initial_value", "v", "v/Assign", "v/read"]
    assert names[4:] == [
        "r/initial_value",
        "r",
        "r/IsInitialized/VarIsInitializedOp",
        "r/Assign",
        "r/Read/ReadVariableOp",
    ]


def test_get_variable_keeps_its_name_while_ops_get_a_new_scope(graph):
    with tf.variable_scope("a"):
        tf.get_variable("w", [1])
    with tf.variable_scope("a", reuse=True):
        assert tf.get_variable("w", [1]).name == "a/w:0"
        assert tf.constant(1, name="c").op.name == "a_1/c"


def test_default_name_of_a_variable_scope_counts_up(graph):
    names = []
    for _ in range(2):
        with tf.variable_scope(None, "layer"):
            names.append(tf.get_variable("w", [1]).name)
    assert names == ["layer/w:0", "layer_1/w:0"]


def test_invalid_name_is_refused(graph):
    with pytest.raises(ValueError, match="not a valid"):
        tf.constant(1, name="a b")


def test_lookup_by_name(graph):
    c = tf.constant(1, name="c")
    assert graph.get_tensor_by_name("c:0") is c
    assert graph.get_operation_by_name("c") is c.op
    with pytest.raises(KeyError, match="refers to a Tensor which does not exist"):
        graph.get_tensor_by_name("d:0")
    with pytest.raises(KeyError, match="only has 1 outputs"):
        graph.get_tensor_by_name("c:1")
    with pytest.raises(ValueError, match="refers to an Operation, not a Tensor"):
        graph.get_tensor_by_name("c")


def test_a_final_name_is_given_once(graph):
    graph.create_op("NoOp", [], name="a/b/")
    with pytest.raises(ValueError, match="Duplicate node name in graph: 'a/b'"):
        graph.create_op("NoOp", [], name="a/b/")
    assert [op.name for op in graph.get_operations()] == ["a/b"]
