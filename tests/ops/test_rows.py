"""Rows combined with updates in place: the same as one update after the other."""

import numpy as np
import pytest

from tensorfleet.ops.rows import accumulate


def _less(a, b):
    return a - b


@pytest.mark.parametrize("combine", [np.subtract, np.minimum, _less])
@pytest.mark.parametrize("shape", [(), (4,)])
@pytest.mark.parametrize(
    ("count", "range_"), [(1, 5), (100, 100_000), (100, 60), (100, 3), (3000, 1), (3000, 2500)]
)
def test_repeated_indices_are_updated_once_for_each_occurrence(combine, shape, count, range_):
    random = np.random.default_rng(count + range_)
    indices = random.integers(0, range_, count)
    rows = random.integers(-9, 9, (range_, *shape)).astype(np.float32)
    updates = random.integers(-9, 9, (count, *shape)).astype(np.float32)
    wanted = rows.copy()
    for i, update in zip(indices, updates, strict=True):
        wanted[i] = combine(wanted[i], update)
    accumulate(combine, rows, indices, updates)
    np.testing.assert_array_equal(rows, wanted)


def test_one_scalar_updates_all_rows():
    rows = np.zeros((3, 2), np.float32)
    accumulate(np.add, rows, np.array([2, 0, 2]), np.array(1.5, np.float32))
    assert rows.tolist() == [[1.5, 1.5], [0, 0], [3, 3]]
