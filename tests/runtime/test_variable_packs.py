"""Small variables that share one array and one lock, and still behave as if each had its own."""

import threading
from functools import partial

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.graph.apply import apply_op
from tensorfleet.runtime.resources import VariableStore
from tensorfleet.runtime.shared_memory import server_reads
from tensorfleet.runtime.variable_packs import VariablePack, WriterLocks, release
from tests.support.waiting import SECONDS, in_background

COUNT = 12


def made_stores(*values):
    stores = [VariableStore(f"v{n}", tf.float32) for n in range(len(values))]
    for store, value in zip(stores, values, strict=True):
        store.value = np.asarray(value, np.float32)
    return stores


def begun(stores):
    pack = VariablePack(stores, [s.value.shape for s in stores], np.dtype(np.float32))
    held = []
    WriterLocks(stores).acquire(held)
    assert pack.begin(held)
    release(held)
    return pack


def squares(shape=(), count=COUNT, **kwargs):
    """Variables of zeros, a loss with its minimum at the number of each, and a step of gradient descent."""
    variables = [
        tf.get_variable(f"v{n}", shape, initializer=tf.zeros_initializer(), **kwargs) for n in range(count)
    ]
    loss = tf.add_n([tf.reduce_sum(tf.square(v - float(n))) for n, v in enumerate(variables)])
    return variables, tf.train.GradientDescentOptimizer(0.25).minimize(loss), loss


def stores_of(session, variables):
    resources = session._engine.resources
    return [resources.variable(v.handle.op if hasattr(v, "handle") else v.op) for v in variables]


def test_values_in_a_pack_are_those_the_variables_had():
    stores = made_stores(1.0, [2.0, 3.0], [[4.0], [5.0]])
    pack = begun(stores)
    assert [s.pack is pack for s in stores] == [True] * 3
    assert [s.read().tolist() for s in stores] == [1.0, [2.0, 3.0], [[4.0], [5.0]]]
    np.testing.assert_array_equal(pack.take(), [1, 2, 3, 4, 5])


def test_assigned_value_is_read_at_once_and_joins_the_array_later():
    stores = made_stores(1.0, 2.0, 3.0)
    pack = begun(stores)
    before = pack.look()
    stores[1].swap(np.float32(7.0).reshape(()))
    assert [float(s.read()) for s in stores] == [1.0, 7.0, 3.0]
    np.testing.assert_array_equal(pack.take(), [1, 7, 3])
    np.testing.assert_array_equal(before, [1, 2, 3])  # a snapshot stays what it was


@pytest.mark.parametrize("value", [None, np.zeros(2, np.float32), np.zeros((), np.float64)])
def test_value_that_does_not_fit_dissolves_the_pack(value):
    stores = made_stores(1.0, 2.0, 3.0)
    pack = begun(stores)
    stores[1].value = value
    assert pack.take() is None
    held = []
    WriterLocks(stores).acquire(held)
    pack.dissolve(held)
    release(held)
    assert not pack.active
    assert stores[1].read() is value
    assert [float(stores[i].read()) for i in (0, 2)] == [1.0, 3.0]
    assert [s.packable for s in stores] == [True, False, True]
    assert len({id(s.lock) for s in stores}) == 3


def test_pack_does_not_begin_with_a_variable_of_another():
    stores = made_stores(1.0, 2.0, 3.0)
    first = begun(stores[:2])
    second = VariablePack(stores[1:], [(), ()], np.dtype(np.float32))
    held = []
    WriterLocks(stores).acquire(held)
    assert not second.begin(held)
    release(held)
    assert stores[1].pack is first and stores[2].pack is None


def test_writer_that_waited_while_a_pack_began_gets_the_lock_of_the_pack():
    stores = made_stores(1.0, 2.0, 3.0)
    pack = VariablePack(stores, [()] * 3, np.dtype(np.float32))
    held, others = [], []
    WriterLocks(stores).acquire(held)
    waits = threading.Event()
    lock = stores[2].lock

    class Telling:
        """A lock that tells when somebody comes for it."""

        def acquire(self):
            waits.set()
            return lock.acquire()

        release = lock.release

    stores[2].lock = Telling()
    waiting = in_background(
        lambda: (WriterLocks(stores[2:]).acquire(others), list(others), release(others))[1]
    )
    assert waits.wait(SECONDS)
    assert pack.begin(held)
    release(held)
    assert waiting.result(SECONDS) == [pack.lock]


class InterruptedStore(VariableStore):
    """A variable at which an interrupt comes when it is to get another lock, once."""

    interrupts = 0

    def __setattr__(self, name, value):
        if name == "lock" and self.interrupts:
            type(self).interrupts -= 1
            raise KeyboardInterrupt
        super().__setattr__(name, value)


@pytest.mark.parametrize("ends", [False, True])
def test_interrupt_while_a_pack_begins_or_ends_leaves_it_whole(ends):
    stores = made_stores(1.0, 2.0, 3.0)
    stores[1] = InterruptedStore("v1", tf.float32)
    stores[1].value = np.float32(2.0).reshape(())
    pack = begun(stores) if ends else VariablePack(stores, [()] * 3, np.dtype(np.float32))
    held = []
    WriterLocks(stores).acquire(held)
    InterruptedStore.interrupts = 1
    with pytest.raises(KeyboardInterrupt):
        pack.dissolve(held) if ends else pack.begin(held)
    release(held)
    assert pack.active is not ends
    assert [store.pack for store in stores] == [None if ends else pack] * 3
    assert [float(store.read()) for store in stores] == [1.0, 2.0, 3.0]
    assert (
        in_background(lambda: [s.lock.acquire(blocking=False) for s in stores]).result(SECONDS) == [True] * 3
    )


def test_rows_of_a_packed_variable_change_in_place_under_the_gate():
    stores = made_stores([1.0, 2.0], [3.0, 4.0])
    pack = begun(stores)
    with stores[0].gate:
        stores[0].writable()[1] = 9.0
        stores[0].touched()
    assert stores[0].read().tolist() == [1.0, 9.0]
    np.testing.assert_array_equal(pack.take(), [1, 9, 3, 4])


def test_board_shows_what_a_step_makes_of_a_pack():
    if not server_reads.are_possible():
        pytest.skip("this machine has no boards")
    stores = made_stores(1.0, 2.0)
    pack = begun(stores)
    board = server_reads.board_of(stores)
    try:
        pack.replace(np.array([5.0, 6.0], np.float32))
        assert [float(place) for place in board._places] == [5.0, 6.0]
    finally:
        board.take_down()


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("shape", [(), (3,)])
def test_training_step_keeps_its_variables_in_one_pack(shape, use_resource, always_compile, session):
    variables, train, loss = squares(shape, use_resource=use_resource)
    session.run(tf.global_variables_initializer())
    for _ in range(3):
        session.run([train, loss])
    packs = {store.pack for store in stores_of(session, variables)}
    assert len(packs) == 1 and None not in packs
    for n, value in enumerate(session.run(variables)):
        np.testing.assert_allclose(value, np.full(shape, n * 0.875), rtol=1e-6)


def test_slots_of_an_optimizer_are_packed_too(always_compile, session):
    variables, _, loss = squares()
    optimizer = tf.train.AdamOptimizer()
    train = optimizer.minimize(loss)
    session.run(tf.global_variables_initializer())
    session.run(train)
    slots = [optimizer.get_slot(v, name) for v in variables for name in ("m", "v")]
    assert len({store.pack for store in stores_of(session, [*variables, *slots])}) == 1


def test_assign_between_steps_counts(always_compile, session):
    variables, train, _ = squares()
    session.run(tf.global_variables_initializer())
    session.run(train)
    session.run(variables[3].assign(100.0))
    assert session.run(variables[3]) == 100.0
    session.run(train)
    np.testing.assert_allclose(session.run(variables[3]), 51.5)
    np.testing.assert_allclose(session.run(variables[4]), 3.0)


def test_variable_of_another_shape_leaves_the_pack_and_training_goes_on(always_compile, session):
    variables = [tf.Variable(tf.zeros([2]), validate_shape=False, name=f"v{n}") for n in range(COUNT)]
    train = tf.group([v.assign_add(tf.ones_like(v)) for v in variables])
    longer = tf.assign(variables[5], tf.zeros([4]), validate_shape=False)
    session.run(tf.global_variables_initializer())
    session.run(train)
    session.run(longer)
    for _ in range(3):
        session.run(train)
    found = session.run(list(variables))
    assert [v.tolist() for v in found] == [[3.0] * 4 if n == 5 else [4.0] * 2 for n in range(COUNT)]


def test_destroyed_variable_of_a_pack_is_uninitialized(always_compile, session):
    variables, train, _ = squares(use_resource=True)
    session.run(tf.global_variables_initializer())
    session.run(train)
    session.run(apply_op("DestroyResourceOp", variables[2].handle))
    with pytest.raises(tf.errors.FailedPreconditionError, match="v2"):
        session.run(train)
    assert session.run(variables[3]) == pytest.approx(1.5)
    session.run(variables[2].initializer)
    session.run(train)
    assert session.run(variables[2]) == pytest.approx(1.0)


def test_failed_check_leaves_all_variables_as_they_were(always_compile, session):
    variables, _, loss = squares()
    x = tf.placeholder(tf.float32, [])
    train = tf.train.GradientDescentOptimizer(0.25).minimize(loss * tf.check_numerics(x, "x"))
    session.run(tf.global_variables_initializer())
    session.run(train, {x: 1.0})
    before = session.run(variables)
    with pytest.raises(tf.errors.InvalidArgumentError, match="x"):
        session.run(train, {x: np.nan})
    assert session.run(variables) == before
    session.run(train, {x: 1.0})
    assert session.run(variables[4]) == pytest.approx(3.0)


def test_sparse_update_of_a_packed_table_is_not_lost(always_compile, session):
    tables = [tf.Variable(tf.zeros([4]), name=f"t{n}") for n in range(COUNT)]
    whole = tf.group([t.assign_add(tf.ones([4])) for t in tables])
    whole = tf.group(whole, tf.tanh(tables[0]))
    row = tf.scatter_add(tables[7], [2], [10.0])
    session.run(tf.global_variables_initializer())
    for _ in range(3):
        session.run(whole)
        session.run(row)
    assert session.run(tables[7]).tolist() == [3.0, 3.0, 33.0, 3.0]
    assert session.run(tables[6]).tolist() == [3.0] * 4


def test_checkpoint_of_packed_variables_restores_them(always_compile, session, tmp_path):
    variables, train, _ = squares()
    saver = tf.train.Saver()
    session.run(tf.global_variables_initializer())
    session.run(train)
    path = saver.save(session, str(tmp_path / "model"))
    session.run(train)
    saver.restore(session, path)
    np.testing.assert_allclose(session.run(variables), np.arange(COUNT) * 0.5)
    session.run(train)
    np.testing.assert_allclose(session.run(variables), np.arange(COUNT) * 0.75)


def test_updates_of_several_threads_are_all_counted(always_compile, session):
    variables = [tf.Variable(0.0, name=f"v{n}") for n in range(COUNT)]
    every = [v.assign_add(tf.cos(0.0 * v), use_locking=True) for v in variables]
    half = [v.assign_add(tf.cos(0.0 * v), use_locking=True) for v in variables[6:]]
    one = variables[8].assign_add(1.0, use_locking=True)
    read = tf.stack(variables)
    session.run(tf.global_variables_initializer())
    wanted = [tf.group(every), tf.group(half), one, read]

    def work(fetch):
        for _ in range(30):
            session.run(fetch)

    for future in [in_background(partial(work, fetch)) for fetch in wanted for _ in range(2)]:
        future.result(SECONDS)
    expected = [60.0] * 6 + [120.0, 120.0, 180.0, 120.0, 120.0, 120.0]
    assert session.run(variables) == expected


def test_server_keeps_variables_of_a_session_in_a_pack(always_compile, server):
    variables, train, _ = squares()
    with tf.Session(server.target) as first, tf.Session(server.target) as second:
        first.run(tf.global_variables_initializer())
        for n in range(1, 4):
            first.run(train)
            np.testing.assert_allclose(second.run(variables), np.arange(COUNT) * (1 - 0.5**n))
            second.run(variables[1].assign(1 - 0.5**n))
    tf.Session.reset(server.target)
    with tf.Session(server.target) as third:
        with pytest.raises(tf.errors.FailedPreconditionError):
            third.run(train)
        third.run(tf.global_variables_initializer())
        third.run(train)
        np.testing.assert_allclose(third.run(variables), np.arange(COUNT) * 0.5)
