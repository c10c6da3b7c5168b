"""Convolutions in parts, which XLA's library does side by side, equal the plain sum."""

import numpy as np
import pytest

from tensorfleet.kernels import conv as conv_kernels
from tensorfleet.kernels import conv_library
from tensorfleet.runtime.devices import load_jax
from tensorfleet.runtime.segments import xla_options

pytestmark = pytest.mark.skipif(
    not xla_options.has_library_convolutions(), reason="this machine's convolutions are XLA's own"
)


@pytest.fixture
def worth(monkeypatch):
    """Everything is large enough to be divided."""
    monkeypatch.setattr(conv_library, "MIN_DIVIDED_PRODUCTS", 0)
    monkeypatch.setattr(conv_kernels, "SMALL_CONVOLUTION", 0)


def compiled(kernel, *arrays):
    """The result of a kernel compiled as programs are, and whether it was made in parts."""
    jax, jnp = load_jax()
    arrays = [a.astype(np.float32) for a in arrays]
    with conv_library.offered() as offer:
        traced = jax.jit(lambda *a: kernel(jnp, *a)).trace(*arrays)
    call, _ = xla_options.compile_for_cpu(jax, traced, 1 << 20, False, offer.taken)
    assert call is not None  # or a convolution was left to XLA that only the library can do
    return np.asarray(call(*arrays)), offer.taken


def check(kernel, *arrays):
    expected = kernel(np, *arrays)
    found, in_parts = compiled(kernel, *arrays)
    assert found.shape == expected.shape
    assert np.abs(found - expected).max(initial=0) <= 2e-5 * max(1, expected.std())
    return in_parts


def test_random_convolutions_and_gradients_equal_their_definition(worth):
    rng, divided = np.random.default_rng(7), 0
    for _ in range(16):
        examples, height, width = rng.integers(1, 4), *rng.integers(10, 26, 2)
        channels, filters = rng.choice([1, 3, 8, 17, 24]), rng.choice([2, 8, 17, 32])
        taps, strides, dilations = rng.integers(1, 6, 2), rng.integers(1, 4, 2), rng.integers(1, 3, 2)
        dilations = dilations if strides.max() == 1 else (1, 1)
        pads = [int(rng.integers(0, t)) for t in taps.repeat(2)]
        attrs = dict(
            strides=(1, *map(int, strides), 1),
            dilations=(1, *map(int, dilations), 1),
            padding=str(rng.choice(["SAME", "VALID", "EXPLICIT"])),
        )
        attrs["explicit_paddings"] = (0, 0, *pads, 0, 0) if attrs["padding"] == "EXPLICIT" else ()
        x = rng.standard_normal((examples, height, width, channels))
        w = rng.standard_normal((*taps, channels, filters))
        dy = rng.standard_normal(conv_kernels.conv2d(np, x, w, **attrs).shape)
        divided += check(lambda xp, x, w, a=attrs: conv_kernels.conv2d(xp, x, w, **a), x, w)
        check(
            lambda xp, w, d, a=attrs, s=x.shape: conv_kernels.conv2d_backprop_input(xp, s, w, d, **a), w, dy
        )
        check(
            lambda xp, x, d, a=attrs, s=w.shape: conv_kernels.conv2d_backprop_filter(xp, x, s, d, **a), x, dy
        )
    assert divided >= 3


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_volumes_and_their_gradients_are_made_in_parts_too(worth, padding):
    rng, attrs = np.random.default_rng(8), dict(strides=(1,) * 5, padding=padding)
    x, w = rng.standard_normal((2, 6, 14, 12, 8)), rng.standard_normal((3, 3, 3, 8, 17))
    dy = rng.standard_normal(conv_kernels.conv3d(np, x, w, **attrs).shape)
    assert check(lambda xp, x, w: conv_kernels.conv3d(xp, x, w, **attrs), x, w)
    check(lambda xp, w, d: conv_kernels.conv3d_backprop_input(xp, x.shape, w, d, **attrs), w, dy)
    check(lambda xp, x, d: conv_kernels.conv3d_backprop_filter(xp, x, w.shape, d, **attrs), x, dy)


def test_windows_that_see_only_padding_are_left_to_xla(worth):
    x, w = np.ones((1, 14, 11, 6)), np.ones((1, 2, 6, 64))
    attrs = dict(strides=(1, 2, 2, 1), padding="EXPLICIT", explicit_paddings=(0, 0, 1, 0, 2, 1, 0, 0))
    assert not check(lambda xp, x, w: conv_kernels.conv2d(xp, x, w, **attrs), x, w)


def test_small_and_double_convolutions_are_not_divided():
    jax, jnp = load_jax()
    attrs = dict(strides=(1,) * 4, padding="SAME")
    x, w = np.ones((1, 12, 12, 17)), np.ones((3, 3, 17, 17))
    assert not check(lambda xp, x, w: conv_kernels.conv2d(xp, x, w, **attrs), x, w)
    with conv_library.offered() as offer:
        jax.jit(lambda x, w: conv_kernels.conv2d(jnp, x, w, **attrs)).trace(x.repeat(64, 0), w)
    assert not offer.taken


def test_nothing_is_divided_unless_it_is_offered(worth):
    jax, jnp = load_jax()
    attrs, x, w = dict(strides=(1,) * 4, padding="SAME"), np.ones((1, 12, 12, 17)), np.ones((3, 3, 17, 17))
    with conv_library.offered(False) as offer:
        text = str(jax.jit(lambda x, w: conv_kernels.conv2d(jnp, x, w, **attrs)).trace(x, w).jaxpr)
    assert not offer.taken and text.count("conv_general_dilated") == 1


def test_a_program_whose_parts_the_library_did_not_take_is_refused(worth, monkeypatch):
    jax, jnp = load_jax()
    monkeypatch.setattr(xla_options, "_EVERYTHING", xla_options._NO_CONVOLUTIONS)
    attrs = dict(strides=(1,) * 4, padding="SAME")
    x, w = np.ones((1, 12, 12, 17), np.float32), np.ones((3, 3, 17, 17), np.float32)
    with conv_library.offered() as offer:
        traced = jax.jit(lambda x, w: conv_kernels.conv2d(jnp, x, w, **attrs)).trace(x, w)
    call, _ = xla_options.compile_for_cpu(jax, traced, 1 << 20, False, offer.taken)
    assert offer.taken and call is None


def test_a_session_compiles_again_without_parts_when_the_library_does_not_take_them(
    worth, monkeypatch, session
):
    import tensorfleet as tf

    monkeypatch.setattr(xla_options, "_EVERYTHING", xla_options._NO_CONVOLUTIONS)
    rng = np.random.default_rng(9)
    x, w = rng.standard_normal((8, 24, 24, 17)), rng.standard_normal((3, 3, 17, 33))
    expected = conv_kernels.conv2d(np, x, w, strides=(1,) * 4, padding="SAME")
    place = tf.placeholder(tf.float32, x.shape)
    y = tf.nn.conv2d(place, tf.constant(w, tf.float32), [1, 1, 1, 1], "SAME")
    for _ in range(20):  # both lives
        np.testing.assert_allclose(session.run(y, {place: x}), expected, atol=2e-4)
