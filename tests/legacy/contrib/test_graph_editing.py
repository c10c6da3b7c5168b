"""Parts of a graph can be chosen, copied and rewired after the graph was made."""

import pytest
from tensorfleet.contrib import graph_editor as ge

import tensorfleet as tf


@pytest.fixture
def diamond():
    with tf.Graph().as_default() as graph:
        with tf.name_scope("given"):
            x, y = tf.constant(2.0, name="x"), tf.constant(5.0, name="y")
        with tf.name_scope("work"):
            left, right = tf.multiply(x, y, name="left"), tf.subtract(x, y, name="right")
            both = tf.add(left, right, name="both")
        yield graph, x, y, left, right, both


def value(graph, tensor):
    with tf.Session(graph=graph) as sess:
        return sess.run(tensor)


def test_operations_are_chosen_by_name_and_by_scope(diamond):
    graph, x, y, left, right, both = diamond
    assert ge.select_ops("^work/", graph=graph) == [left.op, right.op, both.op]
    assert ge.get_name_scope_ops(graph, "given") == [x.op, y.op]
    assert ge.select_ts("(?#ts)left", graph=graph) == [left]
    with pytest.raises(ValueError, match="graph"):
        ge.select_ops("^work/")


def test_walks_follow_what_depends_on_what(diamond):
    graph, x, y, left, right, both = diamond
    assert ge.get_forward_walk_ops(left.op) == [left.op, both.op]
    assert ge.get_backward_walk_ops(right.op, inclusive=False) == [x.op, y.op]
    assert ge.get_walks_intersection_ops([x], [left.op]) == [left.op]
    within = ge.get_within_boundary_ops(graph, both.op, [x.op, y.op], inclusive=False)
    assert set(within) == {both.op, left.op, right.op}


def test_a_view_tells_what_enters_and_what_leaves(diamond):
    _, x, y, left, right, both = diamond
    view = ge.sgv(left.op, right.op)
    assert (list(view.inputs), list(view.outputs)) == ([x, y], [left, right])
    assert view.consumers() == [both.op]
    assert list(view.remap_inputs([1, 0]).inputs) == [y, x]
    with pytest.raises(ValueError, match="between 0 and 1"):
        view.remap_inputs([2])
    with pytest.raises(ValueError, match="Repetition"):
        view.remap_inputs([0, 0])


def test_tensors_are_swapped_and_rerouted(diamond):
    graph, x, y, left, right, both = diamond
    assert ge.swap_ts([x], [y]) == 4
    assert list(right.op.inputs) == [y, x]
    assert value(graph, both) == 13
    assert ge.reroute_ts([left], [right], can_modify=[both.op]) == 1
    assert value(graph, both) == 20
    with graph.as_default(), pytest.raises(ValueError, match="Shapes"):
        ge.reroute_ts(tf.constant([1.0, 2.0]), left)


def test_a_part_is_cut_out_bypassed_and_connected(diamond):
    graph, x, y, left, right, both = diamond
    _, before, behind = ge.detach(ge.sgv(left.op))
    assert [t.op.type for t in (*before, *behind)] == ["Placeholder"] * 3
    assert both.op.inputs[0] is behind[0]
    ge.connect(ge.sgv(right.op), ge.sgv(both.op).remap_inputs([0]))
    assert list(both.op.inputs) == [right, right]
    ge.bypass(ge.sgv(right.op).remap_inputs([1]))
    assert value(graph, both) == 10


def test_a_copy_has_its_own_operations(diamond):
    graph, x, y, left, right, both = diamond
    other = tf.Graph()
    view, info = ge.copy(ge.sgv_scope("work", graph), other, dst_scope="copied", src_scope="work")
    assert [op.name for op in view.ops] == ["copied/left", "copied/right", "copied/both"]
    assert info.original(info.transformed(both)) is both
    with tf.Session(graph=other) as sess:
        fed = {info.transformed(x): 1.0, info.transformed(y): 3.0}
        assert sess.run(info.transformed(both), fed) == 1


def test_a_target_is_computed_with_other_tensors(diamond):
    graph, x, y, left, right, both = diamond
    with graph.as_default():
        three = tf.constant(3.0)
        result = ge.graph_replace({"both": both, "y": y}, {x: three})
    assert result["y"] is y
    assert value(graph, result["both"]) == 13
    with pytest.raises(ValueError, match="not connected"):
        ge.graph_replace(x, {both: three})


def test_loops_are_copied_whole():
    with tf.Graph().as_default() as graph:
        most = tf.placeholder(tf.int32, [])
        total = tf.while_loop(lambda i, s: i <= most, lambda i, s: (i + 1, s + i), [1, 0])[1]
    other = tf.Graph()
    _, info = ge.copy(graph, other)
    with tf.Session(graph=other) as sess:
        assert sess.run(info.transformed(total), {info.transformed(most): 4}) == 10


def test_handlers_decide_what_becomes_of_an_operation(diamond):
    graph, *_, both = diamond
    transformer = ge.Transformer()

    def doubled(info, op, new_inputs):
        result, outputs = ge.copy_op_handler(info, op, new_inputs)
        if op is not both.op:
            return result, outputs
        with info.graph_.as_default():
            return result, [outputs[0] * 2.0]

    transformer.transform_op_handler = doubled
    other = tf.Graph()
    _, info = transformer(graph, other, "", "")
    assert value(other, info.transformed(both)) == 14


def test_add_is_the_op_of_its_name_and_the_operator_the_newer_one():
    with tf.Graph().as_default():
        a = tf.constant(1.0)
        assert (tf.add(a, a).op.type, (a + a).op.type) == ("Add", "AddV2")
