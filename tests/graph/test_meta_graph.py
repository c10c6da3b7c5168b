"""Parts of graphs as MetaGraphs."""

import pytest
from tensorfleet.python.framework import meta_graph

import tensorfleet as tf


def _two_layers():
    x = tf.constant([[1.0, 2.0]], name="x")
    with tf.name_scope("one"):
        w = tf.Variable([[1.0], [2.0]], name="w")
        y = tf.matmul(x, w, name="y")
    with tf.name_scope("two"):
        return tf.multiply(y, 3.0, name="z")


def test_a_scope_is_exported_with_its_variables_and_imported_under_another():
    with tf.Graph().as_default() as graph:
        _two_layers()
        meta, variables = meta_graph.export_scoped_meta_graph(graph=graph, export_scope="one")
    assert {name: v.name for name, v in variables.items()} == {"w:0": "one/w:0"}
    assert "$unbound_inputs_x" in meta.collection_def["unbound_inputs"].bytes_list.value[0].decode()
    with tf.Graph().as_default() as graph:
        with pytest.raises(ValueError, match="unbound inputs"):
            meta_graph.import_scoped_meta_graph(meta, import_scope="new")
        given = tf.constant([[5.0, 7.0]])
        new = meta_graph.import_scoped_meta_graph(
            meta, import_scope="new", input_map={"$unbound_inputs_x": given}
        )
        assert {name: v.name for name, v in new.items()} == {"w:0": "new/w:0"}
        with tf.Session() as session:
            session.run(new["w:0"].initializer)
            assert session.run("new/y:0") == [[19.0]]


def test_a_scope_is_copied_beside_itself_but_not_onto_itself(session):
    with tf.name_scope("one"):
        tf.identity(tf.Variable(4.0, name="w"), name="y")
    copies = meta_graph.copy_scoped_meta_graph("one", "two")
    with pytest.raises(ValueError, match="need to be different"):
        meta_graph.copy_scoped_meta_graph("one", "one")
    session.run(copies["w:0"].initializer)
    assert session.run("two/y:0") == 4.0


def test_a_variable_of_several_collections_is_one_object_after_import():
    with tf.Graph().as_default():
        tf.Variable(1.0)
        meta = tf.train.export_meta_graph()
    with tf.Graph().as_default():
        tf.train.import_meta_graph(meta)
        assert tf.global_variables()[0] is tf.trainable_variables()[0]


def test_only_the_collections_that_are_wanted_are_restored():
    with tf.Graph().as_default():
        tf.Variable(1.0)
        meta, _ = meta_graph.export_scoped_meta_graph()
    with tf.Graph().as_default():
        meta_graph.import_scoped_meta_graph(
            meta, restore_collections_predicate=lambda key: key == tf.GraphKeys.TRAINABLE_VARIABLES
        )
        assert len(tf.trainable_variables()) == 1 and not tf.global_variables()


def test_attributes_with_their_default_are_left_out_on_request():
    tf.complex(tf.constant(1.0), tf.constant(2.0), name="c")
    tf.complex(tf.constant(1.0, tf.float64), tf.constant(2.0, tf.float64), name="d")
    meta, _ = meta_graph.export_scoped_meta_graph(strip_default_attrs=True)
    nodes = {node.name: node for node in meta.graph_def.node}
    assert "T" not in nodes["c"].attr and "Tout" not in nodes["c"].attr
    assert nodes["d"].attr["T"].type == tf.float64
    assert meta.meta_info_def.stripped_default_attrs


def test_a_meta_graph_says_which_ops_it_uses_functions_included():
    from tensorfleet.python.framework import function

    @function.Defun(tf.float32)
    def double(x):
        return tf.square(x)

    double(tf.constant(1.0))
    items = [op.name for op in tf.train.export_meta_graph().meta_info_def.stripped_op_list.op]
    assert "Const" in items and "Square" in items and items == sorted(items)


def test_a_part_of_a_variable_knows_its_whole_after_import():
    with tf.Graph().as_default(), tf.variable_scope("old"):
        tf.get_variable("w", [4], partitioner=tf.fixed_size_partitioner(2))
        meta, _ = meta_graph.export_scoped_meta_graph(export_scope="old")
    with tf.Graph().as_default():
        tf.train.import_meta_graph(meta, import_scope="new")
        assert tf.global_variables()[0]._save_slice_info.full_name == "new/w"


def test_a_file_that_is_no_meta_graph_is_refused(tmp_path):
    path = tmp_path / "graph.meta"
    path.write_text("}{")
    with pytest.raises(OSError, match="Cannot parse file"):
        tf.train.import_meta_graph(str(path))


def test_what_is_left_out_is_found_in_the_message_after_an_import():
    tf.complex(tf.constant(1.0), tf.constant(2.0), name="both")
    meta, _ = meta_graph.export_scoped_meta_graph(strip_default_attrs=True)
    (node,) = [n for n in meta.graph_def.node if n.name == "both"]
    assert "T" not in node.attr
    with tf.Graph().as_default():
        tf.train.import_meta_graph(meta)
    assert "T" in node.attr and "Tout" in node.attr
