"""Pools: the numpy life, the XLA life and plain loops agree, ties and padding included."""

import itertools

import numpy as np
import pytest

from tensorfleet.kernels import pool
from tests.support.kernels import both_lives

pytestmark = pytest.mark.slow  # left out by `make quick`

DRAW = np.random.RandomState(3)

# shape, ksize, strides, padding
CASES = {
    "side by side": ((2, 4, 6, 3), (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
    "side by side, cut off": ((2, 5, 7, 3), (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
    "side by side, padded": ((2, 5, 7, 3), (1, 3, 2, 1), (1, 3, 2, 1), "SAME"),
    "overlapping": ((2, 6, 7, 2), (1, 3, 3, 1), (1, 2, 2, 1), "SAME"),
    "overlapping, valid": ((1, 6, 5, 2), (1, 3, 2, 1), (1, 1, 1, 1), "VALID"),
    "apart": ((1, 9, 8, 2), (1, 2, 2, 1), (1, 3, 3, 1), "SAME"),
    "closer than the stride": ((1, 2, 7, 2), (1, 2, 2, 1), (1, 3, 3, 1), "SAME"),
    "wide": ((2, 8, 9, 2), (1, 5, 4, 1), (1, 2, 3, 1), "SAME"),
    "global": ((2, 5, 4, 3), (1, 5, 4, 1), (1, 1, 1, 1), "VALID"),
    "channels first": ((2, 3, 5, 6), (1, 1, 3, 2), (1, 1, 2, 2), "SAME"),
    "across channels": ((2, 3, 4, 6), (1, 1, 1, 3), (1, 1, 1, 3), "SAME"),
    "explicit": ((2, 5, 6, 2), (1, 3, 3, 1), (1, 2, 2, 1), "EXPLICIT"),
    "three dimensions": ((1, 4, 5, 4, 2), (1, 2, 3, 2, 1), (1, 2, 2, 1, 1), "SAME"),
}
EXPLICIT = ((0, 0), (1, 2), (2, 0), (0, 0))


def attributes(case):
    shape, ksize, strides, padding = CASES[case]
    attrs = dict(ksize=list(ksize), strides=list(strides), padding=padding)
    if padding == "EXPLICIT":
        attrs["explicit_paddings"] = [p for pair in EXPLICIT for p in pair]
    return shape, attrs


def windows(case):
    """For each output place: the input places its window covers, in row-major order."""
    shape, ksize, strides, padding = CASES[case]
    starts = []
    for i, (n, k, s) in enumerate(zip(shape, ksize, strides, strict=True)):
        low, high = {"VALID": (0, 0), "EXPLICIT": EXPLICIT[i % 4]}.get(padding, (None, None))
        if low is None:
            count = -(-n // s)
            low = max((count - 1) * s + k - n, 0) // 2
        else:
            count = (n + low + high - k) // s + 1
        starts.append([(o * s - low) for o in range(count)])
    for place in itertools.product(*(range(len(s)) for s in starts)):
        lines = [
            [p for p in range(starts[i][o], starts[i][o] + ksize[i]) if 0 <= p < shape[i]]
            for i, o in enumerate(place)
        ]
        yield place, list(itertools.product(*lines))


def output_shape(case):
    return tuple(n + 1 for n in max(place for place, _ in windows(case)))


def first_maximum(x, covered):
    values = [x[p] for p in covered]
    return covered[values.index(max(values))]


@pytest.fixture(params=["distinct", "ties", "all equal", "negative infinity"])
def values(request):
    """Inputs that ask who wins: many equal values, and values equal to what padding is filled with."""

    def make(shape):
        if request.param == "distinct":
            return DRAW.permutation(int(np.prod(shape))).reshape(shape) - 40.0
        if request.param == "ties":
            return DRAW.randint(-2, 1, shape).astype(np.float64)
        return np.full(shape, 0.0 if request.param == "all equal" else -np.inf)

    return make


@pytest.mark.parametrize("case", CASES)
def test_max_pool_and_its_gradients_find_the_first_maximum(case, values):
    shape, attrs = attributes(case)
    x = values(shape)
    y = both_lives(pool.max_pool, x, **attrs)
    grad, second = DRAW.randn(*y.shape), DRAW.randn(*shape)
    expected = [np.full(output_shape(case), -np.inf), np.zeros(shape), np.zeros(y.shape)]
    for place, covered in windows(case):
        at = first_maximum(x, covered)
        expected[0][place] = x[at]
        expected[1][at] += grad[place]
        expected[2][place] = second[at]
    np.testing.assert_array_equal(y, expected[0])
    np.testing.assert_allclose(both_lives(pool.max_pool_grad, x, y, grad, **attrs), expected[1], atol=1e-12)
    got = both_lives(pool.max_pool_grad_grad, x, y, second, **attrs)
    np.testing.assert_allclose(got, expected[2], atol=1e-12)


@pytest.mark.parametrize("case", ["three dimensions", "side by side, padded", "overlapping"])
def test_the_3d_gradient_goes_to_every_maximum(case, values):
    shape, attrs = attributes(case)
    x = values(shape)
    y = pool.max_pool(np, x, **attrs)
    grad, expected = DRAW.randn(*y.shape), np.zeros(shape)
    for place, covered in windows(case):
        for at in covered:
            expected[at] += grad[place] * (x[at] == y[place])
    np.testing.assert_allclose(both_lives(pool.max_pool3d_grad, x, y, grad, **attrs), expected, atol=1e-12)


@pytest.mark.parametrize("case", [c for c in CASES if CASES[c][3] != "EXPLICIT"])
@pytest.mark.parametrize("with_batch", [False, True])
def test_argmax_is_the_flat_place_of_the_first_maximum(case, with_batch):
    shape, attrs = attributes(case)
    x = DRAW.randint(-2, 1, shape).astype(np.float64)
    y, index = both_lives(pool.max_pool_with_argmax, x, include_batch_in_index=with_batch, **attrs)
    for place, covered in windows(case):
        at = first_maximum(x, covered)
        flat = np.ravel_multi_index(at, shape)
        assert index[place] == (flat if with_batch else flat % x[0].size)
    assert index.dtype == np.int64
    grad = DRAW.randn(*y.shape)
    got = both_lives(pool.max_pool_grad_with_argmax, x, grad, index, include_batch_in_index=with_batch)
    np.testing.assert_allclose(got, pool.max_pool_grad(np, x, y, grad, **attrs), atol=1e-12)


@pytest.mark.parametrize("case", [c for c in CASES if CASES[c][3] != "EXPLICIT"])
def test_average_counts_only_inputs_and_shares_its_gradient(case):
    shape, attrs = attributes(case)
    x = DRAW.randn(*shape)
    y = both_lives(pool.avg_pool, x, **attrs)
    grad = DRAW.randn(*y.shape)
    expected_y, expected_dx = np.zeros(y.shape), np.zeros(shape)
    for place, covered in windows(case):
        expected_y[place] = np.mean([x[p] for p in covered])
        for p in covered:
            expected_dx[p] += grad[place] / len(covered)
    np.testing.assert_allclose(y, expected_y, atol=1e-12)
    np.testing.assert_allclose(both_lives(pool.avg_pool_grad, shape, grad, **attrs), expected_dx, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int32", "uint8"])
def test_max_pool_keeps_the_type(dtype):
    import ml_dtypes

    dtype = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
    _, attrs = attributes("overlapping")
    x = DRAW.randint(0, 5, (2, 6, 7, 2)).astype(dtype)
    y = both_lives(pool.max_pool, x, **attrs)
    grad = both_lives(pool.max_pool_grad, x, y, np.ones_like(y), **attrs)
    assert y.dtype == grad.dtype == dtype
    assert int(grad.astype(np.int64).sum()) == y.size


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_average_of_many_short_floats_is_exact(dtype):
    import ml_dtypes

    dtype = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
    x = np.full((1, 64, 64, 1), 3.0, dtype)
    attrs = dict(ksize=[1, 64, 64, 1], strides=[1, 1, 1, 1], padding="VALID")
    y = both_lives(pool.avg_pool, x, **attrs)
    assert y.dtype == dtype
    assert float(y[0, 0, 0, 0]) == 3.0


@pytest.mark.parametrize("case", CASES)
def test_the_shape_function_agrees_with_the_kernel(case):
    shape, attrs = attributes(case)
    data_format = "NDHWC" if len(shape) == 5 else "NHWC"
    assert pool.pool_shape(shape, data_format=data_format, **attrs) == output_shape(case)


def test_unknown_dimensions_stay_unknown():
    attrs = dict(ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding=b"SAME")
    assert pool.pool_shape((None, None, 7, 3), **attrs) == (None, None, 4, 3)
    assert pool.pool_shape(None, **attrs) == (None,) * 4


@pytest.mark.parametrize(
    ("shape", "ksize", "strides", "message"),
    [
        ((1, 3, 3, 1), [1, 5, 5, 1], [1, 1, 1, 1], "Negative dimension size caused by subtracting 5 from 3"),
        ((1, 3, 1), [1, 2, 2, 1], [1, 1, 1, 1], "Shape must be rank 4 but is rank 3"),
        ((1, 3, 3, 1), [1, 2, 2, 1], [1, 0, 1, 1], "Stride must be > 0, but got 0"),
        ((1, 3, 3, 1), [1, 2, 2], [1, 1, 1, 1], "ksize attribute to contain 4 values, but got: 3"),
    ],
)
def test_wrong_shapes_are_refused_in_tensorflow_words(shape, ksize, strides, message):
    with pytest.raises(ValueError, match=message):
        pool.pool_shape(shape, ksize=ksize, strides=strides, padding="VALID")
