"""Boards: values of variables that other processes read without asking."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.cluster.transport.tensor_bytes import describe, layout_of
from tensorfleet.runtime.resources import VariableStore
from tensorfleet.runtime.shared_memory import mapping
from tensorfleet.runtime.shared_memory import server_reads as boards
from tensorfleet.runtime.shared_memory.server_reads import BoardReader, board_of

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.skipif(not boards.are_possible(), reason="boards need x86 and Linux")


def variable(value, dtype=tf.float32):
    made = VariableStore("v", dtype)
    with made.lock:
        made.swap(value)
    return made


def changed(store, value):
    with store.lock:
        store.swap(value)


def reader_of(board):
    """A reader as another process makes it: from a descriptor and what is told of the values."""
    layout, total = layout_of(describe([np.asarray(v) for v in board.values])[0], len(board.values))
    assert board.size == boards.head_of(len(board.values)) + total
    descriptor = board.opened()
    try:
        memory = mapping.mapped(descriptor, board.size)
    finally:
        os.close(descriptor)
    return BoardReader(memory, [(dtype, shape, start) for dtype, shape, start, _ in layout])


@pytest.fixture
def stores():
    return [
        variable(np.arange(5, dtype=np.float32)),
        variable(np.float32(7.0)),
        variable(np.ones((3, 70), np.float32)),
    ]


@pytest.fixture
def board(stores):
    made = board_of(stores)
    yield made
    made.take_down()


def test_a_reader_finds_every_change(stores, board):
    reader = reader_of(board)
    for n in range(20):
        changed(stores[0], np.full(5, n, np.float32))
        with stores[2].lock, stores[2].gate:
            array = stores[2].writable()
            array += 1
            stores[2].touched()
        first, second, third = reader.read()
        np.testing.assert_array_equal(first, [n] * 5)
        assert second.shape == () and second == 7.0
        np.testing.assert_array_equal(third, np.full((3, 70), n + 2))


def test_what_was_read_stays_as_it_was(stores, board):
    reader = reader_of(board)
    kept = []
    for n in range(4):
        changed(stores[0], np.full(5, n, np.float32))
        kept.append(reader.read()[0])
    assert [k[0] for k in kept] == [0, 1, 2, 3]
    kept[0][:] = 9  # it is the reader's own
    assert reader.read()[0][0] == 3


def test_memory_is_used_again_when_nothing_of_it_is_held(board):
    reader = reader_of(board)
    places = {reader.read()[0].ctypes.data for _ in range(5)}
    assert len(places) == 1


def test_values_are_aligned(board):
    assert all(v.ctypes.data % 64 == 0 for v in reader_of(board).read())


def test_nothing_is_read_while_a_value_is_being_written(stores, board):
    reader = reader_of(board)
    board._counts[1] = 1
    assert reader.read() is None
    board._counts[1] = 2
    assert reader.read() is not None


def test_a_value_that_changed_while_it_was_copied_is_copied_again(stores, board, monkeypatch):
    reader = reader_of(board)
    changes = iter([np.float32(8.0), np.float32(9.0)])
    room = reader._room

    class Copying(np.ndarray):
        def __setitem__(self, where, value):
            super().__setitem__(where, value)
            new = next(changes, None)
            if new is not None:
                changed(stores[1], new)

    monkeypatch.setattr(reader, "_room", lambda: room().view(Copying))
    assert reader.read()[1] == 9.0


@pytest.mark.parametrize("value", [None, np.zeros(6, np.float32), np.zeros(5, np.int32)])
def test_it_is_taken_down_when_a_value_does_not_fit_any_more(stores, board, value):
    reader = reader_of(board)
    assert reader.read() is not None
    if value is None:
        stores[0].clear()
    else:
        changed(stores[0], value)
    assert reader.read() is None
    assert not any(s.boards for s in stores) and board.opened() is None


def test_it_is_taken_down_when_nobody_reads(stores, board):
    reader = reader_of(board)
    for _ in range(3 * boards._MAX_UNREAD_CHANGES):
        changed(stores[1], np.float32(1.0))
    assert reader.read() is not None
    for _ in range(3 * boards._MAX_UNREAD_CHANGES + 2):
        changed(stores[1], np.float32(1.0))
    assert reader.read() is None


def test_those_who_read_the_same_variables_share_it(stores, board):
    assert board_of(stores) is board
    other = board_of(stores[:2])
    assert other is not board
    other.take_down()
    assert board_of(stores) is board


@pytest.mark.parametrize(
    "value",
    [None, np.zeros(boards.MAX_BYTES + 4, np.uint8), np.array([b"text"], object), np.zeros(0, np.float32)],
)
def test_there_is_none_for_what_cannot_be_shown(stores, value):
    assert board_of([stores[0], variable(value)]) is None


def test_there_is_none_while_a_variable_is_being_changed(stores):
    from tests.support.waiting import in_background

    with stores[1].lock:
        assert in_background(lambda: board_of(stores)).result() is None


def test_there_are_only_so_many(stores, monkeypatch):
    monkeypatch.setattr(boards, "_MAX_BOARDS", len(boards._up) + 1)
    first = board_of(stores)
    assert board_of(stores[:1]) is None
    first.take_down()
    second = board_of(stores[:1])
    assert second is not None
    second.take_down()


def test_no_descriptor_is_left(stores):
    before = len(os.listdir("/proc/self/fd"))
    made = board_of(stores)
    made.take_down()
    made.take_down()
    del made
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_forked_process_does_not_write_to_it(stores):
    """To fork this one would not do: XLA has threads."""
    script = """
import os
import numpy as np
from tests.runtime.shared_memory.test_server_reads import board_of, changed, reader_of, variable

stores = [variable(np.float32(7.0)), variable(np.ones(3, np.float32))]
board = board_of(stores)
reader = reader_of(board)
child = os.fork()
if not child:
    changed(stores[0], np.float32(-1.0))
    os._exit(0 if not stores[0].boards and board_of(stores) is not board else 1)
assert os.waitpid(child, 0)[1] == 0
assert reader.read()[0] == 7.0
changed(stores[0], np.float32(8.0))
assert reader.read()[0] == 8.0
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
