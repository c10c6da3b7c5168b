"""Interleaved datasets: the same elements in the same order, whether asked for one by one or many at a time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorfleet as tf
from tensorfleet.api.data.blocks import Block
from tensorfleet.api.data.interleaving import InterleaveRun
from tensorfleet.api.data.nodes import CountingRun, DatasetRun, StartNode

BAD = -1


class Numbers(DatasetRun):
    """Numbers in blocks of no particular size; a bad one is an error when it is its turn."""

    place = ("_left",)

    def __init__(self, numbers):
        self._left = list(numbers)

    def next(self, n, step):
        if not self._left:
            return None
        if self._left[0] == BAD:
            del self._left[0]
            raise tf.errors.DataLossError(None, None, "bad")
        good = self._left.index(BAD) if BAD in self._left else len(self._left)
        count = min(n, good, 5)
        result, self._left = self._left[:count], self._left[count:]
        return Block(count, [np.array(result)])


class Step:
    reason = None


class Making:
    """A function that makes the dataset number i."""

    def __init__(self, lists):
        self._lists = lists

    def call(self, element, step):
        return [StartNode(lambda s: Numbers(self._lists[int(element[0])]))]


def in_turns(lists, cycle, block):
    """What is to come, by the definition."""
    waiting, opened, result, at, taken = list(lists), [None] * cycle, [], 0, 0
    while waiting or any(o is not None for o in opened):
        if opened[at] is None and waiting:
            opened[at], taken = list(waiting.pop(0)), 0
        if opened[at] is None or not opened[at]:
            opened[at], at, taken = None, (at + 1) % cycle, 0
            continue
        value = opened[at].pop(0)
        result.append(value)
        taken += value != BAD
        if taken == block:
            at, taken = (at + 1) % cycle, 0
    return result


def asked(run, sizes, stop=None):
    """Everything a run gives, asked for in turns of these sizes."""
    result = []
    for i in range(10_000):
        if stop is not None and i == stop:
            return result
        try:
            block = run.next(sizes[i % len(sizes)], Step())
        except tf.errors.DataLossError:
            result.append(BAD)
            continue
        if block is None:
            return result
        assert block.size <= sizes[i % len(sizes)]
        result += block.columns[0].tolist()
    raise AssertionError("it does not end")


LISTS = st.lists(st.lists(st.integers(0, 9) | st.just(BAD), max_size=30), max_size=7)
SIZES = st.lists(st.integers(1, 40), min_size=1, max_size=4)


@settings(max_examples=300, deadline=None)
@given(LISTS, st.integers(1, 4), st.integers(1, 4), SIZES)
def test_all_elements_come_in_turns_however_many_are_asked_for(lists, cycle, block, sizes):
    run = InterleaveRun(CountingRun(0, len(lists)), Making(lists), cycle, block)
    assert asked(run, sizes) == in_turns(lists, cycle, block)


@settings(max_examples=100, deadline=None)
@given(LISTS, st.integers(1, 4), st.integers(1, 4), SIZES, st.integers(0, 6))
def test_a_place_kept_in_between_goes_on_with_the_next(lists, cycle, block, sizes, stop):
    make = lambda: InterleaveRun(CountingRun(0, len(lists)), Making(lists), cycle, block)  # noqa: E731
    first, second = make(), make()
    before = asked(first, sizes, stop)
    second.restore(first.save(), Step())
    assert before + asked(second, sizes) == in_turns(lists, cycle, block)


@pytest.mark.parametrize("parallel", [None, 2])
def test_records_of_several_files_come_in_turns(tmp_path, parallel, session):
    names = [str(tmp_path / f"{i}") for i in range(3)]
    for i, name in enumerate(names):
        with tf.python_io.TFRecordWriter(name) as writer:
            for k in range(100 + 7 * i):
                writer.write(b"%d %d" % (i, k))
    files = tf.data.Dataset.from_tensor_slices(names)
    records = files.interleave(tf.data.TFRecordDataset, 2, 3, num_parallel_calls=parallel).batch(1000)
    result = session.run(records.make_one_shot_iterator().get_next())
    lists = [[b"%d %d" % (i, k) for k in range(100 + 7 * i)] for i in range(3)]
    assert result.tolist() == in_turns(lists, 2, 3)


@pytest.mark.parametrize("cycle", [1, 2, 7])
def test_a_dataset_that_cannot_be_opened_is_an_error_in_its_turn(cycle):
    values = tf.data.Dataset.from_tensor_slices(np.float32([1, np.nan, 2, np.nan, 3]))
    checked = values.map(lambda v: tf.check_numerics(v, "bad"))
    dataset = checked.interleave(tf.data.Dataset.from_tensors, cycle, num_parallel_calls=1)
    following, result = dataset.make_one_shot_iterator().get_next(), []
    with tf.Session() as sess:
        while True:
            try:
                result.append(sess.run(following))
            except tf.errors.InvalidArgumentError:
                result.append("error")
            except tf.errors.OutOfRangeError:
                break
    assert result == [1, "error", 2, "error", 3]
