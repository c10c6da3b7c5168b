"""Loops of a graph: what their bodies may do, which values they carry, and how they run."""

import numpy as np
import pytest

import tensorfleet as tf


def test_a_loop_runs_side_effects_every_time(session):
    seen = []
    v = tf.get_variable("v", initializer=0.0, use_resource=True)

    def body(i):
        noted = tf.py_func(lambda k: seen.append(int(k)) or k, [i], tf.int32)
        with tf.control_dependencies([noted, v.assign_add(2.0)]):
            return i + 1

    i = tf.while_loop(lambda i: i < 4, body, [tf.constant(0)])
    with tf.control_dependencies([i]):
        after = v.read_value()
    session.run(v.initializer)
    assert session.run([i, after]) == [4, 8]
    assert seen == [0, 1, 2, 3]


def test_a_reference_variable_is_updated_in_a_loop(session):
    v = tf.Variable(1.0)

    def body(i):
        with tf.control_dependencies([tf.assign(v, v * 2.0)]):
            return i + 1

    i = tf.while_loop(lambda i: i < 3, body, [0])
    with tf.control_dependencies([i]):
        y = tf.identity(v)
    session.run(v.initializer)
    session.run(y)
    assert session.run(v) == 8.0


@pytest.mark.parametrize("resource", [False, True])
def test_the_condition_sees_variables_change(resource, session):
    v = tf.get_variable("v", initializer=0, use_resource=resource)

    def body(i):
        with tf.control_dependencies([v.assign_add(1)]):
            return i + 10

    i = tf.while_loop(lambda i: (v.read_value() if resource else v) < 5, body, [tf.constant(0)])
    session.run(v.initializer)
    assert session.run(i) == 50


def test_a_loop_waits_for_what_surrounds_it(session):
    v = tf.get_variable("v", initializer=1.0, use_resource=True)
    with tf.control_dependencies([v.assign(10.0)]):
        y = tf.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, a + v.read_value()), [0, 0.0])[1]
    session.run(v.initializer)
    assert session.run(y) == 20


def test_loops_check_their_arguments():
    with pytest.raises(ValueError, match="No loop variables provided"):
        tf.while_loop(lambda: True, lambda: None, [])
    with pytest.raises(TypeError, match="cond must be callable"):
        tf.while_loop(1, lambda i: i, [1])
    with pytest.raises(TypeError, match="body must be callable"):
        tf.while_loop(lambda i: True, 1, [1])
    with pytest.raises(TypeError, match="parallel_iterations must be a positive integer"):
        tf.while_loop(lambda i: True, lambda i: i, [1], parallel_iterations=0)
    with pytest.raises(ValueError, match="must be a scalar"):
        tf.while_loop(lambda i: True, lambda i: i, [1], maximum_iterations=[1, 2])


def test_loop_variables_keep_structure_shape_and_type():
    with pytest.raises(ValueError, match="The two structures don't have the same"):
        tf.while_loop(lambda i, j: i < 3, lambda i, j: (i, j, j), [0, 1])
    with pytest.raises(ValueError, match="use the `shape_invariants` argument"):
        tf.while_loop(lambda x: True, lambda x: tf.concat([x, x], 0), [tf.ones([2])])
    with pytest.raises(ValueError, match="not compatible with its shape invariant"):
        tf.while_loop(
            lambda x: True,
            lambda x: tf.concat([x, x], 0),
            [tf.ones([2])],
            shape_invariants=[tf.TensorShape([2])],
        )
    with pytest.raises(ValueError, match="The shape invariant specified for"):
        tf.while_loop(lambda x: True, lambda x: x, [tf.ones([2])], shape_invariants=[tf.TensorShape([3])])
    with pytest.raises(TypeError, match="enters the loop with type int32"):
        tf.while_loop(lambda x: True, lambda x: tf.cast(x, tf.float32), [1])


def test_return_same_structure_keeps_a_list_of_one():
    loop = dict(cond=lambda i: i < 3, body=lambda i: i + 1, loop_vars=[tf.constant(0)])
    assert isinstance(tf.while_loop(**loop), tf.Tensor)
    assert isinstance(tf.while_loop(**loop, return_same_structure=True), list)


def test_a_loop_ends_at_its_deadline():
    i = tf.while_loop(lambda i: i >= 0, lambda i: i * 0, [tf.constant(0)])
    with tf.Session() as s, pytest.raises(tf.errors.DeadlineExceededError):
        s.run(i, options=tf.RunOptions(timeout_in_ms=100))


def test_sparse_tensors_are_loop_variables(session):
    sparse = tf.SparseTensor([[0, 1]], [2.0], [2, 2])

    def body(i, t):
        return i + 1, tf.SparseTensor(t.indices, t.values * 3.0, t.dense_shape)

    _, t = tf.while_loop(lambda i, t: i < 2, body, [tf.constant(0), sparse])
    assert session.run(t).values.tolist() == [18]


def test_a_loop_round_trips_through_a_graph_def(graph):
    x = tf.placeholder(tf.float32, [], name="x")
    p = tf.placeholder(tf.bool, [], name="p")
    y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), [0, tf.ones([])])[1]
    tf.cond(p, lambda: y + 1.0, lambda: y - 1.0, name="c")
    proto = graph.as_graph_def()
    with tf.Graph().as_default() as copy:
        tf.import_graph_def(proto, name="")
        with tf.Session() as s:
            assert s.run("c/Merge:0", {"x:0": 2.0, "p:0": True}) == 9
    kept = {node.name: node for node in copy.as_graph_def().node}
    assert kept == {node.name: node for node in proto.node}


@pytest.mark.parametrize("whole", [False, True])
def test_loops_are_the_same_on_the_host_and_in_one_program(monkeypatch, whole):
    from tensorfleet.runtime.scheduling import host_loops as loops

    monkeypatch.setattr(loops, "_COMPILE_AFTER_SECONDS", -1.0 if whole else 1e9)
    x = tf.placeholder(tf.float32, [5, 3])
    w = tf.get_variable("w", initializer=np.eye(3, dtype=np.float32))
    y = tf.scan(lambda a, r: tf.tanh(tf.matmul([a], w)[0] + r), x)
    with tf.Session() as s:
        s.run(w.initializer)
        grads = s.run([y, *tf.gradients(y, [x, w])], {x: np.linspace(-1, 1, 15).reshape(5, 3)})
    state, expected = None, []
    for row in np.linspace(-1, 1, 15).reshape(5, 3):
        state = row if state is None else np.tanh(state + row)
        expected.append(state)
    np.testing.assert_allclose(grads[0], expected, rtol=1e-5, atol=1e-6)
    assert grads[1].shape == (5, 3)
    assert grads[2].shape == (3, 3)


def test_an_error_in_a_loop_that_is_one_program_names_the_operation(monkeypatch, session):
    from tensorfleet.runtime.scheduling import host_loops as loops

    monkeypatch.setattr(loops, "_COMPILE_AFTER_SECONDS", -1.0)
    n = tf.placeholder(tf.int32, [])
    ta = tf.TensorArray(tf.float32, 3)
    _, ta = tf.while_loop(lambda i, t: i < n, lambda i, t: (i + 1, t.write(i, 1.0)), [0, ta])
    assert session.run(ta.stack(), {n: 3}).tolist() == [1, 1, 1]
    with pytest.raises(tf.errors.InvalidArgumentError, match="Tried to write to index 3") as failure:
        session.run(ta.stack(), {n: 5})
    assert failure.value.op.type == "TensorArrayWriteV3"


def test_random_numbers_of_a_loop_do_not_depend_on_how_it_runs(monkeypatch):
    from tensorfleet.runtime.scheduling import host_loops as loops

    tf.set_random_seed(7)
    x = tf.zeros([3])
    y = tf.scan(lambda a, r: r + tf.random_uniform([3], seed=4) + 0.0 * a, tf.zeros([4, 3]), initializer=x)
    results = []
    for patience in (1e9, -1.0):
        monkeypatch.setattr(loops, "_COMPILE_AFTER_SECONDS", patience)
        with tf.Session() as s:
            results.append([s.run(y) for _ in range(3)])
    np.testing.assert_allclose(results[0], results[1], rtol=1e-6)
    assert len(np.unique(results[0])) == 36


def test_loops_let_sparse_and_ragged_tensors_grow(session):
    def go_on(i, _):
        return i < 3

    sparse = tf.SparseTensor([[0], [3]], [2.0, 4.0], [10])

    def more(i, x):
        one = tf.SparseTensor(tf.cast(tf.fill([1, 1], i), tf.int64), tf.ones([1]), x.dense_shape)
        return i + 1, tf.sparse_add(x, one)

    assert session.run(tf.while_loop(go_on, more, [0, sparse])[1]).indices.ravel().tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="is not compatible with"):
        tf.while_loop(go_on, more, [0, sparse], [tf.TensorShape([]), tf.TensorShape([5])])
    ragged = tf.ragged.constant([[1], [2, 3]])
    grown = tf.while_loop(go_on, lambda i, x: (i + 1, tf.concat([x, x[:, :1]], axis=1)), [0, ragged])[1]
    assert session.run(grown).to_list() == [[1, 1, 1, 1], [2, 3, 2, 2, 2]]


def test_loops_take_tensor_specs_as_invariants_and_updated_variables_as_values(session):
    specs = [tf.TensorSpec([], tf.int32), tf.TensorSpec([None], tf.int32)]
    result = tf.while_loop(
        lambda i, _: i < 3, lambda i, x: (i + 1, tf.tile(x, [2])), [0, tf.constant([7])], specs
    )
    assert session.run(result[1]).tolist() == [7] * 8
    v = tf.Variable([3.0, 4.0, 5.0])
    written = tf.while_loop(
        lambda i, _: i < 3,
        lambda i, _: (i + 1, tf.scatter_update(v, i, 10.0)),
        [tf.constant(0), tf.identity(v)],
        parallel_iterations=1,
    )
    session.run(v.initializer)
    assert session.run(written[1]).tolist() == [10.0] * 3
