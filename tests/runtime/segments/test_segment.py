"""A segment's entries of `Part.products` as single steps."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.kernels import matmul_onednn, onednn_library
from tensorfleet.kernels.processor import has_avx512


@pytest.mark.skipif(
    onednn_library.library() is None or not has_avx512(),
    reason="oneDNN is not installed, or was not measured on this processor",
)
def test_the_gradient_of_a_weight_that_is_used_many_times_is_one_call(monkeypatch, always_compile, session):
    monkeypatch.setattr(matmul_onednn, "MIN_MULTIPLICATIONS", 1)
    terms = []
    run = matmul_onednn.sum_of_products
    monkeypatch.setattr(
        matmul_onednn, "sum_of_products", lambda xp, *args: terms.append(len(args[0])) or run(xp, *args)
    )
    random = np.random.default_rng(1)
    start = random.standard_normal((20, 64), np.float32)
    weight = 0.1 * random.standard_normal((64, 64), np.float32)
    w, x = tf.constant(weight), tf.placeholder(tf.float32, [20, 64])
    states = [x]
    for _ in range(4):
        states.append(tf.tanh(tf.matmul(states[-1], w)))
    gradient = tf.gradients(states[-1], w)[0]
    value, *known = session.run([gradient, *states], {x: start})
    upstream, expected = np.ones_like(start), np.zeros_like(weight)
    for before, after in zip(known[3::-1], known[:0:-1], strict=True):
        upstream = upstream * (1 - after**2)
        expected += before.T @ upstream
        upstream = upstream @ weight.T
    np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-5)
    assert terms == [4]
