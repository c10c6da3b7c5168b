"""Samplers with a variable appetite: the candidate samplers.

Host functions (numpy only) that consume a Philox stream exactly as TensorFlow's CPU kernels do. The
candidate samplers return `(sampled_candidates, true_expected_count, sampled_expected_count)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from tensorfleet.base.types import Array
from tensorfleet.kernels import philox

_MAX_TABLE_CLASSES = 1 << 20  # largest range whose log-uniform probabilities are kept in a table
_AHEAD_BLOCKS = 2048  # blocks drawn at once for the coming executions of a small sampler
_MAX_AHEAD_ROWS = 1024
_MAX_LISTED_CANDIDATES = 256  # candidates that are told apart sooner without numpy
_ahead: dict[tuple[bytes, int, int, _Draw], Array] = {}


#: A function from words to draws, and the range of the draws.
_Draw: TypeAlias = tuple[Callable[[Array, int], Array], int]


# --- drawing ---------------------------------------------------------------------------------------


def _rows_of_words(rng: Array, rows: int, stride: int, blocks_per_row: int) -> Array:
    """The first blocks of `rows` stretches of the stream, `stride` blocks apart: uint32[rows, words]."""
    starts = np.arange(rows, dtype=np.uint64)[:, None] * np.uint64(stride)
    offsets = (starts + np.arange(blocks_per_row, dtype=np.uint64)).reshape(-1)
    return philox.blocks(np, rng, offsets).reshape(rows, -1)


def _first_draws(rng: Array, num_sampled: int, count: int, draw: _Draw) -> Array:
    """The first `count` draws of this execution, kept from an earlier call where possible.

    An op that samples a few dozen candidates runs every step, each time a known distance further in
    its stream, so the draws of the next executions come nearly free with those of this one.
    """
    key = (rng.tobytes(), num_sampled, count, draw)
    row = _ahead.pop(key, None)
    if row is not None:
        return row
    stride, per_row = philox.reserved("CandidateSampler", num_sampled), -(-count * 2 // 4)
    rows = max(1, _AHEAD_BLOCKS // per_row)
    drawn = draw[0](_rows_of_words(rng, rows, stride, per_row), *draw[1:])
    if len(_ahead) + rows > _MAX_AHEAD_ROWS:
        _ahead.clear()
    for i in range(1, rows):
        _ahead[philox.skip_bytes(key[0], i * stride), *key[1:]] = drawn[i]
    result: Array = drawn[0]
    return result


def _growing(rng: Array, num_sampled: int, draw: _Draw) -> Callable[[int], Array]:
    """A function of how many draws of this execution are wanted, for `_pick`; it draws only those that it has not yet."""
    drawn: list[Array] = []

    def first_draws(count: int) -> Array:
        have = sum(len(part) for part in drawn)
        if not have:
            drawn.append(_first_draws(rng, num_sampled, count, draw))
        elif have < count:  # whole blocks of two draws each
            words = _rows_of_words(philox.skip(rng, have // 2), 1, 0, (count - have + 1) // 2)
            drawn.append(draw[0](words, *draw[1:])[0])
        return np.concatenate(drawn)

    return first_draws


def _pick(first_draws: Callable[[int], Array], num_sampled: int, unique: bool) -> tuple[Array, int]:
    """(candidates, tries) taken in order from `first_draws(count)`, where -1 is a rejected draw."""
    # A few draws more than wanted, since rejected and repeated ones do not count. If they are too few, draw again.
    count = num_sampled + num_sampled // 4 + 16 if unique else num_sampled + 4
    while True:
        if unique and num_sampled > _MAX_LISTED_CANDIDATES:
            drawn = first_draws(count)
            drawn = drawn[drawn != -1]
            firsts = _firsts(drawn)[:num_sampled]
            if len(firsts) == num_sampled:
                return drawn[firsts].astype(np.int64), int(firsts[-1]) + 1
            count += count // 2
            continue
        draws = first_draws(count).tolist()
        distinct = dict.fromkeys(draws)
        if -1 in distinct:
            del distinct[-1]
            draws = [value for value in draws if value != -1]
        picked = list(distinct) if unique else draws
        if len(picked) >= num_sampled:
            picked = picked[:num_sampled]
            tries = draws.index(picked[-1]) + 1 if unique and picked else num_sampled
            return np.array(picked, np.int64), tries
        count *= 2


def _firsts(drawn: Array) -> Array:
    """Where in a vector of integers above zero each value is met for the first time."""
    highest = int(drawn.max(initial=0))
    # A table of all values costs less than sorting, unless it is far larger than the vector.
    if highest > 64 * len(drawn):
        return np.sort(np.unique(drawn, return_index=True)[1])
    first = np.empty(highest + 1, np.int32)
    first[drawn[::-1]] = np.arange(len(drawn) - 1, -1, -1, dtype=np.int32)  # the last one written stays
    return np.flatnonzero(first[drawn] == np.arange(len(drawn)))


def _expected_count(probability: Array, num_sampled: int, tries: int) -> Array:
    """Expected occurrences among the candidates, given that choosing them took `tries` draws."""
    if tries == num_sampled:
        return probability * np.float32(num_sampled)
    return _expected_from_log(_log_of_absence(probability), tries)


def _log_of_absence(probability: Array) -> Array:
    with np.errstate(divide="ignore"):  # probability one: minus infinity is right
        return np.log1p(-probability)


def _expected_from_log(log_absence: Array, tries: int) -> Array:
    return -np.expm1(log_absence * np.float32(tries))


def _counted(
    sampled: Array, true_classes: Array, expected: Callable[[Array], Array]
) -> tuple[Array, Array, Array]:
    """The results of a sampler: the candidates, and how often the true and the sampled classes are expected."""
    return sampled, expected(np.asarray(true_classes)), expected(sampled)


# --- candidate samplers ----------------------------------------------------------------------------


def log_uniform_candidate_sampler(
    rng: Array, true_classes: Array, num_sampled: int, unique: bool, range_max: int
) -> tuple[Array, Array, Array]:
    """LogUniformCandidateSampler: class k with probability log((k + 2) / (k + 1)) / log(range_max + 1)."""
    draw = (_log_uniform_draws, range_max)
    sampled, tries = _pick(_growing(rng, num_sampled, draw), num_sampled, unique)
    if range_max > _MAX_TABLE_CLASSES:
        return _counted(
            sampled,
            true_classes,
            lambda classes: _expected_count(_log_uniform_probability(classes, range_max), num_sampled, tries),
        )
    probability, log_absence = _log_uniform_table(range_max)
    if tries == num_sampled:
        scale = np.float32(num_sampled)
        return sampled, probability.take(true_classes) * scale, probability.take(sampled) * scale
    return _counted(
        sampled, true_classes, lambda classes: _expected_from_log(log_absence.take(classes), tries)
    )


def _log_uniform_draws(words: Array, range_max: int) -> Array:
    unit = philox.unit_double(words.reshape(-1, 4)).reshape(len(words), -1)
    unit *= math.log1p(range_max)
    return (np.exp(unit, unit).astype(np.int64) - 1) % range_max


def _log_uniform_probability(classes: Array, range_max: int) -> Array:
    return (np.log((classes + 2.0) / (classes + 1.0)) / math.log1p(range_max)).astype(np.float32)


@lru_cache(maxsize=4)
def _log_uniform_table(range_max: int) -> tuple[Array, Array]:
    probability = _log_uniform_probability(np.arange(range_max), range_max)
    return probability, _log_of_absence(probability)


def uniform_candidate_sampler(
    rng: Array, true_classes: Array, num_sampled: int, unique: bool, range_max: int
) -> tuple[Array, Array, Array]:
    """UniformCandidateSampler: every class with the same probability."""
    draw = (_uniform_draws, range_max)
    sampled, tries = _pick(_growing(rng, num_sampled, draw), num_sampled, unique)
    count = _expected_count(np.full(1, 1 / range_max, np.float32), num_sampled, tries)[0]
    return sampled, np.full(np.shape(true_classes), count), np.full(num_sampled, count)


def _uniform_draws(words: Array, range_max: int) -> Array:
    bits = words.view(np.uint64)
    drawn = (bits % np.uint64(range_max)).view(np.int64)
    if range_max & (range_max - 1):
        drawn[bits < np.uint64((1 << 64) % range_max)] = -1
    return drawn


def all_candidate_sampler(true_classes: Array, num_sampled: int) -> tuple[Array, Array, Array]:
    """AllCandidateSampler: every class exactly once. Draws nothing (but reserves like the others)."""
    ones = np.ones(num_sampled, np.float32)
    return np.arange(num_sampled), np.ones(np.shape(true_classes), np.float32), ones


def initial_unigram_weights(range_max: int) -> Array:
    """The counts a LearnedUnigramCandidateSampler op starts with."""
    return np.ones(range_max, np.int32)


def learned_unigram_candidate_sampler(
    rng: Array, true_classes: Array, num_sampled: int, unique: bool, weights: Array
) -> tuple[Array, Array, Array]:
    """LearnedUnigramCandidateSampler: classes as frequent as they were true in earlier executions.

    `weights` is the op's memory, from `initial_unigram_weights`; it is updated in place.
    """
    true_classes = np.asarray(true_classes)
    bounds = np.cumsum(weights, dtype=np.int64)
    total = int(bounds[-1])

    def first_draws(count: int) -> Array:
        words = _rows_of_words(rng, 1, 0, -(-count // 4))[0]
        drawn: Array = bounds.searchsorted(words % np.uint32(total), "right")
        if total & (total - 1):
            drawn[words < np.uint32((1 << 32) % total)] = -1
        return drawn

    sampled, tries = _pick(first_draws, num_sampled, unique)
    counted = _counted(
        sampled,
        true_classes,
        lambda classes: _expected_count(
            weights[classes].astype(np.float32) / np.float32(total), num_sampled, tries
        ),
    )
    np.add.at(weights, true_classes.reshape(-1)[: 2**31 - 1 - total], 1)
    return counted


class Unigrams:
    """The fixed distribution of a FixedUnigramCandidateSampler: build it once per op.

    `unigrams` are the weights of the classes after `num_reserved_ids`; each is raised to `distortion`.
    With `num_shards` > 1 only the classes with index % num_shards == shard take part.
    """

    def __init__(
        self,
        unigrams: Sequence[float] | Array,
        distortion: float = 1.0,
        num_reserved_ids: int = 0,
        num_shards: int = 1,
        shard: int = 0,
    ) -> None:
        reserved = sum(i % num_shards == shard for i in range(num_reserved_ids))
        mine = (np.arange(len(unigrams)) + reserved) % num_shards == shard
        raised = np.power(np.asarray(unigrams, np.float32)[mine], np.float32(distortion))
        self.weights = np.concatenate([np.zeros(reserved, np.float32), raised])
        total = np.cumsum(raised, dtype=np.float32)[-1]
        self.probability = self.weights / total
        self.keep, self.alias = _alias_table(self.weights)

    def draws(self, words: Array) -> Array:
        """Classes from a row of words: one for the coin, then one (or more, if rejected) for the slot."""
        slots = len(self.weights)
        rejected = 0 if slots & (slots - 1) == 0 else (1 << 32) % slots
        pairs = words[: len(words) // 2 * 2].reshape(-1, 2)
        if rejected and (pairs[:, 1] < rejected).any():
            pairs = np.array(list(_pairs_without(words.tolist(), rejected)), np.uint32).reshape(-1, 2)
        slot = (pairs[:, 1] % np.uint32(slots)).astype(np.int64)
        coin = philox.unit_float(pairs[:, 0].copy())
        return np.where(coin < self.keep[slot], slot, self.alias[slot])


def _pairs_without(words: Iterable[int], rejected: int) -> Iterator[tuple[int, int]]:
    left = iter(words)
    for coin in left:
        for slot in left:
            if slot >= rejected:
                yield coin, slot
                break


def _alias_table(weights: Array) -> tuple[Array, Array]:
    """Walker's tables: slot i gives class i with probability keep[i], else alias[i].

    The order in which heavy and light classes are paired is part of the result.
    """
    share = (weights * np.float32(len(weights))).astype(np.float64)
    share = (share / np.cumsum(weights, dtype=np.float64)[-1]).tolist()
    alias = list(range(len(share)))
    light = [i for i, s in enumerate(share) if s < 1]
    heavy = [i for i, s in enumerate(share) if not s < 1]
    while heavy and light:
        giver, taker = heavy.pop(), light.pop()
        alias[taker] = giver
        share[giver] -= 1 - share[taker]
        (light if share[giver] < 1 else heavy).append(giver)
    for i in heavy + light:  # left over by rounding: full slots
        share[i] = 1.0
    return np.array(share).astype(np.float32), np.array(alias)


def fixed_unigram_candidate_sampler(
    rng: Array, true_classes: Array, num_sampled: int, unique: bool, unigrams: Any
) -> tuple[Array, Array, Array]:
    """FixedUnigramCandidateSampler over the distribution `unigrams` (a `Unigrams`)."""

    def first_draws(count: int) -> Array:
        result: Array = unigrams.draws(_rows_of_words(rng, 1, 0, -(-count * 2 // 4))[0])
        return result

    sampled, tries = _pick(first_draws, num_sampled, unique)
    return _counted(
        sampled,
        true_classes,
        lambda classes: _expected_count(unigrams.probability[classes], num_sampled, tries),
    )
