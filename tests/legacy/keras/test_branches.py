"""Layers and models of one's own whose Python depends on tensors."""

import numpy as np

import tensorfleet as tf


class Positive(tf.keras.layers.Layer):
    """Doubles what is positive in sum, and counts in training."""

    def build(self, input_shape):
        self.scale = self.add_weight("scale", shape=[], initializer="ones")
        super().build(input_shape)

    def call(self, inputs, training=None):
        if tf.reduce_sum(inputs) > 0:
            outputs = inputs * 2.0 * self.scale
        else:
            outputs = inputs * self.scale
        if tf.keras.backend.learning_phase() if training is None else training:
            outputs = outputs + 100.0
        return outputs


def test_a_layer_branches_by_its_input_and_by_training():
    model = tf.keras.Sequential([Positive(input_shape=(2,))])
    np.testing.assert_array_equal(model.predict(np.array([[1.0, 2.0]])), [[2.0, 4.0]])
    np.testing.assert_array_equal(model.predict(np.array([[-1.0, -2.0]])), [[-1.0, -2.0]])
    model.compile("sgd", "mse")
    trained = model.train_on_batch(np.array([[1.0, 1.0]]), np.array([[102.0, 102.0]]))
    assert trained == 0.0


def test_a_layer_of_version_1_branches_too():
    class Steps(tf.layers.Layer):
        def call(self, inputs):
            total = tf.zeros_like(inputs[0])
            for row in inputs:
                total += row
            return total

    x = tf.placeholder(tf.float32, [None, 2])
    y = Steps()(x)
    with tf.Session() as sess:
        np.testing.assert_array_equal(sess.run(y, {x: np.ones([5, 2])}), [5.0, 5.0])
