"""Objects that hold variables."""

import pytest

import tensorfleet as tf


class Dense(tf.Module):
    def __init__(self, name=None):
        super().__init__(name=name)
        with self.name_scope:
            self.w = tf.Variable([1.0], name="w")
            self.b = tf.Variable(0.0, name="b", trainable=False)

    @tf.Module.with_name_scope
    def double(self):
        return tf.add(self.w, self.w, name="twice")


class MyNet(tf.Module):
    def __init__(self):
        super().__init__()
        self.layers = [Dense(), Dense("other")]
        self.scale = tf.Variable(2.0)
        self.again = self.layers[0].w


def test_variables_are_found_in_modules_and_containers():
    net = MyNet()
    assert net.name == "my_net"
    assert net.submodules == (net.layers[0], net.layers[1])
    assert [v.op.name for v in net.variables] == ["dense/w", "Variable", "dense/b", "other/b", "other/w"]
    assert len(net.trainable_variables) == 3


def test_operations_are_named_inside_the_module():
    first, second = Dense(), Dense()
    assert first.w.op.name == "dense/w" and second.w.op.name == "dense_1/w"
    assert second.double().op.name == "dense_1/twice"


def test_a_module_has_a_valid_name():
    with pytest.raises(ValueError, match="is not a valid module name"):
        tf.Module("no good")


def test_an_attribute_may_be_given_what_it_is_already():
    class Shaped(tf.Module):
        def __init__(self):
            super().__init__()
            self._rows = self._no_dependency([1, 2])

        rows = property(lambda self: self._rows)

    shaped = Shaped()
    shaped.rows = shaped.rows
    with pytest.raises(AttributeError, match="rows"):
        shaped.rows = [1, 2]
