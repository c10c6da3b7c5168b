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
    from tensorfleet.cli.scripts.alias import resolve

    for module, name in (
        ("core", "Dense"),
        ("recurrent", "LSTM"),
        ("wrappers", "Bidirectional"),
        ("merge", "Add"),
    ):
        assert getattr(resolve(f"tensorflow.python.keras.layers.{module}"), name) is getattr(
            tf.keras.layers, name
        )


def test_what_depends_on_a_tensor_is_found():
    a = tf.constant(1.0)
    b = a + 1
    c = b * 2
    apart = tf.constant(3.0)
    result = utils.tf_utils.get_reachable_from_inputs(a)
    assert {a, b, c, c.op} <= result
    assert apart not in result
    assert c not in utils.tf_utils.get_reachable_from_inputs(a, targets=b)
    with pytest.raises(TypeError, match="Expected Operation, Variable, or Tensor"):
        utils.tf_utils.get_reachable_from_inputs([1])


def test_keras_own_package_finds_what_it_asks_for():
    like = tf.python.framework.ops._TensorLike
    assert isinstance(tf.constant(1), like)
    assert isinstance(tf.SparseTensor([[0]], [1], [1]), like)
    assert not isinstance(1, like)
    assert [d.value for d in tf.TensorShape([None, 2])._dims] == [None, 2]
    backend = tf.python.keras.backend
    assert backend.get_graph() is tf.get_default_graph()
    assert [backend.get_uid("x"), backend.get_uid("x")] == [1, 2]
    backend.reset_uids()
    assert backend.get_uid("x") == 1


def test_the_device_of_new_operations_can_be_asked_for():
    class Asking:
        device = None

        def _set_device(self, device):
            self.device = device

    asking = Asking()
    tf.get_default_graph()._apply_device_functions(asking)
    assert asking.device is None
    with tf.device("/gpu:1"):
        tf.get_default_graph()._apply_device_functions(asking)
    assert tf.DeviceSpec.from_string(str(asking.device)).device_type.upper() == "GPU"
