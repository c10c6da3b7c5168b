"""Branches and loops in MetaGraphs."""

import numpy as np
import pytest

import tensorfleet as tf


def model():
    """A loop with a branch and another loop in it, and branches in a branch."""
    v = tf.Variable(2.0, name="v")

    def inner(x):
        return tf.while_loop(lambda j, y: j < 3, lambda j, y: (j + 1, y + x * v), [0, 0.0])[1]

    def body(i, x):
        return i + 1, tf.cond(i > 1, lambda: inner(x), lambda: x * 1.5)

    _, looped = tf.while_loop(lambda i, x: i < 4, body, [0, v * 1.0], maximum_iterations=9)
    small = tf.cond(v > 1.0, lambda: looped - v, lambda: looped)
    return tf.identity(tf.cond(looped > 100.0, lambda: looped * v, lambda: small), name="out")


def value_and_gradient(scope=""):
    graph = tf.get_default_graph()
    out, v = graph.get_tensor_by_name(f"{scope}out:0"), graph.get_tensor_by_name(f"{scope}v:0")
    results = [out, *tf.gradients(out, v)]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(results)


@pytest.mark.parametrize("scope", [None, "again"])
def test_an_imported_graph_has_the_same_gradients(scope):
    model()
    meta = tf.train.export_meta_graph()
    expected = value_and_gradient()
    with tf.Graph().as_default():
        tf.train.import_meta_graph(meta, import_scope=scope)
        np.testing.assert_allclose(value_and_gradient(f"{scope}/" if scope else ""), expected)


def test_a_graph_imported_twice_holds_two_loops():
    model()
    meta = tf.train.export_meta_graph()
    with tf.Graph().as_default() as graph:
        for scope in ("a", "b"):
            tf.train.import_meta_graph(meta, import_scope=scope)
        enters = [op for op in graph.get_operations() if op.type == "Enter"]
        assert all(op.get_attr("frame_name").startswith(op.name[:2].encode()) for op in enters)
        total = graph.get_tensor_by_name("a/out:0") + graph.get_tensor_by_name("b/out:0")
        assert None not in tf.gradients(total, tf.trainable_variables())


def test_contexts_survive_being_written_and_read():
    model()
    meta = tf.train.export_meta_graph()
    assert len(meta.collection_def["while_context"].bytes_list.value) == 1  # the inner one is in it
    with tf.Graph().as_default() as graph:
        tf.train.import_meta_graph(meta)
        assert tf.train.export_meta_graph().collection_def == meta.collection_def
        loop = graph.get_operation_by_name("while/cond/while/add")._get_control_flow_context()
        assert loop.name == "while/cond/while/while_context"
        assert loop.outer_context.branch == 1
        assert loop.outer_context.outer_context.IsWhileContext()


def test_only_contexts_of_the_scope_are_exported_with_it():
    x = tf.placeholder(tf.float32, [], name="x")
    for name in ("one", "two"):
        with tf.name_scope(name):
            tf.cond(x > 0.0, lambda: x, lambda: -x)
    first, *_ = tf.get_collection(tf.GraphKeys.COND_CONTEXT)
    assert first.to_proto("two") is None
    assert first.to_proto("one").context_name == "cond/cond_text"
    assert first.to_proto().pred_name == "one/cond/pred_id:0"


def test_a_loop_exported_from_the_scope_it_was_imported_to_is_the_same():
    model()
    meta = tf.train.export_meta_graph()
    with tf.Graph().as_default():
        tf.train.import_meta_graph(meta, import_scope="inside")
        again = tf.train.export_meta_graph(export_scope="inside")
    frames = [{n.name: n.attr["frame_name"].s for n in m.graph_def.node} for m in (meta, again)]
    assert frames[0] == frames[1]
    assert again.collection_def["while_context"] == meta.collection_def["while_context"]
