"""Rows combined with updates in place: the same as one update after the other."""

import numpy as np
import pytest

from tensorfleet.kernels.rows import IndexTurns, accumulate


def _less(a, b):
    return a - b


@pytest.mark.parametrize("combine", [np.subtract, np.minimum, _less])
@pytest.mark.parametrize("shape", [(), (4,), (3,), (2, 50)])
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


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int32, np.complex64])
@pytest.mark.parametrize("combine", [np.add, np.subtract, np.multiply, np.maximum])
def test_narrow_rows_of_any_kind_are_changed_one_after_the_other(combine, kind):
    random = np.random.default_rng(5)
    indices, updates = random.integers(0, 7, 5000), random.integers(-2, 3, (5000, 6)).astype(kind)
    rows = np.ones((7, 6), kind)
    wanted = rows.copy()
    with np.errstate(all="ignore"):
        for i, update in zip(indices, updates, strict=True):
            wanted[i] = combine(wanted[i], update)
        accumulate(combine, rows, indices.astype(np.int32), updates)
    np.testing.assert_array_equal(rows, wanted)


def test_narrow_rows_of_a_part_of_an_array_are_changed_where_they_are():
    whole = np.zeros((3, 8), np.float32)
    accumulate(np.add, whole[:, 2:6], np.array([1, 1, 2]), np.ones((3, 4), np.float32))
    assert whole.sum(1).tolist() == [0, 8, 4]
    assert whole[1].tolist() == [0, 0, 2, 2, 2, 2, 0, 0]


def test_one_scalar_updates_all_rows():
    rows = np.zeros((3, 2), np.float32)
    accumulate(np.add, rows, np.array([2, 0, 2]), np.array(1.5, np.float32))
    assert rows.tolist() == [[1.5, 1.5], [0, 0], [3, 3]]


@pytest.mark.parametrize("width", [1, 100_000])
@pytest.mark.parametrize(("size", "range_"), [(1, 1), (5, 2), (3000, 1000), (3000, 10**9), (70_000, 30_000)])
def test_turns_have_every_position_once_and_those_of_an_index_in_order(size, range_, width):
    flat = np.random.RandomState(size).randint(0, range_, size)
    found = []
    IndexTurns(flat, range_).each(lambda where: found.append(np.arange(size)[where]), width)
    assert sorted(np.concatenate(found).tolist()) == list(range(size))
    assert all(len(np.unique(flat[where])) == len(where) for where in found)
    turn = np.empty(size, int)
    for number, where in enumerate(found):
        turn[where] = number
    order = np.argsort(flat, kind="stable")
    same = flat[order][1:] == flat[order][:-1]
    assert (turn[order][1:] > turn[order][:-1])[same].all()
