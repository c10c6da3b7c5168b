"""Sums of products by oneDNN equal their definition, however they are divided; other factors are left to XLA."""

import numpy as np
import pytest

from tensorfleet.kernels import matmul_onednn, onednn_library
from tensorfleet.kernels.processor import has_avx512
from tensorfleet.runtime.devices import load_jax

pytestmark = pytest.mark.skipif(
    onednn_library.library() is None or not has_avx512(),
    reason="oneDNN is not installed, or was not measured on this processor",
)


@pytest.fixture(autouse=True)
def worth(monkeypatch):
    """Everything is large enough for the library."""
    monkeypatch.setattr(matmul_onednn, "MIN_MULTIPLICATIONS", 1)


def factors(rows, columns, lengths, seed=0):
    random = np.random.default_rng(seed)
    left, right = ([random.standard_normal((n, m), np.float32) for n in lengths] for m in (rows, columns))
    return left, right


def summed(left, right):
    jax, jnp = load_jax()

    def program(left, right):
        assert matmul_onednn.suits(jnp, left, right)
        return matmul_onednn.sum_of_products(jnp, left, right)

    with onednn_library.allow_calls():
        return np.asarray(jax.jit(program)(left, right))


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize(
    "rows, columns, lengths", [(16, 64, [1]), (37, 65, [3, 1, 8]), (256, 512, [128] * 5), (1000, 64, [2, 40])]
)
def test_the_sum_equals_its_definition(monkeypatch, threads, rows, columns, lengths):
    monkeypatch.setattr(matmul_onednn, "thread_count", lambda: threads)
    left, right = factors(rows, columns, lengths)
    expected = sum(a.T.astype(np.float64) @ b for a, b in zip(left, right, strict=True))
    np.testing.assert_allclose(summed(left, right), expected, rtol=1e-4, atol=1e-3)


def test_the_sum_has_the_same_bits_every_time():
    left, right = factors(200, 100, [64, 32, 16])
    first = summed(left, right)
    assert all(np.array_equal(first, summed(left, right)) for _ in range(20))


def test_a_result_that_is_not_a_number_does_not_come_from_memory_that_was_there():
    """The first product overwrites the result's memory instead of adding zero times what it holds."""
    left, right = factors(64, 64, [8, 8])
    summed([np.full_like(a, np.nan) for a in left], right)
    assert np.isfinite(summed(left, right)).all()


@pytest.mark.parametrize(
    "left, right",
    [
        ([np.ones((4, 32))], [np.ones((4, 64))]),  # float64
        ([np.ones((4, 8), "f")], [np.ones((4, 64), "f")]),  # few rows
        ([np.ones((4, 32), "f")], [np.ones((4, 8), "f")]),  # few columns
        ([np.ones((0, 32), "f")], [np.ones((0, 64), "f")]),
        ([np.ones((4, 32), "f")], [np.ones((5, 64), "f")]),  # sizes that do not match
        ([np.ones((4, 32), "f"), np.ones((4, 33), "f")], [np.ones((4, 64), "f")] * 2),
        ([np.ones((2, 4, 32), "f")], [np.ones((2, 4, 64), "f")]),  # batches
    ],
)
def test_other_factors_are_left_to_xla(left, right):
    _, jnp = load_jax()
    with onednn_library.allow_calls():
        assert not matmul_onednn.suits(jnp, left, right)


def test_numpy_and_traces_for_other_devices_are_left_alone():
    _, jnp = load_jax()
    left, right = factors(64, 64, [8])
    assert not matmul_onednn.suits(jnp, left, right)
    with onednn_library.allow_calls():
        assert not matmul_onednn.suits(np, left, right)
