"""Reductions: axes, empty inputs, unknown ranks, integers, NaN."""

import numpy as np
import pytest

import tensorfleet as tf
from tests.support.sessions import run


def fed(value, dtype=np.float32):
    value = np.asarray(value, dtype)
    return tf.placeholder_with_default(value, [None] * value.ndim)


def test_all_axes_are_a_constant_when_the_rank_is_known(graph):
    total = tf.reduce_sum(tf.placeholder(tf.float32, [None, 3]))
    assert [o.name for o in graph.get_operations()][1:] == ["Const", "Sum"]
    assert total.shape.as_list() == []


def test_all_axes_are_a_range_when_the_rank_is_not_known(graph):
    x = tf.placeholder(tf.float32)
    total = tf.reduce_sum(x)
    assert total.op.inputs[1].op.type == "Range"
    assert total.shape.as_list() == []
    gradient = tf.gradients(total, x)[0]
    assert run(total, {x: np.ones((2, 3))}) == 6
    np.testing.assert_array_equal(run(gradient, {x: np.ones((2, 3))}), np.ones((2, 3)))


def test_empty_reductions_give_the_identity():
    nothing = np.zeros((0, 2))
    assert run(tf.reduce_sum(fed(nothing))) == 0
    assert run(tf.reduce_prod(fed(nothing))) == 1
    assert run(tf.reduce_max(fed(nothing))) == -np.inf
    assert run(tf.reduce_min(fed(nothing))) == np.inf
    assert run(tf.reduce_max(fed(nothing, np.int32))) == -(2**31)
    assert np.isnan(run(tf.reduce_mean(fed(nothing))))
    assert run(tf.reduce_all(fed(nothing, bool)))
    assert not run(tf.reduce_any(fed(nothing, bool)))


def test_mean_of_integers_is_an_integer_rounded_toward_zero():
    assert run(tf.reduce_mean(fed([1, 2, 2], np.int32))) == 1
    assert run(tf.reduce_mean(fed([-1, -2, -2], np.int32))) == -1
    assert run(tf.reduce_mean(fed([200, 200, 200], np.uint8))) == 200


def test_half_precision_sums_do_not_stall():
    assert run(tf.reduce_sum(fed(np.ones(5000), np.float16))) == 5000


def test_max_passes_nan_on_and_argmax_does_not_see_it():
    x = fed([1.0, np.nan, 2.0])
    assert np.isnan(run(tf.reduce_max(x)))
    assert run(tf.argmax(x, 0)) == 2


def test_argmax_gives_the_first_of_equal_elements():
    assert run(tf.argmax(fed([1, 3, 3]), 0)) == 1
    assert run(tf.argmin(fed([3, 1, 1]), 0, output_type=tf.int32)).dtype == np.int32


def test_argmax_over_an_empty_axis_is_an_error():
    with pytest.raises(tf.errors.InvalidArgumentError, match="Reduction axis 0 is empty"):
        run(tf.argmax(fed(np.zeros((0, 2))), 0))


def test_an_axis_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="Invalid reduction dimension 2 for input with 2 dimensions"):
        tf.reduce_sum(tf.zeros([2, 3]), 2)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Invalid reduction dimension \(5"):
        x = tf.placeholder(tf.float32)
        run(tf.reduce_sum(x, 5), {x: np.ones((2, 3))})


def test_deprecated_argument_names_still_work():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(run(tf.reduce_sum(x, reduction_indices=1, keep_dims=True)), [[3], [7]])
    assert run(tf.argmax(x, dimension=1)).tolist() == [1, 1]
    with pytest.raises(ValueError, match="both"):
        tf.reduce_sum(x, axis=0, reduction_indices=1)


def test_product_gradient_is_right_at_zeros():
    x = tf.constant([[0.0, 2.0, 3.0], [0.0, 0.0, 4.0]])
    np.testing.assert_array_equal(run(tf.gradients(tf.reduce_prod(x, 1), x)[0]), [[6, 0, 0], [0, 0, 0]])


def test_max_gradient_is_shared_by_ties():
    x = tf.constant([3.0, 1.0, 3.0])
    np.testing.assert_array_equal(run(tf.gradients(tf.reduce_max(x), x)[0]), [0.5, 0, 0.5])


def test_logsumexp_does_not_overflow():
    assert run(tf.reduce_logsumexp(fed([1000.0, 1000.0]))) == pytest.approx(1000 + np.log(2), rel=1e-6)
    assert run(tf.reduce_logsumexp(fed([-np.inf, -np.inf]))) == -np.inf


def test_count_nonzero_counts_strings_that_are_not_empty():
    assert run(tf.count_nonzero(tf.constant(["a", "", "b"]))) == 2


def test_cumsum_exclusive_and_reverse():
    x = fed([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(run(tf.cumsum(x, exclusive=True)), [0, 1, 3])
    np.testing.assert_array_equal(run(tf.cumsum(x, reverse=True)), [6, 5, 3])
    np.testing.assert_array_equal(run(tf.cumsum(x, exclusive=True, reverse=True)), [5, 3, 0])


def test_segments_without_rows():
    rows = fed([1.0, 2.0])
    np.testing.assert_array_equal(run(tf.segment_sum(rows, [1, 1])), [0, 3])
    np.testing.assert_array_equal(run(tf.segment_prod(rows, [1, 1])), [1, 2])
    np.testing.assert_array_equal(run(tf.unsorted_segment_sum(rows, [2, -1], 3)), [0, 0, 1])
    np.testing.assert_array_equal(
        run(tf.unsorted_segment_max(rows, [0, 0], 2)), [2, np.finfo(np.float32).min]
    )


def test_segment_ids_are_checked():
    with pytest.raises(tf.errors.InvalidArgumentError, match="segment ids are not increasing"):
        run(tf.segment_sum(fed([1.0, 2.0]), [1, 0]))
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"segment_ids\[1\] = 3 is out of range \[0, 2\)"
    ):
        run(tf.unsorted_segment_sum(fed([1.0, 2.0]), fed([0, 3], np.int32), 2))


@pytest.mark.parametrize("axis", [(0, 0), (0, -2), (-2, 0, 0)])
def test_an_axis_named_twice_counts_once(axis):
    total = tf.reduce_sum(np.array([[1, 2, 3], [4, 5, 6]]), axis=axis)
    assert total.shape.as_list() == [3]
    assert run(total).tolist() == [5, 7, 9]


def test_axes_are_one_number_or_a_list():
    with pytest.raises(ValueError, match="Shape must be at most rank 1 but is rank 2"):
        tf.reduce_sum(np.ones([2, 3]), axis=np.array([[0], [1]]))


@pytest.mark.parametrize(
    ("ids", "phrase"),
    [
        ([0, 1], "segment_ids should be the same size as dimension 0"),
        (
            [-1, -1, 0, 0],
            r"Segment id -1 out of range \[0, 1\), possibly because 'segment_ids' input is not sorted",
        ),
        ([0, 1, 2, 0], r"Segment id 1 out of range \[0, 1\)"),
        ([0, 1, 0, 1], "segment ids are not increasing"),
        ([0, 0, 0, -2], "segment ids must be >= 0"),
    ],
)
def test_groups_that_do_not_grow_are_told_as_they_are_met(ids, phrase):
    with pytest.raises(tf.errors.InvalidArgumentError, match=phrase):
        run(tf.segment_sum(tf.ones([4, 2]), ids))
    if len(ids) == 4:
        with pytest.raises(tf.errors.InvalidArgumentError, match=phrase):
            run(tf.sparse_segment_sum(tf.ones([9, 2]), [8, 3, 0, 5], ids))
