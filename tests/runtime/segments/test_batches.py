"""Equal operations that are traced as one, and what must not be changed by that."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.runtime.segments.batches import Batch, units_of

COUNT = 16


def item_of(session, fetches, feed=None):
    (item,) = [i for i in session._prepare(fetches, feed or {}).program.items if hasattr(i, "compiler")]
    return item


def batches_of(session, fetches, feed=None):
    units = units_of(item_of(session, fetches, feed).segment) or []
    return [(u.steps[0].op.type, len(u.steps)) for u in units if isinstance(u, Batch)]


def made_variables(shape=(), count=COUNT):
    return [
        tf.get_variable(f"v{n}", initializer=tf.fill(shape, float(n)), dtype=tf.float32) for n in range(count)
    ]


def test_equal_operations_are_traced_as_one(always_compile, session):
    variables = made_variables()
    loss = tf.add_n([tf.square(v - 1.0) for v in variables])
    train = tf.train.GradientDescentOptimizer(0.25).minimize(loss)
    session.run(tf.global_variables_initializer())
    assert ("ApplyGradientDescent", COUNT) in batches_of(session, [train, loss])
    _, value = session.run([train, loss])
    assert value == pytest.approx(sum((n - 1.0) ** 2 for n in range(COUNT)))
    (program,) = item_of(session, [train, loss]).compiler.programs.values()
    assert program.call.as_text().count(" parameter(") < COUNT
    np.testing.assert_allclose(session.run(variables), [(n + 1) / 2 for n in range(COUNT)])


def test_few_equal_operations_are_traced_one_by_one(session):
    variables = made_variables(count=4)
    step = tf.group([v.assign_add(tf.tanh(v)) for v in variables])
    session.run(tf.global_variables_initializer())
    assert units_of(item_of(session, step).segment) is None


def test_chain_is_not_a_batch(session):
    x = y = tf.placeholder(tf.float32, [])
    for _ in range(COUNT):
        y = tf.tanh(y)
    assert batches_of(session, y, {x: 0.0}) == []


def test_value_read_before_an_update_is_the_old_one(always_compile, session):
    variables = made_variables()
    before = [tf.tanh(v) for v in variables]
    with tf.control_dependencies(before):
        updates = [v.assign_add(1.0) for v in variables]
    with tf.control_dependencies([u.op for u in updates]):
        after = [tf.tanh(v.read_value()) for v in variables]
    session.run(tf.global_variables_initializer())
    found = session.run([before, after])
    np.testing.assert_allclose(found[0], np.tanh(np.arange(COUNT)), rtol=1e-6)
    np.testing.assert_allclose(found[1], np.tanh(np.arange(COUNT) + 1.0), rtol=1e-6)


def test_second_update_follows_the_first(always_compile, session):
    variables = made_variables()
    first = [v.assign_add(tf.ones_like(v)) for v in variables]
    with tf.control_dependencies([u.op for u in first]):
        second = [v.assign_add(tf.square(v.read_value())) for v in variables]
    session.run(tf.global_variables_initializer())
    session.run(tf.group(second))
    n = np.arange(COUNT) + 1.0
    np.testing.assert_allclose(session.run(variables), n + n * n)


def test_update_that_reads_another_variable_sees_it_before_its_update(always_compile, session):
    variables = made_variables()
    other = tf.get_variable("other", initializer=2.0)
    updates = [v.assign_add(other) for v in variables]
    with tf.control_dependencies([u.op for u in updates]):
        last = other.assign(100.0)
    session.run(tf.global_variables_initializer())
    session.run(last)
    np.testing.assert_allclose(session.run(variables), np.arange(COUNT) + 2.0)


def test_gradients_of_any_depth_are_applied_together(session):
    value = tf.ones([1, 4])
    for n in range(COUNT):
        value = tf.tanh(tf.matmul(value, tf.get_variable(f"w{n}", [4, 4])))
    train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(tf.reduce_sum(value))
    session.run(tf.global_variables_initializer())
    assert ("ApplyMomentum", COUNT) in batches_of(session, train)


@pytest.mark.parametrize("shape", [(), (3,), (2, 2)])
def test_reductions_and_reshapes_in_a_batch_give_the_same(shape, always_compile, session):
    variables = made_variables(shape)
    sums = [tf.reduce_sum(tf.reshape(v, [-1]) * float(n % 3)) for n, v in enumerate(variables)]
    train = tf.train.AdagradOptimizer(0.5, initial_accumulator_value=1.0).minimize(tf.add_n(sums))
    session.run(tf.global_variables_initializer())
    found, _ = session.run([sums, train])
    size = int(np.prod(shape))
    np.testing.assert_allclose(found, [n * (n % 3) * size for n in range(COUNT)], rtol=1e-6)
    for n, value in enumerate(session.run(variables)):
        gradient = float(n % 3)
        wanted = n - 0.5 * gradient / np.sqrt(1.0 + gradient**2)
        np.testing.assert_allclose(value, np.full(shape, wanted), rtol=1e-6)


def test_shapes_that_follow_from_values_in_a_batch_stay_known(always_compile, session):
    x = tf.placeholder(tf.float32, [None])
    variables = made_variables((6,))
    made = [tf.reshape(v, tf.stack([tf.size(v) // 2, 2])) for v in variables]
    total = tf.add_n(made) + tf.reduce_sum(x)
    session.run(tf.global_variables_initializer())
    np.testing.assert_allclose(session.run(total, {x: [1.0]}), np.full((3, 2), sum(range(COUNT)) + 1.0))
    (program,) = item_of(session, total, {x: [1.0]}).compiler.programs.values()
    assert program is not None


def test_values_of_other_shapes_than_declared_are_traced_one_by_one(always_compile, session):
    variables = [tf.Variable(tf.zeros([2]), name=f"v{n}") for n in range(COUNT)]
    step = tf.group([v.assign_add(tf.cos(v * 0.0)) for v in variables])
    session.run(tf.global_variables_initializer())
    session.run(tf.assign(variables[3], tf.zeros([5]), validate_shape=False))
    session.run(step)
    assert session.run(variables[3]).tolist() == [1.0] * 5
    assert session.run(variables[4]).tolist() == [1.0] * 2


def test_large_stacks_are_cut(session):
    variables = made_variables((4096,), 64)
    step = tf.group([v.assign_add(tf.tanh(v)) for v in variables])
    session.run(tf.global_variables_initializer())
    assert {count for _, count in batches_of(session, step)} == {32}


def test_values_that_follow_from_shapes_stay_known_in_a_batch(always_compile, session):
    """Columns of different lengths: each needs a value of its own to be reshaped."""
    columns = [tf.placeholder(tf.float32, [None, 2]) for _ in range(COUNT)]
    rows = [tf.strided_slice(tf.shape(x), [0], [1], shrink_axis_mask=1) for x in columns]
    flat = [tf.reshape(tf.tanh(x), tf.stack([2 * n])) for x, n in zip(columns, rows, strict=True)]
    total = tf.add_n([tf.reduce_sum(x) for x in flat])
    feed = {x: np.full([n + 1, 2], 0.5, np.float32) for n, x in enumerate(columns)}
    assert ("Pack", COUNT) in batches_of(session, total, feed)
    expected = COUNT * (COUNT + 1) * np.tanh(0.5)
    assert session.run(total, feed) == pytest.approx(expected, rel=1e-5)
    compiler = item_of(session, total, feed).compiler
    assert compiler.batches and all(compiler.programs.values())


def test_all_values_that_kernels_need_are_fixed_after_one_failed_trace(always_compile, session, monkeypatch):
    shapes = [tf.placeholder(tf.int32, [2]) for _ in range(COUNT)]
    x = tf.placeholder(tf.float32, [12])
    total = tf.add_n([tf.reduce_sum(tf.reshape(x, s)[0]) for s in shapes])
    feed = {x: np.arange(12.0), **{s: [3, 4] if n % 2 else [4, 3] for n, s in enumerate(shapes)}}
    item = item_of(session, total, feed)
    traces, compile_once = [], item.compiler._compile

    def counted(*args, **kwargs):
        traces.append(args)
        return compile_once(*args, **kwargs)

    monkeypatch.setattr(item.compiler, "_compile", counted)
    for _ in range(3):  # a value that is part of a program must come back first
        assert session.run(total, feed) == COUNT / 2 * (6.0 + 3.0)
    assert item.compiler.static_inputs == {i for i, t in enumerate(item.segment.inputs) if t in shapes}
    assert 1 <= len(traces) <= 3
