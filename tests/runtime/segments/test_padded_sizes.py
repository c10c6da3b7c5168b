"""Lengths that keep changing are told from what they have in common, and rounded up to a few sizes."""

import numpy as np
import pytest

from tensorfleet.runtime.segments.padded_sizes import PaddedSizes, rounded


def test_a_length_is_padded_by_at_most_a_quarter():
    assert all(n <= rounded(n) <= 1.25 * n for n in range(1, 5000))


def test_few_sizes_serve_many_lengths():
    assert len({rounded(n) for n in range(10, 40)}) == 9
    assert len({rounded(n) for n in range(1, 1025)}) < 40


def test_short_lengths_are_not_padded():
    assert [rounded(n) for n in range(9)] == list(range(9))


@pytest.mark.parametrize("size", sorted({rounded(n) for n in range(9, 600)}))
def test_the_probe_of_a_size_is_the_shortest_length_padded_to_it(size):
    sizes = PaddedSizes.learned([((3,),), ((5,),)])
    (probe,) = sizes.bucket((size,)).probes
    assert rounded(probe) == size
    assert rounded(probe - 1) < size


def test_sizes_in_one_proportion_are_one_length():
    sizes = PaddedSizes.learned([((10, 32), (320, 7)), ((25, 32), (800, 7)), ((13, 32), (416, 7))])
    assert sizes.lengths(((17, 32), (544, 7))) == (17,)
    assert sizes.shapes(((17, 32), (544, 7)), (20,)) == [(20, 32), (640, 7)]


def test_sizes_that_do_not_go_together_are_several_lengths():
    sizes = PaddedSizes.learned([((10, 4), (12, 5)), ((11, 4), (9, 5)), ((12, 4), (10, 5))])
    assert sizes.lengths(((17, 4), (30, 5))) == (17, 30)
    assert sizes.bucket((17, 30)).sizes == (20, 32)


def test_two_lengths_of_one_size_have_different_probes():
    sizes = PaddedSizes.learned([((10,), (12,)), ((11,), (9,)), ((12,), (10,))])
    bucket = sizes.bucket((37, 39))
    assert bucket.sizes == (40, 40)
    assert len(set(bucket.probes)) == 2


def test_shapes_that_break_the_proportion_have_no_length():
    sizes = PaddedSizes.learned([((10,), (20,)), ((11,), (22,))])
    assert sizes.lengths(((12,), (25,))) is None
    assert sizes.lengths(((12,), (26,))) is None
    assert sizes.lengths(((0,), (0,))) is None
    assert sizes.lengths((None, (26,))) is None


def test_inputs_that_change_their_rank_or_are_empty_have_no_lengths():
    assert PaddedSizes.learned([((10,),), ((10, 2),)]) is None
    assert PaddedSizes.learned([((10,),), ((0,),)]) is None
    assert PaddedSizes.learned([((10,),), ((10,),)]) is None


def test_inputs_are_padded_with_zeros():
    sizes = PaddedSizes.learned([((10, 2), ()), ((12, 2), ())])
    given = [np.ones((9, 2), np.int32), np.float32(3)]
    rows, number = sizes.padded(given, (10,))
    assert rows.dtype == np.int32
    assert rows.tolist() == [[1, 1]] * 9 + [[0, 0]]
    assert number == 3
