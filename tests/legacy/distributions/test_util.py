import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet_legacy.distributions import util as du


@pytest.fixture
def sess():
    with tf.Session() as sess:
        yield sess


def test_what_the_graph_tells_is_no_tensor(sess):
    assert du.maybe_get_static_value(tf.constant(2), np.float64) == 2.0
    unknown = tf.placeholder(tf.int32, None)
    assert du.maybe_get_static_value(unknown) is None
    assert du.prefer_static_rank(tf.zeros((2, 3))) == 2
    assert isinstance(du.prefer_static_shape(tf.constant([])), np.ndarray)
    assert sess.run(du.prefer_static_rank(unknown), {unknown: [[1]]}) == 2
    assert du.prefer_static_broadcast_shape([2, 1], [3]) == [2, 3]


def test_shapes_are_compared_when_the_step_runs(sess):
    vector = tf.placeholder(tf.float32, [None])
    same = du.same_dynamic_shape([0.3, 0.4, 0.5], vector)
    assert sess.run(same, {vector: [1, 2, 3]})
    assert not sess.run(same, {vector: [1, 2]})
    assert not sess.run(du.same_dynamic_shape(1.0, vector), {vector: [1]})


def test_checked_numbers_stay_what_they_are_in_another_type(sess):
    half = tf.placeholder(tf.float16)
    checked = du.embed_check_integer_casting_closed(half, tf.int16)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Elements must be int16-equivalent"):
        sess.run(checked, {half: [1, 1.5]})
    with pytest.raises(tf.errors.InvalidArgumentError, match="Elements must be non-negative"):
        sess.run(checked, {half: [1, -1]})
    whole = tf.placeholder(tf.int32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Elements cannot exceed 32767"):
        sess.run(du.embed_check_integer_casting_closed(whole, tf.int16), {whole: [2**15]})
    unsigned = du.embed_check_integer_casting_closed(whole, tf.uint16, assert_nonnegative=False)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Elements cannot be smaller than 0"):
        sess.run(unsigned, {whole: [-1]})


def test_more_classes_than_a_type_can_number_are_refused(sess):
    with pytest.raises(ValueError, match="exceeds `dtype` precision"):
        du.embed_check_categorical_event_shape(tf.ones([2**11 + 1], tf.float16))
    unknown = tf.placeholder(tf.float16)
    with pytest.raises(tf.errors.InvalidArgumentError, match="exceeds `dtype` precision"):
        sess.run(du.embed_check_categorical_event_shape(unknown), {unknown: np.ones(2**11 + 1)})


@pytest.mark.parametrize("shift", range(-4, 5))
def test_dimensions_move_round(sess, shift):
    x = np.arange(6).reshape(3, 2, 1)
    expected = np.transpose(x, np.roll(np.arange(3), shift))
    np.testing.assert_array_equal(sess.run(du.rotate_transpose(x, shift)), expected)
    unknown, turn = tf.placeholder(tf.int32, None), tf.placeholder(tf.int32)
    result = sess.run(du.rotate_transpose(unknown, turn), {unknown: x, turn: shift})
    np.testing.assert_array_equal(result, expected)


def test_one_of_two_vectors_is_picked(sess):
    yes, no = np.arange(10, 12), np.arange(15, 18)
    condition = tf.placeholder(tf.bool, [])
    picked = du.pick_vector(condition, yes, no)
    assert sess.run(picked, {condition: True}).tolist() == yes.tolist()
    assert sess.run(picked, {condition: False}).tolist() == no.tolist()
    assert du.pick_vector(tf.constant(False), yes, no) is no


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("side", [1, 2, 3, 4, 7])
def test_a_triangle_is_filled_and_emptied(sess, side, upper):
    x = np.random.RandomState(0).randn(2, side * (side + 1) // 2)
    filled = du.fill_triangular(x, upper)
    value = sess.run(filled)
    assert filled.shape == (2, side, side)
    assert np.count_nonzero(value) == x.size
    np.testing.assert_array_equal(value, np.triu(value) if upper else np.tril(value))
    np.testing.assert_array_equal(sess.run(du.fill_triangular_inverse(filled, upper)), x)


def test_a_triangle_of_six_is_a_spiral(sess):
    expected = [[4, 0, 0], [6, 5, 0], [3, 2, 1]]
    assert sess.run(du.fill_triangular([1.0, 2, 3, 4, 5, 6])).tolist() == expected
    with pytest.raises(ValueError, match="does not correspond to a triangular matrix"):
        du.fill_triangular([1.0, 2])


def test_three_diagonals_make_a_matrix(sess):
    result = sess.run(du.tridiag([1.0, 2], [3.0, 4, 5], [6.0, 7]))
    assert result.tolist() == [[3, 6, 0], [1, 4, 7], [0, 2, 5]]


def test_logarithms_are_summed_with_weights(sess):
    x, w = tf.zeros([2, 3]), tf.constant([[-1.0, 1, 1], [1, 1, 1]])
    np.testing.assert_allclose(sess.run(du.reduce_weighted_logsumexp(x, w)), np.log(4), rtol=1e-6)
    total, sign = sess.run(du.reduce_weighted_logsumexp(x, w, axis=1, keep_dims=True, return_sign=True))
    np.testing.assert_allclose(total, np.log([[1], [3]]), rtol=1e-6)
    assert sign.tolist() == [[1], [1]]


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_the_softplus_is_undone(sess, kind):
    x = np.linspace(-12, 40, 200).astype(kind)
    back = sess.run(du.softplus_inverse(tf.nn.softplus(x)))
    np.testing.assert_allclose(back, x, rtol={np.float16: 0.07}.get(kind, 0.003), atol=1e-2)


def test_a_new_seed_is_made_of_one(sess):
    assert du.gen_new_seed(None, "salt") is None
    assert du.gen_new_seed(0, "salt") != du.gen_new_seed(0, "pepper")


def test_a_function_learns_its_arguments():
    def call(a, b, *rest, **more):
        local = 3
        assert local
        return du.parent_frame_arguments()

    assert call(1, 2, 5, unicorn=None) == {"a": 1, "b": 2, "unicorn": None}


def test_a_note_is_added_to_a_text():
    @du.AppendDocstring("More.", {"key": "What it is."})
    def call():
        """Less."""

    assert call.__doc__.startswith("Less.\nMore.") and "*  `key`: What it is." in call.__doc__
    with pytest.raises(ValueError, match="contains whitespace"):
        du.AppendDocstring("", {"a b": "x"})
