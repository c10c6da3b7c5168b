"""Small helpers that libraries import from inside TensorFlow."""

import tensorfleet as tf


def test_the_public_names_of_a_module():
    assert "make_all" in tf.python.util.all_util.make_all("tensorfleet_legacy.internals.util.tf_decorator")
    assert not [n for n in tf.python.util.all_util.make_all(__name__) if n.startswith("_")]


def test_decorated_functions_keep_what_they_were_given():
    make_decorator = tf.python.util.tf_decorator.make_decorator

    def plain(x):
        return x

    plain.mark, plain.own = 1, 2

    def wrapped(x):
        return plain(x)

    wrapped.own = 3
    result = make_decorator(plain, wrapped)
    assert result.mark == 1 and result.own == 3
    assert result.__qualname__ == plain.__qualname__ and result.__wrapped__ is plain


def test_functions_of_the_configuration_are_found_inside():
    config = tf.python.framework.config
    assert config.list_physical_devices is tf.config.experimental.list_physical_devices
    assert config.set_inter_op_parallelism_threads is tf.config.threading.set_inter_op_parallelism_threads
    assert config.get_optimizer_jit is tf.config.optimizer.get_jit
    assert tf.python.ops.stateful_random_ops.Generator is tf.random.experimental.Generator
    assert tf.python.module.module.Module is tf.Module
    assert tf.python.autograph.impl.api.to_graph_v1 is tf.autograph.to_graph


def test_names_of_functions_are_told_as_tensorflow_does():
    name = tf.python.util.function_utils.get_func_name
    assert name(test_names_of_functions_are_told_as_tensorflow_does).startswith("test_names")
    assert name("".join) == str(type("".join))
    assert name(Shaped().grow) == "Shaped.grow"


class Shaped:
    """Has a method."""

    def grow(self):
        """Does nothing."""
