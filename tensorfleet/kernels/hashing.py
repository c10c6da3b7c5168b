"""Hashes of strings that give TensorFlow's numbers: FarmHash's fingerprint, SipHash, Murmur.

Strings of about one length are hashed together: each step of a hash is one operation on arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorfleet.base.types import Array
from tensorfleet.kernels.packed_strings import Strings
from tensorfleet.kernels.string_buffers import WORD_MASKS, Buffer, by_length, each_part

_K0, _K1, _K2 = (np.uint64(k) for k in (0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F))
_MIN_COLUMN_STRINGS = 2048  # strings whose words are worth to be fetched before they are needed
_MURMUR = np.uint64(0xC6A4A7935BD1E995)


class _Short:
    """Some strings that take the same steps of a hash and have as many whole words, as columns of words."""

    def __init__(self, columns: Array, lengths: Array) -> None:
        self._columns = columns
        self._whole = int(lengths[0]) >> 3
        self.n = lengths.view(np.uint64)
        self._over: Any = None

    def __len__(self) -> int:
        return len(self.n)

    def word(self, at: int) -> Array:
        """The eight bytes from a multiple of eight on, as a number: zeros behind the end."""
        result: Array = self._columns[at >> 3]
        return result

    def before_end(self, count: int) -> Array:
        """The eight bytes that begin so far from the end, a multiple of eight."""
        first = self._whole - (count >> 3)
        if self._over is None:
            over = self.n << np.uint64(3)
            over &= np.uint64(56)
            self._over = over, np.uint64(64) - over
        low, high = self._over
        word: Array = self._columns[first] >> low
        word |= self._columns[first + 1] << high
        return word

    def last(self, count: int) -> Array:
        """The last bytes of strings that are one word."""
        result: Array = self._columns[0] >> ((self.n - np.uint64(count)) << np.uint64(3))
        return result


class _Long:
    """Some strings that take the same steps of a hash, where they are."""

    def __init__(self, source: Buffer, rows: Array | slice) -> None:
        self._source = source
        self._starts, self._lengths = source.starts[rows], source.lengths[rows]
        self.n = self._lengths.astype(np.uint64)

    def __len__(self) -> int:
        return len(self.n)

    def word(self, at: int) -> Array:
        """The eight bytes from a multiple of eight on, as a number; what is behind the end is anything."""
        return self._source.words(self._starts + at)

    def before_end(self, count: int) -> Array:
        """The eight bytes that begin so far from the end, as a number."""
        return self._source.words(self._starts + (self._lengths - count))

    def last(self, count: int) -> Array:
        """The last bytes of strings that are one word."""
        return (self.word(0) & WORD_MASKS[self._lengths]) >> ((self.n - np.uint64(count)) << np.uint64(3))


_Alike = _Short | _Long


def _each(
    strings: Strings | Sequence[bytes] | Array,
    alike: Callable[[Array], Array],
    function: Callable[[_Alike, int], Array],
) -> Array:
    """The hash of each string; `alike` numbers the ways to hash a length, `function` takes strings of one way."""
    if not isinstance(strings, Strings | np.ndarray):
        strings = np.fromiter(strings, object, len(strings))
    many = strings if isinstance(strings, Strings) else Strings.of(strings)
    result = np.empty(many.size, np.uint64)
    if not many.size:
        return result
    columns = many.columns() if many.size >= _MIN_COLUMN_STRINGS else None
    with np.errstate(over="ignore"):
        if columns is None:
            for places, source in many.sources():
                ways, there = alike(source.lengths), result[places]
                if (ways == ways[0]).all():
                    there[:] = function(_Long(source, slice(None)), int(ways[0]))
                    continue
                for way, rows in by_length(ways):
                    there[rows] = function(_Long(source, rows), way)
            return result

        def some(places: slice) -> None:
            words, lengths, there = columns[:, places], many.lengths[places], result[places]
            if _SHORT_WAYS[lengths.min()] == _SHORT_WAYS[lengths.max()]:  # they grow with the length
                there[:] = function(_Short(words, lengths), int(alike(lengths[:1])[0]))
                return
            for _, rows in by_length(_SHORT_WAYS[lengths]):
                data = _Short(words[:, rows], lengths[rows])
                there[rows] = function(data, int(alike(lengths[rows[:1]])[0]))

        each_part(some, many.size)
    return result


def fingerprint64(strings: Strings | Sequence[bytes] | Array) -> Array:
    """FarmHash's 64-bit fingerprint of each string."""
    return _each(strings, _farm_ways, _farm)


def _rotated(x: Array, count: int) -> Array:
    """The bits rotated to the right."""
    low = x >> np.uint64(count)
    low |= x << np.uint64(64 - count)
    return low


def _rotate(x: Array, count: int) -> Array:
    """Rotates the bits to the right, in place: the fewer arrays there are, the more of them are in the cache."""
    high = x << np.uint64(64 - count)
    x >>= np.uint64(count)
    x |= high
    return x


def _mixed(x: Array) -> Array:
    high = x >> np.uint64(47)
    high ^= x
    return high


def _pair(u: Array, v: Array, multiplier: Array | np.uint64) -> Array:
    mixed = u ^ v
    np.multiply(mixed, multiplier, out=mixed)
    mixed = _mixed(mixed)
    mixed ^= v
    np.multiply(mixed, multiplier, out=mixed)
    mixed = _mixed(mixed)
    np.multiply(mixed, multiplier, out=mixed)
    return mixed


_SHORT = np.searchsorted([1, 4, 8, 17, 33, 65], np.arange(66), "right")
# Both how the fingerprint is made and how many whole words there are, as one number.
_SHORT_WAYS = (_SHORT * 16 + (np.arange(66) >> 3)).astype(np.uint8)


def _farm_ways(lengths: Array) -> Array:
    """Six ways for short strings; for long ones the number of their blocks decides."""
    ways = _SHORT.take(lengths, mode="clip")
    return np.where(lengths > 64, len(_SHORT) + (lengths - 1 >> 6), ways) if (ways == 6).any() else ways


def _farm(data: _Alike, way: int) -> Array:
    if way >= len(_SHORT):
        return _farm_long(data, way - len(_SHORT))
    return (_farm_of_0, _farm_to_3, _farm_to_7, _farm_to_16, _farm_to_32, _farm_to_64)[way](data)


def _times(data: _Alike) -> Array:
    result = data.n << np.uint64(1)
    result += _K2
    return result


def _farm_of_0(data: _Alike) -> Array:
    return np.full(len(data), _K2, np.uint64)


def _farm_to_3(data: _Alike) -> Array:
    letters = data.word(0)
    a, c = letters & np.uint64(0xFF), data.last(1)
    b = letters >> (data.n >> np.uint64(1) << np.uint64(3)) & np.uint64(0xFF)
    y, z = a + (b << np.uint64(8)), data.n + (c << np.uint64(2))
    return _mixed((y * _K2) ^ (z * _K0)) * _K2


def _farm_to_7(data: _Alike) -> Array:
    first = data.word(0) & np.uint64(0xFFFFFFFF)
    return _pair(data.n + (first << np.uint64(3)), data.last(4), _times(data))


def _farm_to_16(data: _Alike) -> Array:
    m = _times(data)
    a, b = data.word(0) + _K2, data.before_end(8)
    second = _rotated(a, 25)
    second += b
    second *= m
    first = _rotate(b, 37)
    first *= m
    first += a
    return _pair(first, second, m)


def _farm_to_32(data: _Alike) -> Array:
    m = _times(data)
    return _pair(*_halves(data.word(0) * _K1, data.word(8), *_ends(data, m)), m)


def _ends(data: _Alike, m: Array) -> tuple[Array, Array]:
    """The last word and the one before, multiplied."""
    last, before = data.before_end(8), data.before_end(16)
    last *= m
    before *= _K2
    return last, before


def _halves(a: Array, b: Array, c: Array, d: Array, more: Array | np.uint64 = _K2) -> tuple[Array, Array]:
    """Four words made two; all but `b` are changed."""
    second = _rotate(b + more, 18)
    second += a
    second += c
    a += b
    first = _rotate(a, 43)
    d += _rotate(c, 30)
    first += d
    return first, second


def _farm_to_64(data: _Alike) -> Array:
    m = _times(data)
    a = data.word(0) * _K2
    y, other = _halves(a.copy(), data.word(8), *_ends(data, m))
    z = _pair(y, other, m)
    y += data.before_end(32)
    y *= m
    z += data.before_end(24)
    z *= m
    return _pair(*_halves(data.word(16) * m, data.word(24), y, z, a), m)


def _weak(words: Sequence[Array], a: Array, b: Array) -> tuple[Array, Array]:
    w, x, y, z = words
    a = a + w
    b = _rotate(b + a + z, 21)
    total = a + x + y
    return total + z, b + _rotated(total, 44) + a


def _farm_long(data: _Alike, blocks: int) -> Array:
    """Blocks of 64 bytes through a state of seven words; the last block is the last 64 bytes again."""
    zero = np.zeros(len(data), np.uint64)
    seed = np.uint64(81)
    y = zero + (seed * _K1 + np.uint64(113))
    z = _mixed(y * _K2 + np.uint64(113)) * _K2
    state = [seed * _K2 + data.word(0), y, z, zero, zero, zero, zero]
    for at in range(0, 64 * blocks, 64):
        state = _farm_block([data.word(at + i) for i in range(0, 64, 8)], state, _K1, np.uint64(1))
    x, y, z, v0, v1, w0, w1 = state
    m = _K1 + ((z & np.uint64(0xFF)) << np.uint64(1))
    w0 = w0 + (data.n - np.uint64(1) & np.uint64(63))
    v0 = v0 + w0
    w0 = w0 + v0
    last = [data.before_end(i) for i in range(64, 0, -8)]
    x, y, z, v0, v1, w0, w1 = _farm_block(last, [x, y, z, v0, v1, w0, w1], m, np.uint64(9))
    return _pair(_pair(v0, w0, m) + _mixed(y) * _K0 + z, _pair(v1, w1, m) + x, m)


def _farm_block(
    words: Sequence[Array], state: list[Array], m: Array | np.uint64, nine: np.uint64
) -> list[Array]:
    x, y, z, v0, v1, w0, w1 = state
    x = _rotate(x + y + v0 + words[1], 37) * m
    y = _rotate(y + v1 + words[6], 42) * m
    x = x ^ (w1 * nine)
    y = y + v0 * nine + words[5]
    z = _rotate(z + w0, 33) * m
    v0, v1 = _weak(words[:4], v1 * m, x + w0)
    w0, w1 = _weak(words[4:], z + w1, y + words[2])
    return [z, y, x, v0, v1, w0, w1]


def fingerprint_cat64(first: Array, second: Array) -> Array:
    """One fingerprint made of two."""
    with np.errstate(over="ignore"):
        mixed = first ^ _MURMUR ^ (_mixed(second * _MURMUR) * _MURMUR)
        return _mixed(_mixed(mixed * _MURMUR) * _MURMUR)


def _by_words(lengths: Array) -> Array:
    return lengths >> 3


def murmur64(strings: Strings | Sequence[bytes] | Array, seed: int = 0xDECAFCAFFE) -> Array:
    """The 64-bit Murmur hash of each string."""
    return _each(strings, _by_words, lambda data, words: _murmur(data, words, np.uint64(seed)))


def _murmur(data: _Alike, words: int, seed: np.uint64) -> Array:
    state = data.n * _MURMUR ^ seed
    for i in range(words):
        state = (state ^ (_mixed(data.word(8 * i) * _MURMUR) * _MURMUR)) * _MURMUR
    rest = data.n & np.uint64(7)
    state = np.where(rest > 0, (state ^ _tail(data, words)) * _MURMUR, state)
    return _mixed(_mixed(state) * _MURMUR)


def _tail(data: _Alike, words: int) -> Array:
    """What is left behind the last whole word, as a number."""
    bits = (data.n & np.uint64(7)) << np.uint64(3)
    result: Array = data.word(8 * words) & ((np.uint64(1) << bits) - np.uint64(1))
    return result


def siphash64(strings: Strings | Sequence[bytes] | Array, key: tuple[int, int]) -> Array:
    """The SipHash-2-4 of each string under a key of two words."""
    return _each(strings, _by_words, lambda data, words: _siphash(data, words, key))


def _siphash(data: _Alike, words: int, key: tuple[int, int]) -> Array:
    start = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
    state = [np.full(len(data), key[i % 2] % 2**64 ^ s, np.uint64) for i, s in enumerate(start)]
    for i in range(words + 1):
        block = data.word(8 * i) if i < words else _tail(data, words) | data.n << np.uint64(56)
        state[3] ^= block
        _sip_round(state)
        _sip_round(state)
        state[0] ^= block
    state[2] ^= np.uint64(0xFF)
    for _ in range(4):
        _sip_round(state)
    return state[0] ^ state[1] ^ state[2] ^ state[3]


def _sip_round(state: list[Array]) -> None:
    """Changes the four words of the state in place."""
    a, b, c, d = state
    for left, right, turns in (((a, c), (b, d), (51, 48)), ((c, a), (b, d), (47, 43))):
        for x, y, count in zip(left, right, turns, strict=True):
            x += y
            _rotate(y, count)
            y ^= x
        _rotate(left[0], 32)
