"""Ordinary functions take ragged tensors: brackets, sums, joining, arithmetic with dense tensors."""

import numpy as np
import pytest

import tensorfleet as tf

ROWS = [[1, 2, 3], [], [4]]
CASES = {
    "row": (lambda r: r[0], [1, 2, 3]),
    "last row": (lambda r: r[-1], [4]),
    "element": (lambda r: r[0, 1], 2),
    "rows": (lambda r: r[1:], [[], [4]]),
    "columns": (lambda r: r[:, :2], [[1, 2], [], [4]]),
    "last columns": (lambda r: r[:, -1:], [[3], [], [4]]),
    "backwards": (lambda r: r[:, ::-1], [[3, 2, 1], [], [4]]),
    "sum of rows": (lambda r: tf.reduce_sum(r, 1), [6, 0, 4]),
    "sum of columns": (lambda r: tf.reduce_sum(r, 0), [5, 2, 3]),
    "sum": (lambda r: tf.reduce_sum(r), 10),
    "side by side": (lambda r: tf.concat([r, r], 1), [[1, 2, 3, 1, 2, 3], [], [4, 4]]),
    "below": (lambda r: tf.concat([r, [[9]]], 0), [[1, 2, 3], [], [4], [9]]),
    "gathered": (lambda r: tf.gather(r, [2, 0]), [[4], [1, 2, 3]]),
    "square": (lambda r: tf.square(r), [[1, 4, 9], [], [16]]),
    "a number per row": (lambda r: r * [[1], [2], [3]], [[1, 2, 3], [], [12]]),
    "masked": (
        lambda r: tf.ragged.boolean_mask(r, tf.ragged.constant([[True, False, True], [], [False]])),
        [[1, 3], [], []],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_values(case, session):
    function, wanted = CASES[case]
    got = session.run(function(tf.ragged.constant(ROWS)))
    assert (got.to_list() if hasattr(got, "to_list") else got.tolist()) == wanted


def test_rows_of_other_lengths_are_not_added():
    rows, others = tf.ragged.constant([[1, 2], [3]]), tf.ragged.constant([[1], [2, 3]])
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match="Unable to broadcast"):
        sess.run(rows + others)


def test_functions_keep_their_names_and_arguments():
    assert tf.square is tf.math.square
    assert tf.reduce_sum.__name__ == "reduce_sum"


def values(tensor):
    with tf.Session() as sess:
        result = sess.run(tensor)
    return result.to_list() if hasattr(result, "to_list") else result.tolist()


def test_places_in_rows_are_gathered_row_by_row():
    params = tf.ragged.constant([[5, 6, 7], [8, 9]])
    assert values(tf.batch_gather(params, tf.ragged.constant([[2, 1, 0], [1]]))) == [[7, 6, 5], [9]]
    assert values(tf.batch_gather(params, [[2, 0], [1, 1]])) == [[7, 5], [9, 9]]
    deep = tf.ragged.constant([[[1, 2], [3]], [[4]]])
    assert values(tf.batch_gather(deep, tf.ragged.constant([[[1, 1], [0]], [[]]]))) == [[[2, 2], [3]], [[]]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="does not match params shape"):
        values(tf.batch_gather(params, tf.ragged.constant([[1]])))


def test_an_index_goes_down_one_dimension_after_the_other():
    params = tf.ragged.constant([[[1, 2], [3]], [[4, 5, 6]]])
    assert values(tf.gather_nd(params, [[1, 0, 2], [0, 1, 0]])) == [6, 3]
    assert values(tf.gather_nd(params, [[0, 1], [1, 0]])) == [[3], [4, 5, 6]]
    assert values(tf.gather_nd(params, [[[0, 1]], [[1, 0]]])) == [[[3]], [[4, 5, 6]]]
    assert values(tf.gather_nd(params, [1, 0, 1])) == 5
    inner = tf.ragged.constant([[[1, 2]], [[3, 4], [5, 6]]], ragged_rank=1)
    assert values(tf.gather_nd(inner, [[1, 1, 0]])) == [5]
    with pytest.raises(ValueError, match="batch_dims != 0"):
        tf.gather_nd(params, [[0]], batch_dims=1)


def test_segments_may_be_given_for_each_value():
    data, ids = tf.ragged.constant([[1.0, 2.0], [3.0]]), tf.ragged.constant([[0, 2], [0]])
    assert values(tf.unsorted_segment_sum(data, ids, 3)) == [4, 0, 2]
    with pytest.raises(ValueError, match="data must be ragged"):
        tf.unsorted_segment_sum(tf.ones([2, 2]), ids, 3)


def test_means_of_rows_by_segment():
    data = tf.ragged.constant([[1.0, 2.0], [3.0], [5.0, 4.0, 7.0]])
    assert values(tf.unsorted_segment_mean(data, [0, 0, 1], 2)) == [[2, 2], [5, 4, 7]]
    (first, _) = values(tf.unsorted_segment_sqrt_n(data, [0, 0, 1], 2))
    np.testing.assert_allclose(first, [4 / 2**0.5, 2], rtol=1e-6)


def test_rows_give_back_what_they_were_made_from():
    rows, count = tf.constant([0, 0, 2], tf.int64), tf.constant(4, tf.int64)
    result = tf.RaggedTensor.from_value_rowids([1, 2, 3], rows, count)
    assert result.value_rowids() is rows and result.nrows() is count
    lengths = tf.constant([2, 1], tf.int64)
    assert tf.RaggedTensor.from_row_lengths([1, 2, 3], lengths).row_lengths() is lengths
    with pytest.raises(ValueError, match=r"Expected nrows >= value_rowids\[-1\] \+ 1; got nrows=2"):
        tf.RaggedTensor.from_value_rowids([1, 2, 3], rows, 2)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"row_splits": [0, 1]}, TypeError, "Row-partitioning argument must be a Tensor"),
        ({"values": [1]}, TypeError, "values must be a Tensor or RaggedTensor"),
        ({"cached_nrows": 1}, TypeError, "Cached value must be a Tensor or None"),
        ({"internal": False}, ValueError, "constructor is private"),
    ],
)
def test_the_constructor_takes_tensors(given, error, message):
    right = {"values": tf.ones([1]), "row_splits": tf.constant([0, 1]), "internal": True}
    assert tf.RaggedTensor(**right).ragged_rank == 1
    with pytest.raises(error, match=message):
        tf.RaggedTensor(**{**right, **given})


def test_functions_of_modules_inside_take_ragged_tensors():
    from tensorfleet.python.ops import array_ops, gen_bitwise_ops
    from tensorfleet.python.ops.ragged import ragged_math_ops

    rows = tf.ragged.constant([[1, 2], [3]])
    assert values(gen_bitwise_ops.invert(rows)) == [[-2, -3], [-4]]
    assert values(array_ops.gather_v2(rows, [1, 0])) == [[3], [1, 2]]
    assert values(ragged_math_ops.segment_sum(rows, [0, 0], 1)) == [[4, 2]]


@pytest.mark.parametrize(
    ("pylist", "options", "message"),
    [
        (5, {"ragged_rank": 1}, "incompatible with ragged_rank=1"),
        (5, {"inner_shape": (1,)}, r"incompatible with dim\(inner_shape\)=1"),
        ([[1]], {"ragged_rank": -1}, "must be nonnegative"),
        ([[1]], {"ragged_rank": 2}, "requires scalar value depth greater than 2"),
        ([[1]], {"ragged_rank": 1, "inner_shape": (1,)}, "incompatible with ragged_rank=1 and dim"),
        ([[1], [[]]], {}, "empty list nesting is greater"),
    ],
)
def test_lists_that_are_no_ragged_rows(pylist, options, message):
    for make in (tf.ragged.constant, tf.ragged.constant_value):
        with pytest.raises(ValueError, match=message):
            make(pylist, **options)


def test_a_scalar_is_a_tensor():
    assert values(tf.ragged.constant(5)) == 5
    assert tf.ragged.constant_value(5) == 5


def test_functions_of_all_values_need_the_same_rows():
    one, other = tf.ragged.constant([[1, 2], [3]]), tf.ragged.constant([[1], [2, 3]])
    assert values(tf.ragged.map_flat_values(tf.add, one, tf.ragged.constant([[5, 5], [5]]))) == [[6, 7], [8]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="identical ragged splits"):
        values(tf.ragged.map_flat_values(tf.add, one, other))
    with pytest.raises(ValueError, match="identical ragged splits"):
        tf.ragged.map_flat_values(tf.add, one, tf.ragged.constant([[[1, 2]], [[3]]]))


def test_dimensions_of_one_value_are_squeezed():
    rows = tf.ragged.constant([[[[1], [2]]], [[[3], [4]]]], ragged_rank=1)
    assert values(tf.squeeze(rows, [3])) == [[[1, 2]], [[3, 4]]]
    assert values(tf.squeeze(rows, [1, -1])) == [[1, 2], [3, 4]]
    assert values(tf.squeeze(tf.ragged.constant([[[1, 2], [3]]]), 0)) == [[1, 2], [3]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="axis = 1. is not squeezable"):
        values(tf.squeeze(tf.ragged.constant([[1, 2], [3]]), 1))
    with pytest.raises(ValueError, match="must have an axis"):
        tf.squeeze(rows)


def test_a_function_of_row_after_row():
    from tensorfleet.python.ops.ragged import ragged_map_ops, ragged_tensor

    rows = tf.ragged.constant([[1, 2], [], [3]])
    kind = ragged_tensor.RaggedTensorType(tf.int32, 1)
    assert values(ragged_map_ops.map_fn(tf.reduce_sum, rows, dtype=tf.int32)) == [3, 0, 3]
    assert values(ragged_map_ops.map_fn(lambda x: x + 1, rows)) == [[2, 3], [], [4]]
    deeper = ragged_map_ops.map_fn(tf.ragged.range, rows, dtype=ragged_tensor.RaggedTensorType(tf.int32, 2))
    assert values(deeper) == [[[0], [0, 1]], [], [[0, 1, 2]]]
    both = ragged_map_ops.map_fn(
        lambda p: (p[0] * p[1], p[1]), (rows, tf.constant([1, 2, 3])), (kind, tf.int32)
    )
    assert [values(b) for b in both] == [[[1, 2], [], [9]], [1, 2, 3]]
    with pytest.raises(ValueError, match=r"declared ragged rank \(2\) mismatches the result \(1\)"):
        ragged_map_ops.map_fn(lambda x: x, rows, dtype=ragged_tensor.RaggedTensorType(tf.int32, 2))
    with pytest.raises(ValueError, match="1. dimensional Tensors, not scalars"):
        ragged_map_ops.map_fn(lambda x: x, 3)


def test_values_of_ragged_tensors_are_taken_like_the_tensors(session):
    value = tf.ragged.constant_value([[1, 2], [3]])
    assert session.run(tf.add(value, 1)).to_list() == [[2, 3], [4]]
    assert session.run(tf.concat([value, value], 1)).to_list() == [[1, 2, 1, 2], [3, 3]]
    assert session.run(tf.gather(value, [1, 0])).to_list() == [[3], [1, 2]]
    mask = tf.ragged.constant_value([[True, False], [True]])
    assert session.run(tf.ragged.boolean_mask(value, mask)).to_list() == [[1], [3]]


def test_means_of_whole_numbers_are_fractions():
    rows = tf.ragged.constant([[3, 1, 4], [1, 6]])
    assert values(tf.reduce_mean(rows, axis=1)) == [8 / 3, 3.5]
    assert values(tf.reduce_mean(rows)) == 3.0
    assert np.isnan(values(tf.reduce_mean(tf.ragged.constant([[1], []]), axis=1))[1])


def test_partitions_of_several_dimensions_are_stacked():
    stack, rows = tf.ragged.stack_dynamic_partitions, tf.ragged.constant
    assert values(stack(["a", "b", "c"], [2, 0, 2], 3)) == [[b"b"], [], [b"a", b"c"]]
    assert values(stack([["a", "b"], ["c", "d"]], [[1, 0], [0, 1]], 2)) == [[b"b", b"c"], [b"a", b"d"]]
    ragged = stack(rows([["a", "b"], ["c"]]), rows([[1, 0], [1]]), 2)
    assert values(ragged) == [[b"b"], [b"a", b"c"]]
    assert values(stack(rows([["a", "b"], ["c"]]), [1, 0], 2)) == [[[b"c"]], [[b"a", b"b"]]]
    assert values(stack("a", 1, 2)) == [[], [b"a"]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="partitions must be less than num_partitions"):
        values(stack(["a", "b"], tf.placeholder_with_default([0, 2], [2]), 2))
    with pytest.raises(ValueError, match="partitions must have known rank"):
        stack(["a"], tf.placeholder(tf.int32), 2)
