"""Fractional pooling, morphology, and losses scaled by the batch."""

import numpy as np
import pytest

import tensorfleet as tf

IMAGES = np.random.RandomState(0).rand(2, 10, 13, 3)


@pytest.mark.parametrize("pseudo_random", [False, True])
@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize("kind", ["max", "avg"])
def test_windows_cover_the_image_in_two_sizes(session, kind, pseudo_random, overlapping):
    pool = getattr(tf.nn, f"fractional_{kind}_pool")
    x = tf.constant(IMAGES)
    options = dict(pseudo_random=pseudo_random, overlapping=overlapping, deterministic=True, seed=3)
    y, rows, columns = pool(x, [1.0, 1.44, 1.73, 1.0], **options)
    assert y.shape.as_list() == [2, 6, 7, 3]
    value, rows, columns, dx = session.run([y, rows, columns, tf.gradients(y, x)[0]])
    assert (rows[0], rows[-1], columns[0], columns[-1]) == (0, 10, 0, 13)
    assert set(np.diff(rows)) <= {1, 2} and set(np.diff(columns)) <= {1, 2}
    extra = int(overlapping)
    window = IMAGES[1, rows[2] : rows[3] + extra, columns[4] : columns[5] + extra, 0]
    assert value[1, 2, 4, 0] == pytest.approx(window.max() if kind == "max" else window.mean())
    assert dx.sum() == pytest.approx(value.size)


def test_gradients_of_windows_that_overlap_add_up(session):
    x = np.array([[0, 5, 5, 1]], np.int32).reshape(1, 1, 4, 1)
    rows, columns = np.array([0, 1]), np.array([0, 2, 4])
    dy = np.array([7, 4], np.int32).reshape(1, 1, 2, 1)
    most = np.array([5, 5], np.int32).reshape(1, 1, 2, 1)
    op = tf.raw_ops.FractionalMaxPoolGrad
    names = dict(row_pooling_sequence=rows, col_pooling_sequence=columns, overlapping=True)
    first = op(orig_input=x, orig_output=most, out_backprop=dy, **names)
    mean = tf.raw_ops.FractionalAvgPoolGrad(orig_input_tensor_shape=[1, 1, 4, 1], out_backprop=dy, **names)
    assert session.run(first).ravel().tolist() == [0, 7, 4, 0]
    # Of whole numbers the sums are cut, not what is added.
    assert session.run(mean).ravel().tolist() == [2, 2, 4, 2]


def test_seeds_decide_the_windows(session):
    def sequence(**options):
        return session.run(tf.nn.fractional_max_pool(IMAGES, [1.0, 1.5, 1.5, 1.0], **options)[1]).tolist()

    assert sequence(seed=1) == sequence(seed=1)
    with pytest.raises(ValueError, match="pooling_ratio cannot be smaller than 1, got: 0.5"):
        sequence_of = tf.nn.fractional_max_pool(IMAGES, [1.0, 0.5, 1.5, 1.0])
        del sequence_of


def test_erosion_is_dilation_of_the_negative(session):
    kernel = np.random.RandomState(1).rand(3, 3, 3)
    window = dict(strides=[1, 1, 1, 1], rates=[1, 1, 1, 1], padding="VALID")
    eroded = session.run(tf.nn.erosion2d(IMAGES, kernel, **window))
    part = IMAGES[0, 2:5, 3:6]
    np.testing.assert_allclose(eroded[0, 2, 3], (part - kernel[::-1, ::-1]).min((0, 1)))


def test_losses_are_averaged_over_the_global_batch(session):
    losses = tf.constant([1.0, 2.0, 3.0, 6.0])
    assert session.run(tf.nn.compute_average_loss(losses)) == 3.0
    assert session.run(tf.nn.compute_average_loss(losses, [1, 0, 0, 1], global_batch_size=14)) == 0.5
    assert session.run(tf.nn.scale_regularization_loss([1.0, 2.0])) == 3.0
    with pytest.raises(ValueError, match="global_batch_size must be scalar"):
        tf.nn.compute_average_loss(losses, global_batch_size=[4])
