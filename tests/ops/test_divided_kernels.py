"""Kernels that numpy runs in parts give what they give as a whole, in both lives."""

import numpy as np
import pytest

from tensorfleet.kernels import aligned_memory as memory
from tensorfleet.kernels import openblas
from tensorfleet.kernels import parallel_for as side_by_side
from tensorfleet.ops.array import gather
from tensorfleet.ops.array import tile_roll_reverse as array_move
from tensorfleet.ops.linalg.contract import _batched, _einsum
from tensorfleet.ops.math import reductions, sorting
from tensorfleet.ops.math.binary import _floor_div
from tests.support.kernels import both_lives


@pytest.fixture(autouse=True)
def divided(monkeypatch):
    """Everything is worth dividing, among four."""
    helpers = side_by_side._Helpers()
    helpers._most = 3
    monkeypatch.setattr(side_by_side, "_helpers", helpers)
    for module in (array_move, gather, memory):
        monkeypatch.setattr(module, "_BYTES_PER_THREAD", 1)
    monkeypatch.setattr(sorting, "_ELEMENTS_PER_THREAD", 1)
    monkeypatch.setattr(openblas, "_WORTH_DIVIDING", 1)
    for name in ("_WORTH_SEARCHING", "_WORTH_SEARCHING_ACROSS"):
        monkeypatch.setattr(reductions, name, 1)


def first(x, axis, which):
    return both_lives(lambda xp, x: reductions._first(xp, x, axis, which).astype(np.int64), x)


def draw(*shape, dtype=np.float32):
    return np.random.RandomState(sum(shape)).randint(-99, 99, shape).astype(dtype)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("kind", [np.float32, np.float16, np.int32])
@pytest.mark.parametrize("which", ["max", "min"])
def test_first_place_of_the_extreme(which, kind, axis):
    x = draw(7, 9, 5, dtype=kind)
    result = first(x, axis, which)
    np.testing.assert_array_equal(result, getattr(np, f"arg{which}")(x, axis=axis))


@pytest.mark.parametrize(("which", "place"), [("max", 3), ("min", 1)])
def test_nan_is_no_extreme(which, place):
    x = np.array([[np.nan, 1, 2, 4, np.nan], [5, 4, 5, 9, 8]], np.float32)
    assert first(x, 1, which).tolist() == [place, place]
    nothing = np.full((2, 3), np.nan, np.float32)
    assert first(nothing, 1, which).tolist() == [0, 0]


@pytest.mark.parametrize("classes", [3, 255, 256, 700])
def test_among_the_largest(classes):
    x = np.random.RandomState(0).rand(40, classes).astype(np.float32)
    x[5, 1], x[6, 2], x[7, 0] = np.nan, np.inf, -np.inf
    targets = np.arange(40, dtype=np.int32) % (classes + 2) - 1  # the first and some others are no classes
    for k in (1, 2, classes - 1, classes, classes + 3):
        expected = [
            bool(0 <= t < classes and np.isfinite(row).all() and (row > row[t]).sum() < k)
            for row, t in zip(x, targets, strict=True)
        ]
        assert both_lives(sorting._in_top_k, x, targets, k).tolist() == expected


@pytest.mark.parametrize("kind", [np.int32, np.int8, np.uint8, np.int16, np.uint16, np.uint32, np.int64])
def test_quotients_of_whole_numbers_are_exact(kind):
    info = np.iinfo(kind)
    edges = [info.min, info.min + 1, info.max, info.max - 1, 1, 2, 3, 7, info.max // 2, info.max // 3 + 1]
    x, y = (a.ravel() for a in np.meshgrid(np.array([*edges, 0], kind), np.array(edges, kind)))
    x, y = x[y != 0], y[y != 0]
    with np.errstate(all="ignore"):
        result = both_lives(_floor_div, x, y, check=lambda *_: None)
        np.testing.assert_array_equal(result, x // y)
    if info.min < 0:
        with np.errstate(all="ignore"):
            both_lives(_floor_div, x, np.full_like(x, -1), check=lambda *_: None)


@pytest.mark.parametrize("indices", [np.array([3, 0, 3, 1]), np.array([[1], [2]], np.int32), np.int64(2)])
def test_rows_taken(indices):
    for x in (draw(4, 3, 2), draw(4), np.array([b"a", b"b", b"c", b"d"], object)):
        result = gather._taken(x, np.asarray(indices), 0)
        assert isinstance(result, np.ndarray) and result.flags.owndata
        np.testing.assert_array_equal(result, x[indices])


@pytest.mark.parametrize(
    ("shape", "times"), [((3, 5), (2, 3)), ((4,), (3,)), ((2, 1, 6), (1, 4, 2)), ((2, 9), (1, 1))]
)
def test_tiles(shape, times):
    x = draw(*shape)
    for value in (x, x[::-1], np.asfortranarray(x)):
        result = array_move._tile(np, value, np.array(times))
        assert result.flags.c_contiguous and result.flags.owndata
        np.testing.assert_array_equal(result, np.tile(value, times))


def test_copies_of_any_order():
    cube = draw(40, 50, 60)
    for view in (
        cube.T,
        cube.transpose(1, 0, 2),
        cube[::2, ::-1],
        cube[:1],
        np.broadcast_to(cube[0], cube.shape),
    ):
        result = memory.copied(view)
        assert result.flags.c_contiguous and result.flags.owndata
        np.testing.assert_array_equal(result, view)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.complex64, np.int32])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((5, 3, 4), (5, 4, 2)),
        ((5, 3, 4), (4, 2)),
        ((3, 4), (5, 4, 2)),
        ((2, 1, 3, 4), (3, 4, 2)),
        ((1, 3, 4), (6, 4, 2)),
    ],
)
def test_batches_of_products(left, right, kind):
    a, b = draw(*left, dtype=kind), draw(*right, dtype=kind)
    np.testing.assert_array_equal(openblas.product(a, b), a @ b)


def test_batch_of_nothing():
    for a, b in ((np.ones((0, 3, 4)), np.ones((0, 4, 2))), (np.ones((5, 3, 0)), np.ones((5, 0, 2)))):
        np.testing.assert_array_equal(openblas.product(a, b), a @ b)


@pytest.mark.parametrize(
    ("equation", "left", "right", "is_batch"),
    [
        ("bqhd,bkhd->bhqk", (2, 3, 4, 5), (2, 6, 4, 5), True),
        ("bij,bkj->kbi", (3, 4, 5), (3, 6, 5), True),
        ("bjib,bkj->bik", (3, 4, 5, 3), (3, 6, 4), False),
        ("ibj,jbk->bki", (4, 3, 5), (5, 3, 2), True),
        ("ijb,kjb->bik", (4, 5, 3), (6, 5, 3), True),
        ("bij,bjk->ik", (3, 4, 5), (3, 5, 2), False),
        ("bi,bj->bij", (3, 4), (3, 5), False),
    ],
)
def test_batched_products_by_their_letters(equation, left, right, is_batch):
    a, b = draw(*left), draw(*right)
    expected = np.einsum(equation, a, b)
    result = _einsum(np, [a, b], equation=equation.encode())
    np.testing.assert_allclose(result, expected, rtol=1e-5)
    assert (_batched(equation) is not None) == is_batch
