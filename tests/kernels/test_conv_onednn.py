"""Convolutions by oneDNN equal their definition, whoever runs them and however they are divided."""

import ctypes
import threading

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.kernels import conv as conv_kernels
from tensorfleet.kernels import conv_onednn, onednn_library
from tensorfleet.kernels.processor import has_avx512
from tensorfleet.runtime.devices import load_jax

pytestmark = pytest.mark.skipif(
    onednn_library.library() is None or not has_avx512(),
    reason="oneDNN is not installed, or was not measured on this processor",
)


@pytest.fixture(autouse=True)
def worth(monkeypatch):
    """Everything is large enough for the library, and for parts."""
    monkeypatch.setattr(conv_onednn, "MIN_MULTIPLICATIONS", 1)
    monkeypatch.setattr(conv_kernels, "SMALL_CONVOLUTION", 0)
    conv_onednn._plan.cache_clear()
    yield
    conv_onednn._plan.cache_clear()


def traced(kernel, *arrays):
    jax, jnp = load_jax()
    with onednn_library.allow_calls():
        return jax.jit(lambda *a: kernel(jnp, *a)).trace(*arrays)


def check(kernel, *arrays):
    """Compares with the sum in float64; returns whether the library did it."""
    expected = kernel(np, *arrays)
    arrays = [a.astype(np.float32) for a in arrays]
    program = traced(kernel, *arrays)
    found = np.asarray(program.lower().compile()(*arrays))
    assert found.shape == expected.shape
    assert np.abs(found - expected).max(initial=0) <= 2e-5 * max(1, expected.std())
    return "ffi_call" in str(program.jaxpr)


def check_all(x, w, attrs):
    """The convolution and both gradients; returns how many of them the library did."""
    dy = np.random.default_rng(1).standard_normal(conv_kernels.conv2d(np, x, w, **attrs).shape)
    return (
        check(lambda xp, x, w: conv_kernels.conv2d(xp, x, w, **attrs), x, w)
        + check(lambda xp, w, d: conv_kernels.conv2d_backprop_input(xp, x.shape, w, d, **attrs), w, dy)
        + check(lambda xp, x, d: conv_kernels.conv2d_backprop_filter(xp, x, w.shape, d, **attrs), x, dy)
    )


def random_convolution(rng):
    """Shapes and attributes of any kind: strides, dilations, paddings, layouts, groups."""
    groups, taps = int(rng.choice([1, 1, 1, 2])), rng.integers(1, 6, 2)
    strides, dilations = rng.integers(1, 4, 2), rng.integers(1, 3, 2)
    dilations = dilations if strides.max() == 1 else np.ones(2, int)
    channels, filters = rng.choice([1, 3, 8, 16, 17, 24]) * groups, rng.choice([2, 8, 16, 17, 32]) * groups
    pads = [int(rng.integers(0, t)) for t in taps.repeat(2)]
    padding, layout = str(rng.choice(["SAME", "VALID", "EXPLICIT"])), str(rng.choice(["NHWC", "NCHW"]))
    order = (0, 1, 2, 3) if layout == "NHWC" else (0, 3, 1, 2)

    def ordered(first, inner, last):
        values = (first, *map(int, inner), last)
        return tuple(values[i] for i in order)

    explicit = [(0, 0), (pads[0], pads[1]), (pads[2], pads[3]), (0, 0)]
    attrs = dict(
        strides=ordered(1, strides, 1),
        dilations=ordered(1, dilations, 1),
        padding=padding,
        data_format=layout,
        explicit_paddings=tuple(p for i in order for p in explicit[i]) if padding == "EXPLICIT" else (),
    )
    x = rng.standard_normal((int(rng.integers(1, 6)), *rng.integers(10, 26, 2), channels))
    w = rng.standard_normal((*taps, channels // groups, filters))
    return x.transpose(order), w, attrs


def test_random_convolutions_and_gradients_equal_their_definition():
    rng = np.random.default_rng(5)
    assert sum(check_all(*random_convolution(rng)) for _ in range(16)) >= 30


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_volumes_and_their_gradients_equal_their_definition(padding):
    rng = np.random.default_rng(6)
    x, w = rng.standard_normal((3, 6, 9, 8, 5)), rng.standard_normal((3, 2, 3, 5, 17))
    assert check_all(x, w, dict(strides=(1,) * 5, padding=padding)) == 3


def test_windows_that_see_only_padding_are_left_to_xla():
    x, w = np.ones((2, 14, 11, 6)), np.ones((1, 2, 6, 64))
    attrs = dict(strides=(1, 2, 2, 1), padding="EXPLICIT", explicit_paddings=(0, 0, 1, 0, 2, 1, 0, 0))
    assert check_all(x, w, attrs) == 0


def test_only_large_convolutions_of_float32_that_run_on_the_cpu_are_the_librarys(monkeypatch):
    jax, jnp = load_jax()
    attrs = dict(strides=(1,) * 4, padding="SAME")
    x, w = np.ones((2, 12, 12, 16), np.float32), np.ones((3, 3, 16, 16), np.float32)

    def forward(xp, x, w):
        return conv_kernels.conv2d(xp, x, w, **attrs)

    assert "ffi_call" in str(traced(forward, x, w).jaxpr)
    assert "ffi_call" not in str(jax.jit(lambda *a: forward(jnp, *a)).trace(x, w).jaxpr)
    assert "ffi_call" not in str(traced(forward, x.astype(np.int32), w.astype(np.int32)).jaxpr)
    monkeypatch.setattr(conv_onednn, "MIN_MULTIPLICATIONS", 1 << 22)
    assert "ffi_call" not in str(traced(forward, x, w).jaxpr)


def test_without_the_library_convolutions_are_xlas(monkeypatch):
    monkeypatch.setattr(conv_onednn, "library", lambda: None)
    x, w = np.ones((2, 12, 12, 16)), np.ones((3, 3, 16, 16))
    assert check_all(x, w, dict(strides=(1,) * 4, padding="SAME")) == 0


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_any_number_of_parts_gives_the_convolution(monkeypatch, threads):
    monkeypatch.setattr(conv_onednn, "thread_count", lambda: threads)
    rng = np.random.default_rng(7)
    x, w = rng.standard_normal((5, 12, 12, 16)), rng.standard_normal((3, 3, 16, 16))
    assert check_all(x, w, dict(strides=(1,) * 4, padding="SAME")) == 3


def test_several_threads_run_one_program_and_get_the_same_bits():
    rng, attrs = np.random.default_rng(8), dict(strides=(1,) * 4, padding="SAME")
    x, dy = (rng.standard_normal((8, 16, 16, 16)).astype(np.float32) for _ in range(2))
    program = traced(
        lambda xp, x, d: conv_kernels.conv2d_backprop_filter(xp, x, (3, 3, 16, 16), d, **attrs), x, dy
    )
    call = program.lower().compile()
    expected, found = np.asarray(call(x, dy)), []

    def run():
        found.extend([np.asarray(call(x, dy)) for _ in range(20)])

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 80 and all(np.array_equal(f, expected) for f in found)


def test_other_libraries_keep_their_threads():
    threads = ctypes.CDLL("libgomp.so.1")
    before = threads.omp_get_max_threads()
    threads.omp_set_num_threads(3)
    try:
        x, w = np.ones((2, 12, 12, 16)), np.ones((3, 3, 16, 16))
        check_all(x, w, dict(strides=(1,) * 4, padding="SAME"))
        assert threads.omp_get_max_threads() == 3
    finally:
        threads.omp_set_num_threads(before)


def test_a_session_trains_with_it(session):
    rng = np.random.default_rng(9)
    x = tf.constant(rng.standard_normal((8, 12, 12, 16)), tf.float32)
    w = tf.get_variable("w", initializer=tf.constant(rng.standard_normal((3, 3, 16, 16)) / 9, tf.float32))
    loss = tf.reduce_mean(tf.square(tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME")))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    session.run(tf.global_variables_initializer())
    losses = [session.run([loss, train])[0] for _ in range(12)]
    assert losses == sorted(losses, reverse=True)
    assert conv_onednn._plan.cache_info().currsize >= 2
