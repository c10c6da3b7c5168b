"""Ops whose result depends on which values occur: what they find, and the names of their results when fetched."""

import numpy as np
import pytest

import tensorfleet as tf
from tests.support.sessions import run
from tests.support.shapes import dims


def test_fetched_results_keep_their_names(session):
    unique = session.run(tf.unique([3, 1, 3]))
    counted = session.run(tf.unique_with_counts([b"b", b"a", b"b"]))
    left = session.run({"left": tf.setdiff1d([1, 2, 3], [2])})["left"]
    assert unique.y.tolist() == [3, 1] and unique.idx.tolist() == [0, 1, 0]
    assert counted.count.tolist() == [2, 1] and counted.y.tolist() == [b"b", b"a"]
    assert left.out.tolist() == [1, 3] and left.idx.tolist() == [0, 2]


def test_unique_integers_far_apart(session):
    given = [-(2**31), 2**31 - 1, 5, -(2**31), 5, 0]
    for dtype, wanted in ((tf.int32, given), (tf.uint64, [2**63 + v // 2 for v in given]), (tf.int64, given)):
        result = session.run(tf.unique_with_counts(tf.constant(wanted, dtype)))
        assert result.y.tolist() == list(dict.fromkeys(wanted))
        assert result.y[result.idx].tolist() == wanted
        assert result.count.tolist() == [2, 1, 2, 1]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.float32])
def test_what_is_in_one_long_list_only_is_found_for_every_type(dtype):
    draw = np.random.RandomState(0)
    x = draw.randint(0, 100, 300).astype(dtype)
    limits = np.finfo(dtype) if dtype == np.float32 else np.iinfo(dtype)
    y = np.append(x[:70], [limits.min, limits.max]).astype(dtype)
    for one, other in ((x, y), (y, x)):
        with tf.Graph().as_default(), tf.Session() as sess:
            out, idx = sess.run(tf.setdiff1d(one, other))
        wanted = np.flatnonzero(~np.isin(one, other))
        assert idx.tolist() == wanted.tolist() and out.tolist() == one[wanted].tolist()


def test_every_nan_is_a_value_of_its_own(session):
    result = session.run(tf.unique_with_counts([np.nan, 1.0, np.nan, 1.0]))
    assert result.count.tolist() == [1, 2, 1] and result.idx.tolist() == [0, 1, 2, 1]


def test_different_values_have_no_gradient_to_give():
    x = tf.placeholder(tf.float32, [4])
    with pytest.raises(LookupError, match="No gradient defined for operation"):
        tf.gradients(tf.unique(x)[0], x)


def test_unique_keeps_the_order_of_first_occurrence():
    y, idx, count = run(tf.unique_with_counts([3, 1, 3, 2, 1]))
    assert (y.tolist(), idx.tolist(), count.tolist()) == ([3, 1, 2], [0, 1, 0, 2, 1], [2, 2, 1])
    words = tf.unique(["b", "a", "b"])
    assert run(words.y).tolist() == [b"b", b"a"]
    assert dims(words.idx) == [3]


def test_partition_and_stitch_are_inverse(x):
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    parts = tf.dynamic_partition(x, [1, 0], 2)
    places = tf.dynamic_partition(tf.range(2), [1, 0], 2)
    assert [dims(p) for p in parts] == [[None, 3]] * 2
    np.testing.assert_array_equal(run(tf.dynamic_stitch(places, parts), {x: value}), value)


def test_partition_out_of_range():
    p = tf.placeholder(tf.int32, [2])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"partitions\[1\] = 5 is not in \[0, 2\)"):
        run(tf.dynamic_partition([1.0, 2.0], p, 2), {p: [0, 5]})


def test_last_of_equal_stitch_indices_wins():
    merged = tf.dynamic_stitch([[0, 1], [1]], [[1.0, 2.0], [5.0]])
    assert dims(merged) == [2]
    np.testing.assert_array_equal(run(merged), [1, 5])


def test_setdiff1d():
    out, idx = run(tf.setdiff1d([1, 2, 3, 4], [2, 4]))
    assert (out.tolist(), idx.tolist()) == ([1, 3], [0, 2])
