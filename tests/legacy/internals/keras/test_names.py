"""What scripts import from the inside of Keras, in the places it had over the years."""

import importlib

import numpy as np
import pytest

import tensorfleet as tf

PLACES = {
    "layers.core": "layers.Lambda",
    "layers.recurrent": "layers.LSTMCell",
    "layers.convolutional_recurrent": "layers.ConvLSTM2D",
    "layers.normalization": "layers.BatchNormalization",
    "engine.base_layer": "layers.Layer",
    "engine.topology": "layers.InputSpec",
    "engine.training": "models.Model",
    "optimizer_v2.adam": "optimizers.Adam",
    "optimizer_v2.learning_rate_schedule": "optimizers.schedules.ExponentialDecay",
    "applications.resnet50": "applications.resnet50.decode_predictions",
    "utils.data_utils": "utils.OrderedEnqueuer",
    "utils.generic_utils": "utils.custom_object_scope",
    "utils.np_utils": "utils.to_categorical",
    "utils.vis_utils": "utils.plot_model",
    "backend_config": "backend.floatx",
    "backend": "backend.rnn",
    "wrappers.scikit_learn": "wrappers.scikit_learn.KerasClassifier",
}


@pytest.mark.parametrize("root", ["python.keras", "python.keras._impl.keras", "contrib.keras.python.keras"])
def test_each_place_has_what_is_public(root):
    for place, public in PLACES.items():
        module = importlib.import_module(f"tensorfleet.{root}.{place}")
        expected = tf.keras
        for part in public.split("."):
            expected = getattr(expected, part)
        assert getattr(module, public.rpartition(".")[2]) is expected, place


def test_layers_inside_are_keras_own():
    from tensorfleet.python.keras.layers import core

    assert core.Dense is tf.keras.layers.Dense is not tf.layers.Dense


def test_sizes_of_convolutions():
    from tensorfleet.python.keras.utils import conv_utils

    assert conv_utils.conv_output_length(10, 3, "valid", 2, dilation=2) == 3
    assert conv_utils.deconv_output_length(4, 5, "same", output_padding=1, stride=2) == 8
    assert conv_utils.deconv_output_length(4, 5, "valid", stride=2) == 11
    assert conv_utils.normalize_tuple(2, 3, "strides") == (2, 2, 2)
    assert conv_utils.normalize_data_format(None) == "channels_last"
    mask = conv_utils.conv_kernel_mask((4,), (3,), (1,), "valid")
    assert mask.astype(int).tolist() == [[1, 0], [1, 1], [1, 1], [0, 1]]


def test_shapes_are_converted_for_a_method():
    from tensorfleet.python.keras.utils import tf_utils

    class Layer:
        @tf_utils.shape_type_conversion
        def compute_output_shape(self, input_shape):
            assert isinstance(input_shape, tuple)
            return (input_shape[0], 7)

    result = Layer().compute_output_shape(tf.TensorShape([None, 3]))
    assert isinstance(result, tf.TensorShape) and result.as_list() == [None, 7]


def test_losses_are_weighed_and_reduced():
    from tensorfleet.python.keras.utils import losses_utils

    weighed = losses_utils.compute_weighted_loss([[1.0, 2.0], [3.0, 4.0]], [1.0, 0.0])
    with tf.Session() as session:
        assert session.run(weighed) == 0.75
    with pytest.raises(ValueError, match="Invalid Reduction Key"):
        losses_utils.ReductionV2.validate("all")


def test_functions_are_written_and_read():
    from tensorfleet.python.keras.utils import generic_utils

    more = 3
    again = generic_utils.func_load(generic_utils.func_dump(lambda x, y=2: x * y + more))
    assert again(5) == 13
    assert generic_utils.has_arg(again, "y") and not generic_utils.has_arg(again, "z")
    assert generic_utils.to_list(1) == [1] and generic_utils.make_batches(5, 2) == [(0, 2), (2, 4), (4, 5)]


def test_data_are_put_in_the_order_of_names():
    from tensorfleet.python.keras.engine import training_utils

    result = training_utils.standardize_input_data({"b": np.ones(3), "a": np.zeros([3, 2])}, ["a", "b"])
    assert [m.shape for m in result] == [(3, 2), (3, 1)]
    with pytest.raises(ValueError, match="expected a to have shape"):
        training_utils.standardize_input_data(np.zeros([3, 2]), ["a"], [(None, 5)], exception_prefix="input")
