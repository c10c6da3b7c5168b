"""Convolutions with fewer multiplications equal the plain ones, gradients included."""

import numpy as np
import pytest

from tensorfleet.kernels import conv as conv_kernels
from tensorfleet.kernels import winograd
from tensorfleet.runtime.devices import load_jax

CASES = [
    # examples, image, filter, in, out, padding
    (5, (14, 14), (5, 5), 16, 24, "SAME"),
    (3, (9, 11), (3, 3), 20, 16, "SAME"),
    (40, (12, 13), (5, 5), 32, 17, "VALID"),
    (2, (1, 16), (1, 3), 16, 16, "SAME"),
    (0, (14, 14), (5, 5), 16, 16, "SAME"),
    (2, (8, 12), (3, 5), 16, 16, "EXPLICIT"),
]


@pytest.fixture(params=CASES, ids=str)
def convolution(request):
    examples, image, taps, channels, filters, padding = request.param
    rng = np.random.default_rng(1)
    x = rng.standard_normal((examples, *image, channels))
    w = rng.standard_normal((*taps, channels, filters))
    explicit = (0, 0, 1, 2, 2, 0, 0, 0) if padding == "EXPLICIT" else ()
    attrs = dict(strides=(1, 1, 1, 1), padding=padding, explicit_paddings=explicit)
    window = conv_kernels.conv_window(x.shape, w.shape, **attrs)
    assert winograd.suits(window, filters, np.float32)
    dy = rng.standard_normal(conv_kernels.conv2d(np, x, w, **attrs).shape)
    return x, w, dy, attrs


def check(kernel, *arrays):
    """The compiled float32 kernel against numpy's in float64."""
    jax, jnp = load_jax()
    expected = kernel(np, *arrays)
    found = np.asarray(jax.jit(lambda *a: kernel(jnp, *a))(*(a.astype(np.float32) for a in arrays)))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5 * (expected.std() if expected.size else 0))


def test_forward(convolution):
    x, w, _, attrs = convolution
    check(lambda xp, x, w: conv_kernels.conv2d(xp, x, w, **attrs), x, w)


def test_gradient_of_the_input(convolution):
    x, w, dy, attrs = convolution
    check(lambda xp, w, dy: conv_kernels.conv2d_backprop_input(xp, x.shape, w, dy, **attrs), w, dy)


def test_gradient_of_the_filter(convolution):
    x, w, dy, attrs = convolution
    check(lambda xp, x, dy: conv_kernels.conv2d_backprop_filter(xp, x, w.shape, dy, **attrs), x, dy)


def test_padding_wider_than_the_filter_takes_the_plain_way():
    attrs = dict(strides=(1,) * 4, padding="EXPLICIT", explicit_paddings=(0, 0, 0, 0, 4, 4, 0, 0))
    rng = np.random.default_rng(1)
    w, dy = rng.standard_normal((3, 3, 16, 16)), rng.standard_normal((2, 8, 16, 16))
    check(lambda xp, w, dy: conv_kernels.conv2d_backprop_input(xp, (2, 10, 10, 16), w, dy, **attrs), w, dy)


@pytest.mark.parametrize("dtype, stride, width", [("f8", 1, 14), ("f4", 2, 28), ("f4", 1, 6)])
def test_what_it_is_not_for(dtype, stride, width):
    shape = (2, width, width, 32)
    window = conv_kernels.conv_window(
        shape,
        (3, 3, 32, 32),
        data_format="NHWC",
        strides=(1, stride, stride, 1),
        padding="SAME",
        dilations=(1,) * 4,
    )
    assert not winograd.suits(window, 32, np.dtype(dtype))
