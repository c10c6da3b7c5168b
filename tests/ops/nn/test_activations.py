"""Activations and biases: values, gradients of both orders, shapes, errors."""

import numpy as np
import pytest

import tensorfleet as tf

X = np.array([[-2.0, -0.5, 0.25, 7.0]], np.float32)
FUNCTIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "elu": lambda x: np.where(x < 0, np.expm1(x), x),
    "selu": lambda x: 1.05070098 * np.where(x < 0, 1.67326324 * np.expm1(x), x),
    "softplus": lambda x: np.log1p(np.exp(x)),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.2 * x),
}


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default(), tf.Session() as session, session.as_default():
        yield


def numeric(f, x, step=1e-4):
    x = x.astype(np.float64)
    return (f(x + step) - f(x - step)) / (2 * step)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients(name):
    x = tf.placeholder(tf.float32, [None, 4])
    y = getattr(tf.nn, name)(x)
    (g,) = tf.gradients(y, x)
    value, slope = tf.get_default_session().run([y, g], {x: X})
    np.testing.assert_allclose(value, FUNCTIONS[name](X), rtol=1e-5)
    np.testing.assert_allclose(slope, numeric(FUNCTIONS[name], X), rtol=1e-3, atol=1e-5)
    assert y.shape.as_list() == [None, 4]


@pytest.mark.parametrize("name", ["elu", "selu", "softplus", "softsign"])
def test_second_derivatives(name):
    x = tf.constant(X, tf.float64)
    (g,) = tf.gradients(getattr(tf.nn, name)(x), x)
    (gg,) = tf.gradients(g, x)
    f, at = FUNCTIONS[name], X.astype(np.float64)
    expected = (f(at + 1e-3) - 2 * f(at) + f(at - 1e-3)) / 1e-6
    np.testing.assert_allclose(gg.eval(), expected, rtol=2e-2, atol=2e-2)


def test_gradient_ops_are_those_of_tensorflow():
    x = tf.constant(X)
    tf.gradients(tf.nn.elu(tf.nn.relu(x)), x)
    types = {op.type for op in tf.get_default_graph().get_operations()}
    assert {"EluGrad", "ReluGrad"} <= types
    assert "FleetVjp" not in types


def test_softplus_does_not_overflow():
    x = tf.constant([-1000.0, 1000.0])
    np.testing.assert_array_equal(tf.nn.softplus(x).eval(), [0, 1000])


def test_crelu_doubles_the_last_axis():
    y = tf.nn.crelu(tf.constant(X))
    np.testing.assert_array_equal(y.eval(), np.concatenate([np.maximum(X, 0), np.maximum(-X, 0)], -1))
    assert [op.name for op in tf.get_default_graph().get_operations()][-1] == "CRelu/Relu"


def test_leaky_relu_of_integers_is_float():
    assert tf.nn.leaky_relu([1, -2]).dtype == tf.float32


def test_swish():
    np.testing.assert_allclose(tf.nn.swish(tf.constant(X)).eval(), X / (1 + np.exp(-X)), rtol=1e-5)


@pytest.mark.parametrize("layout, axis", [("NHWC", 3), ("NCHW", 1)])
def test_bias_add_follows_the_channels(layout, axis):
    images = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
    bias = np.arange(images.shape[axis], dtype=np.float32)
    x, b = tf.constant(images), tf.constant(bias)
    y = tf.nn.bias_add(x, b, data_format=layout)
    shape = [1] * 4
    shape[axis] = -1
    np.testing.assert_array_equal(y.eval(), images + bias.reshape(shape))
    (g,) = tf.gradients(y, b)
    np.testing.assert_array_equal(g.eval(), np.full(bias.size, 24 // bias.size, np.float32))
    (gg,) = tf.gradients(tf.reduce_sum(g * b), x)
    assert gg is None


def test_bias_of_another_length_is_refused():
    with pytest.raises(ValueError, match="Dimensions must be equal, but are 3 and 2"):
        tf.nn.bias_add(tf.ones([2, 3]), [1.0, 2.0])
    with pytest.raises(ValueError, match="Shape must be at least rank 2 but is rank 1"):
        tf.nn.bias_add(tf.ones([3]), [1.0, 2.0, 3.0])
    x, b = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    y = tf.nn.bias_add(x, b)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="Must provide as many biases as the last dimension"
    ):
        y.eval({x: np.ones([3, 4]), b: [1, 2]})


def test_xw_plus_b_and_relu_layer():
    x, w, b = np.ones([2, 3], "f"), np.arange(6, dtype="f").reshape(3, 2) - 5, np.array([1, 20], "f")
    np.testing.assert_allclose(tf.nn.xw_plus_b(x, w, b).eval(), x @ w + b)
    np.testing.assert_allclose(tf.nn.relu_layer(x, w, b).eval(), np.maximum(x @ w + b, 0))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32])
def test_large_arrays_are_cut_off_like_small_ones(dtype):
    few = np.array([-7, -1, 0, 1, 5, 6, 7, 9], dtype)
    if few.dtype.kind == "f":
        few = np.append(few, np.array([np.nan, np.inf, -np.inf], dtype))
    many = np.tile(few, 4000)
    for function in (tf.nn.relu, tf.nn.relu6):
        small, large = tf.get_default_session().run([function(few), function(many)])
        assert large.dtype == dtype
        np.testing.assert_array_equal(large, np.tile(small, 4000))
