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
    result, _ = session.run([y, updates], {x: data})
    np.testing.assert_allclose(result, normal(data, mean, variance), rtol=1e-3, atol=1e-4)
    moving = session.run(["batch_normalization/moving_mean:0", "batch_normalization/moving_variance:0"])
    np.testing.assert_allclose(moving[0], 0.2 * mean, rtol=1e-5)
    np.testing.assert_allclose(moving[1], 0.8 + 0.2 * kept, rtol=1e-4)
    if late:
        result, _ = session.run([y, updates], {x: data, training: False})
        np.testing.assert_allclose(result, normal(data, *moving), rtol=1e-3, atol=1e-4)
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


def test_what_does_not_go_together_is_refused():
    for options, complaint in [
        (dict(axis=7), "Invalid axis"),
        (dict(renorm=True, fused=True), "both fused=True and renorm"),
        (dict(virtual_batch_size=2, adjustment=len), "adjustment cannot be specified"),
        (dict(virtual_batch_size=-1), "must be a positive integer"),
        (dict(renorm=True, renorm_clipping={"low": 1}), "contains keys not in"),
    ]:
        with pytest.raises(ValueError, match=complaint):
            tf.layers.batch_normalization(tf.constant(DATA), **options)


@pytest.mark.parametrize("adjusted", [False, True])
@pytest.mark.parametrize("limits", [{}, {"rmax": 1.1, "rmin": 0.9, "dmax": 0.1}])
def test_renormalization_corrects_by_what_was_seen_before(session, limits, adjusted):
    x, training = tf.placeholder(tf.float32, [4, 3]), tf.placeholder(tf.bool, [])
    more = (lambda shape: (tf.constant([0.5, 1, 2]), tf.constant([0.1, 0, 0]))) if adjusted else None
    layer = tf.layers.BatchNormalization(
        gamma_initializer=tf.constant_initializer(2.0),
        renorm=True,
        renorm_clipping=limits,
        renorm_momentum=0.8,
        adjustment=more,
    )
    y = layer(x, training=training)
    assert [v.op.name.split("/")[1] for v in layer.variables[4:]] == [
        "moving_stddev",
        "renorm_mean",
        "renorm_stddev",
    ]
    session.run(tf.global_variables_initializer())
    seen, seen_stddev, kept, kept_stddev = 0.0, 1.0, 0.0, 1.0
    random = np.random.RandomState(3)
    for _ in range(3):
        batch = random.uniform(size=[4, 3])
        mean, stddev = batch.mean(0), np.sqrt(batch.var(0) + 1e-3)
        factor, shift = stddev / seen_stddev, (mean - seen) / seen_stddev
        if limits:
            factor, shift = factor.clip(0.9, 1.1), shift.clip(-0.1, 0.1)
        wanted = (batch - mean) / stddev * factor + shift
        if adjusted:
            wanted = wanted * [0.5, 1, 2] + [0.1, 0, 0]
        got = session.run([y, *layer.updates], {x: batch, training: True})[0]
        np.testing.assert_allclose(got, wanted * 2, rtol=1e-4, atol=1e-5)
        seen, seen_stddev = seen + (mean - seen) * 0.2, seen_stddev + (stddev - seen_stddev) * 0.2
        kept, kept_stddev = kept + (mean - kept) * 0.01, kept_stddev + (stddev - kept_stddev) * 0.01
        got = session.run([y, *layer.updates], {x: batch, training: False})[0]
        np.testing.assert_allclose(got, (batch - kept) / kept_stddev * 2, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("axis", [-1, 1, [1, 3]])
def test_virtual_batches_are_normalized_each_on_its_own(session, axis):
    x, training = tf.placeholder(tf.float32, [None, *DATA.shape[1:]]), tf.placeholder(tf.bool, [])
    layer = tf.layers.BatchNormalization(axis, virtual_batch_size=2, momentum=0.8)
    y = layer(x, training=training)
    session.run(tf.global_variables_initializer())
    batch = np.concatenate([DATA, 2 * DATA])
    groups = batch.reshape(2, -1, *DATA.shape[1:])
    along = tuple(a for a in (0, 2, 3, 4) if a - 1 not in np.atleast_1d(axis) % 4)
    mean, variance = groups.mean(along, keepdims=True), groups.var(along, keepdims=True)
    wanted = normal(groups, mean, variance).reshape(batch.shape)
    got = session.run([y, *layer.updates], {x: batch, training: True})[0]
    np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-4)
    mean, variance = 0.2 * mean.mean(1, keepdims=True), 0.8 + 0.2 * variance.mean(1, keepdims=True)
    got = session.run(y, {x: batch, training: False})
    np.testing.assert_allclose(got, normal(groups, mean, variance).reshape(batch.shape), rtol=1e-3, atol=1e-4)


def test_the_axes_are_a_list_once_it_is_built():
    layer = tf.layers.BatchNormalization(axis=-1)
    layer(tf.zeros([2, 3, 4]))
    assert layer.axis == [2]
