"""Shards are dealt to readers that come, leave and die in any order: each is used once, or at least once."""

import random
from collections import Counter

import pytest

from tensorfleet.state.shard_deals import DEALT, OVER, WAIT, Shard, ShardDeals


def test_each_shard_is_dealt_once_in_an_epoch():
    deals = ShardDeals(3, 2, -1, True)
    got = [deals.next("a", 0.0) for _ in range(6)]
    assert got == [(DEALT, Shard(epoch, number)) for epoch in range(2) for number in range(3)]
    assert deals.next("a", 0.0) == (OVER, None)


def test_who_has_nothing_to_read_waits_while_another_may_die():
    deals = ShardDeals(1, 1, -1, True)
    deals.next("a", 0.0)
    assert deals.next("b", 0.0) == (WAIT, None)
    assert deals.lost("a") == Shard(0, 0)
    assert deals.next("b", 0.0) == (DEALT, Shard(0, 0))
    assert deals.next("b", 0.0) == (OVER, None)
    assert deals.dealt_again == 1 and deals.finished == 1


def test_a_shard_that_is_given_back_goes_on_where_its_reader_was():
    deals = ShardDeals(1, 1, -1, True)
    deals.next("a", 0.0)
    deals.give_back("a", 7)
    assert deals.next("b", 0.0) == (DEALT, Shard(0, 0, 7))


def test_the_rest_of_the_shard_of_a_dead_reader_can_be_skipped():
    deals = ShardDeals(2, 1, -1, False)
    deals.next("a", 0.0)
    deals.lost("a")
    assert deals.next("b", 0.0) == (DEALT, Shard(0, 1))
    assert deals.next("b", 0.0) == (OVER, None)


def test_with_a_seed_each_epoch_has_another_order():
    deals = ShardDeals(20, 2, 7, True)
    orders = [[deals.next("a", 0.0)[1].number for _ in range(20)] for _ in range(2)]
    assert sorted(orders[0]) == sorted(orders[1]) == list(range(20))
    assert orders[0] != orders[1]
    other = ShardDeals(20, 2, 7, True)
    assert [other.next("b", 0.0)[1].number for _ in range(20)] == orders[0]


def test_readers_of_a_lost_server_have_some_time_to_ask_its_successor():
    before = ShardDeals(3, 1, -1, True)
    before.next("a", 0.0)
    before.next("b", 0.0)
    after = ShardDeals(3, 1, -1, True)
    after.restore(before.content())
    assert after.next("b", 100.0) == (DEALT, Shard(0, 2))
    assert after.next("b", 159.0) == (WAIT, None)
    assert after.next("b", 161.0) == (DEALT, Shard(0, 0))  # a never came
    assert after.next("a", 162.0) == (WAIT, None)


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("again", [True, False], ids=["repeat", "skip"])
def test_nothing_is_lost_or_used_twice_but_by_deaths(seed, again):
    """Readers come, leave, die, and the server fails over, in a random order of events."""
    draw = random.Random(seed)
    shards, epochs, size = draw.randint(1, 9), draw.randint(1, 3), 4
    deals = ShardDeals(shards, epochs, draw.choice([-1, 5]), again)
    used: Counter = Counter()
    doubtful: set = set()  # elements of a shard whose reader died
    readers: dict[str, tuple[Shard, int] | None] = {}
    over, number, now = False, 0, 0.0
    while not over:
        number, now = number + 1, now + 1.0
        event = draw.random()
        if not readers or event < 0.1:
            readers[f"r{number}"] = None
        reader = draw.choice(sorted(readers))
        has = readers[reader]
        if event < 0.15:
            lost = deals.lost(reader)
            if lost is not None:
                doubtful |= {(lost.epoch, lost.number, i) for i in range(lost.position, size)}
            del readers[reader]
        elif event < 0.25:
            if has is not None:
                deals.give_back(reader, has[1])
            del readers[reader]
        elif event < 0.3:
            copy = ShardDeals(shards, epochs, deals.seed, again)
            copy.restore(deals.content())
            deals = copy
        elif has is not None and has[1] < size:
            shard, position = has
            used[shard.epoch, shard.number, position] += 1
            readers[reader] = shard, position + 1
        else:
            outcome, shard = deals.next(reader, now)
            readers[reader] = None if shard is None else (shard, shard.position)
            over = outcome == OVER
    assert number < 100_000
    for epoch in range(epochs):
        for shard_number in range(shards):
            for i in range(size):
                count = used[epoch, shard_number, i]
                if (epoch, shard_number, i) not in doubtful:
                    assert count == 1
                elif again:
                    assert count >= 1
                else:
                    assert count <= 1
