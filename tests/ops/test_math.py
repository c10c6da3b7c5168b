"""What arithmetic means, where TensorFlow's rules differ from numpy's or can surprise."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.kernels import trigonometry as angles
from tensorfleet.runtime.devices import load_jax


def run(*tensors, feed=None):
    with tf.Session() as session:
        values = session.run(list(tensors), feed)
    return values[0] if len(tensors) == 1 else values


def fed(value, dtype=None):
    """A tensor with this value that nothing can fold while the graph is built."""
    value = np.asarray(value, dtype)
    return tf.placeholder_with_default(value, [None] * value.ndim)


# -- division ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "result"),
    [(tf.int8, tf.float32), (tf.uint16, tf.float32), (tf.int32, tf.float64), (tf.int64, tf.float64)],
)
def test_true_division_of_integers_gives_a_float_wide_enough(dtype, result):
    quotient = tf.constant([7, 1], dtype) / tf.constant([2, 4], dtype)
    assert quotient.dtype == result
    np.testing.assert_array_equal(run(quotient), [3.5, 0.25])


def test_floor_division_and_remainder_follow_the_sign_of_the_divisor():
    x, y = fed([7, -7, 7, -7], np.int32), tf.constant([3, 3, -3, -3])
    quotient, rest = run(x // y, x % y)
    np.testing.assert_array_equal(quotient, [2, -3, -3, 2])
    np.testing.assert_array_equal(rest, [1, 2, -2, -1])


def test_truncating_division_and_remainder_follow_c():
    x, y = fed([7, -7, 7, -7], np.int32), tf.constant([3, 3, -3, -3])
    quotient, rest = run(tf.truncatediv(x, y), tf.truncatemod(x, y))
    np.testing.assert_array_equal(quotient, [2, -2, -2, 2])
    np.testing.assert_array_equal(rest, [1, -1, 1, -1])


def test_div_has_the_semantics_of_python_two():
    assert run(tf.div(tf.constant(-7), 2)) == -4
    assert run(tf.div(tf.constant(-7.0), 2.0)) == -3.5
    with pytest.raises(
        ValueError, match="Tensor conversion requested dtype int32 for Tensor with dtype float32"
    ):
        tf.div(tf.constant(7), tf.constant(2.0))


@pytest.mark.parametrize("f", [lambda x, y: x // y, lambda x, y: x % y, tf.truncatediv, tf.truncatemod])
def test_integer_division_by_zero_is_an_error(f):
    with pytest.raises(tf.errors.InvalidArgumentError, match="Integer division by zero"):
        run(f(fed([1, 2], np.int32), fed([1, 0], np.int32)))


def test_float_division_by_zero_is_silent():
    np.testing.assert_array_equal(run(fed([1.0, -1.0, 0.0], np.float32) / 0.0), [np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("f", [tf.sqrt, tf.rsqrt, tf.reciprocal])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
def test_what_nothing_depends_on_has_no_gradient_even_at_a_pole(f, dtype):
    x = fed([0.0, 4.0, 0.0], dtype)
    chosen = tf.where([False, True, False], f(x), tf.zeros_like(x))
    slope = tf.gradients(chosen, x, tf.ones_like(x))[0]
    with tf.Session() as session:
        values = [session.run(slope) for _ in range(30)]  # in numpy, then compiled
    np.testing.assert_array_equal(np.stack(values)[:, [0, 2]], 0)
    assert (np.stack(values)[:, 1] != 0).all()


def test_no_nan_forms_give_zero():
    x = fed([1.0, np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(run(tf.div_no_nan(x, 0.0)), [0, 0, 0])
    np.testing.assert_array_equal(run(tf.math.multiply_no_nan(x, 0.0)), [0, 0, 0])
    np.testing.assert_array_equal(run(tf.math.xlogy(0.0, x)), [0, 0, 0])
    np.testing.assert_array_equal(run(tf.math.xdivy(0.0, x - x)), [0, 0, 0])


def test_integers_have_no_negative_powers():
    with pytest.raises(tf.errors.InvalidArgumentError, match="Integers to negative integer powers"):
        run(fed([2, 3], np.int32) ** fed([1, -1], np.int32))


# -- rounding, extremes, casts -----------------------------------------------------------------------


def test_round_takes_halves_to_the_even_neighbour():
    np.testing.assert_array_equal(run(tf.round([0.5, 1.5, 2.5, -0.5, -1.5])), [0, 2, 2, 0, -2])


def test_round_of_integers_adds_no_operation(graph):
    x = tf.constant([1, 2])
    assert tf.round(x) is x


def test_maximum_and_minimum_pass_nan_on():
    x, y = fed([np.nan, 1.0], np.float32), fed([1.0, np.nan], np.float32)
    assert np.isnan(run(tf.maximum(x, y))).all()
    assert np.isnan(run(tf.minimum(x, y))).all()


def test_cast_drops_fractions_and_high_bits():
    x = fed([-1.5, 300.0, 2.9], np.float32)
    np.testing.assert_array_equal(run(tf.cast(x, tf.int32)), [-1, 300, 2])
    np.testing.assert_array_equal(run(tf.cast(x, tf.uint8)), [255, 44, 2])
    np.testing.assert_array_equal(run(tf.cast(x, tf.bool)), [True, True, True])


def test_cast_to_the_same_type_is_the_same_tensor():
    x = tf.constant(1.0)
    assert tf.cast(x, tf.float32) is x


def test_cast_of_strings_is_not_implemented():
    with pytest.raises(tf.errors.UnimplementedError, match="Cast string to float is not supported"):
        run(tf.cast(tf.constant(["1"]), tf.float32))


def test_saturate_cast_clips():
    x = fed([-1e10, -1.0, 300.0, 1e10], np.float32)
    np.testing.assert_array_equal(run(tf.saturate_cast(x, tf.uint8)), [0, 0, 255, 255])
    low, *_, high = run(tf.saturate_cast(x, tf.int32))
    assert (low, high) == (-(2**31), 2**31 - 128)  # the largest float32 that an int32 can hold


def test_shifts_stay_within_the_width():
    one = fed([1, 1], np.int32)
    np.testing.assert_array_equal(run(tf.bitwise.left_shift(one, [33, -1])), [-(2**31), 1])


# -- choosing and adding -----------------------------------------------------------------------------


def test_where_with_a_vector_condition_chooses_rows():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(run(tf.where([True, False], x, -x)), [x[0], -x[1]])


def test_where_alone_gives_the_places():
    places = tf.where(fed([[True, False], [False, True]]))
    assert places.shape.as_list() == [None, 2]
    np.testing.assert_array_equal(run(places), [[0, 0], [1, 1]])


def test_where_needs_both_or_none():
    with pytest.raises(ValueError, match="both be non-None"):
        tf.where([True], [1.0])


def test_equal_compares_strings():
    np.testing.assert_array_equal(run(tf.equal(["a", "b"], "a")), [True, False])


def test_shapes_that_do_not_broadcast_are_named_at_run_time():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Incompatible shapes: \[2,3\] vs\. \[2\]"):
        run(fed(np.ones((2, 3), np.float32)) + fed(np.ones(2, np.float32)))


def test_add_n_takes_slices_and_refuses_nothing():
    slices = tf.IndexedSlices(tf.constant([[1.0, 2.0]]), tf.constant([1]), tf.constant([2, 2]))
    total = tf.add_n([slices, tf.constant([[1.0, 1.0], [1.0, 1.0]])])
    np.testing.assert_array_equal(run(total), [[1, 1], [2, 3]])
    with pytest.raises(ValueError, match="at least one"):
        tf.add_n([])


def test_scalar_mul_keeps_slices_slices():
    scaled = tf.scalar_mul(2, tf.IndexedSlices(tf.constant([1.0]), tf.constant([0])))
    assert isinstance(scaled, tf.IndexedSlices)
    np.testing.assert_array_equal(run(scaled.values), [2])


# -- clipping ----------------------------------------------------------------------------------------


def test_clip_by_norm_leaves_short_vectors_and_zero_alone():
    np.testing.assert_allclose(run(tf.clip_by_norm([3.0, 4.0], 10.0)), [3, 4])
    np.testing.assert_allclose(run(tf.clip_by_norm([3.0, 4.0], 1.0)), [0.6, 0.8], rtol=1e-6)
    x = tf.constant([0.0, 0.0])
    np.testing.assert_array_equal(run(tf.gradients(tf.clip_by_norm(x, 1.0), x)[0]), [1, 1])


def test_clip_by_global_norm_scales_all_and_keeps_none():
    (a, none, b), norm = tf.clip_by_global_norm([tf.constant([3.0]), None, tf.constant([4.0])], 1.0)
    assert none is None
    first, second, whole = run(a, b, norm)
    np.testing.assert_allclose([first[0], second[0], whole], [0.6, 0.8, 5.0], rtol=1e-6)


def test_the_global_norm_of_nothing_is_zero():
    (none,), norm = tf.clip_by_global_norm([None], 1.0)
    assert none is None
    assert run(norm) == run(tf.global_norm([])) == 0


def test_clip_by_global_norm_shows_a_norm_that_is_not_finite():
    (clipped,), _ = tf.clip_by_global_norm([fed([np.inf, 1.0], np.float32)], 1.0)
    assert np.isnan(run(clipped)).all()


# -- gradients under broadcasting --------------------------------------------------------------------


@pytest.mark.parametrize("shape", [[2, 3], [None, 3], None], ids=["known", "partly", "unknown"])
def test_gradients_are_summed_over_what_was_repeated(shape):
    x, y = tf.placeholder(tf.float32, shape), tf.placeholder(tf.float32, None if shape is None else [3])
    gx, gy = tf.gradients(x * y, [x, y])
    values = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([1, 2, 3], np.float32)
    got = run(gx, gy, feed={x: values[0], y: values[1]})
    np.testing.assert_array_equal(got[0], [[1, 2, 3], [1, 2, 3]])
    np.testing.assert_array_equal(got[1], [3, 5, 7])


def test_no_sum_is_made_where_the_shapes_need_none(graph):
    x, y = tf.placeholder(tf.float32, [2, 3]), tf.placeholder(tf.float32, [2, 3])
    tf.gradients(x * y, [x, y])
    assert not [o for o in graph.get_operations() if o.type in ("Sum", "BroadcastGradientArgs")]


@pytest.mark.parametrize("function", ["sin", "cos"])
@pytest.mark.parametrize("largest", [1.0, 900.0, 1e7])
def test_sine_and_cosine_of_float32_in_xla(function, largest):
    x = np.linspace(-largest, largest, 4001, dtype=np.float32)
    jax, jnp = load_jax()
    result = jax.jit(lambda x: getattr(angles, function)(jnp, x))(x)
    np.testing.assert_allclose(result, getattr(np, function)(x.astype(np.float64)), rtol=0, atol=1.5e-7)


def test_comparisons_are_packed_into_bits():
    pack = tf.python.ops.gen_math_ops.compare_and_bitpack
    x = tf.placeholder(tf.float32)
    with tf.Session() as sess:
        packed = pack(x, 5.0)
        assert sess.run(packed, {x: [[3, 9, 1, 7, 5, 6, 4, 8]]}).tolist() == [[0b01010101]]
        with pytest.raises(tf.errors.InvalidArgumentError, match="divisible by 8"):
            sess.run(packed, {x: [1, 2]})
    with pytest.raises(ValueError, match="evenly divisible by 8 but is 3"):
        pack([1.0, 2.0, 3.0], 5.0)
    assert pack(tf.ones([2, 16]), 0.0).shape == [2, 2]
