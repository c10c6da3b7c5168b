"""Kernels of convolutions that keep lengths."""

import numpy as np
import pytest
from tensorfleet.python.ops import init_ops

import tensorfleet as tf
from tests.support.sessions import run

KINDS = {
    1: init_ops.convolutional_orthogonal_1d,
    2: init_ops.convolutional_orthogonal_2d,
    3: init_ops.convolutional_orthogonal_3d,
}


def _ratio(kernel, gain):
    """The length of what a circular convolution gives over that of what it was given."""
    spatial = kernel.ndim - 2
    x = np.random.RandomState(0).randn(*(5,) * spatial, kernel.shape[-2])
    y = np.zeros((*(5,) * spatial, kernel.shape[-1]))
    for at in np.ndindex(kernel.shape[:-2]):
        y += np.roll(x, at, axis=tuple(range(spatial))) @ kernel[at]
    return np.linalg.norm(y) / np.linalg.norm(x) / gain


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_convolutions_with_these_kernels_keep_lengths(dims, size):
    kernel = run(KINDS[dims](gain=2.0, seed=3, dtype=tf.float64)([size] * dims + [3, 4]))
    assert kernel.shape == (*(size,) * dims, 3, 4)
    np.testing.assert_allclose(_ratio(kernel, 2.0), 1.0, rtol=1e-9)


def test_a_delta_has_its_matrix_in_the_middle():
    kernel = run(tf.contrib.framework.convolutional_delta_orthogonal(seed=1)([3, 5, 2, 4]))
    middle = kernel[1, 2].copy()
    kernel[1, 2] = 0
    assert not kernel.any()
    np.testing.assert_allclose(middle @ middle.T, np.eye(2), atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "shape", "phrase"),
    [
        (
            init_ops.convolutional_delta_orthogonal,
            [3, 3, 6, 5],
            "In_filters cannot be greater than out_filters",
        ),
        (init_ops.convolutional_delta_orthogonal, [6, 7], "three or four or five-dimensional"),
        (init_ops.convolutional_orthogonal_2d, [3, 4, 5, 5], "Kernel sizes must be equal"),
        (init_ops.convolutional_orthogonal_1d, [3, 3, 5, 5], "must be three-dimensional"),
    ],
)
def test_shapes_that_have_no_such_kernel(kind, shape, phrase):
    with pytest.raises(ValueError, match=phrase):
        kind()(shape)


def test_seeds_repeat_kernels():
    def made(seed):
        with tf.Graph().as_default():
            return run(init_ops.convolutional_orthogonal_2d(seed=seed)([2, 2, 3, 3]))

    np.testing.assert_array_equal(made(1), made(1))
    assert not np.allclose(made(1), made(2))
    with pytest.raises(ValueError, match="floating"):
        init_ops.convolutional_orthogonal_1d(dtype=tf.string)
