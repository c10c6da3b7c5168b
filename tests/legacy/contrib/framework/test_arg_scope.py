"""Default arguments within a block."""

import pytest

import tensorfleet as tf

framework = tf.contrib.framework


@framework.add_arg_scope
def one(a, b=2, c=3):
    return a, b, c


@framework.add_arg_scope
def other(a, b=5):
    return a, b


def test_a_scope_gives_arguments_and_the_caller_wins():
    with framework.arg_scope([one], b=10):
        assert one(1) == (1, 10, 3)
        assert one(1, b=4) == (1, 4, 3)
        assert other(1) == (1, 5)
    assert one(1) == (1, 2, 3)


def test_scopes_nest():
    with framework.arg_scope([one, other], b=10):
        with framework.arg_scope([one], c=20):
            assert one(1) == (1, 10, 20)
            assert other(1) == (1, 10)
        assert one(1) == (1, 10, 3)


def test_a_scope_can_be_entered_again():
    with framework.arg_scope([one], b=10) as scope:
        pass
    with framework.arg_scope(scope):
        assert one(1) == (1, 10, 3)
    with pytest.raises(ValueError, match="kwargs must be empty"), framework.arg_scope(scope, b=1):
        pass


def test_an_error_leaves_the_scope():
    with pytest.raises(RuntimeError), framework.arg_scope([one], b=10):
        raise RuntimeError
    assert one(1) == (1, 2, 3)


def test_only_decorated_functions_take_part():
    assert framework.has_arg_scope(one) and not framework.has_arg_scope(print)
    assert framework.arg_scoped_arguments(one) == ("b", "c")
    with pytest.raises(ValueError, match="is not decorated with @add_arg_scope"):
        with framework.arg_scope([print], end=""):
            pass
    with pytest.raises(TypeError, match="list_ops_or_scope must either be a list/tuple or reused scope"):
        with framework.arg_scope(one, b=1):
            pass


def test_slim_layers_take_part():
    slim = tf.contrib.slim
    with tf.Graph().as_default():
        x = tf.zeros([2, 8, 8, 3])
        with slim.arg_scope([slim.conv2d], activation_fn=None, stride=2):
            y = slim.conv2d(x, 4, [3, 3])
        assert y.op.type == "BiasAdd" and y.shape.as_list() == [2, 4, 4, 4]
