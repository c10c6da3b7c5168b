"""Branches and loops: what runs, in which order, and what is refused."""

import collections

import numpy as np
import pytest

import tensorfleet as tf


def test_only_the_branch_taken_runs(session):
    calls = []
    p = tf.placeholder(tf.bool, [])

    def note(name):
        return tf.py_func(lambda: calls.append(name) or np.float32(1), [], tf.float32)

    y = tf.cond(p, lambda: note("yes") + 1.0, lambda: note("no") + 2.0)
    assert session.run(y, {p: True}) == 2
    assert session.run(y, {p: False}) == 3
    assert calls == ["yes", "no"]


def test_only_the_branch_taken_assigns():
    for resource in (False, True):
        v = tf.get_variable(f"v{resource}", initializer=0.0, use_resource=resource)
        p = tf.placeholder(tf.bool, [])
        y = tf.cond(p, lambda v=v: v.assign_add(1.0), lambda v=v: tf.identity(v) * 100.0)
        with tf.Session() as s:
            s.run(tf.global_variables_initializer())
            assert s.run(y, {p: True}) == 1
            assert s.run(y, {p: False}) == 100
            assert s.run(v) == 1


def test_a_branch_of_operations_gives_something_to_run(session):
    v = tf.get_variable("v", initializer=0.0)
    p = tf.placeholder(tf.bool, [])
    op = tf.cond(p, lambda: tf.group(v.assign(5.0)), lambda: tf.no_op())
    session.run(v.initializer)
    session.run(op, {p: False})
    assert session.run(v) == 0
    session.run(op, {p: True})
    assert session.run(v) == 5


def test_an_uninitialized_variable_may_be_in_the_branch_not_taken(session):
    v = tf.get_variable("v", initializer=3.0)
    y = tf.cond(tf.is_variable_initialized(v), lambda: v.read_value(), lambda: tf.constant(-1.0))
    assert session.run(y) == -1
    session.run(v.initializer)
    assert session.run(y) == 3


def test_what_waits_for_a_cond_waits_for_the_branch_taken(session):
    v = tf.get_variable("v", initializer=1.0, use_resource=True)
    p = tf.placeholder(tf.bool, [])
    done = tf.cond(p, lambda: v.assign(7.0), lambda: v.assign(8.0))
    with tf.control_dependencies([done]):
        y = v.read_value() * 2.0
    session.run(v.initializer)
    assert session.run(y, {p: True}) == 14
    assert session.run(y, {p: False}) == 16


def test_a_variable_made_in_a_branch_is_initialized_outside(session):
    p = tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: tf.layers.dense(tf.ones([1, 2]), 3), lambda: tf.zeros([1, 3]))
    session.run(tf.global_variables_initializer())
    assert session.run(y, {p: False}).tolist() == [[0, 0, 0]]
    assert session.run(y, {p: True}).shape == (1, 3)


def test_strings_pass_through_branches(session):
    p = tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: tf.constant("a"), lambda: tf.string_join([tf.constant("b"), "c"]))
    assert session.run(y, {p: True}) == b"a"
    assert session.run(y, {p: False}) == b"bc"


def test_branches_may_have_different_shapes(session):
    p = tf.placeholder(tf.bool, [])
    x = tf.placeholder(tf.float32, [None])
    y = tf.reduce_sum(tf.cond(p, lambda: tf.concat([x, x], 0), lambda: x))
    for _ in range(8):
        assert session.run(y, {p: True, x: np.ones(100000)}) == 200000
        assert session.run(y, {p: False, x: np.ones(100000)}) == 100000


def test_dropout_in_a_branch_draws_only_when_taken():
    tf.set_random_seed(3)
    p = tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: tf.random_uniform([3], seed=5), lambda: tf.zeros([3]))
    with tf.Session() as s:
        first = s.run(y, {p: True})
        s.run(y, {p: False})
        second = s.run(y, {p: True})
    with tf.Session() as s:
        assert np.array_equal(s.run(y, {p: True}), first)
        assert np.array_equal(s.run(y, {p: True}), second)


def test_cond_refuses_what_is_no_condition_or_function():
    with pytest.raises(TypeError, match="pred must not be a Python bool"):
        tf.cond(True, lambda: 1, lambda: 2)
    p = tf.placeholder(tf.bool, [])
    with pytest.raises(TypeError, match="true_fn must be callable"):
        tf.cond(p, 1, lambda: 2)
    with pytest.raises(TypeError, match="argument required"):
        tf.cond(p, lambda: 1)
    with pytest.raises(TypeError, match="may not be set simultaneously"):
        tf.cond(p, lambda: 1, lambda: 2, fn1=lambda: 3)


def test_branches_must_return_the_same_structure():
    p = tf.placeholder(tf.bool, [])
    with pytest.raises(ValueError, match="The two structures don't have the same nested structure"):
        tf.cond(p, lambda: (tf.constant(1), tf.constant(2)), lambda: (tf.constant(1),))
    with pytest.raises(ValueError, match="must have the same type"):
        tf.cond(p, lambda: tf.constant(1), lambda: tf.constant(1.0))


def test_a_list_of_one_stays_a_list_only_if_strict():
    p = tf.placeholder(tf.bool, [])
    assert isinstance(tf.cond(p, lambda: [tf.constant(1)], lambda: [tf.constant(2)]), tf.Tensor)
    assert isinstance(tf.cond(p, lambda: [tf.constant(1)], lambda: [tf.constant(2)], strict=True), list)


def test_what_is_inside_cannot_be_fetched_or_fed(graph):
    p = tf.placeholder(tf.bool, [])
    inner = []
    tf.cond(p, lambda: inner.append(tf.constant(1.0) + 1.0) or inner[0], lambda: tf.constant(2.0))
    assert not graph.is_fetchable(inner[0])
    assert not graph.is_feedable(inner[0])
    with tf.Session() as s, pytest.raises(ValueError, match="has been marked as not fetchable"):
        s.run(inner[0], {p: True})


def test_case_takes_the_first_that_holds(session):
    x = tf.placeholder(tf.int32, [])
    y = tf.case(
        [(x > 10, lambda: tf.constant("big")), (x > 5, lambda: tf.constant("middle"))],
        default=lambda: tf.constant("small"),
    )
    assert [session.run(y, {x: v}) for v in (20, 7, 1)] == [b"big", b"middle", b"small"]


def test_case_without_a_default_fails_when_none_holds(session):
    x = tf.placeholder(tf.int32, [])
    y = tf.case([(x > 10, lambda: tf.constant(1)), (x > 5, lambda: tf.constant(2))])
    assert session.run(y, {x: 20}) == 1
    assert session.run(y, {x: 7}) == 2
    with pytest.raises(tf.errors.InvalidArgumentError, match="None of conditions evaluated as True"):
        session.run(y, {x: 1})


def test_exclusive_case_fails_when_two_hold(session):
    x = tf.placeholder(tf.int32, [])
    y = tf.case({x > 10: lambda: tf.constant(1), x > 5: lambda: tf.constant(2)}, exclusive=True)
    assert session.run(y, {x: 7}) == 2
    with pytest.raises(tf.errors.InvalidArgumentError, match="more than 1 conditions"):
        session.run(y, {x: 20})


def test_smart_cond_decides_while_building():
    from tensorfleet.python.framework import smart_cond

    assert smart_cond.smart_cond(True, lambda: 1, lambda: 2) == 1
    assert smart_cond.smart_cond(tf.constant(False), lambda: 1, lambda: 2) == 2
    assert isinstance(
        smart_cond.smart_cond(tf.placeholder(tf.bool, []), lambda: tf.constant(1), lambda: tf.constant(2)),
        tf.Tensor,
    )


def test_step_stats_and_placement_of_a_loop():
    i = tf.while_loop(lambda i: i < 3, lambda i: i + 1, [tf.constant(0)])
    with tf.Session(config=tf.ConfigProto(log_device_placement=True)) as s:
        meta = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
        assert s.run(i, options=options, run_metadata=meta) == 3
    names = [n.node_name for d in meta.step_stats.dev_stats for n in d.node_stats]
    assert any("while" in n for n in names)


def test_both_lives_of_a_fed_condition_draw_alike(monkeypatch):
    from tensorfleet.runtime.segments import trial

    tf.set_random_seed(3)
    p, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [64, 64])
    y = tf.reduce_sum(tf.cond(p, lambda: tf.nn.dropout(tf.matmul(x, x), 0.5, seed=5), lambda: x))
    turns = [True, False, True, True, False, True]
    results = []
    for eager in (False, True):
        monkeypatch.setattr(trial, "_COLD_RUNS", 0 if eager else 100)
        monkeypatch.setattr(trial, "_MIN_NUMPY_SECONDS", 0 if eager else 1e9)
        monkeypatch.setattr(trial, "_COMPILE_AFTER_SECONDS", 0 if eager else 1e9)
        with tf.Session() as s:
            results.append([s.run(y, {p: turn, x: np.ones([64, 64])}) for turn in turns])
    np.testing.assert_allclose(results[0], results[1], rtol=1e-5)


def test_with_dependencies_stays_beside_its_tensor():
    from tensorfleet.ops.array.basic import with_dependencies

    with tf.Graph().as_default():
        with tf.device("/job:ps"):
            v = tf.Variable([0.0], name="v")
        with tf.device("/job:worker"):
            after = with_dependencies([v.initializer], output_tensor=v, name="after")
        assert (after.op.name, after.device, after.op.colocation_groups()) == (
            "after",
            "/job:ps",
            [b"loc:@v"],
        )
        assert after.op.control_inputs == [v.initializer]


def test_cond_joins_slices_with_indices_of_two_types(session):
    short, long = tf.constant([0]), tf.constant([1], tf.int64)
    pred = tf.placeholder(tf.bool, [])
    result = tf.cond(
        pred,
        lambda: tf.IndexedSlices(tf.constant([1.0]), short),
        lambda: tf.IndexedSlices(tf.constant([2.0]), long),
    )
    assert result.indices.dtype == tf.int64
    assert [session.run(result.indices, {pred: p}).tolist() for p in (True, False)] == [[0], [1]]


def test_cond_gives_ragged_tensors(session):
    rows = tf.ragged.constant([[1, 2], [3]])
    pred = tf.placeholder(tf.bool, [])
    result = tf.cond(pred, lambda: tf.concat([rows, rows], axis=0), lambda: rows)
    assert session.run(result, {pred: True}).to_list() == [[1, 2], [3], [1, 2], [3]]
    assert session.run(result, {pred: False}).to_list() == [[1, 2], [3]]


def test_switch_and_merge_take_slices(session):
    from tensorfleet.python.ops import control_flow_ops

    slices = tf.IndexedSlices(tf.constant([1.0, 2.0]), tf.constant([3, 5]))
    merged = control_flow_ops.merge(control_flow_ops.switch(slices, tf.constant(True)))
    assert session.run(merged.output.indices).tolist() == [3, 5]
    assert session.run(merged.value_index) == 1


def test_the_reference_of_a_variable_goes_through_identity_and_switch(session):
    from tensorfleet.python.ops import control_flow_ops

    v = tf.Variable(7)
    again = control_flow_ops._Identity(v)
    assert (again.op.type, again.dtype) == ("RefIdentity", tf.int32._as_ref)
    session.run(v.initializer)
    assert session.run(tf.assign(again, 9)) == 9
    taken = control_flow_ops._SwitchRefOrTensor(v._ref(), tf.constant(True))[1]
    assert session.run(tf.assign_add(taken, 1)) == 10
    assert session.run(v) == 10


def test_a_branch_must_return_something():
    with pytest.raises(ValueError, match="true_fn must have a return value"):
        tf.cond(tf.constant(True), lambda: None, lambda: None)


def test_one_branch_may_return_a_list_of_one_and_the_other_what_is_in_it():
    pred = tf.placeholder(tf.bool, [])
    mixed = tf.cond(pred, lambda: [tf.constant(1)], lambda: tf.constant(2))
    deeper = tf.cond(pred, lambda: [[tf.constant(1)]], lambda: [[tf.constant(2)]])
    with tf.Session() as sess:
        assert sess.run([mixed, deeper], {pred: False}) == [2, 2]
    with pytest.raises(ValueError, match="same nested structure"):
        tf.cond(pred, lambda: [tf.constant(1)], lambda: tf.constant(2), strict=True)


def test_branches_must_return_something():
    with pytest.raises(ValueError, match="at least one result"):
        tf.cond(tf.constant(True), list, list)


def test_the_gradient_of_a_switch_alone_is_there_for_the_branch_taken(session):
    x = tf.constant(2.0)
    for_false, for_true = tf.python.ops.control_flow_ops.switch(x, tf.constant(True))
    assert session.run([tf.gradients(for_true, x)[0], tf.gradients(for_false, x)[0]]) == [1.0, 0.0]


def test_a_named_tuple_of_one_tensor_comes_alone_from_cond():
    One = collections.namedtuple("One", "a")
    result = tf.cond(tf.placeholder(tf.bool), lambda: One(tf.constant(1)), lambda: One(tf.constant(2)))
    assert isinstance(result, tf.Tensor)


def test_functions_of_known_predicates_are_called_at_once(session):
    smart_case = tf.python.framework.smart_cond.smart_case
    never = lambda: pytest.fail("its predicate is false")  # noqa: E731
    assert session.run(smart_case([(False, never), (True, lambda: tf.constant(5))], default=never)) == 5
    x = tf.placeholder(tf.int32)
    result = smart_case([(False, never), (x > 1, lambda: tf.constant(1))], default=lambda: tf.constant(2))
    assert session.run([result, result], {x: 3}) == [1, 1] and session.run(result, {x: 0}) == 2


def _selected(index, variables):
    return tf.python.ops.control_flow_ops.ref_select(index, variables)


def test_one_of_several_variables_is_selected_for_reading(session):
    a, b = tf.Variable([1.0, 2.0], use_resource=False), tf.Variable([3.0, 4.0], use_resource=False)
    index = tf.placeholder(tf.int32)
    chosen = _selected(index, [a, b])
    with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value Variable"):
        session.run(chosen, {index: 0})
    session.run(tf.global_variables_initializer())
    for i, wanted in enumerate([[1, 2], [3, 4]]):
        assert session.run(chosen, {index: i}).tolist() == wanted
        assert session.run(chosen * 2.0, {index: i}).tolist() == [2.0 * w for w in wanted]
    with tf.control_dependencies([tf.assign_add(b, [1.0, 1.0])]):
        later = tf.identity(_selected(index, [a, b]))
    assert session.run(later, {index: 1}).tolist() == [4, 5]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"in the range \[0, 2\) but got 2"):
        session.run(chosen, {index: 2})
    with pytest.raises(TypeError, match="is for reading"):
        tf.assign(chosen, [0.0, 0.0])


def test_a_selected_variable_has_a_shape_that_all_have():
    def of(*shapes):
        return [
            tf.Variable(tf.placeholder(tf.float32, s), validate_shape=False, use_resource=False)
            for s in shapes
        ]

    known = [tf.Variable([[1.0, 2.0]], use_resource=False) for _ in range(2)]
    other = tf.Variable([[1.0], [2.0]], use_resource=False)
    assert _selected(0, known).shape.as_list() == [1, 2]
    for variables in ([known[0], other], of(None, None), [known[0], *of([None, 2])]):
        assert _selected(0, variables).shape.rank is None
