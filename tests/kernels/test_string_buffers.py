"""Many strings as one buffer: the same lengths, letters and hashes as the strings one by one."""

import numpy as np
import pytest

from tensorfleet.kernels.hashing import fingerprint64, murmur64, siphash64
from tensorfleet.kernels.packed_strings import Strings
from tensorfleet.kernels.string_buffers import Buffer, lengths_of, parts


def vector(*values):
    array = np.empty(len(values), object)
    array[:] = values
    return array


# The longest has more bytes than 16 bits can count: from there on, strings are sorted by length in another way.
TEXTS = vector(*(bytes([n % 256]) * n for n in range(200)), b"", b"\0", b"\0" * 8, b"long" * 17_000)
HASHES = (fingerprint64, murmur64, lambda s: siphash64(s, (3, 4)))


class Text(bytes):
    """A kind of bytes."""


@pytest.mark.parametrize("texts", [TEXTS, TEXTS[::-1], TEXTS[::3], TEXTS[:0], TEXTS[5:6]])
def test_lengths_are_those_of_the_strings(texts):
    assert lengths_of(texts.tolist()).tolist() == [len(t) for t in texts]
    assert Strings.of(texts).lengths.tolist() == [len(t) for t in texts]


@pytest.mark.parametrize(
    "texts", [TEXTS, TEXTS[:12], vector(b"a", b"", b"ends in a zero\0", b"\0"), TEXTS[:0]]
)
def test_buffers_hold_the_letters_of_the_strings(texts):
    buffer = Buffer.of(texts.tolist())
    assert [buffer.text(i) for i in range(len(texts))] == texts.tolist()


def test_kinds_of_bytes_are_hashed_as_others():
    odd, plain = vector(b"abc", Text(b"a longer one than these")), vector(b"abc", b"a longer one than these")
    assert fingerprint64(odd).tolist() == fingerprint64(plain).tolist()
    assert Strings.of(odd).columns().tolist() == Strings.of(plain).columns().tolist()


@pytest.mark.parametrize("hashed", HASHES)
@pytest.mark.parametrize("longest", [9, 60, 68_000])
def test_hashes_do_not_depend_on_the_form_the_strings_have(hashed, longest):
    distinct = [t for t in TEXTS if len(t) <= longest]
    copies = 2048 // len(distinct) + 1  # from 2048 on, short strings are hashed by columns
    expected = np.concatenate([hashed(vector(t)) for t in distinct]).tolist() * copies
    texts = vector(*distinct * copies)
    packed = Strings.of(texts)
    assert packed.buffer.apart
    assert hashed(texts).tolist() == hashed(packed).tolist() == expected


def test_columns_of_objects_are_those_of_their_buffer():
    texts = vector(*TEXTS[:60], b"\0", b"", b"ends in zeros\0\0\0")
    packed = Strings.of(texts)
    assert packed.buffer is not None
    assert Strings.of(texts).columns().tolist() == packed.columns().tolist()
    assert Strings.of(texts).first_words(2).tolist() == packed.first_words(2).tolist()


def test_sources_cover_all_strings_whether_they_are_packed_or_not():
    texts = vector(*[b"%d" % i for i in range(40_000)])
    for packed in (False, True):
        strings = Strings.of(texts)
        if packed:
            assert len(strings.buffer.lengths) == len(texts)
        sources = list(strings.sources())
        assert [places for places, _ in sources] == [places for places, _ in parts(texts)]
        assert [s.text(i) for _, s in sources for i in (0, 1)] == [
            t for places, _ in sources for t in texts[places][:2]
        ]
