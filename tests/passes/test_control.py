"""Frames made by hand, and what lies in branches that are not taken."""

import numpy as np
import pytest
from tensorfleet.python.ops import control_flow_ops, gen_control_flow_ops

import tensorfleet as tf


def test_a_frame_without_iterations_passes_values_through(session):
    halves = gen_control_flow_ops.enter(tf.constant([2.0, 6.0]), "once") / gen_control_flow_ops.enter(
        2.0, "once"
    )
    assert session.run(control_flow_ops.exit(halves)).tolist() == [1, 3]


def test_a_variable_is_assigned_inside_a_frame(session):
    v = tf.Variable(7)
    inside = control_flow_ops._Enter(v, "frame", is_constant=True)
    changed = tf.assign(inside, gen_control_flow_ops.enter(4, "frame"))
    result = control_flow_ops.exit(control_flow_ops.with_dependencies([changed], inside))
    session.run(v.initializer)
    assert session.run(result) == 4


def test_a_loop_made_by_hand_needs_no_loop_cond(session):
    limit = gen_control_flow_ops.enter(tf.constant(5), "count", is_constant=True)
    two = gen_control_flow_ops.enter(tf.constant(2), "count", is_constant=True)
    start = gen_control_flow_ops.enter(tf.constant(0), "count")
    merged = control_flow_ops.merge([start, start])[0]
    done, going = control_flow_ops.switch(merged, merged < limit)
    merged.op._update_input(1, control_flow_ops._NextIteration(going + two))
    assert session.run(control_flow_ops.exit(done)) == 6


def test_the_parts_of_a_sparse_tensor_enter_and_leave_a_frame(session):
    given = tf.SparseTensor([[0, 5]], ["word"], [10, 10])
    result = session.run(control_flow_ops.exit(control_flow_ops._Enter(given, "frame")))
    assert result.values.tolist() == [b"word"]
    assert result.indices.tolist() == [[0, 5]]


def test_the_parts_of_a_variable_in_a_branch_lead_to_it_when_they_are_merged(session):
    v = tf.Variable(3)
    session.run(v.initializer)
    merged = control_flow_ops.ref_merge(control_flow_ops.ref_switch(v._ref(), tf.constant(True)))
    assert session.run(merged.output) == 3


def test_a_result_of_the_branch_that_is_not_taken_cannot_be_fetched(session):
    p = tf.placeholder(tf.bool, [])
    when_false, _ = control_flow_ops.switch(tf.placeholder_with_default(1.0, []), p)
    result = tf.identity(when_false)
    assert session.run(result, {p: False}) == 1
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Retval\[0\] does not have value"):
        session.run(result, {p: True})


@pytest.mark.parametrize("rows", [3, 1 << 14])
@pytest.mark.parametrize("resource", [False, True])
def test_what_waits_for_a_loop_by_way_of_a_constant_runs_after_the_loop(session, resource, rows):
    v = tf.get_variable("v", initializer=np.zeros([rows, 2], np.float32), use_resource=resource)

    def body(i):
        with tf.control_dependencies([tf.scatter_add(v, [1], [[1.0, 2.0]])]):
            return i + 1

    turns = tf.identity(tf.while_loop(lambda i: i < 3, body, [0], parallel_iterations=1))
    with tf.control_dependencies([turns]):
        read = tf.gather(v, tf.constant([1]))  # which waits, as its argument was made here and waits
    session.run(v.initializer)
    assert session.run(read).tolist() == [[3.0, 6.0]]
