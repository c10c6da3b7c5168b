"""Batch normalization: statistics of the batch or of all seen, and their updates."""

import numpy as np
import pytest

import tensorfleet as tf

DATA = (np.random.RandomState(0).randn(6, 4, 4, 3) * 3 + 2).astype(np.float32)
OTHERS = {(6, 4, 4, 3): (0, 1, 2), (96, 3): (0,)}


def normal(data, mean, variance):
    return (data - mean) / np.sqrt(variance + 1e-3)


@pytest.mark.parametrize("shape", OTHERS, ids=["images", "vectors"])
@pytest.mark.parametrize("late", [False, True], ids=["python", "placeholder"])
@pytest.mark.parametrize("fused", [None, False])
def test_training_uses_and_keeps_the_statistics_of_the_batch(shape, late, fused, session):
    data, axes = DATA.reshape(shape), OTHERS[shape]
    x = tf.placeholder(tf.float32, [None, *shape[1:]])
    training = tf.placeholder_with_default(True, []) if late else True
    y = tf.layers.batch_normalization(x, training=training, momentum=0.8, fused=fused)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    mean, variance = data.mean(axes), data.var(axes)
    count = data.size // 3
    kept = variance * count / (count - 1) if fused is None and len(shape) == 4 else variance
    session.run(tf.global_variables_initializer())
    found, _ = session.run([y, updates], {x: data})
    np.testing.assert_allclose(found, normal(data, mean, variance), rtol=1e-3, atol=1e-4)
    moving = session.run(["batch_normalization/moving_mean:0", "batch_normalization/moving_variance:0"])
    np.testing.assert_allclose(moving[0], 0.2 * mean, rtol=1e-5)
    np.testing.assert_allclose(moving[1], 0.8 + 0.2 * kept, rtol=1e-4)
    if late:
        found, _ = session.run([y, updates], {x: data, training: False})
        np.testing.assert_allclose(found, normal(data, *moving), rtol=1e-3, atol=1e-4)
        again = session.run(["batch_normalization/moving_mean:0", "batch_normalization/moving_variance:0"])
        assert (again[0] == moving[0]).all() and (again[1] == moving[1]).all()


def test_out_of_training_nothing_is_updated():
    tf.layers.batch_normalization(tf.constant(DATA))
    assert tf.get_collection(tf.GraphKeys.UPDATE_OPS) == []
    assert [v.name for v in tf.trainable_variables()] == [
        "batch_normalization/gamma:0",
        "batch_normalization/beta:0",
    ]
    assert [v.name for v in tf.global_variables()][2:] == [
        "batch_normalization/moving_mean:0",
        "batch_normalization/moving_variance:0",
    ]


def test_a_frozen_layer_updates_nothing():
    tf.layers.batch_normalization(tf.constant(DATA), training=True, trainable=False)
    assert tf.get_collection(tf.GraphKeys.UPDATE_OPS) == [] and tf.trainable_variables() == []


def test_channels_may_be_any_axes(session):
    first = tf.layers.batch_normalization(tf.constant(DATA.transpose(0, 3, 1, 2)), axis=1, training=True)
    both = tf.layers.batch_normalization(tf.constant(DATA), axis=[1, 3], training=True)
    session.run(tf.global_variables_initializer())
    a, b = session.run([first, both])
    wanted = normal(DATA, DATA.mean((0, 1, 2)), DATA.var((0, 1, 2)))
    np.testing.assert_allclose(a.transpose(0, 2, 3, 1), wanted, rtol=1e-3, atol=1e-4)
    wanted = normal(DATA, DATA.mean((0, 2), keepdims=True), DATA.var((0, 2), keepdims=True))
    np.testing.assert_allclose(b, wanted, rtol=1e-3, atol=1e-4)


def test_scale_and_offset_may_be_left_out():
    tf.layers.batch_normalization(tf.constant(DATA), center=False, scale=False)
    assert tf.trainable_variables() == []


def test_what_is_not_supported_is_named():
    for option in (dict(renorm=True), dict(virtual_batch_size=2), dict(adjustment=lambda s: s)):
        with pytest.raises(ValueError, match=f"does not support `{next(iter(option))}`"):
            tf.layers.batch_normalization(tf.constant(DATA), **option)
    with pytest.raises(ValueError, match="Invalid axis"):
        tf.layers.batch_normalization(tf.constant(DATA), axis=7)
