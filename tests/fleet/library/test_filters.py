"""Filters send a part of a push, and what they keep back is never lost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorfleet as tf
from tensorfleet.fleet.library.filters import check, select

F = tf.fleet
FILTERS = [
    [],
    [F.Significant(0.5)],
    [F.TopK(2)],
    [F.Bits(8)],
    [F.Bits(16)],
    [F.Significant(0.25), F.TopK(3), F.Bits(8)],
]


@given(
    st.sampled_from(FILTERS),
    st.lists(st.lists(st.floats(-4, 4, width=32), min_size=6, max_size=6), max_size=8),
)
def test_what_the_servers_get_and_what_is_kept_add_up_to_what_was_pushed(filters, pushes):
    server, kept, total = (np.zeros((3, 2), np.float32) for _ in range(3))
    for push in pushes:
        rows = np.float32(push).reshape(3, 2)
        total += rows
        rows = rows + kept
        sent = select(filters, rows)
        kept = rows.copy()
        got = sent.received(np.dtype(np.float32))
        kept[sent.which] -= got
        server[sent.which] += got
    np.testing.assert_allclose(server + kept, total, atol=1e-4)


def test_only_significant_rows_are_sent():
    rows = np.float32([[0.1, -0.6], [0.2, 0.3], [0.5, 0.0]])
    assert select([F.Significant(0.5)], rows).which.tolist() == [0, 2]


def test_only_the_largest_rows_are_sent():
    rows = np.float32([[3, 0], [0, 1], [2, 2], [0, 0]])
    assert select([F.TopK(2)], rows).which.tolist() == [0, 2]
    assert select([F.TopK(9)], rows).which.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(("bits", "dtype", "error"), [(8, np.int8, 0.5 / 127), (16, np.float16, 2**-10)])
def test_values_of_any_size_are_sent_in_few_bits(bits, dtype, error):
    rows = np.float32([[1e-20, -5e-21], [1e30, 3e29], [0, 0]])
    sent = select([F.Bits(bits)], rows)
    assert sent.values.dtype == dtype
    largest = np.abs(rows).max(axis=1, keepdims=True)
    assert (np.abs(sent.received(np.dtype(np.float32)) - rows) <= 1.01 * error * largest).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: F.Bits(4), "bits must be 8 or 16, not 4"),
        (lambda: F.TopK(0), "count must be 1 or more, not 0"),
        (lambda: F.Significant(-1), "threshold must be above 0"),
        (lambda: check([F.Bits(8), F.Bits(16)]), "filters has two tf.fleet.Bits"),
    ],
)
def test_filters_that_make_no_sense_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_something_else_than_a_filter_is_refused():
    with pytest.raises(TypeError, match="filters must be a list of tf.fleet.Significant, .* not 'int8'"):
        check(["int8"])
