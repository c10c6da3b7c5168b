"""Arrays are divided among servers by their bytes, and nothing is lost or doubled."""

import itertools
import math

from hypothesis import given
from hypothesis import strategies as st

from tensorfleet.fleet.library.division import divide

SHAPES = st.lists(st.lists(st.integers(0, 700), max_size=2).map(tuple), min_size=1, max_size=12)


@given(SHAPES, st.integers(1, 5))
def test_the_pieces_are_all_rows_once_in_order(shapes, servers):
    sizes = [4 * math.prod(shape) for shape in shapes]
    pieces = divide(shapes, sizes, servers, range(len(shapes)))
    for leaf, shape in enumerate(shapes):
        own = [p for p in pieces if p.leaf == leaf]
        assert own[0].begin == 0 and own[-1].end == (shape[0] if shape else 1)
        assert all(a.end == b.begin for a, b in itertools.pairwise(own))
        assert all(p.is_part == (len(own) > 1) and 0 <= p.server < servers for p in own)
    assert [p.leaf for p in pieces] == sorted(p.leaf for p in pieces)


def test_a_large_array_is_split_and_the_servers_have_nearly_the_same_bytes():
    shapes = [(8000, 100), (100,), (100, 100), (100,)]
    sizes = [4 * math.prod(shape) for shape in shapes]
    pieces = divide(shapes, sizes, 4, range(4))
    loads = [0.0] * 4
    for piece in pieces:
        shape = shapes[piece.leaf]
        loads[piece.server] += sizes[piece.leaf] * (piece.end - piece.begin) / shape[0]
    assert sum(piece.leaf == 0 for piece in pieces) == 4
    assert max(loads) < 1.1 * min(loads)


def test_an_array_that_must_stay_whole_is_not_split():
    assert len(divide([(8000, 100)], [3_200_000], 4, ())) == 1


def test_small_arrays_are_not_split():
    assert len(divide([(80, 10)], [3200], 4, [0])) == 1
