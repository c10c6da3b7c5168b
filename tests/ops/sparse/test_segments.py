"""Rows picked by index and added up: what is out of bounds."""

import numpy as np
import pytest

import tensorfleet as tf


@pytest.mark.parametrize("kind", ["Sum", "Mean", "SqrtN"])
@pytest.mark.parametrize(
    ("indices", "ids", "told"),
    [
        ([8, 3, 0, 10], [0, 1, 2, 2], r"Index 10 out of range \[0, 10\)"),
        ([8, 3, -1, 9], [0, 1, 2, 2], r"Index -1 out of range \[0, 10\)"),
        ([8, 3, 0, 9], [0, 1, 1, 4], "Invalid number of segments"),
        ([8, 3, 0, 9], [-1, 0, 1, 1], r"Segment id -1 out of range \[0, 3\)"),
    ],
)
def test_gradients_of_picked_rows_stay_within_their_bounds(session, kind, indices, ids, told):
    op = getattr(tf.raw_ops, f"SparseSegment{kind}Grad")
    result = op(grad=np.ones((3, 4), np.float32), indices=indices, segment_ids=ids, output_dim0=10)
    with pytest.raises(tf.errors.InvalidArgumentError, match=told):
        session.run(result)


def test_there_are_no_fewer_groups_than_none():
    with pytest.raises(ValueError, match="Cannot specify a negative value for num_segments"):
        tf.sparse.segment_sum(np.ones((10, 4)), [8, 3], [0, 1], num_segments=-2)
