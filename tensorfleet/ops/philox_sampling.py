"""Samplers with a variable appetite: the candidate samplers, gamma and Poisson.

Host functions (numpy only) that consume a Philox stream exactly as TensorFlow's CPU kernels do. The
candidate samplers return `(sampled_candidates, true_expected_count, sampled_expected_count)`.
"""

import math
from functools import lru_cache

import numpy as np

from tensorfleet.ops import philox

_TABLE_LIMIT = 1 << 20  # largest range whose log-uniform probabilities are kept in a table
_AHEAD_BLOCKS = 2048  # blocks drawn at once for the coming executions of a small sampler
_AHEAD_ENTRIES = 1024
_ahead: dict[tuple, np.ndarray] = {}


# --- drawing ---------------------------------------------------------------------------------------


def _rows_of_words(rng, rows, stride, blocks_per_row):
    """The first blocks of `rows` stretches of the stream, `stride` blocks apart: uint32[rows, words]."""
    starts = np.arange(rows, dtype=np.uint64)[:, None] * np.uint64(stride)
    offsets = (starts + np.arange(blocks_per_row, dtype=np.uint64)).reshape(-1)
    return philox.blocks(np, rng, offsets).reshape(rows, -1)


def _first_draws(rng, num_sampled, count, draw):
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
    if len(_ahead) + rows > _AHEAD_ENTRIES:
        _ahead.clear()
    for i in range(1, rows):
        _ahead[philox.skip_bytes(key[0], i * stride), *key[1:]] = drawn[i]
    return drawn[0]


def _pick(first_draws, num_sampled, unique):
    """(candidates, tries) taken in order from `first_draws(count)`, where -1 is a rejected draw."""
    count = num_sampled + num_sampled // 4 + 16 if unique else num_sampled + 4
    while True:
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


def _expected_count(probability, num_sampled, tries):
    """Expected occurrences among the candidates, given that choosing them took `tries` draws."""
    if tries == num_sampled:
        return probability * np.float32(num_sampled)
    return _expected_from_log(_log_of_absence(probability), tries)


def _log_of_absence(probability):
    with np.errstate(divide="ignore"):  # probability one: minus infinity is right
        return np.log1p(-probability)


def _expected_from_log(log_absence, tries):
    return -np.expm1(log_absence * np.float32(tries))


# --- candidate samplers ----------------------------------------------------------------------------


def log_uniform_candidate_sampler(rng, true_classes, num_sampled, unique, range_max):
    """LogUniformCandidateSampler: class k with probability log((k + 2) / (k + 1)) / log(range_max + 1)."""
    draw = (_log_uniform_draws, range_max)
    sampled, tries = _pick(lambda count: _first_draws(rng, num_sampled, count, draw), num_sampled, unique)
    if range_max > _TABLE_LIMIT:
        counts = [
            _expected_count(_log_uniform_probability(classes, range_max), num_sampled, tries)
            for classes in (np.asarray(true_classes), sampled)
        ]
        return sampled, *counts
    probability, log_absence = _log_uniform_table(range_max)
    if tries == num_sampled:
        scale = np.float32(num_sampled)
        return sampled, probability.take(true_classes) * scale, probability.take(sampled) * scale
    counts = [_expected_from_log(log_absence.take(classes), tries) for classes in (true_classes, sampled)]
    return sampled, *counts


def _log_uniform_draws(words, range_max):
    unit = philox._unit_double(words.reshape(-1, 4)).reshape(len(words), -1)
    unit *= math.log1p(range_max)
    return (np.exp(unit, unit).astype(np.int64) - 1) % range_max


def _log_uniform_probability(classes, range_max):
    return (np.log((classes + 2.0) / (classes + 1.0)) / math.log1p(range_max)).astype(np.float32)


@lru_cache(maxsize=4)
def _log_uniform_table(range_max):
    probability = _log_uniform_probability(np.arange(range_max), range_max)
    return probability, _log_of_absence(probability)


def uniform_candidate_sampler(rng, true_classes, num_sampled, unique, range_max):
    """UniformCandidateSampler: every class with the same probability."""
    draw = (_uniform_draws, range_max)
    sampled, tries = _pick(lambda count: _first_draws(rng, num_sampled, count, draw), num_sampled, unique)
    count = _expected_count(np.full(1, 1 / range_max, np.float32), num_sampled, tries)[0]
    return sampled, np.full(np.shape(true_classes), count), np.full(num_sampled, count)


def _uniform_draws(words, range_max):
    bits = words.view(np.uint64)
    drawn = (bits % np.uint64(range_max)).view(np.int64)
    if range_max & (range_max - 1):
        drawn[bits < np.uint64((1 << 64) % range_max)] = -1
    return drawn


def all_candidate_sampler(true_classes, num_sampled):
    """AllCandidateSampler: every class exactly once. Draws nothing (but reserves like the others)."""
    ones = np.ones(num_sampled, np.float32)
    return np.arange(num_sampled), np.ones(np.shape(true_classes), np.float32), ones


def initial_unigram_weights(range_max):
    """The counts a LearnedUnigramCandidateSampler op starts with."""
    return np.ones(range_max, np.int32)


def learned_unigram_candidate_sampler(rng, true_classes, num_sampled, unique, weights):
    """LearnedUnigramCandidateSampler: classes as frequent as they were true in earlier executions.

    `weights` is the op's memory, from `initial_unigram_weights`; it is updated in place.
    """
    true_classes = np.asarray(true_classes)
    bounds = np.cumsum(weights, dtype=np.int64)
    total = int(bounds[-1])

    def first_draws(count):
        words = _rows_of_words(rng, 1, 0, -(-count // 4))[0]
        drawn = bounds.searchsorted(words % np.uint32(total), "right")
        if total & (total - 1):
            drawn[words < np.uint32((1 << 32) % total)] = -1
        return drawn

    sampled, tries = _pick(first_draws, num_sampled, unique)
    counts = [
        _expected_count(weights[classes].astype(np.float32) / np.float32(total), num_sampled, tries)
        for classes in (true_classes, sampled)
    ]
    np.add.at(weights, true_classes.reshape(-1)[: 2**31 - 1 - total], 1)
    return sampled, *counts


class Unigrams:
    """The fixed distribution of a FixedUnigramCandidateSampler: build it once per op.

    `unigrams` are the weights of the classes after `num_reserved_ids`; each is raised to `distortion`.
    With `num_shards` > 1 only the classes with index % num_shards == shard take part.
    """

    def __init__(self, unigrams, distortion=1.0, num_reserved_ids=0, num_shards=1, shard=0):
        reserved = sum(i % num_shards == shard for i in range(num_reserved_ids))
        mine = (np.arange(len(unigrams)) + reserved) % num_shards == shard
        raised = np.power(np.asarray(unigrams, np.float32)[mine], np.float32(distortion))
        self.weights = np.concatenate([np.zeros(reserved, np.float32), raised])
        total = np.cumsum(raised, dtype=np.float32)[-1]
        self.probability = self.weights / total
        self.keep, self.alias = _alias_table(self.weights)

    def draws(self, words):
        """Classes from a row of words: one for the coin, then one (or more, if rejected) for the slot."""
        slots = len(self.weights)
        rejected = 0 if slots & (slots - 1) == 0 else (1 << 32) % slots
        pairs = words[: len(words) // 2 * 2].reshape(-1, 2)
        if rejected and (pairs[:, 1] < rejected).any():
            pairs = np.array(list(_pairs_without(words.tolist(), rejected)), np.uint32).reshape(-1, 2)
        slot = (pairs[:, 1] % np.uint32(slots)).astype(np.int64)
        coin = philox._unit_float(pairs[:, 0].copy())
        return np.where(coin < self.keep[slot], slot, self.alias[slot])


def _pairs_without(words, rejected):
    words = iter(words)
    for coin in words:
        for slot in words:
            if slot >= rejected:
                yield coin, slot
                break


def _alias_table(weights):
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


def fixed_unigram_candidate_sampler(rng, true_classes, num_sampled, unique, unigrams):
    """FixedUnigramCandidateSampler over the distribution `unigrams` (a `Unigrams`)."""

    def first_draws(count):
        return unigrams.draws(_rows_of_words(rng, 1, 0, -(-count * 2 // 4))[0])

    sampled, tries = _pick(first_draws, num_sampled, unique)
    counts = [
        _expected_count(unigrams.probability[classes], num_sampled, tries)
        for classes in (np.asarray(true_classes), sampled)
    ]
    return sampled, *counts


# --- gamma and Poisson -----------------------------------------------------------------------------


class _Supply:
    """The stretch of the stream that belongs to one output: doubles and normals in TensorFlow's order.

    Each kind takes whole blocks, two numbers from each, the second number first.
    """

    def __init__(self, rng, output, first_blocks):
        self._rng, self._output = rng, output
        self._blocks, self._taken = first_blocks, 0
        self._uniforms, self._normals = [], []

    def _next_block(self):
        if self._taken == len(self._blocks):
            start = self._output * 256 + self._taken
            offsets = np.arange(start, start + 2 * self._taken, dtype=np.uint64)
            self._blocks += philox._unit_double(philox.blocks(np, self._rng, offsets)).tolist()
        self._taken += 1
        return self._blocks[self._taken - 1]

    def uniform(self):
        if not self._uniforms:
            self._uniforms = list(self._next_block())
        return self._uniforms.pop()

    def normal(self):
        if not self._normals:
            u, turn = self._next_block()
            radius, angle = math.sqrt(-2 * math.log(max(u, 1e-7))), 2 * math.pi * turn
            self._normals = [math.sin(angle) * radius, math.cos(angle) * radius]
        return self._normals.pop()


def _sample_each(rng, shape, parameters, dtype, sampler_of):
    """One sample per element of `shape` and per parameter; output shape is shape + parameters.shape."""
    parameters = np.asarray(parameters)
    samples = int(np.prod(shape, dtype=np.int64))
    table = np.empty((parameters.size, samples))
    for i, parameter in enumerate(parameters.astype(np.float64).reshape(-1).tolist()):
        sample = sampler_of(parameter)
        starts = (np.arange(i * samples, (i + 1) * samples, dtype=np.uint64) * np.uint64(256))[:, None]
        words = philox.blocks(np, rng, (starts + np.arange(4, dtype=np.uint64)).reshape(-1))
        units = philox._unit_double(words).reshape(samples, 4, 2).tolist()
        table[i] = [sample(_Supply(rng, i * samples + j, first)) for j, first in enumerate(units)]
    if np.dtype(dtype).itemsize == 2:  # TensorFlow narrows in two steps, each of which rounds
        table = table.astype(np.float32)
    return table.T.astype(dtype, order="C").reshape(*shape, *parameters.shape)


def random_gamma(rng, shape, alpha):
    """RandomGamma(alpha) with unit rate, of alpha's type: Marsaglia and Tsang's rejection."""
    return _sample_each(rng, shape, alpha, np.asarray(alpha).dtype, _gamma_sampler)


def _gamma_sampler(alpha):
    if not alpha > 0:
        return lambda supply: 0.0 if alpha == 0 else math.nan
    if alpha == 1:
        return lambda supply: -math.log1p(-supply.uniform())
    d = alpha + (2.0 / 3 if alpha < 1 else -1.0 / 3)
    c = 1.0 / 3 / math.sqrt(d)

    def sample(supply):
        while True:
            x = supply.normal()
            v = 1 + c * x
            if v <= 0:
                continue
            v = v * v * v
            u = supply.uniform()
            squeezed = u < 1 - 0.0331 * (x * x) * (x * x)
            if squeezed or u == 0 or math.log(u) < 0.5 * x * x + d * (1 - v + math.log(v)):
                boost = supply.uniform() ** (1 / alpha) if alpha < 1 else 1
                return d * v * boost

    return sample


def random_poisson(rng, shape, rate, dtype):
    """RandomPoissonV2 of any number type: Knuth's products below a rate of 10, Hörmann's PTRS above."""
    highest = float(np.finfo(dtype).max if np.dtype(dtype).kind == "f" else np.iinfo(dtype).max)
    return _sample_each(rng, shape, rate, dtype, lambda rate: _poisson_sampler(rate, highest))


def _poisson_sampler(rate, highest):
    if not math.isfinite(rate):
        return lambda supply: rate
    if rate >= 10:
        return _hormann_sampler(rate, highest)
    enough = math.exp(-rate)

    def sample(supply):
        events, product = 0, supply.uniform()
        while product > enough:
            events, product = events + 1, product * supply.uniform()
        return events

    return sample


def _hormann_sampler(rate, highest):
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    sure = 0.9277 - 3.6224 / (b - 2)

    def sample(supply):
        while True:
            u = supply.uniform() - 0.5
            v = supply.uniform()
            edge = 0.5 - abs(u)
            if edge == 0:
                continue
            k = math.floor((2 * a / edge + b) * u + rate + 0.43)
            if k > highest:
                continue
            if edge >= 0.07 and v <= sure:
                return k
            if k < 0 or (edge < 0.013 and v > edge):
                continue
            if v == 0:
                return k
            bound = -rate + k * math.log(rate) - math.lgamma(k + 1)
            if math.log(v * inverse_alpha / (a / (edge * edge) + b)) <= bound:
                return k

    return sample
