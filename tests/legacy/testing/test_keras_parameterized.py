"""What TensorFlow's tests of Keras import: kinds of models, and a test that any layer passes."""

import unittest

import numpy as np
import pytest
from absl.testing import parameterized
from tensorfleet.python.keras import keras_parameterized, testing_utils

import tensorfleet as tf

layers = tf.keras.layers


@pytest.mark.parametrize(
    ("kind", "options", "shape"),
    [
        (layers.Dense, {"units": 3}, (3, 2)),
        (layers.ConvLSTM2D, {"filters": 2, "kernel_size": 2, "padding": "same"}, (2, 3, 4, 4, 1)),
        (layers.GRU, {"units": 2, "return_sequences": True}, (2, 3, 4)),
        (
            layers.Conv2DTranspose,
            {"filters": 2, "kernel_size": 3, "strides": 2, "output_padding": 1},
            (2, 4, 4, 1),
        ),
        (layers.Lambda, {"function": lambda x: x + 1}, (3, 2)),
    ],
)
def test_a_layer_passes(kind, options, shape):
    with tf.Graph().as_default():
        assert len(testing_utils.layer_test(kind, kwargs=options, input_shape=shape)) == shape[0]


class Wrong(layers.Layer):
    """A layer that says another shape than it gives."""

    def call(self, inputs):
        return inputs

    def compute_output_shape(self, input_shape):
        return tf.TensorShape([input_shape[0], 7])


def test_a_layer_that_says_a_wrong_shape_does_not_pass():
    with tf.Graph().as_default(), pytest.raises(AssertionError, match="Wrong gives the shape"):
        testing_utils.layer_test(Wrong, input_shape=(3, 2))


def test_a_test_runs_for_each_kind_of_model_and_in_each_of_its_cases():
    seen = []

    class Case(keras_parameterized.TestCase):
        @keras_parameterized.run_with_all_model_types(exclude_models="subclass")
        @keras_parameterized.run_all_keras_modes
        @parameterized.named_parameters(("_one", 1), ("_two", 2))
        def test_it(self, classes):
            model = testing_utils.get_small_mlp(3, classes, input_dim=4)
            model.compile("sgd", "mse", run_eagerly=testing_utils.should_run_eagerly())
            model.fit(np.ones([4, 4]), np.ones([4, classes]), verbose=0)
            seen.append((testing_utils.get_model_type(), model.output_shape[1]))

    result = unittest.TestResult()
    names = [n for n in unittest.defaultTestLoader.getTestCaseNames(Case) if n != "test_session"]
    unittest.TestSuite(Case(name) for name in names).run(result)
    assert names == ["test_it_one", "test_it_two"] and not result.errors + result.failures
    assert seen == [(kind, size) for size in (1, 2) for kind in ("functional", "sequential")]
    with pytest.raises(ValueError, match="outside of a model type scope"):
        testing_utils.get_model_type()
