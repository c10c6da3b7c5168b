"""Convolution and pool kernels against TensorFlow's own ops, values and shape errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tensorfleet.kernels import conv, conv_shapes, pool
from tensorfleet.kernels import depthwise_conv as depthwise

tf = pytest.importorskip("tensorflow")

DRAW = np.random.RandomState(11)

# input, filter, strides, dilations
CONVS = [
    ((2, 9, 8, 3), (3, 3, 3, 4), (1, 1, 1, 1), (1, 1, 1, 1)),
    ((2, 9, 8, 3), (2, 3, 3, 4), (1, 2, 2, 1), (1, 1, 1, 1)),
    ((2, 9, 8, 3), (3, 2, 3, 4), (1, 1, 1, 1), (1, 2, 2, 1)),
    ((2, 9, 8, 6), (1, 1, 6, 4), (1, 2, 2, 1), (1, 1, 1, 1)),
    ((5, 28, 28, 1), (5, 5, 1, 8), (1, 1, 1, 1), (1, 1, 1, 1)),
    ((9, 14, 14, 32), (5, 5, 32, 16), (1, 1, 1, 1), (1, 1, 1, 1)),
    ((2, 7, 7, 64), (3, 3, 64, 8), (1, 1, 1, 1), (1, 1, 1, 1)),
]
# input, ksize, strides
POOLS = [
    ((2, 8, 6, 3), (1, 2, 2, 1), (1, 2, 2, 1)),
    ((2, 9, 7, 3), (1, 3, 3, 1), (1, 2, 2, 1)),
    ((2, 9, 7, 3), (1, 3, 2, 1), (1, 1, 1, 1)),
    ((2, 9, 7, 3), (1, 2, 2, 1), (1, 2, 2, 1)),
    ((2, 8, 8, 3), (1, 8, 8, 1), (1, 1, 1, 1)),
]


def draw(*shape):
    return DRAW.randn(*shape).astype(np.float32)


def tied(*shape):
    """Few distinct values, so that most windows have several maxima."""
    return DRAW.randint(0, 3, shape).astype(np.float32)


def agree(kernel, expected, *args, **attrs):
    """Both lives of the kernel give what TensorFlow gave."""
    for xp in (np, jnp):
        got = kernel(xp, *(xp.asarray(a) if isinstance(a, np.ndarray) else a for a in args), **attrs)
        np.testing.assert_allclose(np.asarray(got), np.asarray(expected), rtol=1e-4, atol=1e-4)


@pytest.fixture(autouse=True)
def _at_once():
    """TensorFlow runs its ops at once here, whatever other tests of this process have asked it for."""
    from tensorflow.python.eager import context

    with jax.enable_x64(True), context.eager_mode():
        yield


@pytest.mark.parametrize("padding", ["SAME", "VALID", "EXPLICIT"])
@pytest.mark.parametrize(("x_shape", "w_shape", "strides", "dilations"), CONVS)
def test_conv2d_and_its_gradients(x_shape, w_shape, strides, dilations, padding):
    x, w, raw = draw(*x_shape), draw(*w_shape), tf.raw_ops
    attrs = dict(strides=list(strides), padding=padding, dilations=list(dilations))
    attrs["explicit_paddings"] = [0, 0, 1, 2, 2, 1, 0, 0] if padding == "EXPLICIT" else []
    y = raw.Conv2D(input=x, filter=w, **attrs).numpy()
    agree(conv.conv2d, y, x, w, **attrs)
    if max(dilations) > 1:
        return  # TensorFlow has no such gradient on CPU
    dx = raw.Conv2DBackpropInput(input_sizes=x_shape, filter=w, out_backprop=y, **attrs)
    dw = raw.Conv2DBackpropFilter(input=x, filter_sizes=w_shape, out_backprop=y, **attrs)
    scale = float(np.abs(dw).max())
    agree(conv.conv2d_backprop_input, dx / scale, x_shape, w, y / np.float32(scale), **attrs)
    agree(conv.conv2d_backprop_filter, dw / scale, x, w_shape, y / np.float32(scale), **attrs)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("stride", [1, 2])
def test_depthwise_conv2d_and_its_gradients(padding, stride):
    x, w, raw = draw(2, 9, 8, 3), draw(3, 3, 3, 2), tf.raw_ops
    attrs = dict(strides=[1, stride, stride, 1], padding=padding)
    y = raw.DepthwiseConv2dNative(input=x, filter=w, **attrs).numpy()
    agree(depthwise.depthwise_conv2d, y, x, w, **attrs)
    dx = raw.DepthwiseConv2dNativeBackpropInput(input_sizes=x.shape, filter=w, out_backprop=y, **attrs)
    agree(depthwise.depthwise_conv2d_backprop_input, dx, x.shape, w, y, **attrs)
    dw = raw.DepthwiseConv2dNativeBackpropFilter(input=x, filter_sizes=w.shape, out_backprop=y, **attrs)
    agree(depthwise.depthwise_conv2d_backprop_filter, dw, x, w.shape, y, **attrs)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_conv3d_and_its_gradients(padding):
    x, w, raw = draw(2, 5, 6, 7, 3), draw(2, 3, 2, 3, 4), tf.raw_ops
    attrs = dict(strides=[1, 1, 2, 2, 1], padding=padding)
    y = raw.Conv3D(input=x, filter=w, **attrs).numpy()
    agree(conv.conv3d, y, x, w, **attrs)
    dx = raw.Conv3DBackpropInputV2(input_sizes=x.shape, filter=w, out_backprop=y, **attrs)
    agree(conv.conv3d_backprop_input, dx, x.shape, w, y, **attrs)
    dw = raw.Conv3DBackpropFilterV2(input=x, filter_sizes=w.shape, out_backprop=y, **attrs)
    agree(conv.conv3d_backprop_filter, dw, x, w.shape, y, **attrs)


@pytest.mark.parametrize("make", [draw, tied])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("shape", "ksize", "strides"), POOLS)
def test_max_pool_and_its_gradients(shape, ksize, strides, padding, make):
    x, raw = make(*shape), tf.raw_ops
    attrs = dict(ksize=list(ksize), strides=list(strides), padding=padding)
    y = raw.MaxPool(input=x, **attrs).numpy()
    agree(pool.max_pool, y, x, **attrs)
    grad, second = draw(*y.shape), draw(*shape)
    expected = raw.MaxPoolGrad(orig_input=x, orig_output=y, grad=grad, **attrs)
    agree(pool.max_pool_grad, expected, x, y, grad, **attrs)
    expected = raw.MaxPoolGradGrad(orig_input=x, orig_output=y, grad=second, **attrs)
    agree(pool.max_pool_grad_grad, expected, x, y, second, **attrs)


@pytest.mark.parametrize("with_batch", [False, True])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_max_pool_with_argmax(padding, with_batch):
    x = tied(2, 7, 6, 3)
    attrs = dict(ksize=[1, 3, 2, 1], strides=[1, 2, 2, 1], padding=padding, include_batch_in_index=with_batch)
    y, index = tf.raw_ops.MaxPoolWithArgmax(input=x, Targmax=tf.int64, **attrs)
    for xp in (np, jnp):
        got_y, got_index = pool.max_pool_with_argmax(xp, xp.asarray(x), **attrs)
        np.testing.assert_array_equal(got_y, y)
        np.testing.assert_array_equal(got_index, index)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("shape", "ksize", "strides"), POOLS)
def test_avg_pool_and_its_gradient(shape, ksize, strides, padding):
    x, attrs = draw(*shape), dict(ksize=list(ksize), strides=list(strides), padding=padding)
    y = tf.raw_ops.AvgPool(value=x, **attrs).numpy()
    agree(pool.avg_pool, y, x, **attrs)
    expected = tf.raw_ops.AvgPoolGrad(orig_input_shape=shape, grad=y, **attrs)
    agree(pool.avg_pool_grad, expected, shape, y, **attrs)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_pools_of_three_dimensions(padding):
    x, raw = tied(2, 5, 6, 7, 2), tf.raw_ops
    attrs = dict(ksize=[1, 2, 3, 2, 1], strides=[1, 2, 2, 1, 1], padding=padding)
    y = raw.MaxPool3D(input=x, **attrs).numpy()
    agree(pool.max_pool, y, x, **attrs)
    grad = draw(*y.shape)
    expected = raw.MaxPool3DGrad(orig_input=x, orig_output=y, grad=grad, **attrs)
    agree(pool.max_pool3d_grad, expected, x, y, grad, **attrs)
    second = draw(*x.shape)
    expected = raw.MaxPool3DGradGrad(orig_input=x, orig_output=y, grad=second, **attrs)
    agree(pool.max_pool_grad_grad, expected, x, y, second, **attrs)
    agree(pool.avg_pool, raw.AvgPool3D(input=x, **attrs), x, **attrs)
    expected = raw.AvgPool3DGrad(orig_input_shape=x.shape, grad=grad, **attrs)
    agree(pool.avg_pool_grad, expected, x.shape, grad, **attrs)


@pytest.mark.parametrize(
    ("x", "w", "attrs"),
    [
        ((None, None, 8, 4), (3, 3, 4, 4), dict(strides=[1, 2, 2, 1], padding="SAME")),
        ((1, 9, 9, 4), (None, 3, 4, None), dict(strides=[1, 2, 2, 1], padding="SAME")),
        ((1, 9, 9, 4), (None, 3, 4, 2), dict(strides=[1, 2, 2, 1], padding="VALID")),
        ((1, 9, 9, None), (3, 3, 4, 2), dict(strides=[1, 1, 1, 1], padding="VALID", dilations=[1, 2, 2, 1])),
        ((1, 3, 3, 1), (5, 5, 1, 2), dict(strides=[1, 1, 1, 1], padding="VALID")),
        ((1, 3, 3, 3), (3, 3, 2, 2), dict(strides=[1, 1, 1, 1], padding="VALID")),
        ((1, 3, 3, 4), (3, 3, 2, 3), dict(strides=[1, 1, 1, 1], padding="VALID")),
        ((3, 3, 4), (3, 3, 2, 4), dict(strides=[1, 1, 1, 1], padding="VALID")),
        ((1, 3, 3, 1), (5, 5, 1, 2), dict(strides=[1, 1, 1], padding="VALID")),
    ],
)
def test_conv2d_shapes_and_their_errors(x, w, attrs):
    with tf.Graph().as_default():
        holders = (tf.compat.v1.placeholder(tf.float32, s) for s in (x, w))
        try:
            result = tf.raw_ops.Conv2D(**dict(zip(("input", "filter"), holders, strict=True)), **attrs)
            expected = tuple(result.shape.as_list())
        except ValueError as error:
            with pytest.raises(ValueError) as ours:
                conv_shapes.conv2d_shape(x, w, **attrs)
            assert str(error).startswith(str(ours.value))
        else:
            assert conv_shapes.conv2d_shape(x, w, **attrs) == expected
