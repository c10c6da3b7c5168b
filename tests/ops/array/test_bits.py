"""Shapes, builders and the rest of the array ops: TensorFlow's corner cases and messages."""

import numpy as np
import pytest

import tensorfleet as tf
from tests.support.sessions import run
from tests.support.shapes import dims

# -- shapes ------------------------------------------------------------------------------------------


def test_known_shapes_are_constants(graph, x, u):
    assert [t.op.type for t in (tf.shape(x), tf.size(x), tf.rank(x))] == ["Const"] * 3
    assert [t.op.type for t in (tf.shape(u), tf.size(u))] == ["Shape", "Size"]
    assert run(tf.shape(x, out_type=tf.int64)).dtype == np.int64


def test_reshape_works_out_what_it_can(x, u):
    p = tf.placeholder(tf.int32, [])
    assert dims(tf.reshape(x, [-1])) == [6]
    assert dims(tf.reshape(x, [p, 3])) == [2, 3]
    assert dims(tf.reshape(u, [-1, 3, 1])) == [None, 3, 1]
    assert dims(tf.reshape(u, [tf.shape(u)[0], 10])) == [None, 10]
    assert dims(tf.reshape(x, tf.placeholder(tf.int32, [None]))) is None
    assert dims(tf.reshape(tf.placeholder(tf.float32), [-1, 28 * 28])) == [None, 784]


def test_impossible_reshapes_fail_when_the_graph_is_built(x, u):
    with pytest.raises(
        ValueError, match=r"Cannot reshape a tensor with 6 elements to shape \[4\] \(4 elements\)"
    ):
        tf.reshape(x, [4])
    with pytest.raises(ValueError, match="Dimension size must be evenly divisible by 4 but is 6"):
        tf.reshape(x, [-1, 4])
    with pytest.raises(ValueError, match="Dimension size must be evenly divisible by 3 but is 4"):
        tf.reshape(u, [4])
    with pytest.raises(ValueError, match="Shape must be rank 1 but is rank 0"):
        tf.reshape(x, 5)


def test_impossible_reshapes_fail_at_run_time():
    y = tf.placeholder(tf.float32)
    feed = {y: np.ones((2, 3))}
    message = "Input to reshape is a tensor with 6 values, but the requested shape has 4"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        run(tf.reshape(y, [4]), feed)
    with pytest.raises(tf.errors.InvalidArgumentError, match="requires a multiple of 4"):
        run(tf.reshape(y, [-1, 4]), feed)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="Only one input size may be -1, not both 0 and 1"
    ):
        run(tf.reshape(y, [-1, -1]), feed)


def test_squeeze_and_expand_dims_take_their_old_arguments(x):
    assert dims(tf.expand_dims(x, dim=-1)) == [2, 3, 1]
    assert dims(tf.squeeze(tf.expand_dims(x, 0), squeeze_dims=[0])) == [2, 3]
    with pytest.raises(ValueError, match="Cannot specify both"):
        tf.expand_dims(x, 0, dim=0)
    with pytest.raises(ValueError, match=r"dim 5 not in the interval \[-3, 2\]"):
        tf.expand_dims(x, 5)
    with pytest.raises(ValueError, match=r"Can not squeeze dim\[0\], expected a dimension of 1, got 2"):
        tf.squeeze(x, 0)


def test_squeeze_fails_at_run_time_too():
    y = tf.placeholder(tf.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Can not squeeze dim\[0\]"):
        run(tf.squeeze(y, [0]), {y: np.ones((2, 3))})


def test_transpose_reverses_without_perm(x):
    unknown = tf.placeholder(tf.float32)
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert dims(tf.transpose(x)) == [3, 2]
    for got in run(
        [tf.transpose(x), tf.transpose(unknown), tf.matrix_transpose(x)], {x: value, unknown: value}
    ):
        np.testing.assert_array_equal(got, value.T)
    with pytest.raises(ValueError, match="perm dim 5 is out of range of input rank 2"):
        tf.transpose(x, [0, 5])


def test_conjugate_transpose():
    c = tf.constant([[1 + 2j, 3j]])
    assert tf.transpose(c, conjugate=True).op.type == "ConjugateTranspose"
    np.testing.assert_array_equal(run(tf.transpose(c, conjugate=True)), [[1 - 2j], [-3j]])


def test_invert_permutation_refuses_what_is_none():
    p = tf.placeholder(tf.int32, [None])
    y = tf.invert_permutation(p)
    np.testing.assert_array_equal(run(y, {p: [2, 0, 1]}), [1, 2, 0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="0 is duplicated in the input"):
        run(y, {p: [0, 0]})
    with pytest.raises(tf.errors.InvalidArgumentError, match="5 is not between 0 and 2"):
        run(y, {p: [0, 5]})


def test_broadcast_shapes(x, u):
    assert run(tf.broadcast_dynamic_shape([2, 1], [1, 3])).tolist() == [2, 3]
    assert tf.broadcast_static_shape(tf.TensorShape([2, 1]), tf.TensorShape([3])) == tf.TensorShape([2, 3])
    with pytest.raises(ValueError, match="Incompatible shapes for broadcasting"):
        tf.broadcast_static_shape(tf.TensorShape([2]), tf.TensorShape([3]))
    assert dims(tf.broadcast_to(x, [4, 2, 3])) == [4, 2, 3]


def test_ensure_shape_adds_knowledge_and_checks_it(u):
    y = tf.ensure_shape(u, [2, None])
    assert dims(y) == [2, 3]
    run(y, {u: np.ones((2, 3))})
    with pytest.raises(tf.errors.InvalidArgumentError, match="is not compatible with expected shape"):
        run(y, {u: np.ones((4, 3))})


# -- building ----------------------------------------------------------------------------------------


def test_small_zeros_are_constants_and_large_ones_are_filled():
    assert tf.zeros([2, 3]).op.type == "Const"
    large = tf.zeros([2000])
    assert (large.op.name, large.op.type) == ("zeros_1", "Fill")
    p = tf.placeholder(tf.int32, [])
    assert dims(tf.zeros([p, 2])) == [None, 2]
    assert run(tf.zeros([1], tf.string)).tolist() == [b""]
    assert run(tf.ones([1], tf.bool)).tolist() == [True]


def test_zeros_like_of_unknown_shape(u):
    assert tf.zeros_like(u).op.type == "ZerosLike"
    assert run(tf.ones_like(u, dtype=tf.int32), {u: np.zeros((2, 3))}).tolist() == [[1] * 3] * 2


def test_range_types_and_errors():
    assert dims(tf.range(3, 18, 3)) == [5]
    assert tf.range(3, dtype=tf.float32).dtype == tf.float32
    assert tf.range(tf.placeholder(tf.int64, [])).dtype == tf.int64
    np.testing.assert_allclose(run(tf.range(0.0, 1.0, 0.3)), [0, 0.3, 0.6, 0.9], rtol=1e-6)
    with pytest.raises(ValueError, match="Requires start <= limit when delta > 0: 5/1"):
        tf.range(5, 1)
    p = tf.placeholder(tf.int32, [])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Requires start <= limit"):
        run(tf.range(p), {p: -1})


def test_one_hot_gives_off_values_out_of_range():
    got = run(tf.one_hot([0, 2, -1, 5], 3, on_value=5.0, off_value=-1.0))
    np.testing.assert_array_equal(got, [[5, -1, -1], [-1, -1, 5], [-1] * 3, [-1] * 3])
    assert dims(tf.one_hot(tf.placeholder(tf.int32, [None]), 10)) == [None, 10]
    assert dims(tf.one_hot([1, 2], 3, axis=0)) == [3, 2]
    with pytest.raises(TypeError, match="does not match"):
        tf.one_hot([0], 2, on_value=1.0, dtype=tf.int32)


def test_sequence_mask_and_meshgrid():
    assert run(tf.sequence_mask([1, 3], 3)).tolist() == [[True, False, False], [True] * 3]
    assert run(tf.sequence_mask([1, 2], dtype=tf.int32)).tolist() == [[1, 0], [1, 1]]
    for ours, theirs in zip(run(tf.meshgrid([1, 2], [3, 4, 5])), np.meshgrid([1, 2], [3, 4, 5]), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_eye():
    np.testing.assert_array_equal(run(tf.eye(2, 3)), np.eye(2, 3))
    assert dims(tf.eye(2, batch_shape=[5])) == [5, 2, 2]
    p = tf.placeholder(tf.int32, [])
    np.testing.assert_array_equal(run(tf.eye(p), {p: 3}), np.eye(3))


# -- moving ------------------------------------------------------------------------------------------


def test_pad_modes(x, u):
    assert dims(tf.pad(u, [[1, 1], [0, 2]])) == [None, 5]
    p = tf.placeholder(tf.int32, [])
    assert dims(tf.pad(x, [[p, 1], [0, 0]])) == [None, 3]
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    for mode in ("constant", "reflect", "symmetric"):
        got = run(tf.pad(x, [[1, 0], [2, 1]], mode), {x: value})
        np.testing.assert_array_equal(got, np.pad(value, [[1, 0], [2, 1]], mode))
    with pytest.raises(ValueError, match="Unknown padding mode"):
        tf.pad(x, [[0, 0], [0, 0]], "wrong")


def test_mirror_padding_wider_than_the_tensor_fails():
    y = tf.placeholder(tf.float32, [None])
    with pytest.raises(tf.errors.InvalidArgumentError, match="paddings must be less than the dimension size"):
        run(tf.pad(y, [[3, 0]], "REFLECT"), {y: np.ones(3)})


def test_tile_of_partly_known_multiples(x, u):
    p = tf.placeholder(tf.int32, [])
    assert dims(tf.tile(x, [p, 2])) == [None, 6]
    assert dims(tf.tile(u, [2, 2])) == [None, 6]
    assert dims(tf.tile(u, [0, p])) == [0, None]
    assert dims(tf.tile(tf.placeholder(tf.float32), [0, 1])) == [0, None]


def test_repeat():
    np.testing.assert_array_equal(run(tf.repeat([3, 4], [1, 2])), [3, 4, 4])
    np.testing.assert_array_equal(run(tf.repeat([[1, 2], [3, 4]], 2, axis=1)), [[1, 1, 2, 2], [3, 3, 4, 4]])


def test_reverse_sequence_takes_old_and_new_names(x):
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    old = tf.reverse_sequence(x, [2, 3], seq_dim=1, batch_dim=0)
    new = tf.reverse_sequence(x, [2, 3], seq_axis=1)
    for got in run([old, new], {x: value}):
        np.testing.assert_array_equal(got, [[1, 0, 2], [5, 4, 3]])


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_depth_to_space_undoes_space_to_depth(layout):
    value = np.arange(64, dtype=np.float32).reshape(1, 4, 4, 4)
    there = tf.space_to_depth(tf.constant(value), 2, data_format=layout)
    back = tf.depth_to_space(there, 2, data_format=layout)
    np.testing.assert_array_equal(run(back), value)
    moved = run(there)
    first = moved[0, 0, 0] if layout == "NHWC" else moved[0, :, 0, 0]
    corner = value[0, :2, :2, :] if layout == "NHWC" else value[0, :, :2, :2].transpose(1, 2, 0)
    np.testing.assert_array_equal(first, corner.ravel())


def test_required_space_to_batch_paddings():
    pads, crops = tf.required_space_to_batch_paddings([3, 4], [2, 3])
    assert run(pads).tolist() == [[0, 1], [0, 2]]
    assert run(crops).tolist() == [[0, 1], [0, 2]]
    p = tf.placeholder(tf.int32, [])
    pads, _ = tf.required_space_to_batch_paddings([3, p], [2, 3])
    assert run(pads, {p: 4}).tolist() == [[0, 1], [0, 2]]


@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (2, 5), (5, 2)])
def test_each_diagonal_is_set_where_it_is(shape):
    x = np.arange(2.0 * np.prod(shape)).reshape(2, *shape)
    for k in range(1 - shape[0], shape[1]):
        wanted = x.copy()
        for matrix in wanted:
            for i, row in enumerate(matrix):
                row[[j for j in range(shape[1]) if j - i == k]] = -1
        count = int((wanted[0] == -1).sum())
        np.testing.assert_array_equal(run(tf.matrix_set_diag(x, np.full((2, count), -1.0), k=k)), wanted)


def test_diagonals_off_the_main_one():
    result = run(tf.matrix_diag([1.0, 2.0], k=1, padding_value=9.0))
    np.testing.assert_array_equal(result, [[9, 1, 9], [9, 9, 2], [9, 9, 9]])
    part = run(tf.matrix_diag_part(tf.constant(np.arange(9.0).reshape(3, 3)), k=(-1, 0), padding_value=-5.0))
    np.testing.assert_array_equal(part, [[0, 4, 8], [3, 7, -5]])


# -- bits --------------------------------------------------------------------------------------------


def test_check_numerics_says_what_it_found(session):
    y = tf.placeholder(tf.float32, [None])
    checked = tf.check_numerics(y, "my tensor")
    for _ in range(3):  # interpreted at first, then compiled
        with pytest.raises(tf.errors.InvalidArgumentError, match="my tensor : Tensor had NaN values"):
            session.run(checked, {y: [1, np.nan]})
        with pytest.raises(tf.errors.InvalidArgumentError, match="my tensor : Tensor had Inf values"):
            session.run(checked, {y: [1, -np.inf]})
        assert session.run(checked, {y: [1, 2]}).tolist() == [1, 2]


def test_bitcast_trades_bytes_for_the_last_dimension(x):
    assert dims(tf.bitcast(x, tf.int16)) == [2, 3, 2]
    assert run(tf.bitcast([1.0], tf.int32)).tolist() == [0x3F800000]
    with pytest.raises(ValueError, match="Cannot bitcast"):
        tf.bitcast(x, tf.float64)


def test_one_dimension_is_added_at_a_time():
    with pytest.raises(ValueError, match="must be a tensor with a single value"):
        tf.expand_dims(1, axis=[0, 1])


def test_splits_that_cannot_be_made_are_told():
    with pytest.raises(ValueError, match="should evenly divide the split dimension"):
        tf.split([0, 1, 2, 3], 3)
    with pytest.raises(ValueError, match="Cannot infer num from shape"):
        tf.split(tf.range(10), tf.placeholder(tf.int32, [None]))


def test_an_axis_to_split_along_is_one_number():
    axis = tf.placeholder(tf.int32)
    parts = tf.split(tf.zeros([5, 30]), [4, 11, 15], axis=axis)
    with (
        tf.Session() as s,
        pytest.raises(tf.errors.InvalidArgumentError, match="must have exactly one element"),
    ):
        s.run(parts, {axis: np.array([], np.int32)})


def test_offsets_are_of_shapes_that_are_vectors():
    with (
        tf.Session() as sess,
        pytest.raises(tf.errors.InvalidArgumentError, match="input 0 should be a vector"),
    ):
        sess.run(tf.raw_ops.ConcatOffset(concat_dim=0, shape=[[[1, 2]], [[1, 2]]]))


def test_elements_are_repeated_as_often_as_is_fed():
    times = tf.placeholder(tf.int32)
    repeated = tf.repeat([1, 2, 3], times)
    with tf.Session() as sess:
        assert sess.run(repeated, {times: 2}).tolist() == [1, 1, 2, 2, 3, 3]
        assert sess.run(repeated, {times: [1, 2, 0]}).tolist() == [1, 2, 2]
    with pytest.raises(ValueError, match="rank at most 1"):
        tf.repeat([1, 2], [[1, 2]])


def test_a_vector_of_conditions_tells_nothing_of_the_rows_it_chooses_from():
    rows = tf.placeholder(tf.float32, [None, 3])
    assert tf.where(tf.constant([True, False]), rows, rows).shape.as_list() == [None, 3]
    with pytest.raises(ValueError, match="not compatible|incompatible"):
        tf.where(tf.constant([True, False]), tf.zeros([3, 3]), rows)


def test_what_is_rolled_and_how_far_has_the_right_rank():
    x, shift, axis = (tf.placeholder(tf.int32) for _ in range(3))
    rolled = tf.roll(x, shift, axis)
    with tf.Session() as sess:
        for given, words in (
            ((7, 1, 0), "input must be 1-D or higher"),
            (([[1, 2]], [[0, 1]], 1), "shift must be a scalar or a 1-D vector"),
            (([[1, 2]], 1, [[0, 1]]), "axis must be a scalar or a 1-D vector"),
            (([[1, 2]], [1], [0, 1]), "shift and axis must have the same size"),
        ):
            with pytest.raises(tf.errors.InvalidArgumentError, match=words):
                sess.run(rolled, dict(zip((x, shift, axis), given, strict=True)))


def test_paddings_that_are_stacked_by_columns_are_no_rows():
    rows = tf.placeholder(tf.float32, [None, 4])[:2]
    more = tf.stack([tf.zeros([2], tf.int32), [4 - tf.shape(rows)[0], 0]], axis=1)
    padded = tf.pad(tf.zeros([2, 4]) + rows[0], more)
    assert padded.shape.ndims == 2
    padded.set_shape([4, 4])
