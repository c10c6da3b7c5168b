"""What libraries of layers take from the inside of Keras."""

import pytest

import tensorfleet as tf

utils = tf.python.keras.utils


def test_sizes_of_kernels_are_given_once_or_for_each_dimension():
    conv = utils.conv_utils
    assert conv.normalize_tuple(3, 2, "kernel_size") == (3, 3)
    assert conv.normalize_tuple([1, 2], 2, "kernel_size") == (1, 2)
    for wrong in ("a", [1], 2.5, ["a", "b"]):
        with pytest.raises(ValueError, match="tuple of 2 integers"):
            conv.normalize_tuple(wrong, 2, "kernel_size")
    assert conv.normalize_data_format(None) == "channels_last"
    assert conv.normalize_padding("SAME") == "same"
    with pytest.raises(ValueError, match="data_format"):
        conv.normalize_data_format("NHWC")
    with pytest.raises(ValueError, match="padding"):
        conv.normalize_padding("full")


def test_functions_are_stored_with_their_defaults_and_what_they_enclose():
    factor = 3
    dumped = utils.generic_utils.func_dump(lambda x, more=1: factor * x + more)
    assert utils.generic_utils.func_load(dumped)(2) == 7
    assert utils.generic_utils.func_load(*dumped)(2, more=0) == 6


def test_names_of_classes_become_names_of_layers():
    assert [utils.generic_utils.to_snake_case(n) for n in ("Conv2DTranspose", "_Own")] == [
        "conv2d_transpose",
        "private__own",
    ]


def test_a_class_that_converts_to_tensors_can_count_as_a_tensor():
    class Wrapped:
        pass

    known = utils.tf_utils.is_symbolic_tensor
    assert known(tf.constant(1))
    assert known(tf.Variable(1.0))
    assert not known(Wrapped())
    utils.tf_utils.register_symbolic_tensor_type(Wrapped)
    assert known(Wrapped())


def test_layers_are_found_in_the_modules_that_define_them():
    from tensorfleet.launch.alias import resolve

    for module, name in (
        ("core", "Dense"),
        ("recurrent", "LSTM"),
        ("wrappers", "Bidirectional"),
        ("merge", "Add"),
    ):
        assert getattr(resolve(f"tensorflow.python.keras.layers.{module}"), name) is getattr(
            tf.keras.layers, name
        )
