"""Policies of types, and optimizers of a scaled loss."""

import numpy as np
import pytest

import tensorfleet as tf

precision = tf.keras.mixed_precision.experimental


def test_policies():
    mixed = precision.Policy("mixed_float16")
    assert (mixed.compute_dtype, mixed.variable_dtype, mixed.should_cast_variables) == (
        "float16",
        "float32",
        True,
    )
    assert isinstance(mixed.loss_scale, tf.train.experimental.DynamicLossScale)
    assert (
        precision.Policy("float64").compute_dtype == "float64" and not precision.Policy("float64").loss_scale
    )
    infer = precision.Policy("infer_float32_vars")
    assert (infer.name, infer.compute_dtype, infer.variable_dtype) == (
        "infer_with_float32_vars",
        None,
        "float32",
    )
    with pytest.raises(TypeError, match="must be a string, not a DType"):
        precision.Policy(tf.float16)
    with pytest.raises(
        ValueError, match="Cannot convert value big_with_float32_vars to a mixed precision Policy"
    ):
        precision.Policy("big_with_float32_vars")


def test_the_policy_of_all_layers():
    assert precision.global_policy().name == "infer"
    with pytest.raises(ValueError, match="can only be set to a non-infer policy in TensorFlow 2"):
        precision.set_policy("mixed_float16")
    try:
        precision.set_policy("infer_with_float32_vars")
        assert precision.global_policy().variable_dtype == "float32"
    finally:
        precision.set_policy(None)


def test_a_step_without_finite_gradients_changes_nothing_but_the_scale():
    x, w = tf.placeholder(tf.float32, []), tf.Variable(2.0, use_resource=True)
    scale = tf.train.experimental.DynamicLossScale(initial_loss_scale=8.0, increment_period=100)
    optimizer = precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.5), scale)
    step = optimizer.minimize(w * x, [w])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(step, {x: 1.0})
        assert sess.run(w) == 1.5
        sess.run(step, {x: np.inf})
        assert sess.run(w) == 1.5 and sess.run(scale()) == 4.0
        sess.run(step, {x: 1.0})
        assert sess.run(w) == 1.0


def test_losses_and_gradients_are_scaled_by_hand():
    optimizer = precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.5), 4.0)
    scaled = optimizer.get_scaled_loss(tf.constant(3.0))
    grads = optimizer.get_unscaled_gradients([tf.constant(8.0), None])
    assert grads[1] is None
    with tf.Session() as sess:
        assert sess.run([scaled, grads[0]]) == [12.0, 2.0]
    with pytest.raises(ValueError, match="does not support wrapping optimizers with a clipnorm"):
        precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.5, clipnorm=1.0), 4.0)
    with pytest.raises(ValueError, match="must be an instance of OptimizerV2"):
        precision.LossScaleOptimizer(tf.train.AdamOptimizer(), 4.0)


def test_a_model_is_trained_by_one():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,))])
    model.compile(precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.1), 128.0), "mse")
    x = np.random.RandomState(0).rand(32, 2).astype(np.float32)
    result = model.fit(x, x.sum(1), epochs=20, verbose=0).history["loss"]
    assert result[-1] < result[0] / 2
