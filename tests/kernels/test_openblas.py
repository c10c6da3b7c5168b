"""How many threads a product of numpy may use."""

import numpy as np
import pytest

from tensorfleet.kernels import openblas
from tests.support.waiting import together


@pytest.fixture
def threads(monkeypatch):
    """OpenBLAS as far as `product` knows it: what was set, and what is set now."""

    class Library:
        now, history = 4, []

        def threads(self):
            return self.now

        def set(self, n):
            self.now = n
            self.history.append(n)

    library = Library()
    monkeypatch.setattr(openblas, "libraries", lambda folder: [library])
    return library.history


def _matrices(n):
    rng = np.random.RandomState(0)
    return rng.rand(n, n).astype(np.float32), rng.rand(n, n).astype(np.float32)


@pytest.mark.parametrize(("n", "expected"), [(8, []), (128, [1, 4]), (400, [1, 4])])
def test_only_products_that_openblas_would_divide_are_told_not_to_be(threads, n, expected):
    a, b = _matrices(n)
    np.testing.assert_allclose(openblas.product(a, b), np.dot(a, b), rtol=1e-4)
    assert threads == expected


def test_the_usual_number_comes_back_after_the_last_of_several(threads):
    a, b = _matrices(128)
    together(*[lambda: [openblas.product(a, b) for _ in range(40)]] * 4)
    assert threads[-1] == 4
    assert threads[::2] == [1] * (len(threads) // 2)


def test_after_an_error_too(threads):
    with pytest.raises(ValueError, match="mismatch"):
        openblas.product(np.ones([128, 128]), np.ones([127, 128]))
    assert threads == [1, 4]


def test_numpy_without_openblas(monkeypatch):
    monkeypatch.setattr(openblas, "libraries", lambda folder: [])
    a, b = _matrices(128)
    np.testing.assert_allclose(openblas.product(a, b), np.dot(a, b), rtol=1e-4)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((700, 300), (300, 200)),
        ((30, 3000), (3000, 700)),
        ((3, 300, 400), (3, 400, 500)),
        ((2, 1, 500, 300), (5, 300, 400)),
        ((1, 40_000), (40_000, 900)),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
def test_large_products_are_the_same_in_blocks(a, b, dtype):
    rng = np.random.RandomState(3)
    left, right = (rng.rand(*shape).astype(dtype) for shape in (a, b))
    assert a[-2] * a[-1] * b[-1] > openblas._MAX_MULTIPLICATIONS
    known = np.matmul(left.astype(np.complex128), right.astype(np.complex128))
    np.testing.assert_allclose(openblas.product(left, right), known, rtol=2e-4)
    turned = np.asfortranarray(left) if left.ndim == 2 else left.swapaxes(-1, -2).copy().swapaxes(-1, -2)
    np.testing.assert_allclose(openblas.product(turned, right), known, rtol=2e-4)


def test_factors_that_do_not_fit_are_told_as_numpy_tells_them():
    with pytest.raises(ValueError, match="mismatch"):
        openblas.product(np.ones([900, 900]), np.ones([899, 900]))
