"""How many threads a product of numpy may use."""

import threading

import numpy as np
import pytest

from tensorfleet.ops import blas


@pytest.fixture
def threads(monkeypatch):
    """OpenBLAS as far as `product` knows it: what was set, and what is set now."""
    now, history = [4], []

    def set_threads(n):
        now[0] = n
        history.append(n)

    monkeypatch.setattr(blas, "_controls", lambda: (lambda: now[0], set_threads))
    return history


def _matrices(n):
    rng = np.random.RandomState(0)
    return rng.rand(n, n).astype(np.float32), rng.rand(n, n).astype(np.float32)


@pytest.mark.parametrize(("n", "expected"), [(8, []), (128, [1, 4]), (400, [])])
def test_only_products_in_between_run_in_one_thread(threads, n, expected):
    a, b = _matrices(n)
    np.testing.assert_allclose(blas.product(a, b), np.dot(a, b), rtol=1e-4)
    assert threads == expected


def test_the_usual_number_comes_back_after_the_last_of_several(threads):
    a, b = _matrices(128)
    workers = [threading.Thread(target=lambda: [blas.product(a, b) for _ in range(40)]) for _ in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join(60)
    assert threads[-1] == 4
    assert threads[::2] == [1] * (len(threads) // 2)


def test_after_an_error_too(threads):
    with pytest.raises(ValueError, match="mismatch"):
        blas.product(np.ones([128, 128]), np.ones([127, 128]))
    assert threads == [1, 4]


def test_numpy_without_openblas(monkeypatch):
    monkeypatch.setattr(blas, "_controls", lambda: None)
    a, b = _matrices(128)
    np.testing.assert_allclose(blas.product(a, b), np.dot(a, b), rtol=1e-4)
