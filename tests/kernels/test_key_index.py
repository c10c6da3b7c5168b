"""Keys get numbers in the order in which they come, whatever they are."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tensorfleet.kernels.key_index import KeyIndex, places_of

KEYS = st.lists(st.one_of(st.integers(0, 40), st.integers(0, 2**63 - 1)), max_size=60)


@given(st.lists(KEYS, max_size=8))
def test_it_numbers_keys_as_a_dictionary_would(batches):
    index, wanted = KeyIndex(), {}
    for batch in batches:
        keys = np.array(batch, np.int64)
        numbers = [wanted.setdefault(key, len(wanted)) for key in batch]
        assert index.add(keys).tolist() == numbers
        assert len(index) == len(wanted)
    assert index.keys.tolist() == list(wanted)
    asked = np.array([0, 1, 2**63 - 1, *wanted], np.int64)
    assert index.find(asked).tolist() == [wanted.get(key, -1) for key in asked.tolist()]


def test_it_grows_and_finds_all_keys():
    keys = np.random.default_rng(0).permutation(np.arange(0, 3_000_000, 17))
    index = KeyIndex()
    for part in np.array_split(keys, 7):
        index.add(part)
    assert np.array_equal(index.find(keys), np.arange(len(keys)))
    assert (index.find(keys + 1) == -1).all()


def test_keys_that_follow_one_another_or_differ_in_high_bits_are_spread():
    for keys in (np.arange(10_000), np.arange(10_000) << 40, np.arange(10_000) << 13):
        places = places_of(keys.astype(np.int64), 16)
        assert len(np.unique(places)) > 8_000
