"""Lives of a segment, virtual devices, row updates, and what readers of a variable hold."""

import threading

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.runtime.segments import compiled
from tests.support.waiting import in_background


def segments(session, fetches, *feeds):
    program = session._prepare(fetches, dict.fromkeys(feeds)).program
    return [item for item in program.items if hasattr(item, "segment")]


def test_training_step_is_one_compiled_program(always_compile, session):
    x = tf.placeholder(tf.float32, [None, 8])
    w = tf.get_variable("w", initializer=np.full([8, 4], 2, np.float32))
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w)))
    train = tf.train.AdamOptimizer(0.1).minimize(loss)
    session.run(tf.global_variables_initializer())
    losses = [session.run([train, loss], {x: np.ones((3, 8))})[1] for _ in range(5)]
    program = session._prepare([train, loss], {x: 0}).program
    assert len(program.items) == 1
    assert len(program.items[0].compiler.programs) == 1
    assert losses[-1] < losses[0]


def test_both_lives_train_alike(monkeypatch):
    results = []
    for wanted in (False, True):
        monkeypatch.setattr(compiled.Compiler, "wanted", lambda self, w=wanted: w and self.possible)
        with tf.Graph().as_default(), tf.Session() as s:
            x = tf.placeholder(tf.float32, [None, 5])
            w = tf.get_variable("w", [5, 3], initializer=tf.random_normal_initializer(seed=1))
            h = tf.nn.dropout(tf.matmul(x, w), rate=0.4, seed=2)
            train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(tf.reduce_sum(h * h))
            s.run(tf.global_variables_initializer())
            for _ in range(4):
                s.run(train, {x: np.arange(10.0).reshape(2, 5)})
            results.append(s.run(w))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-4)


def test_a_large_constant_is_passed_to_its_program_and_not_part_of_it(always_compile, session):
    table = np.arange(1 << 19, dtype=np.float32)
    x = tf.placeholder(tf.float32, [])
    total = tf.reduce_sum(tf.constant(table) * x)
    assert session.run(total, {x: 2.0}) == session.run(total, {x: 2.0}) == pytest.approx(2 * table.sum())
    (item,) = segments(session, total, x)
    (program,) = item.compiler.programs.values()
    assert [c.nbytes for c in program.constants] == [table.nbytes]
    assert len(program.call.as_text()) < 1 << 16


def test_a_large_constant_whose_values_are_needed_is_part_of_its_program(always_compile, session):
    x = tf.placeholder(tf.float32, [1, 2])
    repeats = np.full([1 << 19], 1, np.int32)
    tiled = tf.tile(x, (tf.constant(repeats) * 2)[-2:])
    assert session.run(tiled, {x: [[1, 2]]}).tolist() == [[1, 2, 1, 2], [1, 2, 1, 2]]
    (item,) = segments(session, tiled, x)
    (program,) = item.compiler.programs.values()
    assert program.constants == ()


def test_small_program_is_never_compiled(session):
    a = tf.placeholder(tf.float32, [])
    b = a + 1.0
    for i in range(300):
        session.run(b, {a: float(i)})
    (item,) = segments(session, b, a)
    assert not item.compiler.programs


def test_a_slow_step_is_compiled_for_shapes_that_came_twice_in_a_row(session):
    x = tf.placeholder(tf.float32, [None])
    (item,) = segments(session, tf.reduce_sum(tf.sqrt(x)), x)
    two, three = [np.ones(2, np.float32)], [np.ones(3, np.float32)]
    compiler = item.compiler
    for before, now in [(two, three), (three, two), (two, three)]:
        compiler.timed(0.03, before)
        assert compiler.wanted() and compiler.program(now, []) is None
    compiler.timed(0.03, two)
    assert compiler.program(two, []) is not None


def test_batch_size_that_keeps_changing_falls_back_to_numpy(always_compile, session):
    x = tf.placeholder(tf.float32, [None])
    total = tf.reduce_sum(tf.sqrt(x))
    for n in range(1, 120):
        assert session.run(total, {x: np.ones(n)}) == pytest.approx(n)
    (item,) = segments(session, total, x)
    assert len(item.compiler.programs) <= compiled._MAX_PROGRAMS


def test_batch_sizes_that_come_back_are_compiled_once_numpy_has_cost_as_much(
    monkeypatch, always_compile, session
):
    x = tf.placeholder(tf.float32, [None])
    total = tf.reduce_sum(tf.sqrt(x))
    (item,) = segments(session, total, x)
    monkeypatch.setattr(item.compiler, "_compile", lambda *_: None)  # takes no time
    for fastest, programs in ((0.0, 2), (1.0, 10)):
        item.compiler.fastest = fastest
        for n in [*range(10), *range(10)]:
            session.run(total, {x: np.ones(n)})
            item.compiler.fastest = fastest
        assert len(item.compiler.programs) == programs


def test_an_index_that_goes_through_the_data_is_not_compiled_for_each_value(always_compile, session):
    i = tf.placeholder(tf.int32, [])
    x = tf.placeholder(tf.float32, [100])
    part = tf.reduce_sum(tf.exp(tf.strided_slice(x, [i], [i + 3])))
    for _ in range(3):
        for n in range(30):
            session.run(part, {i: n, x: np.zeros(100)})
    made = [item.compiler.programs for item in segments(session, part, i, x)]
    assert sum(map(len, made)) <= 5


def test_value_that_shapes_the_result_may_be_fed(always_compile, session):
    n = tf.placeholder(tf.int32, [])
    x = tf.placeholder(tf.float32, [None])
    y = tf.reshape(tf.tile(x, [n]), [n, -1]) * 2.0
    for k in (2, 3, 2, 2, 3):
        assert session.run(y, {n: k, x: [1.0, 2.0]}).shape == (k, 2)


def test_parts_of_virtual_devices_are_compiled_together(always_compile):
    x = tf.placeholder(tf.float32, [2, 2])
    with tf.device("/cpu:1"):
        y = tf.matmul(x, x)
    with tf.device("/cpu:0"):
        z = y + 1.0
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as s:
        assert s.run(z, {x: np.eye(2)}).tolist() == [[2, 1], [1, 2]]
        (item,) = segments(s, z, x)
        assert [s._engine.placer.device_of(t.op)[-5:] for t in (y, z)] == ["CPU:1", "CPU:0"]
        assert [op.name for op in item.segment.ops] == [y.op.name, z.op.name]
        assert len(item.compiler.programs) == 1


def test_towers_on_virtual_devices_average_their_gradients():
    x = tf.placeholder(tf.float32, [4, 3])
    w = tf.get_variable("w", [3, 1], initializer=tf.ones_initializer())
    grads = []
    for i, part in enumerate(tf.split(x, 2)):
        with tf.device(f"/cpu:{i}"):
            grads.append(tf.gradients(tf.reduce_mean(tf.square(tf.matmul(part, w))), [w])[0])
    step = tf.train.GradientDescentOptimizer(0.1).apply_gradients([(tf.add_n(grads) / 2.0, w)])
    whole = tf.gradients(tf.reduce_mean(tf.square(tf.matmul(x, w))), [w])[0]
    feed = {x: np.arange(12.0).reshape(4, 3)}
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as s:
        s.run(w.initializer)
        before, grad = s.run([w.value(), whole], feed)
        s.run(step, feed)
        np.testing.assert_allclose(s.run(w), before - 0.1 * grad, rtol=1e-5)


def table(rows=40000, **kwargs):
    return tf.get_variable("table", [rows, 4], initializer=tf.zeros_initializer(), **kwargs)


@pytest.mark.parametrize("use_resource", [False, True])
def test_rows_are_updated_in_place_without_copying_the_table(use_resource, monkeypatch, session):
    monkeypatch.setattr(compiled.Compiler, "wanted", lambda self: False)  # a busy machine may make it compile
    t = table(use_resource=use_resource)
    ids = tf.placeholder(tf.int32, [None])
    loss = tf.reduce_sum(tf.nn.embedding_lookup(t, ids) + 1.0)
    train = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
    session.run(tf.global_variables_initializer())
    session.run(train, {ids: [1, 5]})
    store = session._engine.resources.variable(t.op)
    address = store.value.ctypes.data
    for _ in range(3):
        session.run(train, {ids: [1, 5, 5]})
    assert store.value.ctypes.data == address
    assert session.run(t)[[1, 5, 6], 0].tolist() == [-4, -7, 0]


def test_whole_table_that_was_handed_out_is_never_changed(session):
    t = table()
    update = tf.scatter_add(t, [3], [[1.0, 1.0, 1.0, 1.0]])
    session.run(t.initializer)
    session.run(update.op)
    held = session._engine.resources.variable(t.op).read()
    session.run(update.op)
    assert held[3, 0] == 1
    assert session.run(t)[3, 0] == 2


def test_failed_row_update_changes_nothing(session):
    t = table()
    ids = tf.placeholder(tf.int32, [2])
    update = tf.scatter_add(t, ids, tf.ones([2, 4]))
    session.run(t.initializer)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[1\] = 40000 is not in \[0, 40000\)"):
        session.run(update, {ids: [1, 40000]})
    assert not session.run(t).any()


def test_closing_wakes_a_blocked_run():
    started, release = threading.Event(), threading.Event()

    def wait(x):
        started.set()
        release.wait(30)
        return x

    y = tf.py_func(wait, [tf.placeholder_with_default(1.0, [])], tf.float32)
    s = tf.Session()
    running = in_background(s.run, y)
    assert started.wait(30)
    s.close()
    release.set()
    assert isinstance(running.exception(30), tf.errors.OpError | None)


def test_independent_parts_run_side_by_side():
    meet = threading.Barrier(2, timeout=30)

    def together(x):
        meet.wait()
        return x

    with tf.device("/cpu:0"):
        a = tf.py_func(together, [tf.placeholder_with_default(1.0, [])], tf.float32)
    with tf.device("/cpu:1"):
        b = tf.py_func(together, [tf.placeholder_with_default(2.0, [])], tf.float32)
    config = tf.ConfigProto(
        device_count={"CPU": 2}, inter_op_parallelism_threads=2, use_per_session_threads=True
    )
    with tf.Session(config=config) as s:
        assert s.run([a, b]) == [1, 2]


def test_many_small_arguments_are_passed_as_one(always_compile, session):
    xs = [tf.placeholder(tf.float32, [None, 3]) for _ in range(20)]
    ns = [tf.placeholder(tf.int32, []) for _ in range(3)]
    y = tf.add_n([tf.reduce_sum(x, 0) * i for i, x in enumerate(xs)]) + tf.cast(tf.add_n(ns), tf.float32)
    for rows in (2, 0, 2):
        fed = {x: np.full([rows, 3], i + 1.0) for i, x in enumerate(xs)} | dict.fromkeys(ns, 2)
        wanted = sum(rows * i * (i + 1.0) for i in range(20)) + 6
        np.testing.assert_allclose(session.run(y, fed), np.full(3, wanted))
    (item,) = segments(session, y, *xs, *ns)
    assert {len(p.joined[0]) for p in item.compiler.programs.values()} == {20}


LARGE = [300, 200]


def updates(v, d):
    sgd, plain, nesterov = (
        tf.train.GradientDescentOptimizer(0.5),
        tf.train.MomentumOptimizer(0.5, 0.9),
        tf.train.MomentumOptimizer(0.5, 0.9, use_nesterov=True),
    )
    return [
        tf.assign_add(v, d).op,
        tf.assign_sub(v, d).op,
        *(opt.apply_gradients([(d, v)]) for opt in (sgd, plain, nesterov)),
    ]


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("which", range(5))
def test_a_large_variable_is_updated_in_place_as_a_small_one_is(use_resource, which, session):
    rng = np.random.RandomState(0)
    start, steps = rng.rand(*LARGE).astype("f"), rng.rand(3, *LARGE).astype("f")
    large = tf.get_variable("large", initializer=start, use_resource=use_resource)
    row = tf.get_variable("row", initializer=start[7], use_resource=use_resource)
    d, e = tf.placeholder(tf.float32, LARGE), tf.placeholder(tf.float32, LARGE[1:])
    more, less = updates(large, d)[which], updates(row, e)[which]
    session.run(tf.global_variables_initializer())
    for step in steps:
        session.run(more, {d: step})
        session.run(less, {e: step[7]})
    np.testing.assert_array_equal(session.run(large)[7], session.run(row))


def test_a_variable_that_was_assigned_a_transposed_array_is_updated(session):
    v = tf.get_variable("v", LARGE, initializer=tf.zeros_initializer())
    x, d = tf.placeholder(tf.float32, LARGE[::-1]), tf.placeholder(tf.float32, LARGE)
    given = np.random.RandomState(0).rand(*LARGE[::-1]).astype("f")
    session.run(v.initializer)
    session.run(tf.assign(v, tf.transpose(x)).op, {x: given})
    session.run(tf.assign_add(v, d).op, {d: np.ones(LARGE, "f")})
    np.testing.assert_array_equal(session.run(v), given.T + 1)
