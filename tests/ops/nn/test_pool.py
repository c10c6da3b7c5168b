"""Pooling ops and functions."""

import numpy as np
import pytest

import tensorfleet as tf

X = np.random.RandomState(0).permutation(2 * 4 * 6 * 3).reshape(2, 4, 6, 3).astype(np.float32)


def blocks(x):
    return x.reshape(2, 2, 2, 3, 2, 3)


def test_max_and_average_of_tiles(session):
    x = tf.constant(X)
    most = tf.nn.max_pool(x, 2, 2, "SAME")
    mean = tf.nn.avg_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    np.testing.assert_array_equal(session.run(most), blocks(X).max((2, 4)))
    np.testing.assert_allclose(session.run(mean), blocks(X).mean((2, 4)), rtol=1e-6)
    assert most.shape.as_list() == [2, 2, 3, 3]


def test_the_gradient_of_a_maximum_goes_to_it(session):
    x = tf.placeholder(tf.float32, [None, 4, 6, 3])
    (g,) = tf.gradients(tf.nn.max_pool(x, 2, 2, "SAME"), x)
    expected = (blocks(X) == blocks(X).max((2, 4), keepdims=True)).reshape(X.shape)
    np.testing.assert_array_equal(session.run(g, {x: X}), expected.astype(np.float32))
    assert g.op.type == "MaxPoolGrad"


def test_second_order_gradient_of_overlapping_maxima(session):
    x = tf.placeholder(tf.float64, [None, 4, 6, 3])
    y = tf.nn.max_pool2d(x, [2, 3], 1, "SAME")
    (g,) = tf.gradients(tf.square(y), x)
    loss = tf.reduce_sum(tf.sin(g))
    (gg,) = tf.gradients(loss, x)
    value = X.astype(np.float64) / 50
    got = session.run(gg, {x: value})
    for place in (0, 20, 100):
        both = []
        for step in (1e-5, -1e-5):
            moved = value.copy()
            moved.flat[place] += step
            both.append(session.run(loss, {x: moved}))
        assert got.flat[place] == pytest.approx((both[0] - both[1]) / 2e-5, abs=1e-4)


def test_where_the_maxima_are(session):
    y, index = tf.nn.max_pool_with_argmax(tf.constant(X), [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    most, where = session.run([y, index])
    assert where.dtype == np.int64
    for example in range(2):
        np.testing.assert_array_equal(X[example].ravel()[where[example]], most[example])
    whole = tf.nn.max_pool_with_argmax(
        tf.constant(X), 2, 2, "VALID", output_dtype=tf.int32, include_batch_in_index=True
    )
    np.testing.assert_array_equal(X.ravel()[session.run(whole[1])], most)


def test_average_does_not_count_padding(session):
    y = tf.nn.avg_pool(tf.ones([1, 3, 3, 1]), 2, 2, "SAME")
    np.testing.assert_array_equal(session.run(y), np.ones([1, 2, 2, 1]))


@pytest.mark.parametrize("kind", ["max", "avg"])
def test_pools_of_sequences_images_and_volumes(session, kind):
    function = getattr(tf.nn, f"{kind}_pool_v2")
    reduce = np.max if kind == "max" else np.mean
    sequence = X[:, :, 0]
    got = session.run(function(tf.constant(sequence), 2, 2, "VALID"))
    np.testing.assert_allclose(got, reduce(sequence.reshape(2, 2, 2, 3), axis=2), rtol=1e-6)
    volume = X[:, None]
    got = session.run(function(tf.constant(volume), [1, 2, 2], [1, 2, 2], "VALID"))
    np.testing.assert_allclose(got[:, 0], reduce(blocks(X), axis=(2, 4)), rtol=1e-6)


def test_max_pool_v2_op_takes_its_window_as_tensors(session):
    from tensorfleet.graph.apply import apply

    x = tf.constant(X)
    y = apply("MaxPoolV2", x, [1, 2, 2, 1], [1, 2, 2, 1], padding="VALID")
    (g,) = tf.gradients(y, x)
    np.testing.assert_array_equal(session.run(y), blocks(X).max((2, 4)))
    assert session.run(g).sum() == y.shape.num_elements()


def test_windows_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="Negative dimension size caused by subtracting 9 from 4"):
        tf.nn.max_pool(tf.constant(X), [1, 9, 9, 1], [1, 1, 1, 1], "VALID")
    with pytest.raises(ValueError, match="Shape must be rank 4 but is rank 3"):
        tf.nn.avg_pool(tf.constant(X[0]), 2, 2, "VALID")


def test_in_three_dimensions_all_of_equal_maxima_get_the_gradient(session):
    x = tf.ones([1, 2, 2, 2, 1])
    y = tf.nn.max_pool3d(x, [1, 2, 2, 2, 1], [1, 2, 2, 2, 1], "VALID")
    assert session.run(tf.gradients(y, x)[0]).ravel().tolist() == [1.0] * 8
