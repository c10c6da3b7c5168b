"""LAPACK in the type of its arguments."""

import types

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.kernels import lapack

MATRICES = np.random.RandomState(0).rand(5, 4, 4)
POSITIVE = MATRICES @ MATRICES.swapaxes(1, 2) + np.eye(4)
BAD = np.stack([np.eye(4), np.eye(4)]).astype(np.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_results_are_those_of_numpy_and_of_the_type_that_is_given(dtype):
    own, a = lapack.linalg(np), POSITIVE.astype(dtype)
    for name, args, options in [
        ("inv", (a,), {}),
        ("solve", (a, a[:, :, :2]), {}),
        ("cholesky", (a,), {}),
        ("eigvalsh", (a,), {}),
        ("svd", (a[:, :, :3],), {"compute_uv": False}),
    ]:
        result, known = (getattr(where, name)(*args, **options) for where in (own, np.linalg))
        np.testing.assert_allclose(result, known, rtol=1e-3, atol=1e-4)
        assert result.dtype == known.dtype
    values, vectors = own.eigh(a)
    np.testing.assert_allclose((vectors * values[:, None]) @ vectors.conj().swapaxes(1, 2), a, atol=1e-4)
    assert vectors.dtype == dtype


@pytest.mark.parametrize("full", [True, False])
def test_singular_vectors_are_as_many_as_asked_for(full):
    u, s, vh = lapack.linalg(np).svd(MATRICES[:, :, :3].astype(np.float32), full_matrices=full)
    assert u.shape == (5, 4, 4 if full else 3)
    np.testing.assert_allclose((u[:, :, :3] * s[:, None]) @ vh, MATRICES[:, :, :3], atol=1e-5)


def test_a_singular_matrix_among_others_is_an_error():
    with pytest.raises(np.linalg.LinAlgError, match="not successful"):
        lapack.linalg(np).inv(np.stack([np.eye(2), np.zeros([2, 2])]).astype(np.float32))


def test_a_numpy_without_the_loops_is_used_as_it_is(monkeypatch):
    monkeypatch.setattr(lapack, "_loops", types.SimpleNamespace(inv=None))
    assert lapack.linalg(np) is np.linalg


@pytest.mark.parametrize("what", [np.nan, np.inf])
@pytest.mark.parametrize("times", [1, 30])
def test_singular_values_of_matrices_that_are_not_finite_are_nan(session, what, times):
    x = tf.placeholder(tf.float32, [2, 4, 4])
    fetches = [tf.svd(x), tf.svd(x, compute_uv=False)]
    bad = BAD.copy()
    bad[1, 2, 1] = what
    for _ in range(times):
        (s, u, v), values = session.run(fetches, {x: bad})
    for item in (s, u, v, values):
        assert np.isfinite(item[0]).all()
        assert np.isnan(item[1]).all()


@pytest.mark.parametrize("what", [np.nan, np.inf])
@pytest.mark.parametrize("make", [tf.self_adjoint_eig, tf.self_adjoint_eigvals])
def test_eigenvalues_of_matrices_that_are_not_finite_are_refused(session, make, what):
    bad = BAD.copy()
    bad[1, 2, 1] = what
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="Self-adjoint eigen decomposition was not successful"
    ):
        session.run(make(tf.constant(bad)))
