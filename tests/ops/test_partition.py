"""Ops whose result depends on which values occur keep the names of their results when fetched."""

import tensorfleet as tf


def test_fetched_results_keep_their_names(session):
    unique = session.run(tf.unique([3, 1, 3]))
    counted = session.run(tf.unique_with_counts([b"b", b"a", b"b"]))
    left = session.run({"left": tf.setdiff1d([1, 2, 3], [2])})["left"]
    assert unique.y.tolist() == [3, 1] and unique.idx.tolist() == [0, 1, 0]
    assert counted.count.tolist() == [2, 1] and counted.y.tolist() == [b"b", b"a"]
    assert left.out.tolist() == [1, 3] and left.idx.tolist() == [0, 2]
