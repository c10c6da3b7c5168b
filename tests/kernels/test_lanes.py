"""The values of several like operations as one."""

import numpy as np

from tensorfleet.kernels.lanes import Lanes, Order, globally, within


def _lists(lanes):
    return [a.tolist() for a in lanes.split()]


def test_arrays_are_joined_and_cut_apart_again():
    given = [np.array([[1, 2]]), np.zeros((0, 2), int), np.array([[3, 4], [5, 6]])]
    assert _lists(Lanes.of(given)) == [a.tolist() for a in given]


def test_scalars_stay_scalars():
    lanes = Lanes.of([np.int64(4), np.int64(5)])
    assert [a.shape for a in lanes.split()] == [(), ()]
    assert _lists(lanes) == [4, 5]


def test_arrays_of_other_types_ranks_or_widths_are_not_joined():
    row = np.ones((1, 2))
    for other in (np.ones((1, 2), np.float32), np.ones(2), np.ones((1, 3))):
        assert Lanes.of([row, other]) is None


def test_arrays_too_large_to_be_copied_are_not_joined():
    assert Lanes.of([np.zeros(1 << 15), np.zeros(1 << 15)]) is None


def test_picked_lanes_keep_what_is_known_of_their_order():
    lanes = Lanes(np.array([7, 3, 9]), [0, 2, 2, 3], Order.DISTINCT).pick([2, 0])
    assert (_lists(lanes), lanes.order) == ([[9], [7, 3]], Order.DISTINCT)


def test_vectors_of_one_length_are_a_matrix_and_others_are_not():
    assert Lanes(np.arange(4), [0, 2, 4]).as_matrix().tolist() == [[0, 1], [2, 3]]
    assert Lanes(np.arange(4), [0, 1, 4]).as_matrix() is None


def test_an_index_is_checked_against_the_size_of_its_own_lane():
    indices = Lanes(np.array([0, 2, 0]), [0, 2, 3])
    assert within(indices, np.array([3, 1]))
    assert not within(indices, np.array([2, 5]))
    assert globally(indices, np.array([0, 3])).tolist() == [0, 2, 3]
