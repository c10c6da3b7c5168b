"""Convolutions: the numpy life, the XLA life and plain loops agree."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tensorfleet.kernels import conv, conv_chunks, conv_shapes
from tensorfleet.kernels import depthwise_conv as depthwise
from tensorfleet.kernels.windows import output_size
from tests.support.kernels import both_lives

pytestmark = pytest.mark.slow  # left out by `make quick`

DRAW = np.random.RandomState(7)

# (input in channels-last order, filter, strides, dilations) over the spatial axes
CASES = {
    "square": ((3, 6, 6, 2), (3, 3, 2, 4), (1, 1), (1, 1)),
    "stride": ((2, 7, 8, 3), (3, 2, 3, 2), (2, 3), (1, 1)),
    "long stride": ((2, 11, 9, 3), (5, 4, 3, 2), (3, 2), (1, 1)),
    "dilation": ((2, 9, 8, 2), (3, 2, 2, 3), (1, 1), (2, 3)),
    "pointwise": ((2, 5, 4, 3), (1, 1, 3, 4), (1, 1), (1, 1)),
    "pointwise stride": ((2, 5, 5, 3), (1, 1, 3, 2), (2, 2), (1, 1)),
    "groups": ((2, 5, 5, 6), (3, 3, 2, 6), (1, 1), (1, 1)),
    "many channels": ((2, 4, 5, 65), (2, 3, 65, 3), (1, 1), (1, 1)),
    "one window": ((3, 4, 5, 3), (4, 4, 3, 5), (2, 3), (1, 1)),
    "one window with gaps": ((2, 6, 5, 3), (3, 2, 3, 2), (7, 5), (2, 3)),
    "few windows": ((2, 6, 5, 3), (5, 4, 3, 2), (1, 1), (1, 1)),
    "products of phases": ((2, 8, 10, 8), (3, 3, 8, 9), (2, 2), (1, 1)),
    "products of odd phases": ((2, 11, 9, 9), (3, 3, 9, 8), (2, 2), (1, 1)),
    "products of few phases": ((1, 4, 7, 8), (3, 3, 8, 8), (2, 2), (1, 1)),
    "colours": ((2, 9, 10, 3), (4, 5, 3, 2), (2, 2), (1, 1)),
    "colours, long stride": ((1, 8, 11, 2), (2, 3, 2, 3), (1, 4), (1, 1)),
    "three dimensions": ((2, 4, 5, 4, 2), (2, 3, 2, 2, 3), (1, 2, 1), (1, 1, 1)),
    "three dimensions, products": ((1, 7, 8, 9, 8), (3, 3, 3, 8, 8), (2, 2, 2), (1, 1, 1)),
    "three dimensions, long stride": ((1, 7, 5, 4, 2), (2, 3, 3, 2, 3), (3, 2, 1), (1, 1, 1)),
}


def to_first(x):
    return np.moveaxis(x, -1, 1)


def attributes(strides, dilations, padding, channels_first=False):
    """TensorFlow's attribute lists for an op over these spatial axes."""
    spatial = "DHW"[3 - len(strides) :]

    def full(values, outside):
        return [outside, outside, *values] if channels_first else [outside, *values, outside]

    attrs = dict(strides=full(strides, 1), dilations=full(dilations, 1), padding=padding)
    attrs["data_format"] = f"NC{spatial}" if channels_first else f"N{spatial}C"
    if padding == "EXPLICIT":
        pairs = full([(1, 2), (0, 1), (2, 0)][: len(strides)], (0, 0))
        attrs["explicit_paddings"] = [p for pair in pairs for p in pair]
    return attrs


def pads_of(size, k, s, d, padding, pair):
    if padding == "VALID":
        return (0, 0)
    if padding == "EXPLICIT":
        return pair
    total = max((-(-size // s) - 1) * s + (k - 1) * d + 1 - size, 0)
    return (total // 2, total - total // 2)


def by_loops(x, w, dy, strides, dilations, padding):
    """The definition of convolution, channels-last: y, and for this dy its gradients dx and dw."""
    ks, explicit = w.shape[:-2], [(1, 2), (0, 1), (2, 0)]
    axes = list(zip(x.shape[1:-1], ks, strides, dilations, explicit, strict=False))
    pads = [pads_of(n, k, s, d, padding, e) for n, k, s, d, e in axes]
    padded = np.pad(x, [(0, 0), *pads, (0, 0)])
    out = [(n + sum(p) - (k - 1) * d - 1) // s + 1 for (n, k, s, d, _), p in zip(axes, pads, strict=True)]
    y, dx, dw = np.zeros((x.shape[0], *out, w.shape[-1])), np.zeros_like(padded), np.zeros_like(w)
    groups = x.shape[-1] // w.shape[-2]
    ins = [slice(g * w.shape[-2], (g + 1) * w.shape[-2]) for g in range(groups)]
    outs = [slice(g * w.shape[-1] // groups, (g + 1) * w.shape[-1] // groups) for g in range(groups)]
    taps = list(itertools.product(*map(range, ks)))
    for place, tap, g in itertools.product(itertools.product(*map(range, out)), taps, range(groups)):
        at = tuple(p * s + t * d for p, s, t, d in zip(place, strides, tap, dilations, strict=True))
        here, there = (slice(None), *place, outs[g]), (slice(None), *at, ins[g])
        y[here] += padded[there] @ w[tap][:, outs[g]]
        dx[there] += dy[here] @ w[tap][:, outs[g]].T
        dw[(*tap, slice(None), outs[g])] += padded[there].T @ dy[here]
    inner = tuple(slice(lo, lo + n) for (lo, _), n in zip(pads, x.shape[1:-1], strict=True))
    return y, dx[(slice(None), *inner)], dw


@pytest.fixture(params=["patches", "one example at a time", "tap by tap"])
def way(request, monkeypatch):
    """Every way to compute: all patches at once, in chunks with a rest, and without patches."""
    if request.param != "patches":
        monkeypatch.setattr(conv_chunks, "CHUNK_BYTES", 1)
        monkeypatch.setattr(conv, "MIN_WINOGRAD_CHANNELS", 0)
    if request.param == "tap by tap":
        monkeypatch.setattr(conv, "MAX_PATCH_BYTES", 0)


def kernels(rank):
    names = ("conv{}d", "conv{}d_backprop_input", "conv{}d_backprop_filter")
    return [getattr(conv, name.format(rank)) for name in names]


@pytest.mark.parametrize(
    ("case", "padding"),
    [(c, p) for c in CASES for p in ("SAME", "VALID", "EXPLICIT")[: 2 if c.startswith("three") else 3]],
)
def test_convolution_and_gradients_match_their_definition(case, padding, way):
    x_shape, w_shape, strides, dilations = CASES[case]
    x, w = DRAW.randn(*x_shape), DRAW.randn(*w_shape)
    attrs = attributes(strides, dilations, padding)
    forward, backprop_input, backprop_filter = kernels(len(strides))
    y = both_lives(forward, x, w, **attrs)
    dy = DRAW.randn(*y.shape)
    expected, dx, dw = by_loops(x, w, dy, strides, dilations, padding)
    np.testing.assert_allclose(y, expected, atol=1e-9)
    got = both_lives(backprop_input, x.shape, w, dy, **attrs)
    np.testing.assert_allclose(got, dx, atol=1e-9)
    got = both_lives(backprop_filter, x, w.shape, dy, **attrs)
    np.testing.assert_allclose(got, dw, atol=1e-9)


@pytest.mark.parametrize("strides", [(1, 1), (2, 1), (1, 3)])
@pytest.mark.parametrize("channels", [1, 8, 65])
def test_windows_that_see_only_padding_have_no_gradient(monkeypatch, strides, channels):
    monkeypatch.setattr(conv, "SMALL_CONVOLUTION", 0)  # all of them in float32, as large ones are
    x, w = (DRAW.randn(*shape).astype("f") for shape in ((1, 13, 16, channels), (4, 5, channels, 16)))
    pairs = [(0, 0), (6, 1), (4, 1), (0, 0)]
    attrs = attributes(strides, (1, 1), "EXPLICIT") | {
        "explicit_paddings": [p for pair in pairs for p in pair]
    }
    forward, backprop_input, backprop_filter = kernels(2)
    y = jax.jit(lambda x, w: forward(jnp, x, w, **attrs))(x, w)
    dy = DRAW.randn(*y.shape).astype("f")
    expected, dx, dw = by_loops(np.pad(x, pairs), w, dy, strides, (1, 1), "VALID")
    np.testing.assert_allclose(y, expected, atol=1e-3)
    got = jax.jit(lambda w, dy: backprop_input(jnp, x.shape, w, dy, **attrs))(w, dy)
    np.testing.assert_allclose(got, dx[:, 6:19, 4:20], atol=1e-3)
    got = jax.jit(lambda x, dy: backprop_filter(jnp, x, w.shape, dy, **attrs))(x, dy)
    np.testing.assert_allclose(got, dw, atol=1e-3)


@pytest.mark.parametrize("padding", ["SAME", "EXPLICIT"])
def test_channels_first_is_channels_last_transposed(padding):
    x, w = DRAW.randn(2, 6, 7, 3), DRAW.randn(3, 2, 3, 4)
    last = attributes((2, 1), (1, 1), padding)
    first = attributes((2, 1), (1, 1), padding, channels_first=True)
    y = conv.conv2d(np, x, w, **last)
    np.testing.assert_allclose(both_lives(conv.conv2d, to_first(x), w, **first), to_first(y))
    dx = conv.conv2d_backprop_input(np, x.shape, w, y, **last)
    got = both_lives(conv.conv2d_backprop_input, to_first(x).shape, w, to_first(y), **first)
    np.testing.assert_allclose(got, to_first(dx))
    dw = conv.conv2d_backprop_filter(np, x, w.shape, y, **last)
    got = both_lives(conv.conv2d_backprop_filter, to_first(x), w.shape, to_first(y), **first)
    np.testing.assert_allclose(got, dw)


@pytest.mark.parametrize("padding", ["SAME", "VALID", "EXPLICIT"])
@pytest.mark.parametrize(("strides", "dilations"), [((1, 1), (1, 1)), ((2, 2), (1, 1)), ((1, 1), (2, 2))])
def test_depthwise_is_one_convolution_per_channel(padding, strides, dilations):
    x, w = DRAW.randn(2, 7, 6, 3), DRAW.randn(3, 2, 3, 2)
    attrs = attributes(strides, dilations, padding)
    grouped = w.reshape(3, 2, 1, 6)
    y = both_lives(depthwise.depthwise_conv2d, x, w, **attrs)
    dy = DRAW.randn(*y.shape)
    expected, dx, dw = by_loops(x, grouped, dy, strides, dilations, padding)
    np.testing.assert_allclose(y, expected, atol=1e-9)
    got = both_lives(depthwise.depthwise_conv2d_backprop_input, x.shape, w, dy, **attrs)
    np.testing.assert_allclose(got, dx, atol=1e-9)
    got = both_lives(depthwise.depthwise_conv2d_backprop_filter, x, w.shape, dy, **attrs)
    np.testing.assert_allclose(got, dw.reshape(w.shape), atol=1e-9)


def test_examples_left_over_from_the_last_chunk_count(monkeypatch):
    x, w = DRAW.randn(7, 4, 4, 5), DRAW.randn(3, 3, 5, 2)
    attrs = attributes((1, 1), (1, 1), "SAME")
    whole = [k(np, *a, **attrs) for k, a in every_kernel(x, w, x[..., :2])]
    monkeypatch.setattr(conv_chunks, "CHUNK_BYTES", 3 * 16 * 45 * 8)
    for expected, (kernel, args) in zip(whole, every_kernel(x, w, x[..., :2]), strict=True):
        np.testing.assert_allclose(both_lives(kernel, *args, **attrs), expected, atol=1e-9)


def every_kernel(x, w, dy):
    forward, backprop_input, backprop_filter = kernels(2)
    return (forward, (x, w)), (backprop_input, (x.shape, w, dy)), (backprop_filter, (x, w.shape, dy))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_every_float_type_is_kept_and_summed_with_enough_bits(dtype):
    import ml_dtypes

    dtype = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
    x, w = np.ones((2, 16, 16, 16), dtype), np.full((5, 5, 16, 2), 0.25, dtype)
    attrs = attributes((1, 1), (1, 1), "VALID")
    y = conv.conv2d(np, x, w, **attrs)
    assert y.dtype == dtype
    assert (y == np.array(100, dtype)).all()
    with jax.enable_x64(True):
        for kernel, args in every_kernel(x, w, np.ones_like(y)):
            for xp in (np, jnp):
                assert kernel(xp, *args, **attrs).dtype == dtype


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_an_empty_batch_gives_an_empty_result(padding):
    x, w = np.zeros((0, 5, 5, 2), np.float32), np.ones((3, 3, 2, 4), np.float32)
    attrs = attributes((2, 2), (1, 1), padding)
    y = both_lives(conv.conv2d, x, w, **attrs)
    assert y.shape[0] == 0
    assert both_lives(conv.conv2d_backprop_input, x.shape, w, y, **attrs).shape == x.shape
    assert not both_lives(conv.conv2d_backprop_filter, x, w.shape, y, **attrs).any()


@pytest.mark.parametrize("padding", ["SAME", "VALID", "EXPLICIT"])
@pytest.mark.parametrize("channels_first", [False, True])
def test_the_shape_function_agrees_with_the_kernel(padding, channels_first):
    attrs = attributes((2, 1), (1, 2), padding, channels_first)
    x, w = np.zeros((2, 3, 6, 7) if channels_first else (2, 6, 7, 3)), np.zeros((3, 2, 3, 4))
    assert conv_shapes.conv2d_shape(x.shape, w.shape, **attrs) == conv.conv2d(np, x, w, **attrs).shape
    made = depthwise.depthwise_conv2d(np, x, w, **attrs).shape
    assert conv_shapes.depthwise_conv2d_shape(x.shape, w.shape, **attrs) == made


def test_unknown_dimensions_stay_unknown():
    attrs = attributes((2, 2), (1, 1), "SAME")
    assert conv_shapes.conv2d_shape((None, None, 8, 4), (3, 3, 4, 5), **attrs) == (None, None, 4, 5)
    assert conv_shapes.conv2d_shape(None, (3, 3, 4, 5), **attrs) == (None, None, None, 5)
    assert conv_shapes.depthwise_conv2d_shape((1, 8, 8, None), (3, 3, 4, None), **attrs) == (1, 4, 4, None)
    unknown_filter = conv_shapes.conv3d_shape((1, 4, None, 4, 2), None, strides=[1] * 5, padding=b"SAME")
    assert unknown_filter == (1, 4, None, 4, None)


@pytest.mark.parametrize(
    ("x", "w", "changes", "message"),
    [
        ((1, 3, 3, 1), (5, 5, 1, 2), {}, "Negative dimension size caused by subtracting 5 from 3"),
        (
            (1, 3, 3, 3),
            (3, 3, 2, 2),
            {},
            r"Depth of input \(3\) is not a multiple of input depth of filter \(2\)",
        ),
        (
            (1, 3, 3, 4),
            (3, 3, 2, 3),
            {},
            r"Depth of output \(3\) is not a multiple of the number of groups \(2\)",
        ),
        ((3, 3, 1), (3, 3, 1, 1), {}, "Shape must be rank 4 but is rank 3"),
        (
            (1, 3, 3, 1),
            (3, 3, 1, 1),
            {"strides": [1, 1, 1]},
            "stride attribute to contain 4 values, but got: 3",
        ),
        ((1, 3, 3, 1), (3, 3, 1, 1), {"strides": [1, 0, 1, 1]}, "Stride must be > 0, but got 0"),
        ((1, 3, 3, 1), (3, 3, 1, 1), {"dilations": [1, 2, 2, 1]}, "subtracting 5 from 3"),
    ],
)
def test_wrong_shapes_are_refused_in_tensorflow_words(x, w, changes, message):
    with pytest.raises(ValueError, match=message):
        conv_shapes.conv2d_shape(x, w, **(attributes((1, 1), (1, 1), "VALID") | changes))


def test_depthwise_refuses_another_depth():
    with pytest.raises(ValueError, match="Dimensions must be equal, but are 4 and 3"):
        conv_shapes.depthwise_conv2d_shape((1, 3, 3, 4), (2, 2, 3, 2), **attributes((1, 1), (1, 1), "VALID"))


def test_output_size_counts_windows():
    assert output_size(7, 3, 2, b"SAME") == 4
    assert output_size(7, 3, 2, "VALID") == 3
    assert output_size(7, 3, 2, "VALID", dilation=2) == 2
    assert output_size(7, 3, 2, "EXPLICIT", explicit=(1, 2)) == 4
    assert output_size(None, 3, 2, "VALID") is None


@pytest.mark.parametrize("examples", [0, 2])
@pytest.mark.parametrize("channels", [3, 16])
def test_depthwise_filters_go_over_few_and_many_channels(examples, channels):
    x = np.random.RandomState(5).rand(examples, 5, 6, channels)
    w = np.random.RandomState(6).rand(3, 2, channels, 1)
    y = both_lives(depthwise.depthwise_conv2d, x, w, strides=[1, 2, 1, 1], padding="VALID")
    assert y.shape == (examples, 2, 5, channels)
    for i, j in np.ndindex(2, 5):
        seen = x[:, 2 * i : 2 * i + 3, j : j + 2]
        np.testing.assert_allclose(y[:, i, j], (seen * w[..., 0]).sum((1, 2)))


@pytest.mark.parametrize("window", [(1, (3, 3, 3)), (3, (4, 4, 4)), (2, (2, 3, 1))])
def test_small_convolutions_are_the_same_in_both_lives(window):
    # They are summed in other orders, so a step would change when it is compiled.
    stride, size = window
    x = np.random.rand(2, 6, 4, 7, 2).astype(np.float32)
    w = np.random.rand(*size, 2, 3).astype(np.float32)
    attrs = {"strides": [1, stride, stride, stride, 1], "padding": "SAME"}
    exact = conv.conv3d(np, x.astype(np.float64), w.astype(np.float64), **attrs)
    dy = np.random.rand(*exact.shape).astype(np.float32)
    for kernel, args in (
        (conv.conv3d, (x, w)),
        (conv.conv3d_backprop_input, (x.shape, w, dy)),
        (conv.conv3d_backprop_filter, (x, w.shape, dy)),
    ):
        with jax.enable_x64(True):
            traced = jax.jit(functools.partial(kernel, jnp, **attrs), static_argnums=_shapes(args))(*args)
        np.testing.assert_array_max_ulp(kernel(np, *args, **attrs), np.asarray(traced), 1)
    np.testing.assert_allclose(conv.conv3d(np, x, w, **attrs), exact, rtol=1e-7)


def _shapes(args):
    return tuple(i for i, a in enumerate(args) if isinstance(a, tuple))
