"""Batch normalization with weights of examples, and with a moving mean that is corrected at the beginning."""

import numpy as np
import pytest

import tensorfleet as tf

layers = tf.contrib.layers


def test_examples_count_by_their_weights(session):
    rows = np.array([[1.0, 2.0], [3.0, 6.0], [100.0, 100.0]], np.float32)
    weighed = layers.batch_norm(
        rows, batch_weights=[1.0, 1.0, 0.0], epsilon=0.0, updates_collections=None, decay=0.5
    )
    session.run(tf.global_variables_initializer())
    np.testing.assert_allclose(session.run(weighed)[:2], [[-1.0, -1.0], [1.0, 1.0]], rtol=1e-5)
    mean, variance = session.run(["BatchNorm/moving_mean:0", "BatchNorm/moving_variance:0"])
    np.testing.assert_allclose(mean, [1.0, 2.0])
    np.testing.assert_allclose(variance, [1.0, 2.5])


def test_the_moving_mean_is_corrected_for_its_beginning_at_zero(session):
    rows = np.array([[1.0, 2.0], [3.0, 6.0]], np.float32)
    layers.batch_norm(rows, zero_debias_moving_mean=True, decay=0.9)
    session.run(tf.global_variables_initializer())
    session.run(tf.get_collection(tf.GraphKeys.UPDATE_OPS))
    np.testing.assert_allclose(session.run("BatchNorm/moving_mean:0"), [2.0, 4.0], rtol=1e-5)
    np.testing.assert_allclose(session.run("BatchNorm/moving_variance:0"), [1.1, 1.7], rtol=1e-5)


def test_channels_may_come_first_and_outside_training_the_averages_serve(session):
    images = np.random.RandomState(0).rand(4, 3, 2, 2).astype(np.float32)
    training = tf.placeholder(tf.bool, [])
    out = layers.batch_norm(
        images,
        batch_weights=np.ones(4),
        data_format="NCHW",
        is_training=training,
        scale=True,
        epsilon=0.0,
        fused=False,
    )
    session.run(tf.global_variables_initializer())
    np.testing.assert_allclose(session.run(out, {training: False}), images, rtol=1e-6)
    inside = session.run(out, {training: True})
    np.testing.assert_allclose(inside.mean((0, 2, 3)), np.zeros(3), atol=1e-5)
    assert [v.op.name for v in tf.model_variables()][:2] == ["BatchNorm/beta", "BatchNorm/gamma"]


def test_what_cannot_be_weighed_is_refused():
    with pytest.raises(ValueError, match="Weighted mean and variance"):
        layers.batch_norm(np.zeros((2, 2), np.float32), batch_weights=[1.0, 1.0], fused=True)
    with pytest.raises(ValueError, match="renorm is not supported"):
        layers.batch_norm(np.zeros((2, 2), np.float32), batch_weights=[1.0, 1.0], renorm=True)
    with pytest.raises(ValueError, match="undefined channels dimension"):
        layers.batch_norm(tf.placeholder(tf.float32, [5, None]), batch_weights=[1.0] * 5)
