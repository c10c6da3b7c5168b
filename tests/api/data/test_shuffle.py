"""A shuffle draws from its buffer, whatever the size of the blocks it is asked for."""

import collections

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorfleet as tf
from tensorfleet.api.data.blocks import Block
from tensorfleet.api.data.nodes import CountingRun, DatasetRun
from tensorfleet.api.data.shuffling import ShuffleRun, ShuffleSeeds


class Texts(DatasetRun):
    """Strings in blocks of no particular size: they are kept in a buffer, and not as positions."""

    def __init__(self, count):
        self._texts = [b"%d" % i for i in range(count)]

    def next(self, n, step):
        if not self._texts:
            return None
        result, self._texts = self._texts[: min(n, 3)], self._texts[min(n, 3) :]
        return Block(len(result), [np.array(result, object)])


def shuffled(source, size, seed, asked):
    """All elements, asked for in turns of these sizes."""
    rounds = ShuffleSeeds((seed + 1, 0), again=True)
    run = ShuffleRun(source, size, rounds.next(), rounds)
    result = []
    while True:
        for n in asked:
            block = run.next(n, None)
            if block is None:
                return result
            assert 1 <= block.size <= n
            result += [int(v) for v in block.columns[0]]


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from([lambda n: CountingRun(0, n), Texts]),
    st.integers(0, 40),
    st.integers(1, 50),
    st.integers(0, 5),
    st.lists(st.integers(1, 20), min_size=1, max_size=4),
)
def test_nothing_is_lost_or_doubled_and_nobody_comes_before_the_buffer_reaches_him(
    source, count, size, seed, asked
):
    result = shuffled(source(count), size, seed, asked)
    assert sorted(result) == list(range(count))
    assert all(value < place + size for place, value in enumerate(result))


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from([lambda n: CountingRun(0, n), Texts]),
    st.integers(0, 40),
    st.integers(1, 50),
    st.lists(st.integers(1, 20), min_size=1, max_size=4),
)
def test_the_order_does_not_depend_on_how_many_are_asked_for(source, count, size, asked):
    assert shuffled(source(count), size, 3, asked) == shuffled(source(count), size, 3, [1])


@pytest.mark.parametrize(
    ("size", "again", "known"),
    [
        (3, True, [1, 3, 4, 5, 2, 7, 8, 0, 9, 6]),
        (10, True, [5, 3, 0, 2, 7, 6, 4, 1, 9, 8]),
        (100, False, [1, 3, 2, 7, 6, 9, 0, 5, 8, 4]),
    ],
)
def test_seeds_give_the_orders_that_tensorflow_gives(size, again, known):
    dataset = tf.data.Dataset.range(10).shuffle(size, seed=5, reshuffle_each_iteration=again)
    following = dataset.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert [session.run(following) for _ in range(10)] == known


@pytest.mark.parametrize("asked", [[1], [2, 5], [100]])
def test_every_order_is_as_likely_as_the_others(asked):
    orders = collections.Counter(tuple(shuffled(CountingRun(0, 3), 3, seed, asked)) for seed in range(1200))
    assert len(orders) == 6 and min(orders.values()) > 140  # 200 expected of each
    firsts = collections.Counter(shuffled(CountingRun(0, 50), 4, seed, asked)[0] for seed in range(400))
    assert set(firsts) == {0, 1, 2, 3} and min(firsts.values()) > 60  # 100 expected of each
