"""Tables whose rows a segment reads and changes: in place in either life, and never under somebody's hands."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.runtime.segments import compiled
from tests.support.waiting import in_background

ROWS = 40_000


@pytest.fixture(params=["numpy", "xla"])
def life(request, monkeypatch):
    wanted = (lambda self: self.possible) if request.param == "xla" else (lambda self: False)
    monkeypatch.setattr(compiled.Compiler, "wanted", wanted)
    return request.param


def model(use_resource=False):
    """A step that moves the rows `ids` of a table a tenth of the way to zero, for each time they occur."""
    table = tf.get_variable("table", [ROWS, 4], initializer=tf.ones_initializer(), use_resource=use_resource)
    ids = tf.placeholder(tf.int64, [None])
    loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(table, ids))) / 2.0
    return table, ids, loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss)


@pytest.mark.parametrize("use_resource", [False, True])
def test_rows_change_for_each_time_they_occur(life, use_resource, session):
    table, ids, loss, train = model(use_resource)
    session.run(tf.global_variables_initializer())
    for _ in range(3):
        session.run([train, loss], {ids: [7, 9, 7]})
    now = session.run(table)
    np.testing.assert_allclose(now[[7, 8, 9], 0], [0.8**3, 1, 0.9**3], rtol=1e-5)
    program = session._prepare([train, loss], {ids: None}).program
    assert sum(len(i.segment.owned) for i in program.items if hasattr(i, "segment")) == 1


def test_rows_that_are_known_beforehand_change(life, session):
    table = tf.get_variable("table", [ROWS, 4], initializer=tf.ones_initializer())
    loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(table, tf.constant([7, 9, 7])))) / 2.0
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    session.run(tf.global_variables_initializer())
    for _ in range(3):
        session.run([train, loss])
    np.testing.assert_allclose(session.run(table)[[7, 8, 9], 0], [0.8**3, 1, 0.9**3], rtol=1e-5)


def test_the_memory_of_a_table_stays_where_it_is():
    table, ids, loss, train = model()
    with tf.Session() as s, pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled.Compiler, "wanted", lambda self: self.possible)
        s.run(tf.global_variables_initializer())
        store = s._engine.resources.variable(table.op)
        s.run(train, {ids: [1]})
        address = store.value.unsafe_buffer_pointer()
        for i in range(5):
            s.run([train, loss], {ids: [i]})
        assert store.value.unsafe_buffer_pointer() == address


def test_what_was_fetched_or_read_does_not_change(life, session):
    table, ids, _, train = model()
    session.run(tf.global_variables_initializer())
    session.run(train, {ids: [3]})
    fetched, held = session.run(table), session._engine.resources.variable(table.op).read()
    session.run(train, {ids: [3]})
    assert fetched[3, 0] == np.asarray(held)[3, 0] == np.float32(0.9)
    assert session.run(table)[3, 0] == pytest.approx(0.81)


def test_bad_index_is_named_and_changes_nothing(life, session):
    table, ids, _, train = model()
    session.run(tf.global_variables_initializer())
    for _ in range(2):
        with pytest.raises(tf.errors.InvalidArgumentError, match=rf"indices\[1\] = {ROWS} is not in"):
            session.run(train, {ids: [3, ROWS]})
    assert (session.run(table) == 1).all()
    session.run(train, {ids: [3]})
    assert session.run(table)[3, 0] == np.float32(0.9)


def test_table_without_value_is_reported(life):
    table, ids, _, train = model()
    with (
        tf.Session() as s,
        pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value table"),
    ):
        s.run(train, {ids: [3]})


def test_table_that_the_step_reads_as_a_whole_is_changed_on_the_host(life, session):
    table, ids, loss, _ = model()
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    total = tf.reduce_sum(table)
    session.run(tf.global_variables_initializer())
    program = session._prepare([train, total], {ids: None}).program
    assert any(part.kind == "rows" for part in program.plan.parts)
    before = session.run([train, total], {ids: [3]})[1]
    assert before in (ROWS * 4, pytest.approx(ROWS * 4 - 0.4))


def test_steps_of_several_threads_lose_no_update(life, session):
    table, ids, _, train = model()
    session.run(tf.global_variables_initializer())
    training = [in_background(lambda: [session.run(train, {ids: [5]}) for _ in range(20)]) for _ in range(3)]
    while not all(steps.done() for steps in training):
        assert np.isfinite(session.run(table)[5]).all()
    # reading and changing are one: every step sees the one before
    assert session.run(table)[5, 0] == pytest.approx(0.9**60, rel=1e-3)
