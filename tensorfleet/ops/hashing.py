"""Hashes of strings that give TensorFlow's numbers: FarmHash's fingerprint, SipHash, Murmur.

Strings of one length are hashed together: each step of a hash is one operation on arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tensorfleet.ops.string_buffers import Buffer, by_length

_K0, _K1, _K2 = (np.uint64(k) for k in (0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F))
_AT_ONCE = 1 << 14  # strings whose words stay in the cache
_MURMUR = np.uint64(0xC6A4A7935BD1E995)


class _Same:
    """Some strings of one length, in a buffer."""

    def __init__(self, buffer: Buffer, starts: np.ndarray, length: int) -> None:
        self.buffer, self.starts, self.length = buffer, starts, length

    def __len__(self) -> int:
        return len(self.starts)


def _by_length(strings: Sequence[bytes], function: Callable[[_Same], np.ndarray]) -> np.ndarray:
    """The hash of each string; `function` takes some of one length."""
    found = np.empty(len(strings), np.uint64)
    buffer = Buffer.of(strings)
    with np.errstate(over="ignore"):
        for length, group in by_length(buffer.lengths):
            for at in range(0, len(group), _AT_ONCE):
                rows = group[at : at + _AT_ONCE]
                found[rows] = function(_Same(buffer, buffer.starts[rows], length))
    return found


def fingerprint64(strings: Sequence[bytes]) -> np.ndarray:
    """FarmHash's 64-bit fingerprint of each string."""
    return _by_length(strings, _farm)


def _word(data: _Same, at: int) -> np.ndarray:
    """The eight bytes from a position on, as a number."""
    return data.buffer.words(data.starts + at)


def _half(data: _Same, at: int) -> np.ndarray:
    return data.buffer.words(data.starts + at, "<u4").astype(np.uint64)


def _rotated(x: np.ndarray, count: int) -> np.ndarray:
    """The bits rotated to the right."""
    return (x >> np.uint64(count)) | (x << np.uint64(64 - count))


def _mixed(x: np.ndarray) -> np.ndarray:
    return x ^ (x >> np.uint64(47))


def _pair(u: np.ndarray, v: np.ndarray, multiplier: np.ndarray | np.uint64) -> np.ndarray:
    a = _mixed((u ^ v) * multiplier)
    return _mixed((v ^ a) * multiplier) * multiplier


def _farm(data: _Same) -> np.ndarray:
    n = data.length
    if n <= 16:
        return _farm_to_16(data, n)
    if n <= 32:
        return _farm_to_32(data, n)
    return _farm_to_64(data, n) if n <= 64 else _farm_long(data, n)


def _times(n: int) -> np.uint64:
    return np.uint64((int(_K2) + 2 * n) % 2**64)


def _farm_to_16(data: _Same, n: int) -> np.ndarray:
    if n >= 8:
        m = _times(n)
        a, b = _word(data, 0) + _K2, _word(data, n - 8)
        return _pair(_rotated(b, 37) * m + a, (_rotated(a, 25) + b) * m, m)
    if n >= 4:
        return _pair(np.uint64(n) + (_half(data, 0) << np.uint64(3)), _half(data, n - 4), _times(n))
    if n:
        a, b, c = (data.buffer.data[data.starts + i].astype(np.uint64) for i in (0, n >> 1, n - 1))
        y, z = a + (b << np.uint64(8)), np.uint64(n) + (c << np.uint64(2))
        return _mixed((y * _K2) ^ (z * _K0)) * _K2
    return np.full(len(data), _K2, np.uint64)


def _farm_to_32(data: _Same, n: int) -> np.ndarray:
    m = _times(n)
    a, b = _word(data, 0) * _K1, _word(data, 8)
    c, d = _word(data, n - 8) * m, _word(data, n - 16) * _K2
    return _pair(_rotated(a + b, 43) + _rotated(c, 30) + d, a + _rotated(b + _K2, 18) + c, m)


def _farm_to_64(data: _Same, n: int) -> np.ndarray:
    m = _times(n)
    a, b = _word(data, 0) * _K2, _word(data, 8)
    c, d = _word(data, n - 8) * m, _word(data, n - 16) * _K2
    y = _rotated(a + b, 43) + _rotated(c, 30) + d
    z = _pair(y, a + _rotated(b + _K2, 18) + c, m)
    e, f = _word(data, 16) * m, _word(data, 24)
    g, h = (y + _word(data, n - 32)) * m, (z + _word(data, n - 24)) * m
    return _pair(_rotated(e + f, 43) + _rotated(g, 30) + h, e + _rotated(f + a, 18) + g, m)


def _weak(data: _Same, at: int, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    w, x, y, z = (_word(data, at + i) for i in (0, 8, 16, 24))
    a = a + w
    b = _rotated(b + a + z, 21)
    total = a + x + y
    return total + z, b + _rotated(total, 44) + a


def _farm_long(data: _Same, n: int) -> np.ndarray:
    """Blocks of 64 bytes through a state of seven words; the last block is the last 64 bytes again."""
    zero = np.zeros(len(data), np.uint64)
    seed = np.uint64(81)
    y = zero + (seed * _K1 + np.uint64(113))
    z = _mixed(y * _K2 + np.uint64(113)) * _K2
    state = [seed * _K2 + _word(data, 0), y, z, zero, zero, zero, zero]
    end = (n - 1) // 64 * 64
    for at in range(0, end, 64):
        state = _farm_block(data, at, state, _K1, np.uint64(1))
    x, y, z, v0, v1, w0, w1 = state
    m = _K1 + ((z & np.uint64(0xFF)) << np.uint64(1))
    w0 = w0 + np.uint64((n - 1) & 63)
    v0 = v0 + w0
    w0 = w0 + v0
    x, y, z, v0, v1, w0, w1 = _farm_block(data, n - 64, [x, y, z, v0, v1, w0, w1], m, np.uint64(9))
    return _pair(_pair(v0, w0, m) + _mixed(y) * _K0 + z, _pair(v1, w1, m) + x, m)


def _farm_block(data: _Same, at: int, state: list, m: np.ndarray | np.uint64, nine: np.uint64) -> list:
    x, y, z, v0, v1, w0, w1 = state
    x = _rotated(x + y + v0 + _word(data, at + 8), 37) * m
    y = _rotated(y + v1 + _word(data, at + 48), 42) * m
    x = x ^ (w1 * nine)
    y = y + v0 * nine + _word(data, at + 40)
    z = _rotated(z + w0, 33) * m
    v0, v1 = _weak(data, at, v1 * m, x + w0)
    w0, w1 = _weak(data, at + 32, z + w1, y + _word(data, at + 16))
    return [z, y, x, v0, v1, w0, w1]


def fingerprint_cat64(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """One fingerprint made of two."""
    with np.errstate(over="ignore"):
        made = first ^ _MURMUR ^ (_mixed(second * _MURMUR) * _MURMUR)
        return _mixed(_mixed(made * _MURMUR) * _MURMUR)


def murmur64(strings: Sequence[bytes], seed: int = 0xDECAFCAFFE) -> np.ndarray:
    """The 64-bit Murmur hash of each string."""
    return _by_length(strings, lambda data: _murmur(data, np.uint64(seed)))


def _murmur(data: _Same, seed: np.uint64) -> np.ndarray:
    n = data.length
    made = np.full(len(data), int(seed) ^ (n * int(_MURMUR)) % 2**64, np.uint64)
    for at in range(0, n - 7, 8):
        made = (made ^ (_mixed(_word(data, at) * _MURMUR) * _MURMUR)) * _MURMUR
    if n % 8:
        made = (made ^ _tail(data)) * _MURMUR
    return _mixed(_mixed(made) * _MURMUR)


def _tail(data: _Same) -> np.ndarray:
    """What is left behind the last whole word, as a number."""
    rest = data.length % 8
    return _word(data, data.length - rest) & np.uint64((1 << 8 * rest) - 1)


def siphash64(strings: Sequence[bytes], key: tuple[int, int]) -> np.ndarray:
    """The SipHash-2-4 of each string under a key of two words."""
    return _by_length(strings, lambda data: _siphash(data, key))


def _siphash(data: _Same, key: tuple[int, int]) -> np.ndarray:
    start = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
    words = [key[i % 2] % 2**64 ^ s for i, s in enumerate(start)]
    state = [np.full(len(data), w, np.uint64) for w in words]
    n = data.length
    blocks = [_word(data, at) for at in range(0, n - 7, 8)]
    blocks.append(_tail(data) | np.uint64((n % 256) << 56))
    for block in blocks:
        state[3] ^= block
        _sip_round(state)
        _sip_round(state)
        state[0] ^= block
    state[2] ^= np.uint64(0xFF)
    for _ in range(4):
        _sip_round(state)
    return state[0] ^ state[1] ^ state[2] ^ state[3]


def _sip_round(state: list) -> None:
    """Changes the four words of the state in place."""
    a, b, c, d = state
    for left, right, turns in (((a, c), (b, d), (51, 48)), ((c, a), (b, d), (47, 43))):
        for x, y, count in zip(left, right, turns, strict=True):
            x += y
            _rotate(y, count)
            y ^= x
        _rotate(left[0], 32)


def _rotate(x: np.ndarray, count: int) -> None:
    """Rotates the bits to the right, in place."""
    high = x << np.uint64(64 - count)
    x >>= np.uint64(count)
    x |= high
