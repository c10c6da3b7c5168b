"""Strings read where Python keeps them: never anything else, and never past their ends."""

import ctypes
import mmap
import sys

import numpy as np
import pytest

from tensorfleet.kernels import string_memory
from tensorfleet.kernels.hashing import fingerprint64, murmur64, siphash64
from tensorfleet.kernels.string_buffers import Buffer, lengths_of


def vector(*values):
    made = np.empty(len(values), object)
    made[:] = values
    return made


TEXTS = vector(*(bytes([n % 256]) * n for n in range(200)), b"", b"\0", b"\0" * 8, b"long" * 100_000)


@pytest.fixture(autouse=True)
def _needs_cpython():
    if sys.implementation.name != "cpython" or not string_memory.usable():
        pytest.skip("this Python keeps strings in another way")


def test_lengths_are_those_of_the_strings():
    for texts in (TEXTS, TEXTS[::-1], TEXTS[::3], TEXTS[:0], TEXTS[5:6]):
        assert lengths_of(texts).tolist() == [len(t) for t in texts]


def test_first_and_last_bytes_are_found():
    there = string_memory.in_memory(TEXTS)
    full = np.flatnonzero(there.lengths)
    for kind, places in (("first", there.starts), ("last", there.starts + there.lengths - 1)):
        got = there.words(places[full], "u1").tolist()
        assert got == [TEXTS[i][0 if kind == "first" else -1] for i in full]


class Text(bytes):
    """A kind of bytes, laid out as it likes."""


@pytest.mark.parametrize(
    "odd", ["text", None, 7, Text(b"bytes"), np.bytes_(b"numpy"), bytearray(b"more"), object()]
)
def test_anything_but_bytes_is_left_to_python(odd):
    assert string_memory.in_memory(vector(b"a", odd, b"b")) is None


def test_places_that_nobody_has_filled_are_left_to_python():
    texts = vector(b"a", None, b"b")
    ctypes.memset(texts.ctypes.data + 8, 0, 8)
    assert texts[1] is None and string_memory.in_memory(texts) is None


def test_kinds_of_bytes_are_hashed_as_others():
    odd, plain = vector(b"abc", Text(b"a longer one than these")), vector(b"abc", b"a longer one than these")
    assert fingerprint64(odd).tolist() == fingerprint64(plain).tolist()
    assert lengths_of(odd).tolist() == lengths_of(plain).tolist()


def test_hashes_do_not_depend_on_where_strings_are(monkeypatch):
    hashes = (fingerprint64, murmur64, lambda s: siphash64(s, (3, 4)))
    there = [h(TEXTS).tolist() for h in hashes]
    monkeypatch.setattr(string_memory, "usable", lambda: False)
    assert [h(TEXTS).tolist() for h in hashes] == there


def test_packed_strings_are_the_same_letters():
    texts = vector(*(b"%d letters" % (10**n) for n in range(20)), b"", b"x")
    buffer = Buffer.of(texts)
    ends = zip(buffer.starts.tolist(), buffer.lengths.tolist(), strict=True)
    assert [buffer.data[a : a + n].tobytes() for a, n in ends] == texts.tolist()


def test_words_behind_a_string_stay_in_its_page():
    there = string_memory.in_memory(TEXTS)
    last = there.starts + (there.lengths >> 3 << 3)  # the last word that is read: the zero is in it
    end = there.starts + there.lengths
    assert ((last <= end) & (end < last + 8) & (last // mmap.PAGESIZE == (last + 7) // mmap.PAGESIZE)).all()


def test_a_python_with_another_header_is_not_read(monkeypatch):
    monkeypatch.setattr(string_memory, "_HEADER", 40)
    string_memory.usable.cache_clear()
    assert not string_memory.usable()
    monkeypatch.undo()
    string_memory.usable.cache_clear()
    assert string_memory.usable()
