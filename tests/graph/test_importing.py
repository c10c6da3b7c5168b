"""What `tf.import_graph_def` makes of a GraphDef, and what it refuses."""

import pytest
from tensorfleet.python.framework import function

import tensorfleet as tf
from tensorfleet.graph.importing import extend_graph


def graph_def_of(build):
    with tf.Graph().as_default() as graph:
        build()
    return graph.as_graph_def()


def two_placed_together():
    a = tf.constant(1.0, name="a")
    with tf.colocate_with(a.op):
        tf.constant(2.0, name="b")


def test_a_name_that_is_taken_gets_a_number_and_a_scope_with_operations_is_taken():
    nodes = graph_def_of(lambda: tf.constant(1, name="layer"))
    assert [tf.import_graph_def(nodes, name="", return_elements=["layer"])[0].name for _ in range(3)] == [
        "layer",
        "layer_1",
        "layer_2",
    ]
    with tf.Graph().as_default():
        with tf.name_scope("layer"):
            tf.constant(1)
        assert tf.import_graph_def(nodes, name="", return_elements=["layer"])[0].name == "layer_1"
    with tf.Graph().as_default():
        with tf.name_scope("layer"):
            pass
        assert tf.import_graph_def(nodes, name="", return_elements=["layer"])[0].name == "layer"


def test_groups_follow_the_operations_they_name():
    nodes = graph_def_of(two_placed_together)
    tf.import_graph_def(nodes, name="")
    (again,) = tf.import_graph_def(nodes, name="", return_elements=["b"])
    assert again.name == "b_1" and again.colocation_groups() == [b"loc:@a_1"]
    (inside,) = tf.import_graph_def(nodes, name="part", return_elements=["b"])
    assert inside.colocation_groups() == [b"loc:@part/a"]


def test_an_operation_is_on_the_device_of_the_one_it_is_placed_with():
    nodes = graph_def_of(two_placed_together)
    with tf.device(lambda op: "/job:ps/task:1" if op.name.endswith("a") else "/job:worker"):
        a, b = tf.import_graph_def(nodes, return_elements=["a", "b"])
    assert (a.device, b.device) == ("/job:ps/task:1", "/job:ps/task:1")
    nodes.node[1].device = "/device:CPU:0"
    _, b = tf.import_graph_def(nodes, return_elements=["a", "b"])
    assert b.device == ""


def test_a_group_of_nothing_is_refused():
    nodes = graph_def_of(two_placed_together)
    del nodes.node[0]
    with pytest.raises(ValueError, match="Node 'b' expects to be colocated with unknown node 'a'"):
        tf.import_graph_def(nodes)


def test_names_may_be_bytes_and_an_unused_output_may_be_mapped():
    nodes = graph_def_of(lambda: tf.identity(tf.placeholder(tf.float32, name="x"), name="y"))
    seven = tf.constant(7.0)
    (y,) = tf.import_graph_def(nodes, input_map={b"x": seven}, return_elements=[b"y"])
    assert y.inputs[0] is seven
    tf.import_graph_def(nodes, input_map={"y:0": seven})
    with pytest.raises(ValueError, match=r"not found in graph_def: \[y:1\]"):
        tf.import_graph_def(nodes, input_map={"y:1": seven})


def test_values_for_inputs_become_tensors_inside_the_scope():
    nodes = graph_def_of(lambda: tf.identity(tf.placeholder(tf.float32, name="x"), name="y"))
    (y,) = tf.import_graph_def(nodes, input_map={"x": 3.0}, return_elements=["y"], name="net")
    assert y.inputs[0].name == "net/_inputs/Const:0"
    with pytest.raises(ValueError, match="requires a non-empty `name`"):
        tf.import_graph_def(nodes, input_map={"x": 3.0}, name="")


@pytest.mark.parametrize(
    ("elements", "error", "message"),
    [
        (["z"], ValueError, "Requested return node 'z' not found in graph def"),
        (["z:0"], ValueError, "Requested return tensor 'z:0' not found in graph def"),
        (["x:1"], ValueError, r"Invalid return output 1 of node 'x', which has 1 output\(s\)"),
        (["x:y:0"], ValueError, "Cannot convert 'x:y:0' to a tensor name"),
        ([3], TypeError, "return_elements must be a list of strings"),
    ],
)
def test_what_is_to_be_returned_must_be_there(elements, error, message):
    nodes = graph_def_of(lambda: tf.constant(1.0, name="x"))
    with pytest.raises(error, match=message):
        tf.import_graph_def(nodes, return_elements=elements)


def test_messages_about_inputs_name_types_as_tensorflow_does():
    nodes = graph_def_of(lambda: tf.nn.relu(tf.placeholder(tf.float32, name="x"), name="y"))
    with pytest.raises(ValueError, match="was passed double from Const:0 incompatible with expected float."):
        tf.import_graph_def(nodes, input_map={"x": tf.constant(1.0, tf.float64)})
    del nodes.node[1].input[:]
    with pytest.raises(ValueError, match="expected inputs 'float' do not match 0 inputs specified"):
        tf.import_graph_def(nodes)


def test_versions_of_what_is_imported_are_kept_and_checked():
    nodes = graph_def_of(lambda: tf.constant(1.0))
    nodes.versions.producer = 40
    nodes.versions.min_consumer = 12
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(nodes)
    assert graph.as_graph_def().versions == nodes.versions
    with tf.Graph().as_default() as graph:
        tf.constant(2.0)
        nodes.versions.producer = 1000
        tf.import_graph_def(nodes)
    assert (graph.graph_def_versions.producer, graph.graph_def_versions.min_consumer) == (134, 12)
    nodes.versions.min_consumer = 1000
    with pytest.raises(ValueError, match="min consumer version 1000 above current version 134"):
        tf.import_graph_def(nodes)
    nodes.versions.min_consumer = 0
    nodes.versions.producer = -1
    with pytest.raises(ValueError, match="producer version -1 below min producer 0"):
        tf.import_graph_def(nodes)


def test_written_shapes_narrow_what_is_known_or_are_refused():
    def build():
        x = tf.identity(tf.placeholder(tf.float32, name="x"), name="y")
        x.set_shape([2, 3])
        tf.nn.l2_loss(x, name="loss")

    with tf.Graph().as_default() as graph:
        build()
    nodes = graph.as_graph_def(add_shapes=True)
    (y,) = tf.import_graph_def(nodes, return_elements=["y:0"])
    assert y.shape.as_list() == [2, 3]
    nodes.node[2].attr["_output_shapes"].list.shape[0].dim.add(size=43)
    with pytest.raises(ValueError, match="inconsistent with the GraphDef"):
        tf.import_graph_def(nodes)


def test_the_gradient_of_a_function_travels_with_it(session):
    @function.Defun(tf.float32, tf.float32)
    def backwards(x, dy):
        return x * 100.0 + dy

    @function.Defun(tf.float32, grad_func=backwards)
    def forwards(x):
        return x * 2.0

    nodes = graph_def_of(lambda: forwards(tf.placeholder(tf.float32, name="x"), name="y"))
    x, y = tf.import_graph_def(nodes, return_elements=["x:0", "y:0"], name="")
    again = tf.get_default_graph().as_graph_def()
    assert session.run(tf.gradients(y, x), {x: 3.0}) == [301.0]
    with tf.Graph().as_default(), tf.Session() as other:
        x, y = tf.import_graph_def(again, return_elements=["x:0", "y:0"])
        assert other.run([y, *tf.gradients(y, x)], {x: 3.0}) == [6.0, 301.0]


def test_a_node_without_an_attribute_that_has_no_default_is_refused():
    nodes = graph_def_of(lambda: tf.placeholder(tf.float32, name="x"))
    del nodes.node[0].attr["dtype"]
    with pytest.raises(ValueError, match="NodeDef missing attr 'dtype' from Op<name=Placeholder"):
        tf.import_graph_def(nodes)


def test_groups_of_operations_that_are_no_list_are_refused():
    nodes = graph_def_of(lambda: tf.constant(1.0, name="x"))
    nodes.node[0].attr["_class"].s = b"loc:@y"
    with pytest.raises(ValueError, match="'import/x' has an attribute '_class' that is no list of strings"):
        tf.import_graph_def(nodes)


@pytest.mark.parametrize(("version", "rank"), [(0, None), (21, None), (22, 0)])
def test_old_scalar_placeholders_may_be_of_any_shape(version, rank):
    nodes = graph_def_of(lambda: tf.placeholder(tf.float32, [], name="x"))
    nodes.versions.producer = version
    (x,) = tf.import_graph_def(nodes, return_elements=["x:0"])
    assert x.shape.rank == rank


def test_what_nodes_leave_out_is_written_into_the_message():
    given = tf.GraphDef()
    node = given.node.add(name="p", op="Placeholder")
    node.attr["dtype"].type = tf.float32.as_datatype_enum
    with tf.Graph().as_default():
        tf.import_graph_def(given)
    assert node.attr["shape"].shape.unknown_rank


def test_a_message_without_nodes_says_who_contributed():
    given = tf.GraphDef()
    given.versions.producer = 8
    with tf.Graph().as_default() as graph:
        tf.constant(1)
        tf.import_graph_def(given)
        assert graph.graph_def_versions.producer == 8


def test_loops_whose_values_change_their_shape_are_imported():
    with tf.Graph().as_default() as built:
        tf.while_loop(
            lambda x: tf.size(x) < 8,
            lambda x: tf.concat([x, [0]], 0) if x.shape.rank is None else tf.constant([1] * 9),
            [tf.constant([1, 2])],
            shape_invariants=[tf.TensorShape([None])],
            name="grow",
        )
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(built.as_graph_def(), name="")
        with tf.Session(graph=graph) as session:
            assert session.run("grow/Exit:0").tolist() == [1] * 9


def test_nodes_that_keep_their_names_must_be_new_to_the_graph():
    with tf.Graph().as_default() as graph:
        tf.no_op(name="a")
        message = graph.as_graph_def()
        with pytest.raises(ValueError, match="Duplicate node name in graph: 'a'"):
            extend_graph(graph, message, {})
        assert [op.name for op in graph.get_operations()] == ["a"]
