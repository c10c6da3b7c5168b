"""Regularizers and initializers of `tf.contrib.layers`."""

import numpy as np
import pytest

import tensorfleet as tf
from tests.support.sessions import run

layers = tf.contrib.layers
WEIGHTS = np.array([[1.0, -2.0], [3.0, 0.0]], np.float32)


@pytest.mark.parametrize(
    "make, wanted",
    [
        (lambda: layers.l1_regularizer(0.5), 0.5 * 6),
        (lambda: layers.l2_regularizer(0.5), 0.5 * 14 / 2),
        (lambda: layers.l1_l2_regularizer(0.5, 0.1), 0.5 * 6 + 0.1 * 7),
        (lambda: layers.l1_l2_regularizer(0.0, 0.1), 0.1 * 7),
        (lambda: layers.sum_regularizer([layers.l1_regularizer(1.0), None]), 6),
    ],
)
def test_what_regularizers_give(make, wanted):
    np.testing.assert_allclose(run(make()(tf.constant(WEIGHTS))), wanted, rtol=1e-6)


def test_a_scale_of_zero_gives_nothing():
    assert layers.l2_regularizer(0.0)(tf.constant(WEIGHTS)) is None
    assert layers.sum_regularizer([None]) is None


def test_scales_that_make_no_sense():
    with pytest.raises(ValueError, match="scale cannot be an integer"):
        layers.l2_regularizer(1)
    with pytest.raises(ValueError, match="less than 0"):
        layers.l1_regularizer(-0.1)


def test_a_variable_keeps_its_loss_in_the_graph():
    tf.get_variable("w", [2, 2], regularizer=layers.l2_regularizer(0.1))
    (loss,) = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    assert loss.op.name == "w/Regularizer/l2_regularizer"


def test_applying_to_several_weights():
    total = layers.apply_regularization(
        layers.l2_regularizer(1.0), [tf.constant(WEIGHTS), tf.constant([2.0])]
    )
    assert tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES) == [total]
    assert run(total) == 9
    with pytest.raises(ValueError, match="No weights to regularize"):
        layers.apply_regularization(layers.l2_regularizer(1.0))


def test_xavier_stays_within_its_limit():
    result = run(layers.xavier_initializer(seed=1)([200, 100]))
    limit = np.sqrt(6 / 300)
    assert abs(result).max() <= limit
    assert abs(result).max() > 0.99 * limit


def test_variance_scaling_counts_inputs():
    result = run(layers.variance_scaling_initializer(seed=1)([3, 3, 50, 100]))
    assert result.std() == pytest.approx(np.sqrt(2 / 450), rel=0.03)


def test_initializers_are_for_floats():
    with pytest.raises(TypeError, match="non-floating"):
        layers.xavier_initializer(dtype=tf.int32)
    with pytest.raises(TypeError, match="Unknown mode"):
        layers.variance_scaling_initializer(mode="SIDEWAYS")


def test_parts_of_a_variable_are_in_the_collections():
    with tf.Graph().as_default():
        pieces = tf.fixed_size_partitioner(2)
        with tf.variable_scope("net", partitioner=pieces):
            tf.contrib.layers.fully_connected(tf.zeros([1, 4]), 6, variables_collections=["mine"])
        assert [v.op.name.rpartition("/")[2] for v in tf.get_collection("mine")] == ["part_0", "part_1"] * 2
        assert tf.get_collection("mine") == tf.model_variables() == tf.trainable_variables()
