"""FarmHash's fingerprint of 128 bits, by which examples are told apart."""

from __future__ import annotations

_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F
_MULTIPLIER = 0x9DDFEA08EB382D69
_ALL = (1 << 64) - 1


def fingerprint128(text: bytes) -> tuple[int, int]:
    """The lower and the upper half, without a sign."""
    if len(text) < 16:
        return _seeded(text, _K0, _K1)
    return _seeded(text[16:], _long(text, 0), (_long(text, 8) + _K0) & _ALL)


def _long(text: bytes, at: int) -> int:
    return int.from_bytes(text[at : at + 8], "little")


def _turned(x: int, by: int) -> int:
    x &= _ALL
    return (x >> by | x << 64 - by) & _ALL


def _mixed(x: int) -> int:
    x &= _ALL
    return x ^ x >> 47


def _joined(u: int, v: int, by: int = _MULTIPLIER) -> int:
    """One number of two."""
    a = _mixed((u ^ v) * by)
    b = _mixed((v ^ a) * by)
    return b * by & _ALL


def _short(text: bytes) -> int:
    """Of at most 16 bytes."""
    size, by = len(text), _K2 + 2 * len(text)
    if size >= 8:
        a, b = _long(text, 0) + _K2 & _ALL, _long(text, size - 8)
        return _joined(_turned(b, 37) * by + a & _ALL, (_turned(a, 25) + b) * by & _ALL, by)
    if size >= 4:
        first, last = (int.from_bytes(text[i : i + 4], "little") for i in (0, size - 4))
        return _joined(size + (first << 3), last, by)
    if size:
        y, z = text[0] + (text[size >> 1] << 8), size + (text[-1] << 2)
        return _mixed(y * _K2 ^ z * _K0) * _K2 & _ALL
    return _K2


def _seeded(text: bytes, low: int, high: int) -> tuple[int, int]:
    return _murmur(text, low, high) if len(text) < 128 else _city(text, low, high)


def _murmur(text: bytes, a: int, b: int) -> tuple[int, int]:
    """Of less than 128 bytes."""
    size = len(text)
    if size <= 16:
        a = _mixed(a * _K1) * _K1 & _ALL
        c = b * _K1 + _short(text) & _ALL
        d = _mixed(a + (_long(text, 0) if size >= 8 else c))
    else:
        c = _joined(_long(text, size - 8) + _K1 & _ALL, a)
        d = _joined(b + size & _ALL, c + _long(text, size - 16) & _ALL)
        a = a + d & _ALL
        for at in range(0, size - 16, 16):
            a = (a ^ _mixed(_long(text, at) * _K1) * _K1 & _ALL) * _K1 & _ALL
            b ^= a
            c = (c ^ _mixed(_long(text, at + 8) * _K1) * _K1 & _ALL) * _K1 & _ALL
            d ^= c
    a, b = _joined(a, c), _joined(d, b)
    return a ^ b, _joined(b, a)


def _weak(text: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    """Two numbers of 32 bytes and two others."""
    w, x, y, z = (_long(text, at + i) for i in (0, 8, 16, 24))
    a = a + w & _ALL
    b = _turned(b + a + z, 21)
    c = a
    a = a + x + y & _ALL
    b = b + _turned(a, 44) & _ALL
    return a + z & _ALL, b + c & _ALL


def _city(text: bytes, x: int, y: int) -> tuple[int, int]:
    """Of at least 128 bytes."""
    size = len(text)
    z = size * _K1 & _ALL
    v0 = _turned(y ^ _K1, 49) * _K1 + _long(text, 0) & _ALL
    v1 = _turned(v0, 42) * _K1 + _long(text, 8) & _ALL
    w0 = _turned(y + z, 35) * _K1 + x & _ALL
    w1 = _turned(x + _long(text, 88), 53) * _K1 & _ALL
    at = 0
    while size - at >= 128:
        for _ in range(2):
            x = _turned(x + y + v0 + _long(text, at + 8), 37) * _K1 & _ALL
            y = _turned(y + v1 + _long(text, at + 48), 42) * _K1 & _ALL
            x ^= w1
            y = y + v0 + _long(text, at + 40) & _ALL
            z = _turned(z + w0, 33) * _K1 & _ALL
            v0, v1 = _weak(text, at, v1 * _K1 & _ALL, x + w0)
            w0, w1 = _weak(text, at + 32, z + w1, y + _long(text, at + 16))
            z, x = x, z
            at += 64
    x = x + _turned(v0 + z, 49) * _K0 & _ALL
    y = y * _K0 + _turned(w1, 37) & _ALL
    z = z * _K0 + _turned(w0, 27) & _ALL
    w0, v0 = w0 * 9 & _ALL, v0 * _K0 & _ALL
    for done in range(32, size - at + 32, 32):
        y = _turned(x + y, 42) * _K0 + v1 & _ALL
        w0 = w0 + _long(text, size - done + 16) & _ALL
        x = x * _K0 + w0 & _ALL
        z = z + w1 + _long(text, size - done) & _ALL
        w1 = w1 + v0 & _ALL
        v0, v1 = _weak(text, size - done, v0 + z, v1)
        v0 = v0 * _K0 & _ALL
    x, y = _joined(x, v0), _joined(y + z & _ALL, w0)
    return _joined(x + v1 & _ALL, w1) + y & _ALL, _joined(x + w1 & _ALL, y + v1 & _ALL)
