"""Operations in the order of their edges, also where an old one was given a newer input."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.graph.topology import in_order
from tensorfleet.testing.cluster import free_addresses


@pytest.fixture(scope="module")
def target():
    spec = free_addresses(ps=1, worker=1)
    items = [tf.train.Server(spec, job, 0) for job in ("ps", "worker")]
    yield items[1].target
    for server in items:
        server.stop()


@pytest.fixture(params=["alone", "on a cluster"])
def run(request, target):
    """Runs fetches in a new session, after initializing variables; on a cluster the first half is on the ps."""
    there = request.param != "alone"

    def go(fetches, feeds=None):
        if there:
            ops = tf.get_default_graph().get_operations()
            for op in ops[: len(ops) // 2]:
                op._set_device("/job:ps/task:0")
        with tf.Session(target if there else "") as session:
            session.run(tf.global_variables_initializer())
            return session.run(fetches, feeds)

    yield go
    if there:
        tf.Session.reset(target)


def test_nodes_follow_their_edges_and_otherwise_their_position():
    before = {"a": {"d"}, "b": set(), "c": {"b"}, "d": set()}
    assert in_order(before, "abcd".index) == ["b", "c", "d", "a"]


class Node:
    def __init__(self, name):
        self.name = name


def test_a_cycle_is_told_without_what_only_waits_for_it():
    a, b, c, d = map(Node, "abcd")
    with pytest.raises(tf.errors.InvalidArgumentError, match="a cycle with 2 nodes, including: b, c"):
        in_order({a: set(), b: {a, c}, c: {b}, d: {c}}, [a, b, c, d].index)


def test_gradients_pass_an_old_operation_that_was_given_a_newer_input(run):
    x = tf.get_variable("x", initializer=[2.0, 3.0])
    old = tf.square(x, name="old")
    new = tf.sin(x) * 5.0
    old.op._update_input(0, new)
    value, slope = run([old, tf.gradients(old, x)[0]])
    np.testing.assert_allclose(value, (np.sin([2, 3]) * 5) ** 2, rtol=1e-5)
    np.testing.assert_allclose(slope, 50 * np.sin([2, 3]) * np.cos([2, 3]), rtol=1e-5)


def test_gradients_pass_what_the_graph_editor_rerouted(run):
    x = tf.get_variable("x", initializer=[2.0, 3.0])
    first = x * 3.0
    old = tf.reduce_sum(first * first) + tf.reduce_sum(first)
    tf.contrib.graph_editor.reroute_ts([tf.exp(x) + tf.exp(x)], [first])
    value, slope = run([old, tf.gradients(old, x)[0]])
    doubled = 2 * np.exp([2.0, 3.0])
    np.testing.assert_allclose(value, (doubled**2 + doubled).sum(), rtol=1e-5)
    np.testing.assert_allclose(slope, 2 * doubled**2 + doubled, rtol=1e-5)


def test_gradients_pass_a_newer_loop_and_a_newer_branch_before_an_old_operation(run):
    x = tf.get_variable("x", initializer=2.0)
    old = x * 10.0
    turned = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y * x), [0, x])[1]
    chosen = tf.cond(turned > 1.0, lambda: turned * 2.0, lambda: x)
    old.op._update_input(0, chosen)
    assert run([old, tf.gradients(old, x)[0]]) == [2.0**4 * 20, 4 * 2.0**3 * 20]


def test_an_operation_in_a_branch_may_be_given_a_newer_one_of_the_branch(run):
    x = tf.get_variable("x", initializer=3.0)

    def branch():
        old = tf.square(x, name="old")
        old.op._update_input(0, x * 4.0)
        return old

    y = tf.cond(x > 0.0, branch, lambda: x)
    assert run([y, tf.gradients(y, x)[0]]) == [144.0, 96.0]


@pytest.mark.parametrize("rows", [5, 1 << 15])
@pytest.mark.parametrize("resource", [False, True])
def test_an_old_assignment_may_be_given_what_a_newer_operation_reads(run, resource, rows):
    v = tf.get_variable("v", initializer=np.arange(rows * 2, dtype=np.float32), use_resource=resource)
    added = v.assign_add(tf.zeros([rows * 2]))
    update = next(op for op in tf.get_default_graph().get_operations() if op.type.startswith("AssignAdd"))
    read = tf.reduce_sum(tf.gather(v, [1, 3])) + tf.zeros([rows * 2])
    update._update_input(1, read)
    np.testing.assert_array_equal(run(added), np.arange(rows * 2) + 4)


def test_what_was_known_of_a_value_is_forgotten_with_the_input_it_came_from(run):
    x = tf.placeholder(tf.int32, [2])
    shape = tf.constant([2, 3]) + 1
    result = tf.zeros(shape)
    assert result.shape.as_list() == [3, 4]
    shape.op._update_input(0, x)
    assert tf.contrib.util.constant_value(shape) is None
    assert run(shape, {x: [7, 8]}).tolist() == [8, 9]


def a_cycle():
    x = tf.get_variable("x", initializer=1.0)
    a = tf.identity(x, name="a")
    b = tf.add(a, x, name="b")
    a.op._update_input(0, b)
    return x, b, tf.sin(b)


def test_running_a_cycle_is_refused(run):
    _, _, y = a_cycle()
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"a cycle with 2 nodes, including: a, b\. Give one"
    ):
        run(y)


def test_gradients_of_a_cycle_are_refused():
    x, _, y = a_cycle()
    with pytest.raises(tf.errors.InvalidArgumentError, match="a cycle with 2 nodes, including: a, b"):
        tf.gradients(y, x)


def test_what_is_built_on_a_cycle_of_constants_is_of_unknown_value():
    a = tf.constant(1) + 2
    b = a + 3
    a.op._update_input(0, b)
    assert tf.contrib.util.constant_value(tf.stack([a, b])) is None


def test_copying_a_cycle_is_refused(graph):
    a_cycle()
    with pytest.raises(tf.errors.InvalidArgumentError, match="a cycle with 2 nodes"):
        tf.contrib.graph_editor.copy(graph.get_operations(), tf.Graph())


def test_a_function_may_have_an_old_operation_with_a_newer_input():
    @tf.function
    def f(x):
        old = tf.square(x)
        old.op._update_input(0, x + 1.0)
        return old

    x = tf.placeholder(tf.float32, [])
    with tf.Session() as session:
        assert session.run([f(x), tf.gradients(f(x), x)[0]], {x: 2.0}) == [9.0, 6.0]


def test_a_rewired_graph_is_written_and_read_again(session):
    x = tf.placeholder(tf.float32, [], name="x")
    old = tf.square(x, name="old")
    old.op._update_input(0, x * 3.0)
    result = tf.get_default_graph().as_graph_def()
    with tf.Graph().as_default():
        x, old = tf.import_graph_def(result, return_elements=["x:0", "old:0"])
        with tf.Session() as other:
            assert other.run([old, tf.gradients(old, x)[0]], {x: 2.0}) == [36.0, 36.0]
