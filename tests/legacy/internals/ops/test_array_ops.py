import pytest

import tensorfleet as tf
from tensorfleet_legacy.internals.ops import array_ops as small_ops


@pytest.fixture
def sess():
    with tf.Session() as sess:
        yield sess


def test_gradients_flow_through_numbers_that_are_not_whole():
    assert small_ops.is_trainable(tf.float16) and small_ops.is_trainable(tf.constant(1j))
    assert not small_ops.is_trainable(tf.int32) and not small_ops.is_trainable(tf.constant("x"))


def test_a_value_of_another_shape_is_not_given_to_a_variable(sess):
    variable = tf.get_variable("v", [2], use_resource=True)
    assign = small_ops.shape_safe_assign_variable_handle
    sess.run(assign(variable.handle, variable.shape, [1.0, 2.0]))
    assert sess.run(variable).tolist() == [1, 2]
    with pytest.raises(ValueError, match=r"\(2,\) and \(3,\) are incompatible"):
        assign(variable.handle, variable.shape, [1.0, 2.0, 3.0])


def test_ranges_are_repeated(sess):
    splits = small_ops.lengths_to_splits([1, 2, 0])
    assert sess.run(splits).tolist() == [0, 1, 3, 3]
    assert sess.run(small_ops.repeat_ranges([7, 8, 9], splits, [2, 1, 4])).tolist() == [7, 7, 8, 9]
    assert sess.run(small_ops.repeat_ranges([7, 8, 9], splits, 2)).tolist() == [7, 7, 8, 9, 8, 9]


def test_splits_must_be_the_same(sess):
    with pytest.raises(ValueError, match="identical ragged splits"):
        small_ops.assert_splits_match([[[0, 1]], []])
    given = tf.placeholder(tf.int32, [2])
    (check,) = small_ops.assert_splits_match([[tf.constant([0, 1])], [given]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="identical ragged splits"):
        sess.run(check, {given: [0, 2]})


def test_an_axis_is_counted_from_the_front():
    assert small_ops.get_positive_axis(-1, 3) == 2
    with pytest.raises(ValueError, match="axis=3 out of bounds: expected -3<=axis<3"):
        small_ops.get_positive_axis(3, 3)
    with pytest.raises(ValueError, match="may only be negative"):
        small_ops.get_positive_axis(-1, None)
    with pytest.raises(TypeError, match="must be an integer tensor"):
        small_ops.convert_to_int_tensor(1.5, "axis")


def test_sequences_are_as_long_as_their_last_step(sess):
    sparse = tf.SparseTensor([[0, 0], [2, 0], [2, 3]], [1, 2, 3], [3, 4])
    assert sess.run(small_ops.sequence_length_from_sparse_tensor(sparse)).tolist() == [1, 0, 4]
    assert sess.run(small_ops.sequence_length_from_sparse_tensor(sparse, 2)).tolist() == [1, 0, 2]


def test_the_greatest_common_divisor_is_known_when_the_numbers_are():
    gcd = tf.python.ops.signal.util_ops.gcd
    number = tf.placeholder(tf.int32, [])
    assert tf.get_static_value(gcd(12, 18)) == 6
    with tf.Session() as sess:
        assert sess.run(gcd(number, 18), {number: 12}) == 6
    with pytest.raises(ValueError, match="must be an integer type"):
        gcd(1.0, 2)


def test_a_glimpse_outside_the_image_may_be_of_zeros(sess):
    image = tf.ones([1, 2, 2, 1])
    seen = tf.python.ops.image_ops.extract_glimpse_v2(image, [4, 4], [[0.0, 0.0]], noise="zero")
    assert sess.run(seen).sum() == 4


def test_dimensions_of_one_are_put_in_front(session):
    result = tf.python.ops.random_grad.add_leading_unit_dimensions(tf.ones([3]), 2)
    assert session.run(result).shape == (1, 1, 3)


def test_elements_of_batches_are_gathered_without_a_known_rank(session):
    indices = tf.placeholder(tf.int32)
    result = tf.python.ops.array_ops.batch_gather_nd([[0, 1, 2], [3, 4, 5]], indices, 1)
    assert result.shape.rank is None
    assert session.run(result, {indices: [[[1]], [[2]]]}).tolist() == [[1], [5]]
