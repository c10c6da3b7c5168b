"""Keys of tables, and which server has the row of each."""

import numpy as np
import pytest

from tensorfleet.fleet.library.keys import KeyDivision, to_keys


def test_keys_of_any_kind_of_whole_numbers_are_taken():
    for given in ([1, 2**63 - 1], (1, 2**63 - 1), np.array([1, 2**63 - 1], np.uint64)):
        assert to_keys(given, "t").tolist() == [1, 2**63 - 1]
    assert to_keys([], "t").dtype == np.int64


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        (np.float32([1.5]), TypeError, "keys of table 't' must be whole numbers (int64), not float32"),
        (["a"], TypeError, "must be whole numbers (int64)"),
        ([[1, 2]], ValueError, "must be a vector, not of shape [1, 2]"),
        ([-1, 5], ValueError, "must be between 0 and 2**63 - 1, not -1 to 5"),
        (np.array([2**63], np.uint64), ValueError, "must be between 0 and 2**63 - 1"),
        (5, ValueError, "must be a vector, not of shape []"),
        (object(), TypeError, "keys of table 't' must be an array of NumPy, JAX or PyTorch, but is object"),
    ],
)
def test_other_keys_are_refused(given, kind, message):
    with pytest.raises(kind) as caught:
        to_keys(given, "t")
    assert message in str(caught.value)


@pytest.mark.parametrize("keys", [np.arange(30_000), np.arange(30_000) << 32])
def test_keys_are_spread_evenly_and_every_key_has_one_server(keys):
    division = KeyDivision(3)
    parts = division.parts(keys.astype(np.int64))
    assert sorted(np.concatenate(parts).tolist()) == list(range(30_000))
    assert all(9_000 < len(part) < 11_000 for part in parts)
