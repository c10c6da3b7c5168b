"""Large variables of a server are lent to the processes of its machine, not copied."""

import gc
import os
import socket
import sys
import threading

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.base import errors
from tensorfleet.cluster import messages
from tensorfleet.cluster.transport import shared_memory as shared
from tensorfleet.cluster.transport import wire
from tensorfleet.cluster.transport.tensor_bytes import describe, layout_of
from tensorfleet.runtime.resources import VariableStore
from tensorfleet.runtime.shared_memory import shared_variables as lending
from tensorfleet.testing.cluster import ProcessCluster
from tests.support.waiting import in_background

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is lent only on Linux")

SIZE = 1 << 17  # elements


@pytest.fixture(autouse=True)
def serving():
    lending.begin()
    yield
    gc.collect()
    lending._spare.clear()


@pytest.fixture
def store():
    made = VariableStore("v", tf.float32)
    with made.lock:
        made.swap(np.zeros(SIZE, np.float32))
    made.hand_out()
    changed(made, 1.0)
    return made


def changed(store: VariableStore, by: float) -> bool:
    """Adds to a variable as an update does; whether that was in place."""
    with store.lock, store.gate:
        before = id(store.value)
        array = store.writable()
        array += by
        store.touched()
        return id(array) == before


def passed(ends, *values):
    here, there = ends
    here.send(messages.RUN, b"fields", values)
    return there.receive().tensors


def test_a_variable_that_is_updated_in_place_can_be_lent(ends, store):
    (found,) = passed(ends, store.hand_out())
    assert (found == 1).all() and found.shape == (SIZE,)
    assert not ends[0]._outbox.segments and len(ends[0]._outbox.lent) == 1
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 5


def test_while_it_is_lent_an_update_changes_a_copy(ends, store):
    (found,) = passed(ends, store.hand_out())
    assert not changed(store, 1.0)
    assert (found == 1).all() and (store.read() == 2).all()
    assert changed(store, 1.0)
    (second,) = passed(ends, store.hand_out())
    assert (found == 1).all() and (second == 3).all()


def test_once_it_is_given_back_updates_are_in_place_again(ends, store):
    (found,) = passed(ends, store.hand_out())
    part = found[10:20]
    del found
    assert not changed(store, 1.0)
    (found,) = passed(ends, store.hand_out())
    del found
    assert changed(store, 1.0)
    assert (part == 1).all() and (store.read() == 3).all()


def test_memory_is_used_again(ends, store):
    blocks = set()
    for _ in range(10):
        (found,) = passed(ends, store.hand_out())
        blocks.add(lending.block_of(store.read()).number)
        changed(store, 1.0)
        del found
    assert len(blocks) <= 3


def test_a_borrower_that_ends_keeps_what_it_has(ends, store):
    (found,) = passed(ends, store.hand_out())
    number = lending.block_of(store.read()).number
    ends[0].close()
    assert not changed(store, 1.0)
    assert (found == 1).all() and (store.read() == 2).all()
    assert lending.block_of(store.read()).number != number
    assert number not in [block.number for block in lending._spare]


def test_of_two_borrowers_each_gives_back_its_own(store):
    pairs = [[wire.Channel(s) for s in socket.socketpair(socket.AF_UNIX)] for _ in range(2)]
    (first,), (second,) = (passed(pair, store.hand_out()) for pair in pairs)
    del first
    pairs[0][0].close()  # it had given back, so that nothing is lost
    assert not changed(store, 1.0)
    assert (second == 1).all()
    for pair in pairs:
        for end in pair:
            end.close()


def test_lent_and_sent_tensors_keep_their_order(ends, store):
    values = [
        np.arange(5),
        store.hand_out(),
        np.arange(SIZE).astype("f"),
        store.hand_out(),
        np.array([b"x"], object),
    ]
    found = passed(ends, *values)
    for a, b in zip(found, values, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("updates", "moved"), [(0, True), (1, True), (9, False)])
def test_what_is_read_again_soon_is_moved_to_where_it_can_be_lent(updates, moved):
    store = VariableStore("v", tf.float32)
    with store.lock:
        store.swap(np.zeros(SIZE, np.float32))
    assert lending.block_of(store.hand_out()) is None
    for _ in range(updates):
        with store.lock:
            store.swap(np.ones(SIZE, np.float32))
    assert (lending.block_of(store.hand_out()) is not None) == moved


def test_a_variable_that_is_cleared_meanwhile_is_not_moved(monkeypatch):
    store = VariableStore("v", tf.float32)
    with store.lock:
        store.swap(np.zeros(SIZE, np.float32))
    store.hand_out()

    def cleared():
        store.clear()
        return True

    monkeypatch.setattr(lending, "has_room", cleared)
    assert not store.hand_out().any()
    assert store.read() is None


def test_a_variable_that_is_being_written_is_not_moved():
    store = VariableStore("v", tf.float32)
    with store.lock:
        store.swap(np.zeros(SIZE, np.float32))
    store.hand_out()
    found = []
    with store.lock:
        other = threading.Thread(target=lambda: found.append(store.hand_out()))
        other.start()
        other.join(30)
    assert lending.block_of(found[0]) is None


def test_both_ends_forget_memory_that_is_not_lent_for_long(ends, store):
    passed(ends, store.hand_out())
    for i in range(shared._FORGET_AFTER_FRAMES + 1):
        passed(ends, np.full(SIZE, i))
    assert not ends[0]._outbox.lent and not ends[1]._inbox.lent
    assert (passed(ends, store.hand_out())[0] == 1).all()


def test_no_memory_is_left(store):
    gc.collect()
    lending._spare.clear()
    before, open_before = lending._count, len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        pair = [wire.Channel(s) for s in socket.socketpair(socket.AF_UNIX)]
        (found,) = passed(pair, store.hand_out())
        for end in pair:
            end.close()
        changed(store, 1.0)
        del found
    del pair, end
    gc.collect()
    lending._spare.clear()
    assert lending._count == before
    assert len(os.listdir("/proc/self/fd")) <= open_before


def frame(*loans):
    blob = describe([np.zeros(SIZE, np.float32)] * len(loans))[0]
    told = wire._LOANS.pack(len(loans), len(blob)) + blob + b"".join(shared.LOAN.pack(*x) for x in loans)
    return wire._HEADER.pack(wire._MAGIC, messages.RUN, 2, 0, 0, 0, 0, 0) + told


@pytest.mark.parametrize(
    ("loan", "why"),
    [
        ((0, 0, False, 7, SIZE * 4), "never lent"),
        ((0, 0, True, 7, SIZE * 4), "without its descriptor"),
    ],
)
def test_memory_that_was_never_lent_is_refused(ends, loan, why):
    ends[0].sock.sendall(frame(loan))
    with pytest.raises(errors.InvalidArgumentError, match=why):
        ends[1].receive()


def test_descriptions_of_more_tensors_than_there_are_are_refused(ends, store):
    blob = describe([np.zeros(SIZE, np.float32)] * 2)[0]
    layout_of(blob, 2)  # it is remembered
    told = wire._LOANS.pack(1, len(blob)) + blob + shared.LOAN.pack(0, 0, True, 7, SIZE * 4)
    header = wire._HEADER.pack(wire._MAGIC, messages.RUN, 2, 0, 0, 0, 0, 0)
    socket.send_fds(ends[0].sock, [header + told], [lending.block_of(store.read()).descriptor])
    with pytest.raises(errors.InvalidArgumentError, match="descriptions of 2 tensors where there are 1"):
        ends[1].receive()


@pytest.mark.parametrize(("count", "size"), [(33, 100), (1, (1 << 32) - 1)])
def test_more_than_can_be_lent_is_refused_before_it_is_read(ends, count, size):
    header = wire._HEADER.pack(wire._MAGIC, messages.RUN, 2, 0, 0, 0, 0, 0)
    ends[0].sock.sendall(header + wire._LOANS.pack(count, size))
    with pytest.raises(errors.InvalidArgumentError, match="it claims"):
        ends[1].receive()


@pytest.mark.parametrize(
    ("loan", "why"),
    [
        ((0, 5000, True, 7, SIZE * 4), "never lent"),
        ((0, 0, True, 7, SIZE), "taken away"),
        ((0, 0, True, 7, SIZE * 4 + 4096), "taken away"),
    ],
)
def test_a_loan_that_does_not_fit_is_refused(ends, loan, why, store):
    block = lending.block_of(store.read())
    socket.send_fds(ends[0].sock, [frame(loan)], [block.descriptor])
    with pytest.raises(errors.InvalidArgumentError, match=why):
        ends[1].receive()


@pytest.fixture(scope="module")
def cluster():
    with ProcessCluster(ps=1, worker=2) as made:
        yield made


def large_variable():
    """A variable on the server, and an update with values that come from a worker: it is made in place."""
    with tf.device("/job:worker/task:1"):
        values = tf.fill([SIZE], tf.constant(1.0))
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("v", [SIZE], initializer=tf.zeros_initializer())
        return v, v.assign_add(values).op


def test_what_was_fetched_stays_as_it_was_and_is_the_users(cluster, graph):
    v, more = large_variable()
    with tf.Session(cluster.target("worker", 0)) as a, tf.Session(cluster.target("worker", 1)) as b:
        a.run(v.initializer)
        kept = []
        for i in range(8):
            kept += [a.run(v), b.run(v), b.run(v)]
            (a if i % 2 else b).run(more)
        for n, value in enumerate(kept):
            assert (value == n // 3).all()
            value += 1.0  # the user may do so
        assert (a.run(v) == 8).all()


def test_workers_that_read_while_others_write_see_whole_values(cluster, graph):
    v, more = large_variable()
    with tf.device("/job:worker/task:0"):
        extremes = tf.stack([tf.reduce_min(v), tf.reduce_max(v)])
    with tf.Session(cluster.target("worker", 0)) as a, tf.Session(cluster.target("worker", 1)) as b:
        a.run(v.initializer)

        def write():
            for _ in range(200):
                b.run(more)

        writer = in_background(write)
        last = 0.0
        while not writer.done():
            low, high = a.run(extremes)
            assert low == high >= last
            last = high
        writer.result()
        assert a.run(extremes).tolist() == [200.0, 200.0]


def test_a_killed_reader_costs_nothing_but_a_copy(graph):
    with ProcessCluster(ps=1, worker=2) as cluster:
        v, _ = large_variable()
        with tf.device("/job:ps/task:0"):
            more = v.assign_add(tf.random_uniform([SIZE], 1.0, 1.0)).op
        with tf.device("/job:worker/task:1"):
            held = tf.get_local_variable("held", [SIZE], initializer=tf.zeros_initializer())
            hold = tf.assign(held, v)
        with tf.Session(cluster.target("worker", 0)) as a:
            a.run([v.initializer, held.initializer])
            a.run(more)
            for _ in range(3):
                a.run(hold.op)
            cluster.kill("worker", 1)
            for _ in range(5):
                a.run(more)
            assert (a.run(v) == 6).all()
