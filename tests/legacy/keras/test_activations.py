"""Parts of layers as configurations, and back."""

import numpy as np
import pytest

import tensorfleet as tf


def test_parts_come_back_from_their_configurations():
    keras = tf.keras
    for module, part in (
        (keras.regularizers, keras.regularizers.l1_l2(0.1, 0.2)),
        (keras.constraints, keras.constraints.MaxNorm(3)),
        (keras.initializers, keras.initializers.Constant(2.0)),
    ):
        written = module.serialize(part)
        again = module.deserialize(written)
        assert written["class_name"] == type(part).__name__
        assert type(again) is type(part)
        assert again.get_config() == part.get_config()


def test_activations_are_their_names():
    assert tf.keras.activations.serialize(tf.keras.activations.relu) == "relu"
    result = tf.keras.activations.deserialize("double", custom_objects={"double": lambda x: 2 * x})
    with tf.Session() as sess:
        np.testing.assert_array_equal(sess.run(result(tf.constant([1.0]))), [2.0])


def test_ones_own_parts_are_known_only_while_asked_for():
    class Halving(tf.keras.regularizers.Regularizer):
        def __call__(self, x):
            return 0.5 * tf.reduce_sum(x)

        def get_config(self):
            return {}

    written = tf.keras.regularizers.serialize(Halving())
    again = tf.keras.regularizers.deserialize(written, custom_objects={"Halving": Halving})
    assert isinstance(again, Halving)
    with pytest.raises(ValueError, match="Halving"):
        tf.keras.regularizers.deserialize(written)
