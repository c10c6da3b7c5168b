"""What changes its shape from run to run is kept apart from what can be compiled once."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.runtime.scheduling import host_loops as loops
from tensorfleet.runtime.segments import compiled, trial

SIZES = [3, 5, 2, 7, 4, 6, 1, 8, 9, 10, 11, 12]


def model(masked):
    """A few layers, and a loss over those rows that a mask leaves, computed from them by `masked`."""
    x = tf.placeholder(tf.float32, [None, 6], name="x")
    mask = tf.placeholder(tf.bool, [None], name="mask")
    hidden = x
    for i in range(4):
        w = tf.get_variable(f"w{i}", initializer=np.linspace(-0.5, 0.5, 36, dtype=np.float32).reshape(6, 6))
        hidden = tf.tanh(tf.matmul(hidden, w), name=f"hidden{i}")
    loss = masked(tf.boolean_mask(hidden, mask))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    return x, mask, loss, train


def mean_of_squares(rows):
    return tf.reduce_mean(tf.square(rows), name="loss")


def fed(x, mask, left):
    rows = np.linspace(-1, 1, 96, dtype=np.float32).reshape(16, 6)
    return {x: rows, mask: np.arange(16) < left}


def trained(sizes, masked=mean_of_squares, target=""):
    """The losses of a training in which so many rows are left, step by step, and its program."""
    with tf.Graph().as_default(), tf.Session(target) as session:
        tf.set_random_seed(3)
        x, mask, loss, train = model(masked)
        session.run(tf.global_variables_initializer())
        losses = [session.run([train, loss], fed(x, mask, left))[1] for left in sizes]
        program = session._prepare([train, loss], {x: None, mask: None}).program
    return losses, program


def compiled_programs(program):
    return {
        op.name: len(item.compiler.programs)
        for item in program.items
        if hasattr(item, "compiler")
        for op in item.segment.ops
    }


def test_a_mask_that_leaves_another_number_each_time_does_not_keep_the_rest_from_being_compiled(
    always_compile,
):
    _, program = trained(SIZES)
    programs = compiled_programs(program._divided)
    assert programs["hidden3"] == 1
    assert programs["loss"] == 0


def test_a_divided_program_computes_what_the_whole_one_does(always_compile, monkeypatch):
    divided, program = trained(SIZES)
    assert program._divided is not None
    monkeypatch.setattr(compiled.Compiler, "wanted", lambda self: False)
    monkeypatch.setattr("tensorfleet.runtime.segments.shape_variance._MIN_STEPS", 1 << 20)
    whole, program = trained(SIZES)
    assert program._divided is None
    np.testing.assert_allclose(divided, whole, rtol=1e-5)


def test_random_numbers_go_on_when_a_program_is_divided(always_compile, monkeypatch):
    def noisy(rows):
        return tf.reduce_mean(tf.square(tf.nn.dropout(rows, 0.5, seed=7)), name="loss")

    divided, program = trained(SIZES, noisy)
    assert program._divided is not None
    monkeypatch.setattr("tensorfleet.runtime.segments.shape_variance._MIN_STEPS", 1 << 20)
    whole, _ = trained(SIZES, noisy)
    np.testing.assert_allclose(divided, whole, rtol=1e-5)


def test_branches_on_what_a_mask_leaves_are_taken_when_a_program_is_divided(always_compile, monkeypatch):
    def chosen(rows):
        few = tf.shape(rows)[0] < 6
        return tf.cond(few, lambda: tf.reduce_sum(rows * rows), lambda: tf.reduce_mean(tf.abs(rows)))

    divided, _ = trained(SIZES * 2, chosen)
    monkeypatch.setattr(compiled.Compiler, "wanted", lambda self: False)
    monkeypatch.setattr("tensorfleet.runtime.segments.shape_variance._MIN_STEPS", 1 << 20)
    whole, _ = trained(SIZES * 2, chosen)
    np.testing.assert_allclose(divided, whole, rtol=1e-5)


def test_shapes_that_come_back_do_not_divide_a_program(always_compile):
    _, program = trained([3, 5, 7, 9] * 6)
    assert program._divided is None


def test_a_batch_of_another_size_each_time_does_not_divide_a_program_of_which_nothing_would_be_left(
    always_compile, session
):
    x = tf.placeholder(tf.float32, [None, 4])
    y = x
    for _ in range(20):
        y = tf.tanh(y + 1)
    total = tf.reduce_sum(y)
    for size in range(1, 12):
        session.run(total, {x: np.ones((size, 4))})
    assert session._prepare(total, {x: None}).program._divided is None


def test_a_task_of_a_cluster_divides_its_program_too(always_compile):
    server = tf.train.Server.create_local_server()
    local, _ = trained(SIZES)
    remote, _ = trained(SIZES, target=server.target)
    np.testing.assert_allclose(remote, local, rtol=1e-5)


def test_a_program_that_numpy_runs_in_no_time_is_not_divided(monkeypatch):
    monkeypatch.setattr(trial, "_MIN_NUMPY_SECONDS", 1e9)
    _, program = trained(SIZES)
    assert program._divided is None


def test_shapes_are_not_remembered_for_ever(session):
    x = tf.placeholder(tf.float32, [None])
    y = x
    for _ in range(20):
        y = tf.tanh(y + 1)
    for size in range(1, 250):
        session.run(y, {x: np.ones(size)})
    (item,) = session._prepare(y, {x: None}).program.items
    assert item.compiler.varying.over and len(item.compiler.varying._signatures) < 10


@pytest.mark.parametrize("resource", [False, True])
def test_adam_on_rows_leaves_the_network_to_one_program(always_compile, session, resource):
    ids = tf.placeholder(tf.int32, [8])
    table = tf.get_variable("table", [100, 4], use_resource=resource)
    hidden = tf.nn.embedding_lookup(table, ids)
    for i in range(3):
        hidden = tf.tanh(tf.matmul(hidden, tf.get_variable(f"w{i}", [4, 4])), name=f"hidden{i}")
    train = tf.train.AdamOptimizer().minimize(tf.reduce_sum(tf.square(hidden)))
    session.run(tf.global_variables_initializer())
    rows = np.random.RandomState(1).randint(0, 20, (12, 8))
    for some in rows:
        session.run(train, {ids: some})
    program = session._prepare(train, {ids: None}).program
    assert program._divided is None
    assert compiled_programs(program)["hidden2"] == 1


def doubled_in_a_loop(rows):
    _, made = tf.while_loop(lambda i, _: i < 20, lambda i, r: (i + 1, r * 1.01), (0, tf.reduce_sum(rows)))
    return tf.square(made, name="loss")


def test_a_loop_beside_it_keeps_what_was_compiled_of_it(always_compile, monkeypatch):
    monkeypatch.setattr(loops, "_COMPILE_AFTER_SECONDS", 0.0)
    _, program = trained(SIZES, doubled_in_a_loop)
    before, after = (
        [item for item in some.items if isinstance(item, loops.LoopItem)]
        for some in (program, program._divided)
    )
    assert len(before) == len(after) > 0
    assert [item.traced for item in before] == [item.traced for item in after]
    assert all(item.traced.programs for item in after)
