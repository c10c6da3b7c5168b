"""Rows of arrays in memory: what lies how in memory, and what is given of it."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.api.data.batches import gathered
from tensorfleet.api.data.nodes import ColumnSlices
from tensorfleet.api.data.shuffling import shuffled
from tensorfleet.api.data.transforms import repeated


def test_batches_of_rows_in_memory_start_where_xla_takes_them():
    images = np.random.rand(300, 784).astype(np.float32)
    run = shuffled(ColumnSlices([images], 300), 300, (1, 2), True).start(None)
    for _ in range(3):
        (rows,) = gathered(run, 100, None).columns
        assert len(rows) == 100 and rows.__array_interface__["data"][0] % 64 == 0


def test_rows_of_an_array_in_any_order_of_memory(session):
    numbers = np.arange(60.0).reshape(20, 3)
    given = tf.placeholder(tf.float64, [20, 3])
    iterator = tf.data.Dataset.from_tensor_slices(given).shuffle(20).batch(20).make_initializable_iterator()
    following = iterator.get_next()
    for order in (numbers, np.asfortranarray(numbers), np.repeat(numbers, 2, axis=0)[::2]):
        session.run(iterator.initializer, {given: order})
        result = session.run(following)
        np.testing.assert_array_equal(result[np.argsort(result[:, 0])], numbers)


def test_a_place_restored_into_fewer_rows_is_refused(tmp_path, session):
    given = tf.placeholder(tf.float64, [None])
    iterator = tf.data.Dataset.from_tensor_slices(given).shuffle(3000).make_initializable_iterator()
    following = iterator.get_next()
    saver = tf.train.Saver([tf.data.experimental.make_saveable_from_iterator(iterator)])
    session.run(iterator.initializer, {given: np.arange(3000.0)})
    session.run(following)
    path = saver.save(session, str(tmp_path / "place"))
    session.run(iterator.initializer, {given: np.arange(10.0)})
    saver.restore(session, path)
    with pytest.raises(tf.errors.InvalidArgumentError, match="another dataset than this one"):
        while True:
            session.run(following)


def test_batches_that_are_kept_stay_as_they_were():
    images = np.arange(200.0 * 784).reshape(200, 784)
    run = ColumnSlices([images], 200).start(None)
    kept = [run.next(20, None).columns[0] for _ in range(10)]
    np.testing.assert_array_equal(np.concatenate(kept), images)


def test_a_batch_may_begin_in_one_round_and_end_in_the_next():
    rows = repeated(ColumnSlices([np.arange(7)], 7), 3).start(None)
    sizes, result = [], []
    while (block := rows.next(5, None)) is not None:
        sizes.append(block.size)
        result += block.columns[0].tolist()
    assert sizes == [5, 5, 5, 5, 1] and result == list(range(7)) * 3
    assert rows.next(5, None) is None


def test_more_rows_than_anyone_needs_at_once_come_as_they_are_found():
    rows = repeated(ColumnSlices([np.arange(5000)], 5000), -1).start(None)
    assert rows.next(1 << 40, None).size == 5000


@pytest.mark.parametrize("width", [1, 5, 2000])
def test_rows_of_any_size_stay_together(width):
    numbers = np.repeat(np.arange(2500)[:, None], width, axis=1)
    texts = np.array([str(i).encode() for i in range(2500)], object)
    run = shuffled(ColumnSlices([numbers, np.arange(2500), texts], 2500), 2500, (1, 2), True).start(None)
    seen = []
    for n in [1, 7, 100, 1000, 3, 5000, 5000]:
        block = run.next(n, None)
        if block is None:
            break
        wide, narrow, named = block.columns
        assert len(wide) == len(narrow) == len(named) == block.size
        assert (wide == narrow[:, None]).all() and [int(t) for t in named] == narrow.tolist()
        seen += narrow.tolist()
    while (block := run.next(64, None)) is not None:
        seen += block.columns[1].tolist()
    assert sorted(seen) == list(range(2500))


def test_a_restored_place_gives_the_rows_that_were_to_come():
    numbers = np.arange(3000)
    first, second = (
        shuffled(ColumnSlices([numbers, numbers * 2.0], 3000), 3000, (1, 2), True).start(None)
        for _ in range(2)
    )
    first.next(10, None)
    second.next(25, None)
    state = first.save()
    second.restore(state, None)
    for _ in range(5):
        a, b = first.next(100, None), second.next(100, None)
        np.testing.assert_array_equal(a.columns, b.columns)
